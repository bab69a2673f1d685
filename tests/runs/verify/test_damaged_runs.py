"""CASES F6: whatever is done to a file of a run, it loads and verifies, or one named error says what is wrong.

Nothing here is timed: a case that is not bounded by its file and its graph would not end.
"""

import json
import shutil
import struct
import tomllib
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w

import graycert
from graycert.errors import InvalidFileError
from graycert.models import save_model
from support.certified_groups import OTHERS, TARGETS, certify_groups, three_groups, trained_model

FILES = (
    "config.toml",
    "certificates.parquet",
    "votes.npz",
    "summary.json",
    "report.html",
    "model.safetensors",
    "model.json",
)
ODD = (
    None, True, -1, 0, 1, 10**9, 10**15, 2**63, 10**400, 1.5, float("nan"), float("inf"), "", "text", "1", [], [1, "a"],
    ["a"] * 3, {}, {"name": 5}, {"a": {"b": {"c": 1}}},
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")
    made = {
        "together": certify_groups(collective=[1, 2]),
        "aware": certify_groups(rule="event-aware"),
    }
    others = {
        "subgraphs": {
            "smoothing": graycert.SubgraphVoting(num_subgraphs=5),
            "threat": OTHERS,
        },
        "retention": {
            "smoothing": graycert.UniformRetention(keep_ratio="1/5", tau=50),
            "threat": OTHERS,
            "draws": graycert.Draws(num_selection=10, num_estimation=30),
            "max_radius": 3,
        },
        "stopped": {
            "smoothing": graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.6),
            "threat": OTHERS,
            "draws": graycert.UntilDecided(num_selection=20, max_estimation=100, batch=20),
            "max_radius": 3,
        },
    }
    for name, arguments in others.items():
        made[name] = graycert.certify(trained_model(), three_groups(), targets=TARGETS[:4], **arguments)
    folders = {}
    for name, run in made.items():
        folders[name] = run.save(base / name)
        save_model(trained_model(), folders[name] / "model")
        assert graycert.verify(folders[name], data=three_groups()).passed
    return folders


def outcome(folder):
    """Return "agrees", "differs" or the error's name; anything else that is raised fails the test."""
    try:
        found = graycert.verify(folder, data=three_groups())
    except InvalidFileError:  # whose exit status is 2; any other error fails the test
        return "damaged"
    return "agrees" if found.passed else "differs"


def copy_of(folder, tmp_path):
    target = tmp_path / "copy"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    return target


@pytest.mark.few(1)
@pytest.mark.parametrize("name", FILES)
def test_cut_files_and_flipped_bytes(runs, tmp_path, name):
    rng = np.random.default_rng([FILES.index(name)])
    seen = set()
    for _ in range(7):
        folder = copy_of(runs["together"], tmp_path)
        content = bytearray((folder / name).read_bytes())
        if rng.random() < 0.4:
            content = content[: rng.integers(0, len(content))]
        else:
            for place in rng.integers(0, len(content), size=rng.integers(1, 4)):
                content[place] = rng.integers(0, 256)
        (folder / name).write_bytes(content)
        seen.add(outcome(folder))
    assert seen - {"agrees"}


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    yield path


def put(document, path, value):
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


@pytest.mark.parametrize("run", ["together", "aware", "subgraphs", "retention", "stopped"])
def test_other_values_in_the_configuration(runs, tmp_path, run):
    rng = np.random.default_rng(0)
    document = tomllib.loads((runs[run] / "config.toml").read_text())
    paths = [path for path in leaves(document) if path]
    chosen = rng.permutation(len(paths))[:6] if run != "together" else np.arange(len(paths))
    for index in chosen:
        value = ODD[rng.integers(len(ODD))]
        folder = copy_of(runs[run], tmp_path)
        changed = tomllib.loads((folder / "config.toml").read_text())
        put(changed, paths[index], value)
        try:
            text = tomli_w.dumps(changed)
        except (TypeError, ValueError):
            continue
        (folder / "config.toml").write_text(text)
        assert outcome(folder) in ("agrees", "differs", "damaged")


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("certificate", "num_layers", 1_000_000_000),
        ("certificate", "max_radius", 10**12),
        ("certificate", "class_names", 5),
        ("certificate", "num_classes", 10**12),
        ("draws", "num_estimation", 10**15),
        ("draws", "num_selection", 10**15),
        ("graph", "num_nodes", 10**15),
        ("smoothing", "p_delete", 1e-300),
    ],
)
def test_huge_numbers_are_answered_at_once(runs, tmp_path, section, key, value):
    folder = copy_of(runs["together"], tmp_path)
    document = tomllib.loads((folder / "config.toml").read_text())
    document[section][key] = value
    (folder / "config.toml").write_text(tomli_w.dumps(document))
    assert outcome(folder) in ("differs", "damaged")


