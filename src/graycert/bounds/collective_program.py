"""How many targets one set of hostile nodes can flip: a linear program, whose bound is checked in integers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graycert._types import FloatArray, IntArray

Row = tuple[IntArray, IntArray]
Sparse = Any  # scipy.sparse.csr_array: SciPy's stubs do not know that its solvers take one

GRID = 2**20
"""All coefficients and multipliers are integers in units of 1/GRID, so that the bound involves no rounding."""

MAX_TARGETS = 2**20
"""Up to here no int64 overflows: a node's price is at most GRID² for each target, 2^60 in total."""

UNLIMITED = 2**62

# Two logarithms, each within 4 units in the last place, and a division: below 2^-48. Far below a step of the grid.
_RATIO_SLACK = 1.0 + 2.0**-45
_SMALLEST_MARGIN = 1e-300  # below it, the ratio of two subnormal numbers would be inaccurate

# Ten times the tolerance to which HiGHS fulfils constraints: it may not take a real attack for an infeasible one.
_INTEGER_SLACK = 1e-5

_STATUS = {0: "optimal", 1: "limit"}


@dataclass(frozen=True, kw_only=True, eq=False)
class FlipWeights:
    r"""How much each node contributes to flipping one target.

    $$a_w = \min\Bigl(1, \frac{-\log(1-\overline{\Delta}_w)}{-\log(1-m/2)}\Bigr)$$

    Guarantee:
        For a set B of nodes without a decisive one, Δ(B) >= m/2 implies that the ``weights`` of B sum to at least
        ``GRID``, and that B has more than ``radius`` nodes of positive weight. Rounded up to the grid.

    Attributes:
        nodes: Nodes with a message that may arrive, by decreasing weight; without the decisive ones.
        weights: a_w in units of 1/GRID, in [1, GRID].
        decisive: Nodes with Δ̄_w = 1: each alone counts as flipping the target, whatever ``radius`` says.
        radius: The larger of the given radius and the one that follows from the weights; ``UNLIMITED`` if no number
            of nodes suffices.
    """

    nodes: IntArray
    weights: IntArray
    decisive: IntArray
    radius: int

    @classmethod
    def of(cls, nodes: IntArray, delta_sources: FloatArray, *, margin: float, radius: int) -> Self:
        """Weigh the nodes of one target, whose lead ``margin`` is positive."""
        is_decisive = delta_sources == 1.0
        weights = _weights(delta_sources[~is_decisive], margin)
        return cls.weighed(nodes[~is_decisive], weights, decisive=nodes[is_decisive], radius=radius)

    @classmethod
    def weighed(cls, nodes: IntArray, weights: IntArray, *, decisive: IntArray, radius: int) -> Self:
        """Sort nodes by their weights, in [1, GRID], and look how many of them it takes at least."""
        order = np.argsort(-weights, kind="stable")
        ordered = weights[order]
        own = int(np.searchsorted(ordered.cumsum(), GRID))
        return cls(
            nodes=nodes[order],
            weights=ordered,
            decisive=decisive,
            radius=max(radius, UNLIMITED if own == ordered.size else own),
        )

    def is_robust(self, budget: int) -> bool:
        """Return whether no ``budget`` nodes flip this target, whatever happens to the others."""
        return self.radius >= budget and not self.decisive.size

    def rows(self, budget: int) -> list[Row]:
        """Return conditions that hold for every set of at most ``budget`` nodes that flips the target.

        Each is a pair (nodes, coefficients) and says that the coefficients of the set sum to at least ``GRID``.
        """
        return [
            (
                np.concatenate([self.decisive, self.nodes[: coefficients.size]]),
                np.concatenate([np.full(self.decisive.size, GRID), coefficients]),
            )
            for coefficients in self._conditions(budget)
        ]

    def _conditions(self, budget: int) -> list[IntArray]:
        """Return coefficients of the heaviest nodes, for sets without decisive nodes; none flips: no coefficients."""
        if self.radius >= budget:
            return [np.zeros(0, dtype=np.int64)]
        heaviest = int(self.weights[: budget - 1].sum())
        useful = self.weights[self.weights >= GRID - heaviest]  # others are too light for any set of ``budget`` nodes
        needed = _needed_among_heaviest(useful, budget)
        needed[useful.size] = max(needed.get(useful.size, 0), self.radius + 1)
        return [useful, *(np.full(length, -(-GRID // count)) for length, count in needed.items())]


def _needed_among_heaviest(weights: IntArray, budget: int) -> dict[int, int]:
    """Return pairs j: i such that a flipping set has at least i of the j heaviest nodes; the largest i for each j.

    With only i - 1 of them, the best set takes the i - 1 heaviest and the next best after the first j.
    """
    totals = np.concatenate([[0], weights.cumsum()])
    needed: dict[int, int] = {}
    count = 1
    while count <= weights.size and totals[count - 1] < GRID:
        lengths = np.arange(count - 1, weights.size + 1)
        last = np.minimum(lengths + budget - count + 1, weights.size)
        best = totals[count - 1] + totals[last] - totals[lengths]
        needed[int(lengths[np.argmax(best < GRID)])] = count  # the last entry is totals[count - 1]
        count += 1
    return needed


def _weights(delta_sources: FloatArray, margin: float) -> IntArray:
    enough = (2.0 * delta_sources >= margin) | (margin < _SMALLEST_MARGIN)
    with np.errstate(all="ignore"):  # where the ratio means nothing, ``enough`` holds
        ratio = np.log1p(-delta_sources) / np.log1p(-margin / 2.0)
        steps = np.ceil(ratio * _RATIO_SLACK * GRID)
    return np.where(enough, GRID, np.fmin(steps, GRID)).astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class CollectiveProgram:
    r"""Maximise the number of flipped targets over sets of nodes within the budgets.

    $$\max \sum_t y_t \quad\text{with}\quad y_t \le \sum_w c_{rw} x_w \text{ for each condition } r \text{ of } t,
    \quad \sum_w x_w \le \rho, \quad \sum_{w \in g} x_w \le \rho_g, \quad 0 \le x, y \le 1$$

    Attributes:
        coefficients: c in units of 1/GRID, int64, shape (num_rows, num_columns); one column per node that matters.
        owners: The target of each row, in [0, num_open).
        num_open: Number of targets that some set within the budget might flip.
        budget: Largest number ρ of hostile nodes.
        groups: The group of each column, -1 for none, shape (num_columns,).
        group_budgets: Largest number of hostile nodes of each group.
    """

    coefficients: Sparse
    owners: IntArray
    num_open: int
    budget: int
    groups: IntArray
    group_budgets: IntArray

    @classmethod
    def of(cls, targets: Sequence[FlipWeights], *, budget: int, groups: IntArray, group_budgets: IntArray) -> Self:
        """Collect the conditions of all targets that are not robust by themselves."""
        opened = [target.rows(budget) for target in targets if not target.is_robust(budget)]
        rows = [row for conditions in opened for row in conditions]
        owners = np.repeat(np.arange(len(opened)), [len(conditions) for conditions in opened])
        nodes, columns = np.unique(_joined([row[0] for row in rows]), return_inverse=True)
        indptr = np.cumsum([0, *(row[0].size for row in rows)])
        coefficients = sparse.csr_array(
            (_joined([row[1] for row in rows]), columns, indptr), shape=(len(rows), nodes.size)
        )
        return cls(
            coefficients=coefficients,
            owners=owners,
            num_open=len(opened),
            budget=budget,
            groups=groups[nodes],
            group_budgets=group_budgets,
        )

    def most_flips(self, multipliers: FloatArray) -> int:
        """Return an upper bound in [0, num_open] on the number of targets that a set within the budgets flips."""
        return min(self.num_open, self.dual_value(multipliers) // GRID**2)

    def dual_value(self, multipliers: FloatArray) -> int:
        r"""Bound the value of the program by weak duality, in exact integer arithmetic.

        $$\sum_t (1-u_t) + \max_B \sum_{w \in B}\sum_r u_r c_{rw}, \qquad u_t = \sum_{r \text{ of } t} u_r \le 1$$

        Guarantee:
            At least the number of targets that any set within the budgets flips, whatever the multipliers. With optimal
            ones it is the value of the linear program, up to rounding them to the grid.

        Args:
            multipliers: u_r per row, shape (num_rows,). Those of a target that sum to more than 1 are scaled down;
                anything that is not a positive number counts as 0.

        Returns:
            An integer in units of 1/GRID².
        """
        shares = self._shares(multipliers)
        prices = self.coefficients.T @ shares
        unused = GRID * self.num_open - int(shares.sum())
        return GRID * unused + self._costliest(prices)

    def _shares(self, multipliers: FloatArray) -> IntArray:
        """Return the multipliers as integers of the grid, at most GRID for each target."""
        clipped = np.clip(np.nan_to_num(multipliers, nan=0.0), 0.0, 1.0)
        shares = np.rint(clipped * GRID).astype(np.int64)
        totals = np.zeros(self.num_open, dtype=np.int64)
        np.add.at(totals, self.owners, shares)
        total = totals[self.owners]
        return np.where(total > GRID, shares * GRID // np.maximum(total, 1), shares)

    def _costliest(self, prices: IntArray) -> int:
        """Return the largest total price of a set within the budgets: the greedy choice is optimal."""
        order = np.lexsort((-prices, self.groups))
        ordered = self.groups[order]
        rank = np.arange(order.size) - np.searchsorted(ordered, ordered)
        limits = np.append(self.group_budgets, order.size)[ordered]  # group -1 takes the last entry: no limit
        affordable = np.sort(prices[order[rank < limits]])[::-1]
        return sum(affordable[: self.budget].tolist())  # Python's integers do not overflow

    def relaxed_multipliers(self, *, time_limit: float) -> tuple[FloatArray, str]:
        """Solve the linear program with HiGHS; return the multipliers of its rows and how it ended.

        Nothing is guaranteed about them: ``most_flips`` makes a bound of any multipliers.
        """
        from scipy.optimize import linprog  # takes a while to load

        result = linprog(
            self._objective,
            A_ub=self._constraints,
            b_ub=self._limits(0.0),
            bounds=(0.0, 1.0),
            method="highs",
            options={"time_limit": time_limit},
        )
        marginals = getattr(result.get("ineqlin"), "marginals", None)
        if marginals is None:
            return np.zeros(self.owners.size), _STATUS.get(result.status, "failed")
        return -np.asarray(marginals)[: self.owners.size], _STATUS.get(result.status, "failed")

    def integer_flips(self, *, time_limit: float) -> tuple[int, str]:
        """Bound the number of flips with x, y in {0, 1} by HiGHS' branch and bound; return how it ended, too.

        Guarantee:
            None in floating point: the solver's bound is taken at its word. Every row is relaxed by 1e-5, ten times
            the solver's tolerance, so that a set that flips a target is feasible with room to spare.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp

        result = milp(
            self._objective,
            constraints=LinearConstraint(self._constraints, -np.inf, self._limits(_INTEGER_SLACK)),
            integrality=np.ones(self._objective.size, dtype=np.int64),
            bounds=Bounds(0.0, 1.0),
            options={"time_limit": time_limit},
        )
        status = _STATUS.get(result.status, "failed")
        dual_bound = result.get("mip_dual_bound")
        if status == "failed" or dual_bound is None or not np.isfinite(dual_bound):
            return self.num_open, status
        return min(self.num_open, int(np.floor(1e-6 - dual_bound))), status

    @cached_property
    def _objective(self) -> FloatArray:
        return np.concatenate([np.zeros(self.groups.size), -np.ones(self.num_open)])

    @cached_property
    def _constraints(self) -> Sparse:
        """Return the rows, the budget and the budgets of the groups over the variables (x, y)."""
        num_rows, num_columns = self.coefficients.shape
        grouped = np.flatnonzero(self.groups >= 0)
        target_of_row = _indicator(np.arange(num_rows), self.owners, shape=(num_rows, self.num_open))
        everyone = _indicator(np.zeros(num_columns), np.arange(num_columns), shape=(1, num_columns))
        members = _indicator(self.groups[grouped], grouped, shape=(self.group_budgets.size, num_columns))
        blocks: list[list[Sparse]] = [
            [self.coefficients / -GRID, target_of_row],
            [sparse.vstack([everyone, members]), None],
        ]
        return sparse.csr_array(sparse.block_array(blocks))

    def _limits(self, slack: float) -> FloatArray:
        return np.concatenate([np.full(self.owners.size, slack), [self.budget], self.group_budgets]).astype(np.float64)


def _indicator(rows: NDArray[Any], columns: NDArray[Any], *, shape: tuple[int, int]) -> Sparse:
    return sparse.csr_array((np.ones(columns.size), (rows.astype(np.int64), columns)), shape=shape)


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])
