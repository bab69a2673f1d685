"""Figures that are formulas are experiments like all others."""

from inspect import signature

import pytest

from graycert.errors import InvalidParameterError
from graycert.reproduction.catalogue import FORMULAS, KINDS, catalogue, kind_of
from graycert.reproduction.experiment import Experiment
from graycert.reproduction.formulas import bottleneck
from graycert.reproduction.results import Results


def experiment(kind):
    return Experiment(id="mine", title="Mine", source="our own", description="A formula.", kind=kind)


def test_the_settings_are_the_parameters_of_the_function(tmp_path):
    kind = kind_of(experiment("bottleneck"), {"p_deletes": [0.5], "num_attackers": 3})
    assert set(type(kind).model_fields) == set(signature(bottleneck.tables).parameters)
    assert kind.model_dump() == {"p_deletes": (0.5,), "p_ablate": 0.0, "num_attackers": 3}
    found = kind.tables(Results(tmp_path))
    assert found["bounds"].equals(bottleneck.tables(p_deletes=(0.5,), num_attackers=3)["bounds"])
    assert kind.measures(found) == bottleneck.measures(found)
    assert (kind.jobs(), kind.sweeps(), kind.graphs) == ([], [], ())


@pytest.mark.parametrize(
    ("kind", "settings", "problem"),
    [
        ("bottleneck", {"p_ablate": 1.2}, "p_ablate"),
        ("bottleneck", {"p_deletes": []}, "p_deletes"),
        ("radius-limit", {"steps": 0}, "steps"),
        ("shared-edges", {"step": 3}, "step"),
        ("single-source-heatmap", {"cells": 2.5}, "cells"),
        ("formula", {}, "radius-limit"),
    ],
)
def test_wrong_settings_are_refused_with_their_name(kind, settings, problem):
    with pytest.raises(InvalidParameterError, match=problem):
        kind_of(experiment(kind), settings)


def test_every_kind_of_figure_has_a_definition_and_no_name_is_taken_twice():
    assert {each.kind for each in catalogue().values()} == {*KINDS, *FORMULAS}
    assert not set(KINDS) & set(FORMULAS)
