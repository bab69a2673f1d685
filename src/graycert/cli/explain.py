"""`graycert explain`: what a refusal means, and what to do about it."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graycert.cli.console import Console, markdown
from graycert.errors import InvalidParameterError

_ENTRY = re.compile(r"^## (?P<slug>\S+)\n+(?P<text>.+?)\s*(?=^#|\Z)", re.MULTILINE | re.DOTALL)


def explain(slug: str | None = None, /, *, json: Annotated[bool, Parameter(negative=())] = False) -> int:
    """Explain why graycert refused a set-up, and what to do: the reason that the error names in brackets.

    Args:
        slug: Name of the reason, e.g. message-leak. None: list them all.
        json: Print one JSON object instead of text.
    """
    console = Console(as_json=json)
    known = reasons()
    if slug is None:
        text = "\n".join(f"- `{name}`: {_first_sentence(entry)}" for name, entry in known.items())
        console.result(markdown(text), {"command": "explain", "reasons": known})
        return 0
    if slug not in known:
        near = get_close_matches(slug, known, n=1)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise InvalidParameterError(
            f"`SLUG` must be a reason that graycert gives, got {slug!r}.{meant} `graycert explain` lists all."
        )
    console.result(markdown(f"**{slug}**\n\n{known[slug]}"), {"command": "explain", "slug": slug, "text": known[slug]})
    return 0


def reasons() -> Mapping[str, str]:
    """Return what is said of each reason, as Markdown, by its name: the entries of docs/messages.md."""
    shipped = resources.files("graycert") / "messages.md"
    page = shipped if shipped.is_file() else Path(__file__).parents[3] / "docs" / "messages.md"
    return {entry["slug"]: entry["text"] for entry in _ENTRY.finditer(page.read_text(encoding="utf-8"))}


def _first_sentence(text: str) -> str:
    return re.split(r"(?<!e\.g\.)(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0]
