"""By what a graph can be made again: its source, what was said of it, and what was done to it since."""

import os
from collections.abc import Mapping
from typing import Any

ATTRIBUTE = "graph_record"


def remember(data: Any, *, source: str | None, nodes: Any, options: Mapping[str, Any]) -> None:
    """Note by which call of `load_graph` the graph can be loaded again.

    Args:
        data: The graph.
        source: Its name, or a path that holds in any working folder; None if it was made from an object.
        nodes: Path of its node table, or None.
        options: What was said besides.
    """
    record: dict[str, Any] = {} if source is None else {"source": source}
    record |= {"options": dict(options)} if options else {}
    if source is not None and nodes is not None:
        record["nodes"] = os.path.realpath(os.path.expanduser(nodes))  # noqa: PTH111 (as a text)
    data[ATTRIBUTE] = record


def remember_step(data: Any, before: Any, options: Mapping[str, bool]) -> None:
    """Note that the graph was made from another one by `prepare_graph` with these options."""
    record = dict(before.get(ATTRIBUTE) or {})
    if any(options.values()):
        record["steps"] = [*record.get("steps", []), [name for name, chosen in options.items() if chosen]]
    if record:
        data[ATTRIBUTE] = record


def forget(data: Any) -> None:
    """Note that the graph cannot be made again by loading and preparing alone."""
    if data.get(ATTRIBUTE) is not None:
        del data[ATTRIBUTE]


def graph_record(data: Any) -> dict[str, Any]:
    """Return what a run stores of where its graph is from, for `verify`: plain values, none if nothing is known."""
    name, record, preparation = (getattr(data, each, None) for each in ("graph_name", ATTRIBUTE, "preparation"))
    if name is None and record is None and preparation is None:
        return {}
    stored = {"name": "user graph" if name is None else str(name), **dict(record or {})}
    return {**stored, "preparation": [str(each) for each in preparation or ()]}
