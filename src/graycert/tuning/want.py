"""What a setting is wanted to reach: an accuracy, or a radius for most nodes of a class."""

import re
from dataclasses import dataclass

from graycert.errors import InvalidParameterError

LOSS = 0.05
"""What accuracy may be given up for certificates where nothing is said: what the paper shows, too."""

_FORM = re.compile(
    r"(?:(?P<measure>balanced accuracy|accuracy)\s*>?=\s*(?P<share>[0-9.]+)"
    r"|radius\s*>?=\s*(?P<radius>[0-9]+)(?:\s+(?:of|for)\s+(?P<of>.+))?)"
)


@dataclass(frozen=True, kw_only=True)
class Want:
    """What is wanted of a setting.

    Args:
        measure: "accuracy" or "balanced accuracy", which is to be at least ``share``; "radius", which is to be at least
            ``radius`` for more than half of a class; or "" for the most certificates at little loss of accuracy.
        share: In [0, 1].
        radius: At least 1.
        of: Name of the class; empty for all nodes.
    """

    measure: str = ""
    share: float = 0.0
    radius: int = 1
    of: str = ""

    @classmethod
    def parse(cls, text: str | None) -> "Want":
        """Return what a text stands for.

        Raises:
            InvalidParameterError: If it stands for nothing.

        Example:
            >>> Want.parse("accuracy=0.9")
            Want(measure='accuracy', share=0.9, radius=1, of='')
            >>> Want.parse("radius>=2 of fraud")
            Want(measure='radius', share=0.0, radius=2, of='fraud')
        """
        if text is None:
            return cls()
        found = _FORM.fullmatch(text.strip())
        try:
            if found and found["measure"] and 0.0 <= float(found["share"]) <= 1.0:
                return cls(measure=found["measure"], share=float(found["share"]))
        except ValueError:
            found = None
        if found and found["radius"] and int(found["radius"]) >= 1:
            return cls(measure="radius", radius=int(found["radius"]), of=(found["of"] or "").strip())
        raise InvalidParameterError(
            f"`want` must be an accuracy in [0, 1] or a radius >= 1, got {text!r}. Write 'accuracy=0.9', "
            "'balanced accuracy=0.9', 'radius=1' or 'radius=1 of fraud', where fraud is the name of a class."
        )

    def __str__(self) -> str:
        if self.measure == "radius":
            whom = f"most of class {self.of}" if self.of else "most nodes"
            return f"certified and correct at radius {self.radius} for {whom}"
        if self.measure:
            return f"{self.measure} of at least {self.share:g}"
        return f"certified and correct at radius 1, at most {LOSS:g} below the best accuracy"
