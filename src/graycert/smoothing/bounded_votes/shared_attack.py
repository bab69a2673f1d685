"""The worst attack of one adversary on all targets of votes, as a mixed integer program."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from graycert._types import FloatArray, IntArray

if TYPE_CHECKING:
    from graycert.smoothing.bounded_votes.collective import Contest

_ONE = 2.0**20
_SLACK = 1e-5  # ten times the tolerance of HiGHS: it may not take a real attack for an infeasible one
_STATUS = {0: "optimal", 1: "limit"}


def most_falls(
    contests: Sequence["Contest"],
    budget: int,
    groups: IntArray,
    group_budgets: IntArray,
    *,
    one_hot: bool,
    time_limit: float,
) -> tuple[int, str]:
    r"""Return how many targets one set of hostile nodes with one vote each makes fall, by HiGHS' branch and bound.

    $$\max \sum_t \Bigl(o_t + \sum_{c} k_{tc}\Bigr), \quad
    \text{need}_{tc} - \sum_w u_{tw}\bigl[b_w (Q_y - Q_c)(w) + r_{wc} - r_{wy}\bigr] \le M_{tc} (1 - k_{tc}), \quad
    \sum_c r_{wc} = b_w$$

    b says who is hostile, r what they vote, k which class wins where, o which targets have a decisive hostile node.

    Guarantee:
        An upper bound as far as the solver's own bound is one, with a margin for its tolerances; the exact number if it
        ends as "optimal" and no attack misses its end by a few units of 2^-20.

    Args:
        contests: One for each target.
        budget: Largest number ρ of hostile nodes.
        groups: The group of each node, -1 for none.
        group_budgets: Largest number of hostile nodes of each group.
        one_hot: Whether a hostile node votes for one class alone.
        time_limit: Seconds.

    Returns:
        The bound, and how the solver ended.

    References:
        docs/proofs/bounded_votes_collective.md, Statement 3.
    """
    opened = [contest for contest in contests if contest.radius < budget or contest.decisive.size]
    if not opened:
        return 0, "not needed"
    program = _Program(opened, budget=budget, groups=groups, group_budgets=group_budgets)
    return program.solved(one_hot=one_hot, time_limit=time_limit)


class _Program:
    """Rows and columns; the columns are b, then r by node and class, then k by target and class, then o."""

    def __init__(
        self, contests: Sequence["Contest"], *, budget: int, groups: IntArray, group_budgets: IntArray
    ) -> None:
        self.contests, self.budget = contests, budget
        self.num_classes = contests[0].needs.size
        self.nodes = np.unique(np.concatenate([np.append(each.nodes, each.decisive) for each in contests]))
        self.groups, self.group_budgets = groups[self.nodes], group_budgets
        self.num_nodes, self.num_targets = self.nodes.size, len(contests)
        self.first_vote = self.num_nodes
        self.first_win = self.first_vote + self.num_nodes * self.num_classes
        self.first_loss = self.first_win + self.num_targets * self.num_classes
        self.num_columns = self.first_loss + self.num_targets
        self.entries: list[tuple[IntArray, FloatArray]] = []
        self.low: list[float] = []
        self.high: list[float] = []

    def solved(self, *, one_hot: bool, time_limit: float) -> tuple[int, str]:
        """Build all rows and solve."""
        from scipy.optimize import Bounds, LinearConstraint, milp  # takes a while to load

        upper = np.ones(self.num_columns)
        for number, contest in enumerate(self.contests):
            self._add_target(number, contest, one_hot=one_hot)
            upper[self.first_win + number * self.num_classes + contest.prediction] = 0.0
        for place in range(self.num_nodes):
            votes = self.first_vote + place * self.num_classes + np.arange(self.num_classes)
            self._add(np.append(votes, place), np.append(np.ones(votes.size), -1.0), low=0.0, high=0.0)
        self._add(np.arange(self.num_nodes), np.ones(self.num_nodes), high=float(self.budget))
        for group, most in enumerate(self.group_budgets.tolist()):
            members = np.flatnonzero(self.groups == group)
            self._add(members, np.ones(members.size), high=float(most))
        integral = np.ones(self.num_columns, dtype=np.int64)
        integral[self.first_vote : self.first_win] = one_hot
        goal = np.zeros(self.num_columns)
        goal[self.first_win :] = -1.0
        result = milp(
            goal,
            constraints=LinearConstraint(self._matrix(), np.array(self.low), np.array(self.high)),
            integrality=integral,
            bounds=Bounds(0.0, upper),
            options={"time_limit": time_limit},
        )
        status, bound = _STATUS.get(result.status, "failed"), result.get("mip_dual_bound")
        if status == "failed" or bound is None or not np.isfinite(bound):
            return self.num_targets, status
        return min(self.num_targets, int(np.floor(1e-6 - bound))), status

    def _add_target(self, number: int, contest: "Contest", *, one_hot: bool) -> None:
        places = np.searchsorted(self.nodes, contest.nodes)
        wins = self.first_win + number * self.num_classes
        loss = self.first_loss + number
        y = contest.prediction
        whole = contest.weights / _ONE
        for rival in range(self.num_classes):
            if rival == y:
                continue
            honest = contest.hits[:, rival] / _ONE - whole  # u (Q_y - Q_c)
            need = _attainable(contest, rival) / _ONE if one_hot else contest.needs[rival] / _ONE
            least = np.sort(np.minimum(honest - whole, 0.0))[: self.budget].sum()
            votes = self.first_vote + places * self.num_classes
            self._add(
                np.concatenate([places, votes + rival, votes + y, [wins + rival]]),
                np.concatenate([-honest, -whole, whole, [need - least]]),
                high=-least + _SLACK,
            )
        classes = np.arange(self.num_classes)
        self._add(np.append(wins + classes, loss), np.ones(self.num_classes + 1), high=1.0)
        decisive = np.searchsorted(self.nodes, contest.decisive)
        self._add(np.append(loss, decisive), np.append(1.0, -np.ones(decisive.size)), high=0.0)

    def _add(self, columns: IntArray, values: Any, *, low: float = -np.inf, high: float) -> None:
        self.entries.append((columns.astype(np.int64), np.asarray(values, dtype=np.float64)))
        self.low.append(low)
        self.high.append(high)

    def _matrix(self) -> Any:
        indptr = np.cumsum([0, *(columns.size for columns, _ in self.entries)])
        columns = np.concatenate([columns for columns, _ in self.entries])
        values = np.concatenate([values for _, values in self.entries])
        return sparse.csr_array((values, columns, indptr), shape=(len(self.entries), self.num_columns))


def _attainable(contest: "Contest", rival: int) -> int:
    """Return the need, rounded up to what whole votes can add up to, so that a tie is no near-tie for the solver."""
    step = int(np.gcd.reduce(np.concatenate([contest.hits[:, rival], contest.weights])))
    need = int(contest.needs[rival])
    return -(-need // step) * step if step else need
