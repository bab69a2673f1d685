r"""Robustness normalised by the receptive field, and areas under certified ratio curves.

The normalised curve at a share s of the attack surface counts the targets with
$\rho_v \ge \lceil s\,m_v\rceil$, where $m_v$ is the number of eligible nodes: how much of what the
adversary could attack can be certified?
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._validation import check_integer
from graycert.errors import InvalidParameterError
from graycert.metrics.ratios import RatioCurve, check_correct, check_targets_of_curve


def normalized_certified_ratio(
    radius: ArrayLike,
    num_eligible: ArrayLike,
    *,
    num_points: int = 1_001,
    prediction: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> RatioCurve:
    r"""Count the targets certified against each share of their eligible nodes.

    The shares are $i/(N-1)$ for $i = 0..N-1$, compared in integers: $i\,m_v \le \rho_v (N-1)$. (A floating
    point ceiling of ``share * m`` is too large now and then, for instance for 0.14 · 50.)

    Args:
        radius: Certified radius per target, -1 where the classifier abstains, shape (num_targets,). A
            radius capped below ``num_eligible`` makes the curve too low, never too high.
        num_eligible: Nodes that may be hostile to the target, >= 0, shape (num_targets,).
        num_points: N >= 2, points of the curve.
        prediction: Reported class per target; with ``labels``, only correct predictions count.
        labels: True class per target.

    Returns:
        The curve, divided by all targets. Its mean is the figure that the authors' implementation reports.

    Raises:
        InvalidParameterError: If an argument is outside its domain.

    Example:
        >>> normalized_certified_ratio([2, 1], [2, 4], num_points=5).counts.tolist()
        [2, 2, 1, 1, 1]

    References:
        Scholten et al. (2022), Section 7.
    """
    radii, eligible = check_targets_of_curve(radius, num_eligible)
    steps = check_integer("num_points", num_points, at_least=2) - 1
    holds = np.arange(steps + 1)[:, None] * eligible[None, :] <= radii[None, :] * steps
    holds &= _counted(prediction, labels, radii.size)[None, :]
    counts = holds.sum(axis=1, dtype=np.int64)
    return RatioCurve(counts=counts, totals=np.full(counts.shape, radii.size), denominator="all")


def aucrc(
    radius: ArrayLike,
    num_eligible: ArrayLike,
    *,
    prediction: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Return the area under the certified ratio curve over ρ (denominator "all").

    The curve is a step function, so its area is the mean over all targets of $\min(\rho_v, m_v)$, with 0
    where the classifier abstains. Arguments as in ``normalized_certified_ratio``.

    Example:
        >>> aucrc([2, 1, -1, 5], [2, 4, 4, 0])
        0.75

    References:
        Scholten et al. (2022), Section 7.
    """
    radii, eligible = check_targets_of_curve(radius, num_eligible)
    attacked = np.clip(np.minimum(radii, eligible), 0, None)
    return float(attacked[_counted(prediction, labels, radii.size)].sum() / radii.size)


def normalized_aucrc(
    radius: ArrayLike,
    num_eligible: ArrayLike,
    *,
    prediction: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Return the area under the normalised certified ratio curve, in [0, 1].

    That is the mean over all targets of $\min(1, \rho_v/m_v)$: 1 for a target without eligible nodes, 0
    where the classifier abstains. Arguments as in ``normalized_certified_ratio``; the mean of that curve
    tends to this area.

    Example:
        >>> normalized_aucrc([2, 1, -1, 5], [2, 4, 4, 0])
        0.5625

    References:
        Scholten et al. (2022), Section 7.
    """
    radii, eligible = check_targets_of_curve(radius, num_eligible)
    shares = np.where(eligible > 0, np.minimum(radii, eligible) / np.maximum(eligible, 1), 1.0)
    shares = np.where(radii < 0, 0.0, shares)
    return float(shares[_counted(prediction, labels, radii.size)].sum() / radii.size)


def _counted(prediction: ArrayLike | None, labels: ArrayLike | None, num_targets: int) -> NDArray[np.bool_]:
    if prediction is None and labels is None:
        return np.ones(num_targets, dtype=np.bool_)
    if prediction is None or labels is None:
        raise InvalidParameterError(
            "`prediction` and `labels` must be given together, got only one of them. Both are needed for an accuracy."
        )
    return check_correct(prediction, labels, num_targets)
