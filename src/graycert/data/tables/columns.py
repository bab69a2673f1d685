"""Which column is which: as somebody says, else by common names, else refused with the option that decides it."""

import difflib
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from graycert.data.tables.findings import Findings, listed, option
from graycert.data.tables.table import Table

_ENDS = (
    ("source", "target"),
    ("source", "destination"),
    ("src", "dst"),
    ("src", "dest"),
    ("from", "to"),
    ("payer", "payee"),
    ("sender", "receiver"),
    ("sender", "recipient"),
    ("follower", "followee"),
    ("citing", "cited"),
    ("head", "tail"),
    ("orig", "dest"),
    ("nameorig", "namedest"),
    ("u", "v"),
    *((f"{word}1", f"{word}2") for word in ("node", "id", "user", "account", "txid", "person", "name")),
)
_IDS = ("id", "node", "nodeid", "account", "accountid", "user", "userid", "customerid", "txid", "transactionid")
_LABELS = ("label", "labels", "class", "classes", "target", "y", "fraud", "isfraud", "groundtruth")
_SPLITS = ("split", "fold", "subset", "partition")
_SUFFIX = re.compile(r"(?<=[a-z])(nodeid|accountid|userid|node|account|user|ids|id)$")


def plain(name: str) -> str:
    """Return a name in small letters and digits only, to be compared with common names."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def find_ends(table: Table, source: str | None, target: str | None, findings: Findings) -> tuple[str, str] | None:
    """Return the columns of an edge table that name where an edge comes from and goes to.

    Returns:
        None if that is a problem, which is then in ``findings``.
    """
    said = {name: value for name, value in (("source", source), ("target", target)) if value is not None}
    known = [_exists(table, name, value, findings) for name, value in said.items()]  # each is a problem of its own
    if not all(known):
        return None
    if len(said) == 2:
        if source != target:
            return str(source), str(target)
        findings.problems.append(f"`source` and `target` must be two columns of {table.name}, got {source!r} for both.")
        return None
    pairs = [pair for pair in _common_pairs(table) if source in (None, pair[0]) and target in (None, pair[1])]
    exact = [pair for pair in pairs if pair == ("source", "target")]
    if len(exact or pairs) == 1:
        found = (exact or pairs)[0]
    elif not pairs and len(table.columns) == 2 and (said or not _misleading(table)):
        first, second = table.columns
        found = (second, first) if second == source or first == target else (first, second)
    else:
        findings.problems.append(
            f"{table.name} must say which columns hold the two ends of an edge, got {listed(list(table.columns))}. Say "
            f"it with {option('source', '...')} and {option('target', '...')}, or name them source and target. If they "
            "are an edge, add the line source,target above it."
        )
        return None
    if found != ("source", "target"):
        findings.remarks.append(f"edges run from `{found[0]}` to `{found[1]}`")
    return found


def refuse_edge_as_header(table: Table, node_ids: Sequence[str], findings: Findings) -> None:
    """Add a problem if the header of an edge table names two nodes: it is an edge then, and would be lost."""
    known = set(table.columns).intersection(node_ids)
    nodes = [name for name in table.columns if name in known and not name.isdigit()]  # frames number nameless columns
    if len(nodes) > 1 and not _common_pairs(table):
        findings.problems.append(
            f"{table.name} must have a header row, got the names of nodes in its first line: {listed(nodes)}. If it is "
            "an edge, add the line source,target above it; if not, give these columns other names."
        )


def find_id(
    table: Table, said: str | None, *, ends: Sequence[pa.ChunkedArray], taken: Sequence[str], findings: Findings
) -> str | None:
    """Return the column of a node table with the names of the nodes, or None with a problem.

    Args:
        table: The node table.
        said: What the user said.
        ends: Names of the ends of the edges, all of which a column without a common name must have.
        taken: Columns that the user said are something else.
        findings: Where problems and remarks go.
    """
    if said is not None:
        return said if _exists(table, "id", said, findings) else None
    free = [name for name in table.columns if name not in taken]
    common = [name for name in free if plain(name) in _IDS]
    best = [name for name in common if plain(name) == "id"] or common
    found = best if len(best) <= 1 else []
    if not common:
        found = [name for name in free if _names_all(table, name, ends)]
    if len(found) != 1:
        could_be = listed(best or list(table.columns))
        findings.problems.append(
            f"{table.name} must say which column holds the names of the nodes, got {could_be}. "
            f"Say it with {option('id', (best or ['...'])[0])}."
        )
        return None
    if found[0] != "id":
        why = "" if common else ", the only column that names every node of the edges"
        findings.remarks.append(f"node ids are in `{found[0]}`{why}")
    return found[0]


def find_label(table: Table, said: str | None, *, taken: Sequence[str], findings: Findings) -> str | None:
    """Return the column of a node table with the classes, or None if there is none, or it is a problem which."""
    if said is not None:
        return said if said and _exists(table, "label", said, findings) else None
    common = [name for name in table.columns if name not in taken and plain(name) in _LABELS]
    if len(common) > 1:
        findings.problems.append(
            f"{table.name} must have one column of labels, got {listed(common)}. Say which with "
            f"{option('label', common[0])}, and leave out the others, which would be features, with "
            f"{option('drop', ','.join(common[1:]))}."
        )
        return None
    if common and common[0] != "label":
        findings.remarks.append(f"labels are in `{common[0]}`")
    return common[0] if common else None


def find_split(table: Table, said: str | None, *, taken: Sequence[str], findings: Findings) -> str | None:
    """Return the column of a node table that says which nodes are for training, or None."""
    from graycert.data.tables.split_column import says_split

    if said is not None:
        return said if said and _exists(table, "split_column", said, findings) else None
    common = [
        name for name in table.columns if name not in taken and plain(name) in _SPLITS and says_split(table.texts(name))
    ]
    if len(common) > 1:
        findings.problems.append(
            f"{table.name} must have one column that says the split, got {listed(common)}. Say which with "
            f"{option('split_column', common[0])}."
        )
        return None
    return common[0] if common else None


def check_named(table: Table, name: str, columns: Sequence[str], findings: Findings) -> None:
    """Add a problem for every column that an option names and the table lacks."""
    for column in columns:
        _exists(table, name, column, findings)


def _common_pairs(table: Table) -> list[tuple[str, str]]:
    short: dict[str, list[str]] = {}
    for name in table.columns:
        for form in dict.fromkeys((plain(name), _SUFFIX.sub("", plain(name)))):
            short.setdefault(form, []).append(name)
    pairs = []
    for first, second in _ENDS:
        sources, targets = short.get(first, []), short.get(second, [])
        pairs += [(s, t) for s in sources for t in targets if s != t]
    return list(dict.fromkeys(pairs))


def _misleading(table: Table) -> bool:
    """Whether two columns without common names may be something else: a counter, or a table without a header."""
    texts = [table.texts(name) for name in table.columns]
    unique = [len(pc.unique(column)) == table.num_rows for column in texts]
    if table.num_rows > 2 and unique[0] != unique[1]:
        return True
    return any(pc.any(pc.equal(column, name)).as_py() for column in texts for name in table.columns)


def _names_all(table: Table, name: str, ends: Sequence[pa.ChunkedArray]) -> bool:
    texts = table.texts(name)
    if not sum(map(len, ends)) or len(pc.unique(texts)) < table.num_rows:
        return False
    known = texts.combine_chunks()
    return all(pc.all(pc.is_in(column, value_set=known)).as_py() for column in ends)


def _exists(table: Table, option_name: str, column: str, findings: Findings) -> bool:
    if column in table.columns:
        return True
    close = difflib.get_close_matches(column, table.columns, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else "Check its spelling, capitals included."
    findings.problems.append(
        f"`{option_name}` must name a column of {table.name} ({listed(list(table.columns))}), got {column!r}. {hint}"
    )
    return False
