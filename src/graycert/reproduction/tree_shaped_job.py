"""Which test nodes have a receptive field that is a tree (App. D)."""

from typing import Any, ClassVar

from graycert.reproduction.job import Job
from graycert.reproduction.lab import Lab
from graycert.reproduction.settings import Count, SplitSettings


class TreeShapedJob(Job):
    """The test nodes to which every node of the receptive field has exactly one simple path.

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
