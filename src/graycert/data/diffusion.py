"""Sparsification by graph diffusion: few edges, few paths, few messages to intercept."""

from torch_geometric.data import Data
from torch_geometric.transforms import GDC
from torch_geometric.utils import remove_self_loops

from graycert._validation import check_open_unit, check_positive
from graycert.data.checks import count_nodes
from graycert.data.origin import forget
from graycert.data.preparation import prepare_graph, take_steps
from graycert.errors import InvalidParameterError

_MOST_NODES = 20_000  # a dense inverse: some 5 GB and minutes


def sparsify_by_diffusion(data: Data, *, threshold: float = 0.022, teleport: float = 0.15) -> Data:
    r"""Return a copy of a graph whose edges are the large entries of its personalised PageRank matrix.

    $$S = \alpha\,(I - (1-\alpha)\,D^{-1/2}(A + I)D^{-1/2})^{-1}, \qquad
    w \to v \text{ is an edge iff } S_{wv} \ge \varepsilon \text{ and } w \ne v$$

    PyTorch Geometric's ``GDC`` computes S. Its edge weights are ignored, as in the paper, and the diagonal is left out:
    the models add a self-loop to every node themselves. No edge is there twice, and nodes stay where they are, those
    without edges too.

    Guarantee:
        Certificates computed on the result hold for adversaries who act after the sparsification and cannot attack it.
        For hostile features that is no restriction: S depends on the structure alone. Changes of the structure *before*
        the sparsification are not covered, for one edge can change many entries of S.

    Args:
        data: A graph; edge weights are not used.
        threshold: Smallest entry ε that becomes an edge, > 0.
        teleport: Probability α of returning to the start, in (0, 1).

    Returns:
        The sparser graph; ``preparation`` says what was done.

    Raises:
        InvalidParameterError: If an argument is out of its domain, or the graph has a single node or more than 20,000:
            S is the inverse of a dense matrix.

    Example:
        >>> import torch
        >>> path = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> sparsify_by_diffusion(path, threshold=0.2).edge_index.tolist()
        [[0, 1, 1, 2], [1, 0, 2, 1]]

    References:
        Gasteiger et al. (2019), "Diffusion Improves Graph Learning"; Scholten et al. (2022), Section 7 (Figure 4).
    """
    check_positive("threshold", threshold)
    check_open_unit("teleport", teleport)
    result = prepare_graph(data)
    forget(result)
    num_nodes, before = count_nodes(result), result.edge_index.size(1)
    if not 2 <= num_nodes <= _MOST_NODES:
        raise InvalidParameterError(
            f"`data` must have from 2 to {_MOST_NODES:,} nodes for diffusion, got {num_nodes:,}: a dense matrix of "
            f"{4 * num_nodes**2 / 1e9:,.0f} GB would be inverted. Sparsify a part of it, or thin it in another way."
        )
    diffuse = GDC(
        diffusion_kwargs={"method": "ppr", "alpha": teleport},
        sparsification_kwargs={"method": "threshold", "eps": threshold},
        exact=True,
    )
    bare = diffuse(Data(edge_index=result.edge_index.cpu(), num_nodes=num_nodes))
    edges, _ = remove_self_loops(bare.edge_index)
    result.edge_index = edges.to(result.edge_index.device)
    what = f"sparsified by diffusion (teleport {teleport}, threshold {threshold})"
    result.preparation.append(f"{what}: {before:,} became {edges.size(1):,} directed edges")
    take_steps(result, "diffusion")
    return result
