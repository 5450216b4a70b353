"""Merges entries of one function from several libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Archs = list[list[str]]


def merged(
    name: str, entries: list[dict[str, Any]], archs: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    """Merge entries: the kinds of all, and several programs if those for one kind differ.

    Parameters
    ----------
    name : str
        The function's.
    entries : list
        Of the same function, saved for different kinds of arguments, or on different devices.
    archs : mapping
        The architectures of each member that is an image.

    Raises
    ------
    ValueError
        If they are not of one function, or two programs would serve the same call.
    """
    first = entries[0]
    for other in entries[1:]:
        for key in ("parameters", "backward", "forward"):
            if other.get(key) != first.get(key):
                raise ValueError(
                    f"two functions have the name {name} and different {key}: rename one"
                )
    # An array counts as written if any library knows this.
    mutates = {one for entry in entries for one in entry["mutates"]}
    may = {one for entry in entries for one in entry["may_mutate"]} - mutates
    names = [one["name"] for one in first["parameters"]]
    return {
        **first,
        "mutates": [one for one in names if one in mutates],
        "may_mutate": [one for one in names if one in may],
        "kinds": _kinds(name, [kind for one in entries for kind in one["kinds"]], archs),
    }


def _kinds(name: str, kinds: list[Any], archs: Mapping[str, tuple[str, ...]]) -> list[Any]:
    groups: dict[str, list[Any]] = {}
    for one in kinds:
        # Compare by text, because JSON's 1 and true are equal in Python.
        group = groups.setdefault(repr(one["arguments"]), [])
        if not any(_is_same(one, other) for other in group):
            group.append(one)
    found = []
    for group in groups.values():
        if len(group) == 1:
            found.append({key: value for key, value in group[0].items() if key != "archs"})
            continue
        for index, one in enumerate(group):
            own = _archs_of(one, archs)
            for other in group[:index]:
                if _archs_of(other, archs) == own:
                    where = " and ".join(", ".join(image) for image in own) or "any device"
                    raise ValueError(
                        f"two functions have the name {name} and a program for {one['arguments']} "
                        f"on {where}: rename one, or save it with the other's paths"
                    )
            found.append({**one, "archs": own})
    return found


def _is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two programs do the same. The places in their bodies may differ."""
    return all(one[key] == other[key] for key in ("program", "constants", "texts", "writes"))


def _archs_of(kind: dict[str, Any], archs: Mapping[str, tuple[str, ...]]) -> Archs:
    """Return the architectures of each image that a program needs."""
    images = {archs[member] for one in kind["constants"] for member in _images(one)}
    return [list(one) for one in sorted(images)]


def _images(constant: Any) -> list[str]:
    if type(constant) is dict and "kernel" in constant:
        return [constant["kernel"]["image"]]
    return []
