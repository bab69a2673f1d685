"""Model + validation nodes + what is wanted -> the smoothing to certify with."""

import hashlib
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graycert._types import IntArray
from graycert._validation import check_choice, check_seed
from graycert.draws import Draws
from graycert.errors import InvalidParameterError
from graycert.graph import fingerprint_of
from graycert.graph.values_per_edge import EdgeInputNames
from graycert.reproduction.job import silent
from graycert.reproduction.lab import Lab
from graycert.reproduction.settings import settings_hash
from graycert.reproduction.sweep import AdaptiveDesign, Budget, Design, ListedDesign, RandomDesign, Sweep, run_sweep
from graycert.threats import Threat
from graycert.threats.named_nodes import target_nodes, with_trusted_nodes
from graycert.tuning.measures import RADII, Measures, are_unequal
from graycert.tuning.result import Tuning, tuning_of
from graycert.tuning.trial import TRAINING, Bench, Train, TuneJob, opened, sent
from graycert.tuning.want import Want

if TYPE_CHECKING:
    from torch import Tensor, nn

    from graycert.problem import Execution

Pairs = Iterable[tuple[float, float]]

SETTINGS: tuple[tuple[float, float], ...] = tuple((p_d, p_a) for p_d in (0.0, 0.3, 0.6) for p_a in (0.3, 0.6, 0.8, 0.9))
"""(p_d, p_a) that are tried at inference."""

TRAINED_UNDER: tuple[tuple[float, float], ...] = ((0.01, 0.6), (0.3, 0.8))
"""(p_d, p_a) that are tried in training: the paper's, and about as much as is certified with."""

DRAWS = Draws(num_selection=200, num_estimation=1_000)

SAMPLERS = ("listed", "random", "nsga2", "tpe")
_RANGES = {"p_delete": (0.0, 0.9), "p_ablate": (0.0, 0.95)}


