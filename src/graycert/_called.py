"""What readers call the parts of a graph, and sentences in their words."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graycert.errors import InvalidParameterError

FORMS: dict[str, tuple[str, ...]] = {
    "node": ("node", "nodes"),
    "edge": ("edge", "edges"),
    "prediction": ("prediction", "predictions"),
    "features": ("features",),
    "structure": ("the graph structure",),
}
"""What can be called otherwise, and the words that stand for it: one and several, or one phrase."""

LONGEST = 60
"""Signs of a word of readers."""

_CODE = re.compile("(`[^`]*`)")
_EXAMPLE = 'such as account,accounts or structure="who pays whom"'


@dataclass(frozen=True)
class Called:
    """Words of readers for words of graycert; none by default.

    Attributes:
        kinds: What is called otherwise, as it is stored: {"node": "account,accounts"}.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, said: "Called | Mapping[str, Any] | Iterable[str] | str | None") -> "Called":
        """Return what readers call the parts of a graph.

        Args:
            said: "account,accounts" for one node and several; several texts as "edge=payment,payments"; or a mapping
                from node, edge, prediction, features, structure to such words.

        Raises:
            InvalidParameterError: If a part is unknown, named twice, or has not its number of words.

        Example:
            >>> Called.of(["account,accounts", "structure=who pays whom"]).say("A node; the graph structure is fixed.")
            'An account; who pays whom is fixed.'
        """
        if said is None or isinstance(said, Called):
            return said or cls()
        texts = [said] if isinstance(said, str) else said
        pairs = list(texts.items()) if isinstance(texts, Mapping) else [_pair(text) for text in texts]
        kinds: dict[str, str] = {}
        for kind, words in pairs:
            if kind not in FORMS or kind in kinds:
                raise InvalidParameterError(
                    f"`called` must name each of {', '.join(FORMS)} at most once, {_EXAMPLE}, got {kind!r}."
                )
            kinds[kind] = ",".join(_words(kind, words))
        return cls(kinds)

    @property
    def words(self) -> dict[str, str]:
        """Words of graycert, and those of readers for them."""
        found = {
            ours: theirs
            for kind, text in self.kinds.items()
            for ours, theirs in zip(FORMS[kind], _words(kind, text), strict=True)
        }
        return {**found, "target": found["node"], "targets": found["nodes"]} if "nodes" in found else found

    def say(self, text: str) -> str:
        """Return a sentence in the words of readers; what stands between backticks is left as it is."""
        words = self.words
        if not words:
            return text
        ours = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
        pattern = re.compile(rf"(?<![\w./=-])(?:(an?) )?({ours})(?![\w=/-]|\.\w)", re.IGNORECASE)

        def theirs(found: re.Match[str]) -> str:
            article, word = found.groups()
            said = words[word.lower()]
            if article is None:
                return said[:1].upper() + said[1:] if word[0].isupper() else said
            return f"{article[0]}{'n' if said[0].lower() in 'aeiou' else ''} {said}"

        parts = _CODE.split(text)
        return "".join(part if place % 2 else pattern.sub(theirs, part) for place, part in enumerate(parts))


def _pair(text: str) -> tuple[str, str]:
    kind, equals, words = str(text).partition("=")
    return (kind.strip(), words) if equals else ("node", kind)


def _words(kind: str, text: Any) -> list[str]:
    """Return the words for one part, as many as it has forms."""
    forms = FORMS[kind]
    if isinstance(text, str):
        given: list[Any] = text.split(",") if len(forms) > 1 else [text]
    else:
        given = list(text) if isinstance(text, list | tuple) else []
    words = [str(word).strip() for word in given]
    if len(words) != len(forms) or not all(word.isprintable() and 0 < len(word) <= LONGEST for word in words):
        number = "two words, for one and for several" if len(forms) > 1 else "one phrase"
        raise InvalidParameterError(f"`called` must call {kind} by {number}, {_EXAMPLE}, got {text!r}.")
    if "`" in "".join(words):
        raise InvalidParameterError(f"`called` must hold words without backticks, got {text!r}.")
    return words
