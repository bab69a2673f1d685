"""Upper bounds of Δ, the probability that a message from hostile nodes reaches the target."""

from graycert.bounds.ablation_only import ablation_only_delta, largest_ablation_only_radius
from graycert.bounds.certifiable_limit import largest_certifiable_radius
from graycert.bounds.inclusion_exclusion import MAX_EXPLICIT_PATHS, inclusion_exclusion
from graycert.bounds.multiplicative import multiplicative_bound
from graycert.bounds.single_source import single_source_bound, single_source_bounds, target_bound
from graycert.bounds.union import union_bound

__all__ = [
    "MAX_EXPLICIT_PATHS",
    "ablation_only_delta",
    "inclusion_exclusion",
    "largest_ablation_only_radius",
    "largest_certifiable_radius",
    "multiplicative_bound",
    "single_source_bound",
    "single_source_bounds",
    "target_bound",
    "union_bound",
]
