"""Kernels of a library that are launched directly: by name, loaded on demand."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from culaunch._base.checks import checked_text
from culaunch._image import demangle
from culaunch._launch.modules.names import find_kernel
from culaunch._ship.manifest.constants import MOST_PARAMETERS, is_symbol
from culaunch._ship.manifest.json_lists import list_of, naming_the_entry, texts_of
from culaunch._ship.manifest.texts import MOST_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from culaunch._launch import Kernel

KIND = "kernel"
# The first version of the format with kernels.
FIRST_VERSION = 4
MOST_KERNELS = 60_000
MOST_NAMES = 4096


class SavedKernel(NamedTuple):
    """A kernel, as the manifest has it."""

    name: str
    """Its name in the library."""
    image: str
    """The member that it is in."""
    symbol: str
    """Its name there."""
    expressions: tuple[str, ...]
    """The name expressions that it was compiled with."""
    types: tuple[str | None, ...] | None
    """The types of its parameters, if neither its name nor the image contains them."""
    by_user: bool
    """Whether the types come from the user, and not from the compiler."""

    def shown(self) -> str:
        """Return a line for people."""
        demangled = demangle(self.symbol)
        if self.types is not None:
            demangled = f"{demangled}({', '.join(one or '?' for one in self.types)})"
        return demangled if self.name == self.symbol else f"{self.name} = {demangled}"

    def to_dict(self) -> dict[str, Any]:
        """Return what ``culaunch inspect --json`` prints."""
        return {
            "name": self.name,
            "image": self.image,
            "symbol": self.symbol,
            "demangled": demangle(self.symbol),
        }


class Origin(Protocol):
    """The library of kernels, as they use it."""

    source: str

    def kernel(self, member: str, name: str, signature: str | None = None) -> Kernel:
        """Return a kernel of an image."""

    def read(self, member: str) -> bytes:
        """Return a member."""


class SavedKernels(Mapping[str, "Kernel"]):
    """The kernels of a library: ``lib.kernels["scale<float>"]``.

    The keys are the names in the images, or other names that ``save`` was given. You can also look
    up a kernel by a name expression that it was compiled with, or by its demangled name. Its image
    is loaded at the lookup, not before.

    Attributes
    ----------
    library : Library
    entries : Mapping[str, SavedKernel]
        The manifest's entry for each kernel.
    """

    def __init__(self, library: Origin, entries: Mapping[str, SavedKernel]) -> None:
        self.library = library
        self.entries = entries
        # The part of an image's interface that `find_kernel` uses.
        self.names = {text: one.name for one in entries.values() for text in one.expressions}

    def __getitem__(self, name: str) -> Kernel:
        """Find a kernel.

        Raises
        ------
        KernelNotFoundError
            If it does not exist, or several kernels have that demangled name. The message lists the
            kernels of the library.
        ImageError
            If its image is invalid, or does not contain it.
        DriverError
            If the driver refuses the image.
        """
        checked_text("name", name, "a str, the name of a kernel")
        found = find_kernel(self, self, name, of=self.library.source)
        return self._loaded(self.entries[found])

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        """Tell whether ``kernels[name]`` finds one; nothing is loaded."""
        try:
            return isinstance(name, str) and bool(find_kernel(self, self, name))
        except KeyError:
            return False

    def __repr__(self) -> str:
        return f"<kernels of {self.library.source}: {', '.join(self) or 'none'}>"

    def only(self, names: Iterable[str]) -> SavedKernels:
        """Return the kernels that were saved under some names, without loading them.

        :func:`culaunch.ship.save` takes them, and writes them to another library.
        """
        wanted = set(names)
        kept = {name: one for name, one in self.entries.items() if name in wanted}
        return SavedKernels(self.library, kept)

    def layout(self, name: str) -> SavedKernel | None:
        """Return the entry of a name, or None, as :func:`find_kernel` expects."""
        return self.entries.get(name)

    def kernel_names(self) -> tuple[str, ...]:
        """Return all names."""
        return tuple(self.entries)

    def _loaded(self, entry: SavedKernel) -> Kernel:
        # The image keeps the types that the compiler recorded (`facts_of`), as they were when it
        # was saved.
        signature = ", ".join(map(str, entry.types or ())) if entry.by_user else None
        return self.library.kernel(entry.image, entry.symbol, signature)


def read_kernel(data: Mapping[str, Any], members: Mapping[str, Any], source: str) -> SavedKernel:
    """Read a function of kind ``kernel``.

    Raises
    ------
    ImageError
        Naming what is wrong.
    """
    with naming_the_entry(data, source):
        return _read(data, members)


def facts_of(
    entries: Mapping[str, SavedKernel], member: str
) -> tuple[Mapping[str, str], Mapping[str, tuple[str | None, ...]]]:
    """Return the names and the signatures of an image, as its compiler recorded them."""
    own = [one for one in entries.values() if one.image == member]
    names = {text: one.symbol for one in own for text in one.expressions}
    signatures = {one.symbol: one.types for one in own if one.types and not one.by_user}
    return types.MappingProxyType(names), types.MappingProxyType(signatures)


def _read(data: Mapping[str, Any], members: Mapping[str, Any]) -> SavedKernel:
    name, image, symbol = data["name"], data.get("image"), str(data.get("symbol"))
    if not is_kernel_name(name):
        raise ValueError("the name of a kernel must have 1 to 65536 printable characters")
    if not isinstance(image, str) or image not in members:
        raise ValueError(f"the image of a kernel must be a member (got {image!r:.60})")
    if not is_symbol(data.get("symbol")):
        raise ValueError(f"symbol must be a symbol of the image (got {symbol!r:.60})")
    by_user = data.get("by_user")
    if type(by_user) is not bool:
        raise ValueError("by_user must be true or false")
    expressions = tuple(texts_of(data, "expressions", MOST_NAMES))
    found: tuple[str | None, ...] | None = None
    if data.get("types") is not None:
        listed = list_of(data, "types", MOST_PARAMETERS)
        texts_of({"types": [one for one in listed if one is not None]}, "types", MOST_PARAMETERS)
        found = tuple(listed)
    if by_user and (found is None or None in found):
        raise ValueError("types must have a type for each parameter if by_user is true")
    return SavedKernel(name, image, symbol, expressions, found, by_user)


def is_kernel_name(name: object) -> bool:
    """Whether a kernel of a library may have this name."""
    return isinstance(name, str) and 0 < len(name) <= MOST_TEXT and name.isprintable()
