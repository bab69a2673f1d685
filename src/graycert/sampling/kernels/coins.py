"""The coins of `graycert.sampling.streams`, one at a time, for compiled code.

Signed 64-bit arithmetic that wraps around, bit for bit the same as the tensor version.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from graycert._compilation import inlined, kernel
from graycert._types import FloatArray, IntArray
from graycert.sampling.placed_smoothing import ProbabilityTable, probability_of
from graycert.sampling.streams import CoinStream, interception_threshold, interception_thresholds

_GOLDEN = np.int64(0x9E3779B97F4A7C15 - (1 << 64))
_FIRST = np.int64(0xBF58476D1CE4E5B9 - (1 << 64))
_SECOND = np.int64(0x94D049BB133111EB - (1 << 64))
_LOW_34, _LOW_37, _LOW_33 = np.int64((1 << 34) - 1), np.int64((1 << 37) - 1), np.int64((1 << 33) - 1)
_LOW_62 = np.int64((1 << 62) - 1)


@inlined
def mix(value: Any) -> Any:
    """Scramble a 64-bit integer bijectively (SplitMix64's finaliser)."""
    value = (value ^ ((value >> 30) & _LOW_34)) * _FIRST
    value = (value ^ ((value >> 27) & _LOW_37)) * _SECOND
    return value ^ ((value >> 31) & _LOW_33)


@inlined
def sample_key(sample: Any, key: Any) -> Any:
    """Return what a sample's number contributes to its coins."""
    return mix(mix(sample * _GOLDEN + key))


@inlined
def is_intercepted(key_of_sample: Any, key_of_id: Any, threshold: int) -> Any:
    """Return whether the coin shows "intercepted"."""
    return ((mix(key_of_sample ^ key_of_id) >> 2) & _LOW_62) < threshold


@inlined
def id_key(identity: Any, key: Any) -> Any:
    """Return what an identity contributes to its coins."""
    return mix(identity * _GOLDEN + key)


@kernel
def id_keys(ids: IntArray, key: int) -> IntArray:
    """Return what each edge's or node's identity contributes to its coins, int64, same shape as ``ids``."""
    keys = np.empty(ids.size, dtype=np.int64)
    for position in range(ids.size):
        keys[position] = id_key(ids[position], key)
    return keys


def thresholds_of(
    probability: float | FloatArray | ProbabilityTable, number: int, ids: Callable[[], IntArray]
) -> IntArray:
    """Return the threshold of each of a ``number`` of coins: one for all, not many, where all are thrown alike.

    Args:
        probability: See `probability_of`.
        number: Of coins.
        ids: Their identities, asked for only where they differ.
    """
    if isinstance(probability, float):
        return np.broadcast_to(np.int64(interception_threshold(probability)), (number,))
    return interception_thresholds(np.asarray(probability_of(probability, ids())))


class CoinKeys(NamedTuple):
    """All that compiled code needs to throw the coins of one kind.

    Args:
        sample_key: Key of the sample numbers.
        id_keys: One key per edge or node, int64.
        thresholds: A coin shows "intercepted" if its top 62 bits are below that of its edge or node, int64.
    """

    sample_key: int
    id_keys: IntArray
    thresholds: IntArray

    @classmethod
    def of(
        cls, stream: CoinStream, kind: str, ids: IntArray, probability: float | FloatArray | ProbabilityTable
    ) -> "CoinKeys":
        """Return the keys of ``kind`` ("edge" or "node") for the given identities; see `probability_of`."""
        keys = id_keys(ids, stream.key(kind, "id"))
        return cls(stream.key(kind, "sample"), keys, thresholds_of(probability, ids.size, lambda: ids))

    def within(self, some: slice) -> "CoinKeys":
        """Return the keys of some of the identities."""
        return CoinKeys(self.sample_key, self.id_keys[some], self.thresholds[some])


class EdgeCoins(NamedTuple):
    """All that compiled code needs to throw coins of edges whose end points lie there anyway; no number per edge.

    Args:
        sample_key: Key of the sample numbers.
        key: Key of the identities.
        thresholds: As in `CoinKeys`, for every edge into the nodes of a field; one number, not many, if all are equal.
    """

    sample_key: int
    key: int
    thresholds: IntArray

    def within(self, some: slice) -> "EdgeCoins":
        """Return what throws the coins of some of the edges."""
        return self._replace(thresholds=self.thresholds[some])
