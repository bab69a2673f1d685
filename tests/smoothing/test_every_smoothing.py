"""Every smoothing: saved, loaded, summarised, tabulated, shown and verified; and whatever is changed is found."""

import pickle
import re
import subprocess
import sys
import tomllib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import graycert
from graycert.data.arrays import GraphArrays
from graycert.errors import GraycertError, InvalidFileError
from graycert.smoothing import SMOOTHINGS
from graycert.threats import THREATS
from support.every_smoothing import CASES, any_case, certify_case, each_case, made, model_of, small_graph

any_changed_case = each_case(pytest.mark.slow)  # every number is changed, one after the other


def assert_same(found, expected):
    """All of two results is equal, bit for bit."""
    assert found.setup == expected.setup
    ours, theirs = found.every_array(), expected.every_array()
    assert list(ours) == list(theirs)
    for name, (_, array) in theirs.items():
        assert ours[name][1].dtype == array.dtype, name
        assert (ours[name][1].shape, ours[name][1].tobytes()) == (array.shape, array.tobytes()), name


def test_all_smoothings_and_threats_are_here():
    assert {CASES[case]["smoothing"].name for case in CASES} == set(SMOOTHINGS)
    assert {CASES[case]["threat"].name for case in CASES} == set(THREATS)


@pytest.mark.few(6)
@any_case
def test_something_is_at_stake(case):
    assert made(case).radius.max() >= 1


