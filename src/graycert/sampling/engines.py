"""Which engine draws the votes: compiled kernels where the model is known for certain, PyTorch for everything else."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.utils import sort_edge_index

from graycert._compilation import announced
from graycert._validation import check_choice
from graycert.errors import InvalidParameterError
from graycert.sampling.compiled import CompiledEngine, build_compiled_engine
from graycert.sampling.interception import InterceptionSampler, ablate
from graycert.sampling.operations import UnknownModelError
from graycert.sampling.placed_smoothing import place_smoothing
from graycert.sampling.recognition import recognise
from graycert.sampling.streams import CoinStream, Purpose
from graycert.sampling.voting import (
    VotingEngine,
    ablation_row,
    build_engine,
    check_scores,
    evaluation_mode,
    skip_logits_of,
)
from graycert.smoothing.interception.parameters import InterceptionSmoothing

ENGINES = ("auto", "compiled", "torch")

_CHECKED = (InterceptionSmoothing(p_delete=0.3, p_ablate=0.8), InterceptionSmoothing(p_delete=0.5, p_ablate=0.3))
_TOLERANCE = 1e-4  # relative to the largest score; kernels round differently, by about 1e-6


def choose_engine(
    model: nn.Module,
    data: Any,
    targets: NDArray[np.int64],
    *,
    smoothing: InterceptionSmoothing,
    num_layers: int,
    ablation_token: Tensor | None = None,
    edge_inputs: Sequence[str] | None = None,
    device: torch.device | None = None,
    batch_size: int | None = None,
    engine: str = "auto",
    say: Callable[[str], None] | None = None,
) -> CompiledEngine | VotingEngine:
    """Return the compiled engine if the model is one that it knows, else the engine for any model.

    A recognised model is compared with its own forward pass on a few draws before it is trusted.

    Args:
        model: See `build_engine`.
        data: See `build_engine`.
        targets: Distinct nodes, shape (num_targets,).
        smoothing: p_d, per column of ``data.edge_index`` if an array, and p_a.
        num_layers: Number k of propagation steps.
        ablation_token: See `build_engine`.
        edge_inputs: See `build_engine`; kernels know none.
        device: Where to compute; kernels run on the CPU only.
        batch_size: For the engine for any model.
        engine: "auto", "compiled" (refuse what it does not know) or "torch".
        say: Called with one sentence if kernels have to be compiled first, and one when they are.

    Returns:
        The engine; its name says which it is, and why.

    Raises:
        InvalidParameterError: If ``engine`` is "compiled" and the model is not known, or as `build_engine`.
        UnsoundSetupError: As `build_engine`.
    """
    check_choice("engine", engine, ENGINES)
    reason = ""
    if engine != "torch":
        try:
            if device is not None and device.type != "cpu":
                raise UnknownModelError(f"is to run on {device}")
            if edge_inputs:
                raise UnknownModelError("is given values per edge")
            return _compiled(model, data, targets, smoothing, num_layers, ablation_token, say)
        except UnknownModelError as unknown:
            reason = f"; no compiled kernels because the model {unknown}"
        if engine == "compiled":
            raise InvalidParameterError(
                f'`engine` must not be "compiled" for this model, got{reason[1:]}. Leave it at "auto".'
            )
    made = build_engine(
        model,
        data,
        targets,
        smoothing=smoothing,
        num_layers=num_layers,
        ablation_token=ablation_token,
        edge_inputs=edge_inputs,
        device=device,
        batch_size=batch_size,
    )
    return replace(made, name=made.name + reason)


def _compiled(
    model: nn.Module,
    data: Any,
    targets: NDArray[np.int64],
    smoothing: InterceptionSmoothing,
    num_layers: int,
    ablation_token: Tensor | None,
    say: Callable[[str], None] | None,
) -> CompiledEngine:
    with torch.inference_mode(), evaluation_mode(model):
        operations = recognise(model)
        x, edge_index = data.x.cpu(), sort_edge_index(data.edge_index.cpu(), sort_by_row=False)
        token = ablation_row(model, ablation_token, num_features=x.size(1)).to("cpu", x.dtype)
        num_classes = check_scores(model(x, edge_index), num_nodes=x.size(0), x=x).size(1)
        made = build_compiled_engine(
            operations,
            x,
            token,
            edge_index,
            targets,
            smoothing=place_smoothing(smoothing, data.edge_index, num_nodes=x.size(0)),
            skip_logits=skip_logits_of(model, x[torch.tensor(targets)]),
        )
        if made.num_classes != num_classes or len(made.layers) > num_layers:
            raise UnknownModelError(f"has {num_classes} outputs after {num_layers} steps, unlike its layers")
        _load_kernels(made, say)
        for number, checked in enumerate(_CHECKED):
            ours = replace(made, smoothing=checked).logits(0, Purpose.AUDIT, torch.tensor([number]))[0]
            sampler = InterceptionSampler.of_graph(
                checked, CoinStream(0, Purpose.AUDIT), edge_index, num_nodes=x.size(0)
            )
            draw = sampler.draw(torch.tensor([number]))
            theirs = model(ablate(x, token, draw.ablated[0]), edge_index[:, draw.kept[0]])[torch.tensor(targets)]
            theirs = theirs + torch.from_numpy(made.skip_logits)
            if not _same_up_to_a_constant(ours, theirs):
                raise UnknownModelError("computes something else than its layers suggest")
    return made


def _same_up_to_a_constant(ours: Tensor, theirs: Tensor) -> bool:
    """Compare scores up to one number per node, which a log-softmax at the end would take away."""
    centred = [scores.double() - scores.double().mean(dim=1, keepdim=True) for scores in (ours, theirs)]
    scale = max(float(ours.abs().max()), float(theirs.abs().max()), 1e-30)
    return bool(((centred[0] - centred[1]).abs() <= _TOLERANCE * scale).all())


def _load_kernels(engine: CompiledEngine, say: Callable[[str], None] | None) -> None:
    """Run one chunk, which loads the kernels from disk, or compiles them: once per machine and kind of model."""
    with announced(say, "the sampling kernels of this model", *engine.kernels()):
        engine.logits(0, Purpose.AUDIT, torch.tensor([0]))
