r"""Counter-based randomness: every coin is a hash of (seed, stream, sample, id).

Whether edge e survives, or node w is ablated, in sample s never depends on batch size, thread count, device, shard
or the order in which samples are drawn; a run can be extended, resumed or drawn again by another engine.

A coin with probability p shows "intercepted" iff the top 62 bits of its hash, read as an integer, are below
$\lceil p\,2^{62} \rceil$, computed exactly. So the probability of interception is never below the p that the bounds
use (at most $2^{-62}$ above it), and exactly 0 or 1 for p in {0, 1}. Certificates treat the hash values as
independent uniform numbers, as every seeded generator is treated.
"""

import hashlib
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graycert._types import IntArray
from graycert._validation import check_integer

if TYPE_CHECKING:  # arrays of coins alone need torch
    from torch import Tensor

Integers = TypeVar("Integers", "Tensor", IntArray)

_UNIFORM_BITS = 62  # thresholds up to 2**62 still fit a signed 64-bit integer
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)  # odd 64-bit constant of SplitMix64, as a signed integer
_MULTIPLIERS = (0xBF58476D1CE4E5B9 - (1 << 64), 0x94D049BB133111EB - (1 << 64))


class Purpose(Enum):
    """What a stream is for. Selection and estimation never share a coin."""

    SELECTION = "selection"
    ESTIMATION = "estimation"
    TRAINING = "training"
    VALIDATION = "validation"
    AUDIT = "audit"


def mix(values: Integers) -> Integers:
    """Scramble int64 values bijectively (Steele et al. 2014, SplitMix64's finaliser); arithmetic wraps at 64 bits."""
    for shift, multiplier in ((30, _MULTIPLIERS[0]), (27, _MULTIPLIERS[1])):
        values = (values ^ _shift_right(values, shift)) * multiplier
    return values ^ _shift_right(values, 31)


def interception_threshold(probability: float) -> int:
    """Return ⌈p·2⁶²⌉, exactly."""
    scaled = Fraction(probability) * (1 << _UNIFORM_BITS)
    return -(-scaled.numerator // scaled.denominator)


def interception_thresholds(probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return ⌈p·2⁶²⌉ of float64 numbers, exactly: a power of two changes the exponent alone, and ⌈·⌉ is a float64."""
    return np.ceil(probabilities * 2.0**_UNIFORM_BITS).astype(np.int64)


@dataclass(frozen=True)
class CoinStream:
    """All coins of one seed and purpose.

    Args:
        seed: Non-negative integer.
        purpose: Which stream.
    """

    seed: int
    purpose: Purpose

    def __post_init__(self) -> None:
        """Check the seed."""
        check_integer("seed", self.seed, at_least=0)

    def edge_coins(self, samples: "Tensor", edge_ids: "Tensor", *, p_delete: "float | Tensor") -> "Tensor":
        """Return which edges are deleted (φ1): bool, shape (num_samples, num_edges).

        ``p_delete`` is one number, or float64 with one entry per edge.
        """
        return self._coins("edge", samples, edge_ids, p_delete)

    def node_coins(self, samples: "Tensor", node_ids: "Tensor", *, p_ablate: "float | Tensor") -> "Tensor":
        """Return which nodes are ablated (φ2): bool, shape (num_samples, num_nodes).

        ``p_ablate`` is one number, or float64 with one entry per node.
        """
        return self._coins("node", samples, node_ids, p_ablate)

    def _coins(self, kind: str, samples: "Tensor", ids: "Tensor", probability: "float | Tensor") -> "Tensor":
        import torch

        sample_key = mix(mix(samples * _GOLDEN + self.key(kind, "sample")))
        id_key = mix(ids * _GOLDEN + self.key(kind, "id"))
        hashed = mix(sample_key.unsqueeze(1) ^ id_key.unsqueeze(0))
        threshold: int | Tensor
        if isinstance(probability, torch.Tensor):
            threshold = torch.from_numpy(interception_thresholds(probability.cpu().numpy())).to(ids.device)
        else:
            threshold = interception_threshold(probability)
        return _shift_right(hashed, 64 - _UNIFORM_BITS) < threshold

    def key(self, kind: str, role: str) -> int:
        """Return the 64-bit key of a kind of coin ("edge", "node") and a role ("sample", "id")."""
        text = f"graycert/1 {self.seed} {self.purpose.value} {kind} {role}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little", signed=True)


def edge_ids(edge_index: Integers, *, num_nodes: int) -> Any:
    """Return an identity per edge that depends on its end points alone: source · num_nodes + target."""
    return edge_index[0] * num_nodes + edge_index[1]


def _shift_right(values: Integers, bits: int) -> Integers:
    """Shift int64 values right as if they were unsigned."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)
