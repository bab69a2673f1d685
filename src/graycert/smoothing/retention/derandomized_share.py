"""How many targets can be derandomized, and how much work that takes (Table 1 of App. J)."""

from dataclasses import dataclass
from math import comb

from numpy.typing import ArrayLike

from graycert._validation import check_integer, check_targets
from graycert.graph.adjacency import Adjacency
from graycert.graph.receptive_field import receptive_fields
from graycert.graph.reduced_representatives import count_reduced_representatives
from graycert.smoothing.retention.parameters import UniformRetention


@dataclass(frozen=True, kw_only=True)
class DerandomizedShare:
    """A row of the table.

    Attributes:
        by_kept_sets: Share of targets with at most τ kept sets, C(d, k) <= τ: the paper's criterion ("Der.").
        by_representatives: Share of targets with at most τ classes of kept sets, which is all that evaluation needs.
        mean_distinct: Mean of classes / kept sets over the targets of ``by_kept_sets`` ("Eq."); NaN without any.
    """

    by_kept_sets: float
    by_representatives: float
    mean_distinct: float


def derandomized_share(
    adjacency: Adjacency,
    targets: ArrayLike,
    *,
    smoothing: UniformRetention,
    num_layers: int,
    tau: int = 100_000,
    hops: int | None = None,
) -> DerandomizedShare:
    r"""Return which share of the targets can be derandomized with at most τ kept sets, or τ evaluations.

    $$\text{Der.} = \frac{1}{n}\bigl|\{v : \tbinom{d_v}{k_v} \le \tau\}\bigr|, \qquad k_v = \lceil d_v k_{rel} \rceil$$

    Args:
        adjacency: The graph.
        targets: Distinct node indices, shape (num_targets,).
        smoothing: The share k_rel of each field that stays.
        num_layers: Number h of message-passing steps, >= 1.
        tau: Threshold τ, >= 1; the paper's is 100,000.
        hops: As in `reduced_representatives`.

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> from graycert.graph.toy_graphs import star_graph
        >>> derandomized_share(star_graph(4), [0, 1], smoothing=UniformRetention(keep_ratio=0.5), num_layers=1, tau=5)
        DerandomizedShare(by_kept_sets=0.5, by_representatives=0.5, mean_distinct=1.0)

    References:
        Scholten et al. (2022), Appendix J, Table 1.
    """
    tau = check_integer("tau", tau, at_least=1)
    nodes = check_targets(targets, num_nodes=adjacency.num_nodes)
    sizes = receptive_fields(adjacency, nodes, num_layers=num_layers).sizes
    few_sets, few_classes, distinct = 0, 0, []
    for target, size in zip(nodes.tolist(), sizes.tolist(), strict=True):
        kept = smoothing.num_kept(size - 1)
        num_kept_sets = comb(size - 1, kept)
        num_classes = count_reduced_representatives(
            adjacency, target, num_layers=num_layers, num_kept=kept, hops=hops, max_representatives=tau
        )
        few_classes += num_classes <= tau
        if num_kept_sets <= tau:
            few_sets += 1
            distinct.append(num_classes / num_kept_sets)
    return DerandomizedShare(
        by_kept_sets=few_sets / nodes.size,
        by_representatives=few_classes / nodes.size,
        mean_distinct=sum(distinct) / len(distinct) if distinct else float("nan"),
    )
