"""What an audit found."""

from dataclasses import dataclass

from graycert.errors import UnsoundSetupError


@dataclass(frozen=True, kw_only=True)
class AuditCheck:
    """One check of the audit.

    Args:
        name: What was checked.
        passed: Whether Lemma 1 survives the check.
        detail: What was seen, and the next step if it failed.
        slug: Entry of `docs/messages.md` if it failed, else empty.
    """

    name: str
    passed: bool
    detail: str
    slug: str = ""


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """Whether Lemma 1 (message interception) holds for a model, and for how many propagation steps.

    Args:
        num_layers: Number k of propagation steps that certificates must use.
        counted_steps: Propagation steps executed by PyTorch Geometric layers in one forward pass.
        farthest_influence: Largest hop distance at which a changed node was seen to change an output.
        checks: All checks, in the order in which they ran.
    """

    num_layers: int
    counted_steps: int
    farthest_influence: int
    checks: tuple[AuditCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def require(self) -> None:
        """Raise the first failed check.

        Raises:
            UnsoundSetupError: With the slug of that check.
        """
        for check in self.checks:
            if not check.passed:
                raise UnsoundSetupError(check.slug, check.detail)

    def __str__(self) -> str:
        """Return one line per check."""
        lines = [f"{'ok  ' if check.passed else 'FAIL'}  {check.name}: {check.detail}" for check in self.checks]
        verdict = "holds" if self.passed else "does NOT hold"
        return "\n".join([f"Lemma 1 {verdict} with {self.num_layers} propagation steps.", *lines])