def tune(
    model: "nn.Module | Train",
    data: Any,
    *,
    validation: Any,
    threat: Threat,
    want: str | None = None,
    settings: Pairs | None = None,
    training: Pairs | None = None,
    sampler: str = "listed",
    budget: str | None = None,
    draws: Draws = DRAWS,
    rule: str | None = None,
    alpha: float = 0.01,
    seed: int = 0,
    num_layers: int | None = None,
    ablation_token: "Tensor | None" = None,
    edge_inputs: EdgeInputNames | None = None,
    directory: str | Path | None = None,
    execution: "Execution | None" = None,
    progress: bool = True,
) -> Tuning:
    """Try settings of `InterceptionSmoothing` on validation nodes, and recommend one.

    Each trial is a job of a sweep: certificates of the validation nodes under one (p_d, p_a). A model is audited once,
    and trained once for each setting in training. Nothing but validation nodes is looked at, and trials draw by seeds
    that `certify` does not use: so the choice is fixed before the draws of the certificates, which hold as ever.
    What the chosen setting reached on the nodes that chose it flatters it; report what it reaches on others.

    Args:
        model: A model, or, where training is allowed, a function that takes an `InterceptionSmoothing` and returns a
            model that was trained under it.
        data: The graph, with labels.
        validation: Nodes to choose by, see ``targets`` of `graycert.certify`: neither trained on nor reported on. Those
            without a label are left out.
        threat: Who may do what.
        want: "accuracy=0.9" or "balanced accuracy=0.9": of the settings that reach it, the one with most certified and
            correct nodes at radius 1. "radius=1 of fraud": of those where more than half of a class is certified and
            correct at that radius, the most accurate; "radius=1" is about all nodes. Default: most certificates at
            little loss of accuracy.
        settings: Pairs (p_d, p_a) to try; default ``graycert.tuning.choosing.SETTINGS``.
        training: Pairs (p_d, p_a) to train under, where ``model`` is a function; default ``TRAINED_UNDER`` there.
        sampler: "listed" tries the pairs; "random", "nsga2" and "tpe" look in the whole square, see `graycert sweep`.
        budget: How long a sampler looks: "24" trials, or a time as "10min".
        draws: Of each trial; fewer than for certificates do.
        rule: See `graycert.certify`.
        alpha: Failure probability per node.
        seed: Seeds trials.
        num_layers: See `graycert.certify`.
        ablation_token: See `graycert.certify`.
        edge_inputs: See `graycert.certify`.
        directory: Folder that keeps trials, so that an interrupted call goes on; a function that trains must then be
            the same. Default: nothing is kept.
        execution: Where and how to compute. With processes, or a Dask cluster, several settings are tried at once;
            with threads one after the other.
        progress: Show progress where it is seen: on a terminal, or in a notebook.

    Returns:
        A table of all settings, and the recommended one.

    Raises:
        InvalidParameterError: If an argument is out of its domain, or no trial was finished.
        UnsoundSetupError: If the model cannot be certified, as `certify` says.
    """
    from graycert.problem import Execution

    asked = Execution() if execution is None else execution
    asked = replace(asked, say=asked.say or silent)
    elsewhere = asked.backend != "threads"
    wanted = Want.parse(want)
    nodes, names = _validation_nodes(data, validation)
    if wanted.of and wanted.of not in names:
        check_choice("want", wanted.of, names, hint="'radius=1 of CLASS' names a class of the graph.")
    measures = Measures(class_names=names, radii=tuple(sorted({*RADII, wanted.radius})))
    terms = {
        "threat": with_trusted_nodes(threat, data),
        "draws": draws,
        "rule": rule,
        "alpha": alpha,
        "seed": trial_seed(seed),
        "max_radius": max(measures.radii),
        "num_layers": num_layers,
        "ablation_token": ablation_token,
        "edge_inputs": edge_inputs,
        "execution": replace(asked, backend="threads", workers=None, scheduler=None) if elsewhere else asked,
    }
    labels = data.y.cpu().numpy()[nodes]
    classes, counts = np.unique(labels, return_counts=True)
    bench = Bench(
        question=_question(model, data, nodes, terms),
        model=model,
        data=data,
        nodes=nodes,
        terms=terms,
        rarest=names[int(classes[counts.argmin()])],
    )
    design, limit = _design(model, settings, training, sampler, budget, seed)
    if not any(name in design.ranges for name in TRAINING):
        bench.ready({})  # a model that is refused is refused now
    unequal = are_unequal(labels)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()) if directory is None else directory)
        if elsewhere:
            folder.mkdir(parents=True, exist_ok=True)
            bench = stack.enter_context(sent(bench, folder))
        stack.enter_context(opened(bench))
        sweep = Sweep(
            directory=folder,
            name="tune",
            lab=Lab(folder / "lab"),
            job=lambda point: TuneJob.on(bench, point),
            numbers=measures,
            directions=dict.fromkeys(_objectives(unequal), "maximize"),
            design=design,
            budget=limit,
            settings={"question": bench.question},
        )
        workers = Execution(backend=asked.backend, workers=asked.workers, scheduler=asked.scheduler)
        found = run_sweep(sweep, execution=workers if elsewhere else None, progress=progress)
        tuning = tuning_of(found, bench, want=wanted, unequal=unequal, parameters=tuple(design.ranges))
        if elsewhere:
            bench.ready(tuning.setting)  # its files are about to go
        return tuning


def trial_seed(seed: int) -> int:
    """Return the seed of the draws of trials: coins that `certify` does not toss by the same ``seed``."""
    return int(np.random.SeedSequence(check_seed(seed), spawn_key=(0x7475,)).generate_state(1, np.uint64)[0])


def _objectives(unequal: bool) -> tuple[str, str]:
    return ("balanced_accuracy", "balanced_correct_1") if unequal else ("accuracy", "correct_1")


