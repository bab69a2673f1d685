"""The smoothing distribution of App. J: keep k nodes of the receptive field at random, delete the others."""

import numbers
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from graycert._validation import check_integer
from graycert.errors import InvalidParameterError


@dataclass(frozen=True, kw_only=True)
class UniformRetention:
    r"""Node-retention smoothing: the target and k uniformly drawn further nodes of its receptive field stay.

    $$K = \{v\} \cup M, \qquad M \subseteq [d] \text{ uniform with } |M| = k = \lceil d\,k_{rel} \rceil$$

    All other nodes of the field are deleted with all their edges, and so is the rest of the graph: the base classifier
    is shown the subgraph of the field that K induces, with the features of K as they are. d counts the nodes of the
    field without the target. The target is never deleted, so an adversary who owns it cannot be certified against.

    Args:
        keep_ratio: Share k_rel of the field that stays, in [0, 1]. A float means the decimal number that Python prints
            for it: 0.07 is 7/100, although the nearest float64 lies above it. Strings ("0.07", "1/3"), ``Fraction``
            and ``Decimal`` are taken as they are.

    Raises:
        InvalidParameterError: If ``keep_ratio`` is not a number in [0, 1].

    Example:
        >>> UniformRetention(keep_ratio=0.07).num_kept(100)
        7

    References:
        Scholten et al. (2022), Appendix J.
    """

    keep_ratio: Fraction | Decimal | float | str

    def __post_init__(self) -> None:
        """Turn the ratio into an exact fraction."""
        object.__setattr__(self, "keep_ratio", _decimal_fraction(self.keep_ratio))

    def num_kept(self, field_size_without_target: int) -> int:
        """Return k = ⌈d · k_rel⌉, computed exactly; 0 for d = 0.

        The same ceiling in floating point is wrong for 141 of the 100,000 pairs of d in 1..1000 and k_rel in whole
        percent: for d = 100 and 0.07 it gives 8.

        Args:
            field_size_without_target: Number d of nodes in the receptive field, the target not counted, >= 0.

        Raises:
            InvalidParameterError: If ``field_size_without_target`` is not an integer >= 0.
        """
        size = check_integer("field_size_without_target", field_size_without_target, at_least=0)
        scaled = Fraction(self.keep_ratio) * size
        return -(-scaled.numerator // scaled.denominator)


def _decimal_fraction(value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal | str):
        raise InvalidParameterError(f"`keep_ratio` must be a number in [0, 1], got {value!r}.")
    try:
        # str of a float is the shortest decimal number that reads as this float
        ratio = Fraction(value) if isinstance(value, numbers.Rational | Decimal | str) else Fraction(str(value))
    except (ValueError, OverflowError, ZeroDivisionError):  # NaN, infinity, or no number
        ratio = Fraction(-1)
    if not 0 <= ratio <= 1:
        raise InvalidParameterError(
            f"`keep_ratio` must be a number in [0, 1], got {value!r}. It is the share of nodes that stay."
        )
    return ratio
