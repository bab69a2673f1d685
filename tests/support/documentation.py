"""The blocks of the documentation, and what runs them: how they are written stands in CONTRIBUTING.md.

The blocks of a page share a folder and a Python namespace, and are run in their order.
"""

import contextlib
import doctest
import importlib
import io
import os
import re
import shlex
import sys
import tomllib
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from markdown_it import MarkdownIt

import graycert

ROOT = Path(__file__).resolve().parents[2]
OTHERS = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md", "tests/README.md")
LANGUAGES = ("python", "console", "text", "toml", "sh")
MARKS = ("slow", "needs data", "only parsed", "numbers vary", "experiment", "your model")
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


class StaleError(AssertionError):
    """A block does not do what the page says."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block.

    Attributes:
        page: File, relative to the repository.
        line: Line of the fence, from 1.
        language: What stands behind the fence.
        text: What stands between the fences.
        marks: Comments above it that say how it is run.
        shown: The output shown in the block that follows a Python block directly, if there is one.
    """

    page: str
    line: int
    language: str
    text: str
    marks: frozenset[str] = frozenset()
    shown: str | None = None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Return all pages, relative to the repository."""
    files = [ROOT / name for name in OTHERS]
    files += sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)
    return [str(file.relative_to(ROOT)) for file in files]


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page, indented ones too (with the language "indented")."""
    tokens = MarkdownIt("commonmark").parse((ROOT / page).read_text(encoding="utf-8"))
    found: list[Block] = []
    for number, token in enumerate(tokens):
        if token.type not in ("fence", "code_block"):
            continue
        before = tokens[number - 1] if number else None
        comments = _COMMENT.findall(before.content) if before is not None and before.type == "html_block" else []
        marks = frozenset(part.strip() for comment in comments for part in comment.split(";"))
        after = tokens[number + 1] if number + 1 < len(tokens) else None
        shown = after.content if after is not None and after.type == "fence" and after.info == "text" else None
        language = token.info.strip() if token.type == "fence" else "indented"
        text = token.content
        if language.startswith("{code-cell}"):  # of a notebook, which the documentation executes
            language, text = "python", cell(text)
        assert token.map is not None
        found.append(
            Block(
                page=page,
                line=token.map[0] + 1,
                language=language,
                text=text,
                marks=marks & set(MARKS),
                shown=shown if language == "python" else None,
            )
        )
    return found


def cell(text: str) -> str:
    """Return a cell of a notebook as Python: without its options, with commands (!graycert ...) as calls."""
    code = re.sub(r"\A(?::.*\n)+\n*", "", text)
    return re.sub(r"^!(graycert .+)$", lambda command: f"run_command_line({command[1]!r})", code, flags=re.MULTILINE)


def run_command_line(command: str) -> None:
    """Run a command of a notebook.

    Raises:
        StaleError: If it fails.
    """
    status, both, _ = _run(command)
    sys.stdout.write(both)
    if status:
        raise StaleError(f"`{command}` ended with status {status}:\n{both}")


