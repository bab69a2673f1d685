import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graycert import Certificates
from graycert.errors import InvalidFileError, WriteError
from graycert.runs import store as store_module
from graycert.runs.store import FILES
from graycert.setup_file import FORMAT_VERSION, read_config
from support.certificates import small_certificates

ARRAYS = [
    "targets",
    "prediction",
    "status",
    "p_lower",
    "p_upper",
    "radius",
    "delta_upper",
    "receptive_field_size",
    "num_eligible",
    "selection_votes",
    "estimation_votes",
    "whole_field",
    "labels",
    "node_ids",
]


@pytest.fixture
def run(tmp_path):
    return small_certificates().save(tmp_path / "run")


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("rule", ["sound", "paper"])
def test_what_is_loaded_is_what_was_saved(tmp_path, rule, named):
    saved = small_certificates(rule=rule, named=named)
    loaded = Certificates.load(saved.save(tmp_path / "deep" / "er" / "run"))
    for name in ARRAYS:
        before, after = getattr(saved, name), getattr(loaded, name)
        if before is None:
            assert after is None
        else:
            assert after.dtype.kind == before.dtype.kind
            assert after.tolist() == before.tolist()  # floats bit for bit
    assert loaded.setup == saved.setup
    assert (loaded.setup.threat.trusted is None) is not named
    assert loaded.summary() == saved.summary()


def test_the_directory_holds_the_promised_files_and_nothing_beside_it(run):
    assert sorted(path.name for path in run.iterdir()) == sorted(FILES)
    assert [path.name for path in run.parent.iterdir()] == ["run"]
    assert json.loads((run / "summary.json").read_text())["format_version"] == FORMAT_VERSION
    assert pq.read_schema(run / "certificates.parquet").metadata[b"graycert_format_version"] == b"%d" % FORMAT_VERSION
    with np.load(run / "votes.npz", allow_pickle=False) as votes:
        assert votes["format_version"] == FORMAT_VERSION


def test_an_empty_directory_is_used(tmp_path):
    (tmp_path / "run").mkdir()
    assert Certificates.load(small_certificates().save(tmp_path / "run")).setup.rule == "sound"


def test_an_earlier_run_is_only_replaced_on_request(run):
    other = small_certificates(num_targets=9)
    with pytest.raises(InvalidFileError, match="overwrite=True"):
        other.save(run)
    assert len(Certificates.load(run)) == 6
    other.save(run, overwrite=True)
    assert len(Certificates.load(run)) == 9
    assert [path.name for path in run.parent.iterdir()] == ["run"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_foreign_files_are_never_replaced(run, overwrite):
    (run / "notes.txt").write_text("mine")
    with pytest.raises(InvalidFileError, match=r"notes\.txt"):
        small_certificates().save(run, overwrite=overwrite)
    assert (run / "notes.txt").read_text() == "mine"
    file = run / "notes.txt"
    with pytest.raises(InvalidFileError, match="must be a folder"):
        small_certificates().save(file, overwrite=overwrite)


def test_a_folder_without_config_is_not_replaced(run):
    (run / "config.toml").unlink()
    with pytest.raises(InvalidFileError, match="must be new or empty"):
        small_certificates().save(run, overwrite=True)


@pytest.mark.parametrize("step", ["_write_table", "write_votes", "render_report"])
def test_a_crash_leaves_nothing_half_written(run, monkeypatch, step):
    def crash(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(store_module, step, crash)
    for target, overwrite in ((run, True), (run.parent / "new", False)):
        with pytest.raises(KeyboardInterrupt):
            small_certificates(num_targets=9).save(target, overwrite=overwrite)
    assert [path.name for path in run.parent.iterdir()] == ["run"]
    assert len(Certificates.load(run)) == 6


def test_a_failed_rename_brings_the_earlier_run_back(run, monkeypatch):
    replace = store_module.Path.replace

    def fail(self, target):
        if ".writing-" in self.name:
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(store_module.Path, "replace", fail)
    with pytest.raises(WriteError, match="No space left on device"):
        small_certificates(num_targets=9).save(run, overwrite=True)
    monkeypatch.undo()
    assert [path.name for path in run.parent.iterdir()] == ["run"]
    assert len(Certificates.load(run)) == 6


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidFileError, match="Choose another folder"):
        small_certificates().save(tmp_path / "file" / "run")
    if os.geteuid():  # root may write anywhere
        (tmp_path / "locked").mkdir(mode=0o500)
        with pytest.raises(InvalidFileError, match="must be writable"):
            small_certificates().save(tmp_path / "locked" / "run")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(run, name):
    (run / name).unlink()
    with pytest.raises(InvalidFileError, match=name):
        Certificates.load(run)


@pytest.mark.few(7)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_named(run, name, share):
    content = (run / name).read_bytes()
    (run / name).write_bytes(content[: int(share * len(content))])
    with pytest.raises(InvalidFileError, match=name):
        Certificates.load(run)


def test_a_configuration_cut_anywhere_is_refused(run):
    config = run / "config.toml"
    content = config.read_bytes()
    assert content.endswith(b"[file]\ncomplete = true\n")
    whole = read_config(config)
    for size in range(len(content) - 1):
        config.write_bytes(content[:size])
        with pytest.raises(InvalidFileError, match=r"config\.toml"):
            read_config(config)
    config.write_bytes(content[:-1])  # without its last line break it says the same
    assert read_config(config) == whole


def test_a_foreign_end_of_the_configuration_is_refused(run):
    for before, after in (("complete = true", "complete = false"), ("[file]\ncomplete = true", "")):
        content = (run / "config.toml").read_text()
        edit_config(run, before, after)
        with pytest.raises(InvalidFileError, match=r"must end with the section \[file\]"):
            Certificates.load(run)
        (run / "config.toml").write_text(content)


@pytest.mark.parametrize("name", ["certificates.parquet", "votes.npz"])
def test_no_flipped_bit_changes_a_value_unnoticed(run, name):
    before = Certificates.load(run)
    content = bytearray((run / name).read_bytes())
    generator = np.random.default_rng(0)
    for position in generator.choice(len(content), size=60, replace=False).tolist():
        content[position] ^= 0x10
        (run / name).write_bytes(content)
        try:
            after = Certificates.load(run)
        except InvalidFileError:
            pass
        else:  # the bit carried no value, for instance a time stamp
            for field in ARRAYS:
                assert getattr(after, field).tolist() == getattr(before, field).tolist()
        content[position] ^= 0x10


@pytest.mark.parametrize("name", FILES)
def test_a_foreign_file_is_named(run, name):
    shutil.copyfile(__file__, run / name)
    with pytest.raises(InvalidFileError, match=name):
        Certificates.load(run)


def edit_config(run, before, after):
    text = (run / "config.toml").read_text()
    assert before in text
    (run / "config.toml").write_text(text.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("format_version = 4", "format_version = 2", "format version 4, got 2"),
        ("format_version = 4", "", "has no format version"),
        ("alpha = 0.01", "alpha = 0.01\nbeta = 1", "unknown: beta"),
        ("alpha = 0.01", "", "missing: alpha"),
        ("[graph]", "[other]\nx = 1\n[graph]", "sections"),
        ("alpha = 0.01", 'alpha = "0.01"', "`alpha` must be a number"),
        ("p_delete = 0.31", "p_delete = 1.31", "`p_delete` must be in"),
        ("num_estimation = 3000", "num_estimation = 30000", "`estimation_votes` must sum to 30000"),
        ("max_radius = 8", "max_radius = 7", "`delta_upper` must have shape .*7"),
        ('trusted = "per node"', "", "`trusted` must be stored as an array if and only if"),
        ("num_nodes = 50", "num_nodes = 5", "impossible values"),
        ('rule = "sound"', 'rule = "best"', "`rule` must be one of"),
    ],
)
def test_an_edited_configuration_is_refused(run, before, after, message):
    edit_config(run, before, after)
    with pytest.raises(InvalidFileError, match=message):
        Certificates.load(run)