@pytest.mark.parametrize(
    ("run", "section", "key"), [("subgraphs", "smoothing", "num_subgraphs"), ("retention", "smoothing", "tau")]
)
def test_more_parts_than_the_file_holds(runs, tmp_path, run, section, key):
    folder = copy_of(runs[run], tmp_path)
    document = tomllib.loads((folder / "config.toml").read_text())
    document["smoothing"][key] = 2**20
    (folder / "config.toml").write_text(tomli_w.dumps(document))
    assert outcome(folder) in ("differs", "damaged")


@pytest.mark.deep
def test_nested_tables_and_a_million_brackets(runs, tmp_path):
    for text in ("x = " + "[" * 100_000, "[" + ".".join(["a"] * 50_000) + "]", 'a = "' + "b" * 10**6 + '"'):
        folder = copy_of(runs["together"], tmp_path)
        (folder / "config.toml").write_text(text)
        assert outcome(folder) == "damaged"
    document = tomllib.loads((runs["together"] / "config.toml").read_text())
    inner = {}
    for _ in range(300):
        inner = {"a": inner}
    document["provenance"]["deep"] = inner
    folder = copy_of(runs["together"], tmp_path)
    (folder / "config.toml").write_text(tomli_w.dumps(document))
    assert outcome(folder) in ("agrees", "differs", "damaged")
    for name in ("summary.json", "model.json"):
        folder = copy_of(runs["together"], tmp_path)
        (folder / name).write_text("[" * 100_000)
        assert outcome(folder) == "damaged"


def test_an_array_of_10_to_the_15_rows(runs, tmp_path):
    for shape in ((10**15,), (10**9, 3), (10**15, 0)):
        folder = copy_of(runs["together"], tmp_path)
        arrays = read(folder)
        with zipfile.ZipFile(folder / "votes.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, array in arrays.items():
                if name == "attackers":
                    continue
                with archive.open(f"{name}.npy", "w") as entry:
                    np.lib.format.write_array(entry, array)
            header = {"descr": "<i8", "fortran_order": False, "shape": shape}
            with archive.open("attackers.npy", "w") as entry:
                np.lib.format.write_array_header_1_0(entry, header)
                entry.write(struct.pack("<q", 1) * 3)
        assert outcome(folder) == "damaged"


def read(folder):
    with np.load(folder / "votes.npz") as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.deep
def test_arrays_of_other_types_and_shapes(runs, tmp_path):
    rng = np.random.default_rng(5)
    for run in ("together", "aware", "subgraphs", "retention", "stopped"):
        for name in read(runs[run]):
            folder = copy_of(runs[run], tmp_path)
            arrays = read(folder)
            array = arrays[name]
            changes = (
                array.astype(np.str_),
                array.ravel()[:1],
                np.full(array.shape, 2**63, dtype=np.uint64),
                np.full(array.shape, np.nan),
                np.zeros((*array.shape, 2), dtype=np.int64),
                np.empty((0,) * array.ndim),
                np.full(array.shape, 10**12),
            )
            arrays[name] = changes[rng.integers(len(changes))]
            np.savez_compressed(folder / "votes.npz", **arrays)
            assert outcome(folder) in ("agrees", "differs", "damaged"), (run, name)


def test_columns_of_other_types(runs, tmp_path):
    rng = np.random.default_rng(6)
    table = pq.read_table(runs["together"] / "certificates.parquet")
    for name in table.column_names:
        size = table.num_rows
        columns = (
            pa.array(["x"] * size),
            pa.array([None] * size),
            pa.array([[1, 2]] * size),
            pa.array([b"x"] * size),
            pa.array([{"a": 1}] * size),
            pa.array([np.nan] * size),
            pa.array([2**62] * size),
            pa.array([True] * size),
            pa.array([0] * size, pa.date32()),
        )
        folder = copy_of(runs["together"], tmp_path)
        column = columns[rng.integers(len(columns))]
        pq.write_table(table.set_column(table.column_names.index(name), name, column), folder / "certificates.parquet")
        assert outcome(folder) in ("differs", "damaged"), (name, column.type)
    for changed in (table.slice(0, 0), table.slice(0, 3), pa.concat_tables([table, table]), table.select(["target"])):
        folder = copy_of(runs["together"], tmp_path)
        pq.write_table(changed, folder / "certificates.parquet")
        assert outcome(folder) == "damaged"


def test_a_summary_of_another_kind(runs, tmp_path):
    for value in ODD:
        folder = copy_of(runs["together"], tmp_path)
        record = json.loads((folder / "summary.json").read_text())
        record["num_targets"] = value if not isinstance(value, float) else None
        (folder / "summary.json").write_text(json.dumps(record))
        assert outcome(folder) in ("differs", "damaged")
