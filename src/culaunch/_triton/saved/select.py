"""Selects the saved variant for a call, and says why the others do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.architectures import arch_fit
from culaunch._base.values import spell
from culaunch._triton.variants.constants import fields_fit, same_constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._triton.saved.variant import SavedVariant

# Options that every call may name, because a launch or a compiled kernel knows them.
KNOWN_OPTIONS = ("num_warps", "num_stages", "num_ctas", "launch_cooperative_grid", "launch_pdl",
                 "maxnreg")  # fmt: skip


def select(
    variants: Sequence[SavedVariant],
    description: Sequence[tuple[Any, Any]],
    constants: dict[str, Any],
    options: dict[str, Any],
    capability: int,
    *,
    only_ptx: bool,
) -> tuple[int | None, list[str]]:
    """Choose the most specialized variant that fits; the first one among equals.

    Parameters
    ----------
    variants : sequence of SavedVariant
    description : sequence of (type, key)
        The run-time arguments of the call, as Triton describes them.
    constants, options : dict
        The call's values by name; others may be anything.
    capability : int
        The device's capability as 10 major + minor.
    only_ptx : bool
        Whether the driver accepts only PTX (the emulator).

    Returns
    -------
    index : int or None
    reasons : list of str
        For each variant, the reason why it does not fit, or "".
    """
    best: tuple[int, int] | None = None
    index = None
    reasons = []
    for i, variant in enumerate(variants):
        reason, nearness = arch_fits(variant, capability, only_ptx=only_ptx)
        reason = reason or settings_fit(variant, constants, options)
        if not reason:
            reason, score = _arguments_fit(variant, description)
            # The more specialized variant comes first, because its code is faster, then the nearer
            # architecture. Only a better variant replaces the best one, so the first wins among
            # equals.
            if not reason and (best is None or (score, nearness) > best):
                best, index = (score, nearness), i
        reasons.append(reason)
    return index, reasons


def arch_fits(variant: SavedVariant, capability: int, *, only_ptx: bool) -> tuple[str, int]:
    """Say why an image does not run on a device, and how near its architecture is."""
    if only_ptx and variant.ptx is None:
        return "it has no PTX, the only code that the driver in use accepts", 0
    return arch_fit(variant.arch, capability, only_ptx=only_ptx)


def settings_fit(variant: SavedVariant, constants: dict[str, Any], options: dict[str, Any]) -> str:
    """Name the constant or option of a variant that differs from the call's."""
    # A call that omits a constant accepts any value.
    for name, saved in variant.constants.items():
        if name in constants and not same_constant(saved, constants[name]):
            return f"{name} is {spell(constants[name])}, not {spell(saved)}"
    for name, given in options.items():
        saved = setting_of(variant, name)
        if not same_constant(saved, given):
            if saved is None:
                return f"{name} is {spell(given)}, and the variant does not state its own"
            return f"{name} is {spell(given)}, not {spell(saved)}"
    return ""


def setting_of(variant: SavedVariant, name: str) -> Any:
    """Return a constant or an option of a variant by name; None if it has none."""
    if name in variant.constants:
        return variant.constants[name]
    if name in variant.options:
        return variant.options[name]
    if name not in KNOWN_OPTIONS or name == "maxnreg":
        return None
    return (
        getattr(variant.facts, name) if name != "num_stages" else variant.facts.num_stages or None
    )


def _arguments_fit(
    variant: SavedVariant, description: Sequence[tuple[Any, Any]]
) -> tuple[str, int]:
    score = 0
    pairs = zip(variant.types, variant.keys, description, strict=True)
    for i, (kind, key, (given, given_key)) in enumerate(pairs):
        reason, more = _argument_fits(kind, key, given, given_key)
        if reason:
            return f"argument {i} {reason}", 0
        score += more
    return "", score


def _argument_fits(kind: Any, key: Any, given: Any, given_key: Any) -> tuple[str, int]:
    if isinstance(kind, tuple) or isinstance(given, tuple):
        return _tuple_fits(kind, key, given, given_key)
    if kind == "constexpr":
        # A folded constant fits only itself.
        is_same = (
            given_key == key if key is not None else given == "constexpr" and given_key is None
        )
        return ("", 2) if is_same else (f"is not {key!r}", 0)
    if given == "constexpr" and given_key is None:
        return ("", 0) if kind.startswith("*") else ("is None", 0)
    # The native code describes an int of 1 as a constant. It is an int for a variant that has not
    # folded it.
    is_one = given_key == 1
    if not (is_one and given == "constexpr" and kind in ("i32", "i64")):
        # An i32 also fits a variant for i64, because the value is widened. The reverse would lose
        # its high half.
        same = _plain(given) == _plain(kind) or (given == "i32" and kind == "i64")
        if not same:
            return f"is {given}, not {kind}", 0
    if key == "D":
        return ("", 1) if given_key == "D" else ("is not known to be divisible by 16", 0)
    return "", 0


def _tuple_fits(kind: Any, key: Any, given: Any, given_key: Any) -> tuple[str, int]:
    is_like = isinstance(kind, tuple) and isinstance(given, tuple) and len(kind) == len(given)
    if not is_like or not fields_fit(kind, given):
        return f"is {_text(given)}, not {_text(kind)}", 0
    score = 0
    for pair in zip(kind, key, given, given_key, strict=True):
        reason, more = _argument_fits(*pair)
        if reason:
            return f"has an item that {reason}", 0
        score += more
    return "", score


def _plain(kind: str) -> str:
    return "*" + kind[2:] if kind.startswith("*k") else kind


def _text(kind: Any) -> str:
    if not isinstance(kind, tuple):
        return str(kind)
    fields = getattr(kind, "_fields", None)
    return f"a tuple of {len(kind)}" + (f" ({', '.join(fields)})" if fields else "")
