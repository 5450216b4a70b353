"""A function of a library."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from culaunch._function import Function
from culaunch._function.declarations.backward import Backward
from culaunch._function.export import Exported
from culaunch._function.programs.failures import raise_failure
from culaunch._function.tracing.kinds import arrays_of
from culaunch._function.tracing.kinds import key_of as exact_key
from culaunch._launch import Kernel
from culaunch._launch.launches.compiled_regions import in_regions
from culaunch._ship.functions.abstract import kind_of_shapes, run_abstract
from culaunch._ship.functions.declaration import LoadedDeclaration, signature_of
from culaunch._ship.functions.evaluate import Run, UnknownBranchError, inputs_of_call
from culaunch._ship.functions.programs import SavedPrograms
from culaunch._ship.functions.refusals import Refusals
from culaunch._ship.manifest.kinds import is_read_only

if TYPE_CHECKING:
    from collections.abc import Iterator
    from inspect import Signature
    from typing import Protocol

    from culaunch._function.programs.program import Tree
    from culaunch._function.tracing.kinds import Kind
    from culaunch._ship.functions.programs import Source
    from culaunch._ship.manifest.entry import SavedEntry

    class Origin(Source, Protocol):
        """The library of a function, as the function uses it."""

        def __getitem__(self, name: str) -> LoadedFunction: ...


class LoadedFunction(Function[..., Any]):
    """A function of a library: ``lib.scale``.

    It accepts the kinds of arguments that were saved, on the saved paths.

    Attributes
    ----------
    declaration : LoadedDeclaration
        The function's parameters.
    programs : SavedPrograms

    Examples
    --------
    >>> result = scale(x, 2.0)
    >>> cl.ship.save([scale], "mylib.culib")
    >>> function = cl.ship.load_library("mylib.culib")["scale"]
    >>> function(x, 3.0).numpy()[:3]
    array([3., 3., 3.], dtype=float32)
    """

    __qualname__: str
    __signature__: Signature
    declaration: LoadedDeclaration
    programs: SavedPrograms
    _has_body = False
    _library: Origin
    _entry: SavedEntry
    _refusals: Refusals

    def __new__(cls, library: Origin, entry: SavedEntry) -> LoadedFunction:
        """Make one; :func:`culaunch.ship.load_library` is the way to do so."""
        declaration = LoadedDeclaration(entry)
        self = cls._of(declaration)
        # The user must declare these parameters when making an operator of the function.
        self._declared = None if entry.may_mutate else entry.mutates
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

    @property
    def mutates(self) -> tuple[str, ...]:
        """The parameters whose arrays it writes."""
        return self._entry.mutates

    @property
    def may_mutate(self) -> tuple[str, ...]:
        """The parameters that may be written, because the kernels' signatures do not decide."""
        return self._entry.may_mutate

    @property
    def entry(self) -> SavedEntry:
        """The function's entry in the library."""
        return self._entry

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of arguments that it accepts, as text."""
        return tuple(dict.fromkeys(self._refusals.described(one.kind) for one in self._entry.kinds))

    def explain(self, *args: Any, **keywords: Any) -> str:
        """Return the program for these arguments, as text to read.

        Parameters
        ----------
        *args, **keywords
            The arguments of a call. Without arguments: every program.

        Returns
        -------
        str
            Several lines, as :meth:`culaunch.Function.explain` returns them.

        Raises
        ------
        TypeError
            If no program is for these arguments.
        """
        if not args and not keywords:
            return "\n\n".join(one.explanation for one in self._entry.kinds)
        kind = self._kind(self._bind(args, keywords))
        saved = self.programs.saved(kind)
        return self._refusals.raise_kind(kind) if saved is None else saved.explanation

    def traced(self) -> list[tuple[Kind, Tree]]:
        """Return each kind, and its program for the device in use.

        Returns
        -------
        list of tuple
            Pairs of a kind and its tree.
        """
        return [
            (one.kind, self.programs.program(one.kind, one)[1])
            for one in self._entry.kinds
            if self.programs.saved(one.kind) is one
        ]

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
        """Load the images of its programs.

        Yields
        ------
        Kernel
            Each kernel that a program launches.
        """
        for one in self._entry.kinds:
            # Programs of one kind differ in their devices. Load the one for this device.
            if self.programs.saved(one.kind) is not one:
                continue  # of another architecture
            self.programs.program(one.kind, one)
            for constant in one.constants:
                if isinstance(found := self.programs.constant(constant), Kernel):
                    yield found

    @functools.cached_property
    def _gradient(self) -> Backward | None:  # type: ignore[override]
        entry = self._entry
        if entry.backward is None:
            return None
        forward = None if entry.forward is None else self._library[entry.forward]
        return Backward(self.declaration, self._library[entry.backward], forward)

    def _paths(self) -> Iterator[tuple[dict[int, set[str]], tuple[Any, ...], int]]:
        """List the saved paths.

        Yields
        ------
        tuple
            As for ``Function._paths``.
        """
        names = self.declaration.names
        unknown = {names.index(name) for name in self.may_mutate}
        for saved in self._entry.kinds:
            uses = {one: {"write"} for one in saved.writes}
            uses |= {one: {"unknown"} for one in unknown - saved.writes}
            for leaf in self.programs.tree(saved).leaves():
                yield uses, leaf.effects, arrays_of(saved.kind)

    def require_backward(self) -> None:
        """Raise if the entry of its gradients is invalid."""
        _ = self._gradient

    def _require_branch(self, kind: Kind, arguments: tuple[Any, ...]) -> None:
        """Raise if the program lacks a call's branch. Another thread may have added it."""
        # Slow Python code, only to report the missing path or to switch to another device's
        # program.
        inputs = inputs_of_call(kind, arguments)
        device = inputs.device if self.programs.has_several(kind) else None
        saved = self.programs.saved(kind, device)
        assert saved is not None
        program, tree = self.programs.program(kind, saved, device)
        try:
            Run(tree, inputs)
        except UnknownBranchError as error:
            self._refusals.raise_branch(saved, error, self._refusals.shown(kind, arguments))
        # This call's device has another architecture than the previous call's.
        self.programs.install(kind, program)

    def _exported(self) -> Exported:
        """Return the programs for the device in use, for ``export``."""
        origin = f"of {os.path.basename(self._library.source)}"
        return Exported(self.declaration, tuple(self.traced()), None, origin, self.__doc__)

    # ---- called by the extension

    def _trace(self, arguments: tuple[Any, ...]) -> None:
        kind = self._kind(arguments)
        # The extension has this kind already. It calls here again because the call's branch is
        # missing.
        exact = exact_key(kind)
        if any(exact_key(known) == exact for known, _ in self._programs()):
            self._require_branch(kind, arguments)
            return
        device = None
        if self.programs.has_several(kind):
            device = inputs_of_call(kind, arguments).device
        saved = self.programs.saved(kind, device)
        if saved is None:
            self._refusals.raise_kind(kind)
        # Checked only here, because the extension treats read-only arrays as a kind of their own.
        for index in sorted(saved.writes):
            if is_read_only(kind[index]):
                raise TypeError(
                    f"{self.__name__}: argument {self.declaration.names[index]} must be writable, "
                    "because the function writes it (got a read-only array): pass a copy"
                )
        program, _ = self.programs.program(kind, saved, device)
        self.programs.install(kind, program)

    def _fail(self, number: int, detail: int, text: str | None, values: tuple[Any, ...]) -> None:
        raise_failure(self.__name__, number, detail, text, values, has_source=False)

    def _run_live(self, *_: object) -> Any:
        # A library has no body to run in Python.
        return NotImplemented

    # ---- as Python's functions

    def __reduce__(self) -> Any:
        return _find, (self._library, self.__name__)

    def __repr__(self) -> str:
        first = str(self).partition("\n")[0]
        return f"<culaunch.ship.LoadedFunction {first} of {self._library.source}>"


def _find(library: Origin, name: str) -> LoadedFunction:
    return library[name]


in_regions(LoadedFunction, "operator", "function")
