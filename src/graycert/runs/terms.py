"""The words of a report, explained for who has never read the paper."""

from dataclasses import dataclass
from decimal import Decimal

from graycert.certificates import Certificates


@dataclass(frozen=True, kw_only=True)
class Term:
    """A word of a report.

    Attributes:
        word: The word.
        meaning: What it means, in sentences.
        forms: As what it stands in texts, each of which leads to its meaning.
    """

    word: str
    meaning: str
    forms: tuple[str, ...]


def terms(c: Certificates) -> tuple[Term, ...]:
    """Return the words that a report of this result uses, and what they mean."""
    unit = c.setup.threat.unit
    found = [
        Term(word="targets", meaning=_targets(c), forms=("targets",)),
        Term(
            word="smoothed classifier",
            meaning=f"What is certified: not one answer of the model, but {c.setup.smoothing.in_plain_words}. It has "
            "to be run that way to be what is certified.",
            forms=("smoothed classifier", "smoothed prediction", "when smoothed"),
        ),
        Term(
            word="as trained",
            meaning="The model itself, once, on the whole graph: without smoothing and without a certificate.",
            forms=("as trained",),
        ),
        Term(
            word="ρ, certified radius",
            meaning=f"How many {unit} may be hostile at the same time, whichever they are, without changing the "
            "prediction. It is proved for the radius; whether more would change it is not said.",
            forms=("certified radius", "Certified radius", "radius ρ", "ρ"),
        ),
        Term(
            word="eligible",
            meaning=f"The {unit} that could do anything to this target under the threat. Where ρ is their number or "
            "more, the prediction holds whatever all of them do: the whole field.",
            forms=("eligible",),
        ),
        Term(
            word="whole field",
            meaning=f"No matter what all eligible {unit} do, the prediction stays.",
            forms=("whole field", "Whole field"),
        ),
        Term(
            word="abstained",
            meaning="The votes do not single out a class, so there is no prediction. It counts as wrong and as not "
            "certified.",
            forms=("abstained", "abstaining"),
        ),
        Term(
            word="correct",
            meaning="The prediction is the true class. A certificate says that it stays, not that it is right.",
            forms=("correctly", "correct"),
        ),
    ]
    if c.labels is not None:
        found.append(
            Term(
                word="floor",
                meaning="What a model reaches that sees nothing but a target's own features: no other node can change "
                "it, so it holds at every ρ. A certificate is worth having where it gives more.",
                forms=("the floor", "own features"),
            )
        )
    if c.in_degree is not None:
        found.append(
            Term(
                word="in-degree",
                meaning="From how many nodes an edge goes directly to the target: it listens to these.",
                forms=("in-degree",),
            )
        )
    if c.delta_upper is not None:
        found.append(
            Term(
                word="Δ̄(ρ)",
                meaning=f"How likely anything of the worst ρ hostile {unit} reaches the target at all, at most. A "
                "prediction holds if its lead is more than twice that.",
                forms=("Δ̄(ρ)", "Δ̄"),
            )
        )
    if c.p_lower is not None:
        found.append(
            Term(
                word="lead",
                meaning="By how much the reported class is more probable than every other one, at least, by the votes.",
                forms=("lead", "Lead"),
            )
        )
    if c.setup.draws is not None and c.setup.the_rule.is_sound:
        one = "any of the statements" if c.setup.simultaneous else "a single statement"
        found.append(
            Term(
                word="confidence",
                meaning="Votes are drawn at random, and by bad luck they mislead: if all were drawn again and again, "
                f"{one} would be wrong in at most {(100 * Decimal(repr(c.setup.alpha))).normalize():f} % of the cases.",
                forms=("confidence",),
            )
        )
    return tuple(found)


def _targets(c: Certificates) -> str:
    several, everyone = len(c) > 1, c.setup.num_nodes
    who = f"The {len(c):,} nodes" if several else "The one node"
    of = "which are all of the graph" if len(c) == everyone else f"of {everyone:,} in the graph"
    return f"{who} whose prediction was certified, {of}."
