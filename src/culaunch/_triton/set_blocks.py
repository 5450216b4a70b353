"""Blocks of tensor descriptors that a saved set sets before each launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.object_kinds import type_name
from culaunch._triton.select import arch_fits, settings_fit
from culaunch._triton.tensor_descriptor import split_descriptor

if TYPE_CHECKING:
    from culaunch._triton.saved_set import SavedSet
    from culaunch._triton.saved_variant import SavedVariant


def set_blocks(saved: SavedSet, values: dict[str, Any], capability: int, only_ptx: bool) -> None:
    """Give the descriptors of a call the blocks of the first configuration that fits it.

    Parameters
    ----------
    saved : SavedSet
    values : dict
        Arguments, constants and options of the call by name, with what was chosen for it.
    capability : int
        10 major + minor of the device.
    only_ptx : bool
        Whether the driver takes nothing but PTX (the emulator).
    """
    parameters = {one.name: one for one in saved.parameters}
    options = {name: value for name, value in values.items() if name not in parameters}
    constants = {
        name: value
        for name, value in values.items()
        if name in parameters and parameters[name].is_constexpr
    }
    given = {name: values.get(name) for name in saved.blocks}
    for variant in saved.variants:
        if arch_fits(variant, capability, only_ptx=only_ptx)[0]:
            continue
        if settings_fit(variant, constants, options):
            continue
        blocks = _blocks(saved, variant, given)
        if blocks is None:
            continue
        for name, block in blocks.items():
            given[name].block_shape = list(block)  # type: ignore[union-attr]
        return
    # Where no variant fits, the launch says why.


def _blocks(
    saved: SavedSet, variant: SavedVariant, given: dict[str, Any]
) -> dict[str, tuple[int, ...]] | None:
    """Return a variant's blocks; None where it takes other arguments."""
    open_names = [one.name for one in saved.parameters if not one.is_constexpr]
    types = dict(zip(open_names, variant.types, strict=True))
    found = {}
    for name, value in given.items():
        known = split_descriptor(types[name])
        if (known is not None) != hasattr(value, "block_shape"):
            return None
        if known is None:
            continue
        element, block = known
        dtype = getattr(value.base, "dtype", None)
        if dtype is None or type_name(dtype) != element or len(value.shape) != len(block):
            return None
        found[name] = block
    return found
