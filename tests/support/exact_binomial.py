"""Binomial tails in whole numbers: the oracle of the verified confidence bounds, without any rounding."""

from fractions import Fraction
from math import comb


def upper_tail_numerator(num_trials: int, at_least: int, probability: Fraction) -> int:
    """P(Bin(n, p) >= k) times the n-th power of the denominator of p."""
    top, rest = probability.numerator, probability.denominator - probability.numerator
    if rest == 0:
        return top**num_trials
    if 2 * at_least < num_trials:  # sum the shorter side
        everything = probability.denominator**num_trials
        return everything - upper_tail_numerator(num_trials, num_trials - at_least + 1, 1 - probability)
    if at_least > num_trials:
        return 0
    total = term = comb(num_trials, at_least) * top**at_least * rest ** (num_trials - at_least)
    for j in range(at_least, num_trials):
        term = term * ((num_trials - j) * top) // ((j + 1) * rest)  # leaves no remainder
        total += term
    return total


def upper_tail(num_trials: int, at_least: int, probability: Fraction) -> Fraction:
    """P(Bin(n, p) >= k)."""
    return Fraction(upper_tail_numerator(num_trials, at_least, probability), probability.denominator**num_trials)


def lower_tail(num_trials: int, at_most: int, probability: Fraction) -> Fraction:
    """P(Bin(n, p) <= k)."""
    return upper_tail(num_trials, num_trials - at_most, 1 - probability)


def upper_tail_is_at_most(num_trials: int, at_least: int, probability: Fraction, level: Fraction) -> bool:
    """Whether P(Bin(n, p) >= k) <= level, without reducing fractions of many thousand digits."""
    numerator = upper_tail_numerator(num_trials, at_least, probability)
    return numerator * level.denominator <= level.numerator * probability.denominator**num_trials


def lower_tail_is_at_most(num_trials: int, at_most: int, probability: Fraction, level: Fraction) -> bool:
    """Whether P(Bin(n, p) <= k) <= level."""
    return upper_tail_is_at_most(num_trials, num_trials - at_most, 1 - probability, level)
