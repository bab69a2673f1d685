"""How all kernels are compiled: cached on disk, without the GIL, products and sums fused, nothing else relaxed.

Numba notices a change of the file that a kernel is written in, but not of the kernels it calls. So the cache lies in
a folder named after the contents of all files with kernels: a changed one is never run in a mixture with old ones.
"""

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
from numba.core import config

Function = TypeVar("Function", bound=Callable[..., object])

_PACKAGE = Path(__file__).parent


def kernel(function: Function) -> Function:
    """Compile a function on its first call, or load it from the disk cache."""
    return _compiled(function)


def bare(function: Function) -> Function:
    """Compile a function that allocates no array, without counting references to arrays.

    Counting takes longer than the arithmetic on a short row, and more so where threads share the array.
    """
    return _compiled(function, _nrt=False)


def inlined(function: Function) -> Function:
    """Compile a function into its callers."""
    return _compiled(function, inline="always")


@cache
def with_constants(function: Function, **constants: Any) -> Function:
    """Return a kernel as if constants of its module had other values, in all kernels that it calls too.

    Args:
        function: A kernel.
        constants: Values by name, numbers or kernels; a kernel that reads none of them is left as it is.
    """
    original = cast("Any", function).py_func
    scope, changed = dict(original.__globals__), False
    for name in original.__code__.co_names:
        value = scope.get(name)
        if name in constants:
            changed, scope[name] = True, constants[name]
        elif hasattr(value, "py_func"):
            scope[name] = with_constants(value, **constants)
            changed |= scope[name] is not value
    if not changed:
        return function
    made = FunctionType(original.__code__, scope, original.__name__, original.__defaults__, original.__closure__)
    told = (f"{name}_{_name_of(value)}" for name, value in constants.items())
    made.__qualname__ = "_".join([original.__qualname__, *told])
    made.__module__ = original.__module__
    options = cast("Any", function).targetoptions
    return cast("Function", _compiled(made, **{name: options[name] for name in ("inline", "_nrt") if name in options}))


def _name_of(value: Any) -> str:
    function = getattr(value, "py_func", None)
    return str(value) if function is None else f"{function.__module__}_{function.__qualname__}".replace(".", "_")


def is_cached(*kernels: Callable[..., object]) -> bool:
    """Return whether an earlier process has left these kernels on disk, or this one has compiled them."""
    return all(_is_cached(cast("Any", each)) for each in kernels)


@contextmanager
def announced(say: Callable[[str], None] | None, what: str, *kernels: Callable[..., object]) -> Iterator[None]:
    """Tell a person that the first run on a machine compiles, and how long it took.

    Args:
        say: What tells; None tells nothing.
        what: What is compiled, as in "Compiling WHAT ...".
        kernels: Told only if one of these is not cached yet.
    """
    if say is None or is_cached(*kernels):
        yield
        return
    say(f"Compiling {what} ...")
    started = time.perf_counter()
    yield
    later = "later runs load them from disk" if CACHE_FOLDER else "set NUMBA_CACHE_DIR to a folder that keeps them"
    say(f"... compiled in {time.perf_counter() - started:.0f} s; {later}.")


def _is_cached(dispatcher: Any) -> bool:
    if dispatcher.signatures:
        return True
    name = dispatcher.py_func.__qualname__
    module = Path(dispatcher.py_func.__code__.co_filename).stem
    return CACHE_FOLDER is not None and any(CACHE_FOLDER.glob(f"**/{module}.{name}-*.nbi"))


def _compiled(function: Function, **options: Any) -> Function:
    with _cache_folder(CACHE_FOLDER):
        made = numba.njit(
            nogil=True, error_model="numpy", fastmath={"contract", "nsz"}, cache=CACHE_FOLDER is not None, **options
        )(function)
    return cast("Function", made)


@contextmanager
def _cache_folder(folder: Path | None) -> Iterator[None]:
    """Let Numba, which looks once per function, choose ``folder``; other people's kernels are left alone."""
    before = config.CACHE_DIR
    config.CACHE_DIR = "" if folder is None else str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _find_folder() -> Path | None:
    """Return a folder that can be written to: below ``NUMBA_CACHE_DIR`` or the user's cache; None if there is none."""
    digest = hashlib.sha256()
    for file in sorted(_PACKAGE.rglob("*.py")):
        content = file.read_bytes()
        if b"graycert._compilation" in content or file == Path(__file__):
            digest.update(content)
    base = Path(config.CACHE_DIR or _user_cache())
    folder = base / "graycert" / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


CACHE_FOLDER = _find_folder()
"""Where compiled kernels are kept; None if no folder can be written to."""
