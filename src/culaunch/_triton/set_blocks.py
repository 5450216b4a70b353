"""Blocks of tensor descriptors that a saved set sets before each launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.object_kinds import type_name
from culaunch._triton.select import arch_fits, settings_fit
from culaunch._triton.tensor_descriptor import split_descriptor

if TYPE_CHECKING:
    from culaunch._triton.saved_set import SavedSet
    from culaunch._triton.saved_variant import SavedVariant

# The element type and the number of dimensions of each descriptor; None of what is none.
Kinds = tuple["tuple[str, int] | None", ...]
Blocks = tuple["tuple[int, ...] | None", ...]
_MOST_KEPT = 1000


class SetBlocks:
    """The blocks of a set's descriptors, which follow from the configuration.

    Parameters
    ----------
    saved : SavedSet
    """

    def __init__(self, saved: SavedSet) -> None:
        self._saved = saved
        # What is neither a constant nor an option decides nothing.
        self._arguments = {one.name for one in saved.parameters if not one.is_constexpr}
        self._constants = {one.name for one in saved.parameters if one.is_constexpr}
        self._known: dict[tuple[Any, ...], Blocks | None] = {}

    def set(self, values: dict[str, Any], capability: int, only_ptx: bool) -> None:
        """Give the descriptors of a call the blocks of the first configuration that fits it.

        Parameters
        ----------
        values : dict
            Arguments, constants and options of the call by name, with what was chosen for it.
        capability : int
            10 major + minor of the device.
        only_ptx : bool
            Whether the driver takes nothing but PTX (the emulator).
        """
        given = [values.get(name) for name in self._saved.blocks]
        kinds = tuple(map(_kind, given))
        settings = {name: one for name, one in values.items() if name not in self._arguments}
        # As text: True is not 1, and not everything that a call may give can be a key.
        key = (capability, only_ptx, repr(settings), kinds)
        if key not in self._known:
            if len(self._known) == _MOST_KEPT:
                self._known.clear()
            self._known[key] = self._find(settings, kinds, capability, only_ptx=only_ptx)
        # Where no variant fits, the launch says why.
        for value, block in zip(given, self._known[key] or (), strict=False):
            if block is not None:
                value.block_shape = list(block)  # type: ignore[union-attr]

    def _find(
        self, settings: dict[str, Any], kinds: Kinds, capability: int, *, only_ptx: bool
    ) -> Blocks | None:
        constants = {name: one for name, one in settings.items() if name in self._constants}
        options = {name: one for name, one in settings.items() if name not in self._constants}
        for variant in self._saved.variants:
            if arch_fits(variant, capability, only_ptx=only_ptx)[0]:
                continue
            if not settings_fit(variant, constants, options):
                types = [split_descriptor(one) for one in self._types(variant)]
                if tuple(one and (one[0], len(one[1])) for one in types) == kinds:
                    return tuple(one and one[1] for one in types)
        return None

    def _types(self, variant: SavedVariant) -> list[Any]:
        names = [one.name for one in self._saved.parameters if not one.is_constexpr]
        types = dict(zip(names, variant.types, strict=True))
        return [types[name] for name in self._saved.blocks]


def _kind(value: Any) -> tuple[str, int] | None:
    if not hasattr(value, "block_shape"):
        return None
    return type_name(getattr(value.base, "dtype", None)), len(value.shape)