def test_other_versions_of_every_file_are_refused(run):
    record = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps(record | {"format_version": 99}))
    with pytest.raises(InvalidFileError, match=r"summary\.json must have format version 4, got 99"):
        Certificates.load(run)
    (run / "summary.json").write_text(json.dumps(record))
    table = pq.read_table(run / "certificates.parquet")
    for metadata, message in (({b"graycert_format_version": b"99"}, "got 99"), ({}, "has no format version")):
        pq.write_table(table.replace_schema_metadata(metadata), run / "certificates.parquet")
        with pytest.raises(InvalidFileError, match=rf"certificates\.parquet.*{message}"):
            Certificates.load(run)


def rewrite_table(run, change):
    table = pq.read_table(run / "certificates.parquet")
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), run / "certificates.parquet")


def with_column(name, values):
    return lambda table: table.set_column(table.column_names.index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns(["p_lower"]), "p_lower"),
        (lambda table: table.drop_columns(["delta_3"]), "delta_"),
        (lambda table: table.append_column("extra", table["radius"]), "extra"),
        (lambda table: table.slice(0, 5), "different runs"),
        (with_column("radius", [None] * 6), "no empty cells"),
        (with_column("radius", [9] * 6), "`radius` must be <= 8"),
        (with_column("radius", [0.5] * 6), "`radius` must hold integers"),
        (with_column("whole_field", [True] * 6), "`whole_field` contradicts"),
        (with_column("class_name", ["two"] * 6), "`class_name` contradicts"),
        (with_column("target", [1, 2, 3, 4, 5, 6]), "same targets"),
    ],
)
def test_an_edited_table_is_refused(run, change, message):
    rewrite_table(run, change)
    with pytest.raises(InvalidFileError, match=message):
        Certificates.load(run)


def test_pickles_are_not_read(run):
    with np.load(run / "votes.npz") as votes:
        arrays = dict(votes)
    np.savez(run / "votes.npz", **arrays | {"trusted": np.array([{"a": 1}], dtype=object)})
    with pytest.raises(InvalidFileError, match=r"votes\.npz cannot be read"):
        Certificates.load(run)


def test_a_file_of_another_run_is_noticed(run, tmp_path):
    other = small_certificates(num_targets=9).save(tmp_path / "other")
    for name in ("certificates.parquet", "votes.npz", "summary.json"):
        content = (run / name).read_bytes()
        shutil.copyfile(other / name, run / name)
        with pytest.raises(InvalidFileError, match="different runs"):
            Certificates.load(run)
        (run / name).write_bytes(content)
    assert len(Certificates.load(run)) == 6


def test_no_folder(tmp_path):
    with pytest.raises(InvalidFileError, match="is no folder"):
        Certificates.load(tmp_path / "nothing")
    with pytest.raises(InvalidFileError, match=r"config\.toml is missing"):
        Certificates.load(tmp_path)
