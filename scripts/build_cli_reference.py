"""Write the tables of options in docs/cli.md from the commands themselves; with --check only say if they are stale."""

import inspect
import itertools
import re
import sys
import typing
from pathlib import Path

from graycert.cli.commands import every_command
from graycert.cli.configs import Config

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
COMMANDS = {command.name: command.function for command in every_command()}
BLOCK = re.compile(r"(<!-- options: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def options_table(name: str) -> str:
    """Return the options of a command as a Markdown table."""
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for option, default, meaning in _options(COMMANDS[name]):
        shown = "" if default is None or default is inspect.Parameter.empty else f"`{default}`"
        rows.append(f"| {option} | {shown} | {meaning} |")
    return "\n".join(rows) + "\n"


def _options(command: typing.Any) -> typing.Iterator[tuple[str, object, str]]:
    described = re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)$", inspect.getdoc(command) or "", re.MULTILINE)
    documented = {name: " ".join(text.split()) for name, text in described}
    for name, parameter in inspect.signature(command).parameters.items():
        kind = typing.get_args(parameter.annotation)[:1] or (parameter.annotation,)
        if isinstance(kind[0], type) and issubclass(kind[0], Config):
            for key, field in kind[0].model_fields.items():
                meaning = _with_choices(field.description or "", field.annotation)
                yield _flag(key, field.metadata, field.annotation), _default(field.default), meaning
            continue
        several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        positional = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        option = (
            f"`{name.upper()} ...`"
            if several
            else f"`{name.upper()}`"
            if positional
            else "`--quiet`, `-q`"
            if name == "quiet"
            else f"`--{name.rstrip('_').replace('_', '-')}`"
        )
        yield option, _default(parameter.default), documented[name]


def _flag(key: str, metadata: list[typing.Any], annotation: object) -> str:
    flag = key.replace("_", "-")
    if annotation is not bool and bool not in typing.get_args(annotation):
        short = [item.alias for item in metadata if getattr(item, "alias", None)]
        return ", ".join(f"`{text}`" for text in (f"--{flag}", *itertools.chain(*short)))
    negatives = [item.negative for item in metadata if getattr(item, "negative", None) is not None]
    negative = negatives[0] if negatives else (f"--no-{flag}",)
    return ", ".join(f"`{text}`" for text in (f"--{flag}", *negative))


def _with_choices(text: str, annotation: object) -> str:
    """Return a description that names the choices, if there are some and it does not."""
    kinds = (annotation, *typing.get_args(annotation))
    choices = [
        choice for kind in kinds if typing.get_origin(kind) is typing.Literal for choice in typing.get_args(kind)
    ]
    return text if all(choice in text for choice in choices) else f"{text} One of: {', '.join(choices)}."


def _default(value: object) -> object:
    return None if value is False else value


def build(page: str) -> str:
    """Return the page with fresh tables."""
    return BLOCK.sub(lambda match: match[1] + options_table(match[2]) + match[3], page)


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    after = build(before)
    if "--check" in sys.argv:
        sys.exit(0 if before == after else f"{PAGE} is stale: run scripts/build_cli_reference.py")
    PAGE.write_text(after, encoding="utf-8")
