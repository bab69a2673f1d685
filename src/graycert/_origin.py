"""What votes and bounds belong to: they certify only together with others of the same origin."""

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Self

from graycert._parameters import Parameters
from graycert._types import IntArray


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The set-up of votes, or of bounds on Δ.

    Attributes:
        graph: Fingerprint of the edges.
        targets: Fingerprint of the targets, in their order.
        smoothing: Fingerprint of the smoothing distribution.
        num_layers: Number of message-passing steps k; None where nothing is assumed of the model.
    """

    graph: str
    targets: str
    smoothing: str
    num_layers: int | None

    @classmethod
    def of(cls, *, graph: str, targets: IntArray, smoothing: Parameters, num_layers: int | None) -> Self:
        """Return the origin; an array of the smoothing must be in the order of ``CanonicalGraph``."""
        values, arrays = smoothing.stored()
        text = repr((type(smoothing).name, sorted(values.items())))
        parts = [text.encode(), *(arrays[name].tobytes() for name in sorted(arrays))]
        return cls(graph=graph, targets=_digest(targets.tobytes()), smoothing=_digest(*parts), num_layers=num_layers)

    def differences(self, other: "Origin") -> list[str]:
        """Return in what two origins differ, as words."""
        names = {field.name: field.name for field in dataclasses.fields(self)} | {"num_layers": "number of layers"}
        return [
            word if name != "num_layers" else f"{word} ({self.num_layers} and {other.num_layers})"
            for name, word in names.items()
            if getattr(self, name) != getattr(other, name)
        ]


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()[:16]
