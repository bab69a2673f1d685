"""Bytes that a pass holds at one time."""

import torch

from graycert.sampling.memory import peak_bytes


def test_counts_what_lives_at_the_same_time():
    def run():
        first = torch.zeros(1_000)  # 4,000 bytes
        second = first + 1
        view = second.reshape(10, 100)  # no memory of its own
        del first
        third = torch.cat([view, view])
        assert third is not None

    assert peak_bytes(run) == 12_000


def test_freed_memory_is_free_again():
    def run():
        for _ in range(50):
            value = torch.ones(1_000) * 2
            del value

    assert 8_000 <= peak_bytes(run) <= 16_000


def test_sparse_tensors_do_not_stop_it():
    def run():
        matrix = torch.sparse_coo_tensor(torch.tensor([[0], [1]]), torch.ones(1), (2, 2), check_invariants=False)
        assert (matrix @ torch.ones(2, 3)).shape == (2, 3)

    assert peak_bytes(run) >= 24
