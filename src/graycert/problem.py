"""One question, checked and in canonical order, built once: which targets of which graph, under which set-up."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graycert._phases import Phases
from graycert._progress import say_where_seen
from graycert._types import BoolArray, IntArray
from graycert._validation import check_choice, check_integer
from graycert.errors import InvalidParameterError
from graycert.graph import CanonicalGraph, fingerprint_of, longest_chain
from graycert.setup import Setup
from graycert.smoothing import Smoothing
from graycert.threats import Threat
from graycert.threats.named_nodes import target_nodes, with_trusted_nodes

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from graycert.audit import AuditReport
    from graycert.smoothing.votes_so_far import VotesSoFar

ENGINES = ("auto", "compiled", "torch")
BACKENDS = ("threads", "processes", "dask")

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Where and how to compute; results do not depend on it, near-ties of scores aside.

    Args:
        device: Where to run the model; default where its parameters are.
        engine: "auto" draws with compiled kernels where the model is known for certain, else with PyTorch; "compiled"
            refuses other models; "torch" never compiles.
        batch_size: Draws per forward pass of a model without compiled kernels; default from a memory budget.
        memory: Bytes that drawing with compiled kernels may take, refused if they need more; default a quarter of what
            the machine has free. What other processes hold of their blocks fits it, too. Votes do not depend on it.
        progress: Show a progress bar where it is seen: on a terminal, or in a notebook.
        say: Called with plain-words sentences before long work: what can be certified at best, and if kernels have to
            be compiled first. By default the latter is said where progress is shown, and the former only by a warning
            where nothing can be certified.
        folder: Where finished blocks of targets, and votes while they are drawn, are kept, so that the same call goes
            on after an interruption; it stays until you delete it. A folder of another call is refused. Default:
            nothing is kept.
        block_size: Targets per block; default as many as `memory` allows and little work is repeated. All targets are
            one block where none of ``folder``, ``workers`` and ``block_size`` is given.
        backend: What blocks are worked on by: "threads" of this process, "processes" of this machine, or the workers of
            a "dask" cluster.
        workers: How many blocks are worked on at once; default one with threads, as many as there are cores with
            processes, all that the cluster has with Dask.
        scheduler: Address of the Dask scheduler, such as "tcp://10.0.0.5:8786"; default a cluster of this machine.

    Raises:
        InvalidParameterError: If a value is out of its domain.
    """

    device: "str | torch.device | None" = None
    engine: str = "auto"
    batch_size: int | None = None
    memory: int | None = None
    progress: bool = True
    say: Say | None = None
    folder: str | Path | None = None
    block_size: int | None = None
    backend: str = "threads"
    workers: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        """Check the domains."""
        check_choice("engine", self.engine, ENGINES)
        if self.batch_size is not None:
            check_integer("batch_size", self.batch_size, at_least=1, hint="It is the number of draws per forward pass.")
        if self.memory is not None:
            check_integer("memory", self.memory, at_least=1, hint="It is a number of bytes, such as 2**30.")
        for name in ("block_size", "workers"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), at_least=1)
        check_choice("backend", self.backend, BACKENDS)
        if self.scheduler is not None and self.backend != "dask":
            raise InvalidParameterError(
                f'`scheduler` belongs to backend="dask", got it with {self.backend!r}. Leave it out, or choose "dask".'
            )

    @property
    def announce(self) -> Say | None:
        """What tells that kernels have to be compiled first, for a minute in which nothing else happens."""
        return self.say or (say_where_seen if self.progress else None)

    @property
    def in_blocks(self) -> bool:
        """Whether targets are certified block by block."""
        asked = (self.folder, self.block_size, self.workers)
        return self.backend != "threads" or any(each is not None for each in asked)

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
        among: How many targets the statement is about, where these are a block of them; None where they are all.
        data: The graph as it was handed in, with features; None where only stored values are at hand.
        graph: The same, checked and sorted; None as ``data``.
        model: The model; None where votes are already there.
        ablation_token: Features of an ablated node, or None for the model's own or zeros.
        audit: What an audit of this model and graph has found already, or None.
        execution: Where and how to compute.
        phases: Where the time goes.
        votes_so_far: Where votes are kept while they are drawn (`graycert.smoothing.votes_so_far`), or None.
    """

    setup: Setup
    targets: IntArray
    among: int | None = None
    data: Any = None
    graph: CanonicalGraph | None = None
    model: Any = None
    ablation_token: "Tensor | None" = None
    audit: "AuditReport | None" = None
    execution: Execution = Execution()
    phases: Phases = field(default_factory=Phases)
    votes_so_far: "VotesSoFar | None" = None

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
        graph = CanonicalGraph.of(data, merge_parallel=setup.allows_parallel_edges)
        return cls(
            setup=setup.replace(
                threat=with_trusted_nodes(setup.threat, data),
                smoothing=setup.smoothing.with_canonical_edges(graph.sorted),
                **describe_graph(data, graph, setup),
            ),
            targets=target_nodes(targets, data),
            data=data,
            graph=graph,
            **others,
        ).checked()

    @classmethod
    def stored(cls, setup: Setup, targets: IntArray, data: Any | None) -> "Problem":
        """Return the problem of a stored result, whose smoothing is in canonical order already; without a model."""
        graph = None if data is None else CanonicalGraph.of(data, merge_parallel=setup.allows_parallel_edges)
        return cls(setup=setup, targets=targets, data=data, graph=graph)

    def checked(self) -> "Problem":
        """Refuse arrays of smoothing or threat that are not of this graph, and values per edge without a proof."""
        s = self.setup
        if not s.edge_inputs and getattr(s.threat, "hostile_edge_inputs", False):
            raise InvalidParameterError(
                "`hostile_edge_inputs` must be False for a model that is given no values per edge, got True. Name them "
                "in `edge_inputs`, or leave it out."
            )
        if s.edge_inputs:
            s.smoothing.edge_inputs_cell(s.threat).require()
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

    def block(self, rows: slice) -> "Problem":
        """Return the problem of some of its targets, which stay part of one statement; itself if they are all."""
        some = self.targets[rows]
        if some.size == self.targets.size:
            return self
        return dataclasses.replace(self, targets=some, among=self.num_asked)

    @property
    def num_asked(self) -> int:
        """Number of targets that the statement is about."""
        return self.targets.size if self.among is None else self.among

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
        return simultaneous_level(s.alpha, self.num_asked) if s.simultaneous else s.alpha

    def exposed(self) -> BoolArray:
        """Return which targets the adversary may control, shape (num_targets,)."""
        return self.threat.exposes(self.targets)


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
            "classes from 0, in the order of the model's outputs, e.g. with load_graph(..., class_names=...) "
            "(--class-names)."
        )
    if names is not None and len(names) != num_classes:
        raise InvalidParameterError(
            f"`data.class_names` must name the {num_classes} classes of the model, got {len(names)} names. Was the "
            "model trained on another graph?"
        )
    of_model = getattr(problem.model, "class_names", None)
    check_class_names(of_model, names)
    return problem.setup.replace(
        num_classes=num_classes, engine=engine, class_names=None if names is None else tuple(names), **known
    )


def check_class_names(of_model: Any, of_graph: Any) -> None:
    """Compare names kept beside weights with those of a graph, where both have some.

    Raises:
        InvalidParameterError: If they differ, so that a class number means one thing to one and another to the other.
    """
    if not isinstance(of_model, list | tuple) or of_graph is None or list(of_model) == [str(name) for name in of_graph]:
        return
    theirs = ",".join(str(name) for name in of_model)
    raise InvalidParameterError(
        f"`data.class_names` must be those of the model's outputs, {theirs}, got {','.join(map(str, of_graph))}. "
        f"Number the classes as the model does: class_names={theirs!r} (--class-names {theirs})."
    )


def describe_graph(data: Any, graph: CanonicalGraph, setup: Setup) -> dict[str, Any]:
    """Return what a set-up says of a graph."""
    return {
        "graph_fingerprint": fingerprint_of(data, setup.edge_inputs),
        "edges_fingerprint": graph.fingerprint,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
    }
