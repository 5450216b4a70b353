"""Kernels to save by name: checked, and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_list
from culaunch._base.values import spell
from culaunch._image import Image
from culaunch._launch import Kernel
from culaunch._ship.libraries.saved_kernels import KIND, SavedKernels, is_kernel_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._launch import Module
    from culaunch._ship.saving.members import Members


@dataclass(frozen=True)
class GivenKernel:
    """A kernel to save, from any source."""

    image: Image
    symbol: str
    expressions: tuple[str, ...]
    types: tuple[str | None, ...] | None
    by_user: bool
    module: Module | None = None

    @property
    def code(self) -> tuple[Image, str]:
        """Return a key that is equal for two objects of the same kernel."""
        return self.image, self.symbol

    @classmethod
    def of(cls, kernel: Kernel) -> GivenKernel:
        """Return the saved parts of a kernel."""
        image, signature = kernel.module.image, kernel.signature
        names = sorted(text for text, name in image.names.items() if name == kernel.name)
        told = signature.source in ("image", "user")
        types = tuple(one.type for one in signature.parameters) if told else None
        by_user = signature.source == "user"
        return cls(image, kernel.name, tuple(names), types, by_user, kernel.module)

    def entry(self, members: Members) -> dict[str, Any]:
        """Return its manifest entry, without its name."""
        known = self.module
        return {
            "image": members.add_image(self.image) if known is None else members.image(known),
            "symbol": self.symbol,
            "expressions": list(self.expressions),
            "types": None if self.types is None else list(self.types),
            "by_user": self.by_user,
        }


def write_kernels(kernels: Mapping[str, GivenKernel], members: Members) -> list[dict[str, Any]]:
    """Return the manifest entries of kernels, and add their images to the members."""
    return [{"name": name, "kind": KIND, **one.entry(members)} for name, one in kernels.items()]


def checked_kernels(kernels: Any) -> dict[str, GivenKernel]:
    """Return the kernels to save, by their names in the library.

    Raises
    ------
    TypeError, ValueError
        If one is not a kernel, or two have one name.
    """
    found: dict[str, GivenKernel] = {}
    for name, given in _named(kernels):
        if not is_kernel_name(name):
            raise ValueError(
                f"each name in kernels must be a str of printable characters (got {spell(name)})"
            )
        known = found.setdefault(name, given)
        said = known.by_user and given.by_user and known.types != given.types
        if known.code != given.code or said:
            what = "signatures" if said else "images"
            raise ValueError(
                f"kernels must not contain two kernels with the name {name} and different {what}: "
                "choose their names, as in kernels={'first': kernel, ...}"
            )
        # It may have been found both with and without a signature.
        if given.by_user:
            found[name] = given
    return found


def _named(kernels: Any) -> Iterator[tuple[Any, GivenKernel]]:
    if isinstance(kernels, SavedKernels):
        yield from _of_library(kernels)
    elif isinstance(kernels, Mapping):
        for name, one in kernels.items():
            yield name, GivenKernel.of(_checked(one))
    else:
        what = "kernels, or a mapping of names to kernels"
        for one in checked_list("kernels", kernels, what):
            if isinstance(one, SavedKernels):
                yield from _of_library(one)
            else:
                yield _checked(one).name, GivenKernel.of(one)


def _checked(kernel: Any) -> Kernel:
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernels must contain kernels, such as module[name] (got {spell(kernel)})")
    return kernel


def _of_library(kernels: SavedKernels) -> Iterator[tuple[str, GivenKernel]]:
    # Do not load it, because there may be no driver here.
    library = kernels.library
    for name, one in kernels.entries.items():
        image = Image(library.read(one.image), path=f"{library.source}:{one.image}")
        yield name, GivenKernel(image, one.symbol, one.expressions, one.types, one.by_user)
