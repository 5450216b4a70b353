"""``SetDispatcher``: the calls of a saved set with decorators or a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._launch import Device, device_count
from culaunch._triton.bodies.numbers import pinned
from culaunch._triton.calls.choice import Choice
from culaunch._triton.calls.messages import raise_binding
from culaunch._triton.calls.object_kinds import type_name
from culaunch._triton.reads.plain_objects import has_plain_shape
from culaunch._triton.saved.blocks import SetBlocks
from culaunch._triton.saved.choice import SetChoice, tensor_types
from culaunch._triton.saved.grid import SavedGrid
from culaunch._triton.saved.variant_dispatch import VariantDispatcher

if TYPE_CHECKING:
    from typing_extensions import Self

    from culaunch._core import DispatcherMethods
    from culaunch._launch.launches.recording import RecordingBody
    from culaunch._triton.calls.choice import Tuned
    from culaunch._triton.saved.set import SavedSet


class SetDispatcher(VariantDispatcher):
    """Applies the decorators' choice first, and then chooses a variant.

    Parameters
    ----------
    saved : SavedSet
    """

    _choice: SetChoice
    _grid: SavedGrid | None
    _blocks: SetBlocks | None
    _inner: VariantDispatcher | None

    def __new__(cls, saved: SavedSet) -> Self:
        """Make one."""
        choice = SetChoice(saved)
        self = super().__new__(cls, saved, choice.key if choice.is_needed else None)
        self._choice = choice
        self._blocks = SetBlocks(saved) if saved.blocks else None
        self._grid = None
        if saved.grid is not None:
            self._grid = SavedGrid(saved.name, saved.grid, choice.common)
        self._inner = VariantDispatcher(saved) if choice.is_needed else None
        if self._inner is not None:
            self._loaded = self._inner._loaded  # noqa: SLF001 - one table for both
        return self

    # ---- called by the native half

    def _tune(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], device: int) -> Tuned:
        """Choose like the decorators, and launch the chosen variant."""
        assert self._inner is not None
        names = self._parameter_names
        values = {**dict(zip(names, args, strict=False)), **kwargs}
        dtypes: list[str] = []
        if self._saved.table is not None:
            own = {name: value for name, value in kwargs.items() if name in names}
            dtypes = tensor_types(self._specialize(args, own))
        capability, only_ptx = self._target(device)
        name, is_only_one = self._name_of(device)
        chosen = self._choice.choose(values, dtypes, capability, only_ptx=only_ptx, device=name)
        # Refuse this like Triton, and before any descriptor is changed.
        for name in (chosen.settings.keys() & values.keys()) - chosen.replaced:
            raise_binding(self, "tuned", name, len(args))
        where = (capability, only_ptx)
        blocks: dict[str, tuple[int, ...]] = {}
        if self._blocks is not None:
            blocks = self._blocks.find({**values, **chosen.settings}, *where)
        for name, block in blocks.items():
            values[name].block_shape = list(block)
        # Use the dispatcher without decorators, because this one would choose again.
        result = self._inner[grid](*args, **{**kwargs, **chosen.settings})
        # Native code reads the same shapes as Python only for plain arrays.
        is_kept = is_only_one and all(
            values.get(name) is None or has_plain_shape(values[name])
            for name in self._choice.shaped
        )
        return (
            chosen.constants, chosen.options, where, False, result, chosen.replaced, is_kept,
            blocks,
        )  # fmt: skip

    def _choose_in_body(
        self,
        body: RecordingBody,
        bound: dict[str, Any],
        options: dict[str, Any],  # noqa: ARG002
    ) -> Choice:
        """Choose like the decorators, and guard the values that the choice depends on."""
        if self._saved.zeroes:
            raise TypeError(
                f"{self.name} sets {', '.join(self._saved.zeroes)} to zero before each launch, "
                "which a function does not do: allocate with cl.zeros in the body, and save the "
                "set "
                "without the hook"
            )
        if self._saved.blocks:
            raise TypeError(
                f"{self.name} sets the blocks of {', '.join(self._saved.blocks)} in Python before "
                "each launch. Save the kernel below the autotuner (.fn) with configs=[...], and "
                "pass descriptors with the blocks of one of them"
            )
        if self._choice.shaped:
            raise TypeError(
                f"{self.name} has a heuristic that reads the shape of "
                f"{', '.join(sorted(self._choice.shaped))}, which a function cannot choose by: "
                "save the kernel below the heuristic, and give its value in the body"
            )
        if not self._choice.is_needed:
            return Choice()
        names = self._parameter_names
        values = dict(bound)
        for index, *_ in self._choice.key:
            if names[index] in values:
                values[names[index]] = pinned(body, values[names[index]])
        dtypes = [
            type_name(bound[name].dtype.name)
            for name in names
            if body.what(bound.get(name)) == "array"
        ]
        capability, only_ptx = self._target(body.ordinal)
        name, _ = self._name_of(body.ordinal)
        return self._choice.choose(values, dtypes, capability, only_ptx=only_ptx, device=name)

    def _name_of(self, device: int) -> tuple[str, bool]:
        """Return a device's name if the choice depends on it, and whether all devices share it."""
        if not self._choice.asks_for_names:
            return "", True
        names = [Device(ordinal).name for ordinal in range(device_count())]
        # The native cache's key has the architecture, which devices with different names may share.
        return names[device], len(set(names)) == 1

    def _read_grid(
        self, grid: Any
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[object, ...], bool] | None:
        """Return the values that the set's grid depends on. Any other grid must be called."""
        reads = grid.reads() if isinstance(grid, SavedGrid) else None
        if reads is None:
            return None
        numbers = {name: i for i, name in enumerate(self._parameter_names)}
        values, nones = (tuple(sorted(numbers[name] for name in names)) for names in reads)
        return values, nones, (), False


if TYPE_CHECKING:  # the extension calls methods of it
    _methods: type[DispatcherMethods] = SetDispatcher
