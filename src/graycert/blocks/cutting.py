"""How many targets a block holds: what memory allows, as long as little work is repeated."""

import numpy as np

from graycert._types import BoolArray, IntArray
from graycert.draws import Draws, UntilDecided
from graycert.graph import Adjacency
from graycert.problem import Problem

WANTED = 8
"""Blocks that a certification is cut into if that repeats little work, so that an interruption loses little."""

_REPEATED = 1.25  # messages of all blocks over those of all targets at once
_REPEATED_BY_WORKERS = 1.5  # where blocks are worked on side by side
_PART = 4  # of the memory is for what a block returns; drawing plans its own
_CLASSES = 64  # as long as the model has not been called
_FEWEST, _FEWEST_ALONE = 16, 1_000  # targets; a block costs a second or two, whatever is in it


def block_size(problem: Problem, *, workers: int, memory: int, elsewhere: bool) -> int:
    """Return how many targets a block holds.

    Results are collected where `certify` was called. There, small blocks save only what is dropped when a block is
    done; and where hubs make every field the whole graph, each block draws it anew.

    Args:
        problem: The problem, prepared.
        workers: How many blocks are worked on at once.
        memory: Bytes for all of them.
        elsewhere: Whether workers are other processes than the one that collects.
    """
    asked, size = problem.execution.block_size, problem.targets.size
    if asked is not None:
        return min(asked, size)
    held = bytes_until_done(problem) + (bytes_of_results(problem) if elsewhere else 0)
    most = max(1, memory // workers // _PART // held) if held else size
    fewest, wanted = -(-size // most), max(WANTED, 4 * workers)
    number = max(fewest, min(workers, size))
    limit, at_least = (_REPEATED, _FEWEST_ALONE) if workers == 1 else (_REPEATED_BY_WORKERS, _FEWEST)
    once = messages(problem, size)
    while 2 * number <= max(wanted, number) and size // (2 * number) >= at_least:
        if messages(problem, -(-size // (2 * number))) > limit * once:
            break
        number *= 2
    return -(-size // number)


def bytes_of_results(problem: Problem) -> int:
    """Return about what the results of a target take: votes and bounds."""
    return 8 * (4 * max(2, _classes(problem)) + 4 * (problem.setup.max_radius or 2_048) + 64)


def bytes_until_done(problem: Problem) -> int:
    """Return what is held of a target besides, until its block is done: single votes, or those of batches."""
    setup = problem.setup
    if isinstance(setup.draws, UntilDecided):
        return 16 * _classes(problem) * -(-setup.draws.max_estimation // setup.draws.batch)
    if isinstance(setup.draws, Draws) and setup.the_rule.needs == "predictions":
        return 16 * setup.draws.num_estimation
    return 0


def _classes(problem: Problem) -> int:
    names, labels = getattr(problem.data, "class_names", None), getattr(problem.data, "y", None)
    return len(names) if names is not None else _CLASSES if labels is None else int(labels.max()) + 1


def messages(problem: Problem, size: int, *, most: int | None = None) -> int:
    """Return how many messages all blocks of so many targets take in, or ``most`` of them, spread evenly."""
    setup, graph = problem.setup, problem.the_graph.adjacency
    starts = range(0, problem.targets.size, size)
    if setup.num_layers is None:  # nothing is known of fields: all blocks see the whole graph
        return graph.num_edges * len(starts)
    if most is not None and len(starts) > most:
        starts = starts[:: -(-len(starts) // most)]
    return sum(messages_of(graph, problem.targets[start : start + size], problem.num_layers) for start in starts)


def messages_of(graph: Adjacency, targets: IntArray, num_layers: int) -> int:
    """Return how many nodes and messages one draw computes for some targets, all layers but the last together."""
    reached: BoolArray = np.zeros(graph.num_nodes, dtype=np.bool_)
    reached[targets] = True
    degrees = np.diff(graph.indptr)
    receiver = np.repeat(np.arange(graph.num_nodes), degrees)
    total = 0
    for _ in range(num_layers):
        total += int(reached.sum()) + int(degrees[reached].sum())
        reached[graph.sources[reached[receiver]]] = True
    return total
