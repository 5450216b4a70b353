"""A function of a library."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from culaunch._base.untraced import untraced
from culaunch._base.values import spell
from culaunch._core import Function as CoreFunction
from culaunch._function.calling.doors import framework_door, jax_door
from culaunch._function.calling.explain import signature_text
from culaunch._function.calling.recorded import RecordedFunction
from culaunch._function.declarations.backward import Backward
from culaunch._function.export import Exported, library_source
from culaunch._function.programs.failures import raise_failure
from culaunch._function.tracing.kinds import arrays_of
from culaunch._function.tracing.kinds import key_of as exact_key
from culaunch._launch import Kernel
from culaunch._launch.launches.compiled_regions import in_regions
from culaunch._launch.launches.recording import RECORDERS
from culaunch._ship.abstract import kind_of_shapes, run_abstract
from culaunch._ship.call import CallInputs
from culaunch._ship.declared import LoadedDeclaration, signature_of
from culaunch._ship.evaluate import Run, UnknownBranchError
from culaunch._ship.kinds import is_read_only
from culaunch._ship.programs import SavedPrograms
from culaunch._ship.refusals import Refusals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from inspect import Signature
    from typing import Protocol

    from culaunch._core import FunctionMethods
    from culaunch._function.tracing.kinds import Kind
    from culaunch._ship.entry import SavedEntry
    from culaunch._ship.programs import Source

    class Origin(Source, Protocol):
        """The library of a function, as the function sees it."""

        def __getitem__(self, name: str) -> LoadedFunction: ...


class LoadedFunction(RecordedFunction):
    """A function of a library: ``lib.scale``.

    It accepts the kinds of arguments that were saved, on the saved paths.

    Attributes
    ----------
    declaration : LoadedDeclaration
        The function's parameters.
    mutates : tuple[str, ...]
        The parameters whose arrays it writes.
    may_mutate : tuple[str, ...]
        The parameters that may be written: the kernels' signatures did not decide.
    programs : SavedPrograms

    Examples
    --------
    >>> result = scale(x, 2.0)
    >>> cl.ship.save([scale], "mylib.culib")
    >>> function = cl.ship.load_library("mylib.culib")["scale"]
    >>> function(x, 3.0).numpy()[:3]
    array([3., 3., 3.], dtype=float32)
    """

    __name__: str
    __qualname__: str
    __signature__: Signature
    declaration: LoadedDeclaration
    mutates: tuple[str, ...]
    may_mutate: tuple[str, ...]
    programs: SavedPrograms
    _library: Origin
    _entry: SavedEntry
    _refusals: Refusals

    def __new__(cls, library: Origin, entry: SavedEntry) -> LoadedFunction:
        """Make one; :func:`culaunch.ship.load_library` is the way to do so."""
        declaration = LoadedDeclaration(entry)
        defaults = tuple(
            declaration.defaults.get(name, CoreFunction.missing) for name in declaration.names
        )
        self = super().__new__(cls, entry.name, declaration.parameters, defaults)
        self.declaration = declaration
        self.mutates = entry.mutates
        self.may_mutate = entry.may_mutate
        # The user must declare such parameters when making an operator from the function.
        self._declared = None if entry.may_mutate else entry.mutates
        self._doors = []
        self._library = library
        self._entry = entry
        self._refusals = Refusals(library.source, entry)
        self.programs = SavedPrograms(
            library, entry, lambda kind, program: self._add(kind, program, ())
        )
        self.__name__ = self.__qualname__ = entry.name
        self.__doc__ = entry.doc
        self.__module__ = f"culaunch library {library.source}"
        self.__signature__ = signature_of(declaration)
        return self

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **keywords: Any) -> Any: ...

    @property
    def entry(self) -> SavedEntry:
        """The function's entry in the library."""
        return self._entry

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of arguments that it accepts, as text."""
        return tuple(dict.fromkeys(self._refusals.described(one.kind) for one in self._entry.kinds))

    @functools.cached_property
    def jax(self) -> Any:
        """The function as an operation of JAX: see ``Function.jax``."""
        return jax_door(self)

    def explain(self) -> str:
        """Return its programs, as text to read."""
        return "\n\n".join(one.explanation for one in self._entry.kinds)

    def source(self, language: str = "c++") -> str:
        """Return the C++ that :func:`culaunch.ship.export` compiles: see ``Function.source``.

        Parameters
        ----------
        language : str, optional
            Only ``"c++"``.

        Returns
        -------
        str
            The text.
        """
        if language != "c++":
            raise ValueError(f'language must be "c++" (got {spell(language)})')
        return library_source([self._exported()], self.__name__).text

    def abstract(self, *args: Any, **keywords: Any) -> Any:
        """Run it on shapes: ``AbstractArray`` stands for arrays, and nothing is launched.

        Parameters
        ----------
        *args, **keywords
            The arguments of a call, with ``AbstractArray`` for arrays.

        Returns
        -------
        object
            The results of the call, with ``AbstractArray`` for arrays.
        """
        values = self._bind(args, keywords)
        kind = kind_of_shapes(values)
        saved = self.programs.saved(kind)
        if saved is None:
            self._refusals.raise_kind(kind)
        _, tree = self.programs.program(kind, saved)
        try:
            return run_abstract(tree, kind, values)
        except UnknownBranchError as error:
            self._refusals.raise_branch(saved, error, "these shapes")

    def load_all(self) -> Iterator[Kernel]:
        """Load the images of its programs; yield their kernels."""
        for one in self._entry.kinds:
            # Several programs for one kind differ in the devices that they are for; the one for
            # this device is loaded.
            if self.programs.saved(one.kind) is not one:
                continue  # of another architecture
            self.programs.program(one.kind, one)
            for constant in one.constants:
                if isinstance(found := self.programs.constant(constant), Kernel):
                    yield found

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
            for leaf in self.programs.tree(saved).leaves():
                yield uses, leaf.effects, arrays_of(saved.kind)

    def require_backward(self) -> None:
        """Raise if the entry about its gradients is wrong."""
        _ = self._gradient

    def _require_branch(self, kind: Kind, arguments: tuple[Any, ...]) -> None:
        """Raise if the program lacks the way of a call; another thread may have added it."""
        # In Python, slowly: only to say which way is missing, or to change to the program of
        # another device.
        inputs = CallInputs(kind, arguments)
        device = inputs.device() if self.programs.has_several(kind) else None
        saved = self.programs.saved(kind, device)
        assert saved is not None
        program, tree = self.programs.program(kind, saved, device)
        try:
            Run(tree, inputs)
        except UnknownBranchError as error:
            self._refusals.raise_branch(saved, error, self._refusals.shown(kind, arguments))
        # The call is on a device of another architecture than the one before it.
        self.programs.install(kind, program)

    def _exported(self) -> Exported:
        """Return the programs for the device in use, for ``export``."""
        declaration, programs = self.declaration, []
        for one in self._entry.kinds:
            if self.programs.saved(one.kind) is one:
                _, tree = self.programs.program(one.kind, one)
                programs.append((one.kind, tree))
        origin = f"of {os.path.basename(self._library.source)}"
        return Exported(declaration, tuple(programs), None, origin, self.__doc__)

    # ---- what the extension calls

    def _trace(self, arguments: tuple[Any, ...]) -> None:
        kind = self._kind(arguments)
        # A kind that the extension has already, and still it calls here: the way of the call is
        # missing.
        exact = exact_key(kind)
        if any(exact_key(known) == exact for known, _ in self._programs()):
            self._require_branch(kind, arguments)
            return
        device = None
        if self.programs.has_several(kind):
            device = CallInputs(kind, arguments).device()
        saved = self.programs.saved(kind, device)
        if saved is None:
            self._refusals.raise_kind(kind)
        # Found here and not at every call: read-only arrays are a kind of their own to the
        # extension.
        for index in sorted(saved.writes):
            if is_read_only(kind[index]):
                raise TypeError(
                    f"{self.__name__}: argument {self.declaration.names[index]} is read-only, but "
                    "the function writes it: pass a copy"
                )
        program, _ = self.programs.program(kind, saved, device)
        self.programs.install(kind, program)

    @untraced
    def _refused(self, arguments: tuple[Any, ...], error: TypeError | None) -> Any:
        return framework_door(self, arguments, error)

    def _fail(self, number: int, detail: int, text: str | None, values: tuple[Any, ...]) -> None:
        raise_failure(self.__name__, number, detail, text, values, has_source=False)

    def _run_live(self, *_: object) -> Any:
        # There is no body to run in Python.
        return NotImplemented

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
        return f"<culaunch.ship.LoadedFunction {first} of {self._library.source}>"


def _record(body: Any, function: Any, how: str, *_: Any) -> Any:
    if how != "call":
        return NotImplemented
    raise TypeError(
        f"{function.__name__} comes from a library and has no body, so {body.name} cannot record "
        "it: call the two functions one after the other, or save both from source"
    )


RECORDERS[LoadedFunction] = _record


def _find(library: Origin, name: str) -> LoadedFunction:
    return library[name]


in_regions(LoadedFunction, "operator", "function")

if TYPE_CHECKING:  # the extension calls methods of it
    _methods: type[FunctionMethods] = LoadedFunction
