"""The options of the commands, with their defaults: on the command line, and as keys of a `--config` file.

This module is read for `--help`, so it loads neither torch nor NumPy.
"""

from typing import Annotated

from cyclopts import Parameter
from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """Options that cannot change and refuse unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid")


_NO_NEGATIVE = Parameter(negative=())


class GraphConfig(Config):
    """Which graph, and what is done to it first."""

    graph: Annotated[
        str, Field(description="Name (see `graycert datasets`) or file: .npz, .pt, .csv, .tsv, .parquet.")
    ] = "wordnet_nouns"
    nodes: Annotated[str | None, Field(description="Node table that belongs to an edge table.")] = None
    data_root: Annotated[str | None, Field(description="Folder with graph files; else GRAYCERT_DATA.")] = None
    undirected: Annotated[
        bool | None,
        Parameter(negative="--directed"),
        Field(description="Add the reverse of every edge, or leave edges directed. Named graphs: as in the paper."),
    ] = None
    drop_self_loops: Annotated[bool | None, Field(description="Remove edges from a node to itself.")] = None
    coalesce: Annotated[bool | None, Field(description="Merge parallel edges.")] = None
    largest_component: Annotated[bool | None, Field(description="Keep only the largest component.")] = None
    binarize: Annotated[bool | None, Field(description="Replace each feature by 1 where it is > 0, else 0.")] = None


class TrainingConfig(GraphConfig):
    """How a model is trained: the paper's settings."""

    split: Annotated[
        str, Field(description="inductive (held-out nodes are not in the training graph) or transductive.")
    ] = "inductive"
    per_class: Annotated[int, Field(description="Training nodes, and validation nodes, of each class.")] = 20
    test_fraction: Annotated[float, Field(description="Share of the labelled nodes to test on.")] = 0.1
    seed: Annotated[int, Field(description="Seeds the split, the weights, training, and the votes.")] = 0
    model: Annotated[str, Field(description="gat, gcn, gatv2 or sma.")] = "gat"
    skip: Annotated[
        bool | None,
        Field(description="Add a connection from a node's own features to its output. Default: yes, for a new model."),
    ] = None
    num_layers: Annotated[
        int | None, Field(description="Message-passing steps. Default: 2, or those of the model.")
    ] = None
    train_p_delete: Annotated[float, Field(description="Chance of deleting an edge while training.")] = 0.01
    train_p_ablate: Annotated[float, Field(description="Chance of ablating a node while training.")] = 0.6
    max_epochs: Annotated[int, Field(description="Limit of training epochs.")] = 1_000
    patience: Annotated[int, Field(description="Epochs without improvement before training stops.")] = 50
    learning_rate: Annotated[float, Field(description="Of Adam.")] = 1e-3
    weight_decay: Annotated[float, Field(description="Of Adam.")] = 5e-4


_METHOD = "Bound of Δ over sets of nodes: auto, exact, surrogate, tree, multiplicative or union."


class TrainConfig(TrainingConfig):
    """Options of `graycert train`."""

    out: Annotated[str | None, Field(description="Weights file. Default: runs/train-GRAPH-TIME/model.safetensors.")] = (
        None
    )
    overwrite: Annotated[bool, _NO_NEGATIVE, Field(description="Replace an existing file.")] = False


class CertifyConfig(TrainingConfig):
    """Options of `graycert certify`."""

    model: Annotated[
        str,
        Field(description="gat, gcn, gatv2 or sma; package.module:Class; or FILE.safetensors from `graycert train`."),
    ] = "gat"
    weights: Annotated[
        str | None, Field(description="FILE.safetensors for the model. Without it, a named model is trained first.")
    ] = None
    p_delete: Annotated[float, Field(description="Chance p_d of deleting an edge, when certifying.")] = 0.31
    p_ablate: Annotated[float, Field(description="Chance p_a of ablating a node, when certifying.")] = 0.794
    min_distance: Annotated[
        int | None,
        Field(description="Hostile nodes are at least that many hops away. Default: 1 with --skip, 0 without."),
    ] = None
    trusted: Annotated[str | None, Field(description="File naming nodes that are never hostile, one a line.")] = None
    targets: Annotated[
        str | None,
        Field(description="test, all, or a file naming nodes, one a line. Default: test, or all without labels."),
    ] = None
    n0: Annotated[int, Field(description="Draws that choose the class.")] = 1_000
    n1: Annotated[int, Field(description="Further draws that bound its lead.")] = 3_000
    alpha: Annotated[float, Field(description="Failure probability per target.")] = 0.01
    simultaneous: Annotated[
        bool, _NO_NEGATIVE, Field(description="Let alpha be the failure probability of all targets at once.")
    ] = False
    rule: Annotated[
        str,
        Field(
            description="sound; difference or event-aware, both sound and tighter; or paper, which is NOT sound and "
            "exists for comparison."
        ),
    ] = "sound"
    method: Annotated[str, Field(description=_METHOD)] = "auto"
    collective: Annotated[
        bool,
        _NO_NEGATIVE,
        Field(description="Also bound how many targets survive one adversary who attacks all of them."),
    ] = False
    max_radius: Annotated[int, Field(description="Largest radius to examine.")] = 20
    device: Annotated[
        str | None, Field(description="Where votes are drawn: auto, cpu, cuda, cuda:1. Default: cpu.")
    ] = None
    engine: Annotated[
        str, Field(description="What draws: auto, compiled (refuses models without kernels) or torch.")
    ] = "auto"
    batch_size: Annotated[
        int | None, Field(description="Draws per forward pass (engine torch). Default: from a memory budget.")
    ] = None
    out: Annotated[str | None, Field(description="Run directory. Default: runs/certify-GRAPH-TIME.")] = None
    overwrite: Annotated[bool, _NO_NEGATIVE, Field(description="Replace an earlier run directory.")] = False


class BoundsConfig(GraphConfig):
    """Options of `graycert bounds`."""

    p_delete: Annotated[float, Field(description="Chance p_d of deleting an edge.")] = 0.31
    p_ablate: Annotated[float, Field(description="Chance p_a of ablating a node.")] = 0.794
    num_layers: Annotated[int, Field(description="Message-passing steps of the model.")] = 2
    min_distance: Annotated[int, Field(description="Hostile nodes are at least that many hops away.")] = 1
    trusted: Annotated[str | None, Field(description="File naming nodes that are never hostile, one a line.")] = None
    targets: Annotated[str, Field(description="all, or a file naming nodes, one a line.")] = "all"
    method: Annotated[str, Field(description=_METHOD)] = "auto"
    max_radius: Annotated[int, Field(description="Largest radius to examine.")] = 20
    out: Annotated[str | None, Field(description="File for the values per node: .csv or .parquet.")] = None
    overwrite: Annotated[bool, _NO_NEGATIVE, Field(description="Replace an existing file.")] = False
