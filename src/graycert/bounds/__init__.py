"""Upper bounds of Δ, the probability that a message from hostile nodes reaches the target.

Numba takes a while to load, so what needs it is imported on first use.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach
from graycert.bounds.ablation_only import ablation_only_delta, largest_ablation_only_radius
from graycert.bounds.certifiable_limit import largest_certifiable_radius
from graycert.bounds.delta_bounds import DeltaBounds
from graycert.bounds.evaluation import BOUNDS, PATH_BOUNDS, check_bound, delta_bounds, evaluate_bounds, evaluate_deltas
from graycert.bounds.hop_limited import ArrivalProbability, arrival_probability
from graycert.bounds.inclusion_exclusion import MAX_EXPLICIT_PATHS, inclusion_exclusion
from graycert.bounds.levine import largest_levine_radius, levine_delta
from graycert.bounds.multiplicative import multiplicative_bound
from graycert.bounds.settings_grid import GridPoint, SettingsGrid, settings_grid
from graycert.bounds.single_source import single_source_bound, single_source_bounds, target_bound
from graycert.bounds.structural import edge_deletion_bounds
from graycert.bounds.tree import TreeDelta, tree_arrival_probability, tree_delta
from graycert.bounds.union import union_bound

if TYPE_CHECKING:
    from graycert.bounds.weighted_paths import weighted_single_source_bounds

__all__ = [
    "BOUNDS",
    "MAX_EXPLICIT_PATHS",
    "PATH_BOUNDS",
    "ArrivalProbability",
    "DeltaBounds",
    "GridPoint",
    "SettingsGrid",
    "TreeDelta",
    "ablation_only_delta",
    "arrival_probability",
    "check_bound",
    "delta_bounds",
    "edge_deletion_bounds",
    "evaluate_bounds",
    "evaluate_deltas",
    "inclusion_exclusion",
    "largest_ablation_only_radius",
    "largest_certifiable_radius",
    "largest_levine_radius",
    "levine_delta",
    "multiplicative_bound",
    "settings_grid",
    "single_source_bound",
    "single_source_bounds",
    "target_bound",
    "tree_arrival_probability",
    "tree_delta",
    "union_bound",
    "weighted_single_source_bounds",
]

__getattr__ = attach(__name__, {"weighted_single_source_bounds": "graycert.bounds.weighted_paths"})[0]
