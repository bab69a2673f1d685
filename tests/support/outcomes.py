"""Every outcome of a few samples of three classes, with its exact probability: finite-sample size by enumeration."""

import numpy as np

from support.trinomial import outcome_probabilities


def all_outcomes(num_samples):
    """All vote counts of three classes, shape (num_outcomes, 3)."""
    pairs = [(i, j) for i in range(num_samples + 1) for j in range(num_samples + 1 - i)]
    return np.array([(i, j, num_samples - i - j) for i, j in pairs])


def probabilities(outcomes, p):
    """Probability of each outcome for class probabilities ``p``."""
    return outcome_probabilities(int(outcomes[0].sum()), outcomes[:, 0], outcomes[:, 1], p[0], p[1])


def critical_laws(lead, *, steps=12):
    """Laws in which class 0 leads class 1 by exactly ``lead`` (and class 2 by at least as much), ends included."""
    for total in np.linspace(lead, 1.0, steps):
        p1, p2 = (total + lead) / 2, (total - lead) / 2
        if 1.0 - p1 - p2 <= p2 + 1e-12:
            yield np.array([p1, p2, max(1.0 - p1 - p2, 0.0)])
    third = (1.0 - lead) / 3
    yield np.array([third + lead, third, third])  # both other classes are critical
