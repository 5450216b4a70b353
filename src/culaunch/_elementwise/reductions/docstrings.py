"""The parts that the docstrings of reductions share."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., object]")

# A parameter that a docstring only names.
_PARAMETERS = {
    "axis": """axis : int, tuple of int or None, optional
    The dimensions to reduce; all by default.""",
    "keepdims": """keepdims : bool, optional
    Keep the reduced dimensions, with one element each.""",
}
_EXAMPLE = """
Examples
--------
>>> from culaunch import elementwise as ew
>>> function = ew.fuse(lambda x: ew.{name}(x, axis=1))
>>> function(cl.to_device(np.array({array}))).numpy().tolist()
{result}
"""


def reduction(array: str = "", result: str = "") -> Callable[[Function], Function]:
    """Complete the docstring of a reduction: its usual parameters, and an example of its rows."""

    def completed(function: Function) -> Function:
        doc = inspect.getdoc(function)
        if doc is not None:  # python -OO removes docstrings
            lines = (_PARAMETERS.get(line, line) for line in doc.splitlines())
            example = _EXAMPLE.format(name=function.__name__, array=array, result=result)
            function.__doc__ = "\n".join((*lines, example if array else ""))
        return function

    return completed
