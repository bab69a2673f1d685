"""Does Lemma 1 hold for this model? Structure, depth, determinism, and an executed leak test."""

import contextlib
import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from graycert._types import IntArray
from graycert._validation import check_integer, check_seed
from graycert.audit.blocks import runs_on, union_of_blocks
from graycert.audit.dependence import check_features_matter, reads_num_nodes
from graycert.audit.depth import count_propagation_steps
from graycert.audit.influence import Influence, probe_model, same_bits
from graycert.audit.leak_test import leak_test, needs_in_edges, unusable
from graycert.audit.memory import check_memory, unsteady
from graycert.audit.question import Question
from graycert.audit.report import AuditCheck, AuditReport
from graycert.audit.row_test import beside_skip
from graycert.audit.seal import sealed
from graycert.audit.structure import check_structure
from graycert.audit.typed import with_numbering, with_types
from graycert.data import validate_data
from graycert.data.checks import refuse_batch
from graycert.errors import GraycertError, InvalidParameterError
from graycert.heterogeneous import AskedOfTypes, is_heterogeneous
from graycert.models.advice import refuse_featureless, refuse_other_call
from graycert.models.edge_inputs import chosen_edge_inputs, with_edge_inputs
from graycert.models.outside_state import OutsideState
from graycert.models.precision import check_precision
from graycert.models.private_copy import one_line, private_copy, undisturbed
from graycert.models.protocol import require_skip_logits
from graycert.sampling import evaluation_mode
from graycert.sampling.messages import messages_in_parts
from graycert.sampling.recognition import is_recognised
from graycert.sampling.voting import ablation_row, check_scores

DEFAULT_NUM_DRAWS = 15
"""Draws of the leak test."""

_LARGE = 16_000_000  # features of a graph from which on dependence is looked for on parts of it, where the model runs


def audit_model(
    model: nn.Module,
    data: Any,
    *,
    num_layers: int | None = None,
    ablation_token: Tensor | None = None,
    edge_inputs: Sequence[str] | Mapping[str, str] | None = None,
    num_draws: int = DEFAULT_NUM_DRAWS,
    seed: int = 0,
    targets: IntArray | None = None,
    features_matter: bool = True,
) -> AuditReport:
    r"""Decide whether Lemma 1 holds: intercepted messages cannot change a prediction.

    These checks run on copies of the model, on the CPU, in evaluation mode; the caller's model, data, random state, and
    what its classes and module globals hold are as before:

    1. structure: no cached propagation, graph-wide or batch normalisation, global attention or pooling, or
       feature-dependent neighbours;
    2. memory: the same input gives the same bits, whatever the model was called with before; a fresh copy with fresh
       classes, globals and closures gives the same bits as one that has seen an input with another summary; what
       forward stores is emptied, and must not be fitted anew;
    3. dependence: some target's scores change with the features;
    4. depth: the longest chain of propagation is counted while the model runs, and the distance at which a changed node
       is noticed is measured on path graphs; the larger must not exceed ``num_layers``;
    5. an executed leak test: for draws of edges and ablated nodes, and hostile rows like the features (other nodes'
       rows, flipped bits, values within and just beyond each column's range, unequal entries) and unlike them (10⁴,
       NaN, infinities, the largest finite numbers, ...), the output of every node without an arriving message is equal
       bit for bit: on parts of the graph with the features that they have, on the graph, and with blocks of hostile
       nodes that together separate every node from every other.

    Of a chain of well-known layers the last two need less, and all of it is executed on parts of the graph: what such
    layers do is read off them, is the same on every graph, and is what the engine relies on
    (`graycert.sampling.recognition`). Any other model is called on the whole graph, however large. A refusal shows the
    smallest pair of nodes and values that was found. The audit can prove that Lemma 1 fails; for a foreign module it
    cannot prove in general that it holds. What it cannot see: what was computed from the features beforehand and kept
    as a constant (z-scores, propagated features beside the given ones), edges chosen by features, a token taken from
    the features in a way other than their mean, and what a model does only for features or graphs that nobody tried.
    See `docs/soundness.md`.

    Args:
        model: ``forward(x, edge_index)`` -> class scores (num_nodes, num_classes).
        data: Graph with ``x`` (num_nodes, num_features) and ``edge_index`` (2, num_edges).
        num_layers: Number k of propagation steps, if you know it; by default it is counted. Needed for a model that
            moves messages without PyTorch Geometric layers.
        ablation_token: Features of an ablated node (num_features,); default the model's own, else zeros.
        edge_inputs: Names of values per edge of ``data`` that the model is given, see `graycert.certify`: part of the
            structure, so that scores may depend on them, however they are distributed.
        num_draws: Draws of the leak test, >= 1; a report with fewer than the default is not taken by `certify`.
        seed: Seeds the leak test.
        targets: Nodes that are asked for, shape (num_targets,): the scores of one of them must depend on features;
            default all nodes.
        features_matter: Whether scores must depend on features at all.

    Returns:
        The report; ``report.passed`` says whether a certificate can be issued, ``report.require()`` raises if not.
        Printed, it says what was tried and what cannot be seen. In this process, `certify` takes it as ``audit`` for
        the same model, features, edges and token.

    Raises:
        InvalidParameterError: If the model does not return finite scores (num_nodes, num_classes), cannot be evaluated
            on hostile features or fewer edges, has parameters without values or of another type than the features, or
            an argument is out of range.
        UnsoundSetupError: ``batch-not-graph``; ``skip-not-local``; ``edge-inputs-unsaid``.

    References:
        Scholten et al. (2022), Lemma 1 and Proposition 1.
    """
    typed = None
    if is_heterogeneous(data):
        typed = AskedOfTypes.of(model, data, targets=targets, edge_inputs=edge_inputs)
        model, data, edge_inputs = typed.model, typed.data, typed.edge_inputs
        targets, ablation_token = typed.nodes(targets), typed.token(ablation_token)
    asked = Question(
        model=model,
        data=data,
        num_layers=num_layers,
        ablation_token=ablation_token,
        edge_inputs=edge_inputs,
        targets=targets,
        features_matter=features_matter,
    )
    report = examine_model(asked, num_draws=num_draws, seed=seed)
    return sealed(report if typed is None else with_types(report, typed), asked)


