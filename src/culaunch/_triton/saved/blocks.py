"""Blocks of tensor descriptors that a saved set sets before each launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.calls.object_kinds import type_name
from culaunch._triton.saved.select import arch_fits, settings_fit
from culaunch._triton.tensor_descriptor import split_descriptor

if TYPE_CHECKING:
    from culaunch._triton.saved.set import SavedSet
    from culaunch._triton.saved.variant import SavedVariant

# The element type and the number of dimensions of each descriptor; None for other arguments.


class SetBlocks:
    """The blocks of a set's descriptors, which follow from the configuration.

    Parameters
    ----------
    saved : SavedSet
    """

    def __init__(self, saved: SavedSet) -> None:
        self._saved = saved
        # A name that is neither a constant nor an option does not affect the choice.
        self._arguments = {one.name for one in saved.parameters if not one.is_constexpr}
        self._constants = {one.name for one in saved.parameters if one.is_constexpr}

    def find(
        self, values: dict[str, Any], capability: int, only_ptx: bool
    ) -> dict[str, tuple[int, ...]]:
        """Return the blocks of the first configuration that fits a call, by descriptor.

        Parameters
        ----------
        values : dict
            Arguments, constants and options of the call by name, with what was chosen for it.
        capability : int
            10 major + minor of the device.
        only_ptx : bool
            Whether the driver takes nothing but PTX (the emulator).
        """
        kinds = tuple(_kind(values.get(name)) for name in self._saved.blocks)
        settings = {name: one for name, one in values.items() if name not in self._arguments}
        constants = {name: one for name, one in settings.items() if name in self._constants}
        options = {name: one for name, one in settings.items() if name not in self._constants}
        for variant in self._saved.variants:
            if arch_fits(variant, capability, only_ptx=only_ptx)[0]:
                continue
            if not settings_fit(variant, constants, options):
                types = [split_descriptor(one) for one in self._types(variant)]
                if tuple(one and (one[0], len(one[1])) for one in types) == kinds:
                    names = zip(self._saved.blocks, types, strict=True)
                    return {name: one[1] for name, one in names if one is not None}
        return {}  # the launch reports why none fits

    def _types(self, variant: SavedVariant) -> list[Any]:
        names = [one.name for one in self._saved.parameters if not one.is_constexpr]
        types = dict(zip(names, variant.types, strict=True))
        return [types[name] for name in self._saved.blocks]


def _kind(value: Any) -> tuple[str, int] | None:
    if not hasattr(value, "block_shape"):
        return None
    return type_name(getattr(value.base, "dtype", None)), len(value.shape)
