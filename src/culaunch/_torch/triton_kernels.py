"""Triton kernels as operators: the function that launches one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_list
from culaunch._base.values import spell
from culaunch._function import function as make_function
from culaunch._torch.package import torch_package

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from culaunch._function import Function

_SCHEMA_TYPES = {"int": int, "SymInt": int, "float": float, "bool": bool, "str": str}


def kernel_function(
    kernel: Any,
    grid: Any,
    constants: Mapping[str, Any] | None,
    mutates: Sequence[str] | None,
    schema: str | None,
) -> Function[..., Any]:
    """Return a function that launches a native Triton kernel, or a saved set, and returns nothing.

    Raises
    ------
    TypeError, ValueError
        If the grid is missing, or the kernel does not have a constant.
    """
    if grid is None:
        raise TypeError(
            f"grid is missing for the Triton kernel {kernel.name}: pass a tuple, or a function of "
            "the arguments, grid=lambda meta: (...,)"
        )
    given = dict(constants or {})
    own = [one.name for one in kernel.own_parameters]
    folded = {one.name for one in kernel.own_parameters if one.is_constexpr}
    for name in given:
        if not isinstance(name, str) or not name.isidentifier():
            raise TypeError(f"constants must have the names of parameters (got {spell(name)})")
        if name in own and name not in folded:
            raise ValueError(
                f"constants must not contain {name}, which each launch of {kernel.name} passes: "
                "it is an argument of the operator"
            )
    # The kernel's compile-time values are fixed for the operator; the rest are its arguments.
    names = [name for name in own if name not in folded and name not in given]
    scope: dict[str, Any] = {"kernel": kernel, "grid": grid}
    words = [f"{name}={name}" for name in names]
    for name, value in given.items():
        scope[f"constant_{name}"] = value
        words.append(f"{name}=constant_{name}")
    exec(  # noqa: S102 - names of parameters
        f"def body({', '.join(names)}):\n    kernel[grid]({', '.join(words)})", scope
    )
    body = scope.pop("body")
    body.__name__ = body.__qualname__ = kernel.name
    body.__module__ = getattr(kernel, "__module__", __name__)
    types = _types(kernel) if schema is None else _types_of(schema)
    body.__annotations__ = {name: types[name] for name in names if types.get(name) is not None}
    if mutates is not None:
        mutates = checked_list("mutates", mutates, "names of parameters")
    made: Callable[..., Function[..., Any]] = make_function(mutates=mutates)
    return made(body)


def _types(kernel: Any) -> dict[str, Any]:
    """Return the types of the kernel's numbers. A parameter without a type is an array."""
    found = {one.name: _python_type(one.annotation) for one in kernel.own_parameters}
    for variant in getattr(kernel, "variants", ()):
        for one, kind in zip(kernel.own_parameters, variant.types, strict=False):
            found[one.name] = found[one.name] or _python_type(kind)
    return found


def _types_of(schema: str) -> dict[str, Any]:
    given = torch_package()._C.parse_schema(f"x::y{schema}")
    return {one.name: _SCHEMA_TYPES.get(str(one.type)) for one in given.arguments}


def _python_type(kind: Any) -> Any:
    text = str(kind)
    if text in ("i1", "u1"):
        return bool
    if re.fullmatch(r"[iu]\d+", text):
        return int
    return float if re.fullmatch(r"(fp|bf)\d+", text) else None