def _validation_nodes(data: Any, validation: Any) -> tuple[IntArray, tuple[str, ...]]:
    """Return the labelled ones of the nodes, and the names of the classes."""
    if getattr(data, "y", None) is None:
        raise InvalidParameterError("`data` must have labels `y`, by which settings are compared, got none.")
    labels = data.y.detach().cpu().numpy()
    nodes = target_nodes(validation, data)
    nodes = nodes[labels[nodes] >= 0]
    if not nodes.size:
        raise InvalidParameterError("`validation` must hold nodes with a label, got none.")
    names = getattr(data, "class_names", None)
    return nodes, tuple(map(str, range(int(labels.max()) + 1) if names is None else names))


def _design(
    model: Any, settings: Pairs | None, training: Pairs | None, sampler: str, budget: str | None, seed: int
) -> tuple[Design, Budget]:
    """Return where trials lie and when to end."""
    from torch import nn

    check_choice("sampler", sampler, SAMPLERS)
    trains = not isinstance(model, nn.Module)
    if trains and not callable(model):
        raise InvalidParameterError(
            f"`model` must be a module, or a function that trains one, got {type(model).__name__}."
        )
    if training is not None and not trains:
        raise InvalidParameterError(
            "`training` must be left out for a model that is trained already. Pass a function that takes an "
            "InterceptionSmoothing and returns a model trained under it."
        )
    if sampler != "listed":
        if settings is not None or training is not None:
            raise InvalidParameterError(f"`settings` and `training` must be left out with sampler {sampler!r}.")
        ranges = {**({f"train_{name}": pair for name, pair in _RANGES.items()} if trains else {}), **_RANGES}
        limit = Budget.parse("24" if budget is None else budget)
        if sampler == "random":
            return RandomDesign(ranges=ranges, seed=seed, low_discrepancy=True), limit
        return AdaptiveDesign(ranges=ranges, seed=seed, sampler=sampler), limit
    if budget is not None:
        raise InvalidParameterError("`budget` must be left out where all listed settings are tried. Name a `sampler`.")
    pairs = _checked_pairs("settings", SETTINGS if settings is None else settings)
    under = _checked_pairs("training", TRAINED_UNDER if training is None else training) if trains else [()]
    points: tuple[Mapping[str, float], ...] = tuple(
        dict(zip((*TRAINING[: len(before)], "p_delete", "p_ablate"), (*before, *pair), strict=True))
        for before in under
        for pair in pairs
    )
    return ListedDesign(points=points), Budget(trials=len(points))


def _checked_pairs(name: str, pairs: Pairs) -> list[tuple[float, ...]]:
    listed = [tuple(map(float, pair)) for pair in pairs]
    if not listed or any(len(pair) != 2 or not all(0.0 <= value <= 1.0 for value in pair) for pair in listed):
        raise InvalidParameterError(f"`{name}` must be pairs (p_d, p_a) of numbers in [0, 1], got {listed}.")
    return list(dict.fromkeys(listed))


def _question(model: Any, data: Any, nodes: IntArray, terms: Mapping[str, Any]) -> str:
    """Name all that trials depend on besides their setting; of a function that trains, its name."""
    from torch import nn

    from graycert.models import weights_sha256

    threat_values, threat_arrays = terms["threat"].stored()
    token = terms["ablation_token"]
    arrays = [nodes, data.y.cpu().numpy()[nodes], *(threat_arrays[name] for name in sorted(threat_arrays))]
    arrays += [] if token is None else [token.detach().cpu().numpy()]
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    is_module = isinstance(model, nn.Module)
    told = {
        "model": weights_sha256(model) if is_module else f"{model.__module__}.{getattr(model, '__qualname__', '')}",
        "graph": fingerprint_of(data, terms["edge_inputs"] or ()),
        "threat": {"name": terms["threat"].name, **threat_values},
        "draws": terms["draws"].stored()[0],
        "arrays": digest.hexdigest(),
        **{name: terms[name] for name in ("rule", "alpha", "seed", "max_radius", "num_layers")},
    }
    return settings_hash("tune", told)
