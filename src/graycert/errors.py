"""The errors that graycert raises.

Every message names the argument, the rule, the value that broke it, and the next step.
"""


class GraycertError(Exception):
    """Base of all errors raised on purpose; ``exit_status`` is what the command line returns."""

    exit_status = 1


class InvalidParameterError(GraycertError, ValueError):
    """An argument is outside its domain, or arguments do not fit each other."""

    exit_status = 2


class InvalidFileError(GraycertError):
    """A file or directory is missing, truncated, corrupted, foreign, or cannot be written."""

    exit_status = 2


class WriteError(GraycertError):
    """Something could not be written although it may be: the disk is full, a quota is used up, a device fails."""

    exit_status = 1


class UnsoundSetupError(GraycertError):
    """A certificate for this set-up would not hold, so none is issued.

    Attributes:
        slug: Short name of the reason, for `graycert explain`; `docs/messages.md` has one entry per slug.
    """

    exit_status = 3

    def __init__(self, slug: str, message: str) -> None:
        super().__init__(f"{message} [{slug}: `graycert explain {slug}`]")
        self.slug = slug


class VerificationError(GraycertError):
    """A stored certificate differs from what its votes and graph give."""

    exit_status = 1
