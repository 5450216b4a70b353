"""A function of a library: its programs are decoded when a call first needs them."""

from __future__ import annotations

import functools
import struct
import threading
from collections import namedtuple
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from culaunch._base.values import spell
from culaunch._core import Function as CoreFunction
from culaunch._core import Program
from culaunch._errors import ImageError
from culaunch._function.backward import Backward
from culaunch._function.doors import jax_door
from culaunch._function.explain import signature_text
from culaunch._function.failures import raise_failure
from culaunch._function.kinds import arrays_of, described
from culaunch._function.kinds import key_of as exact_key
from culaunch._function.recorded import RecordedFunction
from culaunch._function.results import dict_maker
from culaunch._launch.array import array_info
from culaunch._launch.recording import RECORDERS
from culaunch._ship.abstract import kind_of_shapes, run_abstract
from culaunch._ship.call import CallInputs
from culaunch._ship.declared import LoadedDeclaration, signature_of
from culaunch._ship.entry import SavedEntry, SavedKind, check_texts
from culaunch._ship.kinds import is_read_only, key_of
from culaunch._ship.numbers import with_ints
from culaunch._ship.plan import Plan, UnknownBranchError
from culaunch._ship.results import effects_of, raises
from culaunch._ship.values import read_value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from inspect import Signature

    from culaunch._core import FunctionMethods
    from culaunch._function.kinds import Kind
    from culaunch._launch import Kernel


class Source(Protocol):
    """The library of a function, as the function sees it."""

    source: str

    def read(self, member: str) -> bytes:
        """Return a member."""

    def kernel(self, member: str, name: str) -> Kernel:
        """Return a kernel of an image."""

    def __getitem__(self, name: str) -> LoadedFunction: ...


