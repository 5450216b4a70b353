"""``KernelSet``: compiled forms of a Triton kernel that launch, and are saved, without Triton."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_text
from culaunch._base.untraced import untraced
from culaunch._core import __version__
from culaunch._errors import ImageError, KernelNotFoundError
from culaunch._launch.driver import capability_of
from culaunch._library import LibraryFile, write_library
from culaunch._triton.body_choice import BodyChoice, pinned
from culaunch._triton.dispatch_parameters import dispatch_parameters
from culaunch._triton.dispatcher import Dispatcher
from culaunch._triton.join_variants import join_variants
from culaunch._triton.load_variant import load_variant, resources_missing
from culaunch._triton.manifest import KIND, read_entry, version_of, write_entry
from culaunch._triton.messages import raise_binding, raise_unknown
from culaunch._triton.object_kinds import type_name
from culaunch._triton.saved_set import SavedSet
from culaunch._triton.saved_variant import SavedVariant
from culaunch._triton.select import KNOWN_OPTIONS, arch_fits, select, settings_fit
from culaunch._triton.tuned_table import TunedEntry, TunedTable

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from typing_extensions import Self

    from culaunch._core import DispatcherMethods, TritonVariant
    from culaunch._launch.recording import RecordingBody
    from culaunch._triton.parameters import TritonParameter


class KernelSet(Dispatcher):
    """Variants of one Triton kernel; :func:`compile` makes one, :meth:`load` reads one.

    ``kernels[grid](*args, **kwargs)`` as through Triton: the architecture, the element types,
    divisibility by 16, values of 1, None, and the constants select the variant. A constant that
    the call leaves out may be any, but for one that ``@triton.heuristics`` gave: that is an error.
    The most specialised variant that fits is taken, the first one among equals. Images are loaded
    when they are first needed.

    Attributes
    ----------
    name : str
    parameters : tuple of TritonParameter
    variants : tuple of SavedVariant
    zeroes : tuple of str
        The arguments that are set to zero before each launch, as a ``pre_hook`` did.
    heuristics : tuple of str
        The constants that every call has to give.
    """

    variants: tuple[SavedVariant, ...]
    parameters: tuple[TritonParameter, ...]
    zeroes: tuple[str, ...]
    heuristics: tuple[str, ...]
    _saved: SavedSet
    _tables: dict[int, TunedTable | None]  # by capability
    _options: list[str]
    _inner: KernelSet | None
    _loaded: dict[int, TritonVariant]

    def __new__(
        cls,
        name: str,
        parameters: Sequence[TritonParameter],
        variants: Sequence[SavedVariant],
        read: Callable[[str], bytes],
        table: TunedTable | None = None,
        zeroes: Sequence[str] = (),
    ) -> Self:
        """Make one; `read` gives a member's bytes by name."""
        parameters = tuple(parameters)
        variants = tuple(variants)
        own = dispatch_parameters(name, parameters, variants)
        names = [one.name for one in parameters]
        # What is done before a launch is done where a configuration is chosen, or might be.
        is_chosen = table is not None or bool(zeroes)
        key = [(names.index(one), 0) for one in table.key] if table is not None else []
        self = super().__new__(cls, name, own, key if is_chosen else None)
        self._saved = SavedSet(name, parameters, variants, read, table, tuple(zeroes))
        self.parameters = parameters
        self.variants = variants
        self.zeroes = self._saved.zeroes
        self.heuristics = self._saved.heuristics
        self._tables = {}
        self._options = sorted(
            {*KNOWN_OPTIONS, *(option for one in variants for option in one.options)}
        )
        self._inner = KernelSet(name, parameters, variants, read) if is_chosen else None
        self._loaded = {} if self._inner is None else self._inner._loaded  # noqa: SLF001
        return self

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the set as a library (``.culib``), whole or not at all."""
        used = [name for one in self.variants for name in (one.image, one.ptx) if name]
        members = {name: self._saved.read(name) for name in used}
        producer = f"culaunch {__version__}"
        version = version_of(self._saved)
        write_library(path, [self.to_manifest()], members, producer, version)

    def write_c(
        self, path: str | os.PathLike[str], *, name: str | None = None
    ) -> tuple[Path, Path]:
        """Write the set as C: ``path``, which ends in ``.c`` or gets it, and a header beside it.

        The source holds the images and needs ``cuda.h``, the driver and a C99 compiler alone.
        A variant is chosen as here; where variants differ in constants or options, the caller
        passes a configuration, and a tuned table becomes a function that chooses one.

        Parameters
        ----------
        path : str or os.PathLike
        name : str, optional
            What the names of all functions, types and macros begin with; the kernel's own name
            without it. Two kernels of one program need two names.

        Returns
        -------
        source, header : pathlib.Path

        Raises
        ------
        ValueError
            If the set has what C cannot say: a tensor descriptor among the arguments, constants
            that are no integers to choose by, an argument that is set to zero before a launch; or
            if `name` is no name in C.
        """
        from culaunch._triton.c_output import write_c

        return write_c(self._saved, path, name)

    @property
    def table(self) -> TunedTable | None:
        """The tuned configurations by key, if there are any."""
        return self._saved.table

    def read(self, member: str) -> bytes:
        """Return an image, by the name that a variant has for it.

        Raises
        ------
        ValueError, TypeError
            If no variant has that name for one.
        """
        checked_text("member", member)
        if not any(member in (one.image, one.ptx) for one in self.variants):
            raise ValueError(f"{self.name} has no image {member!r:.100}")
        return self._saved.read(member)

    @classmethod
    def load(cls, source: str | os.PathLike[str] | bytes, name: str | None = None) -> KernelSet:
        """Read a library. Neither Triton nor a compiler is needed, nor a GPU before a launch.

        Parameters
        ----------
        source : str, os.PathLike or bytes
            A ``.culib`` file, or its bytes.
        name : str, optional
            Which function, where the library has several.

        Raises
        ------
        ImageError
            If it is not a library, is damaged, or is of a newer version.
        KernelNotFoundError
            If it has no such function.
        """
        if name is not None:
            checked_text("name", name)
        library = LibraryFile(source)
        found = [one for one in library.manifest["functions"] if one.get("kind") == KIND]
        names = [one["name"] for one in found]
        if name is not None:
            found = [one for one in found if one["name"] == name]
        if len(found) != 1:
            have = ", ".join(names) or "none"
            wanted = "one Triton kernel" if name is None else f"Triton kernel {name!r}"
            raise KernelNotFoundError(f"{library.source}: {wanted} was asked for; it has {have}")
        return cls._from_manifest(found[0], library)

    def to_manifest(self) -> dict[str, Any]:
        """Return what a library's manifest says of the kernel."""
        return write_entry(self._saved)

    @classmethod
    def _from_manifest(cls, entry: dict[str, Any], library: LibraryFile) -> KernelSet:
        made = read_entry(entry, library.manifest["members"], library.source)
        try:
            return cls(**made, read=library.read)
        except (TypeError, ValueError) as error:
            raise ImageError(
                f"the manifest's entry of {made['name']!r:.60} is wrong: {error}",
                source=library.source,
            ) from None

    # ---- sets

    def merge(self, *others: KernelSet) -> KernelSet:
        """Make a set of the variants of several sets of one kernel, in order.

        Their tuned tables become one; where two have an entry for one key and architecture, it is
        the first set's.

        Raises
        ------
        TypeError
            If one is no set.
        ValueError
            If they are of different kernels, were tuned by different arguments, or set different
            arguments to zero before a launch.
        """
        sets = (self, *others)
        for other in others:
            if not isinstance(other, KernelSet):
                raise TypeError(f"merge() takes KernelSets (got {type(other).__qualname__})")
            if other.name != self.name or not _same_parameters(self, other):
                raise ValueError(f"{other.name} is not the kernel {self.name}: save it by itself")
            if set(other.zeroes) != set(self.zeroes):
                raise ValueError(
                    f"one set of {self.name} sets ({', '.join(self.zeroes)}) to zero before each "
                    f"launch, and another ({', '.join(other.zeroes)}): compile both the same way"
                )
        variants, members = join_variants(sets)
        tables = [one.table for one in sets if one.table is not None]
        table = functools.reduce(TunedTable.merge, tables) if tables else None
        return KernelSet(
            self.name, self.parameters, variants, members.__getitem__, table, self.zeroes
        )

    def __len__(self) -> int:
        return len(self.variants)

    def __repr__(self) -> str:
        return f"<culaunch.triton.KernelSet {self.name}, {len(self)} variants>"

    # ---- what the native half calls

    @untraced
    def _miss(
        self,
        values: dict[str, Any],
        options: dict[str, Any],
        description: list[tuple[Any, Any]],
        device: int,
    ) -> TritonVariant:
        assert self._driver is not None
        unknown = [name for name in options if name not in self._options]
        if unknown:
            raise_unknown(self, unknown, self._options)
        constants = {
            one.name: values[one.name]
            for one in self.parameters
            if one.is_constexpr and one.name in values
        }
        given = [
            pair
            for one, pair in zip(self.parameters, description, strict=True)
            if not one.is_constexpr
        ]
        only_ptx = self._driver.name == "emulator"
        major, minor = capability_of(self._driver, device)
        capability = 10 * major + minor
        index, reasons = select(
            self.variants, given, constants, options, capability, only_ptx=only_ptx
        )
        if index is None:
            raise self._no_variant(given, {**constants, **options}, reasons)
        known = self._loaded.get(index)
        if known is None:
            known = self._loaded[index] = self._load(self.variants[index], device)
        return known

    def _load(self, variant: SavedVariant, device: int) -> TritonVariant:
        assert self._driver is not None
        name = variant.image
        if name is None or self._driver.name == "emulator":
            name = variant.ptx
        assert name is not None
        data = self._saved.read(name)
        constants = {
            name: value for name, value in variant.constants.items() if name not in variant.options
        }
        made = load_variant(self._driver, data, variant.facts, variant.types, constants, None)
        missing = resources_missing(self._driver, made, variant.facts, device)
        if missing is not None:
            needed, available, what = missing
            raise ValueError(
                f"{self.name} needs {needed} of {what}, and device {device} has {available}"
            )
        return made

    def _tune(
        self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], device: int
    ) -> tuple[dict[str, Any], dict[str, Any], Any, bool, Any, frozenset[str], bool]:
        """Look the call up in the table that was saved, and launch what it names."""
        assert self._inner is not None
        names = [one.name for one in self.parameters]
        values = {**dict(zip(names, args, strict=False)), **kwargs}
        entry = TunedEntry((), (), {}, {})
        table = self._table_of(device)
        if table is not None:
            description = self._specialize(args, {k: v for k, v in kwargs.items() if k in names})
            dtypes = [kind.lstrip("*k") for kind, _ in description if str(kind).startswith("*")]
            entry = table.look_up([self._key_value(name, values) for name in table.key], dtypes)
        for name in entry.settings.keys() & values.keys():
            raise_binding(self, "tuned", name, len(args))
        if self.zeroes:
            self._run_hook(entry, values)
        result = self._inner[grid](*args, **kwargs, **entry.settings)
        has_hook = bool(self.zeroes)
        return entry.constants, entry.options, entry, has_hook, result, frozenset(), True

    def _choose_in_body(
        self,
        body: RecordingBody,
        bound: dict[str, Any],
        options: dict[str, Any],  # noqa: ARG002
    ) -> BodyChoice:
        """Look the call up in the table that was saved; its key is guarded."""
        if self.zeroes:
            raise TypeError(
                f"{self.name} sets {', '.join(self.zeroes)} to zero before each launch, which is "
                "Python: allocate with cl.zeros in the body, and save the set without the hook"
            )
        table = self._table_of(body.ordinal)
        if table is None:
            return BodyChoice()
        values = [pinned(body, self._key_value(name, bound)) for name in table.key]
        dtypes = [
            type_name(bound[name].dtype.name)
            for name in self._parameter_names
            if body.what(bound.get(name)) == "array"
        ]
        entry = table.look_up(values, dtypes)
        return BodyChoice(entry.constants, entry.options)

    def _table_of(self, device: int) -> TunedTable | None:
        """Return the part of the table that is for a device, of variants that run on it."""
        if self.table is None:
            return None
        assert self._driver is not None
        major, minor = capability_of(self._driver, device)
        capability = 10 * major + minor
        if capability not in self._tables:
            only_ptx = self._driver.name == "emulator"
            runnable = [
                one for one in self.variants if not arch_fits(one, capability, only_ptx=only_ptx)[0]
            ]
            entries = tuple(
                entry
                for entry in self.table.entries
                if any(not settings_fit(one, entry.constants, entry.options) for one in runnable)
            )
            table = TunedTable(self.table.key, entries) if entries else None
            self._tables[capability] = table and table.of_device(capability)
        return self._tables[capability]

    def _key_value(self, name: str, values: dict[str, Any]) -> Any:
        value = values.get(name)
        if hasattr(value, "__dlpack__") or hasattr(value, "data_ptr"):
            raise TypeError(
                f"argument {name!r} of {self.name}() must be a number, a bool, a str or None: the "
                f"kernel was tuned by its value (got {type(value).__module__}."
                f"{type(value).__qualname__})"
            )
        return value

    def _run_hook(self, _: Any, values: dict[str, Any]) -> None:
        """Set to zero what is to be zero before a launch, in the order of the array's stream."""
        for name in self.zeroes:
            clear = getattr(values.get(name), "zero_", None)
            if clear is None:
                raise TypeError(
                    f"argument {name!r} of {self.name}() is set to zero before each launch, by its "
                    f"method zero_(): it must be a PyTorch tensor (got {type(values.get(name))})"
                )
            clear()

    def _no_variant(
        self, given: list[tuple[Any, Any]], settings: dict[str, Any], reasons: list[str]
    ) -> KernelNotFoundError:
        shown = SavedVariant("", tuple(a for a, _ in given), tuple(b for _, b in given), settings,
                             {}, self.variants[0].facts)  # fmt: skip
        most = 40
        title = f"no variant of {self.name} fits the call{shown}; there are"
        lines = [
            f"  {variant}: {reason}" for variant, reason in zip(self.variants, reasons, strict=True)
        ]
        log = "\n".join([title, *lines])
        if len(lines) > most:
            lines[most:] = [f"  and {len(lines) - most} more: the error's log has all"]
        return KernelNotFoundError("\n".join([title, *lines]), log=log)


def _same_parameters(one: KernelSet, other: KernelSet) -> bool:
    def facts(kernels: KernelSet) -> list[tuple[str, bool, bool]]:
        return [(own.name, own.is_constexpr, own.is_heuristic) for own in kernels.parameters]

    return facts(one) == facts(other)


if TYPE_CHECKING:  # the extension calls methods of it
    _methods: type[DispatcherMethods] = KernelSet
