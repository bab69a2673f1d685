"""`--fail-under` and `--junit`: conditions that certificates have to meet, for continuous integration."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graycert.cli.console import error
from graycert.cli.places import check_file, shown, write_file
from graycert.errors import InvalidFileError, InvalidParameterError

if TYPE_CHECKING:
    from graycert.certificates import Certificates
    from graycert.runs.conditions import Condition, Verdict
    from graycert.setup import Setup

FAIL_UNDER = (
    "Condition such as correct@2=0.6, certified@1=0.5, holds@1=0.5, accuracy=0.8, abstained=0.1 (at most) or "
    "correct@2[fraud]=0.3, of all targets or those of a class; may be given several times. Exit status 1 if one fails."
)
JUNIT = "File for the verdicts as JUnit XML, replaced if it exists."


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What the options ask for.

    Args:
        asked: The conditions.
        junit: Where verdicts are written, or None.
    """

    asked: tuple["Condition", ...]
    junit: Path | None

    @classmethod
    def of(cls, texts: Sequence[str] | None, junit: str | None) -> "Conditions":
        """Return the conditions, each checked on its own.

        Raises:
            InvalidParameterError: If one is malformed or given twice, or there is none to write down.
            InvalidFileError: If the file cannot be written.
        """
        from graycert.runs.conditions import Condition

        asked = tuple(Condition.parse(each) for each in texts or ())
        if len(set(asked)) < len(asked):
            raise InvalidParameterError(f"`--fail-under` must say each condition once, got {', '.join(texts or ())}.")
        if junit is None:
            return cls(asked=asked, junit=None)
        if not asked:
            raise InvalidParameterError("`--junit` needs `--fail-under`, got no condition to write down.")
        return cls(asked=asked, junit=check_file(junit, overwrite=True, suffixes=(".xml",), flag="junit"))

    def refuse_within(self, run: Path) -> None:
        """Refuse a file within the run, which would no longer be one that can be replaced.

        Raises:
            InvalidFileError: If it is.
        """
        if self.junit is not None and self.junit.is_relative_to(run):
            raise InvalidFileError(
                f"`--junit` must lie outside the run, got {self.junit} in {run}. Choose another place."
            )

    def check(self, setup: "Setup", data: Any) -> None:
        """Refuse what cannot be judged, before anything is computed."""
        labels = data.get("y")
        num_classes = 0 if labels is None else int(labels.max()) + 1
        for each in self.asked:
            each.check(setup, num_classes=num_classes, class_names=data.get("class_names"))

    def judge(self, certificates: "Certificates", *, suite: str, wanted: bool = True) -> "Judgement":
        """Judge certificates and write the verdicts down.

        Args:
            certificates: What was certified.
            suite: What the file calls it.
            wanted: Whether the certificates can be relied on; else nothing is judged.
        """
        if not wanted or not self.asked:
            return Judgement(verdicts=(), junit=None)
        from graycert.runs.junit import write_junit

        verdicts = [each.judge(certificates) for each in self.asked]
        if self.junit is not None:
            write_file(self.junit, lambda path: write_junit(path, verdicts, suite=suite), flag="junit")
        return Judgement(verdicts=tuple(verdicts), junit=self.junit)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What was found.

    Args:
        verdicts: One per condition.
        junit: The file that they were written to, or None.
    """

    verdicts: tuple["Verdict", ...]
    junit: Path | None

    @property
    def lines(self) -> list[str]:
        """In words; nothing without conditions."""
        written = [] if self.junit is None else [f"  written to {shown(self.junit)}"]
        return ["", "Conditions:", *(f"  {each}" for each in self.verdicts), *written] if self.verdicts else []

    @property
    def record(self) -> dict[str, Any]:
        """As plain values; nothing without conditions."""
        junit = {} if self.junit is None else {"junit": str(self.junit)}
        return {"conditions": [each.record() for each in self.verdicts], **junit} if self.verdicts else {}

    def tell(self) -> int:
        """Say on standard error what is not met; return the exit status."""
        failed = [each.condition.text for each in self.verdicts if not each.passed]
        if failed:
            error(f"{len(failed)} of {len(self.verdicts)} conditions not met: {'; '.join(failed)}.")
        return 1 if failed else 0
