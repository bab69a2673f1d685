"""What holds of a smoothed classifier g, and what of its estimate, which is what anybody can run."""

from graycert.setup import Setup


def statement(setup: Setup) -> str:
    """Return the paragraphs, for a reader who is about to run it."""
    return "\n\n".join([_what_g_is(setup), *(_exact(setup) if setup.draws is None else _estimated(setup))])


def _what_g_is(setup: Setup) -> str:
    kind = "evaluated" if setup.draws is None else "estimated"
    return (
        f"The classifier g {setup.smoothing.classifier(setup)} A certificate of radius ρ is about g: it keeps its "
        f"class for the target, {setup.threat.statement} What runs is g as it is {kind} by each call."
    )


def _exact(setup: Setup) -> list[str]:
    return [
        f"Nothing is drawn: a call evaluates g itself, with the seed of the certified run, {setup.seed}. What it "
        "returns is what g says of the graph that it is given, and a certificate holds with certainty."
    ]


def _estimated(setup: Setup) -> list[str]:
    if not setup.the_rule.is_sound:
        return [
            f"NOT PROVED: by the rule '{setup.rule}' nothing is known about how often the estimate errs. Certify with "
            "a sound rule before you rely on it."
        ]
    of = "any of the targets of a call" if setup.simultaneous else "each target of each call"
    return [
        f"Of the estimate: each call draws anew, and abstains where its votes do not single out a class by the rule "
        f"'{setup.rule}'. For {of}, the chance that it returns a class which is not that of g is at most "
        f"α = {setup.alpha}. Chances add up over {'calls' if setup.simultaneous else 'targets and calls'}.",
        f"Of a certified target under attack: g keeps its class c, and a call on the attacked graph returns c or "
        f"abstains, but with the chance α = {setup.alpha} of that call (and the certificate itself is wrong with the "
        "chance α of its own). An attack within the radius can thus make a call abstain, but not decide otherwise: say "
        "what is done where a call abstains. "
        "Trained weights and draws are assumed to be out of the adversary's hands: whoever knows the seed of a call "
        "before they choose their features can look for features that err on these draws.",
    ]
