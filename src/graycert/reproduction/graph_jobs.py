"""Computations about graphs alone: no model, no certificate."""

from typing import Any, ClassVar

import numpy as np

from graycert.reproduction.job import Job
from graycert.reproduction.lab import Lab
from graycert.reproduction.settings import Count, Probability, SplitSettings


class DerandomizedShareJob(Job):
    """The share of all nodes of a graph that can be derandomized (App. J).

    Args:
        graph: Its name; it needs no features.
        keep_ratio: Share k_rel of the receptive field that stays.
        num_layers: Message-passing steps.
        tau: Most kept sets of a derandomized node.

    The result has the fields of `DerandomizedShare` and ``num_nodes``.
    """

    job: ClassVar[str] = "derandomized-share"

    graph: str
    keep_ratio: Probability
    num_layers: Count = 2
    tau: Count = 100_000

    @property
    def graphs(self) -> tuple[str, ...]:
        """Names of the graphs that it needs."""
        return (self.graph,)

    def run(self, lab: Lab) -> dict[str, Any]:
        """Count kept sets, and those that differ to the model, of every node."""
        from graycert.graph import as_adjacency
        from graycert.smoothing import UniformRetention
        from graycert.smoothing.retention.derandomized_share import derandomized_share

        adjacency = as_adjacency(lab.graph(self.graph))
        share = derandomized_share(
            adjacency,
            np.arange(adjacency.num_nodes),
            smoothing=UniformRetention(keep_ratio=self.keep_ratio),
            num_layers=self.num_layers,
            tau=self.tau,
        )
        return {"num_nodes": adjacency.num_nodes, **vars(share)}


class TreeShapedJob(Job):
    """The test nodes to which every node of the receptive field has exactly one simple path (App. D).

    Args:
        split: The graph and its nodes.
        num_layers: Message-passing steps.

    The result has ``targets``, those with the property.
    """

    job: ClassVar[str] = "tree-shaped"

    split: SplitSettings
    num_layers: Count = 2

    @property
    def graphs(self) -> tuple[str, ...]:
        """Names of the graphs that it needs."""
        return (self.split.graph,)

    def run(self, lab: Lab) -> dict[str, Any]:
        """Look at each test node."""
        from graycert.graph import as_adjacency, tree_shaped

        test = lab.split(self.split).test
        targets = test.nodes.numpy()
        return {"targets": targets[tree_shaped(as_adjacency(test.data), targets, num_layers=self.num_layers)]}
