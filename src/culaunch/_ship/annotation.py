"""The accepted values of a parameter, as written in a manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._function.declarations.annotations import Array, Wanted, dtype_of
from culaunch._ship.json_lists import list_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._function.declarations.declaration import Declared

_PLAIN: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}


def write_annotation(want: Wanted) -> dict[str, Any]:
    """Return what a parameter takes, as JSON has it."""
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
        raise ValueError(f"{data!r:.60} is not an annotation")
    plain = list_of(data, "plain", len(_PLAIN))
    if not all(isinstance(one, str) and one in _PLAIN for one in plain):
        raise ValueError("an annotation has int, float, bool and str, and nothing else")
    array = data.get("array")
    made = None
    if array is not None:
        if type(array) is not dict:
            raise ValueError(f"{array!r:.60} is not an array of an annotation")
        dtypes, other, dims = (array.get(key) for key in ("dtypes", "same", "dims"))
        dtype: Any = None
        if other is not None:
            dtype = dtype_of(other)
        elif dtypes is not None:
            dtype = " | ".join(texts_of(array, "dtypes", 64))
        # Through the class that users write, which refuses what no annotation can say.
        made = Array(dtype, dims)
        made.is_optional = data["optional"]
    return Wanted(made, tuple(_PLAIN[one] for one in plain), data["optional"])


def write_parameters(
    declaration: Declared, write: Callable[[Any, str], Any]
) -> list[dict[str, Any]]:
    """Return the parameters of a function as JSON has them; `write` gets a value and what it is."""
    found = []
    for index, (name, how) in enumerate(declaration.parameters):
        entry: dict[str, Any] = {"name": name, "how": how}
        if name in declaration.defaults:
            entry["default"] = write(declaration.defaults[name], f"the default of {name}")
        if index in declaration.wanted:
            entry["annotation"] = write_annotation(declaration.wanted[index])
        found.append(entry)
    return found
