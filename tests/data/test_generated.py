"""The generated graph: what it is said to be, and always the same one."""

import numpy as np
import pytest

from graycert.data import load_graph
from graycert.data.catalogue import CATALOGUE
from graycert.data.generated import HOMOPHILY, INFORMATIVE, NUM_CLASSES, NUM_FEATURES, noisy_features
from graycert.errors import InvalidParameterError
from graycert.graph import graph_fingerprint

KNOWN = "sha256:078d748a171834fadfb670a8cedfdb9183665a46a41e564536ada6ee038ff5a4"


def speaks_of(data):
    """Return the class whose words a node has most of."""
    counts = np.stack([data.x.numpy()[:, each::NUM_CLASSES].sum(axis=1) for each in range(NUM_CLASSES)], axis=1)
    return counts.argmax(axis=1)


def test_it_is_what_the_catalogue_says_wherever_it_is_made(tmp_path):
    data, entry = load_graph("noisy_features", data_root=tmp_path), CATALOGUE["noisy_features"]
    sizes = (data.num_nodes, data.num_edges // 2, data.num_features, int(data.y.max()) + 1)
    assert sizes == (entry.num_nodes, entry.num_edges, entry.num_features, entry.num_classes)
    assert graph_fingerprint(data.edge_index.numpy(), data.num_nodes, data.x.numpy()) == KNOWN
    assert data.graph_record == {"source": "noisy_features"}


def test_neighbours_tell_classes_and_features_mostly_do_not():
    data = noisy_features(seed=3)
    labels = data.y.numpy()
    source, target = data.edge_index.numpy()
    assert (labels[source] == labels[target]).mean() == pytest.approx(
        HOMOPHILY + (1 - HOMOPHILY) / NUM_CLASSES, abs=0.01
    )
    right = (speaks_of(data) == labels).mean()
    assert right == pytest.approx(INFORMATIVE + (1 - INFORMATIVE) / NUM_CLASSES, abs=0.02)
    assert not np.array_equal(data.x.numpy(), noisy_features(seed=4).x.numpy())


def test_all_nodes_can_be_informative_and_sizes_need_not_be_multiples():
    data = noisy_features(61, informative=1.0)
    assert (speaks_of(data) == data.y.numpy()).mean() > 0.9
    assert (data.num_nodes, data.x.shape[1]) == (61, NUM_FEATURES)
    assert int(data.edge_index.max()) < 61


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_nodes": 5}, "`num_nodes` must be"),
        ({"informative": 1.1}, "`informative` must be"),
        ({"seed": -1}, "`seed` must be"),
    ],
)
def test_what_is_out_of_range_is_refused(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        noisy_features(**settings)


def test_options_of_tables_are_refused():
    with pytest.raises(InvalidParameterError, match="`label` says something of tables, but `graph` is noisy_features"):
        load_graph("noisy_features", label="class")
    with pytest.raises(
        InvalidParameterError, match="`nodes` belongs to an edge table, but noisy_features is generated"
    ):
        load_graph("noisy_features", nodes="nodes.csv")
