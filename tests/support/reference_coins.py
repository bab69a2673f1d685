"""The coins of graycert, written again with Python integers."""

import hashlib
from fractions import Fraction

_ALL_ONES = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def splitmix(value: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _ALL_ONES
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _ALL_ONES
    return value ^ (value >> 31)


def is_intercepted(seed: int, purpose: str, kind: str, sample: int, identity: int, probability: float) -> bool:
    """Whether an edge is deleted (kind "edge") or a node ablated (kind "node") in a sample."""
    sample_key = splitmix(splitmix((sample * _GOLDEN + _key(seed, purpose, kind, "sample")) & _ALL_ONES))
    identity_key = splitmix((identity * _GOLDEN + _key(seed, purpose, kind, "id")) & _ALL_ONES)
    uniform = Fraction(splitmix(sample_key ^ identity_key) >> 2, 2**62)
    return uniform < Fraction(probability)


def _key(seed: int, purpose: str, kind: str, role: str) -> int:
    text = f"graycert/1 {seed} {purpose} {kind} {role}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
