"""The smoothed classifier: what `certify` certified, run on this graph or on another one."""

import copy
import dataclasses
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graycert._types import NO_CLASS, IntArray
from graycert._validation import check_seed
from graycert.draws import UntilDecided
from graycert.errors import InvalidParameterError
from graycert.graph import CanonicalGraph, fingerprint_of
from graycert.problem import check_class_names
from graycert.setup import Setup
from graycert.threats import Threat

if TYPE_CHECKING:
    from torch import Tensor, nn

    from graycert.audit import AuditReport
    from graycert.certificates import Certificates
    from graycert.problem import Execution

Seed = int | Literal["certified"] | None

_ONE_AT_A_TIME = threading.RLock()  # global generators and compiled kernels are those of the process


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoothedClassifier:
    """The classifier that certificates are about, with everything that decides: model, smoothing, rule, α and draws.

    `certify` does its work, so that it predicts and abstains by the rule of the certificates, and what `certify`
    refuses, it refuses: another graph is audited anew; the last one that was seen is remembered. Of a graph that has
    grown only the receptive fields of the targets are evaluated, besides the audit.

    Each call draws by a fresh secret seed. Whoever knows the seed of a call before they choose their features can look
    for features that err on just these draws: the guarantee is about draws that the adversary does not know.
    ``seed="certified"`` takes that of the certified run, whose draws are no secret any more: on the same graph the
    votes are those that `certify` reported, bit for bit. Where nothing is drawn, the seed is part of the classifier
    (it numbers subgraphs), certificates hold with certainty, and it is always that of the run.

    Calls from several threads take turns. docs/deploying.md says what a thousand nodes cost.

    Args:
        setup: What the certificates were made from.
        model: A copy of the model that was certified.
        ablation_token: Features of an ablated node as they were given, shape (num_features,); None for the model's own,
            else zeros.

    References:
        Cohen, Rosenfeld and Kolter (2019), Section 3.2 (predicting by votes, and abstaining).
    """

    setup: Setup
    model: "nn.Module"
    ablation_token: "Tensor | None" = None
    _audits: "dict[str, AuditReport]" = field(default_factory=dict, init=False, repr=False)

    def predict(
        self, data: Any, targets: Any = None, *, seed: Seed = None, execution: "Execution | None" = None
    ) -> IntArray:
        """Predict classes, or abstain, as the certified classifier does.

        Guarantee:
            For each target on its own, with probability at least 1 - α over the draws of this call: if a class is
            returned, it is the one that the smoothed classifier g gives the target on this graph (see `statement`).

        Args:
            data: A graph with the features, and values per edge, that the model knows.
            targets: See `graycert.certify`.
            seed: None for a fresh secret one, "certified" for that of the run, or a number in [0, 2^64).
            execution: Where and how to compute.

        Returns:
            Class per target, -1 where the votes do not single out one, int64 (num_targets,).

        Raises:
            InvalidParameterError: If an argument is out of its domain, or classes are named otherwise.
            UnsoundSetupError: As of `certify`.
        """
        nobody = self._against_nobody(int(data.num_nodes))
        least = self.setup.max_radius if isinstance(self.setup.draws, UntilDecided) else 1
        found = self._certify(data, targets, nobody, max_radius=least, seed=seed, execution=execution)
        return np.where(found.radius >= 0, found.prediction, NO_CLASS)

    def predict_certified(
        self,
        data: Any,
        targets: Any = None,
        threat: Threat | None = None,
        *,
        seed: Seed = None,
        execution: "Execution | None" = None,
    ) -> "Certificates":
        """Predict, and say up to how many hostile nodes each prediction cannot change.

        Guarantee:
            That of `graycert.certify`, for this call.

        Args:
            data: See `predict`.
            targets: See `graycert.certify`.
            threat: Who may do what; default that of the certificates, whose trusted nodes must be those of ``data``.
            seed: See `predict`.
            execution: Where and how to compute.

        Returns:
            What `certify` returns. It holds the seed, as every result: no secret any more, and not used again.

        Raises:
            InvalidParameterError: If an argument is out of its domain, or classes are named otherwise.
            UnsoundSetupError: As of `certify`.
        """
        threat = self.setup.threat if threat is None else threat
        return self._certify(data, targets, threat, max_radius=self.setup.max_radius, seed=seed, execution=execution)

    def statement(self) -> str:
        """Say in words what is run, and what holds of it and of its estimate."""
        from graycert.deployment.words import statement

        return statement(self.setup)

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write weights and arrays as safetensors and the set-up as TOML: as a whole or not at all, without pickle.

        Args:
            directory: New or empty folder; parents are made.
            overwrite: Replace an earlier classifier. Anything else is never replaced.

        Returns:
            The absolute path of the directory.

        Raises:
            InvalidFileError: If the directory holds something, or cannot be written.
            WriteError: If there is no room.
        """
        from graycert.deployment.files import save_classifier

        return save_classifier(self, directory, overwrite=overwrite)

    @classmethod
    def load(cls, directory: str | Path, *, model: "nn.Module | None" = None) -> "SmoothedClassifier":
        """Read what `save` wrote.

        Args:
            directory: The folder.
            model: For a model of your own: one of its class, which is copied and filled with the stored weights. What
                the class does, and constants that are no parameters or buffers, are not stored.

        Raises:
            InvalidFileError: If a file is missing, damaged, foreign or of another model.
            InvalidParameterError: If ``model`` is needed and not given, or of another class.
        """
        from graycert.deployment.files import load_classifier

        return load_classifier(directory, model=model)

    def _certify(self, data: Any, targets: Any, threat: Threat, *, seed: Seed, **others: Any) -> "Certificates":
        from graycert.certification import certify

        s = self.setup
        data = self._with_class_names(data)
        asked: dict[str, Any] = {
            "num_layers": s.num_layers,
            "ablation_token": self.ablation_token,
            "edge_inputs": s.edge_inputs,
        }
        with _ONE_AT_A_TIME:
            return certify(
                self.model,
                data,
                targets=targets,
                smoothing=self._smoothing_on(data),
                threat=threat,
                draws=s.draws,
                rule=s.rule,
                bound=s.bound,
                alpha=s.alpha,
                simultaneous=s.simultaneous,
                seed=self._seed(seed),
                audit=self._audited(data, asked),
                provenance={"classifier": {"certified_graph": s.graph_fingerprint}},
                **asked,
                **others,
            )

    def _seed(self, seed: Seed) -> int:
        if self.setup.draws is None or (isinstance(seed, str) and seed == "certified"):
            return self.setup.seed
        return secrets.randbits(64) if seed is None else check_seed(seed)

    def _against_nobody(self, num_nodes: int) -> Threat:
        """Return a threat that is no harder to bound than needed: abstaining does not depend on who is hostile."""
        threat = self.setup.threat
        if isinstance(self.setup.draws, UntilDecided) or not hasattr(threat, "trusted"):
            return threat
        everybody = {"trusted": np.ones(num_nodes, dtype=np.bool_)}
        return dataclasses.replace(threat, **everybody)  # not every threat has it

    def _with_class_names(self, data: Any) -> Any:
        """Return the graph with the names of the classes; refuse one that names them otherwise."""
        known, given = self.setup.class_names, getattr(data, "class_names", None)
        check_class_names(known, given)
        if known is None or given is not None:
            return data
        named = copy.copy(data)
        named.class_names = list(known)
        return named

    def _smoothing_on(self, data: Any) -> Any:
        """Return the smoothing with values per edge in the order of the graph, which must be the one they are of."""
        smoothing = self.setup.smoothing
        arrays: Sequence[str] = sorted(smoothing.stored()[1])
        if not arrays:
            return smoothing
        graph = CanonicalGraph.of(data, merge_parallel=self.setup.allows_parallel_edges)
        same = self.setup.edges_fingerprint == graph.fingerprint and self.setup.num_edges == graph.num_edges
        without_loops = graph.num_edges == graph.adjacency.num_edges
        known = self.setup.graph_fingerprint
        if not (same and without_loops) and fingerprint_of(data, self.setup.edge_inputs) != known:
            raise InvalidParameterError(
                f"`data` must have the edges of the certified graph, because `{'`, `'.join(arrays)}` of the smoothing "
                "has one value per edge or node of it, got other edges. Certify again, with values for this graph."
            )
        return smoothing.with_canonical_edges(graph.in_columns)

    def _audited(self, data: Any, asked: dict[str, Any]) -> "AuditReport | None":
        """Return a report on this graph, the last one if it is the same; None where `certify` has to look itself."""
        from graycert.audit import audit_model

        if self.setup.draws is None or self.setup.num_layers is None:
            return None
        fingerprint = fingerprint_of(data, self.setup.edge_inputs)
        if fingerprint not in self._audits:
            self._audits.clear()
            self._audits[fingerprint] = audit_model(self.model, data, seed=secrets.randbits(64), **asked)
        report = self._audits[fingerprint]
        return report if report.about.get("model") else None
