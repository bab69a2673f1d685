"""Monte-Carlo votes of the smoothed classifier: the engine for any PyTorch model, on CPU or CUDA."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graycert._types import NO_CLASS
from graycert._validation import check_integer
from graycert.errors import InvalidParameterError
from graycert.models.advice import line_for_output, line_for_scores
from graycert.models.edge_inputs import with_edge_inputs
from graycert.models.padding import reads_padding
from graycert.models.protocol import RowwiseStart, evaluate, has_skip, require_skip_logits
from graycert.models.rowwise_start import rowwise_start
from graycert.sampling.disjoint_copies import DisjointCopies
from graycert.sampling.field_graph import FieldGraph, field_graph, whole_graph
from graycert.sampling.memory import peak_bytes
from graycert.sampling.merged_copies import MergedCopies
from graycert.sampling.placed_smoothing import AnySmoothing, place_smoothing
from graycert.sampling.scores import equal_scores, prediction_type, voted_class
from graycert.sampling.streams import CoinStream, Purpose
from graycert.smoothing.interception.parameters import InterceptionSmoothing

Progress = Callable[[int], None]

_MEMORY_BUDGET = 32 * 2**20  # bytes of activations per forward pass on the CPU; larger blocks are mapped anew each time
_CUDA_BUDGET = 1024 * 2**20
_MOST_COPIES = 256
_CHUNK = 4096  # about as many sample numbers at a time
_AGREEMENT_TOLERANCE = 1e-3  # relative to how much logits vary
_ROUNDING = 1e-5  # relative to the largest logit
_MEASURED_FROM, _MEASURED_DRAWS, _SLOWER = 0.02, 8, 1.1  # seconds of a forward pass, draws, and times as long
_COMPANY, _COMPANY_UNITS = 12, 2**20  # samples, and nodes and edges, that are compared alone and together


@dataclass(frozen=True)
class VotingEngine:
    """Draws votes for fixed model, graph, targets and smoothing.

    Several samples go through the model in one forward pass. Deleted edges are removed from ``edge_index``, ablation
    replaces whole rows, one draw serves all layers, and the skip branch, which no draw touches, is evaluated once.

    Args:
        model: What is evaluated, in evaluation mode.
        field: Part of the graph that is evaluated.
        rows: Row of each node of the field, then that of an ablated node: projected rows where the model starts
            row-wise, else features; shape (num_nodes + 1, width).
        skip_logits: What the skip connection adds per target, shape (num_targets, num_classes), or None.
        smoothing: p_d and p_a: uniform, or placed on the graph.
        num_classes: Number C of classes.
        rowwise: Whether ``rows`` are projected rows.
        draws: How samples become graphs.
        name: Which evaluation this is, for people.
    """

    model: nn.Module
    field: FieldGraph
    rows: Tensor
    skip_logits: Tensor | None
    smoothing: AnySmoothing
    num_classes: int
    rowwise: bool
    draws: DisjointCopies | MergedCopies
    name: str

    @property
    def samples_per_pass(self) -> int:
        """Most samples per forward pass."""
        return self.draws.samples_per_pass

    @property
    def draws_at_once(self) -> int:
        """The same."""
        return self.samples_per_pass

    def votes(
        self,
        seed: int,
        purpose: Purpose,
        *,
        num_samples: int,
        first_sample: int = 0,
        progress: Progress | None = None,
    ) -> NDArray[np.int64]:
        """Return votes per target and class, int64 (num_targets, num_classes).

        Sample numbers ``first_sample ... first_sample + num_samples - 1`` of the stream are drawn. What a row lacks to
        ``num_samples`` are votes for no class (`voted_class`). Memory does not grow with ``num_samples``.
        """
        num_targets, width = self.field.targets.numel(), self.num_classes - NO_CLASS
        total = torch.zeros(num_targets * width, dtype=torch.long, device=self.rows.device)
        for target, winner in self._winners(seed, purpose, num_samples, first_sample, progress):
            total += torch.bincount(target * width + (winner - NO_CLASS), minlength=total.numel())
        return total.reshape(num_targets, width)[:, -NO_CLASS:].cpu().numpy()

    def predictions(
        self,
        seed: int,
        purpose: Purpose,
        *,
        num_samples: int,
        first_sample: int = 0,
        progress: Progress | None = None,
    ) -> NDArray[np.signedinteger]:
        """Return the class of every vote, `NO_CLASS` for none, shape (num_targets, num_samples), in sample order.

        The integers are as wide as the number of classes needs (`prediction_type`).
        """
        found = [winner for _, winner in self._winners(seed, purpose, num_samples, first_sample, progress)]
        table = torch.cat(found).reshape(num_samples, self.field.targets.numel())
        return np.ascontiguousarray(table.T.cpu().numpy().astype(prediction_type(self.num_classes)))

    def _winners(
        self, seed: int, purpose: Purpose, num_samples: int, first_sample: int, progress: Progress | None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield targets, as positions in the list of targets, and the classes that they get votes for."""
        check_integer("num_samples", num_samples, at_least=1)
        num_targets, end, done = self.field.targets.numel(), first_sample + num_samples, 0
        with torch.inference_mode(), evaluation_mode(self.model):
            chunk = self.samples_per_pass * max(1, _CHUNK // self.samples_per_pass)
            for low in range(first_sample, end, chunk):
                samples = torch.arange(low, min(low + chunk, end), device=self.rows.device)
                for target, scores in self._batches(seed, purpose, samples):
                    yield target, voted_class(scores)
                    before, done = done // num_targets, done + target.numel()
                    if progress is not None and done // num_targets > before:
                        progress(done // num_targets - before)

    def logits(self, seed: int, purpose: Purpose, samples: Tensor) -> Tensor:
        """Return class scores of the given samples, shape (num_samples, num_targets, num_classes)."""
        scores = torch.cat([scores for _, scores in self._batches(seed, purpose, samples)])
        return scores.reshape(samples.numel(), self.field.targets.numel(), self.num_classes)

    def _batches(self, seed: int, purpose: Purpose, samples: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield targets, as positions in the list of targets, and their scores; sample by sample."""
        done = 0
        for batch in self.draws.batches(self.smoothing, CoinStream(seed, purpose), samples):
            out = evaluate(self.model, self.rows[batch.rows], batch.edge_index, rowwise=self.rowwise)
            if out.shape != (batch.rows.numel(), self.num_classes):
                raise ValueError(f"expected one row of scores per node, got shape {tuple(out.shape)}")
            scores = out[batch.outputs]
            places = torch.arange(done, done + scores.size(0), device=scores.device) % self.field.targets.numel()
            done += scores.size(0)
            yield places, scores if self.skip_logits is None else scores + self.skip_logits[places]


def build_engine(
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
    memory: int | None = None,
) -> VotingEngine:
    """Choose how the model is evaluated, and check the choice on draws.

    Args:
        model: ``forward(x, edge_index)`` -> (num_nodes, num_classes); see `graycert.models.protocol`.
        data: Graph with ``x`` and ``edge_index``.
        targets: Nodes to vote on, shape (num_targets,).
        smoothing: p_d, per column of ``data.edge_index`` if an array, and p_a.
        num_layers: Number k of propagation steps of the model.
        ablation_token: Features of an ablated node, shape (num_features,); default the model's own
            ``ablation_token``, else zeros. It must not depend on the features of the graph.
        edge_inputs: Names of values per edge of ``data`` that the model is given.
        device: Where to compute; default where the model's parameters are.
        batch_size: Most samples per forward pass; default from a memory budget. Votes do not depend on it.
        memory: Bytes that a forward pass of several draws may take, if that is less than the engine's own budget.

    Raises:
        InvalidParameterError: If the token or the model's output has the wrong shape.
        UnsoundSetupError: ``skip-not-local`` if the model has ``skip`` but no ``skip_logits``.
    """
    if batch_size is not None:
        check_integer("batch_size", batch_size, at_least=1)
    where = device or next((p.device for p in model.parameters()), torch.device("cpu"))
    model, edge_index = with_edge_inputs(model, data, edge_inputs)  # votes do not depend on the order of edges
    nodes = torch.tensor(targets)  # a copy: results hand out read-only arrays
    whole = whole_graph(edge_index, nodes, num_nodes=data.num_nodes)
    x = data.x
    token = ablation_row(model, ablation_token, num_features=x.size(1)).to(where, x.dtype)

    with torch.inference_mode(), evaluation_mode(model):
        model.to(where)
        clean, edges = x.to(where), edge_index.to(where)
        scores = check_scores(model(clean, edges), num_nodes=x.size(0), x=x)
        split = rowwise_start(model, clean, edges, scores)
        start = "any model" if split is None else "first layer once"
        rows = torch.cat([clean, token.unsqueeze(0)])
        whole = whole.to(where)
        reference = VotingEngine(
            model=split or model,
            field=whole,
            rows=rows if split is None else cast("RowwiseStart", split).project(rows),
            skip_logits=skip_logits_of(model, clean, whole.targets),
            smoothing=place_smoothing(smoothing, data.edge_index, num_nodes=data.num_nodes),
            num_classes=scores.size(1),
            rowwise=split is not None,
            draws=DisjointCopies(whole, 1),
            name=f"torch, {start}, one full graph per pass",
        )
        part = field_graph(edge_index, nodes, num_nodes=data.num_nodes, num_layers=num_layers)
        if edge_index.numel() == 0 or part.nodes.numel() == 0:
            return reference
        return _fastest(reference, part, num_layers, batch_size, memory)


def _fastest(
    reference: VotingEngine, field: FieldGraph, num_layers: int, batch_size: int | None, memory: int | None
) -> VotingEngine:
    """Return the engine that does least among those that agree with ``reference`` and are measured not to be slower.

    A pass holds at least one draw: targets are never cut within it, which would compute again what they share.

    Never assumed: a model may number nodes, or read degrees that a smaller graph does not show. A model that sends
    messages over edges as they are given computes a target's scores from its computation tree, which every candidate
    holds entirely; so candidates can only differ if a module reads more of the graph than arrives, and then the
    draws of `_situations`, from no interception to nearly everything, show different degrees. Some aggregations pad
    what they gather, or sort it, over the whole pass: so samples are also compared alone and in company.
    """
    if reads_padding(reference.model):
        return reference
    where = reference.rows.device
    field = field.to(where)
    visible = torch.cat([field.nodes, torch.tensor([reference.rows.size(0) - 1], device=where)])
    most = batch_size or _MOST_COPIES
    per_copy = field.nodes.numel() + field.edge_index.size(1)
    units = max(per_copy, _units_within_budget(reference, memory))
    copies = DisjointCopies(field, batch_size or max(1, min(most, units // per_copy)))
    merged = [MergedCopies(field, num_layers, in_degrees, most, units) for in_degrees in (False, True)]
    name = reference.name.rpartition(", ")[0]
    situations = _situations(reference, most=3 if per_copy <= _COMPANY_UNITS else 1)
    candidates: list[tuple[DisjointCopies | MergedCopies, str]] = [
        *((draws, f"{name}, disjoint copies with equal subtrees merged") for draws in merged if where.type == "cpu"),
        (copies, f"{name}, disjoint copies of the receptive field"),
    ]
    expected = [_logits_under(reference, situation, one_by_one=True) for situation in situations]
    for draws, text in candidates:
        engine = replace(reference, field=field, rows=reference.rows[visible], draws=draws, name=text)
        try:
            if _is_slower(engine, reference, situations[0], visible):
                continue
            found = (_logits_under(engine, situation, visible) for situation in situations)
            same = all(_agree(ours, theirs) for ours, theirs in zip(found, expected, strict=True))
            if same and _same_in_company(engine, situations, visible, num_samples=_company(per_copy)):
                return engine
        except Exception:  # e.g. one learned row per node: whatever it raises, it needs a larger graph
            continue
    return reference


@dataclass(frozen=True)
class _Situation:
    """What two evaluations are compared on: ``num_samples`` draws from ``smoothing`` with the given rows."""

    smoothing: AnySmoothing
    num_samples: int
    rows: Tensor


def _is_slower(engine: VotingEngine, reference: VotingEngine, situation: _Situation, visible: Tensor) -> bool:
    """Measure whether a draw takes over a tenth longer than a full forward pass, where that takes long enough to tell.

    Of two runs the faster one counts; the first draw of all may compile.
    """
    alone = replace(situation, num_samples=1)
    forward = min(_seconds(lambda: _logits_under(reference, alone)) for _ in range(2))
    if forward < _MEASURED_FROM:
        return False
    several = replace(situation, num_samples=max(1, min(engine.samples_per_pass, _MEASURED_DRAWS)))
    _logits_under(engine, alone, visible)
    taken = min(_seconds(lambda: _logits_under(engine, several, visible)) for _ in range(2))
    return taken > _SLOWER * forward * several.num_samples


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def _situations(reference: VotingEngine, *, most: int) -> list[_Situation]:
    """Return draws from no interception to much, on the graph's rows and on rows that no attacker chooses.

    There are at most ``most`` draws of each kind.
    """
    rows = reference.rows
    noise = torch.randn(rows.shape, generator=torch.Generator().manual_seed(0), dtype=rows.dtype).to(rows.device)
    if not reference.rowwise:
        noise = noise.abs_()  # some models take logarithms or look rows up
    nothing, much = InterceptionSmoothing(p_delete=0, p_ablate=0), InterceptionSmoothing(p_delete=0.5, p_ablate=0.1)
    return [
        *(_Situation(reference.smoothing, min(2, most), values) for values in (rows, noise)),
        *(_Situation(nothing, 1, values) for values in (rows, noise)),
        _Situation(much, most, noise),
    ]


def _same_in_company(engine: VotingEngine, situations: list[_Situation], visible: Tensor, *, num_samples: int) -> bool:
    """Compare samples that share a pass with the same samples one by one, for every number of samples per pass."""
    shared = replace(engine, draws=replace(engine.draws, samples_per_pass=num_samples))
    almost_all = InterceptionSmoothing(p_delete=0.9, p_ablate=0.1)
    for situation in (situations[0], situations[-1], replace(situations[-1], smoothing=almost_all)):
        several = replace(situation, num_samples=num_samples)
        alone = _logits_under(shared, several, visible, one_by_one=True)
        if not _agree(_logits_under(shared, several, visible), alone):
            return False
    return True


def _company(per_copy: int) -> int:
    """Return how many samples are compared alone and together: some, of large graphs few."""
    return max(2, min(_COMPANY, _COMPANY_UNITS // per_copy))


def _logits_under(
    engine: VotingEngine, situation: _Situation, visible: Tensor | None = None, *, one_by_one: bool = False
) -> Tensor:
    samples = torch.arange(situation.num_samples, device=engine.rows.device)
    rows = situation.rows if visible is None else situation.rows[visible]
    drawn = replace(engine, smoothing=situation.smoothing, rows=rows)
    parts = list(samples.unsqueeze(1)) if one_by_one else [samples]
    return torch.cat([drawn.logits(0, Purpose.AUDIT, part) for part in parts])


def _agree(ours: Tensor, theirs: Tensor) -> bool:
    """Return whether logits are equal up to rounding, beside how much they vary over samples and targets."""
    finite = theirs.nan_to_num(0.0, 0.0, 0.0)
    spread = (finite - finite.mean(dim=(0, 1))).abs().mean()
    tolerance = _AGREEMENT_TOLERANCE * spread + _ROUNDING * finite.abs().amax(dim=-1, keepdim=True)
    return equal_scores(ours, theirs, tolerance=tolerance)


def _units_within_budget(reference: VotingEngine, memory: int | None) -> int:
    """Return how many nodes and edges together a pass may have, from the memory that one pass takes."""
    samples = torch.zeros(1, dtype=torch.long, device=reference.rows.device)
    (batch,) = reference.draws.batches(reference.smoothing, CoinStream(0, Purpose.AUDIT), samples)
    taken = peak_bytes(lambda: reference.logits(0, Purpose.AUDIT, samples))
    budget = _MEMORY_BUDGET if samples.device.type == "cpu" else _CUDA_BUDGET
    budget = budget if memory is None else min(budget, memory)
    return max(1, budget * (batch.rows.numel() + batch.edge_index.size(1)) // max(1, taken))


def skip_logits_of(model: nn.Module, x: Tensor, nodes: Tensor | None = None) -> Tensor | None:
    """Return what the skip connection adds at rows of ``x``, shape (num_rows, num_classes), or None without one.

    Args:
        model: The model.
        x: Features; the model gets a copy of what it is shown.
        nodes: Which rows, int64 (num_rows,); None for all. Without a skip connection none are copied.

    Raises:
        UnsoundSetupError: ``skip-not-local`` if the model has ``skip`` but no ``skip_logits``.
    """
    if not has_skip(model):
        return None
    require_skip_logits(model)
    return torch.as_tensor(model.skip_logits(x.clone() if nodes is None else x[nodes]))  # type: ignore[operator]


def check_scores(
    out: Any, *, num_nodes: int, x: Tensor, finite: bool = True, called: tuple[nn.Module, Tensor] | None = None
) -> Tensor:
    """Return the output of a model if it is (num_nodes, num_classes), and finite, as on clean features it must be.

    Args:
        out: What the model returned.
        num_nodes: Number of nodes.
        x: The features that it was called with.
        finite: Whether it must be finite.
        called: The model and the edges, where it may be called again to see what its output is.

    Raises:
        InvalidParameterError: If it is not.
    """
    if not isinstance(out, Tensor) or out.dim() != 2 or out.size(0) != num_nodes or out.size(1) < 2:
        shape = f"{out.dtype} of shape {tuple(out.shape)}" if isinstance(out, Tensor) else type(out).__name__
        line = line_for_output(out, num_nodes) if called is None else line_for_scores(called[0], x, called[1])
        raise InvalidParameterError(
            f"`model` must return scores of shape ({num_nodes}, num_classes) with at least two classes, got {shape}. "
            + (line or f"It is called as model(x, edge_index) with x of shape {tuple(x.shape)}.")
        )
    if finite and not bool(torch.isfinite(out).all()):
        raise InvalidParameterError(
            "`model` must return finite scores on the clean graph, got NaN or infinity. Check the weights and features."
        )
    return out


def ablation_row(model: nn.Module, token: Tensor | None, *, num_features: int) -> Tensor:
    """Return the features of an ablated node: ``token``, else the model's own ``ablation_token``, else zeros.

    Raises:
        InvalidParameterError: If it does not have one finite number per feature.
    """
    row: Any = token if token is not None else getattr(model, "ablation_token", None)
    if row is None:
        row = torch.zeros(num_features)
    if not isinstance(row, Tensor) or row.shape != (num_features,) or not bool(torch.isfinite(row).all()):
        what = f"values of shape {tuple(row.shape)}" if isinstance(row, Tensor) else type(row).__name__
        raise InvalidParameterError(
            f"`ablation_token` must be a tensor of {num_features} finite numbers, one per feature, got {what}. "
            "Leave it out to use the model's own token or zeros; a model trained on other features does not fit."
        )
    return row.detach()


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Put every module into evaluation mode, and back into its own mode afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode
