"""Shares as texts, rounded to the side that promises less."""

from collections.abc import Sequence

from graycert._terminal import table_text


def counted(number: int, what: str) -> str:
    """Return a number of things, of which ``what`` is one.

    Example:
        >>> counted(1, "target"), counted(2_000, "target")
        ('1 target', '2,000 targets')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def percent(count: int, total: int) -> str:
    """Return a share in percent with one decimal, never rounded up.

    Example:
        >>> percent(2, 3), percent(999_999, 1_000_000), percent(0, 0)
        ('66.6 %', '99.9 %', '0.0 %')
    """
    tenths = 1_000 * count // total if total else 0
    return f"{tenths // 10}.{tenths % 10} %"


def percent_upward(count: int, total: int) -> str:
    """Return a share of something bad in percent with one decimal, never rounded down.

    Example:
        >>> percent_upward(1, 3_000)
        '0.1 %'
    """
    tenths = -(-1_000 * count // total) if total else 0
    return f"{tenths // 10}.{tenths % 10} %"


def percent_of(share: float) -> str:
    """Return a share in [0, 1] in percent with one decimal, never rounded up but for the last bits of a float.

    Example:
        >>> percent_of(0.29), percent_of(0.77999)
        ('29.0 %', '77.9 %')
    """
    return percent(int(share * 1_000 + 1e-9), 1_000)


def aligned(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table for a terminal, every cell to the right."""
    return table_text(columns, rows)
