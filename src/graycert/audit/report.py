"""What an audit found."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from graycert.errors import UnsoundSetupError

CANNOT_SEE = (
    "not seen: what was computed from the features before (scores, statistics and propagated features kept as "
    "constants), memory in files and inside libraries, edges chosen by features, "
    "and what a model does only for features or graphs that nobody tried, after very many calls, or by the clock"
)


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

    def require(self) -> None:
        """Raise if it failed.

        Raises:
            UnsoundSetupError: With its slug.
        """
        if not self.passed:
            raise UnsoundSetupError(self.slug, self.detail)


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """Whether Lemma 1 (message interception) holds for a model, and for how many propagation steps.

    Args:
        num_layers: Number k of propagation steps that certificates must use.
        counted_steps: Propagation steps executed by PyTorch Geometric layers in one forward pass.
        farthest_influence: Largest hop distance at which a changed node was seen to change an output.
        checks: All checks, in the order in which they ran.
        assumed: Whether ``num_layers`` is what the user said and messages move by means that cannot be counted.
        reads_num_nodes: Whether outputs change with the number of nodes of the graph, e.g. by `GraphSizeNorm`: local
            while nodes stay, and nothing can be certified against nodes that are added or deleted.
        num_draws: Draws of the leak test.
        seconds: Wall time of the audit.
        about: Hashes of what the audit looked at, by name.
        seal: Binds all of the above to this process; empty if the report is for reading only.
    """

    num_layers: int
    counted_steps: int
    farthest_influence: int
    checks: tuple[AuditCheck, ...]
    assumed: bool = False
    reads_num_nodes: bool = False
    num_draws: int = 0
    seconds: float = 0.0
    about: Mapping[str, str] = field(default_factory=dict, repr=False)
    seal: str = field(default="", repr=False)

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def is_per_node(self) -> bool:
        """Whether no step of propagation was counted, and no node was seen to change another one's output."""
        return self.counted_steps == 0 and self.farthest_influence == 0

    def require(self) -> None:
        """Raise the first failed check.

        Raises:
            UnsoundSetupError: With the slug of that check.
        """
        for check in self.checks:
            check.require()

    def __str__(self) -> str:
        """Return one line per check."""
        lines = [f"{'ok  ' if check.passed else 'FAIL'}  {check.name}: {check.detail}" for check in self.checks]
        verdict = "holds" if self.passed else "does NOT hold"
        steps = f"{self.num_layers} propagation steps{' (assumed: you said so)' if self.assumed else ''}"
        return "\n".join(
            [f"Lemma 1 {verdict} with {steps}, as far as {self.seconds:.1f} s can tell.", *lines, CANNOT_SEE]
        )
