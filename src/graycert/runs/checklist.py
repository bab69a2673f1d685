"""For who audits a result: what it rests on, what each file is, and what checking it does and does not redo."""

from graycert.certificates import Certificates
from graycert.setup import Setup


def files_in_words(c: Certificates) -> tuple[tuple[str, str], ...]:
    """Return the files of a run, and what each is."""
    votes = "the votes" if c.setup.draws is not None else "what the model answered"
    return (
        ("config.toml", "every parameter, versions, and fingerprints of graph and features"),
        ("certificates.parquet", f"one row per target: {', '.join(['prediction', 'radius', *_bounds(c)])}"),
        ("votes.npz", f"{votes}, and every other array that the certificates follow from"),
        ("summary.json", "what is said on this page, as counts"),
        ("report.html", "this page"),
        ("model.json, model.safetensors", "the model that was certified, where it was kept"),
    )


def _bounds(c: Certificates) -> list[str]:
    """Return which bounds a result has."""
    return [*(["bounds"] if c.p_lower is not None else []), *(["Δ̄(ρ)"] if c.delta_upper is not None else [])]


def assumptions(c: Certificates) -> tuple[str, ...]:
    """Return what has to be true for the claim to hold, as far as nobody can see it in the files."""
    s = c.setup
    steps = "as the user said" if s.num_layers_assumed else "as the audit of the model found"
    return (
        f"Attacks are of the kind described; for ρ = 1: {s.threat.against(1)}. Other attacks may do more.",
        "The graph that the classifier is run on is the one with the fingerprint in config.toml"
        + (", and its structure is not changed by the adversary." if "features" in s.threat.claimed_as else "."),
        *(
            [
                "The structure, and settings per node or edge if the run has any, were not made from features: else "
                "hostile features would change them, too."
            ]
            if s.smoothing.reads_structure
            else []
        ),
        "The model was trained on clean data: hostile nodes had no part in its training.",
        "Predictions are made by the smoothed classifier itself, by the same vote, not by the model as trained.",
        *(
            [f"No message moves more than {s.num_layers} times along an edge, {steps}."]
            if s.num_layers is not None
            else []
        ),
        *(
            [
                f"The seed {s.seed} was not chosen by looking at results, and the votes were drawn as config.toml "
                f"says. The failure probability α = {s.alpha!r} is over these draws alone."
            ]
            if s.draws is not None
            else []
        ),
        *(["Values per edge are no function of features, as the user said."] if s.edge_inputs else []),
        *(
            [
                "Gaps in the tables were filled with medians over all nodes. These stay what they are: if hostile "
                "nodes moved them, by what they write into the tables, other nodes' features would change."
            ]
            if any(each.startswith("filled gaps (median)") for each in _preparation(s))
            else []
        ),
    )


def _preparation(setup: Setup) -> list[str]:
    """Return what was done to make the graph, as far as the run says."""
    graph = setup.provenance.get("graph")
    said = graph.get("preparation") if isinstance(graph, dict) else None
    return [each for each in said if isinstance(each, str)] if isinstance(said, list | tuple) else []


def redone(c: Certificates) -> tuple[str, ...]:
    """Return what `verify` does, and what it does not."""
    drawn = c.setup.draws is not None
    votes = "votes" if drawn else "the model's answers"
    recomputed = ", ".join(["receptive fields", "eligible nodes", "classes", *_bounds(c), "radii", "summary"])
    return (
        f"`graycert verify` with the folder of this run recomputes {recomputed} and this page from {votes} and graph, "
        "and names what differs. It exits with 0 only if all agrees.",
        _asking_the_model(c),
        "It cannot know whether the adversary is the right one, whether labels are true, or whether settings were "
        "chosen by looking at the results.",
        "Which nodes to protect first is not checked: no certificate rests on it.",
    )


def _asking_the_model(c: Certificates) -> str:
    """Say what is taken from the files, and what asks the model again."""
    redraw = "`--redraw` (or `graycert.verify(run, model=...)`) audits the model and"
    if c.setup.draws is not None:
        return f"It takes the votes from the files. {redraw} draws every vote again."
    if c.setup.smoothing.evaluates_quickly:
        return (
            "Nothing was drawn, so there is nothing to draw again. Where the model lies beside the files, or is given "
            "by `graycert.verify(run, model=...)`, it is audited and evaluated again; else its answers are taken from "
            "the files."
        )
    return f"Nothing was drawn. It takes the model's answers from the files. {redraw} evaluates it again."
