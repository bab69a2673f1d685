"""Results in the words of readers: every sentence, and no name."""

import dataclasses
import re

import numpy as np
import pytest

import graycert
from graycert._called import Called
from graycert.runs.brief import brief_summary
from graycert.runs.compare import compare
from graycert.runs.comparison_page import comparison_page
from graycert.runs.decision import decision
from graycert.runs.page import render_document, render_report
from graycert.runs.store import load_run
from graycert.runs.view import report_view
from graycert.runs.words import statement
from support.certificates import small_certificates
from support.every_smoothing import CASES, any_case, certify_case, made

WORDS = Called.of(
    {
        "node": "account,accounts",
        "edge": "payment,payments",
        "prediction": "decision,decisions",
        "features": "entries",
        "structure": "who pays whom",
    }
)
OURS = re.compile(r"\b(nodes?|targets?|features|predictions?)\b(?![-.])")


def with_words(certificates):
    setup = certificates.setup
    return certificates.replace(setup=setup.replace(provenance={**setup.provenance, "called": dict(WORDS.kinds)}))


def texts_of(value):
    if isinstance(value, str):
        yield value
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            yield from texts_of(getattr(value, each.name))
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts_of(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_of(each)


@any_case
def test_pages_and_summaries_have_no_other_word(case):
    plain = made(case)
    names = {*plain.node_ids.tolist(), *(plain.setup.class_names or ())}
    certificates = with_words(plain.replace(node_ids=np.char.replace(plain.node_ids, "node", "knot")))
    view = report_view(certificates)
    exact = set(texts_of([view.statement, view.assumptions, view.files, view.redone, view.settings]))
    for text in {*texts_of(view), *texts_of(decision(certificates)), brief_summary(certificates)} - exact - names:
        if text.startswith("In graycert's own words") or "node 1" in text or len(text) < 20:
            continue
        assert not OURS.search(re.sub("`[^`]*`|'[^']*'|node [0-9]+", "", text)), text
    summary = certificates.summary()
    for paragraph in statement(certificates):
        assert paragraph in summary
    assert "whatever" not in brief_summary(certificates) or "account" in brief_summary(certificates)


def test_two_runs_are_compared_in_the_words_of_both():
    before = made("interception")
    after = certify_case("interception", smoothing=graycert.InterceptionSmoothing(p_delete=0.8, p_ablate=0.8))
    page = comparison_page(with_words(before), with_words(after), names=("nodes", "targets"))
    assert page.title == "Two runs: nodes and targets"
    assert [each.title for each in page.sections][2] == "How many of all its accounts each run certifies"
    settings = page.sections[-1].tables
    for text in {*texts_of(page), str(compare(with_words(before), with_words(after)))} - set(texts_of(settings)):
        sentence = text.split("Settings that differ")[0]
        sentence = re.sub("node [0-9]+|^(Two runs: )?nodes and targets|^(nodes|targets): |^nodes .down.*", "", sentence)
        assert sentence in {"nodes", "targets"} or not OURS.search(sentence), text
    mixed = comparison_page(with_words(before), after, names=("one", "other"))
    assert mixed.sections[2].title == "How many of all its targets each run certifies"


def test_pictures_have_the_words_of_readers():
    from matplotlib.figure import Figure

    certificates = with_words(made("interception"))
    left, right = Figure().subplots(1, 2)
    certificates.plot(left)
    certificates.plot_target(int(certificates.targets[int(certificates.radius.argmin())]), right)
    labels = [each.get_text() for each in left.get_legend().get_texts()]
    assert "from its own entries alone" in labels
    for axes in (left, right):
        assert not OURS.search(f"{axes.get_xlabel()} {axes.get_ylabel()}")


def test_names_keep_their_words(tmp_path):
    names = np.array(["node", "edges", "the features", "targets", "prediction", "the graph structure"])
    certificates = with_words(
        small_certificates(
            node_ids=names,
            class_names=("node", "edge", "features"),
            provenance={"graph": {"name": "nodes and edges"}},
        )
    )
    view = report_view(certificates)
    assert view.title.endswith(": nodes and edges")
    assert view.data["classes"] == ["node", "edge", "features"]
    assert sorted(view.data["targets"]["name"]) == sorted(names.tolist())
    said = " ".join(texts_of(view.data["targets"]["said"]))
    assert "Decision: 'node'" in said or "Decision: 'edge'" in said
    assert "'account'" not in said
    explained = certificates.explain("targets")
    assert explained.startswith("Account targets (index ")
    folder = certificates.save(tmp_path / "run")
    assert graycert.runs.load_run(folder).setup.provenance["called"] == dict(WORDS.kinds)


def test_what_is_proved_keeps_the_words_of_graycert():
    certificates = made("interception")
    plain, told = report_view(certificates), report_view(certificates, called=WORDS)
    for name in ("statement", "assumptions", "files", "redone", "settings"):
        assert getattr(plain, name) == getattr(told, name)
    assert plain.claim != told.claim
    assert {each.word for each in told.terms} >= {"accounts", "payments", "who pays whom"}


@pytest.mark.parametrize("case", ["interception", "votes-hostile", "subgraphs"])
def test_numbers_are_the_same_in_any_words(case):
    if case not in CASES:
        case = "interception"
    certificates = made(case)
    plain, told = report_view(certificates), report_view(certificates, called=WORDS)
    for name in ("histogram", "by_degree", "fields", "shown", "last", "total"):
        assert plain.data[name] == told.data[name]
    for name, column in plain.data["targets"].items():
        if name != "said":
            assert told.data["targets"][name] == column
    assert [re.findall(r"\d+", each) for each in texts_of(plain.data["claims"])] == [
        re.findall(r"\d+", each) for each in texts_of(told.data["claims"])
    ]


def test_a_run_with_words_is_loaded_with_them_and_its_page_is_the_same(tmp_path):
    certificates = with_words(made("interception"))
    folder = certificates.save(tmp_path / "run")
    loaded = load_run(folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert render_report(report_view(loaded)) == page
    assert "12 accounts each keep their smoothed decision" in page
    assert "keep their smoothed decision" in render_document(decision(loaded))
    assert "accounts" in str(loaded.protect_first())
    assert "accounts" in loaded._repr_html_()


def test_certify_stores_words_and_refuses_others():
    with pytest.raises(graycert.errors.InvalidParameterError, match="`called`"):
        graycert.certify(
            None,
            None,
            smoothing=graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.8),
            threat=graycert.NodeFeatureThreat(),
            called="account",
        )
