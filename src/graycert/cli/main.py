"""Entry point: parses, runs one command, and turns every failure into a message and an exit status."""

import atexit
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

from cyclopts import App, CycloptsError, Group, UnusedCliTokensError
from pydantic import ValidationError

from graycert import __version__
from graycert._files import is_no_room
from graycert._lazy import delay
from graycert.cli import console
from graycert.cli.commands import every_command
from graycert.cli.config_file import type_problem
from graycert.errors import GraycertError

FAILED, WRONG_INPUT, INTERRUPTED, TERMINATED = 1, 2, 130, 143
_NEW_OBJECTS = 50_000  # between garbage collections

SELDOM_USED = ("torch._dynamo", "torch.distributions", "torch.export", "torch.onnx.ops", "torch_geometric.datasets")
"""What PyTorch and PyTorch Geometric import on loading: compiler, distributions, exporter, data sets; most of it."""

_HELP = (
    "Prove which predictions of a graph neural network cannot change, even if an adversary controls all features of ρ "
    "whole nodes.\n\nFirst steps: `graycert certify` trains a model on the graph that comes with graycert, certifies "
    "its test nodes and writes a report. `graycert COMMAND --help` explains a command and shows examples."
)

_EPILOGUE = (
    "Exit status: 0 done; 1 failed while running, or a difference, or a condition that is not met; 2 wrong input; 3 "
    "the set-up cannot be certified soundly (`graycert explain` says why); 130 or 143 interrupted. --debug, or "
    "GRAYCERT_DEBUG=1, shows where an error comes from."
)


def build_app() -> App:
    """Return the command line application, with all smoothings and threats that there are now."""
    app = App(
        name="graycert",
        help=_HELP,
        help_epilogue=_EPILOGUE,
        version=__version__,
        help_format="plaintext",
        suppress_keyboard_interrupt=False,
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
    )
    groups: dict[str, Group] = {}
    for command in every_command():
        group = groups.setdefault(command.heading, Group(command.heading, sort_key=len(groups)))
        examples = "\n".join(("Examples:", *(f"  {line}" for line in command.examples)))
        app.command(command.function, name=command.name, group=group, help_epilogue=examples)
    app.register_install_completion_command()
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: Arguments after the program's name; default those of the process.

    Returns:
        The exit status: 0 done, 1 failed, 2 wrong input, 3 unsound set-up, 130 interrupted by Ctrl-C, 143 by SIGTERM.
    """
    # Threads of an operation wait asleep, not spinning: on a busy machine spinning made draws six times and training
    # epochs forty times slower, on an idle one it gains little. Only effective before torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    delay(*SELDOM_USED)
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments or os.environ.get("GRAYCERT_DEBUG", "") not in ("", "0")
    try:
        with _little_garbage_collection(), _termination_as_interruption():
            status = build_app()([argument for argument in arguments if argument != "--debug"])
        sys.stdout.flush()
    except KeyboardInterrupt as interruption:
        kept = getattr(interruption, "__notes__", [])
        console.error(f"interrupted. {kept[-1]}" if kept else "interrupted; nothing half-written was left behind.")
        return TERMINATED if isinstance(interruption, _Terminated) else INTERRUPTED
    except BrokenPipeError:  # the reader of our output has closed it, e.g. `graycert datasets | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as failure:  # the outermost place: every failure becomes a message
        if debug:
            traceback.print_exc()
        console.error(_message(failure))
        return _status(failure)
    return status if isinstance(status, int) else 0


def run() -> NoReturn:
    """Be the whole process: interrupted, it is gone at once, whatever threads and pools still have to clear up.

    Else they do clear up; then, too, it is gone, rather than taking PyTorch apart for a tenth of a second.
    """
    left = [FAILED]
    atexit.register(lambda: _be_gone(left[0]))  # registered first, called last
    left[0] = main()
    if left[0] in (INTERRUPTED, TERMINATED):
        _be_gone(left[0])
    sys.exit(left[0])


def _be_gone(status: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which is handled as Ctrl-C is."""


@contextmanager
def _termination_as_interruption() -> Iterator[None]:
    """Let SIGTERM interrupt as Ctrl-C does, once: what follows must not disturb the clearing up."""

    def interrupt(number: int, frame: object) -> None:
        del frame
        signal.signal(number, signal.SIG_IGN)
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():  # where no handler can be set
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _little_garbage_collection() -> Iterator[None]:
    """Spend no seconds on searching the objects of torch, which stay anyway: while it is imported, and at exit."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_NEW_OBJECTS, *thresholds[1:])
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _status(failure: Exception) -> int:
    if isinstance(failure, GraycertError):
        return failure.exit_status
    return WRONG_INPUT if isinstance(failure, CycloptsError) else FAILED


def _message(failure: Exception) -> str:
    if isinstance(failure, GraycertError):
        return " ".join([str(failure), *getattr(failure, "__notes__", [])])
    if is_no_room(failure):
        return f"no room to write ({failure}). What was complete before is kept; make room and run the command again."
    if isinstance(failure, CycloptsError):
        cause = failure.__cause__ or failure.__context__
        if isinstance(cause, ValidationError):
            return type_problem(cause)
        if isinstance(failure, UnusedCliTokensError):
            command = " ".join(("graycert", *(failure.command_chain or ())))
            unused = ", ".join(failure.unused_tokens or ())
            return f"`{command}` does not take {unused}. Leave it out; `{command} --help` says what it takes."
        return f"{failure} See `graycert --help`."
    if isinstance(failure, MemoryError):
        return "out of memory. Lower `--batch-size`, or certify fewer targets."
    return f"{type(failure).__name__}: {str(failure) or 'no message'} (run again with --debug to see where)."
