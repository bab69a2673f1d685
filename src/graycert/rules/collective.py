"""One adversary against all targets: how many predictions survive if the hostile nodes are shared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from graycert._types import FloatArray, IntArray
from graycert._validation import check_choice, check_integer_array, check_mask, check_positive
from graycert.bounds.collective_program import MAX_TARGETS, UNLIMITED, CollectiveProgram, FlipWeights
from graycert.errors import InvalidParameterError

COLLECTIVE_METHODS = ("lp", "milp")


@dataclass(frozen=True, kw_only=True, eq=False)
class CollectiveCertificate:
    """How many targets keep their prediction, whichever nodes one adversary controls.

    Attributes:
        budgets: Numbers ρ of hostile nodes, shape (num_budgets,).
        num_robust: At least so many active targets keep their prediction under any ρ hostile nodes; never rises with ρ.
        num_robust_naive: The number of targets whose own certificate covers any ρ untrusted nodes; never larger than
            ``num_robust``. One of these may be too close for the threat, such as the target itself where
            ``min_distance`` is 1; no certificate covers that, so that the number is then 0 without trusted nodes.
        num_active: Number of targets with a positive margin; the others abstain and are not counted.
        proved_by: What proved ``num_robust``: "naive", "lp" or "milp", per budget. Only "milp" rests on the solver.
        solver_status: How the last solver for the budget ended: "optimal", "limit", "failed", or "not needed".
        groups: Group of each node that the adversary was held to, -1 for none, shape (num_nodes,); None for no groups.
        group_budgets: Most hostile nodes per group, shape (num_groups,); None for no groups.
    """

    budgets: IntArray
    num_robust: IntArray
    num_robust_naive: IntArray
    num_active: int
    proved_by: tuple[str, ...]
    solver_status: tuple[str, ...]
    groups: IntArray | None = None
    group_budgets: IntArray | None = None


def collective_certificate(
    delta_sources: Any,
    margin: ArrayLike,
    *,
    budgets: ArrayLike,
    radius: ArrayLike | None = None,
    whole_field: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    group_budgets: ArrayLike | None = None,
    method: str = "lp",
    time_limit: float = 60.0,
) -> CollectiveCertificate:
    r"""Bound from below how many targets keep their prediction when ρ hostile nodes are shared by all of them.

    $$\text{target } t \text{ flips} \;\Rightarrow\; \Delta_t(B) \ge m_t/2 \;\Rightarrow\;
    \sum_{w \in B} -\log(1-\overline{\Delta}_{tw}) \ge -\log(1-m_t/2)$$

    In log space Theorem 3 is linear, so the number of targets that one set B can flip is at most the value of a linear
    program. A certificate per target lets every target meet its own worst nodes; here all meet the same.

    Guarantee:
        If every entry is at least $\Delta_w$ for its target, and all margins and radii hold, then for each set B of at
        most ρ nodes within the budgets at least ``num_robust`` active targets keep their prediction. With margins and
        radii that hold together with probability 1 - α (each target at level α/num_targets), so does this. Entries of
        0 for nodes that can reach the target but are not eligible are a promise: targets whose own out-of-scope nodes
        are hostile have no guarantee, and can be lost beyond those counted. Method "lp" takes multipliers from a
        floating-point solver and evaluates their bound in integers: sound whatever the solver did. Method "milp"
        trusts the dual bound of HiGHS' branch and bound, with a margin for its tolerances: not a proof.

    Args:
        delta_sources: Upper bounds of Δ_w, sparse or dense, in [0, 1], shape (num_targets, num_nodes); 0 where the
            node cannot reach the target. An entry of 1 says that this hostile node counts as flipping the target
            whatever its radius: so for a target that may be hostile itself and shows its own features.
        margin: Simultaneous lower bounds on the lead of the reported class over every other class (with two classes
            2p - 1), in [-1, 1], shape (num_targets,).
        budgets: Numbers ρ of hostile nodes, rising, >= 1, shape (num_budgets,).
        radius: Radii of any certificate per target at the same simultaneous level, against all nodes with an entry
            between 0 and 1, >= -1, shape (num_targets,). None takes what follows from ``delta_sources``.
        whole_field: Whether the target is certified however many of these nodes are hostile, shape (num_targets,).
        groups: The group of each node, -1 for none, shape (num_nodes,).
        group_budgets: Largest number of hostile nodes of each group, >= 0, shape (num_groups,).
        method: "lp", or "milp", which tries to improve it with binary variables.
        time_limit: Seconds for each solver and budget; results of "milp" depend on it.

    Returns:
        Counts per budget.

    Raises:
        InvalidParameterError: If an argument is outside its domain or the shapes disagree.

    Example:
        >>> # One hostile node flips the target it can reach; two targets share no node.
        >>> deltas = [[0.4, 0.0], [0.0, 0.4]]
        >>> certificate = collective_certificate(deltas, [0.6, 0.6], budgets=[1, 2])
        >>> certificate.num_robust.tolist(), certificate.num_robust_naive.tolist()
        ([1, 0], [0, 0])

    References:
        Schuchardt et al. (2021) for the idea of collective certificates; docs/proofs/collective.md.
    """
    deltas = _check_deltas(delta_sources)
    margins = _check_margin(margin, deltas.shape[0])
    radii = _check_radii(radius, whole_field, deltas.shape[0])
    targets = [
        FlipWeights.of(
            deltas.indices[deltas.indptr[row] : deltas.indptr[row + 1]].astype(np.int64),
            deltas.data[deltas.indptr[row] : deltas.indptr[row + 1]],
            margin=float(margins[row]),
            radius=int(radii[row]),
        )
        for row in np.flatnonzero(margins > 0.0)
    ]
    return surviving_targets(
        targets,
        num_nodes=deltas.shape[1],
        budgets=budgets,
        groups=groups,
        group_budgets=group_budgets,
        method=method,
        time_limit=time_limit,
    )


def surviving_targets(
    targets: Sequence[FlipWeights],
    *,
    num_nodes: int,
    budgets: ArrayLike,
    groups: ArrayLike | None = None,
    group_budgets: ArrayLike | None = None,
    method: str = "lp",
    time_limit: float = 60.0,
    exact: Callable[[int, IntArray, IntArray], tuple[int, str]] | None = None,
) -> CollectiveCertificate:
    """Count the targets that keep their prediction under shared hostile nodes, from what each takes to flip.

    Guarantee:
        Method "lp": as sound as the weights, whatever the solver does.

    Args:
        targets: One for each active target.
        num_nodes: Number of nodes of the graph, which ``groups`` is about.
        budgets: See `collective_certificate`, as for the other arguments.
        groups: Likewise.
        group_budgets: Likewise.
        method: Likewise.
        time_limit: Likewise.
        exact: What method "milp" asks instead of the program of the weights: called with a budget, the group of each
            node and the budgets of the groups; returns an upper bound on the flips, and how the solver ended.

    Raises:
        InvalidParameterError: If an argument is outside its domain or the shapes disagree.
    """
    budget_list = check_budgets(budgets).tolist()
    group_of, limits = _check_groups(groups, group_budgets, num_nodes)
    method = check_choice("method", method, COLLECTIVE_METHODS)
    time_limit = check_positive("time_limit", time_limit)
    results = []
    for budget in budget_list:
        program = CollectiveProgram.of(targets, budget=budget, groups=group_of, group_budgets=limits)
        ask = None if exact is None else partial(exact, budget, group_of, limits)
        results.append((*_most_flips(program, method, time_limit, ask), len(targets) - program.num_open))
    found = _collect(budget_list, results, num_active=len(targets))
    return found if groups is None else replace(found, groups=group_of, group_budgets=limits)


def _most_flips(
    program: CollectiveProgram, method: str, time_limit: float, exact: Callable[[], tuple[int, str]] | None
) -> tuple[int, str, str]:
    """Return an upper bound on the number of flips, what proved it, and how the solver ended."""
    flips, proved_by = program.num_open, "naive"
    if not flips:
        return flips, proved_by, "not needed"
    multipliers, status = program.relaxed_multipliers(time_limit=time_limit)
    relaxed = program.most_flips(multipliers)
    if relaxed < flips:
        flips, proved_by = relaxed, "lp"
    if method == "milp":
        integer, status = program.integer_flips(time_limit=time_limit) if exact is None else exact()
        if integer < flips:
            flips, proved_by = integer, "milp"
    return flips, proved_by, status


def _collect(budgets: list[int], results: list[tuple[int, str, str, int]], *, num_active: int) -> CollectiveCertificate:
    """Turn flips into counts that never rise with the budget: what survives ρ + 1 hostile nodes survives ρ."""
    num_robust = [num_active - flips for flips, _, _, _ in results]
    proved_by = [name for _, name, _, _ in results]
    for index in range(len(budgets) - 2, -1, -1):
        if num_robust[index + 1] > num_robust[index]:
            num_robust[index], proved_by[index] = num_robust[index + 1], proved_by[index + 1]
    return CollectiveCertificate(
        budgets=np.array(budgets, dtype=np.int64),
        num_robust=np.array(num_robust, dtype=np.int64),
        num_robust_naive=np.array([naive for _, _, _, naive in results], dtype=np.int64),
        num_active=num_active,
        proved_by=tuple(proved_by),
        solver_status=tuple(status for _, _, status, _ in results),
    )


def _check_deltas(delta_sources: Any) -> Any:
    table: Any = delta_sources if sparse.issparse(delta_sources) else np.asarray(delta_sources)
    if table.ndim != 2 or table.dtype.kind not in "fiu":
        raise InvalidParameterError(
            "`delta_sources` must be a sparse or dense array of numbers, shape (num_targets, num_nodes), "
            f"got {table.ndim} axes of dtype {table.dtype}. Row i holds the bounds of target i."
        )
    deltas: Any = sparse.csr_array(table, dtype=np.float64, copy=True)
    deltas.sum_duplicates()
    deltas.eliminate_zeros()
    refused = deltas.data[~((deltas.data >= 0.0) & (deltas.data <= 1.0))]  # NaN too
    if refused.size:
        raise InvalidParameterError(
            f"`delta_sources` must be in [0, 1], got {refused[0]}. It bounds a probability; equal positions add up."
        )
    if deltas.shape[0] > MAX_TARGETS:
        raise InvalidParameterError(
            f"`delta_sources` must have at most {MAX_TARGETS} rows, got {deltas.shape[0]}. Split the targets."
        )
    return deltas


def _check_margin(margin: ArrayLike, num_targets: int) -> FloatArray:
    margins = np.asarray(margin, dtype=np.float64)
    if margins.shape != (num_targets,):
        raise InvalidParameterError(
            f"`margin` must have shape ({num_targets},), got {margins.shape}. It has one entry per row of "
            "`delta_sources`."
        )
    refused = margins[~((margins >= -1.0) & (margins <= 1.0))]
    if refused.size:
        raise InvalidParameterError(
            f"`margin` must be in [-1, 1], got {refused[0]}. It is a difference of probabilities, not of votes."
        )
    return margins


def check_budgets(budgets: ArrayLike) -> IntArray:
    """Return numbers of hostile nodes as integers, checked.

    Raises:
        InvalidParameterError: If they are no rising list of integers >= 1.
    """
    array = check_integer_array("budgets", budgets, ndim=1, at_least=1, hint="Pass numbers of hostile nodes.")
    if array.size == 0 or (np.diff(array) <= 0).any():
        raise InvalidParameterError(
            f"`budgets` must be a rising list of at least one number, got {array.tolist()}. Sort it, without repeats."
        )
    return array


def _check_radii(radius: ArrayLike | None, whole_field: ArrayLike | None, num_targets: int) -> IntArray:
    """Return the radii, UNLIMITED where the whole field is certified; a positive margin is radius 0."""
    radii = np.zeros(num_targets, dtype=np.int64)
    if radius is not None:
        given = check_integer_array("radius", radius, ndim=1, at_least=-1, hint="-1 means that the target abstains.")
        if given.shape != (num_targets,):
            raise InvalidParameterError(
                f"`radius` must have shape ({num_targets},), got {given.shape}. It has one entry per target."
            )
        radii = np.maximum(given, 0)
    if whole_field is None:
        return radii
    whole = check_mask("whole_field", whole_field, num_nodes=num_targets, hint="It has one entry per target.")
    return np.where(whole, UNLIMITED, radii)


def _check_groups(
    groups: ArrayLike | None, group_budgets: ArrayLike | None, num_nodes: int
) -> tuple[IntArray, IntArray]:
    """Return the group of each node and the budgets of the groups; no groups if none are given."""
    if groups is None and group_budgets is None:
        return np.full(num_nodes, -1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if groups is None or group_budgets is None:
        raise InvalidParameterError(
            "`groups` and `group_budgets` must be given together. One says where each node belongs, the other how "
            "many nodes of each group may be hostile."
        )
    limits = check_integer_array("group_budgets", group_budgets, ndim=1, at_least=0)
    group_of = check_integer_array(
        "groups",
        groups,
        ndim=1,
        at_least=-1,
        less_than=limits.size,
        hint="A group is an index of `group_budgets`, or -1 for none.",
    )
    if group_of.shape != (num_nodes,):
        raise InvalidParameterError(
            f"`groups` must have shape ({num_nodes},), got {group_of.shape}. It has one entry per node."
        )
    return group_of, limits
