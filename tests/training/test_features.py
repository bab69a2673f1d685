import torch

from graycert.training.features import Features
from support.communities import two_communities

NODES = torch.tensor([7, 3, 3, 59, 0])


def test_rows_are_those_of_the_features() -> None:
    x = two_communities().x
    x[3] = 0.0  # an empty row
    rows = Features(x).rows(NODES)
    assert rows.layout == torch.sparse_csr
    assert torch.equal(rows.to_dense(), x[NODES])
    assert torch.equal(Features(torch.zeros(4, 3)).rows(torch.tensor([1, 2])).to_dense(), torch.zeros(2, 3))
    dense = two_communities(sparse=False).x
    assert torch.equal(Features(dense).rows(NODES), dense[NODES])


def test_sparse_features_drop_entries_as_dense_ones_do() -> None:
    x, drop, draws = two_communities().x * 3.0, 0.8, 4_000
    features = Features(x)
    torch.manual_seed(0)
    seen = torch.stack([features.rows(NODES, drop=drop).to_dense() for _ in range(draws)])
    whole = x[NODES]
    assert bool(((seen == 0) | torch.isclose(seen, whole / (1 - drop))).all())
    # 200 shares of 4,000 draws: 6 standard errors are exceeded with probability below 1e-6 in all
    share = (seen[:, whole != 0] != 0).double().mean(dim=0)
    assert bool(((share - (1 - drop)).abs() <= 6 * (drop * (1 - drop) / draws) ** 0.5).all())
    together = (seen[:, 0] != 0).double()[:, whole[0] != 0]
    correlation = torch.corrcoef(together.T) - torch.eye(together.size(1))
    assert float(correlation.abs().max()) <= 6 / draws**0.5  # entries are dropped independently
