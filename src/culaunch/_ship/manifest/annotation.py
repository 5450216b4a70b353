"""The accepted values of a parameter, as written in a manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._function.declarations.annotations import Array, Wanted, dtype_of
from culaunch._ship.manifest.json_lists import list_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._function.declarations.declaration import Declaration

_PLAIN: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}


def write_annotation(want: Wanted) -> dict[str, Any]:
    """Return a parameter's annotation as JSON."""
    array: dict[str, Any] | None = None
    if want.array is not None:
        one = want.array
        array = {
            "dtypes": None if one.dtypes is None else [dtype.name for dtype in one.dtypes],
            "same": one.same,
            "dims": None if one.dims is None else " ".join(map(str, one.dims)),
        }
    return {
        "array": array,
        "plain": [kind.__name__ for kind in want.plain],
        "optional": want.is_optional,
    }


def read_annotation(data: Any) -> Wanted:
    if type(data) is not dict or type(data.get("optional")) is not bool:
        raise ValueError(
            f"an annotation must be an object with optional, true or false (got {data!r:.60})"
        )
    plain = list_of(data, "plain", len(_PLAIN))
    if not all(isinstance(one, str) and one in _PLAIN for one in plain):
        raise ValueError("plain must contain only int, float, bool and str")
    array = data.get("array")
    made = None
    if array is not None:
        if type(array) is not dict:
            raise ValueError(f"array must be an object or null (got {array!r:.60})")
        dtypes, other, dims = (array.get(key) for key in ("dtypes", "same", "dims"))
        dtype: Any = None
        if other is not None:
            dtype = dtype_of(other)
        elif dtypes is not None:
            dtype = " | ".join(texts_of(array, "dtypes", 64))
        # Use the public class, which refuses anything that an annotation cannot express.
        made = Array(dtype, dims)
        made.is_optional = data["optional"]
    return Wanted(made, tuple(_PLAIN[one] for one in plain), data["optional"])


def write_parameters(
    declaration: Declaration, write: Callable[[Any, str], Any]
) -> list[dict[str, Any]]:
    """Return the parameters of a function as JSON; `write` gets a value and its name."""
    found = []
    for index, (name, how) in enumerate(declaration.parameters):
        entry: dict[str, Any] = {"name": name, "how": how}
        if name in declaration.defaults:
            entry["default"] = write(declaration.defaults[name], f"the default of {name}")
        if index in declaration.wanted:
            entry["annotation"] = write_annotation(declaration.wanted[index])
        found.append(entry)
    return found
