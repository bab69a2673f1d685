"""The words of a report, explained for who has never read the paper."""

from graycert.certificates import Certificates


def terms(c: Certificates) -> tuple[tuple[str, str], ...]:
    """Return the words that a report of this result uses, and what they mean."""
    unit = c.setup.threat.unit
    words = [
        ("target", "A node whose prediction was certified."),
        (
            "smoothed classifier",
            "What is certified: not one answer of the model, but the majority of its answers when parts of the graph "
            "are hidden from it. It has to be run that way to be what is certified.",
        ),
        (
            "ρ, certified radius",
            f"How many {unit} may be hostile at the same time, whichever they are, without changing the prediction. "
            "It is proved for the radius; whether more would change it is not said.",
        ),
        (
            "eligible",
            f"The {unit} that could do anything to this target under the threat. Where ρ is their number or more, the "
            "prediction holds whatever all of them do: the whole field.",
        ),
        ("whole field", f"No matter what all eligible {unit} do, the prediction stays."),
        (
            "abstained",
            "The votes do not single out a class, so there is no prediction. It counts as wrong and as not certified.",
        ),
        ("correct", "The prediction is the true class. A certificate says that it stays, not that it is right."),
    ]
    if c.delta_upper is not None:
        words.append(
            (
                "Δ̄(ρ)",
                f"How likely anything of the worst ρ hostile {unit} reaches the target at all, at most. A prediction "
                "holds if its lead is more than twice that.",
            )
        )
    if c.p_lower is not None:
        words.append(
            ("lead", "By how much the reported class is more probable than every other one, at least, by the votes.")
        )
    if c.setup.draws is not None:
        words.append(
            (
                "confidence",
                "Votes are drawn at random. In at most so many of all repetitions, in percent, as are missing to 100 "
                "they mislead, and a statement is wrong.",
            )
        )
    return tuple(words)
