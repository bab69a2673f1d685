"""The smoothing distribution of App. J: keep k nodes of the receptive field at random, delete the others."""

import numbers
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from graycert._fields import Field
from graycert._parameters import parameter
from graycert._types import NO_CLASS
from graycert._validation import check_integer
from graycert.errors import InvalidParameterError
from graycert.smoothing.protocol import Claim, Smoothing

if TYPE_CHECKING:
    from graycert.certificates import Certificates
    from graycert.setup import Setup


@dataclass(frozen=True, kw_only=True, eq=False)
class UniformRetention(Smoothing):
    r"""Node-retention smoothing: the target and k uniformly drawn further nodes of its receptive field stay.

    $$K = \{v\} \cup M, \qquad M \subseteq [d] \text{ uniform with } |M| = k = \lceil d\,k_{rel} \rceil$$

    All other nodes of the field are deleted with all their edges, and so is the rest of the graph: the base classifier
    is shown the subgraph of the field that K induces, with the features of K as they are. d counts the nodes of the
    field without the target. The target is never deleted, so an adversary who owns it cannot be certified against.

    Args:
        keep_ratio: Share k_rel of the field that stays, in [0, 1]. A float means the decimal number that Python prints
            for it: 0.07 is 7/100, although the nearest float64 lies above it. Strings ("0.07", "1/3"), ``Fraction``
            and ``Decimal`` are taken as they are.
        tau: Most kept sets C(d, k) of a target that is derandomized, >= 1; the paper's is 100,000.

    Raises:
        InvalidParameterError: If ``keep_ratio`` is not a number in [0, 1], or ``tau`` no integer >= 1.

    Example:
        >>> UniformRetention(keep_ratio=0.07).num_kept(100)
        7

    References:
        Scholten et al. (2022), Appendix J.
    """

    name = "retention"
    claims = (Claim(threat="node-features", proofs={"sound": "derandomization"}),)
    adds = (
        Field(
            "evaluation",
            "text",
            ("targets",),
            '"exact" where all kept sets are evaluated, "sampled" elsewhere.',
            stage="graph",
            column="evaluation",
        ),
        Field(
            "num_kept_sets",
            "text",
            ("targets",),
            "C(d, k), as digits: it may have hundreds of them.",
            stage="graph",
            column="num_kept_sets",
        ),
        Field(
            "hops",
            "int",
            (),
            "Length of the longest path by which kept nodes count as connected; -1 for any length.",
            stage="drawn",
            at_least=-1,
        ),
        Field(
            "kept_set_starts",
            "int",
            ("ends of targets",),
            "Where the labels of each exact target begin in ``kept_set_labels``, and where the last ones end.",
            stage="drawn",
            at_least=0,
        ),
        Field(
            "kept_set_labels",
            "int",
            ("classes of kept sets",),
            "Class that the model gives for each class of equal kept sets; -1 where its scores single out none.",
            stage="drawn",
            at_least=NO_CLASS,
            at_most="classes",
            dtype="int32",
        ),
    )
    method_home = "graycert.smoothing.retention.method"
    in_plain_words = "the majority of its answers when some of the nodes around the target are hidden from it"
    needs_graph = True
    shows_target = True

    keep_ratio: Fraction | Decimal | float | str = parameter(
        help="Share of the receptive field that stays, an exact number such as 0.1 or 1/3.",
        label="Share of nodes kept",
        option=str,
    )
    tau: int = parameter(
        default=100_000,
        help="Most kept sets of a target that is evaluated on all of them.",
        label="Most kept sets τ of an exact target",
        option=int,
    )

    def __post_init__(self) -> None:
        """Turn the ratio into an exact fraction."""
        object.__setattr__(self, "keep_ratio", _decimal_fraction(self.keep_ratio))
        tau = check_integer(
            "tau", self.tau, at_least=1, hint="It is the most kept sets that a target may be evaluated on."
        )
        object.__setattr__(self, "tau", tau)

    def classifier(self, setup: "Setup") -> str:
        """Say what is certified, to follow "the classifier"."""
        return (
            f"is the majority vote of the {setup.num_layers}-step model over the subgraphs in which the target and a "
            f"share of {self.keep_ratio} of its receptive field, rounded up, stay; nothing is said about the model "
            "without smoothing."
        )

    def chance(self, certificates: "Certificates") -> str:
        """Say that exact targets are certain, up to near-ties of scores, and what holds of the others."""
        c = certificates
        num_exact, size = int(np.count_nonzero(c.evaluation == "exact")), len(c)
        others = (
            f"The chance that any of the {size - num_exact:,} others is wrong is at most α = {c.setup.alpha} over the "
            "samples."
            if c.setup.simultaneous
            else f"Each of the {size - num_exact:,} others is wrong with probability at most α = {c.setup.alpha} over "
            "the samples, all its radii together; that is per target, not for all at once."
        )
        return (
            f"For {num_exact:,} of {size:,} targets all kept sets, at most {self.tau:,}, were looked at: these "
            f"statements hold with certainty, up to how floating point breaks near-ties of the model's scores. {others}"
        )

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
