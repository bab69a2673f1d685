"""The claim of a result in plain sentences, one for each budget: never more than is proved."""

from decimal import Decimal

import numpy as np

from graycert.certificates import Certificates
from graycert.runs.words import assumption, chance, given_per_edge

NOT_PROVED = "NOT PROVED: "
NOT_THE_MODEL = "The prediction is that of the smoothed classifier, not of the model as trained."


def claim(c: Certificates, budget: int) -> tuple[str, ...]:
    """Say how many predictions withstand what, how surely, and what is taken as given.

    Targets that the adversary has fewer than ``budget`` choices against count if they hold whatever all of these do.

    Args:
        c: A result.
        budget: What the adversary may spend, >= 0, as far as the result looked.

    Returns:
        Two sentences; a third where something is taken from the user.
    """
    s = c.setup
    holds = int(np.count_nonzero(c.radius >= np.minimum(budget, c.num_eligible)))
    many = f"{holds:,} of {len(c):,} targets"
    if budget == 0:
        return f"{many} have a smoothed prediction; at ρ = 0 nothing is said about attacks.", NOT_THE_MODEL
    proved = "" if s.the_rule.is_sound else NOT_PROVED
    first = f"{proved}{many} each keep their smoothed prediction {c.setup.threat.against(budget)}."
    given = [*([assumption(s)] if s.num_layers_assumed else []), *([given_per_edge(s)] if s.edge_inputs else [])]
    return (first, f"{_surely(c)} {NOT_THE_MODEL}", *given)


def confidence(alpha: float) -> str:
    """Return 1 - α in percent, never rounded up.

    Example:
        >>> confidence(0.01), confidence(0.0005), confidence(1e-9)
        ('99 %', '99.95 %', '99.9999999 %')
    """
    return f"{(100 * (1 - Decimal(repr(alpha)))).normalize():f} %"


def _surely(c: Certificates) -> str:
    s = c.setup
    own = s.smoothing.chance(c)
    if not s.the_rule.is_sound or own is not None:
        return chance(c)
    if s.simultaneous:
        return f"With {confidence(s.alpha)} confidence this is true of all of them at once."
    return f"This is true of each of them with {confidence(s.alpha)} confidence, not of all of them at once."
