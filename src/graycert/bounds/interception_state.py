r"""How likely all messages of a growing set of hostile nodes are intercepted, g(B) = P(not E(B)), exactly.

The routes fall into components that share no first hop; g is the product over them. Within a component g is a sum over
scenarios, either

- which edges of its first hops survive (few hops): a node multiplies each scenario by its intercepting factor; or
- which chosen nodes with several first hops are not ablated (few chosen nodes): in each scenario the first hops are
  independent, and nodes with one first hop are integrated out.

Every quantity is non-negative and nothing is subtracted, so relative errors only add up: see ``relative_error``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import kernel
from graycert._types import FloatArray, IntArray
from graycert.bounds.routes import Routes

MOST_SUBSETS = 2**12  # scenarios of surviving first hops
MOST_SCENARIOS = 2**14  # scenarios of ablated nodes: more would take seconds per step
_MOST_FACTORS = 2**20  # scenarios times types of one component
_UNIT = 2.0**-53


class State(NamedTuple):
    """A stack of chosen nodes; ``push`` and ``pop`` change it in place.

    Args:
        component: Component of each type, shape (num_types,).
        hop_component: Component of each hop, -1 without routes, shape (num_hops,).
        hop_place: Position of each hop within its component.
        num_component_hops: Number of hops per component.
        by_subsets: Whether the scenarios of a component are subsets of surviving hops.
        factors: Where the factors of each type begin in ``memory`` (components by subsets only).
        start: Where the scenarios of each component begin in ``memory``.
        scenarios: How many scenarios each component has now.
        memory: All numbers. Scenarios are probabilities, each followed (not by subsets) by the probability, per hop,
            that its edge survives and all chosen shown nodes miss it.
        top: First unused entry of ``memory``, the number of nodes on the stack, the most scenarios summed so far.
        undo: Per node on the stack its component, the former start and the former number of scenarios.
        work: How many products have been formed, and how many may be.
    """

    component: IntArray
    hop_component: IntArray
    hop_place: IntArray
    num_component_hops: IntArray
    by_subsets: NDArray[np.bool_]
    factors: IntArray
    start: IntArray
    scenarios: IntArray
    memory: FloatArray
    top: IntArray
    undo: IntArray
    work: IntArray


@kernel
def start_state(routes: Routes, subsets_up_to: int, max_nodes: int, max_work: int, memory: FloatArray) -> State:
    """Return the state in which no node is hostile.

    Args:
        routes: The routes of one field.
        subsets_up_to: Components with at most so many first hops are summed over subsets of surviving hops.
        max_nodes: How many nodes will be pushed at most.
        max_work: The budget, in products.
        memory: Scratch space, at least ``memory_needed`` entries; more lets more scenarios be held.
    """
    num_types, num_hops = routes.copies.size, routes.p_first.size
    hop_component = _components(routes)
    count = 0 if hop_component.size == 0 else hop_component.max() + 1
    num_component_hops, hop_place = np.zeros(count, dtype=np.int64), np.zeros(num_hops, dtype=np.int64)
    for hop in range(num_hops):
        if hop_component[hop] >= 0:
            hop_place[hop] = num_component_hops[hop_component[hop]]
            num_component_hops[hop_component[hop]] += 1
    component, num_component_types = np.empty(num_types, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for kind in range(num_types):
        component[kind] = hop_component[routes.hops[routes.indptr[kind]]]
        num_component_types[component[kind]] += 1
    by_subsets = np.zeros(count, dtype=np.bool_)
    state = State(
        component,
        hop_component,
        hop_place,
        num_component_hops,
        by_subsets,
        np.zeros(num_types, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.ones(count, dtype=np.int64),
        memory,
        np.ones(3, dtype=np.int64),
        np.zeros((max_nodes + 1, 3), dtype=np.int64),
        np.array([0, max_work]),
    )
    state.top[0] = state.top[1] = 0
    next_factors = np.zeros(count, dtype=np.int64)
    for number in range(count):
        hops, kinds = num_component_hops[number], num_component_types[number]
        if hops <= subsets_up_to and 2**hops <= MOST_SUBSETS and 2**hops * kinds <= _MOST_FACTORS:
            room = memory.size - memory_needed(routes, max_nodes) - state.top[0]
            by_subsets[number] = hops == 1 or 2**hops * (kinds + 8) < room // 4
        begin = state.top[0]
        state.start[number] = begin
        if by_subsets[number]:
            size = 2**hops
            state.scenarios[number], state.top[2] = size, max(state.top[2], size)
            memory[begin : begin + size] = 1.0
            next_factors[number] = begin + size
            state.top[0] += size * (1 + kinds)
        else:
            memory[begin] = 1.0
            state.top[0] += 1 + hops
    for hop in range(num_hops):
        if hop_component[hop] >= 0:
            _start_hop(state, hop, routes.p_first[hop])
    for kind in range(num_types):
        if by_subsets[component[kind]]:
            state.factors[kind] = next_factors[component[kind]]
            next_factors[component[kind]] += state.scenarios[component[kind]]
            _fill_factors(routes, state, kind)
    return state


@kernel
def memory_needed(routes: Routes, max_nodes: int) -> int:
    """Return enough memory for ``start_state`` and for ``max_nodes`` nodes with one scenario per component."""
    return 16 * (routes.hops.size + routes.p_first.size) + (max_nodes + 2) * (routes.p_first.size + 2)


@kernel
def _components(routes: Routes) -> IntArray:
    """Number the components: hops that some type has in common. Hops without routes get -1."""
    parent = np.arange(routes.p_first.size)
    used = np.zeros(routes.p_first.size, dtype=np.bool_)
    for kind in range(routes.copies.size):
        first = routes.hops[routes.indptr[kind]]
        for route in range(routes.indptr[kind], routes.indptr[kind + 1]):
            used[routes.hops[route]] = True
            left, right = first, routes.hops[route]
            while parent[left] != left:
                parent[left] = parent[parent[left]]
                left = parent[left]
            while parent[right] != right:
                parent[right] = parent[parent[right]]
                right = parent[right]
            parent[max(left, right)] = min(left, right)
    numbers = np.full(parent.size, -1, dtype=np.int64)
    known = 0
    for hop in range(parent.size):
        if not used[hop]:
            continue
        root = hop
        while parent[root] != root:
            root = parent[root]
        if numbers[root] < 0:
            numbers[root] = known
            known += 1
        numbers[hop] = numbers[root]
    return numbers


@kernel
def _start_hop(state: State, hop: int, p: float) -> None:
    """Let the edge from a first hop survive in half of the scenarios of its component, or note how likely it does."""
    number, place = state.hop_component[hop], state.hop_place[hop]
    begin = state.start[number]
    if not state.by_subsets[number]:
        state.memory[begin + 1 + place] = 1.0 - p
        return
    for subset in range(state.scenarios[number]):
        state.memory[begin + subset] *= (1.0 - p) if subset & (1 << place) else p


@kernel
def _fill_factors(routes: Routes, state: State, kind: int) -> None:
    """Fill the intercepting factor of a type for each subset of surviving first hops."""
    place, size = state.factors[kind], state.scenarios[state.component[kind]]
    misses = np.ones(state.num_component_hops[state.component[kind]])
    for route in range(routes.indptr[kind], routes.indptr[kind + 1]):
        misses[state.hop_place[routes.hops[route]]] = routes.misses[route]
    state.memory[place] = 1.0  # the product over no hop; every other subset adds one hop to a smaller one
    for bit in range(misses.size):
        for subset in range(1 << bit):
            state.memory[place + subset + (1 << bit)] = state.memory[place + subset] * misses[bit]
    shown = 1.0 - routes.p_ablate[kind]
    for subset in range(size):
        state.memory[place + subset] = routes.p_ablate[kind] + shown * state.memory[place + subset]


@kernel
def gain(routes: Routes, state: State, kind: int) -> float:
    """Return log g(S) - log g(S + w) for a node w of type ``kind``; inf if its message cannot be intercepted."""
    number = state.component[kind]
    begin, size, memory = state.start[number], state.scenarios[number], state.memory
    before = after = 0.0
    if state.by_subsets[number]:
        factors = state.factors[kind]
        state.work[0] += size
        for subset in range(size):
            before += memory[begin + subset]
            after += memory[begin + subset] * memory[factors + subset]
    else:
        width = 1 + state.num_component_hops[number]
        a = routes.p_ablate[kind]
        state.work[0] += size * (routes.indptr[kind + 1] - routes.indptr[kind])
        for scenario in range(size):
            p = memory[begin + scenario * width]
            before += p
            after += p * (a + (1.0 - a) * _missed(routes, state, kind, begin + scenario * width))
    if before == 0.0:
        return 0.0
    return np.inf if after == 0.0 else max(0.0, np.log(before / after))


@kernel
def _missed(routes: Routes, state: State, kind: int, place: int) -> float:
    """Return by which factor a shown node of this type makes interception less likely in one scenario."""
    missed = 1.0
    for route in range(routes.indptr[kind], routes.indptr[kind + 1]):
        hop = routes.hops[route]
        p, survives = routes.p_first[hop], state.memory[place + 1 + state.hop_place[hop]]
        if p + survives > 0.0:
            missed *= (p + survives * routes.misses[route]) / (p + survives)
        else:
            missed = 0.0  # this hop always lets a message through already
    return missed


@kernel
def push(routes: Routes, state: State, kind: int) -> bool:
    """Make one more node of type ``kind`` hostile; False, and nothing changed, if the budget does not allow it."""
    number = state.component[kind]
    begin, size, memory = state.start[number], state.scenarios[number], state.memory
    width = 1 if state.by_subsets[number] else 1 + state.num_component_hops[number]
    a = routes.p_ablate[kind]
    one_hop = routes.indptr[kind + 1] - routes.indptr[kind] == 1
    doubles = not (state.by_subsets[number] or one_hop or a == 0.0)
    new_size = 2 * size if doubles else size
    new = state.top[0]
    if new + new_size * width > memory.size or new_size > MOST_SCENARIOS or state.work[0] > state.work[1]:
        return False
    state.work[0] += new_size * width
    memory[new : new + size * width] = memory[begin : begin + size * width]
    if state.by_subsets[number]:
        for subset in range(size):
            memory[new + subset] *= memory[state.factors[kind] + subset]
    elif one_hop:
        route = routes.indptr[kind]
        left = a + (1.0 - a) * routes.misses[route]
        for scenario in range(size):
            place = new + scenario * width
            memory[place] *= a + (1.0 - a) * _missed(routes, state, kind, place)
            memory[place + 1 + state.hop_place[routes.hops[route]]] *= left
    else:
        shown = new + (new_size - size) * width  # the scenarios in which it is shown, after those in which it is not
        if doubles:
            memory[shown : shown + size * width] = memory[new : new + size * width]
        for scenario in range(size):
            place = shown + scenario * width
            memory[place] *= (1.0 - a) * _missed(routes, state, kind, place)
            for route in range(routes.indptr[kind], routes.indptr[kind + 1]):
                memory[place + 1 + state.hop_place[routes.hops[route]]] *= routes.misses[route]
            if doubles:
                memory[new + scenario * width] *= a
    depth = state.top[1]
    state.undo[depth, 0], state.undo[depth, 1], state.undo[depth, 2] = number, begin, size
    state.start[number], state.scenarios[number] = new, new_size
    state.top[0], state.top[1], state.top[2] = new + new_size * width, depth + 1, max(state.top[2], new_size)
    return True


@kernel
def pop(state: State) -> None:
    """Undo the last ``push``."""
    depth = state.top[1] - 1
    number = state.undo[depth, 0]
    state.top[0], state.top[1] = state.start[number], depth
    state.start[number], state.scenarios[number] = state.undo[depth, 1], state.undo[depth, 2]


@kernel
def relative_error(routes: Routes, state: State, num_nodes: int) -> float:
    """Return a bound on the relative error of every g(S) with at most ``num_nodes`` hostile nodes seen so far.

    Per node, a scenario of surviving hops costs a rounding per route and 3 more. In a scenario of ablated nodes a route
    costs 6 and, since the hop's survival has up to 4 from each node before, 4j for the node with j before it: on
    average 2·num_nodes + 4; and 4 more per node. A scenario starts with at most two per hop, and sums of n terms add
    n. First order terms, doubled (docs/proofs/two_level.md).
    """
    most_routes = 0
    for kind in range(routes.copies.size):
        most_routes = max(most_routes, routes.indptr[kind + 1] - routes.indptr[kind])
    per_node = most_routes + 3 if state.by_subsets.all() else most_routes * (2 * num_nodes + 4) + 4
    rounded = num_nodes * per_node + 2 * state.num_component_hops.max() + state.top[2]
    return float(2.0 * rounded * _UNIT)
