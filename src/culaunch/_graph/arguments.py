"""Arguments of a node by their names."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from culaunch._core import Launcher

if TYPE_CHECKING:
    from culaunch._core import GraphNode


def with_names(
    node: GraphNode, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return all arguments of a call; some are given by name."""
    if isinstance(node.callable, Launcher):
        return _of_kernel(node, args, named), {}
    keywords = node._names or ()  # noqa: SLF001
    count = len(node.args) - len(keywords)
    bound = inspect.signature(node.callable).bind(
        *(args or node.args[:count]), **dict(zip(keywords, node.args[count:], strict=True))
    )
    unknown = sorted(set(named) - set(bound.signature.parameters))
    if unknown:
        raise TypeError(
            f"the call has no parameter {unknown[0]!r}: its parameters are "
            f"{', '.join(bound.signature.parameters)}"
        )
    bound.arguments.update(named)
    return bound.args, bound.kwargs


def _of_kernel(node: GraphNode, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    kernel: Any = node.callable.kernel
    names = [parameter.name for parameter in kernel.signature.parameters]
    values = list(args or node.args)
    for name, value in named.items():
        if name not in names:
            known = ", ".join(one for one in names if one) or "none"
            raise TypeError(
                f"{kernel.name} has no parameter {name!r}: its named parameters are {known}. To "
                'name the parameters, use module.kernel(name, signature="float* y, int n")'
            )
        values[names.index(name)] = value
    return tuple(values)
