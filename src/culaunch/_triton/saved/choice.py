"""A saved set's choices for a call, like its decorators' choices, before it selects a variant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.calls.choice import Choice
from culaunch._triton.expressions import SHAPES, ExpressionError, evaluate, names_of, walk
from culaunch._triton.reads.key_kinds import KeyKind
from culaunch._triton.saved.grid import element_type
from culaunch._triton.saved.select import arch_fits, settings_fit
from culaunch._triton.saved.tuned_table import TunedEntry, TunedTable
from culaunch._triton.variants.constants import same_constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._triton.saved.set import SavedHeuristic, SavedSet

_KINDS = (
    ("value", KeyKind.NUMBER),
    ("is_none", KeyKind.NONE),
    ("is_array", KeyKind.TYPE),
    ("dtype", KeyKind.TYPE),
)
_SHAPE_KINDS = {
    "size": KeyKind.SIZE,
    "stride": KeyKind.STRIDE,
    "rank": KeyKind.RANK,
    "count": KeyKind.COUNT,
}


class SetChoice:
    """The tuned table and the heuristics of a set.

    Parameters
    ----------
    saved : SavedSet

    Attributes
    ----------
    is_needed : bool
        Whether a launch needs a choice, or descriptors whose blocks follow from it.
    key : list of (int, KeyKind, int)
        The parameters that the choice depends on, with their kinds and the dimensions of shapes.
    shaped : frozenset of str
        The arguments that have a part of their shape read by a heuristic.
    common : dict
        The constants that all variants agree on.
    """

    def __init__(self, saved: SavedSet) -> None:
        self._saved = saved
        self._tables: dict[tuple[int, bool, str], TunedTable | None] = {}
        self.common = _common(saved)
        self._computed = frozenset(one.name for one in saved.computed)
        self.is_needed = bool(saved.table is not None or saved.blocks or saved.computed)
        self.key = self._key()
        self.shaped = frozenset(
            name for one in saved.computed for name in names_of(one.value, *SHAPES)
        )

    def choose(
        self,
        values: dict[str, Any],
        dtypes: list[str],
        capability: int,
        *,
        only_ptx: bool,
        device: str = "",
    ) -> Choice:
        """Choose for a call.

        Parameters
        ----------
        values : dict
            The call's arguments by name.
        dtypes : list of str
            The element types of its tensors, in order.
        capability : int
            10 major + minor of the device.
        only_ptx : bool
            Whether the driver takes nothing but PTX (the emulator).
        device : str
            The device's name.

        Raises
        ------
        TypeError, ValueError
            If an argument that a choice depends on is missing, or is nothing to choose by.
        """
        saved = self._saved
        defaults = {one.name: one.default for one in saved.parameters if one.has_default}
        # The call's values override the values common to all variants, which override defaults.
        known = {**defaults, **self.common, **values}
        made = self._heuristics(known, is_early=True)
        # Keep the decorators' order: heuristics above the autotuner, its choice by their results,
        # then the heuristics below, which see the choice.
        known.update(made)
        entry = TunedEntry((), (), {}, {})
        table = self.table_of(capability, only_ptx=only_ptx, device=device)
        if table is not None:
            key = [self.key_value(name, known) for name in table.key]
            entry = table.look_up(key, dtypes)
            known.update(entry.constants)
        made.update(self._heuristics(known, is_early=False))
        return Choice({**entry.constants, **made}, entry.options, frozenset(made))

    @property
    def asks_for_names(self) -> bool:
        """Whether the choice depends on the device's name."""
        table = self._saved.table
        return table is not None and any(one.device for one in table.entries)

    def table_of(self, capability: int, *, only_ptx: bool, device: str = "") -> TunedTable | None:
        """Return the part of the table that is for a device, of variants that run on it."""
        table = self._saved.table
        if table is None:
            return None
        # Compute the part of a device once.
        place = (capability, only_ptx, device)
        if place not in self._tables:
            runnable = [
                one
                for one in self._saved.variants
                if not arch_fits(one, capability, only_ptx=only_ptx)[0]
            ]
            entries = tuple(
                entry
                for entry in table.entries
                if any(not settings_fit(one, entry.constants, entry.options) for one in runnable)
            )
            part = TunedTable(table.key, entries) if entries else None
            self._tables[place] = part and part.of_device(capability, device)
        return self._tables[place]

    def key_value(self, name: str, values: dict[str, Any]) -> Any:
        """Return an argument of the tuning key."""
        value = values.get(name)
        if hasattr(value, "__dlpack__") or hasattr(value, "data_ptr"):
            raise TypeError(
                f"argument {name!r} of {self._saved.name}() must be a number, a bool, a str or "
                "None: the kernel was tuned by its value (got "
                f"{type(value).__module__}.{type(value).__qualname__})"
            )
        return value

    def _heuristics(self, known: dict[str, Any], *, is_early: bool) -> dict[str, Any]:
        """Evaluate the heuristics above, or below, the autotuner."""
        made: dict[str, Any] = {}
        for one in self._saved.computed:
            if one.is_early == is_early:
                made[one.name] = self._heuristic(one, {**known, **made})
        return made

    def _heuristic(self, one: SavedHeuristic, known: dict[str, Any]) -> Any:
        name = self._saved.name
        for read in sorted(names_of(one.value) - known.keys()):
            raise TypeError(
                f"{name}() is missing argument {read!r}: the heuristic {one.name} = {one.value} "
                "reads "
                f"it{self._values_of(read)}"
            )
        try:
            return evaluate(one.value, known, element_type)
        except ExpressionError as error:
            raise ValueError(f"the heuristic {one.name} = {one.value} of {name}: {error}") from None

    def _values_of(self, name: str) -> str:
        found = dict.fromkeys(
            str(one.constants[name]) for one in self._saved.variants if name in one.constants
        )
        return f", and the set has variants for {', '.join(found)}" if found else ""

    def _key(self) -> list[tuple[int, KeyKind, int]]:
        saved = self._saved
        kinds: set[tuple[str, KeyKind, int]] = set()
        if saved.table is not None:
            kinds.update((name, KeyKind.VALUE, 0) for name in saved.table.key)
        if saved.blocks:  # these follow from the constants, whatever their values
            kinds.update(
                (one.name, KeyKind.VALUE, 0) for one in saved.parameters if one.is_constexpr
            )
        for one in saved.computed:
            for op, kind in _KINDS:
                kinds.update((name, kind, 0) for name in names_of(one.value, op))
            for part in walk(one.value):
                if part.op in SHAPES:
                    name, dimension = (*part.operands, 0)[:2]
                    kinds.add((name, _SHAPE_KINDS[part.op], dimension))
        numbers = {one.name: i for i, one in enumerate(saved.parameters)}
        # Values that the set computes follow from the key, so they are not part of it.
        return sorted(
            (numbers[name], kind, dimension)
            for name, kind, dimension in kinds
            if name not in self._computed
        )


def _common(saved: SavedSet) -> dict[str, Any]:
    """Return the constants common to all variants: a call that omits them means these."""
    first, *others = saved.variants
    return {
        name: value
        for name, value in first.constants.items()
        if all(name in one.constants and same_constant(value, one.constants[name])
               for one in others)
    }  # fmt: skip


def tensor_types(description: Sequence[tuple[Any, Any]]) -> list[str]:
    """Return the element types of the tensors of a call, in order."""
    return [kind.lstrip("*k") for kind, _ in description if str(kind).startswith("*")]
