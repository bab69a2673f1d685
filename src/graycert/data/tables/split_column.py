"""A column that says which nodes are for training, validation and testing, or three that mark them."""

import pyarrow as pa
import pyarrow.compute as pc

from graycert._types import BoolArray
from graycert.data.tables.findings import Findings, in_rows, option
from graycert.data.tables.table import Table

MASKS = ("train_mask", "val_mask", "test_mask")
_WORDS = {
    "train_mask": ("train", "training", "trn", "tr"),
    "val_mask": ("val", "valid", "validation", "dev", "va"),
    "test_mask": ("test", "testing", "tst", "te"),
}
_NEITHER = ("", "none", "nan", "na", "unused", "no", "-")
_KNOWN = pa.array([*_NEITHER, *(word for words in _WORDS.values() for word in words)], pa.string())
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def says_split(texts: pa.ChunkedArray) -> bool:
    """Whether a column has nothing but words for training, validation and testing."""
    return bool(pc.all(pc.is_in(pc.utf8_lower(texts), value_set=_KNOWN)).as_py())


def masks_of_column(table: Table, column: str, node_ids: list[str], findings: Findings) -> dict[str, BoolArray]:
    """Return PyG's three masks as a column says them, each bool, shape (num_rows,)."""
    words = pc.utf8_lower(table.texts(column))
    unknown = pc.invert(pc.is_in(words, value_set=_KNOWN)).to_numpy().nonzero()[0].tolist()
    if unknown:
        values = [table.texts(column)[row].as_py() for row in unknown[:3]]
        findings.problems.append(
            f"`{column}` of {table.name} must say train, validation or test, got "
            f"{in_rows(values, unknown, node_ids, len(unknown))}. Rename these, or choose another column with "
            f"{option('split_column')}."
        )
        return {}
    masks = {name: _mask(pc.is_in(words, value_set=pa.array(said, pa.string()))) for name, said in _WORDS.items()}
    findings.remarks.append(f"the split is that of `{column}`: {counted(masks)}")
    return masks


def masks_of_columns(table: Table, findings: Findings) -> dict[str, BoolArray]:
    """Return the masks of columns called as PyG calls them."""
    masks = {}
    for name in MASKS:
        if name not in table.columns:
            continue
        words = pc.utf8_lower(table.texts(name))
        wrong = [word for word in pc.unique(words).to_pylist() if word not in _TRUTH]
        if wrong:
            findings.problems.append(f"`{name}` of {table.name} must be true or false in every row, got {wrong[0]!r}.")
            continue
        true = pa.array([word for word, truth in _TRUTH.items() if truth])
        masks[name] = _mask(pc.is_in(words, value_set=true))
    if masks:
        findings.remarks.append(f"the split is that of the columns {', '.join(masks)}: {counted(masks)}")
    return masks


def counted(masks: dict[str, BoolArray]) -> str:
    """Return how many nodes each part has."""
    words = {"train_mask": "training", "val_mask": "validation", "test_mask": "test"}
    return ", ".join(f"{int(mask.sum()):,} {words[name]}" for name, mask in masks.items())


def _mask(values: pa.ChunkedArray) -> BoolArray:
    mask: BoolArray = values.to_numpy().copy()
    return mask
