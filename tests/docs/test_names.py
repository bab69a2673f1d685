"""What pages name in backticks exists: files of the repository, and names of the package."""

import re
import subprocess
import sys

import pytest
from markdown_it import MarkdownIt

from support.documentation import ROOT, find_name, pages

VARIABLES = {"certificates", "data", "draws", "models"}  # in examples; other rooms are only rooms
ROOMS = "|".join(sorted({path.stem for path in (ROOT / "src" / "graycert").glob("[a-z]*")} - VARIABLES))
_PATH = re.compile(r"(?:[\w-]+/)+[\w-]+\.(?:py|md|toml|txt)|(?:src|tests|docs|scripts|benchmarks)/[\w/-]*")
_NAME = re.compile(rf"(?:graycert|{ROOMS})(?:\.\w+)+")


def in_backticks(page: str) -> set[str]:
    tokens = MarkdownIt("commonmark").parse((ROOT / page).read_text(encoding="utf-8"))
    inside = [child for token in tokens for child in token.children or []]
    return {child.content for child in inside if child.type == "code_inline"}


def directives(page: str) -> list[str]:
    """Names behind the directives of Sphinx that document them."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^\.\. auto(?:function|class|data|exception):: graycert\.([\w.]+)$", text, re.MULTILINE)


@pytest.mark.parametrize("page", pages())
def test_names_exist(page):
    for text in sorted(in_backticks(page)):
        if _PATH.fullmatch(text) and not text.startswith("runs/"):
            places = (ROOT, ROOT / "src" / "graycert", ROOT / "tests", (ROOT / page).parent)
            assert any((place / text).exists() for place in places), f"{page}: {text}"
        elif _NAME.fullmatch(text.partition("(")[0]) and not text.endswith((".toml", ".py", ".parquet")):
            find_name(text.partition("(")[0].removeprefix("graycert."))
    for name in directives(page):
        assert find_name(name) is not None, f"{page}: {name}"


def test_the_tables_of_what_is_certified_are_those_of_the_code():
    script = [sys.executable, str(ROOT / "scripts" / "build_support_table.py"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", pages())
def test_links_lead_to_pages_and_headings_that_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", text):
        file, _, heading = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.exists(), f"{page}: {target}"
        if heading:
            assert heading in headings(path.read_text(encoding="utf-8")), f"{page}: {target}"


def headings(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
