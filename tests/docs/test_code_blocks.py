"""Every block of the documentation is run and compared, or is data; CONTRIBUTING.md says how they are written."""

import os

import pytest
import torch

from support.documentation import LANGUAGES, Block, Runner, StaleError, blocks, pages

WITH_BLOCKS = [
    page for page in pages() if any(block.language in ("python", "console", "toml", "sh") for block in blocks(page))
]
QUICK = ("CONTRIBUTING.md",)  # the others train models
SLOW = [page for page in WITH_BLOCKS if any("slow" in block.marks for block in blocks(page))]


def run_page(page: str, monkeypatch, *, slow: bool) -> None:
    runner, data = Runner(), os.environ.get("GRAYCERT_DATA")
    monkeypatch.delenv("GRAYCERT_DATA", raising=False)
    for block in blocks(page):
        if "slow" in block.marks and not slow:
            continue
        if "needs data" not in block.marks:
            runner.run(block)
        elif data:
            with monkeypatch.context() as with_data:
                with_data.setenv("GRAYCERT_DATA", data)
                runner.run(block)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    torch.manual_seed(0)


@pytest.mark.parametrize(
    "page", [page if page in QUICK else pytest.param(page, marks=pytest.mark.deep) for page in WITH_BLOCKS]
)
def test_blocks_do_what_the_page_says(page, monkeypatch):
    run_page(page, monkeypatch, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW)
def test_blocks_that_take_minutes_do_what_the_page_says(page, monkeypatch):
    run_page(page, monkeypatch, slow=True)


@pytest.mark.parametrize("page", pages())
def test_every_block_says_what_it_is(page):
    for block in blocks(page):
        assert block.language in LANGUAGES or block.language.startswith("{"), f"{block}: {block.language!r}"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("language", "text", "shown"),
    [
        ("python", "print(1 + 1)", "3\n"),
        ("python", ">>> 1 + 1\n3\n", None),
        ("python", "assert False", None),
        ("console", "$ graycert --version\n9.9\n", None),
        ("console", "$ graycert certify --no-such-option 1\n", None),
        ("console", "$ ls\n", None),
        ("sh", "graycert certify", None),
        ("sh", "make nonsense", None),
        ("sh", "python scripts/nonsense.py", None),
    ],
)
def test_a_stale_block_is_found(language, text, shown):
    with pytest.raises(StaleError):
        Runner().run(Block(page="page.md", line=1, language=language, text=text, shown=shown))


def test_output_may_leave_lines_out_and_have_other_times():
    Runner().run(Block(page="p", line=1, language="python", text="print('a\\nb\\nc 3.1 s')", shown="a\n...\nc 9 s\n"))


def printing(printed: str, shown: str, *marks: str) -> Block:
    return Block(
        page="p", line=1, language="python", text=f"print({printed!r})", shown=shown + "\n", marks=frozenset(marks)
    )


def test_only_marked_blocks_may_show_other_numbers():
    Runner().run(printing("a 75.7 %\n1,000 of 2\nz 5", "a 74.9 %\n...\nz 6", "numbers vary"))
    for stale in (
        printing("75.7 %", "74.9 %"),
        printing("80.0 %", "50 %", "numbers vary"),
        printing("75.7 %", "75.7 % of all", "numbers vary"),
    ):
        with pytest.raises(StaleError):
            Runner().run(stale)
