"""One adversary against all targets of votes: compared with every set of hostile nodes and every vote of theirs."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from graycert.smoothing.bounded_votes.ballots import ONE
from graycert.smoothing.bounded_votes.collective import Contest, against_one_adversary
from graycert.smoothing.bounded_votes.takeover import UNLIMITED

Array = Any


class Voting:
    """Random voters, weights, votes and offsets on a few nodes, all of which are targets."""

    def __init__(self, seed: Any, *, one_hot: bool, num_nodes: int = 5, num_classes: int | None = None) -> None:
        rng = np.random.default_rng(seed)
        self.n, self.num_classes = num_nodes, num_classes or int(rng.integers(2, 4))
        self.one_hot = one_hot
        self.target_reads_itself = bool(rng.integers(2))
        shares = rng.multinomial(8, rng.dirichlet(np.full(self.num_classes, 0.5), size=self.n)).astype(np.int64)
        peaks = np.eye(self.num_classes, dtype=np.int64)[shares.argmax(axis=1)]
        self.votes = ONE * peaks if self.one_hot else (ONE // 8) * shares
        self.own = rng.integers(-4, 5, size=(self.n, self.num_classes)) * (ONE // 2) * int(rng.integers(2))
        self.weights = rng.choice([0, 1, 1, 2], size=(self.n, self.n)) if rng.integers(2) else np.ones((self.n, self.n))
        self.weights = self.weights.astype(np.int64) * (rng.random((self.n, self.n)) < rng.choice([0.4, 0.8]))
        np.fill_diagonal(self.weights, 0 if self.target_reads_itself else 1)
        self.trusted = rng.random(self.n) < 0.2

    def scores(self, votes: Array) -> Array:
        """Scores of all targets, shape (n, num_classes); ``weights[t, w]`` is what w counts for t."""
        return np.asarray(self.own + self.weights @ votes)

    def contests(self) -> list[Contest]:
        scores = self.scores(self.votes)
        made = []
        for target in range(self.n):
            y = int(scores[target].argmax())
            lead = scores[target, y] - scores[target]
            nodes = np.flatnonzero((self.weights[target] > 0) & ~self.trusted)
            units = self.weights[target, nodes]
            hits = units[:, None] * (ONE + self.votes[nodes][:, [y]] - self.votes[nodes])
            needs = lead + (y < np.arange(self.num_classes))
            hostile_itself = self.target_reads_itself and not self.trusted[target]
            made.append(
                Contest(
                    prediction=y,
                    needs=needs,
                    nodes=nodes,
                    weights=units * ONE,
                    hits=hits,
                    decisive=np.array([target] if hostile_itself else [], dtype=np.int64),
                    radius=single_radius(hits, needs, y),
                )
            )
        return made

    def sets(self, budget: int) -> list[tuple[int, ...]]:
        free = np.flatnonzero(~self.trusted).tolist()
        return [chosen for number in range(min(budget, len(free)) + 1) for chosen in combinations(free, number)]

    def falls(self, votes: Array, hostile: tuple[int, ...]) -> Array:
        """Which targets no longer have their class, or read a hostile row of their own."""
        fallen = self.scores(votes).argmax(axis=1) != self.scores(self.votes).argmax(axis=1)
        if self.target_reads_itself:
            fallen[list(hostile)] = True
        return fallen

    def most_falls(self, budget: int) -> int:
        """Try everything, with one-hot votes."""
        most = 0
        for hostile in self.sets(budget):
            for classes in product(range(self.num_classes), repeat=len(hostile)):
                votes = self.votes.copy()
                votes[list(hostile)] = ONE * np.eye(self.num_classes, dtype=np.int64)[list(classes)]
                most = max(most, int(self.falls(votes, hostile).sum()))
        return most

    def most_falls_shared(self, budget: int) -> int:
        """Try every set and every choice of who falls to what; whether votes exist for it is a linear program."""
        clean = self.scores(self.votes).argmax(axis=1)
        most = 0
        for hostile in self.sets(budget):
            lost = set(hostile) if self.target_reads_itself else set()
            honest = self.votes.copy()
            honest[list(hostile)] = 0
            base = self.scores(honest)
            rest = [target for target in range(self.n) if target not in lost]
            for chosen in product(range(self.num_classes), repeat=len(rest)):
                wins = [(t, c) for t, c in zip(rest, chosen, strict=True) if c != clean[t]]
                if len(lost) + len(wins) > most and self._votes_exist(base, hostile, clean, wins):
                    most = len(lost) + len(wins)
        return most

    def _votes_exist(self, base: Array, hostile: tuple[int, ...], clean: Array, wins: list[tuple[int, int]]) -> bool:
        size = len(hostile) * self.num_classes
        rows, limits = [], []
        for target, rival in wins:
            y = clean[target]
            row = np.zeros((len(hostile), self.num_classes))
            row[:, rival] -= self.weights[target, list(hostile)]
            row[:, y] += self.weights[target, list(hostile)]
            rows.append(row.ravel())
            limits.append((base[target, rival] - base[target, y] - (rival > y)) / ONE + 1e-7)
        if not hostile:
            return all(limit >= 0 for limit in limits)
        sums = np.kron(np.eye(len(hostile)), np.ones(self.num_classes))
        if not wins:
            return True
        found = linprog(np.zeros(size), A_ub=rows, b_ub=limits, A_eq=sums, b_eq=np.ones(len(hostile)), bounds=(0, 1))
        return bool(found.status == 0)


def single_radius(hits: Array, needs: Array, y: int) -> int:
    """The largest number of hostile voters against which a target holds on its own."""
    radii = []
    for rival in range(needs.size):
        if rival != y:
            taken = np.sort(hits[:, rival])[::-1].cumsum()
            enough = np.flatnonzero(taken >= needs[rival])
            radii.append(int(enough[0]) if enough.size else UNLIMITED)
    return min(radii)


def survivors(voting: Voting, method: str, budgets: list[int]) -> list[int]:
    found = against_one_adversary(
        voting.contests(), num_nodes=voting.n, budgets=budgets, method=method, one_hot=voting.one_hot
    )
    assert (found.num_robust >= found.num_robust_naive).all()
    return [int(number) for number in found.num_robust]


@pytest.mark.few(12)
@pytest.mark.parametrize("seed", range(120))
def test_no_attack_makes_more_targets_fall_and_the_exact_number_is_found(seed: int) -> None:
    voting = Voting(seed, one_hot=True)
    for budget in (1, 2):
        worst = voting.n - voting.most_falls(budget)
        assert survivors(voting, "lp", [budget])[0] <= worst
        assert survivors(voting, "milp", [budget])[0] == worst


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(25))
def test_votes_that_are_shared_among_classes_are_covered(seed: int) -> None:
    voting = Voting([seed, 1], one_hot=False, num_nodes=4, num_classes=3)
    voting.own += np.random.default_rng(seed).integers(ONE // 10, size=voting.own.shape)  # no ties
    for budget in (1, 2):
        worst = voting.n - voting.most_falls_shared(budget)
        assert survivors(voting, "lp", [budget])[0] <= worst
        assert survivors(voting, "milp", [budget])[0] == worst


def test_one_vote_cannot_serve_two_ends() -> None:
    """Two targets, one voter, three classes: a whole vote makes one of them fall, the weights alone say both."""
    hits = np.array([[0, 0, 0]]) + ONE
    pair = [
        Contest(
            prediction=y,
            needs=np.where(np.arange(3) == rival, ONE, 4 * ONE),
            nodes=np.array([0]),
            weights=np.array([ONE]),
            hits=hits,
            decisive=np.zeros(0, dtype=np.int64),
            radius=0,
        )
        for y, rival in ((0, 1), (0, 2))
    ]
    counts = {
        method: int(against_one_adversary(pair, num_nodes=1, budgets=[1], method=method, one_hot=True).num_robust[0])
        for method in ("lp", "milp")
    }
    assert counts == {"lp": 0, "milp": 1}


def test_groups_limit_the_adversary() -> None:
    voting = Voting(3, one_hot=True)
    free = against_one_adversary(voting.contests(), num_nodes=voting.n, budgets=[2], method="milp")
    none = against_one_adversary(
        voting.contests(),
        num_nodes=voting.n,
        budgets=[2],
        method="milp",
        groups=np.zeros(voting.n, dtype=np.int64),
        group_budgets=[0],
    )
    assert none.num_robust.tolist() == [voting.n]
    assert free.num_robust[0] < voting.n


def test_weights_of_huge_needs_are_rounded_outward() -> None:
    contest = Contest(
        prediction=0,
        needs=np.array([0, 2**61 + 1]),
        nodes=np.arange(3),
        weights=np.full(3, 2**60),
        hits=np.array([[0, 2**60 + 1], [0, 2**60], [0, 1]]),
        decisive=np.zeros(0, dtype=np.int64),
        radius=0,
    )
    weights = contest.flip_weights()
    assert weights.weights.tolist()[:2] == [2**19 + 1, 2**19]
    assert weights.weights[2] == 1
