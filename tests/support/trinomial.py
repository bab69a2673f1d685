"""Exact laws of the counts of two classes among n samples; the oracle of the rules about their difference."""

from fractions import Fraction

import numpy as np
from scipy import special


def difference_law(num_samples: int, p1: Fraction, p2: Fraction) -> list[Fraction]:
    """P(N1 - N2 = e) for e = -n..n."""
    law = [Fraction(1)]
    for _ in range(num_samples):
        longer = [Fraction(0)] * (len(law) + 2)
        for index, probability in enumerate(law):
            longer[index] += probability * p2
            longer[index + 1] += probability * (1 - p1 - p2)
            longer[index + 2] += probability * p1
        law = longer
    return law


def difference_tail(num_samples: int, at_least: int, p1: Fraction, p2: Fraction) -> Fraction:
    """P(N1 - N2 >= d)."""
    return sum(difference_law(num_samples, p1, p2)[num_samples + at_least :], Fraction(0))


def outcome_probabilities(num_samples, won, lost, p1, p2):
    """Probability of each pair of counts, in floats (relative error about 1e-13)."""
    rest = num_samples - won - lost
    p0 = max(1.0 - p1 - p2, 0.0)
    log_ways = special.gammaln(num_samples + 1) - sum(special.gammaln(k + 1) for k in (won, lost, rest))
    return np.exp(log_ways + special.xlogy(won, p1) + special.xlogy(lost, max(p2, 0.0)) + special.xlogy(rest, p0))
