"""How much is drawn: a fixed number of samples, or until each target is decided."""

from dataclasses import dataclass

from graycert._parameters import Parameters, parameter
from graycert._validation import check_integer, check_open_unit
from graycert.errors import InvalidParameterError

MOST_DRAWS = 2**25
"""Most draws of a target: proved tails of binomial distributions take work in proportion to them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws(Parameters):
    """A fixed number of samples: n0 that pick the class, and n1 further, independent ones that bound its lead.

    Args:
        num_selection: n0 >= 1.
        num_estimation: n1 >= 1.

    Raises:
        InvalidParameterError: If a number is no integer >= 1, or both together are more than `MOST_DRAWS`.

    Example:
        >>> Draws(num_estimation=10_000)
        Draws(num_selection=1000, num_estimation=10000)

    References:
        Scholten et al. (2022), Section 5.
    """

    name = "fixed"

    num_selection: int = parameter(default=1_000, option=int, help="Draws that choose the class (n0).")
    num_estimation: int = parameter(default=3_000, option=int, help="Further draws that bound its lead (n1).")

    def __post_init__(self) -> None:
        """Check the domains."""
        _check_counts(
            self,
            num_selection="It is the number n0 of draws that pick the class.",
            num_estimation="It is the number n1 of draws for the bounds.",
        )

    @property
    def most(self) -> int:
        """Most draws of a target."""
        return self.num_selection + self.num_estimation


@dataclass(frozen=True, kw_only=True, eq=False)
class UntilDecided(Parameters):
    """Sampling that stops for a target once its radius is decided: nothing larger is possible, or within reach.

    Looking after every batch costs nothing of α (`graycert.rules.SequentialCertificates`).

    Args:
        num_selection: Draws n0 that pick the class, and how boldly to bet on it, >= 1.
        max_estimation: Most further draws per target, >= 1; a target whose next radius so many would hardly show stops.
        batch: Draws between two looks, >= 1. More looks stop sooner, and may stop at another radius; the guarantee
            does not depend on it.
        give_up: A larger value gives up larger radii sooner, in (0, 1). The guarantee does not depend on it.

    Raises:
        InvalidParameterError: If a value is out of its domain, or more than `MOST_DRAWS` could be drawn.

    References:
        Ville (1939); docs/proofs/sequential.md.
    """

    name = "until-decided"

    num_selection: int = parameter(default=200, option=int, help="Draws that choose the class (n0).")
    max_estimation: int = parameter(default=3_800, option=int, help="Most further draws per target.")
    batch: int = parameter(default=64, option=int, help="Draws between two looks.")
    give_up: float = parameter(default=0.05, option=float, help="Level at which a larger radius counts as hopeless.")

    def __post_init__(self) -> None:
        """Check the domains."""
        _check_counts(
            self,
            num_selection="It is the number n0 of draws that pick the class.",
            max_estimation="It is the most draws per target for the bounds.",
            batch="It is the number of draws between two looks.",
        )
        object.__setattr__(self, "give_up", check_open_unit("give_up", self.give_up))

    @property
    def most(self) -> int:
        """Most draws of a target."""
        return self.num_selection + self.max_estimation


AnyDraws = Draws | UntilDecided
DRAWS: dict[str, type[AnyDraws]] = {Draws.name: Draws, UntilDecided.name: UntilDecided}
"""Both kinds by name."""


def _check_counts(draws: "Draws | UntilDecided", **hints: str) -> None:
    for name, hint in hints.items():
        object.__setattr__(draws, name, check_integer(name, getattr(draws, name), at_least=1, hint=hint))
    if draws.most > MOST_DRAWS:
        raise InvalidParameterError(
            f"`draws` must be at most {MOST_DRAWS:,} per target, got {draws.most:,}: proved tails of binomial "
            "distributions take work in proportion to them. Draw fewer; more would hardly change a certificate."
        )