def examine_model(asked: Question, *, num_draws: int = DEFAULT_NUM_DRAWS, seed: int) -> AuditReport:
    """Do the work of `audit_model`, for a report that is not handed on.

    Where Lemma 1 is not needed, the report counts no steps.
    """
    started = time.perf_counter()
    model, data = asked.model, asked.data
    refuse_featureless(model, data)
    validate_data(data)
    refuse_batch(data)
    chosen = chosen_edge_inputs(model, data, asked.edge_inputs)
    check_precision(model, data, edge_inputs=chosen)
    check_integer("num_draws", num_draws, at_least=1)
    seed = check_seed(seed)
    if asked.num_layers is not None:
        check_integer("num_layers", asked.num_layers, at_least=1)
    require_skip_logits(model)
    with undisturbed():
        given, edges = with_edge_inputs(model, data, chosen)
        pristine = private_copy(given).cpu()
        with torch.inference_mode(), evaluation_mode(pristine):
            outside = OutsideState(pristine)
            try:
                if asked.local:
                    report = _audited(pristine, outside, edges, asked, num_draws=num_draws, seed=seed)
                else:
                    report = _as_a_function(pristine, outside, edges, asked)
            finally:
                outside.restore()
    report = with_numbering(report, data)
    return dataclasses.replace(report, num_draws=num_draws, seconds=time.perf_counter() - started)


def _audited(
    pristine: nn.Module, outside: OutsideState, edge_index: Tensor, asked: Question, *, num_draws: int, seed: int
) -> AuditReport:
    x, num_layers = asked.x, asked.num_layers
    token = ablation_row(pristine, asked.ablation_token, num_features=x.size(1)).detach().cpu().to(x.dtype)
    known = _is_known(pristine, outside)
    checks = check_structure(pristine)
    called, counting = private_copy(pristine), private_copy(pristine)
    in_parts = messages_in_parts if known else contextlib.nullcontext
    rows, edges = x, edge_index
    if known:  # what such a chain does is the same function on every graph
        part = union_of_blocks(x, edge_index, num_hops=2, seed=0)
        rows, edges = part.x, part.edge_index
    with in_parts(called), in_parts(counting):
        out = call_model(called, rows, edges)
        scores = check_scores(out, num_nodes=rows.size(0), x=rows, called=(pristine, edges))
        counted, again = count_propagation_steps(counting, rows, edges)
    checks += _memory_and_features(pristine, called, outside, edge_index, scores, again, asked, known=known)
    checks.append(_token_is_independent(token, x))
    influence = probe_model(
        private_copy(pristine), num_features=x.size(1), dtype=x.dtype, at_least=max(counted, num_layers or 0)
    )
    checks.append(_depth(counted, influence, num_layers))
    depth = num_layers if num_layers is not None else max(counted, 1)
    checks.append(
        leak_test(pristine, x, edge_index, token, scores, num_layers=depth, num_draws=num_draws, seed=seed, known=known)
    )
    return AuditReport(
        num_layers=depth,
        counted_steps=counted,
        farthest_influence=influence.distance if influence is not None else -1,
        checks=tuple(checks),
        assumed=num_layers is not None and (influence is None or influence.distance > counted),
        reads_num_nodes=not known and reads_num_nodes(pristine, x, edge_index),
    )


def _as_a_function(pristine: nn.Module, outside: OutsideState, edge_index: Tensor, asked: Question) -> AuditReport:
    """Check that a model is a function of features and edges, and nothing else."""
    x, called = asked.x, private_copy(pristine)
    scores = check_scores(call_model(called, x, edge_index), num_nodes=x.size(0), x=x)
    again = call_model(private_copy(pristine), x, edge_index)
    checks = _memory_and_features(pristine, called, outside, edge_index, scores, again, asked, known=False)
    return AuditReport(num_layers=0, counted_steps=0, farthest_influence=-1, checks=tuple(checks))


