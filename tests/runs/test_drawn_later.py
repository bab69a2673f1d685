"""Drawings of runs that were made without: from the graph, kept where verify compares them, or why there are none."""

import numpy as np
import pytest

import graycert
from graycert.errors import InvalidParameterError
from graycert.runs import store, votes_file
from graycert.runs.drawn_later import keep_drawings, why_none, with_drawings
from graycert.runs.neighbourhoods import neighbourhoods_of
from graycert.runs.page_data import page_data
from support.every_smoothing import made, small_graph


@pytest.fixture
def early(tmp_path, monkeypatch):
    """A run as it was saved before drawings were kept."""

    def saved(case):
        monkeypatch.setattr(votes_file, "neighbourhoods_of", lambda _: None)
        folder = made(case).replace(graph=None).save(tmp_path / case)
        monkeypatch.undo()
        return folder

    return saved


@pytest.mark.parametrize("case", ["interception", "node-deletion", "retention"])
def test_early_runs_are_drawn_from_their_graph_as_new_ones_are(case, early):
    folder = early(case)
    loaded = store.load_run(folder)
    assert page_data(loaded)["fields"] is None
    assert "--graph draws them" in page_data(loaded)["no_fields"]
    drawn = with_drawings(loaded, small_graph())
    assert neighbourhoods_of(drawn).differs_from(neighbourhoods_of(made(case)), tolerance=1e-12) == ""
    assert page_data(drawn)["fields"] == page_data(made(case))["fields"]
    assert page_data(drawn)["no_fields"] == ""


def test_what_is_drawn_later_is_kept_and_verified(early):
    folder = early("interception")
    keep_drawings(with_drawings(store.load_run(folder), small_graph()), folder)
    again = store.load_run(folder)
    assert again.neighbourhoods is not None
    assert np.array_equal(again.radius, made("interception").radius)
    found = graycert.verify(folder, data=small_graph())
    checked = {each.name: each.passed for each in found.checks}
    assert checked["neighbourhoods"]
    assert not checked["report.html"]  # written before


def test_another_graph_draws_nothing(early):
    other = small_graph().clone()
    other.x = other.x + 1
    with pytest.raises(InvalidParameterError, match="must be the graph of the certificates"):
        with_drawings(store.load_run(early("interception")), other)


def test_where_messages_may_go_anywhere_it_says_so():
    assert "nothing to draw" in why_none(made("sparse"))
    assert page_data(made("sparse"))["no_fields"] == why_none(made("sparse"))
    with pytest.raises(InvalidParameterError, match="nothing to draw"):
        with_drawings(made("sparse"), small_graph())
