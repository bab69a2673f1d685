"""Whatever damaged or forged files of a run lead to becomes one named error."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graycert.errors import GraycertError, InvalidFileError, VerificationError

AGAIN = "Certify again, or restore the file."


@contextmanager
def one_error(folder: Path, doing: str) -> Iterator[None]:
    """Turn every exception into an `InvalidFileError` that names the run; one that is one, stays.

    Args:
        folder: The run.
        doing: What was being done, as in "while DOING".

    Raises:
        InvalidFileError: In place of whatever was raised.
    """
    try:
        yield
    except (InvalidFileError, VerificationError):
        raise
    except Exception as error:  # values in the files have led here: which exception they raise is an accident
        kind = "" if isinstance(error, GraycertError) else f"{type(error).__name__}: "
        reason = (str(error) or "no message")[:500]
        raise InvalidFileError(
            f"The files in {folder} hold impossible values (while {doing}: {kind}{reason}). {AGAIN}"
        ) from error
