"""Small graphs of votes with every attack of hostile nodes that choose their edges."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from graycert.smoothing.bounded_votes.ballots import ONE
from graycert.smoothing.bounded_votes.takeover import UNLIMITED, Ballot, takeover_radii

Array = Any


@dataclass(frozen=True, kw_only=True)
class World:
    """A small graph with votes, and who may do what on it.

    Edges are a matrix, ``edges[u, w]`` for u -> w. Offsets are those of every node, as if it were the target.
    """

    edges: Array
    votes: Array
    own: Array
    per_voter: Array
    trusted: Array
    injected: int
    undirected: bool
    one_hot: bool
    target_votes: bool

    @property
    def num_nodes(self) -> int:
        return self.edges.shape[0]

    def predictions(self, edges: Array, votes: Array) -> Array:
        """Classes of the first nodes of many graphs at once, by the definition of the classifier.

        Args:
            edges: bool, shape (num_graphs, num_nodes, num_nodes), or one graph.
            votes: int64, shape (num_graphs, num_nodes, num_classes).
        """
        n = self.num_nodes
        edges = edges & ~np.eye(edges.shape[-1], dtype=bool)
        if self.target_votes:
            edges = edges | np.eye(edges.shape[-1], dtype=bool)
        received = np.einsum("guw,guc->gwc", edges[:, :, :n].astype(np.int64), votes)
        degrees = edges[:, :, :n].sum(axis=1)
        return (self.own + degrees[..., None] * self.per_voter + received).argmax(axis=2)

    def ballot(self, target: int) -> Ballot:
        """What the certificate is given."""
        voters = np.flatnonzero(self.edges[:, target])
        voters = voters[voters != target]
        others = int((~self.trusted).sum()) - int((~self.trusted)[voters].sum()) - (not self.trusted[target])
        if self.target_votes:
            voters = np.append(voters, target)
        return Ballot(
            own=self.own[target],
            per_voter=self.per_voter[target],
            votes=self.votes[voters],
            eligible=~self.trusted[voters],
            newcomers=others + self.injected,
        )


def random_world(rng: np.random.Generator, *, largest: int = 5, **changes: Any) -> World:
    """A random graph: directed or not, one-hot or soft votes, with ties, trusted nodes, offsets and new nodes."""
    n, num_classes = int(rng.integers(2, largest + 1)), int(rng.integers(2, 4))
    undirected, one_hot = bool(rng.integers(2)), bool(rng.integers(2))
    edges = rng.random((n, n)) < rng.choice([0.2, 0.5, 0.9])
    if undirected:
        edges = edges | edges.T
    np.fill_diagonal(edges, rng.random() < 0.2)  # loops are no votes
    if one_hot:
        votes = ONE * np.eye(num_classes, dtype=np.int64)[rng.integers(num_classes, size=n)]
    else:
        grid = rng.choice([4, 64])
        shares = rng.multinomial(grid, rng.dirichlet(np.full(num_classes, 0.7), size=n))
        votes = shares.astype(np.int64) * (ONE // grid)
    own = rng.integers(-6, 7, size=(n, num_classes)) * (ONE // 2) * int(rng.integers(2))
    scaled = [own, 0 * own, rng.integers(-4, 5, size=own.shape) * (ONE // 2)][int(rng.integers(3))]
    world = World(
        edges=edges,
        votes=votes,
        own=own.astype(np.int64),
        per_voter=scaled.astype(np.int64),
        trusted=rng.random(n) < rng.choice([0.0, 0.3]),
        injected=int(rng.integers(3)),
        undirected=undirected,
        one_hot=one_hot,
        target_votes=False,
    )
    return replace(world, **changes)


def wirings(world: World, hostile: tuple[int, ...], size: int, *, out_only: bool) -> Array:
    """Every graph on ``size`` nodes that the hostile ones can make, bool, shape (num_graphs, size, size)."""
    edges = np.zeros((size, size), dtype=bool)
    edges[: world.num_nodes, : world.num_nodes] = world.edges
    if out_only:
        slots = [[(h, u)] for h in hostile for u in range(size) if u != h]
    elif world.undirected:
        pairs = {tuple(sorted((h, u))) for h in hostile for u in range(size) if u != h}
        slots = [[(a, b), (b, a)] for a, b in sorted(pairs)]
    else:
        ends = {(h, u) for h in hostile for u in range(size) if u != h}
        slots = [[slot] for slot in sorted(ends | {(u, h) for h, u in ends})]
    chosen = np.array(list(product([False, True], repeat=len(slots))), dtype=bool).reshape(-1, len(slots))
    graphs = np.repeat(edges[None], len(chosen), axis=0)
    for place, slot in enumerate(slots):
        for start, end in slot:
            graphs[:, start, end] = chosen[:, place]
    return graphs


def attacks(world: World, budget: int, *, out_only: bool = False) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield each set of hostile nodes with the predictions of all that its attacks can make, one row per attack.

    New nodes come last and are alike, so the first ones are taken. Rows that vote for one class alone exist; without
    one-hot votes, a vote shared by two classes is tried besides.
    """
    n, num_classes = world.votes.shape
    extremes = ONE * np.eye(num_classes, dtype=np.int64)
    options = list(extremes) if world.one_hot else [*extremes, (extremes[0] + extremes[1]) // 2]
    for injected in range(min(world.injected, budget) + 1):
        for old in combinations(np.flatnonzero(~world.trusted).tolist(), budget - injected):
            hostile = (*old, *range(n, n + injected))
            graphs = wirings(world, hostile, n + injected, out_only=out_only)
            rows = []
            for lies in product(options, repeat=len(hostile)):
                votes = np.zeros((n + injected, num_classes), dtype=np.int64)
                votes[:n] = world.votes
                votes[list(hostile)] = np.array(lies).reshape(-1, num_classes)
                rows.append(world.predictions(graphs, np.broadcast_to(votes, (len(graphs), *votes.shape))))
            yield hostile, np.concatenate(rows)


def fewest(world: World, *, most: int, out_only: bool = False) -> Array:
    """The fewest hostile nodes that make a class win, by trying all attacks; ``most`` + 1 if none so few does."""
    clean = world.predictions(world.edges[None], world.votes[None])[0]
    n, num_classes = world.votes.shape
    found = np.full((n, num_classes), most + 1)
    found[np.arange(n), clean] = 0
    for budget in range(most, 0, -1):
        for hostile, predictions in attacks(world, budget, out_only=out_only):
            for target in range(n):
                if target not in hostile or world.target_votes:
                    found[target, np.unique(predictions[:, target])] = np.minimum(
                        found[target, np.unique(predictions[:, target])], budget
                    )
    found[np.arange(n), clean] = 0
    return found


def compare(world: World, *, most: int, out_only: bool = False) -> tuple[int, int]:
    """Compare every target's radii with all attacks; return how many were certified at 1, and how many fell."""
    found = fewest(world, most=most, out_only=out_only)
    clean = world.predictions(world.edges[None], world.votes[None])[0]
    certified = fell = 0
    for target in range(world.num_nodes):
        ballot = world.ballot(target)
        assert ballot.prediction == clean[target]
        radii = takeover_radii(ballot)
        others = np.arange(radii.size) != clean[target]
        assert (radii[~others] == UNLIMITED).all()
        smallest = int(radii[others].min())
        broken = int(found[target][others].min())
        assert (found[target][others] > np.minimum(radii[others], most)).all(), "a certified prediction fell"
        assert broken == min(smallest, most) + 1, "the certificate is not exact"
        certified += smallest >= 1
        fell += broken <= most
    return certified, fell
