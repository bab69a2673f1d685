"""What is done for each target: bounds from the graph, draws, and a conclusion from both."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._memory import give_back
from graycert._phases import Phases
from graycert.problem import Problem
from graycert.setup import Setup
from graycert.smoothing import FromGraph
from graycert.smoothing.by_distance import radii_by_distance
from graycert.smoothing.protocol import Arrays


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What was found of some targets, or of all.

    Attributes:
        setup: What it was made from, with what drawing found.
        arrays: Arrays of the stages "graph", "drawn" and "concluded", by name.
        seconds: Time of each phase, where it is not that of the problem.
    """

    setup: Setup
    arrays: Arrays
    seconds: Mapping[str, float] = field(default_factory=dict)


def certified(problem: Problem) -> Outcome:
    """Certify the targets of a prepared problem."""
    method = problem.smoothing.method
    give_back()
    with problem.phases("bounds"):
        found = with_degrees(problem, method.from_graph(problem))
    problem = as_far_as_looked(problem, found)
    give_back()
    with problem.phases("draws"):
        setup, drawn = method.draw(problem, found)
    problem = problem.with_setup(**vars(setup))
    give_back()
    with problem.phases("cost"):
        found = with_distances(problem, found, drawn)
    with problem.phases("conclusion"):
        concluded = method.conclude(problem, found, drawn)
    return Outcome(setup=problem.setup, arrays={**found.arrays, **drawn, **concluded})


def certified_block(problem: Problem, rows: slice, number: int) -> Outcome:
    """Certify some targets of a prepared problem, with a watch and a place for votes of their own."""
    place = problem.votes_so_far
    place = None if place is None else place.of(number)
    block = dataclasses.replace(problem.block(rows), phases=Phases(), votes_so_far=place)
    return dataclasses.replace(certified(block), seconds=block.phases.seconds)


def with_degrees(problem: Problem, found: FromGraph) -> FromGraph:
    """Add how many other nodes have an edge into each target."""
    degrees = np.diff(problem.the_graph.adjacency.indptr)[problem.targets]
    return dataclasses.replace(found, arrays={**found.arrays, "in_degree": degrees})


def with_distances(problem: Problem, found: FromGraph, drawn: Mapping[str, NDArray[Any]]) -> FromGraph:
    """Add radii against hostile nodes farther away."""
    return dataclasses.replace(found, arrays={**found.arrays, **radii_by_distance(problem, drawn)})


def as_far_as_looked(problem: Problem, found: FromGraph) -> Problem:
    """Note how far Δ̄ was computed, where that was left open."""
    deltas = found.arrays.get("delta_upper")
    return problem if deltas is None else problem.with_setup(max_radius=int(deltas.shape[1]))
