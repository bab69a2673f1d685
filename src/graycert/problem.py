"""One question, checked and in canonical order, built once: which targets of which graph, under which set-up."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graycert._types import BoolArray, IntArray
from graycert._validation import check_choice, check_integer, check_targets
from graycert.errors import InvalidParameterError
from graycert.graph import CanonicalGraph, graph_fingerprint, longest_chain
from graycert.setup import Setup
from graycert.smoothing import Smoothing
from graycert.threats import Threat

if TYPE_CHECKING:
    import torch
    from torch import Tensor

ENGINES = ("auto", "compiled", "torch")

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Where and how to compute; results do not depend on it, near-ties of scores aside.

    Args:
        device: Where to run the model; default where its parameters are.
        engine: "auto" draws with compiled kernels where the model is known for certain, else with PyTorch; "compiled"
            refuses other models; "torch" never compiles.
        batch_size: Draws per forward pass of a model without compiled kernels; default from a memory budget.
        memory: Bytes that drawing may take; default a quarter of what the machine has free. Votes do not depend on it.
        progress: Show a progress bar on standard error if it is a terminal.
        say: Called with plain-words sentences before long work: what can be certified at best, and if kernels have to
            be compiled first. By default nothing is said, except a warning where nothing can be certified.

    Raises:
        InvalidParameterError: If a value is out of its domain.
    """

    device: "str | torch.device | None" = None
    engine: str = "auto"
    batch_size: int | None = None
    memory: int | None = None
    progress: bool = False
    say: Say | None = None

    def __post_init__(self) -> None:
        """Check the domains."""
        check_choice("engine", self.engine, ENGINES)
        if self.batch_size is not None:
            check_integer("batch_size", self.batch_size, at_least=1, hint="It is the number of draws per forward pass.")
        if self.memory is not None:
            check_integer("memory", self.memory, at_least=1, hint="It is a number of bytes, such as 2**30.")

    def place(self) -> "torch.device | None":
        """Return the device, which must exist on this machine.

        Raises:
            InvalidParameterError: If it does not.
        """
        if self.device is None:
            return None
        import torch

        try:
            where = torch.device(self.device)
            torch.empty(0, device=where)
        except (RuntimeError, AssertionError) as error:
            raise InvalidParameterError(
                f"`device` must name a device of this machine, got {str(self.device)!r} "
                f"({str(error).splitlines()[0]}). Leave it out to use the CPU."
            ) from error
        return where


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """What every step of a certification is given.

    Attributes:
        setup: What is asked for, with all that is known so far; its smoothing has values per edge in canonical order.
        targets: Distinct node indices, shape (num_targets,).
        data: The graph as it was handed in, with features; None where only stored values are at hand.
        graph: The same, checked and sorted; None as ``data``.
        model: The model; None where votes are already there.
        ablation_token: Features of an ablated node, or None for the model's own or zeros.
        execution: Where and how to compute.
    """

    setup: Setup
    targets: IntArray
    data: Any = None
    graph: CanonicalGraph | None = None
    model: Any = None
    ablation_token: "Tensor | None" = None
    execution: Execution = Execution()

    @classmethod
    def of(cls, data: Any, targets: Any, *, setup: Setup, **others: Any) -> "Problem":
        """Check graph, targets and set-up against each other.

        Args:
            data: Graph (`torch_geometric.data.Data`) with ``x`` and ``edge_index``, already checked on its own.
            targets: See `target_nodes`.
            setup: Its smoothing has values per column of ``edge_index``.
            others: Further attributes.

        Raises:
            InvalidParameterError: If they do not fit.
            UnsoundSetupError: ``parallel-edges``.
        """
        graph = CanonicalGraph.of(data, merge_parallel=setup.smoothing.allows_parallel_edges)
        return cls(
            setup=setup.replace(
                smoothing=setup.smoothing.with_canonical_edges(graph.sorted), **describe_graph(data, graph)
            ),
            targets=target_nodes(targets, data),
            data=data,
            graph=graph,
            **others,
        ).checked()

    @classmethod
    def stored(cls, setup: Setup, targets: IntArray, data: Any | None) -> "Problem":
        """Return the problem of a stored result, whose smoothing is in canonical order already; without a model."""
        merge = setup.smoothing.allows_parallel_edges
        graph = None if data is None else CanonicalGraph.of(data, merge_parallel=merge)
        return cls(setup=setup, targets=targets, data=data, graph=graph)

    def checked(self) -> "Problem":
        """Refuse arrays of smoothing or threat that are not of this graph."""
        s = self.setup
        s.smoothing.check_graph(num_edges=s.num_edges, num_nodes=s.num_nodes)
        trusted = getattr(s.threat, "trusted", None)
        if trusted is not None and trusted.size != s.num_nodes:
            raise InvalidParameterError(
                f"`trusted` must be a boolean array of shape ({s.num_nodes},), got dtype {trusted.dtype} and shape "
                f"{trusted.shape}."
            )
        return self

    def with_setup(self, **changes: Any) -> "Problem":
        """Return the problem with some values of its set-up changed."""
        return dataclasses.replace(self, setup=self.setup.replace(**changes))

    @property
    def smoothing(self) -> Smoothing:
        """What the classifier is smoothed over."""
        return self.setup.smoothing

    @property
    def threat(self) -> Threat:
        """Who may do what."""
        return self.setup.threat

    @property
    def num_layers(self) -> int:
        """Number of message-passing steps, once it is known; at most as many as can matter on the graph.

        Raises:
            ValueError: If it is not.
        """
        if self.setup.num_layers is None:
            raise ValueError("the number of layers is not known")
        return longest_chain(self.setup.num_layers, num_nodes=self.setup.num_nodes)

    @property
    def the_graph(self) -> CanonicalGraph:
        """The graph.

        Raises:
            ValueError: If it is not at hand.
        """
        if self.graph is None:
            raise ValueError("the graph is not at hand")
        return self.graph

    @property
    def smoothing_on_adjacency(self) -> Any:
        """The smoothing with values per edge in the order of the adjacency, as bounds and arrival records need it."""
        return self.smoothing.with_canonical_edges(self.the_graph.proper)

    @property
    def level(self) -> float:
        """Failure probability of each target."""
        from graycert.rules import simultaneous_level

        s = self.setup
        return simultaneous_level(s.alpha, self.targets.size) if s.simultaneous else s.alpha

    def exposed(self) -> BoolArray:
        """Return which targets the adversary may control, shape (num_targets,)."""
        if not self.threat.includes_target:
            return np.zeros(self.targets.size, dtype=np.bool_)
        trusted = getattr(self.threat, "trusted", None)
        return np.ones(self.targets.size, dtype=np.bool_) if trusted is None else ~trusted[self.targets]


