"""The programs of a library's function, decoded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.fork_lock import ForkLock
from culaunch._core import Program
from culaunch._errors import ImageError
from culaunch._function.programs.decode import DAMAGED, DecodedTree, decode
from culaunch._function.tracing.kinds import arrays
from culaunch._ship.functions.by_device import capability_that_decides, choose
from culaunch._ship.functions.rewritten import program_of, take_ints, with_capability
from culaunch._ship.manifest.constants import make_constant
from culaunch._ship.manifest.kinds import key_of, writable
from culaunch._ship.manifest.texts import check_texts

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from culaunch._function.tracing.kinds import Kind
    from culaunch._launch import Kernel
    from culaunch._ship.manifest.entry import SavedEntry, SavedKind

    class Source(Protocol):
        """The library of a function, as its programs use it."""

        source: str

        def read(self, member: str) -> bytes:
            """Return a member."""

        def kernel(self, member: str, name: str) -> Kernel:
            """Return a kernel of an image."""


class SavedPrograms:
    """The programs of one function.

    Parameters
    ----------
    library : Source
    entry : SavedEntry
    install : callable
        Adds a program to the function, given its kind, and checks that it goes with the kind.
    """

    def __init__(
        self, library: Source, entry: SavedEntry, install: Callable[[Kind, Program], None]
    ) -> None:
        self.library = library
        self._entry = entry
        self._install = install
        self._saved: dict[Any, list[SavedKind]] = {}
        for one in entry.kinds:
            self._saved.setdefault(key_of(one.kind), []).append(one)
        self._decoded: dict[Any, tuple[Program, DecodedTree]] = {}
        self._lock = ForkLock()

    def saved(self, kind: Kind, device: int | None = None) -> SavedKind | None:
        """Return the saved program of a kind; an int is accepted if only floats are.

        Parameters
        ----------
        kind : tuple
        device : int, optional
            Where it is to run, if there are programs for several architectures; the current device
            by default.

        Raises
        ------
        KernelNotFoundError
            If none of them is for that device.
        """
        # Try the exact kind first, because ints may have their own saved program.
        found = self._saved.get(key_of(kind)) or self._saved.get(key_of(self._as_floats(kind)))
        return None if found is None else choose(self._entry.name, found, device)

    def has_several(self, kind: Kind) -> bool:
        """Tell whether the device decides which program of a kind runs."""
        found = self._saved.get(key_of(kind)) or self._saved.get(key_of(self._as_floats(kind)))
        return found is not None and len(found) > 1

    def program(
        self, kind: Kind, saved: SavedKind, device: int | None = None
    ) -> tuple[Program, DecodedTree]:
        """Decode the program of a saved kind; return it with its tree.

        Raise ImageError if the library's program or an image is invalid.
        """
        capability = capability_that_decides(saved, device)
        # The key includes the device's capability, because the program has a guard of it if devices
        # differ.
        key = (key_of(kind), id(saved), capability)
        with self._lock:
            found = self._decoded.get(key)
            if found is None:
                found = self._decoded[key] = self._decode(kind, saved, capability)
            return found

    def tree(self, saved: SavedKind) -> DecodedTree:
        """Return the tree of the saved program. No kernel is loaded.

        Raise ImageError if the words are not a program.
        """

        def constant(number: int) -> Any:
            data = saved.constants[number]
            is_kernel = type(data) is dict and "kernel" in data
            return data if is_kernel else self.constant(data)

        words = self.library.read(saved.program)
        try:
            return self._tree(saved, words, constant)
        except DAMAGED as error:
            said = f"{saved.program} is not a valid program: {error!r}"
            raise ImageError(said, source=self.library.source) from None

    def constant(self, data: Any) -> Any:
        """Return the object of a constant."""
        return make_constant(data, self.library)

    def install(self, kind: Kind, program: Program) -> None:
        """Give the function a program.

        Raise ImageError if it reads a property of its arguments that the kind does not have.
        """
        try:
            self._install(kind, program)
        except ValueError as error:
            raise self._refused(error) from None

    def _decode(
        self, kind: Kind, saved: SavedKind, capability: int | None
    ) -> tuple[Program, DecodedTree]:
        words = self.library.read(saved.program)
        constants = tuple(map(self.constant, saved.constants))
        try:
            program = Program(words, constants, saved.texts)
            # Only after the extension has checked the program.
            tree = self._tree(saved, words, constants.__getitem__)
            check_texts(tree)
            ints = [i for i, entry in enumerate(kind) if entry is int and saved.kind[i] is float]
            if ints:
                take_ints(tree, frozenset(ints))
                program = program_of(tree)
            if capability is not None:
                # The guard at the beginning sends calls on another device to `_require_branch`,
                # which switches programs.
                program = program_of(with_capability(tree, capability))
        except ValueError as error:
            raise self._refused(error) from None
        # This also checks the program against the kind, before any of it runs.
        self.install(tuple(map(writable, kind)), program)
        return program, tree

    def _tree(self, saved: SavedKind, words: bytes, constant: Callable[[int], Any]) -> DecodedTree:
        places = {block: place for block, (place, _) in saved.guards.items()}
        tree = decode(self._entry.name, words, saved.texts, constant, places)
        tree.array_names = {
            number: self._entry.parameters[parameter][0] + "".join(f"[{i}]" for i in index)
            for number, ((parameter, *index), _) in enumerate(arrays(saved.kind))
        }
        tree.uses = {parameter: {"write"} for parameter in saved.writes}
        return tree

    def _refused(self, error: ValueError) -> ImageError:
        return ImageError(f"{self._entry.name}: {error}", source=self.library.source)

    def _as_floats(self, kind: Kind) -> Kind:
        wanted = self._entry.wanted
        return tuple(
            float if entry is int and i in wanted and wanted[i].plain == (float,) else entry
            for i, entry in enumerate(kind)
        )
