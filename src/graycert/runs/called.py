"""What is said of a result in the words of its readers: names of nodes, classes and graphs stay as they are."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from graycert._called import FORMS, Called
from graycert._types import TextArray
from graycert.certificates import Certificates
from graycert.runs.neighbourhoods import neighbourhoods_of
from graycert.runs.terms import Term

_TOKEN = re.compile("\ue000([0-9]+)\ue001")

View = TypeVar("View")

EXACT = ("statement", "assumptions", "files", "redone", "settings")
"""Fields of views that keep the words of graycert: what is proved is not the readers' to rename."""


def called_of(c: Certificates) -> Called:
    """Return the words that a result was made with."""
    return Called.of(c.setup.provenance.get("called"))


def told(c: Certificates, make: Callable[[Certificates], View], called: Called | None = None) -> View:
    """Return what ``make`` says of a result, in the words of readers.

    Names are taken out before words are exchanged and put back afterwards, so that a class called "node" keeps its
    name.

    Args:
        c: A result.
        make: Makes a text, a dataclass, or nested plain values; fields in `EXACT` keep their words.
        called: The words; None for those of the result.
    """
    words = called_of(c) if called is None else called
    if not words.kinds:
        return make(c)
    names: list[str] = []
    bare = _without_names(c, names)

    def put_back(text: str) -> str:
        return _TOKEN.sub(lambda found: names[int(found[1])] if int(found[1]) < len(names) else found[0], text)

    view: View = _mapped(make(bare), lambda text: put_back(words.say(text)), put_back)
    return view


def words_explained(called: Called) -> tuple[Term, ...]:
    """Return each word of readers, and what it stands for."""
    ours = [FORMS[kind][-1] for kind in called.kinds]
    return tuple(Term(word=called.words[each], meaning=f"In graycert's own words: {each}.", forms=()) for each in ours)


def _without_names(c: Certificates, names: list[str]) -> Certificates:
    """Return a result whose names are tokens, and append the names to a list."""

    def token(name: str) -> str:
        names.append(name)
        return f"\ue000{len(names) - 1}\ue001"

    def tokens(array: TextArray | None) -> TextArray | None:
        if array is None:
            return None
        known, places = np.unique(array, return_inverse=True)
        return np.array([token(name) for name in known.tolist()], dtype=np.str_)[places].reshape(array.shape)

    s, drawn = c.setup, neighbourhoods_of(c)
    graph, provenance = s.provenance.get("graph"), dict(s.provenance)
    if isinstance(graph, dict) and isinstance(graph.get("name"), str):
        provenance["graph"] = {**graph, "name": token(graph["name"])}
    classes = None if s.class_names is None else tuple(map(token, s.class_names))
    return c.replace(
        setup=s.replace(class_names=classes, provenance=provenance),
        node_ids=tokens(c.node_ids),
        attacker_ids=tokens(c.attacker_ids),
        neighbourhoods=None if drawn is None else dataclasses.replace(drawn, names=tokens(drawn.names)),
    )


def _mapped(value: Any, say: Callable[[str], str], put_back: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return say(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value,
            **{
                each.name: _mapped(getattr(value, each.name), put_back if each.name in EXACT else say, put_back)
                for each in dataclasses.fields(value)
            },
        )
    if isinstance(value, dict):
        return {key: _mapped(each, say, put_back) for key, each in value.items()}
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], int):  # columns of numbers
            return value
        return type(value)(_mapped(each, say, put_back) for each in value)
    return value
