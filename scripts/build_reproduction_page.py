"""Write docs/reproduction.md, with its figures, from a run of `graycert reproduce`.

Usage: python scripts/build_reproduction_page.py runs/reproduce/small
"""

import sys
from pathlib import Path

from PIL import Image

from graycert.reproduction.page import write_page
from graycert.reproduction.reproduce import read_all

DOCS = Path(__file__).resolve().parent.parent / "docs"
WIDTH = 900
COLOURS = 64
HEAD = """\
# Reproduction

What the paper says, what we measured, and whether they agree: `graycert reproduce all --scale small`, two cores. Each
section says what the small scale leaves out. Claims are the paper's in our words, those of `beyond-...` our own. The
limits within which a number supports a claim are ours too, some of them chosen after a first look at the numbers: read
the numbers, not only the verdicts. They stand in `src/graycert/reproduction/definitions`.
[How to run it](experiments.md)."""


def main(run: Path) -> None:
    """Copy the figures in a size for reading on a screen, and write the page."""
    records = read_all(run)
    for each in records:
        target = DOCS / "reproduction" / f"{each.id}.png"
        target.parent.mkdir(exist_ok=True)
        with Image.open(run / each.id / "figure.png") as image:
            image.thumbnail((WIDTH, 4 * WIDTH))
            image.convert("RGB").quantize(COLOURS).save(target, optimize=True)
    write_page(records, DOCS / "reproduction.md", images="reproduction/{id}.png", head=HEAD)
    print(f"{len(records)} experiments in {DOCS / 'reproduction.md'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
