"""``KernelSet``: compiled forms of a Triton kernel that launch, and are saved, without Triton."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from culaunch._errors import ImageError, KernelNotFoundError
from culaunch._library import LibraryFile, write_library
from culaunch._triton._dispatcher import Dispatcher
from culaunch._triton._parameters import TritonParameter
from culaunch._triton._saved import SavedVariant, decode, encode, same_constant
from culaunch._triton._select import select
from culaunch._triton._tuned import TunedTable
from culaunch._triton._variant import load_variant, resources_missing

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from typing_extensions import Self

    from culaunch._core import TritonVariant

KIND = "triton"
_FORCED = ("i8", "i16", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp64")


class KernelSet(Dispatcher):
    """Variants of one Triton kernel; :func:`compile` makes one, :meth:`load` reads one.

    ``kernels[grid](*args, **kwargs)`` as through Triton: the architecture, the element types,
    divisibility by 16, values of 1, None, and the constants select the variant. A constant that
    the call leaves out may be any; the most specialised variant that fits is taken, the first one
    among equals. Images are loaded when they are first needed.

    Attributes
    ----------
    name : str
    variants : tuple of SavedVariant
    """

    variants: tuple[SavedVariant, ...]
    parameters: tuple[TritonParameter, ...]
    _read: Callable[[str], bytes]
    _table: TunedTable | None
    _inner: KernelSet | None
    _loaded: dict[int, TritonVariant]

    def __new__(
        cls,
        name: str,
        parameters: Sequence[TritonParameter],
        variants: Sequence[SavedVariant],
        read: Callable[[str], bytes],
        table: TunedTable | None = None,
    ) -> Self:
        """Make one; `read` gives a member's bytes by name."""
        parameters = tuple(parameters)
        variants = tuple(variants)
        own = _for_dispatch(name, parameters, variants)
        names = [one.name for one in parameters]
        key = None if table is None else [names.index(one) for one in table.key]
        self = super().__new__(cls, name, own, key)
        self.parameters = parameters
        self.variants = variants
        self._read = read
        self._table = table
        self._inner = None if table is None else KernelSet(name, parameters, variants, read)
        self._loaded = {} if self._inner is None else self._inner._loaded  # noqa: SLF001
        return self

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the set as a library (``.culib``), whole or not at all."""
        from culaunch import __version__

        used = [name for one in self.variants for name in (one.image, one.ptx) if name]
        members = {name: self._read(name) for name in used}
        write_library(path, [self.to_manifest()], members, f"culaunch {__version__}")

    def write_c(self, path: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write the set as C: ``path`` with ``.c``, and a header beside it.

        The source holds the images and needs ``cuda.h``, the driver and a C99 compiler alone.
        A variant is chosen as here; where variants differ in constants or options, the caller
        passes a configuration, and a tuned table becomes a function that chooses one.

        Returns
        -------
        source, header : pathlib.Path

        Raises
        ------
        ValueError
            If the set has what C cannot say: a tensor descriptor among the arguments.
        """
        from culaunch._triton._c_output import write_c

        return write_c(self, path)

    @property
    def table(self) -> TunedTable | None:
        """The tuned configurations by key, if there are any."""
        return self._table

    def read(self, member: str) -> bytes:
        """Give an image, by the name that a variant has for it."""
        return self._read(member)

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
        """Give what a library's manifest says of the kernel."""
        return {
            "kind": KIND,
            "name": self.name,
            "parameters": [_parameter_entry(one) for one in self.parameters],
            "variants": [one.to_manifest() for one in self.variants],
            "tuning": None if self._table is None else self._table.to_manifest(),
        }

    @classmethod
    def _from_manifest(cls, entry: dict[str, Any], library: LibraryFile) -> KernelSet:
        try:
            parameters = [_parameter(one) for one in entry["parameters"]]
            listed = [SavedVariant.from_manifest(one, library.source) for one in entry["variants"]]
            tuning = entry.get("tuning")
            table = None if tuning is None else TunedTable.from_manifest(tuning)
            names = {one.name for one in parameters}
            runtime = sum(not one.is_constexpr for one in parameters)
            if len(names) != len(parameters) or not listed:
                raise ValueError("parameters of one name, or no variants")
            if table is not None and not names.issuperset(table.key):
                raise ValueError("the tuning key names no parameter")
            for one in listed:
                if len(one.types) != runtime or len(one.keys) != runtime:
                    raise ValueError("a variant has another number of arguments")
                _check_nesting(one.types, one.keys)
                if not {one.image, one.ptx} - {None} <= library.manifest["members"].keys():
                    raise ValueError("a variant's image is no member")
                if one.image is None and one.ptx is None:
                    raise ValueError("a variant has no image")
            return cls(entry["name"], parameters, listed, library.read, table)
        except ImageError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ImageError(
                f"the manifest's entry of {entry['name']!r:.60} is wrong: "
                f"{type(error).__name__} {error}",
                source=library.source,
            ) from None

    # ---- sets

    def merge(self, *others: KernelSet) -> KernelSet:
        """Make a set of the variants of several sets of one kernel, in order."""
        sets = (self, *others)
        for other in others:
            same = [one.name for one in other.parameters] == [one.name for one in self.parameters]
            if other.name != self.name or not same:
                raise ValueError(f"{other.name} is not the kernel {self.name}: save it by itself")
        members: dict[str, bytes] = {}
        variants = []
        for number, one in enumerate(sets):
            renamed = {}
            for variant in one.variants:
                for name in (variant.image, variant.ptx):
                    if name and name not in renamed:
                        renamed[name] = name if number == 0 else _fresh(name, members)
                        members[renamed[name]] = one._read(name)  # noqa: SLF001
                variants.append(
                    replace(
                        variant,
                        image=renamed.get(variant.image or ""),
                        ptx=renamed.get(variant.ptx or ""),
                    )
                )
        tables = [one._table for one in sets]  # noqa: SLF001
        table = next((one for one in tables if one is not None), None)
        return KernelSet(self.name, self.parameters, variants, members.__getitem__, table)

    def __len__(self) -> int:
        return len(self.variants)

    def __repr__(self) -> str:
        return f"<culaunch.triton.KernelSet {self.name}, {len(self)} variants>"

    # ---- what the native half calls

    def _miss(
        self,
        values: dict[str, Any],
        options: dict[str, Any],
        description: list[tuple[Any, Any]],
        device: int,
    ) -> TritonVariant:
        assert self._driver is not None
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
        capability = 10 * self._driver.attribute(75, device) + self._driver.attribute(76, device)
        index, reasons = select(
            self.variants, given, constants, options, capability, only_ptx=only_ptx
        )
        if index is None:
            raise KernelNotFoundError(self._no_variant(given, {**constants, **options}, reasons))
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
        data = self._read(name)
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
        self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], Any, bool, Any]:
        """Look the call up in the table that was saved, and launch what it names."""
        assert self._table is not None
        assert self._inner is not None
        names = [one.name for one in self.parameters]
        values = {**dict(zip(names, args, strict=False)), **kwargs}
        description = self._specialize(args, {k: v for k, v in kwargs.items() if k in names})
        dtypes = [kind.lstrip("*k") for kind, _ in description if str(kind).startswith("*")]
        entry = self._table.look_up([values.get(name) for name in self._table.key], dtypes)
        chosen = {**entry.constants, **entry.options}
        result = self._inner[grid](*args, **kwargs, **chosen)
        return entry.constants, entry.options, entry, False, result

    def _no_variant(
        self, given: list[tuple[Any, Any]], settings: dict[str, Any], reasons: list[str]
    ) -> str:
        shown = SavedVariant("", tuple(a for a, _ in given), tuple(b for _, b in given), settings,
                             {}, self.variants[0].facts)  # fmt: skip
        most = 40
        lines = [
            f"  {variant}: {reason}" for variant, reason in zip(self.variants, reasons, strict=True)
        ]
        if len(lines) > most:
            lines[most:] = [f"  and {len(lines) - most} more"]
        return f"no variant of {self.name} fits the call{shown}; there are\n" + "\n".join(lines)


