"""The page that holds what was measured against what the paper says, one row per claim."""

from collections.abc import Sequence
from pathlib import Path

from graycert._files import write_atomically
from graycert.reproduction.record import Comparison, Record

_HEAD = "# Reproduction\n\nWritten by `graycert reproduce`."
_VERDICTS = {"agrees": "agrees", "differs": "**differs**", "not checked": "not checked"}


def write_page(records: Sequence[Record], file: Path, *, images: str = "{id}/figure.png", head: str = _HEAD) -> None:
    """Write a Markdown page.

    Args:
        records: One per experiment, in order.
        file: Of the page.
        images: Where the page finds the figure of an experiment, with its ``{id}``.
        head: Text before the table.
    """
    parts = [head.rstrip(), _summary(records), _table(records), *(_section(each, images) for each in records)]
    write_atomically(file, lambda path: path.write_text("\n\n".join(parts) + "\n", encoding="utf-8"))


def _summary(records: Sequence[Record]) -> str:
    verdicts = [comparison.verdict for each in records for comparison in each.comparisons]
    return (
        f"{len(records)} experiments, {len(verdicts)} claims: {verdicts.count('agrees')} agree, "
        f"{verdicts.count('differs')} differ, {verdicts.count('not checked')} could not be checked. Computing took "
        f"{sum(each.core_seconds for each in records) / 60:,.0f} core-minutes, counting shared results once per figure."
    )


def _table(records: Sequence[Record]) -> str:
    rows = ["| what | claim | measured | agrees if | verdict |", "|---|---|--:|---|---|"]
    for each in records:
        name = f"[{each.id}](#{each.id})"
        if not each.comparisons:
            rows.append(f"| {name} | {each.title} | | | no claim |")
        rows += [
            f"| {name} | {_cell(claim.text)} | {_number(claim)} | {claim.limits} | {_verdict(claim)} |"
            for claim in each.comparisons
        ]
    return "\n".join(rows)


def _section(record: Record, images: str) -> str:
    parts = [
        f"## {record.id}",
        f"**{record.title}** ({record.source}). {record.description}",
        f"![{record.title}]({images.format(id=record.id)})",
    ]
    if record.reduction:
        parts.append(f"*Less than in the paper:* {record.reduction}")
    if record.remark:
        parts.append(f"*Note:* {record.remark}")
    remarks = [f"* {claim.text}: {claim.remark}" for claim in record.comparisons if claim.remark]
    if remarks:
        parts.append("\n".join(remarks))
    scale = "" if record.scale == "small" else f" --scale {record.scale}"
    parts.append(f"`graycert reproduce {record.id}{scale}` · {record.core_seconds:,.0f} core-seconds")
    return "\n\n".join(parts)


def _number(claim: Comparison) -> str:
    return "" if claim.value is None else f"{claim.value:.3g}"


def _verdict(claim: Comparison) -> str:
    why = f" {_cell(claim.remark)}" if claim.verdict == "differs" and claim.remark else ""
    return _VERDICTS[claim.verdict] + why


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
