"""All comparisons of a run, in order."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from graycert.certificates import Certificates
from graycert.data import validate_data
from graycert.heterogeneous import graph_of_run, is_heterogeneous
from graycert.runs.damaged import one_error
from graycert.runs.verify import comparisons, stored_files
from graycert.runs.verify.as_trained import WITHOUT_SMOOTHING
from graycert.runs.verify.findings import Verification
from graycert.runs.verify.floor import compare_floor
from graycert.runs.verify.graph_again import rebuild_graph
from graycert.runs.verify.model_beside import ask_model, model_beside
from graycert.runs.verify.recomputation import recompute
from graycert.runs.verify.redrawing import redraw

if TYPE_CHECKING:  # models and engines are loaded only where votes are drawn again
    from torch import Tensor, nn


def verify(
    directory: str | Path,
    *,
    data: Any = None,
    data_root: str | Path | None = None,
    model: "nn.Module | None" = None,
    ablation_token: "Tensor | None" = None,
    floor: "nn.Module | None" = None,
) -> Verification:
    """Recompute every certificate of a run from its votes and its graph, and compare all that is stored.

    Receptive fields, eligible nodes and Δ̄ are computed from the graph, then classes, bounds, radii and status from
    these and the votes, then summary and report. Classes, radii and counts must be equal; floats may differ by
    1e-12. A model that the run keeps is asked what it can say without a draw: whether it shows the target past the
    smoothing, how deep it is, its classes and features, its convolutions, and what it predicts without smoothing.
    Where evaluating it again costs little (`BoundedVotes`), all that it said is evaluated again, too.

    The work is bounded by the graph and the size of the files, whatever they hold.

    Args:
        directory: A run directory.
        data: The graph that was certified; default is the one that the run names, loaded and prepared again.
        data_root: Folder with graph files, see `load_graph`.
        model: The model, if the votes are to be drawn again too. That audits the model and takes as long as
            certifying; on another machine rounding may turn a vote whose two best classes nearly tie.
        ablation_token: What was passed to `certify`, for drawing the votes again; a run does not store it.
        floor: The model of single nodes that the run is compared with, where the run does not keep it.

    Returns:
        All comparisons; ``.passed`` says whether all agree.

    Raises:
        InvalidFileError: If the run or its graph cannot be read, or the run holds what no run can.
        InvalidParameterError: If the run does not say which graph it is about and ``data`` is missing.

    References:
        Scholten et al. (2022), Section 5.
    """
    folder = Path(directory).expanduser()
    stored = Certificates.load(folder)
    graph = data if data is not None else rebuild_graph(stored.setup, data_root=data_root)
    if is_heterogeneous(graph):
        model, graph, ablation_token = _of_types(stored, model, graph, ablation_token)
    validate_data(graph)
    checks = [comparisons.compare_fingerprint(stored, graph)]
    same_graph = checks[0].passed
    if same_graph:
        checks += comparisons.refused_set_up(stored, graph)
    with one_error(folder, "computing them again"):
        recomputed, names = recompute(stored, graph if same_graph else None)
        unsaid: list[str] = []
        if same_graph:
            checks += comparisons.compare_preparation(stored, graph, unsaid)
            checks += [*comparisons.compare_identity(stored, graph), *comparisons.compare_split(stored, graph)]
        checks += comparisons.compare_arrays(stored, recomputed, names)
        if stored.collective is not None and all(check.passed for check in checks if check.name == "collective"):
            recomputed = recomputed.replace(collective=stored.collective)  # another solver may prove more
        checks += comparisons.compare_neighbourhoods(stored, recomputed)
        if all(check.passed for check in checks):
            recomputed = stored  # what they say agrees; texts round numbers of which the last bits may differ
        checks.append(stored_files.compare_summary(folder, recomputed))
        not_redone = [*unsaid, *_not_recomputed(stored, names, same_graph=same_graph)]
        checks += stored_files.compare_report(folder, stored, recomputed, not_redone)
        checks += stored_files.compare_weights(folder, stored, not_redone)
    beside = model if model is not None else model_beside(folder)
    model = beside if stored.setup.smoothing.evaluates_quickly else model
    said = [] if beside is None or not same_graph else list(ask_model(stored, graph, beside))
    checks += said
    if same_graph:
        checks += compare_floor(folder, stored, graph, floor, not_redone)
    if model is not None and same_graph and all(check.passed or check.name in WITHOUT_SMOOTHING for check in said):
        checks += redraw(stored, graph, model, ablation_token)
    else:
        steps = stored.setup.num_layers
        assumed = ", which is what the user said and nobody counted" if stored.setup.num_layers_assumed else ""
        depth = "" if steps is None else f", and that the model has {steps} propagation steps{assumed}"
        not_redone.append(
            "what was drawn or evaluated: that it is what the model gives under the smoothing and seed named in "
            f"config.toml{depth}, is taken from the files. The model can check it (`verify(..., model=...)`, "
            "`--redraw`)"
        )
    if not stored.setup.the_rule.is_sound:
        not_redone.append(f"soundness: rule={stored.setup.rule!r} proves nothing, whether its numbers agree or not")
    return Verification(directory=str(folder), checks=tuple(checks), not_redone=tuple(not_redone))


def _of_types(stored: Certificates, model: Any, graph: Any, token: Any) -> tuple[Any, Any, Any]:
    """Return model, graph and token as the run was made on them."""
    inputs, targets = stored.setup.edge_inputs, stored.targets
    one = graph_of_run(graph, edge_inputs=inputs, targets=targets)
    if model is None:
        return model, one, token
    from graycert.heterogeneous import AskedOfTypes

    kind = one.types.type_of(min(int(targets[0]), one.num_nodes - 1))
    asked = AskedOfTypes.of(model, graph, targets={kind: None}, edge_inputs=(inputs or ())[1:])
    return asked.model, asked.data, asked.token(token)


def _not_recomputed(stored: Certificates, names: tuple[str, ...], *, same_graph: bool) -> list[str]:
    sentences = []
    if not same_graph:
        sentences.append("Δ̄ and receptive fields, because the graph is another one")
        if "radius" not in names:
            sentences.append("radii, because they follow from the graph, too")
        if stored.collective is not None:
            sentences.append("the collective certificate, because the graph is another one")
    elif stored.collective is not None and "milp" in stored.collective.proved_by:
        sentences.append("a solver's branch and bound, on which the collective counts marked milp rest")
    if stored.attackers is not None:
        sentences.append("which nodes to protect first: no certificate rests on them")
    if len(stored) < stored.setup.num_nodes:
        sentences.append(
            "how the targets were chosen: every certificate holds for its own target, but shares are of these targets, "
            "and no file tells whether they, or the split that names them, were chosen after results were seen"
        )
    return sentences