def _for_dispatch(
    name: str, parameters: tuple[TritonParameter, ...], variants: tuple[SavedVariant, ...]
) -> list[TritonParameter]:
    """Make the parameters as the dispatcher is to read their arguments."""
    own = []
    runtime = 0
    for one in parameters:
        if one.is_constexpr:
            is_kept = one.has_default and any(
                same_constant(variant.constants[one.name], one.default)
                for variant in variants
                if one.name in variant.constants
            )
            own.append(replace(one, is_optional=True, has_default=is_kept))
            continue
        kinds = {variant.types[runtime] for variant in variants} - {"constexpr"}
        runtime += 1
        special = kinds.intersection(_FORCED)
        if special and len(kinds) > 1 and not one.annotation:
            raise TypeError(
                f"the variants of {name} declare {one.name} as {', '.join(sorted(map(str, kinds)))}"
                ": a call cannot tell these apart. Give it one type"
            )
        own.append(replace(one, annotation=one.annotation or next(iter(special), "")))
    return own


def _parameter_entry(one: TritonParameter) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": one.name,
        "annotation": one.annotation,
        "constexpr": one.is_constexpr,
        "const": one.is_const,
        "specialize": one.specialize,
        "align": one.align,
    }
    if one.has_default:
        try:
            entry["default"] = encode(one.default)
        except TypeError:  # it must be given then
            return entry
    return entry


def _parameter(entry: dict[str, Any]) -> TritonParameter:
    name = entry["name"]
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"{name!r:.60} is no parameter")
    annotation = entry["annotation"]
    if not isinstance(annotation, str) or len(annotation) > 100:
        raise ValueError("an annotation must be a str")
    return TritonParameter(
        name=name,
        annotation=annotation,
        is_constexpr=entry["constexpr"] is True,
        is_const=entry["const"] is True,
        specialize=entry["specialize"] is True,
        align=entry["align"] is True,
        has_default="default" in entry,
        default=decode(entry.get("default")),
    )


def _check_nesting(types: tuple[Any, ...], keys: tuple[Any, ...]) -> None:
    if len(types) != len(keys):
        raise ValueError("types and keys differ")
    for kind, key in zip(types, keys, strict=True):
        if isinstance(kind, tuple) != isinstance(key, tuple):
            raise ValueError("types and keys differ")
        if isinstance(kind, tuple):
            _check_nesting(kind, key)
        elif not isinstance(kind, str):
            raise TypeError(f"{kind!r:.60} is no type")


def _fresh(name: str, taken: dict[str, bytes]) -> str:
    number = 0
    folder, _, rest = name.rpartition("/")
    while (made := f"{folder}/{number}-{rest}") in taken:
        number += 1
    return made
