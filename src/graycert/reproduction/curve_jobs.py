"""The computations behind curves, those that they share done once, and what the results say of each curve."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from graycert.reproduction.certified_targets import CertifiedTargets
from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.chosen_job import ChosenJob
from graycert.reproduction.curve import Curve
from graycert.reproduction.graph_jobs import TreeShapedJob
from graycert.reproduction.job import Job
from graycert.reproduction.settings import Conclusion

if TYPE_CHECKING:
    from graycert.reproduction.results import Results


def jobs_of_curves(curves: Sequence[Curve], seed: int, *, also: Sequence[int] = ()) -> "list[CertifyJob | ChosenJob]":
    """Return the computation of each curve; curves of one model under one smoothing share it, and so its votes.

    Args:
        curves: Of one figure.
        seed: Of split, weights, training and draws.
        also: Distances of hostile nodes that are concluded too, because another figure shows them; not where settings
            are chosen, since they are chosen for one distance.
    """
    alone = [each.job(seed, sorted({*also, each.min_distance})) for each in curves]
    bare = [each.model_copy(update={"conclusions": ()}) for each in alone]
    wanted: dict[CertifyJob, set[Conclusion]] = defaultdict(set)
    for key, job in zip(bare, alone, strict=True):
        wanted[key].update(job.conclusions)
    together = {key: tuple(sorted(found, key=lambda each: each.name)) for key, found in wanted.items()}
    return [
        _choice(each, seed) if each.grid else key.model_copy(update={"conclusions": together[key]})
        for each, key in zip(curves, bare, strict=True)
    ]


def _choice(curve: Curve, seed: int) -> ChosenJob:
    return ChosenJob(candidates=tuple(each.job(seed, (each.min_distance,)) for each in curve.candidates))


def certified_curves(
    curves: Sequence[Curve], seed: int, results: "Results", *, also: Sequence[int] = ()
) -> Iterator[tuple[Curve, CertifiedTargets]]:
    """Yield what the results of `all_jobs` say of each curve's targets."""
    for curve, job in zip(curves, jobs_of_curves(curves, seed, also=also), strict=True):
        arrays = results[job]
        found = curve.candidates[int(arrays.get("chosen", 0))].certified(arrays)
        if curve.targets == "tree-shaped":
            found = found.only(results[_shape_job(curve, seed)]["targets"])
        yield curve, found


def all_jobs(curves: Sequence[Curve], seed: int, *, also: Sequence[int] = ()) -> list[Job]:
    """Return the computations of curves, and those about the shapes of their targets' receptive fields."""
    shapes = [_shape_job(each, seed) for each in curves if each.targets == "tree-shaped"]
    return [*jobs_of_curves(curves, seed, also=also), *shapes]


def _shape_job(curve: Curve, seed: int) -> TreeShapedJob:
    return TreeShapedJob(split=curve.split_settings(seed), num_layers=curve.steps)


def choices_of_curves(curves: Sequence[Curve], seed: int, results: "Results") -> list[dict[str, Any]]:
    """Return what was chosen for curves with a choice, one row each, and how it did on validation nodes."""
    rows = []
    for curve in curves:
        if curve.grid:
            arrays = results[_choice(curve, seed)]
            place = int(arrays["chosen"])
            chosen, varied = curve.candidates[place], dict.fromkeys(name for each in curve.grid for name in each)
            words = ", ".join(f"{name} = {getattr(chosen, name)}" for name in varied)
            about = {"panel": curve.panel, "label": curve.label, "seed": seed}
            rows.append({**about, "chosen": words, "validation": arrays["scores"][place], "of": len(arrays["scores"])})
    return rows
