"""Words of readers: what may be called otherwise, and sentences in which it is."""

import pytest

from graycert._called import Called
from graycert.errors import InvalidParameterError


@pytest.mark.parametrize(
    ("said", "before", "after"),
    [
        ("account,accounts", "A node, the node's nodes; 3 targets.", "An account, the account's accounts; 3 accounts."),
        ("account,accounts", "`--nodes`: nodes.csv, p_node, node-x", "`--nodes`: nodes.csv, p_node, node-x"),
        ("shop,shops", "Nodes to protect: one node, an edge", "Shops to protect: one shop, an edge"),
        (["edge=payment,payments"], "An edge is no node; any 2 edges", "A payment is no node; any 2 payments"),
        ({"structure": "who pays whom"}, "The graph structure is fixed.", "Who pays whom is fixed."),
        (["prediction=decision,decisions", "features=entries"], "a prediction, features", "a decision, entries"),
        ({"node": ("node of ours", "nodes of ours")}, "a node, nodes", "a node of ours, nodes of ours"),
        (None, "A node", "A node"),
    ],
)  # fmt: skip
def test_sentences_are_said_in_other_words(said, before, after):
    assert Called.of(said).say(before) == after
    assert Called.of(Called.of(said).kinds) == Called.of(said)


@pytest.mark.parametrize(
    "said",
    [
        "account",
        "account,accounts,more",
        "account,",
        ["vertex=a,b"],
        ["a,b", "node=c,d"],
        {"structure": ""},
        {"node": "a`b,c"},
        {"node": "a\nb,c"},
        {"node": "\u202ea,b"},
        {"features": "x" * 61},
        {"node": 7},
    ],
)
def test_words_that_are_none_are_refused(said):
    with pytest.raises(InvalidParameterError, match=r"`called`"):
        Called.of(said)
