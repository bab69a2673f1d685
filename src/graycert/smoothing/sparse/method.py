r"""Certify with sparse smoothing of attributes (Bojchevski, Klicpera and Günnemann 2020).

Every draw deletes each 1 of the binary attributes with probability $p_-$ and sets each 0 with probability $p_+$. The
prediction is the class with most votes; the regions certificate says how many flipped attributes it withstands.

Threat model: the adversary knows everything but the draws and flips attributes of any nodes, the target included. The
budget counts attributes, not nodes, so a hostile node that rewrites all of its features is only covered as far as its
number of attributes goes (`graycert.smoothing.sparse.conversion`). The structure is fixed. It needs no locality and no
knowledge of the model: a black-box certificate.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert.errors import UnsoundSetupError
from graycert.models.protocol import has_skip
from graycert.problem import Problem, classified
from graycert.rules import RULES
from graycert.setup import Setup
from graycert.smoothing.fixed_votes import counted_votes, fixed_votes
from graycert.smoothing.protocol import Arrays, FromGraph, Method
from graycert.smoothing.sparse.regions import certified_deletions

MOST_DELETIONS = 10_000  # looked at, whatever largest radius is given


class SparseMethod(Method):
    r"""Bound the reported class from below and every other one from above, then move both to the worst perturbed input.

    Guarantee:
        If ``deletions[t, a]`` is d >= 0, no setting of up to a zeros and deletion of up to d ones changes the predicted
        class (all entries of a target hold together). Regions are computed and compared exactly, confidence bounds are
        rounded outward.

    References:
        Bojchevski, Klicpera and Günnemann (2020); Scholten et al. (2022), Fig. 3c; docs/proofs/sparse_smoothing.md.
    """

    def refuse(self, problem: Problem) -> None:
        """Refuse a skip connection."""
        if has_skip(problem.model):
            raise UnsoundSetupError(
                "skip-not-smoothed",
                "`model` must not have a skip connection, because it shows the target's own attributes before they are "
                "drawn, and this adversary may flip those, too. Build it with skip=False (`--no-skip`).",
            )

    def prepare(self, problem: Problem) -> Problem:
        """Assume of the model that it is a function of features and edges, and has no skip connection."""
        from graycert.smoothing.model_check import audited

        self.refuse(problem)
        return audited(problem, local=False)[0]

    def from_graph(self, problem: Problem) -> FromGraph:
        """Count the attributes that are set, anywhere: all of them may be deleted."""
        num_ones = int((problem.data.x != 0).sum())
        size = problem.targets.size
        return FromGraph(
            arrays={
                "num_eligible": np.full(size, num_ones, dtype=np.int64),
                "receptive_field_size": np.full(size, problem.setup.num_nodes, dtype=np.int64),
            }
        )

    def draw(self, problem: Problem, found: FromGraph) -> tuple[Setup, Arrays]:
        """Draw votes."""
        from graycert.smoothing.sparse.sampling import build_sparse_smoothing_engine

        del found
        smoothing: Any = problem.smoothing
        engine = build_sparse_smoothing_engine(
            problem.model, problem.data, problem.targets, p_plus=smoothing.p_plus, p_minus=smoothing.p_minus
        )
        setup = classified(problem, num_classes=engine.num_classes, engine=engine.name)
        return setup, fixed_votes(engine, problem)

    def conclude(self, problem: Problem, found: FromGraph, drawn: Mapping[str, NDArray[Any]]) -> Arrays:
        """Return the table of deletions and additions; the radius is that of deletions alone."""
        del found
        smoothing: Any = problem.smoothing
        threat: Any = problem.threat
        selection, estimation = counted_votes(drawn)
        majority = selection.counts.argmax(axis=1).astype(np.int64)
        lead = RULES[problem.setup.rule].lead_of(selection, estimation, majority, problem.level)
        deletions = certified_deletions(
            lead.p_lower,
            lead.p_upper,
            p_plus=smoothing.p_plus,
            p_minus=smoothing.p_minus,
            max_deletions=min(problem.setup.max_radius or MOST_DELETIONS, MOST_DELETIONS),
            max_additions=threat.max_additions,
        )
        return {
            "prediction": majority,
            "p_lower": lead.p_lower,
            "p_upper": lead.p_upper,
            "radius": deletions[:, 0],
            "deletions": deletions,
        }


METHOD = SparseMethod()
