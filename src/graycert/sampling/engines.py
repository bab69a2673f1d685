"""Which engine draws the votes: compiled kernels where the model is known for certain, PyTorch for everything else."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.utils import index_to_mask

from graycert._compilation import announced
from graycert._types import Float32Array
from graycert._validation import check_choice
from graycert.errors import InvalidParameterError
from graycert.models.edge_inputs import GivenEdgeInputs, sorted_edges, with_edge_inputs
from graycert.sampling.compiled import CompiledEngine, build_compiled_engine
from graycert.sampling.drawing_plan import LANES
from graycert.sampling.field_graph import FieldGraph, whole_graph
from graycert.sampling.interception import InterceptionSampler, ablate
from graycert.sampling.operations import Aggregation, UnknownModelError
from graycert.sampling.placed_smoothing import AnySmoothing, place_smoothing
from graycert.sampling.recognition import recognise
from graycert.sampling.streams import CoinStream, Purpose, edge_ids
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

_NOTHING = InterceptionSmoothing(p_delete=0.0, p_ablate=0.0)
_CHECKED = (InterceptionSmoothing(p_delete=0.3, p_ablate=0.8), InterceptionSmoothing(p_delete=0.5, p_ablate=0.3))
_TOLERANCE = 1e-4  # relative to the largest score; kernels round differently, by about 1e-6
_COMPARED_UNITS, _COMPARED_NODES, _COMPARED_TARGETS = 2**18, 2**14, 2**8  # nodes and edges, and some of them
_COMPARED_FEATURES = 2**21  # of all these nodes


def choose_engine(
    model: nn.Module,
    data: Any,
    targets: NDArray[np.int64],
    *,
    smoothing: InterceptionSmoothing,
    num_layers: int,
    ablation_token: Tensor | None = None,
    edge_inputs: Sequence[str] | Mapping[str, str] | None = None,
    device: torch.device | None = None,
    batch_size: int | None = None,
    engine: str = "auto",
    memory: int | None = None,
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
        edge_inputs: See `build_engine`; kernels know one, which convolutions take for a weight.
        device: Where to compute; kernels run on the CPU only.
        batch_size: For the engine for any model.
        engine: "auto", "compiled" (refuse what it does not know) or "torch".
        memory: Bytes that drawing may take; None for a part of what the machine has free.
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
            given, edges = with_edge_inputs(model, data, edge_inputs, in_order=False)
            return _compiled(given, data, edges, targets, smoothing, num_layers, ablation_token, memory, say)
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
        memory=memory,
    )
    return replace(made, name=made.name + reason)


def _compiled(
    model: nn.Module,
    data: Any,
    edge_index: Tensor,
    targets: NDArray[np.int64],
    smoothing: InterceptionSmoothing,
    num_layers: int,
    ablation_token: Tensor | None,
    memory: int | None,
    say: Callable[[str], None] | None,
    lanes: Sequence[int] = LANES,
) -> CompiledEngine:
    with torch.inference_mode(), evaluation_mode(model):
        operations = recognise(model)
        x = data.x.cpu()
        token = ablation_row(model, ablation_token, num_features=x.size(1)).to("cpu", x.dtype)
        sample = compared_part(x, edge_index, targets, num_layers=num_layers)
        clean = x[sample.nodes]
        num_classes = check_scores(model(clean, sample.edge_index), num_nodes=clean.size(0), x=clean).size(1)

        def built(rows: Tensor, edges: Tensor, some: NDArray[np.int64], smoothing: AnySmoothing) -> CompiledEngine:
            skip_logits = skip_logits_of(model, rows, torch.tensor(some))
            return build_compiled_engine(
                operations,
                rows,
                token,
                edges[:2],
                some,
                smoothing=smoothing,
                skip_logits=skip_logits,
                edge_weights=_weights_of(model, edges),
                memory=memory,
                lanes=lanes,
            )

        made = built(x, edge_index, targets, place_smoothing(smoothing, data.edge_index, num_nodes=x.size(0)))
        if made.num_classes != num_classes or len(made.layers) > num_layers:
            raise UnknownModelError(f"has {num_classes} outputs after {num_layers} steps, unlike its layers")
        made.prepare()
        compared = built(clean, sample.edge_index, sample.targets.numpy(), _CHECKED[0])
        _load_kernels(compared, made.kernels(), say)
        for number, checked in enumerate(_CHECKED):
            ours = replace(compared, smoothing=checked).logits(0, Purpose.AUDIT, torch.tensor([number]))[0]
            sampler = InterceptionSampler.of_graph(
                checked, CoinStream(0, Purpose.AUDIT), sample.edge_index[:2], num_nodes=clean.size(0)
            )
            draw = sampler.draw(torch.tensor([number]))
            theirs = model(ablate(clean, token, draw.ablated[0]), sample.edge_index[:, draw.kept[0]])[sample.targets]
            theirs = theirs + torch.from_numpy(compared.skip_logits)
            if not _same_up_to_a_constant(ours, theirs):
                raise UnknownModelError("computes something else than its layers suggest")
    return made


def scores_by_layers(model: nn.Module, data: Any, edge_index: Tensor, targets: NDArray[np.int64]) -> Tensor | None:
    """Return the scores of some targets on the graph as it is, layer by layer: a few rows per node, none per edge.

    It is the draw in which nothing is intercepted, in the narrowest tile. Kernels round differently than the model
    does, and leave out a log-softmax at its end.

    Args:
        model: As it is called, in evaluation mode; without its skip connection, as ``forward`` returns.
        data: Its features.
        edge_index: In any order, int64 (2, num_edges), or with a third row of values.
        targets: Distinct nodes, shape (num_targets,).

    Returns:
        Shape (num_targets, num_classes); None where kernels do not know the model.
    """
    try:
        steps = sum(isinstance(operation, Aggregation) for operation in recognise(model))
        made = _compiled(model, data, edge_index, targets, _NOTHING, steps, None, None, None, LANES[-1:])
    except UnknownModelError:
        return None
    alone = replace(made, skip_logits=np.zeros_like(made.skip_logits))
    return alone.logits(0, Purpose.AUDIT, torch.tensor([0]))[0]


def _weights_of(model: nn.Module, edges: Tensor) -> Float32Array | None:
    """Return the weight of each edge, if the model is given any."""
    if not isinstance(model, GivenEdgeInputs):
        return None
    (values,) = model.inputs.of(edges[2]).values()
    if values.dtype != torch.float32 or values.numel() != edges.size(1):
        raise UnknownModelError(f"is given values per edge of type {values.dtype} and shape {tuple(values.shape)}")
    weights: Float32Array = values.reshape(-1).numpy()
    return weights


def compared_part(x: Tensor, edge_index: Tensor, targets: NDArray[np.int64], *, num_layers: int) -> FieldGraph:
    """Return the graph on which kernels are compared with the model: the whole, of a large one a bounded part.

    Kernels are recognised layer by layer, and compute the same function on every graph; so a part shows as much as the
    whole. It holds a sample of the targets and, as far as there is room, whoever reaches them, the edges between
    these nodes and no others.

    Args:
        x: Features, whose number bounds that of the nodes, too.
        edge_index: int64 (2, num_edges), or with a third row of values, in any order.
        targets: Distinct nodes, shape (num_targets,).
        num_layers: Number k of propagation steps.
    """
    num_nodes, most = x.size(0), max(_COMPARED_TARGETS, min(_COMPARED_NODES, _COMPARED_FEATURES // max(1, x.size(1))))
    if num_nodes <= most and num_nodes + edge_index.size(1) <= _COMPARED_UNITS:
        return whole_graph(sorted_edges(edge_index), torch.tensor(targets), num_nodes=num_nodes)
    chosen = torch.tensor(targets[:: -(-targets.size // _COMPARED_TARGETS)])
    source, target = edge_index[:2]
    nodes = index_to_mask(chosen, num_nodes)
    for _ in range(num_layers):
        near = torch.unique(source[nodes[target]])
        near = near[~nodes[near]]
        nodes[near[: max(0, most - int(nodes.sum()))]] = True
    inside = (nodes[source] & nodes[target]).nonzero().squeeze(1)
    kept = sorted_edges(edge_index[:, inside[:: -(-max(1, inside.numel()) // _COMPARED_UNITS)]])
    position = torch.cumsum(nodes, 0) - 1
    placed = torch.cat([position[kept[:2]], kept[2:]])
    return FieldGraph(nodes.nonzero().squeeze(1), placed, edge_ids(kept, num_nodes=num_nodes), position[chosen])


def _same_up_to_a_constant(ours: Tensor, theirs: Tensor) -> bool:
    """Compare scores up to one number per node, which a log-softmax at the end would take away."""
    centred = [scores.double() - scores.double().mean(dim=1, keepdim=True) for scores in (ours, theirs)]
    scale = max(float(ours.abs().max()), float(theirs.abs().max()), 1e-30)
    return bool(((centred[0] - centred[1]).abs() <= _TOLERANCE * scale).all())


def _load_kernels(
    engine: CompiledEngine, needed: Sequence[Callable[..., None]], say: Callable[[str], None] | None
) -> None:
    """Run chunks, which loads the kernels from disk, or compiles them: once per machine and kind of model."""
    with announced(say, "the sampling kernels of this model", *needed, *engine.kernels()):
        engine.logits(0, Purpose.AUDIT, torch.tensor([0]))
