"""Small graphs with binary attributes, and their smoothed classifiers by listing all draws."""

import itertools

import numpy as np
import torch

from support.attributed_graphs import random_graph


def binary_graph(*, density=0.5, **changes):
    """A random graph whose attributes are zeros and ones."""
    data = random_graph(**changes)
    generator = torch.Generator().manual_seed(changes.get("seed", 0))
    data.x = (torch.rand(data.x.shape, generator=generator) < density).to(data.x.dtype)
    return data


def every_pattern(num_nodes, num_features):
    """All settings of all attributes, shape (2 ** (num_nodes * num_features), num_nodes, num_features)."""
    patterns = np.array(list(itertools.product((0.0, 1.0), repeat=num_nodes * num_features)))
    return torch.from_numpy(patterns.reshape(-1, num_nodes, num_features))


def smoothed_probabilities(x, patterns, classes, num_classes, *, p_plus, p_minus):
    """Class probabilities under sparse smoothing of ``x``, given the class of every pattern."""
    set_ = torch.where(x == 1, 1 - p_minus, p_plus)
    weights = torch.where(patterns == 1, set_, 1 - set_).flatten(1).prod(dim=1)
    return torch.zeros(num_classes, dtype=weights.dtype).index_add(0, classes, weights)
