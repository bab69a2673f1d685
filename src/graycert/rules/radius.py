r"""From the lead of the majority class to the certified radius."""

import numpy as np
from numpy.typing import NDArray


def certified_radius(margin: NDArray[np.float64], delta_upper: NDArray[np.float64]) -> NDArray[np.int64]:
    r"""Return the largest radius up to which every certificate holds; -1 where the lead is not even positive.

    $$\rho_v = \max\{\rho : \text{margin}_v > 2\overline{\Delta}_v(r) \text{ for all } r \le \rho\}$$

    Radius 0 is the same test with Δ = 0: the prediction itself. Where it fails, the classifier abstains. The
    inequality is strict: at equality the adversary may reach a tie.

    Guarantee:
        Never larger than in exact arithmetic, if ``margin`` is rounded downward and ``delta_upper`` upward:
        doubling is exact, and so are comparisons. All radii of a target hold jointly, because one event
        (the bounds on its probabilities hold) implies all of them.

    Args:
        margin: Lower bound on the lead of the majority class, in [-1, 1], shape (num_targets,).
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius, in [0, 1], shape (num_targets, max_radius).

    Returns:
        Radii in [-1, max_radius], shape (num_targets,); max_radius means "at least".

    Example:
        >>> deltas = np.array([[0.2, 0.4], [0.25, 0.4], [0.0, 0.0]])
        >>> certified_radius(np.array([0.9, 0.5, 0.0]), deltas).tolist()
        [2, 0, -1]

    References:
        Scholten et al. (2022), Corollaries 1 and 2, Theorem 1.
    """
    holds = margin[:, None] > 2.0 * delta_upper
    radius = np.logical_and.accumulate(holds, axis=1).sum(axis=1, dtype=np.int64)
    return np.where(margin > 0.0, radius, np.int64(-1))
