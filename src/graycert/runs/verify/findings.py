"""What a verification found."""

from dataclasses import dataclass

from graycert.errors import VerificationError


@dataclass(frozen=True, kw_only=True)
class VerificationCheck:
    """One comparison.

    Attributes:
        name: What was compared: a column, or a file.
        passed: Whether stored and recomputed values agree.
        detail: What was found; for a difference the first node and both values.
    """

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What a verification found.

    Attributes:
        directory: The run that was checked.
        checks: All comparisons, in the order in which they were made.
        not_redone: What was taken from the files as it is.
    """

    directory: str
    checks: tuple[VerificationCheck, ...]
    not_redone: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every comparison agreed."""
        return all(check.passed for check in self.checks)

    def require(self) -> None:
        """Raise the first difference.

        Raises:
            VerificationError: Naming the quantity, the node and both values.
        """
        for check in self.checks:
            if not check.passed:
                raise VerificationError(f"{self.directory} does not verify: {check.name}: {check.detail}")

    def __str__(self) -> str:
        """Return one line per check, what was not redone, and the verdict."""
        lines = [f"{'ok  ' if check.passed else 'FAIL'}  {check.name}: {check.detail}" for check in self.checks]
        lines += [f"not redone: {sentence}" for sentence in self.not_redone]
        failed = sum(not check.passed for check in self.checks)
        verdict = "All of them agree." if not failed else f"{failed} of them DIFFER: do not rely on this run."
        return "\n".join([*lines, f"{len(self.checks)} comparisons. {verdict}"])
