"""Models of these tests have the same weights in every run."""

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
