"""The graph that ships with graycert, and the script that builds it."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from graycert.data import load_graph
from graycert.data.catalogue import CATALOGUE, embedded_path
from support.graphs import edge_set

SCRIPT = Path(__file__).parents[2] / "scripts" / "build_wordnet_graph.py"
WORDNET = Path("/usr/share/wordnet")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_wordnet_graph", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_embedded_graph_is_what_the_catalogue_says() -> None:
    data, entry = load_graph("wordnet_nouns"), CATALOGUE["wordnet_nouns"]
    assert (data.num_nodes, data.edge_index.size(1)) == (entry.num_nodes, 2 * entry.num_edges)
    assert data.x.size(1) == entry.num_features
    assert torch.unique(data.y).tolist() == list(range(entry.num_classes))
    assert data.class_names == ["body", "event", "food", "shape", "substance", "time"]
    assert data.preparation == []  # it is shipped as the paper prepares its graphs


def test_nodes_have_readable_names_and_sensible_neighbours() -> None:
    data = load_graph("wordnet_nouns")
    node = {name: i for i, name in enumerate(data.node_ids)}
    assert len(node) == data.num_nodes
    assert data.class_names[data.y[node["apple.n.01"]]] == "food"
    neighbours = {data.node_ids[w] for w, v in edge_set(data) if v == node["apple.n.01"]}
    assert "eating_apple.n.01" in neighbours
    same_label = (data.y[data.edge_index[0]] == data.y[data.edge_index[1]]).float().mean()
    assert float(same_label) == pytest.approx(0.99, abs=0.005)


def test_the_licence_lies_beside_the_graph() -> None:
    text = (embedded_path().parent / "WORDNET-LICENSE.txt").read_text("utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in text
    assert 'THIS SOFTWARE AND DATABASE IS PROVIDED "AS IS"' in text
    assert "derived from WordNet 3.0" in text


def test_the_file_is_small_and_has_no_objects() -> None:
    assert embedded_path().stat().st_size < 250_000
    with np.load(embedded_path(), allow_pickle=False) as arrays:
        assert all(arrays[name].dtype.kind in "iuU" for name in arrays.files)


def test_a_line_of_wordnet_is_read_field_by_field(script: ModuleType) -> None:
    line = (
        "00002137 13 n 02 Abstraction 0 abstract_entity 0 003 @ 00001740 n 0000 + 00692347 v 0101 ~ "
        "00023100 n 0000 "
        '| a general Concept; "an example"  \n'
    )
    synset = script.parse_synset(line)
    assert (synset.offset, synset.lexicographer_file, synset.first_lemma) == (2137, 13, "abstraction")
    assert synset.noun_pointers == (1740, 23100)  # the verb is left out
    assert script.definition_words(synset) == {"general", "concept"}


def write_wordnet(folder: Path) -> None:
    """Three foods in a chain, one body part pointing to a food, a lonely feeling, and an act that is left out."""
    lines = [
        "  1 This software and database is being provided to you  \n",
        "00000100 13 n 01 Apple 0 001 @ 00000200 n 0000 | red fruit  \n",
        "00000200 13 n 01 fruit 0 002 ~ 00000100 n 0000 @ 00000300 n 0000 | sweet food  \n",
        '00000300 13 n 01 food 0 001 ~ 00000200 n 0000 | sweet food; "not this"  \n',
        "00000400 08 n 01 tongue 0 002 + 00000300 n 0000 @ 00000600 n 0000 | red food  \n",
        "00000500 12 n 01 joy 0 000 | red  \n",
        "00000600 04 n 01 eating 0 001 ~ 00000400 n 0000 | food  \n",
    ]
    (folder / "data.noun").write_text("".join(lines))
    index = ["  1 licence\n", "apple n 2 1 @ 2 1 00000700 00000100  \n"]
    index += [f"{w} n 1 1 @ 1 1 00000{i}00  \n" for w, i in [("fruit", 2), ("food", 3), ("tongue", 4), ("joy", 5)]]
    (folder / "index.noun").write_text("".join(index))


def test_the_script_builds_the_expected_graph(script: ModuleType, tmp_path: Path) -> None:
    write_wordnet(tmp_path)
    arrays = script.build_graph(tmp_path, vocabulary_size=3)
    assert arrays["node_names"].tolist() == ["apple.n.02", "fruit.n.01", "food.n.01", "tongue.n.01"]
    assert arrays["class_names"].tolist() == ["body", "food"]
    assert arrays["labels"].tolist() == [1, 1, 1, 0]
    assert arrays["attr_names"].tolist() == ["food", "red", "sweet"]
    (tmp_path / "graph.npz").write_bytes(script.npz_bytes(arrays))
    data = load_graph(tmp_path / "graph.npz")
    assert edge_set(data) == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)}
    assert data.x.tolist() == [[0, 1, 0], [1, 0, 1], [1, 0, 1], [1, 1, 0]]


def test_the_check_finds_every_difference(script: ModuleType, tmp_path: Path) -> None:
    write_wordnet(tmp_path)
    arrays, text = script.build_graph(tmp_path, vocabulary_size=3), script.read_license(tmp_path / "data.noun")
    assert len(script.differences(tmp_path, arrays, text)) == 2
    (tmp_path / script.GRAPH_FILE).write_bytes(script.npz_bytes(arrays))
    (tmp_path / script.LICENSE_FILE).write_text(text)
    assert script.differences(tmp_path, arrays, text) == []
    changed = {**arrays, "labels": arrays["labels"][::-1]}
    assert script.differences(tmp_path, changed, text) == ["wordnet_nouns.npz: the array labels differs"]
    assert script.differences(tmp_path, {**arrays, "more": arrays["labels"]}, text)[0].startswith(
        "wordnet_nouns.npz has"
    )
    assert script.differences(tmp_path, arrays, "other") == ["WORDNET-LICENSE.txt is missing or differs"]


@pytest.mark.deep
def test_the_shipped_files_are_what_the_script_builds(script: ModuleType) -> None:
    if not (WORDNET / "data.noun").is_file():
        pytest.skip("the Debian package wordnet-base is not installed")
    arrays = script.build_graph(WORDNET)
    assert script.differences(script.EMBEDDED, arrays, script.read_license(WORDNET / "data.noun")) == []
