"""Write the tables of what is certified in docs/soundness.md from the claims in the code; with --check only compare."""

import re
import sys
from pathlib import Path

from graycert.rules import RULES
from graycert.smoothing import FOLLOWS, SMOOTHINGS, Cell
from graycert.threats import THREATS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "soundness.md"
CLAIMED = dict.fromkeys([*THREATS, *(claim.threat for each in SMOOTHINGS.values() for claim in each.claims)])
BLOCK = re.compile(r"(<!-- support: (\w+) -->\n\n).*?(\n<!-- end -->)", re.DOTALL)


def shown(cell: Cell, text: str = "yes") -> str:
    """Return a cell of the table: a link to its proof, or the name of the refusal with a link to it."""
    if cell.status == "proved":
        return f"[{text}](proofs/{cell.proof}.md)"
    if cell.status == "compared":
        return "computed, not proved"
    return f"[{cell.slug}](messages.md#{cell.slug})"


def threats_table() -> str:
    """Return smoothing × threat, with the rules of each."""
    rows = _head("smoothing", *(f"`{threat}`" for threat in CLAIMED))
    for name, smoothing in SMOOTHINGS.items():
        cells = []
        for threat in CLAIMED:
            proved = {rule: cell for rule in RULES if (cell := smoothing.cell(threat, rule)).status == "proved"}
            if proved:
                cells.append(", ".join(shown(cell, rule) for rule, cell in proved.items()))
            else:
                cells.append(shown(smoothing.cell(threat, next(iter(RULES)))))
        rows.append(_row(f"`{name}`", *cells))
    return "\n".join(rows)


def follows_table() -> str:
    """Return what else follows from each combination that is certified or computed; equal ones share a row."""
    rows = _head("smoothing", "threats", "rule", "certificate", *FOLLOWS)
    for name, smoothing in SMOOTHINGS.items():
        threats_of: dict[tuple[str, ...], list[str]] = {}
        for threat in CLAIMED:
            for rule in RULES:
                cells = [smoothing.cell(threat, rule), *(smoothing.cell(threat, rule, what) for what in FOLLOWS)]
                if cells[0].status != "refused":
                    threats_of.setdefault((rule, *map(shown, cells)), []).append(f"`{threat}`")
        rows += [_row(f"`{name}`", ", ".join(threats), *cells) for cells, threats in threats_of.items()]
    return "\n".join(rows)


def _head(*names: str) -> list[str]:
    return [_row(*names), "|---" * len(names) + "|"]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def build(page: str) -> str:
    """Return the page with fresh tables."""
    tables = {"threats": threats_table(), "follows": follows_table()}
    missing = set(tables) - {match[2] for match in BLOCK.finditer(page)}
    if missing:
        raise SystemExit(f"{PAGE} has no place for: {', '.join(sorted(missing))}")
    return BLOCK.sub(lambda match: match[1] + tables[match[2]] + match[3], page)


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    after = build(before)
    if "--check" in sys.argv:
        sys.exit(0 if before == after else f"{PAGE} is stale: run scripts/build_support_table.py")
    PAGE.write_text(after, encoding="utf-8")
