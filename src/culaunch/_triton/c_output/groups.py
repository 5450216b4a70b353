"""Groups variants by their pointers' element types, because C addresses have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.c_output.parameters import element_of, rank_of
from culaunch._triton.variants.parameter_sources import leaves_of

if TYPE_CHECKING:
    from culaunch._triton.saved.set import SavedSet
    from culaunch._triton.saved.variant import SavedVariant


class _Group:
    """Variants with the same list of element types; "" if a variant folds the argument."""

    def __init__(self, elements: list[str]) -> None:
        self.elements = elements
        found = [one.partition(" ")[0] for one in elements if one]
        # The suffix depends only on the first variant, so adding variants does not change it.
        self.suffix = "_".join(found[:1] if len(set(found)) == 1 else found)
        self.variants: list[tuple[int, SavedVariant]] = []

    def takes(self, elements: list[str]) -> bool:
        """Whether a variant belongs to the group."""
        return all(
            not one or not other or one == other
            for one, other in zip(self.elements, elements, strict=True)
        )

    def add(self, index: int, variant: SavedVariant, elements: list[str]) -> None:
        """Add a variant."""
        # A variant may fold an argument whose type another one names.
        self.elements = [one or other for one, other in zip(self.elements, elements, strict=True)]
        self.variants.append((index, variant))


def group_by_types(kernels: SavedSet) -> list[tuple[str, list[tuple[int, SavedVariant]]]]:
    """Return the suffixes of the functions' names, and their variants with their places.

    A single function has no suffix.

    Raise ValueError if an argument is a tuple in one variant and something else in another.
    """
    # A C function's parameters are the leaves of tuples, which must be the same in all variants.
    if len({_shape(one.types) for one in kernels.variants}) > 1:
        raise ValueError(
            "C cannot express an argument that is a tuple in one variant and something else, or a "
            "tuple of a different length, in another: make one set for each"
        )
    groups: list[_Group] = []
    for index, variant in enumerate(kernels.variants):
        elements = [
            f"{element_of(kind)} {rank_of(kind)}" if element_of(kind) else ""
            for kind in leaves_of(variant.types)
        ]
        found = next((one for one in groups if one.takes(elements)), None)
        if found is None:
            groups.append(found := _Group(elements))
        found.add(index, variant, elements)
    if len(groups) == 1:
        return [("", groups[0].variants)]
    made: dict[str, list[tuple[int, SavedVariant]]] = {}
    for one in groups:
        suffix = f"_{one.suffix}"
        while suffix in made:
            suffix += "_"
        made[suffix] = one.variants
    return list(made.items())


def _shape(types: object) -> tuple[Any, ...]:
    """Return the places and the lengths of tuples among types."""
    return tuple(map(_shape, types)) if isinstance(types, tuple) else ()