def classified(problem: Problem, *, num_classes: int, engine: str, **known: Any) -> Setup:
    """Return the set-up with what is known once the model has been called; refuse a graph with other classes.

    Args:
        problem: What is asked.
        num_classes: Of the model.
        engine: What draws, or evaluates the model.
        known: Further values of the set-up.

    Raises:
        InvalidParameterError: If labels or names of classes are not those of the model's outputs.
    """
    labels, names = getattr(problem.data, "y", None), getattr(problem.data, "class_names", None)
    largest = -1 if labels is None else int(labels.detach().cpu().numpy()[problem.targets].max())
    if largest >= num_classes:
        raise InvalidParameterError(
            f"`data.y` must be < {num_classes}, the number of classes of the model, got label {largest}. Number the "
            "classes from 0, in the order of the model's outputs."
        )
    if names is not None and len(names) != num_classes:
        raise InvalidParameterError(
            f"`data.class_names` must name the {num_classes} classes of the model, got {len(names)} names. Was the "
            "model trained on another graph?"
        )
    return problem.setup.replace(
        num_classes=num_classes, engine=engine, class_names=None if names is None else tuple(names), **known
    )


def describe_graph(data: Any, graph: CanonicalGraph) -> dict[str, Any]:
    """Return what a set-up says of a graph."""
    features = feature_array(data.x)
    edges = data.edge_index.cpu().numpy()
    return {
        "graph_fingerprint": graph_fingerprint(edges, int(data.num_nodes), features),
        "edges_fingerprint": graph.fingerprint,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
    }


def feature_array(x: Any) -> Any:
    """Return features for hashing; NumPy has no bfloat16, whose values are float32 values."""
    values = x.detach().cpu()
    return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()


def target_nodes(targets: Any, data: Any) -> IntArray:
    """Return the targets as distinct node indices; all nodes if there are none.

    Args:
        targets: Node indices, shape (num_targets,), a boolean mask, shape (num_nodes,), or names of nodes, where
            ``data.node_ids`` has them.
        data: The graph.

    Raises:
        InvalidParameterError: If they are not distinct nodes of the graph.
    """
    num_nodes = int(data.num_nodes)
    if targets is None:
        return np.arange(num_nodes, dtype=np.int64)
    if hasattr(targets, "detach"):  # a tensor; torch itself is not imported here
        targets = targets.detach().cpu().numpy()
    nodes = np.asarray(targets)
    if nodes.dtype == np.bool_ and nodes.shape == (num_nodes,):  # a mask, as PyTorch Geometric's data.test_mask
        nodes = np.flatnonzero(nodes)
    elif nodes.dtype.kind in "US":
        nodes = _named(nodes.astype(np.str_), getattr(data, "node_ids", None))
    return check_targets(nodes, num_nodes=num_nodes)


def _named(names: Any, node_ids: Any) -> IntArray:
    if node_ids is None:
        raise InvalidParameterError(
            f"`targets` must be node indices, because the graph has no `node_ids`, got the name {str(names.flat[0])!r}."
        )
    known = np.asarray(node_ids, dtype=np.str_)
    order = np.argsort(known, kind="stable")
    places = np.minimum(np.searchsorted(known[order], names), known.size - 1)
    unknown = names[known[order][places] != names]
    if unknown.size:
        raise InvalidParameterError(f"`targets` must be names in `data.node_ids`, got {str(unknown[0])!r}.")
    following = np.minimum(places + 1, known.size - 1)
    twice = names[(following > places) & (known[order][following] == names)]
    if twice.size:
        raise InvalidParameterError(
            f"`targets`: several nodes have the name {str(twice[0])!r}, so it names none of them."
        )
    return np.asarray(order[places], dtype=np.int64)