class LoadedFunction(RecordedFunction):
    """A function of a library: ``lib.scale``.

    It takes the kinds of arguments that were saved, on the paths that were saved.

    Attributes
    ----------
    declaration : LoadedDeclaration
        Its parameters.
    mutates : tuple[str, ...]
        The parameters whose arrays it writes.
    may_mutate : tuple[str, ...]
        The parameters of which that was not known.
    """

    __name__: str
    __qualname__: str
    __signature__: Signature
    declaration: LoadedDeclaration
    mutates: tuple[str, ...]
    may_mutate: tuple[str, ...]
    _library: Source
    _entry: SavedEntry
    _saved: dict[Any, SavedKind]
    _decoded: dict[Any, tuple[Program, Plan]]
    _lock: threading.RLock

    def __new__(cls, library: Source, entry: SavedEntry) -> LoadedFunction:
        """Make one; :func:`load_library` is the way to do so."""
        declaration = LoadedDeclaration(entry)
        defaults = tuple(
            declaration.defaults.get(name, CoreFunction.missing) for name in declaration.names
        )
        self = super().__new__(cls, entry.name, declaration.parameters, defaults)
        self.declaration = declaration
        self.mutates = entry.mutates
        self.may_mutate = entry.may_mutate
        self._declared = None if entry.may_mutate else entry.mutates
        self._doors = []
        self._library = library
        self._entry = entry
        self._saved = {key_of(one.kind): one for one in entry.kinds}
        self._decoded = {}
        self._lock = threading.RLock()
        self.__name__ = self.__qualname__ = entry.name
        self.__doc__ = entry.doc
        self.__module__ = f"culaunch library {library.source}"
        self.__signature__ = signature_of(declaration)
        return self

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **keywords: Any) -> Any: ...

    @property
    def entry(self) -> SavedEntry:
        """What the library says of it."""
        return self._entry

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of arguments that it takes, in words."""
        return tuple(self._described(one.kind) for one in self._entry.kinds)

    @functools.cached_property
    def jax(self) -> Any:
        """The function as an operation of JAX: see ``Function.jax``."""
        return jax_door(self)

    def explain(self) -> str:
        """Return its programs, as text to read."""
        return "\n\n".join(one.explanation for one in self._entry.kinds)

    def abstract(self, *args: Any, **keywords: Any) -> Any:
        """Run it on shapes: ``AbstractArray`` stands for arrays, nothing is launched."""
        values = self._bind(args, keywords)
        kind = kind_of_shapes(values)
        saved = self.saved(kind)
        if saved is None:
            self.raise_kind(kind)
        program, plan = self.program(kind)
        try:
            return run_abstract(program, plan, kind, values)
        except UnknownBranchError as error:
            self._raise_branch(saved, error, "these shapes")

    @property
    def _gradient(self) -> Backward | None:
        name = self._entry.backward
        return None if name is None else Backward(self.declaration, self._library[name])

    def paths(self) -> Iterator[tuple[dict[int, set[str]], tuple[Any, ...], int]]:
        """Yield for each path what is done to arguments, its views and its end, and its arrays."""
        names = self.declaration.names
        unknown = {names.index(name) for name in self.may_mutate}
        for saved in self._entry.kinds:
            uses = {one: {"write"} for one in saved.writes}
            uses |= {one: {"unknown"} for one in unknown - saved.writes}
            yield from self._paths_of(saved, uses)

    def _paths_of(
        self, saved: SavedKind, uses: dict[int, set[str]]
    ) -> Iterator[tuple[dict[int, set[str]], tuple[Any, ...], int]]:
        try:
            plan = Plan(self._library.read(saved.program), saved.texts)
            found = [
                effects_of(block, lambda number: self._constant(saved.constants[number]))
                for block in plan.blocks
                if block.effects and not raises(plan, block)
            ]
        except (IndexError, KeyError, ValueError, TypeError, struct.error) as error:
            raise ImageError(
                f"{saved.program} is no program: {error!r}", source=self._library.source
            ) from None
        for effects in found:
            yield uses, effects, arrays_of(saved.kind)

    def require_backward(self) -> None:
        """Raise where what is said of its gradients is not so."""
        _ = self._gradient

    # ---- what the extension calls

    def _trace(self, arguments: tuple[Any, ...]) -> None:
        kind = self._kind(arguments)
        exact = exact_key(kind)
        if any(exact_key(known) == exact for known, _ in self._programs()):
            self._require_branch(kind, arguments)
            return
        saved = self.saved(kind)
        if saved is None:
            self.raise_kind(kind)
        for index in sorted(saved.writes):
            if is_read_only(kind[index]):
                raise TypeError(
                    f"{self.__name__}: argument {self.declaration.names[index]} is read-only, and "
                    "the function writes it: give a copy"
                )
        program, _ = self.program(kind)
        self._install(kind, program)

    def _fail(self, number: int, detail: int, text: str | None, values: tuple[Any, ...]) -> None:
        raise_failure(self.__name__, number, detail, text, values, has_source=False)

    def _run_live(self, *_: object) -> Any:
        # There is no body to run in Python.
        return NotImplemented

    # ---- its programs

    def saved(self, kind: Kind) -> SavedKind | None:
        """Return what is saved of a kind; an int is good where a float alone is taken."""
        return self._saved.get(key_of(kind)) or self._saved.get(key_of(self._as_floats(kind)))

    def program(self, kind: Kind) -> tuple[Program, Plan]:
        """Return the program of a kind that is saved, and its plan.

        Raises
        ------
        ImageError
            If what the library has is none, or an image is not what it should be.
        """
        key = key_of(kind)
        with self._lock:
            found = self._decoded.get(key)
            if found is None:
                found = self._decoded[key] = self._decode(kind)
            return found

    def _install(self, kind: Kind, program: Program) -> None:
        try:
            self._add(kind, program, ())
        except ValueError as error:
            raise ImageError(f"{self.__name__}: {error}", source=self._library.source) from None

    def _decode(self, kind: Kind) -> tuple[Program, Plan]:
        saved = self.saved(kind)
        assert saved is not None
        words = self._library.read(saved.program)
        constants = tuple(map(self._constant, saved.constants))
        try:
            program = Program(words, constants, saved.texts)
            check_texts(words, saved.texts)
            ints = [i for i, entry in enumerate(kind) if entry is int and saved.kind[i] is float]
            if ints:
                words = with_ints(words, frozenset(ints))
                program = Program(words, constants, saved.texts)
        except ValueError as error:
            raise ImageError(f"{self.__name__}: {error}", source=self._library.source) from None
        # It is checked against the kind, too, before anything is run of it.
        self._install(tuple(map(_writable, kind)), program)
        return program, Plan(words, saved.texts)

    def _constant(self, data: Any) -> Any:
        if type(data) is dict:
            if "kernel" in data:
                return self._library.kernel(data["kernel"]["image"], data["kernel"]["name"])
            if "namedtuple" in data:
                one = data["namedtuple"]
                return namedtuple(one["name"], one["fields"], module=self.__module__)
            if "keys" in data:
                return dict_maker(read_value({"tuple": data["keys"]}))
        return read_value(data)

    def _as_floats(self, kind: Kind) -> Kind:
        wanted = self.declaration.wanted
        return tuple(
            float if entry is int and i in wanted and wanted[i].plain == (float,) else entry
            for i, entry in enumerate(kind)
        )

    # ---- what a call cannot have

    def raise_kind(self, kind: Kind) -> NoReturn:
        for index, want in self.declaration.wanted.items():
            if kind[index] is None and not want.is_optional:
                name = self.declaration.names[index]
                raise TypeError(f"{self.__name__}: argument {name} must not be None")
        known = "\n".join(f"    {one}" for one in self.kinds)
        raise TypeError(
            f"{self.__name__} has no program for ({self._described(kind)}): the library "
            f"{self._library.source} has it for\n{known or '    nothing'}\n"
            "Save it with this kind, too: function.specialize(...), then save"
        )

    def _require_branch(self, kind: Kind, arguments: tuple[Any, ...]) -> None:
        """Raise if the program lacks the way of a call; another thread may have added it."""
        saved = self.saved(kind)
        assert saved is not None
        _, plan = self.program(kind)
        try:
            plan.run(CallInputs(kind, arguments))
        except UnknownBranchError as error:
            self._raise_branch(saved, error, self._shown(kind, arguments))

    def _raise_branch(self, saved: SavedKind, error: UnknownBranchError, shown: str) -> NoReturn:
        place, text = saved.guards.get(error.block, ("an unknown place", "a condition"))
        raise ValueError(
            f"{self.__name__}: the branch at {place} was saved for one side alone: `{text}` is "
            f"{error.outcome} for {shown}. Save it with both sides: "
            "function.specialize(..., both_sides=True), or call it with such arguments before it "
            "is saved"
        ) from None

    def _described(self, kind: Kind) -> str:
        names = self.declaration.names
        return ", ".join(
            f"{name}: {described(entry)}" for name, entry in zip(names, kind, strict=True)
        )

    def _shown(self, kind: Kind, arguments: tuple[Any, ...]) -> str:
        parts = []
        for name, entry, value in zip(self.declaration.names, kind, arguments, strict=True):
            if type(entry) is tuple and entry[0] == "array":
                text = f"shape {array_info(value).shape}"
            elif type(entry) is tuple and entry[0] in ("list", "tuple"):
                text = f"shapes {', '.join(str(array_info(one).shape) for one in value)}"
            else:
                text = spell(value)
            parts.append(f"{name}: {text}")
        return ", ".join(parts)

    # ---- as Python's functions

    def __reduce__(self) -> Any:
        return _find, (self._library, self.__name__)

    def __copy__(self) -> LoadedFunction:
        return self

    def __deepcopy__(self, _: object) -> LoadedFunction:
        return self

    def __str__(self) -> str:
        return signature_text(self.declaration, self.mutates, self.may_mutate, None)

    def __repr__(self) -> str:
        first = str(self).partition("\n")[0]
        return f"<culaunch.LoadedFunction {first} of {self._library.source}>"


def _writable(entry: Any) -> Any:
    if type(entry) is not tuple or entry[0] == "value":
        return entry
    if entry[0] == "array":
        return (*entry[:3], False)
    return (entry[0], tuple((*one[:3], False) for one in entry[1]))


def _record(body: Any, function: Any, how: str, *_: Any) -> Any:
    if how != "call":
        return NotImplemented
    raise TypeError(
        f"{function.__name__} is of a library, and has no body to record in {body.name}: call the "
        "two one after the other, or save them from one source"
    )


RECORDERS[LoadedFunction] = _record


def _find(library: Source, name: str) -> LoadedFunction:
    return library[name]


if TYPE_CHECKING:  # the extension calls methods of it
    _methods: type[FunctionMethods] = LoadedFunction
