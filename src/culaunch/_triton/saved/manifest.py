"""A Triton kernel's entry in a library's manifest: written, and read without trust."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._errors import ImageError
from culaunch._triton.calls.parameters import TritonParameter
from culaunch._triton.expressions import read_expression, write_expression
from culaunch._triton.saved.set import SavedHeuristic
from culaunch._triton.saved.tuned_table import TunedTable
from culaunch._triton.saved.variant import SavedVariant
from culaunch._triton.variants.checks import (
    check_annotation,
    check_arguments,
    check_function_name,
    check_identifier,
    check_settings,
)
from culaunch._triton.variants.constants import checked, decode, encode

if TYPE_CHECKING:
    from collections.abc import Collection

    from culaunch._triton.expressions import Expression
    from culaunch._triton.saved.set import SavedSet

KIND = "triton"


def write_entry(kernels: SavedSet) -> dict[str, Any]:
    """Return the manifest's entry of a set."""
    entry: dict[str, Any] = {
        "kind": KIND,
        "name": kernels.name,
        "parameters": [_write_parameter(one) for one in kernels.parameters],
        "variants": [one.to_manifest() for one in kernels.variants],
        "tuning": None if kernels.table is None else kernels.table.to_manifest(),
    }
    if kernels.zeroes:
        entry["zeroes"] = list(kernels.zeroes)
    if kernels.blocks:
        entry["blocks"] = list(kernels.blocks)
    if kernels.computed:
        entry["heuristics"] = [
            {"name": one.name, "value": write_expression(one.value), "early": one.is_early}
            for one in kernels.computed
        ]
    if kernels.grid is not None:
        entry["grid"] = [write_expression(one) for one in kernels.grid]
    return entry


def version_of(kernels: SavedSet) -> int:
    """Return the lowest version of the format that can represent a set.

    A reader of version 1 would ignore the fields of version 2, and launch wrongly.
    """
    needs_two = (
        kernels.zeroes
        or kernels.blocks
        or any(one.is_heuristic for one in kernels.parameters)
        or any(_has_fields((*one.types, *one.constants.values())) for one in kernels.variants)
        or (kernels.table is not None and kernels.table.has_places)
    )
    return 2 if needs_two else 1


def read_entry(entry: dict[str, Any], members: Collection[str], source: str) -> dict[str, Any]:
    """Return the fields of an entry's :class:`SavedSet`, without its images.

    Raise ImageError if the entry is not a valid set.
    """
    try:
        return _read(entry, members)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        text = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ImageError(
            f"the manifest's entry of {entry.get('name')!r:.60} is invalid: {text:.300}",
            source=source,
        ) from None


def _read(entry: dict[str, Any], members: Collection[str]) -> dict[str, Any]:
    parameters = tuple(_read_parameter(one) for one in checked(entry["parameters"], list))
    names = [one.name for one in parameters]
    constexprs = [one.name for one in parameters if one.is_constexpr]
    if len(set(names)) != len(names):
        raise ValueError("two parameters have the same name")
    variants = tuple(SavedVariant.from_manifest(one) for one in checked(entry["variants"], list))
    if not variants:
        raise ValueError("there are no variants")
    checked_arguments = set()
    for one in variants:
        if len(one.types) != len(names) - len(constexprs):
            raise ValueError("a variant has the wrong number of arguments")
        # Check each signature once, because a set may have a thousand variants of a few signatures.
        if (one.types, one.keys) not in checked_arguments:
            check_arguments(one.types, one.keys)
            checked_arguments.add((one.types, one.keys))
        check_settings(one.constants, one.options, constexprs, names)
        if len(one.constants) != len(constexprs):
            missing = [name for name in constexprs if name not in one.constants]
            raise ValueError(f"a variant does not give the constant {missing[0]}")
        _check_images(one, members)
    return {
        "name": check_function_name(entry["name"]),
        "parameters": parameters,
        "variants": variants,
        "table": _read_table(entry["tuning"], constexprs, names),
        "zeroes": _read_arguments("zeroes", entry, names, constexprs),
        "blocks": _read_arguments("blocks", entry, names, constexprs),
        "computed": _read_heuristics(entry.get("heuristics", []), parameters),
        "grid": _read_grid(entry.get("grid"), names),
    }