def your_model() -> dict[str, Any]:
    """Return a model and a graph, for blocks that leave them to the reader."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.nn import GraphSAGE
    from torch_geometric.utils import erdos_renyi_graph

    edge_index = erdos_renyi_graph(60, 0.05)
    data = Data(x=torch.randn(60, 4), edge_index=edge_index, y=torch.arange(60) % 2)
    return {"model": GraphSAGE(4, 8, 2, 2).eval(), "data": data}


@dataclass
class Runner:
    """Runs the blocks of a page in their order.

    Attributes:
        names: Namespace of the Python blocks.
    """

    names: dict[str, Any] = field(
        default_factory=lambda: {"__name__": "__main__", "run_command_line": run_command_line}
    )

    def run(self, block: Block) -> None:
        """Run a block and compare.

        Raises:
            StaleError: If it does not do what the page says.
        """
        if "your model" in block.marks:
            self.names.update(your_model())
        if block.language == "python":
            self._python(block)
        elif block.language == "console":
            _console(block)
        elif block.language == "toml":
            _toml(block)
        elif block.language == "sh":
            check_shell(block)

    def _python(self, block: Block) -> None:
        if block.text.lstrip().startswith(">>>"):
            self._session(block)
            return
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(block.text, f"{block}", "exec"), self.names)
        except Exception as error:
            raise StaleError(f"{block}: {traceback.format_exc(limit=-1)}") from error
        if block.shown is not None:
            _compare(block, block.shown, out.getvalue())

    def _session(self, block: Block) -> None:
        test = doctest.DocTestParser().get_doctest(block.text, {}, str(block), block.page, block.line)
        test.globs = self.names
        said = io.StringIO()
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        if runner.run(test, out=said.write, clear_globs=False).failed:
            raise StaleError(f"{block}:\n{said.getvalue()}")


def _console(block: Block) -> None:
    for command, expected in commands(block):
        if "only parsed" in block.marks:
            parse_command(block, command)
            continue
        status, both, out = _run(command)
        if status and not expected.strip():
            raise StaleError(f"{block}: `{command}` ended with status {status}:\n{both}")
        shown = not expected.strip() or any(_same(block, expected, output) for output in (both, out))
        if not shown:
            _compare(block, expected, both)


def commands(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with the output that is shown."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0][:-1] + line.strip(), [])
        elif found:
            found[-1][1].append(line)
        else:
            raise StaleError(f"{block}: a console block must begin with '$ '.")
    return [(command, "\n".join(output)) for command, output in found]


def arguments(block: Block, command: str) -> list[list[str]]:
    """Return the arguments of a `graycert` command, or of each that `make demo` runs."""
    if shlex.split(command, comments=True) == ["make", "demo"]:
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
        assert recipe is not None
        command = "\n".join(re.findall(r"\$\(BIN\)/(graycert [^&>;]*)", recipe[1].replace("\\\n", " ")))
    found = [shlex.split(line, comments=True) for line in command.splitlines()]
    if any(words[:1] != ["graycert"] for words in found):
        raise StaleError(
            f"{block}: only `graycert` can be run in a console block, got `{command}`. Others belong into sh."
        )
    return [words[1:] for words in found]


def parse_command(block: Block, command: str) -> None:
    """Check that a command exists and has these options, without running it."""
    from cyclopts import CycloptsError

    from graycert.cli.main import build_app

    try:
        for words in arguments(block, command):
            build_app().parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise StaleError(f"{block}: `{command}`: {error}") from error


def _run(command: str) -> tuple[int, str, str]:
    """Return status, all output as a terminal shows it, and standard output alone."""
    from graycert.cli.main import main

    both, out = io.StringIO(), io.StringIO()

    class Twice(io.StringIO):
        def write(self, text: str) -> int:
            out.write(text)
            return both.write(text)

    with contextlib.redirect_stdout(Twice()), contextlib.redirect_stderr(both):
        every = arguments(Block(page="", line=0, language="console", text=""), command)
        status = next(filter(None, map(main, every)), 0)
    return status, both.getvalue(), out.getvalue()


def check_shell(block: Block) -> None:
    """Check what a block for the shell names: targets of the Makefile, scripts of this repository.

    Raises:
        StaleError: If something is not there, or is a command that a console block would run.
    """
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["graycert"]:
            raise StaleError(f"{block}: `{line}` belongs into a console block, which is run.")
        if words[:1] == ["make"] and not re.search(
            rf"^[a-z -]*\b{re.escape(words[1])}\b[a-z -]*:", makefile, re.MULTILINE
        ):
            raise StaleError(f"{block}: the Makefile has no target {words[1]!r}.")
        for word in words[1:]:
            if re.match(r"(scripts|benchmarks|tests)/", word) and not (ROOT / word).exists():
                raise StaleError(f"{block}: {word} does not exist.")


def _toml(block: Block) -> None:
    if "experiment" in block.marks:
        from graycert.reproduction.catalogue import parse

        parse(block.text, str(block))
    else:
        tomllib.loads(block.text)


def _compare(block: Block, expected: str, got: str) -> None:
    if not _same(block, expected, got):
        raise StaleError(f"{block}: the page shows\n\n{expected}\n\nbut it is\n\n{normalised(got)}")


def _same(block: Block, expected: str, got: str) -> bool:
    wanted, found = normalised(expected), normalised(got)
    if _matches(wanted, found):
        return True
    return "numbers vary" in block.marks and _nearly(wanted, found)


def _nearly(wanted: str, found: str) -> bool:
    """Return whether texts are the same up to numbers, and numbers up to 3, or 5 %."""
    pieces = wanted.split("...")
    pattern = ".*".join(f"({_NUMBER.pattern})".join(map(re.escape, _NUMBER.split(piece))) for piece in pieces)
    match = re.fullmatch(pattern, found, re.DOTALL)
    if match is None:
        return False
    shown = [each for piece in pieces for each in _NUMBER.findall(piece)]
    pairs = zip(shown, match.groups(), strict=True)
    return all(abs(_value(one) - _value(other)) <= 3 + 0.05 * abs(_value(one)) for one, other in pairs)


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def _matches(wanted: str, found: str) -> bool:
    return doctest.OutputChecker().check_output(wanted, found, doctest.ELLIPSIS)


def normalised(text: str) -> str:
    """Return a text without what differs from run to run: places, times, versions, empty ends of lines."""
    text = text.replace(f"{Path.cwd()}{os.sep}", "").replace(graycert.__version__, "VERSION")
    text = re.sub(r"\b\d+(\.\d+)? (s|seconds|ms)\b", r"N \2", text)
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return "\n".join(lines) + "\n"


def find_name(name: str) -> Any:
    """Return what a dotted name below `graycert` stands for.

    Raises:
        AttributeError: If there is nothing of that name.
    """
    found: Any = graycert
    path = graycert.__name__
    for part in name.split("."):
        path = f"{path}.{part}"
        with contextlib.suppress(ModuleNotFoundError):
            if isinstance(found, ModuleType) and not hasattr(found, part):
                importlib.import_module(path)
        found = getattr(found, part)
    return found
