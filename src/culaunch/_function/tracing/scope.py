"""The globals and closures that a body reads, in a copy that is compared afterwards."""

from __future__ import annotations

import builtins
import ctypes
import dis
import functools
import sys
import types
from typing import Any

from culaunch._function.arrays.identity import asking
from culaunch._function.arrays.structures import shadow
from culaunch._function.tracing.replaced import BUILTINS, replacement

# One read: the dict, function or cell, then the name of the entry or attribute, then the value.
Read = tuple[Any, "str | None", Any]
_EMPTY = object()


class Scope:
    """The copies of a body and of the functions that it calls, and the names that they read.

    Attributes
    ----------
    reads : list of (dict, function or cell, name or None, value)
    only_copies : bool
        Whether a copy uses ``is`` or ``contextlib.suppress``, which only copies replace.
    """

    def __init__(self, body: types.FunctionType) -> None:
        self.reads: list[Read] = []
        self.only_copies = False
        self._body = body
        self._root = body.__module__
        self._copies: dict[int, types.FunctionType] = {}
        self._globals: dict[int, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {}
        self._cells: list[tuple[types.CellType, types.CellType, Any, str, str]] = []
        self.body = self._copied(body)

    def changed(self) -> str | None:
        """Return a description of the global or closure variable that a run changed, or None."""
        for copy, seen, real in self._globals.values():
            for name, value in copy.items():
                # Python's record of shown warnings is not something that a body computes with.
                if seen.get(name, _EMPTY) is not value and name != "__warningregistry__":
                    return f"the global {name!r}"
            for name in seen:
                if name not in copy:
                    return f"the global {name!r}"
            for container, read, value in self.reads:
                if container is real and real.get(str(read), _EMPTY) is not value:
                    return f"the global {read!r}"
        for cell, copied, seen_, name, owner in self._cells:
            if _contents(copied) is not seen_:
                return f"the variable {name!r} that {owner} closes over"
            first = next((one for one in self.reads if one[0] is cell), None)
            if first is not None and _contents(cell) is not first[2]:
                return f"the variable {name!r} that {owner} closes over"
        return None

    def _copied(self, function: types.FunctionType) -> types.FunctionType:
        known = self._copies.get(id(function))
        if known is not None:
            return known
        code = function.__code__
        closure = function.__closure__ or ()
        cells = tuple(types.CellType() for _ in closure)
        scope = self._globals_of(function)
        asked = asking(code)
        self.only_copies |= asked is not code or "suppress" in code.co_names
        copy = types.FunctionType(asked, scope, function.__name__, function.__defaults__, cells)
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
        copy.__dict__.update(function.__dict__)
        self._copies[id(function)] = copy
        # Other code may replace these parts of a helper. The body itself was read when it was
        # decorated.
        if function is not self._body:
            for part in ("__code__", "__defaults__", "__kwdefaults__"):
                self.reads.append((function, part, getattr(function, part)))
        for cell, new, name in zip(closure, cells, code.co_freevars, strict=True):
            value = _contents(cell)
            if value is _EMPTY:
                continue
            new.cell_contents = seen = self._replaced(value)
            self.reads.append((cell, None, value))
            self._cells.append((cell, new, seen, name, function.__qualname__))
        return copy

    def _globals_of(self, function: types.FunctionType) -> dict[str, Any]:
        real = function.__globals__
        if id(real) not in self._globals:
            copy = {"__builtins__": BUILTINS, "__name__": real.get("__name__", "")}
            self._globals[id(real)] = (copy, dict(copy), real)
        copy, seen, _ = self._globals[id(real)]
        names, attributes = names_of(function.__code__)
        for name in names:
            if name in seen:
                continue
            value = real.get(name, _EMPTY)
            if value is _EMPTY:
                continue
            self.reads.append((real, name, value))
            copy[name] = seen[name] = None  # a function may refer to itself
            copy[name] = seen[name] = self._replaced(value)
        # ``module.name`` reads the module's dict when the body runs. Record the read, to detect a
        # changed setting.
        for name, attribute in attributes:
            module = real.get(name)
            if type(module) is types.ModuleType and _is_watched(module):
                inside = vars(module)
                if attribute in inside:
                    self.reads.append((inside, attribute, inside[attribute]))
        return copy

    def _replaced(self, value: Any) -> Any:
        found = replacement(value)
        if found is not None:
            return found
        if type(value) is types.FunctionType and self._is_ours(value):
            return self._copied(value)
        if isinstance(value, type) and issubclass(value, ctypes.Structure):
            return shadow(value)
        return value

    def _is_ours(self, function: types.FunctionType) -> bool:
        """Tell whether a function belongs to the body's package; others stay unchanged."""
        module = function.__module__ or ""
        return module == self._root or module.partition(".")[0] == self._root.partition(".")[0]


def plainly(body: types.FunctionType) -> types.FunctionType:
    """Return what runs without recording: the body itself, unless it needs a copy."""
    scope = Scope(body)
    return scope.body if scope.only_copies else body


@functools.lru_cache(maxsize=1024)
def names_of(code: types.CodeType) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Return the globals that code and its inner functions read, and the attributes that they read.

    The attributes are pairs of a global and an attribute: ``module.name``.
    """
    names: dict[str, None] = {}
    attributes: dict[tuple[str, str], None] = {}
    last = ""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            last = str(instruction.argval)
            names[last] = None
            continue
        if last and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes[last, str(instruction.argval)] = None
        # Inline caches (from Python 3.11 on) lie between the two instructions.
        if instruction.opname != "CACHE":
            last = ""
    # Functions and comprehensions in the body.
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner, pairs = names_of(constant)
            names |= dict.fromkeys(inner)
            attributes |= dict.fromkeys(pairs)
    return tuple(names), tuple(attributes)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def _is_watched(module: types.ModuleType) -> bool:
    root = module.__name__.partition(".")[0]
    return root not in _SETTLED


# Their functions do not change, and fill in their names on demand.
_SETTLED = frozenset(("culaunch", *sys.stdlib_module_names, *dir(builtins))) - {"__main__"}


def value_of_read(container: Any, name: str | None) -> Any:
    """Return the value that a read gives now; _MISSING if there is none."""
    if isinstance(container, dict):
        return container.get(name, _MISSING)
    if name is not None:
        return getattr(container, name)
    try:
        return container.cell_contents
    except ValueError:
        return _MISSING


_MISSING = object()