def _check_images(variant: SavedVariant, members: Collection[str]) -> None:
    for name in (variant.image, variant.ptx):
        if name is not None and name not in members:
            raise ValueError("a variant's image is not a member")
    # Code for one architecture is a cubin; "compute_80" is only PTX.
    needed = variant.image if variant.arch.startswith("sm_") else variant.ptx
    if needed is None:
        raise ValueError(f"a variant for {variant.arch} has no image")


def _read_table(
    tuning: Any, constexprs: Collection[str], names: Collection[str]
) -> TunedTable | None:
    if tuning is None:
        return None
    table = TunedTable.from_manifest(tuning)
    if not set(names).issuperset(table.key) or len(set(table.key)) != len(table.key):
        raise ValueError("the tuning key has a name that is not a parameter, or repeats one")
    for one in table.entries:
        if len(one.values) != len(table.key):
            raise ValueError("a tuned key and the tuning key differ in length")
        check_settings(one.constants, one.options, constexprs, names)
    return table


def _read_arguments(
    what: str, entry: dict[str, Any], names: Collection[str], constexprs: Collection[str]
) -> tuple[str, ...]:
    """Read the names of arguments to which something is done before a launch."""
    found = tuple(check_identifier(name) for name in checked(entry.get(what, []), list))
    if len(set(found)) != len(found) or not set(found) <= set(names) - set(constexprs):
        raise ValueError(f"a name among {what} is not an argument, or is repeated")
    return found


def _read_heuristics(
    entries: Any, parameters: tuple[TritonParameter, ...]
) -> tuple[SavedHeuristic, ...]:
    given = {one.name for one in parameters if one.is_heuristic}
    # An expression may read arguments without a heuristic, and earlier heuristics. This order rules
    # out cycles.
    open_names = {one.name for one in parameters} - {
        check_identifier(checked(one, dict)["name"]) for one in checked(entries, list)
    }
    made = []
    # Heuristics above the autotuner come first. Each may read the results of the earlier ones.
    is_early = True
    for one in entries:
        if one["name"] not in given or one["name"] in open_names:
            raise ValueError("a heuristic sets an argument that it must not set, or sets one twice")
        if checked(one["early"], bool) and not is_early:
            raise ValueError("an early heuristic comes after a late one")
        is_early = one["early"]
        value = read_expression(one["value"], open_names)
        made.append(SavedHeuristic(one["name"], value, is_early))
        open_names.add(one["name"])
    return tuple(made)


def _read_grid(entry: Any, names: Collection[str]) -> tuple[Expression, ...] | None:
    if entry is None:
        return None
    sizes = tuple(read_expression(one, names) for one in checked(entry, list))
    if not 1 <= len(sizes) <= 3:
        raise ValueError("a grid must have 1 to 3 numbers")
    return sizes


def _write_parameter(one: TritonParameter) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": one.name,
        "annotation": one.annotation,
        "constexpr": one.is_constexpr,
        "const": one.is_const,
        "specialize": one.specialize,
        "align": one.align,
    }
    if one.is_heuristic:
        entry["heuristic"] = True
    if one.has_default:
        try:
            entry["default"] = encode(one.default)
        except (TypeError, ValueError):  # a call must pass it then
            return entry
    return entry


def _read_parameter(entry: Any) -> TritonParameter:
    entry = checked(entry, dict)
    return TritonParameter(
        name=check_identifier(entry["name"]),
        annotation=check_annotation(entry["annotation"]),
        is_constexpr=checked(entry["constexpr"], bool),
        is_const=checked(entry["const"], bool),
        specialize=checked(entry["specialize"], bool),
        align=checked(entry["align"], bool),
        has_default="default" in entry,
        default=decode(entry.get("default")),
        is_heuristic=checked(entry.get("heuristic", False), bool),
    )


def _has_fields(types: tuple[Any, ...]) -> bool:
    return any(
        isinstance(kind, tuple) and (hasattr(kind, "_fields") or _has_fields(kind))
        for kind in types
    )
