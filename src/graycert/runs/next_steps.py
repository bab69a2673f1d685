"""What to do next with a result: a few sentences, the most pressing first."""

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from graycert.certificates import Certificates
from graycert.draws import UntilDecided
from graycert.runs.cost import warnings_of
from graycert.runs.floor import FLOOR_FILE, FOLDER, WHERE, WITHOUT_MESSAGES, floor_of_run, how_to_compute
from graycert.runs.shares import percent, percent_upward
from graycert.runs.trusting import most_gained
from graycert.runs.who import knows_attackers, protect_first
from graycert.runs.words import shown_rows

MANY = 0.05
"""Share of the targets from which on something is worth a step of its own."""

NAMED = 3
"""Nodes to protect that are named."""


def next_steps(c: Certificates) -> tuple[str, ...]:
    """Return what to do next, the most pressing first; the last step is always to have it checked."""
    return (
        *_unproved(c),
        *_before_use(c),
        *_no_prediction(c),
        *_protect(c),
        *_farther(c),
        "Have it checked: `graycert verify` with this run's folder recomputes every certificate from the stored votes "
        "and the graph.",
    )


def _unproved(c: Certificates) -> list[str]:
    if c.setup.the_rule.is_sound:
        return []
    return ['Certify again with a sound rule: `--rule sound` (`rule="sound"`). What is shown here proves nothing.']


def _before_use(c: Certificates) -> list[str]:
    """Say what to change before anybody relies on the classifier."""
    steps = []
    if warnings_of(c):
        steps.append("Do not use this classifier as it is: read the warnings above, which say what helps.")
    floor, missing = floor_of_run(c), how_to_compute(c)
    if floor is not None and floor.beats_from == 0:
        steps.append(
            f"Consider {floor.source}, shown each target alone: it is right more often than the smoothed classifier, "
            f"and no other node can change it. {_certified_alone(c, floor.source)}"
        )
    if missing is not None:
        steps.append(f"Compute the distilled floor, which no other node can change. {missing}")
    return steps


def _certified_alone(c: Certificates, source: str) -> str:
    """Say what certifies the floor: on the graph of the run and from its file, as far as the run knows them."""
    options = c.setup.provenance.get("options")
    known: Any = options if isinstance(options, Mapping) else {}
    config = f" --config {FOLDER}/config.toml" if known else ""
    weights = None if source == WITHOUT_MESSAGES else known.get("floor")
    file = f"{FOLDER}/{FLOOR_FILE}" if weights == "distill" else shlex.quote(str(weights or "FILE"))
    command = f"`graycert certify{config} --smoothing features-only --model {file}`"
    return f"{command} certifies it{'' if weights else ', FILE being its weights'}{WHERE if known else ''}."


def _no_prediction(c: Certificates) -> list[str]:
    abstained = int(np.count_nonzero(c.radius < 0))
    if abstained < MANY * len(c) or c.setup.draws is None:
        return []
    more = "a larger `max_estimation`" if isinstance(c.setup.draws, UntilDecided) else "more draws (`--n1`)"
    return [
        f"Draw more, or decide otherwise: {percent_upward(abstained, len(c))} of the targets have no prediction; "
        f"{more} may give them one."
    ]


def _protect(c: Certificates) -> list[str]:
    if not knows_attackers(c):
        return []
    found = protect_first(c, top=NAMED)
    named = ", ".join(f"{each.name} ({each.targets:,})" for each in found.nodes)
    gain = most_gained(c, nodes=NAMED, last=len(shown_rows(c)) - 1)
    if gain is not None and not gain[1]:
        return []
    return [f"Watch or protect first the nodes that limit the most targets: {named}.{_by_trusting(c, gain)}"]


def _by_trusting(c: Certificates, gain: tuple[int, int] | None) -> str:
    """Say what trusting the nodes that were named would gain, or what says it."""
    if not hasattr(c.setup.threat, "trusted"):
        return ""
    if gain is None:
        return (
            " What trusting them would gain is not in this run: `graycert inspect` with its folder and graph says it, "
            "before anybody certifies again with them as trusted nodes."
        )
    rho, more = gain
    several = "target more holds" if more == 1 else "targets more hold"
    return (
        f" If they are trusted, at least {more:,} {several} at ρ = {rho}, by the same votes: certify again with them "
        "as trusted nodes."
    )


def _farther(c: Certificates) -> list[str]:
    if c.setup.max_radius is None:
        return []
    reached = int(np.count_nonzero((c.radius == c.setup.max_radius) & ~c.whole_field))
    if reached < MANY * len(c):
        return []
    return [
        f"Look farther: {percent(reached, len(c))} of the targets reach the largest radius that was looked at, "
        f"{c.setup.max_radius}. `--max-radius` sets it; the votes stay the same (`certificates.again`)."
    ]
