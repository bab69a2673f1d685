"""Do the values of a result fit each other? What no declaration of a single field can know."""

from typing import TYPE_CHECKING

import numpy as np

from graycert._types import IntArray
from graycert.draws import Draws
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.rules import CollectiveCertificate, status_of
from graycert.rules.vote_certificates import check_delta_upper
from graycert.setup import Setup
from graycert.statistics.votes import count_classes

if TYPE_CHECKING:
    from graycert.certificates import Certificates


def check_together(c: "Certificates") -> None:
    """Check what no field can know on its own.

    Raises:
        InvalidParameterError: If values do not fit each other.
    """
    setup, size = c.setup, len(c)
    if size == 0 or np.unique(c.targets).size != size:
        raise InvalidParameterError("`targets` must be distinct nodes, at least one.")
    if setup.max_radius is not None and (c.radius > setup.max_radius).any():
        raise InvalidParameterError(
            f"`radius` must be <= {setup.max_radius}, the largest that was looked at, got {int(c.radius.max())}."
        )
    if (c.radius > c.num_eligible).any():
        raise InvalidParameterError(
            "`radius` must be <= `num_eligible`, the number of those who could be hostile to the target, got "
            f"{int(c.radius[c.radius > c.num_eligible][0])}. Use graycert.certify."
        )
    if (c.status != status_of(c.radius)).any():
        raise InvalidParameterError(
            "`status` must be 'abstained', 'predicted' or 'certified' as `radius` is -1, 0 or more. Use "
            "graycert.certify."
        )
    if c.delta_upper is not None:
        check_delta_upper(c.delta_upper, num_targets=size)
    if (c.receptive_field_size > setup.num_nodes).any():
        raise InvalidParameterError(
            f"`receptive_field_size` must be <= {setup.num_nodes}, the number of nodes of the graph, got "
            f"{int(c.receptive_field_size.max())}."
        )
    if setup.threat.within_field and (c.num_eligible > c.receptive_field_size).any():
        raise InvalidParameterError(
            "`num_eligible` must not exceed `receptive_field_size`: eligible nodes are part of the receptive field."
        )
    setup.smoothing.check_graph(num_edges=setup.num_edges, num_nodes=setup.num_nodes)
    trusted = getattr(setup.threat, "trusted", None)
    if trusted is not None and trusted.size != setup.num_nodes:
        raise InvalidParameterError(
            f"`threat.trusted` must have one entry per node ({setup.num_nodes}), got {trusted.size}."
        )
    _check_combination(setup)
    _check_votes(c)
    if c.collective is not None:
        _check_collective(c.collective, setup, num_targets=size)


def _check_combination(setup: Setup) -> None:
    try:
        setup.smoothing.check(threat=setup.threat, rule=setup.rule, draws=setup.draws, bound=setup.bound)
    except UnsoundSetupError as error:
        raise InvalidParameterError(
            f"`setup` must be a combination that `certify` allows, got rule {setup.rule!r}. {error}"
        ) from error


def _check_votes(c: "Certificates") -> None:
    draws, needs = c.setup.draws, c.setup.the_rule.needs
    if (c.selection_votes is None) != (draws is None) or (c.estimation_votes is None) != (draws is None):
        raise InvalidParameterError("`selection_votes` and `estimation_votes` must be given exactly where draws are.")
    if draws is None or c.selection_votes is None or c.estimation_votes is None:
        return
    chosen, counted = (
        table.sum(axis=1) + (0 if no_class is None else no_class)
        for table, no_class in (
            (c.selection_votes, c.selection_no_class),
            (c.estimation_votes, c.estimation_no_class),
        )
    )
    drawn = chosen > 0
    fixed = draws.num_estimation if isinstance(draws, Draws) else None
    most = draws.num_estimation if isinstance(draws, Draws) else draws.max_estimation
    if (chosen[drawn] != draws.num_selection).any() or (counted[~drawn] != 0).any():
        raise InvalidParameterError(f"`selection_votes` must sum to {draws.num_selection} for every target drawn for.")
    if (counted > most).any() or (fixed is not None and (counted[drawn] != fixed).any()):
        raise InvalidParameterError(f"`estimation_votes` must sum to {most} for every target that is drawn for.")
    singles, batches = c.adds.get("estimation_predictions"), c.adds.get("estimation_batches")
    if singles is not None:
        found, for_none = count_classes(singles, num_classes=c.setup.num_classes)
        known = 0 if c.estimation_no_class is None else c.estimation_no_class
        if not np.array_equal(found, c.estimation_votes) or (for_none != known).any():
            raise InvalidParameterError("`estimation_predictions` must be the votes that `estimation_votes` counts.")
    if (needs != "batches" and batches is not None) or (
        batches is not None
        and not (
            np.array_equal(batches.sum(axis=1), c.estimation_votes)
            and _same_sums(c.adds.get("estimation_batches_no_class"), c.estimation_no_class, shape=batches.shape[:2])
        )
    ):
        raise InvalidParameterError(
            "`estimation_batches` must be the votes that `estimation_votes` counts, and belongs to rule 'sequential'."
        )


def _same_sums(parts: IntArray | None, whole: IntArray | None, *, shape: tuple[int, ...]) -> bool:
    """Return whether votes for no class, batch by batch and in all, are absent or agree."""
    if parts is None or whole is None:
        return parts is None and whole is None
    return parts.shape == shape and np.array_equal(parts.sum(axis=1), whole)


def _check_collective(collective: object, setup: Setup, *, num_targets: int) -> None:
    if not isinstance(collective, CollectiveCertificate):
        raise InvalidParameterError(f"`collective` must be a CollectiveCertificate, got {collective!r}.")
    if setup.smoothing.cell(setup.threat.claimed_as, setup.rule, "one adversary").status != "proved":
        raise InvalidParameterError(
            f"`collective` needs a sound rule and a threat with a proof, got rule {setup.rule!r}. Leave one of them "
            "out."
        )
    budgets, active = collective.budgets, collective.num_active
    robust, naive = collective.num_robust, collective.num_robust_naive
    shapes = {np.shape(values) for values in (budgets, robust, naive, collective.proved_by, collective.solver_status)}
    groups, limits = collective.groups, collective.group_budgets
    if (groups is None) != (limits is None) or (groups is not None and groups.shape != (setup.num_nodes,)):
        raise InvalidParameterError(
            f"`collective.groups` must have one entry per node ({setup.num_nodes}) and come with `group_budgets`, got "
            f"{groups!r}. Use Certificates.against_one_adversary."
        )
    possible = (
        shapes == {(np.size(budgets),)}
        and np.all(np.diff(budgets, prepend=0) > 0)
        and np.all((naive >= 0) & (naive <= robust) & (robust <= active))
        and active <= num_targets
    )
    if not possible:
        raise InvalidParameterError(
            "`collective` must have one count per rising budget, with 0 <= num_robust_naive <= num_robust <= "
            f"num_active <= {num_targets}, the number of targets. Use Certificates.against_one_adversary."
        )
