"""Names and modules that are loaded on first use, so that a command loads no more than it needs (PEP 562, 451)."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any


def attach(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package whose names live in other modules.

    Args:
        package: ``__name__`` of the package.
        home: Module of each name.
    """
    names = sorted(home)

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: names, names


def delay(*names: str) -> None:
    """Let modules be loaded when something of them is first used, rather than when they are first imported.

    For what other libraries import on loading and seldom use. It holds for the whole process: for programs, not for
    libraries. A module that is loaded already stays as it is.

    Args:
        names: Full names of modules.
    """
    if _Delays.instance is None:
        _Delays.instance = _Delays()
        sys.meta_path.insert(0, _Delays.instance)
    _Delays.instance.names |= set(names)


def is_loaded(name: str) -> bool:
    """Return whether a module has been executed, not only announced."""
    return name in sys.modules and not isinstance(sys.modules[name], _Delayed)


class _Delays(MetaPathFinder):
    """Finds modules as usual and gives those that are to wait another loader."""

    instance: "_Delays | None" = None

    def __init__(self) -> None:
        self.names: set[str] = set()

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Return the specification of a module that is to wait, or that came with a package that waited; else none."""
        package = sys.modules.get(fullname.rpartition(".")[0])
        if isinstance(package, _Delayed):
            _wake(package)
            known = sys.modules.get(fullname)
            if known is not None:  # Python would take its specification, and execute it again
                known.__spec__ = spec_from_loader(fullname, _Known(known))
                return known.__spec__
        spec = PathFinder.find_spec(fullname, path, target) if fullname in self.names and target is None else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Later(spec.loader)
        return spec


class _Later(Loader):
    """Leaves a module empty until something of it is asked for."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def exec_module(self, module: ModuleType) -> None:
        """Let the module wait."""
        module.__class__ = _Delayed


class _Known(Loader):
    """Finds a module that is executed already."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return it."""
        del spec
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """Leave it as it was."""
        module.__spec__ = self.spec


class _Delayed(ModuleType):
    """A module that waits. Names of Python itself do not wake it: `inspect` asks every module for some."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        _wake(self)
        return getattr(self, name)


def _wake(module: ModuleType) -> None:
    spec: Any = module.__spec__
    spec.loader = module.__loader__ = spec.loader.loader
    module.__class__ = ModuleType
    spec.loader.exec_module(module)
