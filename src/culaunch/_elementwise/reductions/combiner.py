"""How two partial results of a reduction become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._base.values import counted, spell
from culaunch._elementwise.apply import convert
from culaunch._elementwise.element_code import literal, make_element_code
from culaunch._elementwise.graph import Trace
from culaunch._elementwise.trace import Value, node_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._elementwise import dtypes as dt


@dataclass(frozen=True)
class Combiner:
    """An associative and commutative operation on one value or several."""

    name: str
    """In the names of kernels."""
    dtypes: tuple[dt.DType, ...]
    """Of the components."""
    identity: tuple[str, ...]
    """In C++."""
    body: tuple[str, ...]
    """Statements that make ``y0``, ... of ``x0``, ...: the components of one partial result, and
    then those of the other."""
    definitions: tuple[str, ...] = ()
    """C++ at namespace level that the body needs."""


def make_combiner(
    name: str,
    dtypes: tuple[dt.DType, ...],
    identity: tuple[Any, ...],
    combine: Callable[..., Any],
) -> Combiner:
    """Trace a combining function; of several components it takes, and returns, tuples."""
    count = len(dtypes)
    trace = Trace(name)
    values = [Value(trace.input(i, dtypes[i % count])) for i in range(2 * count)]
    sides = (values[0], values[1]) if count == 1 else (tuple(values[:count]), tuple(values[count:]))
    results = combine(*sides)
    results = results if isinstance(results, (tuple, list)) else (results,)
    if len(results) != count:
        raise TypeError(
            f"{name}: combine must return {counted(count, 'value')}, as many as it combines (got "
            f"{len(results)})"
        )
    nodes = []
    for i, (result, dtype) in enumerate(zip(results, dtypes, strict=True)):
        if not isinstance(result, Value) or node_of(result).trace is not trace:
            raise TypeError(
                f"{name}: combine must return values that it computes only from its arguments (got "
                f"{spell(result)})"
            )
        node = node_of(result)
        if node.dtype != dtype and not node.dtype.is_weak:
            raise TypeError(
                f"{name}: combine must return {dtype.name}, the type of component {i} (got "
                f"{node.dtype.name}): convert the map's values, or cast with ew.astype"
            )
        nodes.append(convert(node, dtype, name))
    body = make_element_code(tuple(nodes)).body
    return Combiner(name, dtypes, tuple(map(literal, identity, dtypes)), body)
