"""Every smoothing, threat and way to draw has the command line by what it declares."""

import dataclasses
import subprocess
import sys
import tomllib
from dataclasses import dataclass

import numpy as np
import pytest

import graycert
from graycert._parameters import parameter
from graycert.certificates import Certificates
from graycert.cli.declared import SHORT_FORMS, bounds_config, certify_config, every_kind
from graycert.cli.main import main
from graycert.problem import ENGINES
from graycert.rules import RULES
from graycert.smoothing import SMOOTHINGS, FeaturesOnly
from graycert.threats import THREATS
from support.commands import FAST, run_command, summary_of, write_graph

WAYS = {
    "interception": ("--p-delete", "0.2", "--p-ablate", "0.7"),
    "retention": ("--keep-ratio", "1/3", "--tau", "3"),
    "randomized-ablation": ("--scope", "local", "--num-kept", "2"),
    "sparse": ("--p-plus", "0.01", "--p-minus", "0.6", "--max-additions", "1"),
    "subgraphs": ("--num-subgraphs", "5"),
    "features-only": (),
}
OF_NODE_MODELS = {"votes"}
NOTHING_DRAWN = {"subgraphs", "features-only"}
DRAWN = ("--num-selection", "20", "--num-estimation", "30")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A graph, and a model with a skip connection and one without."""
    folder = tmp_path_factory.mktemp("ways")
    graph = write_graph(folder / "ring.npz", extra_edges=3)
    for name, skip in (("skip", "--skip"), ("plain", "--no-skip")):
        words = ("--per-class", "5", "--max-epochs", "20", "--learning-rate", "0.05", "--model", "gcn", skip, "--quiet")
        out = folder / f"{name}.safetensors"
        assert main(["train", "--graph", str(graph), *words, "--out", str(out)]) == 0
    return folder


def words_of(folder, smoothing, *more):
    model = folder / ("plain.safetensors" if smoothing == "sparse" else "skip.safetensors")
    draws = () if smoothing in NOTHING_DRAWN else DRAWN
    common = ("--graph", folder / "ring.npz", "--per-class", "5", "--max-radius", "4", "--model", model, "--quiet")
    return ("certify", *common, *draws, "--smoothing", smoothing, *WAYS[smoothing], *more)


def test_all_smoothings_are_tried_here():
    assert set(WAYS) | OF_NODE_MODELS == set(SMOOTHINGS)


@pytest.mark.few(1)
@pytest.mark.parametrize("smoothing", WAYS)
def test_every_smoothing_is_certified_shown_verified_and_repeated(smoothing, folder, tmp_path, capsys):
    found = run_command(capsys, *words_of(folder, smoothing, "--seed", "0", "--out", tmp_path / "run"))
    assert (found.status, found.err) == (0, "")
    run = Certificates.load(tmp_path / "run")
    assert run.setup.smoothing.name == smoothing
    assert run.setup.threat.name == SMOOTHINGS[smoothing].claims[0].threat
    assert (run.setup.draws is None) is (smoothing in NOTHING_DRAWN)
    assert summary_of(tmp_path / "run") in found.out
    for flag, value in zip(WAYS[smoothing][::2], WAYS[smoothing][1::2], strict=True):
        holders = (run.setup.smoothing, run.setup.threat)
        name = flag.removeprefix("--").replace("-", "_")
        assert str(next(getattr(holder, name) for holder in holders if hasattr(holder, name))) == value

    assert run_command(capsys, "report", tmp_path / "run").status == 0
    checked = run_command(capsys, "verify", tmp_path / "run", "--redraw")
    assert (checked.status, checked.err) == (0, "drawing all votes again\n")

    again = run_command(
        capsys, "certify", "--config", tmp_path / "run" / "config.toml", "--out", tmp_path / "b", "--quiet"
    )
    assert (again.status, again.err) == (0, "")
    same_run(tmp_path / "run", tmp_path / "b")


def same_run(first, second):
    assert (first / "certificates.parquet").read_bytes() == (second / "certificates.parquet").read_bytes()
    with np.load(first / "votes.npz") as these, np.load(second / "votes.npz") as those:
        assert set(these.files) == set(those.files)
        assert all(np.array_equal(these[name], those[name]) for name in these.files)


@pytest.mark.deep
def test_a_run_that_trained_is_repeated_from_its_config_alone(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(folder)  # paths of the first run are relative
    (folder / "trusted.txt").write_text("3\n4\n")
    options = (
        "--seed",
        "7",
        "--p-delete",
        "0.4",
        "--p-ablate",
        "0.85",
        "--model",
        "gcn",
        "--no-skip",
        "--alpha",
        "0.2",
    )
    options += ("--rule", "event-aware", "--bound", "multiplicative", "--simultaneous", "--trusted", "trusted.txt")
    found = run_command(
        capsys, "certify", "--graph", "ring.npz", *FAST, *options, "--collective", "--out", tmp_path / "a"
    )
    assert found.status == 0, found.err
    stored = tomllib.loads((tmp_path / "a" / "config.toml").read_text())["provenance"]["options"]
    assert (stored["graph"], stored["trusted"]) == (str(folder / "ring.npz"), str(folder / "trusted.txt"))
    assert (stored["min_distance"], stored["p_delete"], stored["targets"]) == (0, 0.4, "test")

    monkeypatch.chdir(tmp_path)
    again = run_command(capsys, "certify", "--config", "a/config.toml", "--out", "b", "--quiet")
    assert (again.status, again.err) == (0, "")
    same_run(tmp_path / "a", tmp_path / "b")
    first, second = (Certificates.load(tmp_path / name).setup for name in "ab")
    assert dict(first.provenance["options"]) == dict(second.provenance["options"])
    assert first.replace(provenance={}) == second.replace(provenance={})

    changed = run_command(
        capsys, "certify", "--config", "a/config.toml", "--until-decided", "--batch", 7, "--out", "c", "--quiet"
    )
    assert changed.status == 3  # one adversary against all, asked for in the file, has no proof for votes that stop
    assert "the rule 'sequential'" in changed.err
    refused = run_command(capsys, "train", "--config", "a/config.toml", "--out", "m.safetensors")
    assert (refused.status, "Only `graycert certify` repeats runs" in refused.err) == (2, True)


def test_flags_replace_the_smoothing_of_a_run_with_all_its_parameters(folder, tmp_path, capsys):
    assert run_command(capsys, *words_of(folder, "interception", "--out", tmp_path / "a")).status == 0
    config = tmp_path / "a" / "config.toml"
    words = ("--smoothing", "subgraphs", "--num-subgraphs", "3", "--out", tmp_path / "b", "--quiet")
    found = run_command(capsys, "certify", "--config", config, *words)
    assert (found.status, found.err) == (0, "")
    setup = Certificates.load(tmp_path / "b").setup
    assert (setup.smoothing, setup.draws, setup.rule) == (graycert.SubgraphVoting(num_subgraphs=3), None, "exact")


@pytest.mark.deep
def test_a_run_made_in_python_is_repeated_where_options_can_say_it(folder, tmp_path, capsys):
    data, model = graycert.load_graph(folder / "ring.npz"), graycert.load_model(folder / "skip.safetensors")
    arguments = {"threat": graycert.NodeFeatureThreat(min_distance=1), "seed": 5, "max_radius": 3, "alpha": 0.1}
    arguments["draws"] = graycert.UntilDecided(num_selection=10, max_estimation=40, batch=8)
    smoothing = graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.7)
    provenance = {"graph": {"source": str(folder / "ring.npz")}}
    made = graycert.certify(model, data, smoothing=smoothing, targets=[7, 2], provenance=provenance, **arguments)
    (tmp_path / "targets.txt").write_text("7\n2\n")
    config = made.save(tmp_path / "a") / "config.toml"
    words = ("certify", "--config", config, "--quiet", "--out", tmp_path / "b")
    refused = run_command(capsys, *words)
    assert refused.status == 2
    assert "does not say which model was certified; by which option its targets were named" in refused.err
    assert "Give `--model`, `--targets` besides." in refused.err
    found = run_command(capsys, *words, "--model", folder / "skip.safetensors", "--targets", tmp_path / "targets.txt")
    assert (found.status, found.err) == (0, "")
    same_run(tmp_path / "a", tmp_path / "b")

    trusted = np.arange(60) < 3
    arguments["threat"] = graycert.NodeFeatureThreat(min_distance=1, trusted=trusted)
    per_node = graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=np.full(60, 0.7))
    made = graycert.certify(model, data, smoothing=per_node, targets=[7, 2], **arguments)
    refused = run_command(capsys, "certify", "--config", made.save(tmp_path / "c") / "config.toml", "--quiet")
    assert refused.status == 2
    assert "`p_ablate` of its smoothing, which is an array; `trusted` of its threat, which is an array" in refused.err
    assert "`--p-ablate`, `--trusted` besides" in refused.err  # the run says where its graph is


@pytest.mark.deep
def test_sampling_may_stop_once_targets_are_decided(folder, tmp_path, capsys):
    words = words_of(folder, "interception", "--out", tmp_path / "run")
    words = [word for word in words if word not in DRAWN]
    words += ["--until-decided", "--n0", "10", "--max-estimation", "90", "--batch", "16", "--give-up", "0.1"]
    found = run_command(capsys, *words)
    assert (found.status, found.err) == (0, "")
    run = Certificates.load(tmp_path / "run")
    wanted = graycert.UntilDecided(num_selection=10, max_estimation=90, batch=16, give_up=0.1)
    assert (run.setup.draws, run.setup.rule) == (wanted, "sequential")
    assert run.num_samples.max() <= 90
    assert run_command(capsys, "verify", tmp_path / "run", "--redraw").status == 0
    words = ("certify", "--config", tmp_path / "run" / "config.toml", "--quiet", "--out", tmp_path / "again")
    assert run_command(capsys, *words).status == 0
    same_run(tmp_path / "run", tmp_path / "again")


@pytest.mark.deep
def test_other_threats_are_certified_too(folder, tmp_path, capsys):
    words = words_of(
        folder, "interception", "--threat", "node-deletion", "--min-distance", "2", "--out", tmp_path / "r"
    )
    found = run_command(capsys, *words)
    assert (found.status, found.err) == (0, "")
    assert Certificates.load(tmp_path / "r").setup.threat == graycert.NodeDeletionThreat(min_distance=2)
    words = words_of(folder, "subgraphs", "--threat", "features-and-out-edges", "--out", tmp_path / "s")
    assert run_command(capsys, *words).status == 0
    assert Certificates.load(tmp_path / "s").setup.threat == graycert.FeaturesAndOutEdgesThreat()
    words = words_of(folder, "subgraphs", "--threat", "node-takeover", "--max-injected", "3", "--out", tmp_path / "t")
    assert run_command(capsys, *words).status == 0
    assert Certificates.load(tmp_path / "t").setup.threat == graycert.NodeTakeoverThreat(max_injected=3)


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("--tau", "3"), 2, "`--tau` belongs to --smoothing retention, got it with --smoothing interception. Leave"),
        (
            ("--max-additions", "3"),
            2,
            "`--max-additions` belongs to --threat attribute-flips, got it with --threat node",
        ),
        (("--batch", "3"), 2, "`--batch` belongs to --until-decided, got it with a fixed number of draws"),
        (
            ("--until-decided", "--n1", "3"),
            2,
            "`--num-estimation` belongs to a fixed number of draws, got it with --unt",
        ),
        (("--smoothing", "subgraphs", "--num-subgraphs", "3", "--n0", "9"), 2, "`--num-selection` belongs to"),
        (("--smoothing", "retention", "--keep-ratio", "0.1", "--p-delete", "0.1"), 2, "belongs to --smoothing interc"),
        (("--smoothing", "retention"), 2, "`--keep-ratio` must be given with --smoothing retention"),
        (("--smoothing", "retention", "--keep-ratio", "1/0"), 2, "`keep_ratio` must be a number in [0, 1]"),
        (("--smoothing", "randomized-ablation"), 2, "Exactly one of `num_kept` and `p_ablate` must be given"),
        (("--smoothing", "subgraphs", "--num-subgraphs", "3", "--until-decided"), 2, "It goes with --smoothing interc"),
        (("--smoothing", "features-only", "--bound", "exact"), 2, "`bound` must be one of 'auto'"),
        (("--smoothing", "everything"), 2, "`smoothing` must be one of 'interception', 'retention', "),
        (("--threat", "martians"), 2, "`threat` must be one of 'node-features', "),
        (("--smoothing", "features-only", "--threat", "attribute-flips"), 3, "[no-proof: `graycert explain "),
        (("--smoothing", "features-only", "--rule", "sound"), 3, "[no-proof: `graycert explain "),
        (("--until-decided", "--rule", "sound"), 3, "certified by the rule 'sequential' alone, got rule 'sound'"),
        (("--threat", "edge-deletion", "--collective"), 3, "[no-proof: `graycert explain "),
    ],
)
def test_what_does_not_fit_is_refused_before_a_graph_is_loaded(words, status, says, tmp_path, capsys):
    found = run_command(capsys, "certify", "--graph", tmp_path / "none.npz", *words, "--out", tmp_path / "run")
    assert found.status == status
    assert says in found.err
    assert "none.npz" not in found.err


@pytest.mark.parametrize(
    ("smoothing", "words", "slug", "advice"),
    [
        ("interception", ("--min-distance", "0"), "skip-exposes-target", "--no-skip"),
        ("sparse", ("--model", "gcn"), "skip-not-smoothed", "--no-skip"),
        ("subgraphs", ("--min-distance", "0"), "target-in-every-subgraph", "--min-distance 1"),
    ],
)
def test_what_the_form_of_the_model_rules_out_is_refused_before_training(
    smoothing, words, slug, advice, folder, tmp_path, capsys
):
    given = ("--graph", folder / "ring.npz", "--per-class", "5", "--smoothing", smoothing, *WAYS.get(smoothing, ()))
    found = run_command(capsys, "certify", *given, *words, "--out", tmp_path / "run")
    assert found.status == 3
    assert f"[{slug}: `graycert explain " in found.err
    assert advice in found.err
    assert "training" not in found.err


def test_a_device_that_does_not_exist_is_refused_before_training(folder, tmp_path, capsys):
    words = ("--graph", folder / "ring.npz", "--per-class", "5", "--device", "abacus", "--out", tmp_path / "run")
    found = run_command(capsys, "certify", *words)
    assert found.status == 2
    assert "`device` must name a device of this machine, got 'abacus'" in found.err
    assert "training" not in found.err


def test_options_are_those_of_the_declarations(capsys):
    fields = certify_config().model_fields
    declared = {
        field.name: field.metadata["help"].removesuffix(".").casefold()
        for kind in every_kind()
        for field in dataclasses.fields(kind)
        if field.metadata["option"] is not None
    }
    assert {"p_delete", "keep_ratio", "num_subgraphs", "trusted", "give_up"} <= set(declared)
    for name, text in declared.items():
        assert fields[name].default is None
        assert text in fields[name].description.casefold()
    shown = run_command(capsys, "certify", "--help").out
    assert all(f"--{name.replace('_', '-')} " in shown for name in fields if name != "skip")
    assert all(f" --{short} " in shown for short in SHORT_FORMS.values())


def test_choices_are_those_of_the_library():
    def choices(kind, name):
        annotation = kind.model_fields[name].annotation
        (literal, *_) = annotation.__args__ if type(None) in getattr(annotation, "__args__", ()) else (annotation,)
        return set(literal.__args__)

    certify = certify_config()
    assert choices(certify, "smoothing") == set(SMOOTHINGS)
    assert choices(certify, "threat") == set(THREATS)
    assert choices(certify, "rule") == set(RULES)
    assert choices(certify, "engine") == set(ENGINES)
    assert choices(certify, "bound") == set(graycert.InterceptionSmoothing.bounds)
    claimed = {claim.threat for claim in graycert.InterceptionSmoothing.claims}
    assert choices(bounds_config(), "threat") == claimed & set(THREATS)
    assert claimed - set(THREATS) == {"node-features-and-edge-inputs"}  # of a model, which `bounds` does not have


@dataclass(frozen=True, kw_only=True, eq=False)
class Loud(FeaturesOnly):
    """The floor, called otherwise."""

    name = "loud"

    volume: int = parameter(help="How loud it is.", option=int)
    p_ablate: float | None = parameter(default=None, help="How little is heard.", option=float)


@pytest.mark.deep
def test_a_new_smoothing_has_the_command_line_for_nothing(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(SMOOTHINGS, "loud", Loud)
    shown = run_command(capsys, "certify", "--help").out
    assert "How loud it is (loud)." in shown
    common = ("--graph", folder / "ring.npz", "--per-class", "5", "--model", folder / "skip.safetensors", "--quiet")
    found = run_command(
        capsys,
        "certify",
        *common,
        "--smoothing",
        "loud",
        "--volume",
        "11",
        "--p-ablate",
        "0.5",
        "--out",
        tmp_path / "r",
    )
    assert (found.status, found.err) == (0, "")
    assert Certificates.load(tmp_path / "r").setup.smoothing == Loud(volume=11, p_ablate=0.5)
    assert run_command(capsys, "verify", tmp_path / "r", "--redraw").status == 0
    assert run_command(capsys, "report", tmp_path / "r").status == 0
    words = ("--config", tmp_path / "r" / "config.toml", "--out", tmp_path / "again", "--quiet")
    assert run_command(capsys, "certify", *words).status == 0
    same_run(tmp_path / "r", tmp_path / "again")


def test_bounds_of_other_threats(folder, capsys):
    words = ("--graph", folder / "ring.npz", "--threat", "node-deletion", "--convolution", "local")
    found = run_command(capsys, "bounds", *words, "--json")
    assert found.status == 0, found.err
    assert found.record["options"]["min_distance"] == 1
    assert "deleting nodes at distance >= 1" in run_command(capsys, "bounds", *words).out
    refused = run_command(capsys, "bounds", *words[:-2])
    assert (refused.status, "[unknown-convolution: `graycert explain " in refused.err) == (3, True)
    refused = run_command(capsys, "bounds", *words[:2], "--convolution", "local")
    assert (refused.status, "`--convolution` belongs to --threat node-deletion" in refused.err) == (2, True)


def test_a_parameter_may_not_be_called_as_another_option(monkeypatch):
    @dataclass(frozen=True, kw_only=True, eq=False)
    class Clash(FeaturesOnly):
        name = "clash"
        seed: int = parameter(help="Taken.", option=int)

    monkeypatch.setitem(SMOOTHINGS, "clash", Clash)
    with pytest.raises(ValueError, match=r"Clash\.seed must not be called as an option of CertifyConfig"):
        certify_config()


def test_torch_is_not_loaded_to_refuse_or_to_explain():
    code = (
        "import sys; from graycert.cli.main import main;"
        "status = main(['certify', '--smoothing', 'retention', '--keep-ratio', '2']);"
        "sys.exit(status != 2 or 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
