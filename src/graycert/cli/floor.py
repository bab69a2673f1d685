"""The model of single nodes that a run is compared with: distilled now, or from a file."""

from pathlib import Path
from typing import Any

from graycert.cli import graphs
from graycert.cli.configs import CertifyConfig
from graycert.cli.console import Console
from graycert.cli.models import WEIGHTS_SUFFIX
from graycert.cli.places import whole
from graycert.errors import InvalidParameterError

DISTILL = "distill"


def check_option(config: CertifyConfig) -> None:
    """Refuse early what can be no floor.

    Raises:
        InvalidParameterError: If it cannot.
    """
    if config.floor not in (None, DISTILL) and not str(config.floor).endswith(WEIGHTS_SUFFIX):
        raise InvalidParameterError(
            f"`--floor` must be {DISTILL} or FILE{WEIGHTS_SUFFIX}, got {config.floor!r}. Write --floor {DISTILL}."
        )


def option_of(config: CertifyConfig) -> str | None:
    """Return the option as a run stores it, with a whole path."""
    return config.floor if config.floor in (None, DISTILL) else str(whole(str(config.floor)))


def choose(config: CertifyConfig, data: Any, split: Any, console: Console) -> Any:
    """Return the floor; what is distilled learns from a teacher of its own on the training nodes of the run.

    Args:
        config: The options.
        data: The graph.
        split: The split of the run, or None where none was needed so far.
        console: Where to say what takes a while.
    """
    if config.floor is None:
        return None
    if config.floor != DISTILL:
        from graycert.models import load_model

        return load_model(config.floor)
    from graycert.training import distill

    console.say("distilling a model of single nodes")
    return distill(
        graphs.make_split(config, data) if split is None else split, seed=config.seed, progress=console.progress
    )


def keep(floor: Any, folder: Path) -> None:
    """Keep the floor, if there is one, with the run."""
    if floor is None:
        return
    from graycert.models import save_model
    from graycert.runs.store import FLOOR_FILES

    save_model(floor, folder / FLOOR_FILES[0])
