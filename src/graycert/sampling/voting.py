"""Monte-Carlo votes of the smoothed classifier: the engine for any PyTorch model, on CPU or CUDA."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.utils import sort_edge_index

from graycert._validation import check_integer
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models.protocol import RowwiseStart, evaluate, has_skip, starts_rowwise
from graycert.sampling.field_graph import FieldGraph, field_graph, whole_graph
from graycert.sampling.interception import InterceptionSampler, ablate, disjoint_copies
from graycert.sampling.streams import CoinStream, Purpose
from graycert.smoothing import InterceptionSmoothing

Progress = Callable[[int], None]

_MEMORY_BUDGET = 256 * 2**20  # bytes of activations per forward pass
_AGREEMENT_SAMPLES = 3
_AGREEMENT_TOLERANCE = 1e-3  # relative to the largest logit; copies and single passes round differently


@dataclass(frozen=True)
class VotingEngine:
    """Draws votes for fixed model, graph, targets and smoothing.

    Several samples go through the model in one forward pass, as disjoint copies of the receptive field of the
    targets. Deleted edges are removed from ``edge_index``, ablation replaces whole rows, one draw serves all layers,
    and the skip branch, which no draw touches, is evaluated once.

    Args:
        model: The classifier, in evaluation mode.
        field: Part of the graph that is evaluated.
        rows: What is masked per sample: projected rows where the model starts row-wise, else features (n, width).
        token_row: The row of an ablated node, shape (width,).
        skip_logits: What the skip connection adds per target, shape (num_targets, num_classes), or None.
        smoothing: p_d and p_a.
        num_classes: Number C of classes.
        rowwise: Whether ``rows`` are projected rows.
        samples_per_pass: Copies per forward pass.
        name: Which evaluation this is, for people.
    """

    model: nn.Module
    field: FieldGraph
    rows: Tensor
    token_row: Tensor
    skip_logits: Tensor | None
    smoothing: InterceptionSmoothing
    num_classes: int
    rowwise: bool
    samples_per_pass: int
    name: str

    def votes(
        self,
        seed: int,
        purpose: Purpose,
        *,
        num_samples: int,
        first_sample: int = 0,
        progress: Progress | None = None,
    ) -> NDArray[np.int64]:
        """Return votes per target and class, int64 (num_targets, num_classes); each row sums to ``num_samples``.

        Sample numbers ``first_sample ... first_sample + num_samples - 1`` of the stream are drawn. A tie of logits
        goes to the class with the lowest index. Memory does not grow with ``num_samples``.
        """
        check_integer("num_samples", num_samples, at_least=1)
        device = self.rows.device
        total = torch.zeros(self.field.targets.numel(), self.num_classes, dtype=torch.long, device=device)
        with torch.inference_mode(), evaluation_mode(self.model):
            for low in range(first_sample, first_sample + num_samples, self.samples_per_pass):
                high = min(low + self.samples_per_pass, first_sample + num_samples)
                samples = torch.arange(low, high, device=device)
                classes = self.logits(seed, purpose, samples).argmax(dim=-1)
                total.scatter_add_(1, classes.T, torch.ones_like(classes.T))
                if progress is not None:
                    progress(high - low)
        return total.cpu().numpy()

    def logits(self, seed: int, purpose: Purpose, samples: Tensor) -> Tensor:
        """Return class scores of the given samples, shape (num_samples, num_targets, num_classes)."""
        sampler = InterceptionSampler(self.smoothing, CoinStream(seed, purpose), self.field.edge_ids, self.field.nodes)
        draw = sampler.draw(samples)
        copies, num_nodes = samples.numel(), self.field.nodes.numel()
        edges = disjoint_copies(self.field.edge_index, draw.kept, num_nodes=num_nodes)
        rows = ablate(self.rows, self.token_row, draw.ablated).reshape(copies * num_nodes, -1)
        out = evaluate(self.model, rows, edges, rowwise=self.rowwise)
        scores: Tensor = out.reshape(copies, num_nodes, self.num_classes)[:, self.field.targets]
        return scores if self.skip_logits is None else scores + self.skip_logits


def build_engine(
    model: nn.Module,
    data: Any,
    targets: NDArray[np.int64],
    *,
    smoothing: InterceptionSmoothing,
    num_layers: int,
    ablation_token: Tensor | None = None,
    device: torch.device | None = None,
    batch_size: int | None = None,
) -> VotingEngine:
    """Choose how the model is evaluated, and check the choice on a few draws.

    Args:
        model: ``forward(x, edge_index)`` -> (num_nodes, num_classes); see `graycert.models.protocol`.
        data: Graph with ``x`` and ``edge_index``.
        targets: Nodes to vote on, shape (num_targets,).
        smoothing: p_d and p_a.
        num_layers: Number k of propagation steps of the model.
        ablation_token: Features of an ablated node, shape (num_features,); default the model's own
            ``ablation_token``, else zeros. It must not depend on the features of the graph.
        device: Where to compute; default where the model's parameters are.
        batch_size: Samples per forward pass; default from a memory budget. Votes do not depend on it.

    Raises:
        InvalidParameterError: If the token or the model's output has the wrong shape.
        UnsoundSetupError: ``skip-not-local`` if the model has ``skip`` but no ``skip_logits``.
    """
    where = device or next((p.device for p in model.parameters()), torch.device("cpu"))
    edge_index = sort_edge_index(data.edge_index.cpu(), sort_by_row=False)  # votes do not depend on the order of edges
    nodes = torch.tensor(targets)  # a copy: results hand out read-only arrays
    whole = whole_graph(edge_index, nodes, num_nodes=data.num_nodes)
    part = field_graph(edge_index, nodes, num_nodes=data.num_nodes, num_layers=num_layers)
    x = data.x
    token = ablation_row(model, ablation_token, num_features=x.size(1)).to(where, x.dtype)

    with torch.inference_mode(), evaluation_mode(model):
        model.to(where)
        clean, edges = x.to(where), edge_index.to(where)
        scores = check_scores(model(clean, edges), num_nodes=x.size(0), x=x)
        rowwise = starts_rowwise(model, clean, edges, scores)
        start = "first layer once" if rowwise else "any model"

        def engine(field: FieldGraph, copies: int, name: str) -> VotingEngine:
            return _assemble(
                model, x, token, field.to(where), smoothing, copies, name, rowwise=rowwise, num_classes=scores.size(1)
            )

        reference = engine(whole, 1, f"torch, {start}, one full graph per pass")
        copies = batch_size or _copies_within_budget(model, part, reference.rows.size(1), edge_index.size(1))
        check_integer("batch_size", copies, at_least=1)
        if edge_index.numel() == 0 or part.nodes.numel() == 0:
            return reference
        # Never assumed: a model may number nodes, or normalise by degrees that the field does not show.
        try:
            batched = engine(part, copies, f"torch, {start}, disjoint copies of the receptive field")
            return batched if _agree(batched, reference) else reference
        except Exception:  # e.g. one learned row per node: whatever it raises, it needs the whole graph
            return reference


def _assemble(
    model: nn.Module,
    x: Tensor,
    token: Tensor,
    field: FieldGraph,
    smoothing: InterceptionSmoothing,
    copies: int,
    name: str,
    *,
    rowwise: bool,
    num_classes: int,
) -> VotingEngine:
    rows = x[field.nodes.to(x.device)].to(field.nodes.device)
    token_row = token
    skip_logits = None
    if has_skip(model):
        if not hasattr(model, "skip_logits"):
            raise UnsoundSetupError(
                "skip-not-local",
                "`model.skip` is True but the model has no `skip_logits(x)`, so what the skip connection shows of "
                "non-ablated features is unknown. Add the method, or remove the attribute.",
            )
        skip_logits = model.skip_logits(rows[field.targets])  # type: ignore[operator]
    if rowwise:
        projected = cast("RowwiseStart", model).project(torch.cat([rows, token.unsqueeze(0)]))
        rows, token_row = projected[:-1], projected[-1]
    return VotingEngine(
        model=model,
        field=field,
        rows=rows,
        token_row=token_row,
        skip_logits=skip_logits,
        smoothing=smoothing,
        num_classes=num_classes,
        rowwise=rowwise,
        samples_per_pass=copies,
        name=name,
    )


def check_scores(out: Any, *, num_nodes: int, x: Tensor) -> Tensor:
    """Return the output of a model on clean features if it is (num_nodes, num_classes) and finite.

    Raises:
        InvalidParameterError: If it is not.
    """
    if not isinstance(out, Tensor) or out.dim() != 2 or out.size(0) != num_nodes or out.size(1) < 2:
        shape = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise InvalidParameterError(
            f"`model` must return scores of shape ({num_nodes}, num_classes) with at least two classes, got {shape}. "
            f"It is called as model(x, edge_index) with x of shape {tuple(x.shape)}."
        )
    if not bool(torch.isfinite(out).all()):
        raise InvalidParameterError(
            "`model` must return finite scores on the clean graph, got NaN or infinity. Check the weights and features."
        )
    return out


def _agree(batched: VotingEngine, reference: VotingEngine) -> bool:
    samples = torch.arange(_AGREEMENT_SAMPLES, device=reference.rows.device)
    ours = batched.logits(0, Purpose.AUDIT, samples)
    theirs = torch.cat([reference.logits(0, Purpose.AUDIT, sample.unsqueeze(0)) for sample in samples])
    scale = theirs.abs().amax().clamp(min=1e-30)
    return bool(((ours - theirs).abs() <= _AGREEMENT_TOLERANCE * scale).all())


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


def _copies_within_budget(model: nn.Module, field: FieldGraph, width: int, num_edges: int) -> int:
    """Estimate how many copies fit: a few activations per node and per edge, as wide as the widest parameter."""
    widest = max((p.size(0) for p in model.parameters() if p.dim() > 1), default=width)
    per_node = 4 * (width + 3 * widest)
    per_edge = 4 * 3 * min(widest, 1024)
    bytes_per_copy = field.nodes.numel() * per_node + min(field.edge_index.size(1), num_edges) * per_edge
    return max(1, min(256, _MEMORY_BUDGET // max(1, bytes_per_copy)))


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
