"""What to do next: the most pressing first, each where it applies and nowhere else."""

import dataclasses
import re

import numpy as np
import pytest

import graycert
from graycert.runs.next_steps import next_steps
from graycert.runs.shares import percent
from graycert.runs.words import shown_rows
from support.certificates import small_certificates
from support.every_smoothing import any_case, certify_case, made, small_graph

CHECKED = "Have it checked"


@any_case
def test_the_last_step_is_to_have_it_checked(case):
    steps = next_steps(made(case))
    assert steps[-1].startswith(CHECKED)
    assert sum(each.startswith(CHECKED) for each in steps) == 1
    assert steps[0].startswith("Certify again with a sound rule") == (case == "paper")


def test_a_useless_classifier_is_not_to_be_used():
    certificates = small_certificates(num_targets=40)
    lost = certificates.replace(prediction=np.zeros(40, dtype=np.int64), labels=np.arange(40) % 3)
    assert any(each.startswith("Do not use this classifier") for each in next_steps(lost))


def test_who_abstains_needs_more_draws():
    certificates = small_certificates(num_targets=10)
    assert (certificates.radius < 0).sum() == 1
    step = next(each for each in next_steps(certificates) if each.startswith("Draw more"))
    assert "10.0 % of the targets have no prediction" in step
    assert "--n1" in step
    some = small_certificates(num_targets=40)
    assert not any(each.startswith("Draw more") for each in next_steps(some))


def test_whom_to_protect_is_named_as_in_the_table():
    certificates = made("interception")
    step = next(each for each in next_steps(certificates) if each.startswith("Watch or protect"))
    first = certificates.protect_first(top=1).nodes[0]
    assert f"{first.name} ({first.targets})" in step


@pytest.mark.deep
def test_what_trusting_gains_is_said_where_it_is_known():
    c = certify_case("interception", bound="multiplicative")
    last = len(shown_rows(c)) - 1
    nodes = [each.node for each in c.protect_first(top=3).nodes]
    threat = dataclasses.replace(c.setup.threat, trusted=np.isin(np.arange(42), nodes))
    before, after = held(c, last), held(c.again(small_graph(), threat=threat), last)
    more = max(then - now for now, then in zip(before, after, strict=True))
    assert more > 0
    rho = 1 + [then - now for now, then in zip(before, after, strict=True)].index(more)
    step = next(each for each in next_steps(c) if each.startswith("Watch or protect"))
    assert re.search(rf"at least {more} targets? more holds? at ρ = {rho}, by the same votes", step)


def test_where_trusting_gains_nothing_it_is_no_step(monkeypatch):
    c = certify_case("interception", bound="multiplicative")
    assert any(each.startswith("Watch or protect") for each in next_steps(c))
    monkeypatch.setattr("graycert.runs.trusting._concluded", lambda c, *_: (c.radius, c.num_eligible))
    assert not any(each.startswith("Watch or protect") for each in next_steps(c))
    another = c.replace(delta_methods=np.full(len(c), "exact"))  # concluding again may give more than is counted here
    assert "not in this run" in next(each for each in next_steps(another) if each.startswith("Watch or protect"))


@any_case
def test_no_step_promises_what_was_not_computed(case):
    said = " ".join(next_steps(made(case)))
    assert "Trusting them makes radii larger" not in said
    assert ("`graycert inspect`" in said) or ("by the same votes" in said) or ("Watch or protect" not in said)


@pytest.mark.parametrize(
    ("options", "command"),
    [
        (
            {"floor": "distill"},
            "--config THIS-RUN/config.toml --smoothing features-only --model THIS-RUN/floor.safetensors`",
        ),
        (
            {"floor": "/a b/f.safetensors"},
            "--config THIS-RUN/config.toml --smoothing features-only --model '/a b/f.saf",
        ),
        (None, "graycert certify --smoothing features-only --model FILE` certifies it, FILE being its weights."),
    ],
)
def test_the_floor_is_certified_from_the_files_of_the_run(options, command):
    c = small_certificates(num_targets=40)
    trusted = np.ones(50, dtype=bool)
    c = c.replace(
        prediction_of_floor=np.maximum(c.labels, 0),
        setup=c.setup.replace(
            threat=graycert.NodeFeatureThreat(min_distance=1, trusted=trusted), provenance={"options": options}
        ),
    )
    step = next(each for each in next_steps(c) if each.startswith("Consider"))
    assert command in step
    assert ("THIS-RUN being the folder of this run" in step) == (options is not None)


def held(c, last):
    return [int((c.radius >= np.minimum(rho, c.num_eligible)).sum()) for rho in range(1, last + 1)]


def test_radii_at_the_limit_are_a_reason_to_look_farther():
    certificates = made("interception")
    short = certificates.again(small_graph(), max_radius=1)
    reached = int(((short.radius == 1) & ~short.whole_field).sum())
    assert reached >= 0.05 * len(short)
    step = next(each for each in next_steps(short) if each.startswith("Look farther"))
    assert f"{percent(reached, len(short))} of the targets reach" in step
    assert not any(each.startswith("Look farther") for each in next_steps(certificates))