def _memory_and_features(
    pristine: nn.Module,
    called: nn.Module,
    outside: OutsideState,
    edge_index: Tensor,
    scores: Tensor,
    again: Tensor,
    asked: Question,
    *,
    known: bool,
) -> list[AuditCheck]:
    """Test that the model is a function of features and edges, and of features at all.

    Memory is looked for on parts of the graph where the model runs there, which costs little; whether the targets'
    scores depend on features is asked on the graph, unless it is large.
    """
    if not same_bits(again, scores):
        return [unsteady()]
    x, rows = asked.x, asked.rows
    looked_at, first, found, targets = (x, edge_index), called, scores, rows
    if asked.local:
        part = union_of_blocks(x, edge_index, num_hops=2, seed=0)
        if known or runs_on(private_copy(pristine), part):
            looked_at, first = (part.x, part.edge_index), private_copy(pristine)
            found, targets = call_model(first, *looked_at), torch.arange(part.x.size(0))
    checks, moved = check_memory(
        pristine, first, *looked_at, beside_skip(first, found, looked_at[0]), outside, _call_with_skip
    )
    if not asked.features_matter:
        return [checks]
    moved = moved[:, : scores.size(1)]
    if first is not called and not known and x.numel() <= _LARGE:
        looked_at, found, moved, targets = (x, edge_index), scores, scores, rows
    copied = private_copy(pristine)
    return [checks, check_features_matter(copied, *looked_at, found, moved, targets, call_on_others, local=asked.local)]


def _is_known(model: nn.Module, outside: OutsideState) -> bool:
    """Return whether a model is a chain of well-known layers that stores nothing while it runs."""
    return not outside.may_remember and is_recognised(model)


def call_model(model: nn.Module, x: Tensor, edge_index: Tensor) -> Any:
    """Return the scores of a model.

    Raises:
        InvalidParameterError: If it cannot be called like this, with the line that mends it.
    """
    try:
        return model(x, edge_index)
    except GraycertError:
        raise
    except Exception as error:
        if needs_in_edges(model, error):
            raise unusable(model, error, edge_index.size(1)) from error
        refuse_other_call(model, x, edge_index)
        raise InvalidParameterError(
            f"`model` must accept model(x, edge_index) with x of shape {tuple(x.shape)} and {x.dtype} and any "
            f"edges, got {one_line(error)} with {edge_index.size(1)} edges. Say how it is called, "
            "model = graycert.as_node_classifier(model, call=lambda model, x, edge_index: ...), or convert `data.x`; "
            "weights stored for each edge of the graph cannot follow deleted edges: name them in `edge_inputs`."
        ) from error


def call_on_others(model: nn.Module, x: Tensor, edge_index: Tensor) -> Any:
    """Return the scores of a model that has been called already, for other features or edges."""
    try:
        return model(x, edge_index)
    except GraycertError:
        raise
    except Exception as error:
        raise unusable(model, error, edge_index.size(1)) from error


def _call_with_skip(model: nn.Module, x: Tensor, edge_index: Tensor) -> Tensor:
    return beside_skip(model, call_on_others(model, x, edge_index), x)


def _token_is_independent(token: Tensor, x: Tensor) -> AuditCheck:
    name = "ablation token"
    mean, largest = x.mean(dim=0), max(float(x.amax()), -float(x.amin()))
    if bool(mean.any()) and torch.allclose(token, mean, rtol=1e-5, atol=1e-8 * largest):
        return AuditCheck(
            name=name,
            passed=False,
            slug="token-from-features",
            detail="`ablation_token` equals the mean of the features, which hostile nodes shift. Use a trained or a "
            "constant token.",
        )
    return AuditCheck(name=name, passed=True, detail="is not the mean of the features")


def _depth(counted: int, influence: Influence | None, num_layers: int | None) -> AuditCheck:
    name = "propagation steps"
    if influence is not None and influence.leaks:
        return AuditCheck(
            name=name,
            passed=False,
            slug="message-leak",
            detail="A node without any path to another changed its output. Something mixes nodes without edges, such "
            "as a normalisation or a readout over the whole graph, or a virtual node.",
        )
    seen = influence.distance if influence is not None else 0
    if num_layers is None and (seen > counted or influence is None):
        what = f"messages travel {seen} hops" if influence is not None else "the model runs on this graph only"
        return AuditCheck(
            name=name,
            passed=False,
            slug="unknown-depth",
            detail=f"{counted} propagation steps of PyTorch Geometric layers are visible, but {what}. Pass "
            "`num_layers`, the number of times that messages move along an edge in one forward pass.",
        )
    if num_layers is not None and num_layers < max(counted, seen):
        return AuditCheck(
            name=name,
            passed=False,
            slug="too-few-layers",
            detail=f"`num_layers` must be >= {max(counted, seen)} for this model, got {num_layers}: {counted} "
            f"propagation steps were counted, and a changed node was noticed {seen} hops away.",
        )
    return AuditCheck(name=name, passed=True, detail=f"{counted} counted; influence seen up to {seen} hops")
