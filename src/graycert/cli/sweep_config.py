"""The options of `graycert sweep`; loads neither torch nor NumPy."""

from typing import Annotated

from cyclopts import Parameter
from pydantic import Field

from graycert.cli.configs import Backend, Count, ModelConfig, NumWorkers, Scheduler, Seed


class SweepConfig(ModelConfig):
    """Options of `graycert sweep`."""

    seed: Annotated[Seed, Field(description="Seeds the split, weights, training, votes, and where trials lie.")] = 0
    smooth: Annotated[
        str,
        Field(
            description="What is smoothed: both, deletion or ablation. Probabilities are drawn from [0, 1], for "
            "training and for certifying separately."
        ),
    ] = "both"
    min_distance: Annotated[int, Field(description="Hostile nodes are at least that many hops away.")] = 2
    num_selection: Annotated[Count, Parameter(alias="--n0"), Field(description="Draws that choose the class (n0).")] = (
        1_000
    )
    num_estimation: Annotated[
        Count, Parameter(alias="--n1"), Field(description="Further draws that bound its lead (n1).")
    ] = 3_000
    alpha: Annotated[float, Field(description="Failure probability per target.")] = 0.01
    rule: Annotated[str, Field(description="See `graycert certify`.")] = "sound"
    bound: Annotated[
        str, Field(description="Bound of Δ over sets of nodes: auto, exact, surrogate, tree, multiplicative or union.")
    ] = "auto"
    sampler: Annotated[
        str, Field(description="Where trials lie: random, or nsga2 or tpe, which learn from the trials before.")
    ] = "random"
    budget: Annotated[str, Field(description='Trials in all ("200"), or a time for this call ("30min", "2h").')] = "200"
    backend: Backend = "processes"
    workers: NumWorkers = None
    scheduler: Scheduler = None
    out: Annotated[
        str | None,
        Field(description="Folder; one that holds a sweep goes on. Default: runs/sweep-GRAPH-TIME."),
    ] = None
    retry_failed: Annotated[
        bool, Parameter(negative=()), Field(description="Run trials again that failed in an earlier call.")
    ] = False
