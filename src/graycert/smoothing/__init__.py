"""Ways to smooth a classifier and to certify it: one folder each, with its parameters, draws, certificate and words.

`SMOOTHINGS` has all of them by name. Outside these folders nobody asks which one it is.
"""

from graycert.smoothing.bounded_votes.parameters import BoundedVotes
from graycert.smoothing.features_only.parameters import FeaturesOnly
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.smoothing.protocol import FOLLOWS, Cell, Claim, Follows, FromGraph, Method, Smoothing
from graycert.smoothing.randomized_ablation.parameters import RandomizedAblation
from graycert.smoothing.retention.parameters import UniformRetention
from graycert.smoothing.sparse.parameters import SparseSmoothing
from graycert.smoothing.subgraphs.parameters import SubgraphVoting

SMOOTHINGS: dict[str, type[Smoothing]] = {
    smoothing.name: smoothing
    for smoothing in (
        InterceptionSmoothing,
        UniformRetention,
        RandomizedAblation,
        SparseSmoothing,
        SubgraphVoting,
        FeaturesOnly,
        BoundedVotes,
    )
}
"""All smoothings by name, in the order in which they are listed."""

__all__ = [
    "FOLLOWS",
    "SMOOTHINGS",
    "BoundedVotes",
    "Cell",
    "Claim",
    "FeaturesOnly",
    "Follows",
    "FromGraph",
    "InterceptionSmoothing",
    "Method",
    "RandomizedAblation",
    "Smoothing",
    "SparseSmoothing",
    "SubgraphVoting",
    "UniformRetention",
]
