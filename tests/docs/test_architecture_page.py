"""ARCHITECTURE.md shows the layers of the import contract, and names every room."""

import re
import tomllib

from support.documentation import ROOT, blocks


def layers() -> list[str]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    return next(contract["layers"] for contract in contracts if contract["type"] == "layers")


def test_the_layers_are_those_of_the_contract():
    assert layers() in [block.text.splitlines() for block in blocks("ARCHITECTURE.md")]


def test_every_room_is_in_the_table():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    first_cells = " ".join(re.findall(r"^\| (`.+?) \|", page, re.MULTILINE))
    rooms = {room.strip() for layer in layers() for room in layer.split("|") if not room.strip().startswith("_")}
    assert rooms - {"errors"} <= set(re.findall(r"`(\w+)`", first_cells))
