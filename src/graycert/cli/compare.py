"""`graycert compare`: what became of each target from one run to another."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graycert.cli.console import Console


def compare(
    run: Path,
    other: Path,
    /,
    *,
    out: str | None = None,
    overwrite: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Compare two runs: which targets got better, worse or another prediction, and which settings differ.

    Targets are matched by name, or by index on the same graph. Both runs are taken as they are; `graycert verify`
    checks them.

    Args:
        run: Run directory.
        other: Another run directory.
        out: File for the comparison per target: .csv or .parquet.
        overwrite: Replace an existing file.
        json: Print one JSON object instead of text.
    """
    from graycert.certificates import Certificates
    from graycert.cli.places import check_file, write_file

    file = None if out is None else check_file(out, overwrite=overwrite, suffixes=(".csv", ".parquet"))
    found = Certificates.load(run).compare(Certificates.load(other))
    if file is not None:
        frame, is_csv = found.to_dataframe(), file.suffix.lower() == ".csv"
        write_file(
            file, lambda path: frame.to_csv(path, index=False) if is_csv else frame.to_parquet(path, index=False)
        )
    files = [] if file is None else [str(file)]
    text = "\n\n".join([str(found), *(f"Written: {each}" for each in files)])
    console = Console(as_json=json)
    console.result(text, {"command": "compare", "run": str(run), "other": str(other), **found.record(), "files": files})
    return 0