@pytest.mark.few(6)
@any_case
def test_it_is_saved_and_loaded_bit_by_bit(case, tmp_path):
    loaded = graycert.Certificates.load(made(case).save(tmp_path / "run"))
    assert_same(loaded, made(case))
    assert_same(graycert.Certificates.load(loaded.save(tmp_path / "again")), made(case))
    for name in ("config.toml", "summary.json", "report.html"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()


@pytest.mark.few(6)
@any_case
def test_it_says_what_it_certifies(case, tmp_path):
    found = made(case)
    text = found.summary()
    assert found.setup.threat.statement in text
    assert found.setup.smoothing.classifier(found.setup) in text
    frame = found.to_dataframe()
    assert frame["radius"].tolist() == found.radius.tolist()
    assert len(frame) == len(found)
    for spec, array in found.every_array().values():
        if spec.column and spec.first is None:
            assert frame[spec.column].tolist() == array.tolist()
        elif spec.column:
            assert frame[f"{spec.column}{spec.first}"].tolist() == array[:, 0].tolist()
    page = (found.save(tmp_path / "run") / "report.html").read_text(encoding="utf-8")
    assert page.rstrip().endswith("</html>")
    assert page.count("node ") >= 12
    assert found.setup.smoothing.name in page


@pytest.mark.few(3)
@any_case
def test_it_verifies_with_and_without_the_model(case, tmp_path):
    found = made(case)
    folder = found.save(tmp_path / "run")
    without = graycert.verify(folder, data=small_graph())
    assert without.passed, str(without)
    assert any("model" in sentence for sentence in without.not_redone)
    drawn = {name for name, (spec, _) in found.every_array().items() if spec.stage == "drawn"}
    with_model = graycert.verify(folder, data=small_graph(), model=model_of(case))
    assert with_model.passed, str(with_model)
    names = [check.name for check in with_model.checks]
    assert len(names) == len(set(names))
    compared = {
        name for name, (spec, _) in found.every_array().items() if spec.compared != "never" and spec.stage != "asked"
    }
    assert compared <= set(names)
    assert drawn <= compared


def as_arrays(data):
    arrays = {name: data[name].numpy() for name in ("x", "edge_index", "y")}
    return GraphArrays(**arrays, node_ids=data.node_ids, class_names=data.class_names)


@pytest.mark.few(3)
@any_case
def test_arrays_are_verified_as_tensors_are(case, tmp_path):
    found, data = made(case), small_graph()
    folder = found.save(tmp_path / "run")
    for model in (None, model_of(case)):
        of_arrays = graycert.verify(folder, data=as_arrays(data), model=model)
        assert of_arrays.passed
        assert of_arrays == graycert.verify(folder, data=data, model=model)
    assert_same(found.again(as_arrays(data), alpha=0.2), found.again(data, alpha=0.2))


WITHOUT_MODELS = """
import pickle, sys
import graycert
from graycert.data.arrays import GraphArrays

folder, *cases = sys.argv[1:]
with open(folder + "/graph", "rb") as file:
    graph = GraphArrays(**pickle.load(file))
for case in cases:
    verified = graycert.verify(f"{folder}/{case}", data=graph)
    assert verified.passed, f"{case}: {verified}"
    found = graycert.Certificates.load(f"{folder}/{case}")
    if found.attackers is not None and found.attackers.size:
        print(found.protect_first(graph))
    loaded = [name for name in ("torch", "torch_geometric") if name in sys.modules]
    assert not loaded, f"{case} loads {loaded}"
"""


@pytest.mark.parametrize(
    "cases", [("interception", "event-aware", "votes"), pytest.param(tuple(CASES), marks=pytest.mark.deep)], ids=len
)
def test_it_is_concluded_again_without_torch(cases, tmp_path):
    for case in cases:
        made(case).save(tmp_path / case)
    (tmp_path / "graph").write_bytes(pickle.dumps(vars(as_arrays(small_graph()))))
    command = [sys.executable, "-c", WITHOUT_MODELS, str(tmp_path), *cases]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.few(6)
@any_case
def test_the_order_of_columns_is_no_part_of_a_run(case, tmp_path):
    data = small_graph().clone()
    order = torch.randperm(data.edge_index.size(1), generator=torch.Generator().manual_seed(1))
    data.edge_index = data.edge_index[:, order]
    assert graycert.verify(made(case).save(tmp_path / "run"), data=data).passed


@pytest.mark.few(6)
@any_case
def test_another_graph_is_not_verified(case, tmp_path):
    folder = made(case).save(tmp_path / "run")
    data = small_graph().clone()
    data.edge_index = data.edge_index[:, 2:]
    found = graycert.verify(folder, data=data)
    assert [check.name for check in found.checks if not check.passed] == ["graph"]


@pytest.mark.few(6)
@any_case
def test_the_same_is_concluded_again(case):
    found = made(case)
    again = found.again(small_graph())
    assert again.setup == found.setup
    for name, (_, array) in found.every_array().items():
        np.testing.assert_array_equal(again.every_array()[name][1], array, err_msg=name)


def is_found(folder, model):
    """Whether loading refuses the run, or verification reports a difference even if all that people read agrees."""
    try:
        loaded = graycert.Certificates.load(folder)
    except InvalidFileError:
        return True
    loaded.save(folder, overwrite=True)  # summary and report now say what was changed
    try:
        return any(not graycert.verify(folder, data=small_graph(), model=each).passed for each in (None, model))
    except GraycertError:
        return True


def entries_to_change(array, *, thorough):
    """One entry with the largest value; the first and the last, too, if wanted."""
    last = tuple(size - 1 for size in array.shape)
    largest = np.unravel_index(int(array.argmax()), array.shape) if array.dtype.kind in "if" else last
    others = [(0,) * array.ndim, last] if thorough else []
    return list(dict.fromkeys([tuple(int(place) for place in largest), *others]))


def changed(array, place, *, up):
    """The array with one entry a little larger or smaller, or another text."""
    other = array.copy()
    if array.dtype.kind == "U":
        return np.array([f"{text}?" if (row,) == place else str(text) for row, text in enumerate(array.tolist())])
    if array.dtype.kind == "b":
        other[place] = not array[place]
    elif array.dtype.kind == "f":
        other[place] += 1e-6 if up else -1e-6
    else:
        other[place] += 1 if up else -1
    return other


def write_array(folder, spec, array):
    """Put an array into the file that holds it; the file's own checks stay valid."""
    if not spec.column:
        with np.load(folder / "votes.npz", allow_pickle=False) as votes:
            arrays = {**votes, spec.name: array}
        np.savez_compressed(folder / "votes.npz", **arrays)
        return
    table = pq.read_table(folder / "certificates.parquet")
    columns = {spec.column: array}
    if spec.first is not None:
        columns = {f"{spec.column}{spec.first + number}": array[:, number] for number in range(array.shape[1])}
    for name, values in columns.items():
        position = table.column_names.index(name)
        table = table.set_column(position, name, pa.array(values.tolist()))
    pq.write_table(table, folder / "certificates.parquet")


def names_of_arrays(case):
    found = made(case)
    return [name for name, (spec, array) in found.every_array().items() if spec.compared != "never" and array.size]


@pytest.mark.few(2)
@any_changed_case
@pytest.mark.parametrize("thorough", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_each_changed_array_is_found(case, thorough, tmp_path):
    """One entry of each array, more or less: refused when it is loaded, or a difference when it is verified."""
    found = made(case)
    unnoticed = []
    for name in names_of_arrays(case):
        spec, array = found.every_array()[name]
        for place in entries_to_change(array, thorough=thorough):
            for up in (True, False) if array.dtype.kind in "if" else (True,):
                folder = found.save(tmp_path / "run", overwrite=True)
                write_array(folder, spec, changed(array, place, up=up))
                if not is_found(folder, model_of(case)):
                    unnoticed.append((name, place, up))
    assert unnoticed == []


def numbers_that_matter(case):
    """Section, name and another value for each number of config.toml that the certificates depend on."""
    found = made(case)
    setup = found.setup
    yield "certificate", "num_classes", 4
    yield "graph", "num_nodes", 43
    yield "graph", "num_edges", setup.num_edges + 1
    yield "graph", "fingerprint", "sha256:" + "0" * 64
    yield "graph", "edges_fingerprint", "sha256:" + "0" * 64
    if setup.num_layers is not None:
        yield "certificate", "num_layers", 1
        yield "certificate", "num_layers", 3
    if setup.draws is not None:
        yield "certificate", "alpha", 1e-9
        yield "certificate", "simultaneous", not setup.simultaneous
        for name, value in setup.draws.stored()[0].items():
            if name != "give_up":
                yield "draws", name, value + 1
    if setup.smoothing.name not in ("features-only", "votes"):
        yield "certificate", "seed", 4
    if setup.max_radius is not None and found.delta_upper is not None:
        yield "certificate", "max_radius", setup.max_radius + 1
        yield "certificate", "max_radius", setup.max_radius - 1
    if setup.convolution is not None:
        yield "certificate", "convolution", "local"
    for part in ("smoothing", "threat"):
        for name, value in getattr(setup, part).stored()[0].items():
            if (setup.smoothing.name, name) == ("features-only", "min_distance"):
                continue  # whatever others do, nothing changes
            if isinstance(value, float):
                yield part, name, value * 0.9
            elif isinstance(value, int):  # τ only matters where it decides about a target
                yield part, name, 1 if name == "tau" else value + 1
    for rule in {"paper", "difference", "sound", "exact", "sequential", "event-aware"} - {setup.rule}:
        if setup.smoothing.cell(setup.threat.name, rule).status == "refused":
            yield "certificate", "rule", rule


OTHER_TEXTS = {"retention": [("smoothing", "keep_ratio", "1/5")], "ablation-global": [("smoothing", "scope", "local")]}


@pytest.mark.few(1)
@any_changed_case
def test_each_changed_number_of_the_configuration_is_found(case, tmp_path):
    folder = made(case).save(tmp_path / "run")
    text = (folder / "config.toml").read_text(encoding="utf-8")
    unnoticed = []
    for section, name, value in [*numbers_that_matter(case), *OTHER_TEXTS.get(case, [])]:
        made(case).save(folder, overwrite=True)
        said = f'"{value}"' if isinstance(value, str) else str(value).lower()
        head, mark, rest = text.partition(f"[{section}]\n")
        edited, times = re.subn(rf"(?m)^{name} = .*$", f"{name} = {said}", rest, count=1)
        assert times == 1, (section, name)
        assert tomllib.loads(head + mark + edited)[section][name] == value
        (folder / "config.toml").write_text(head + mark + edited, encoding="utf-8")
        if not is_found(folder, model_of(case)):
            unnoticed.append((section, name, value))
    assert unnoticed == []


@pytest.mark.parametrize(("rule", "quantity"), [("paper", "p_upper"), ("difference", "radius")])
def test_another_rule_is_found(tmp_path, rule, quantity):
    found = certify_case("interception", draws=graycert.Draws(num_selection=50, num_estimation=60))
    again = found.again(small_graph(), rule=rule)
    assert (getattr(again, quantity) != getattr(found, quantity)).any()
    folder = found.replace(setup=found.setup.replace(rule=rule)).save(tmp_path / "run")
    failed = [check.name for check in graycert.verify(folder, data=small_graph()).checks if not check.passed]
    assert quantity in failed


def test_a_changed_probability_or_trusted_node_is_found(tmp_path):
    found = made("arrays-and-trusted-nodes")
    for name in ("smoothing.p_delete", "smoothing.p_ablate", "threat.trusted"):
        folder = found.save(tmp_path / "run", overwrite=True)
        with np.load(folder / "votes.npz", allow_pickle=False) as votes:
            arrays = dict(votes)
        values = arrays[name].copy()
        values[3] = not values[3] if values.dtype == np.bool_ else values[3] / 2
        np.savez_compressed(folder / "votes.npz", **{**arrays, name: values})
        assert is_found(folder, model_of("arrays-and-trusted-nodes")), name
