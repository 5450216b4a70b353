"""The dimensions of traced values: which of them are one, and which are reduced.

Where values meet, their dimensions are compared, as broadcasting does, and those that meet are one
from then on. A kernel runs over dimensions, whichever array they came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._elementwise.graph import Node, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from culaunch._elementwise import dtypes as dt
    from culaunch._elementwise.reductions.combiner import Combiner


class Label:
    """A dimension that arrays have in common.

    Attributes
    ----------
    size : int
        A number of the call, in the body of a function.
    is_several : bool
        Whether it is known that the size is not 1.
    """

    def __init__(self, size: Any) -> None:
        self.size = size
        self.is_several = False
        self._joined: Label | None = None

    def root(self) -> Label:
        """Return the label that represents this one and all joined ones."""
        label = self
        while label._joined is not None:
            label = label._joined
        return label

    def join(self, other: Label) -> None:
        """Join two dimensions into one."""
        if self.root() is not other.root():
            other.root().is_several |= self.root().is_several
            self.root()._joined = other.root()  # noqa: SLF001


# None is a dimension of one element.
Dims = tuple["Label | None", ...]


@dataclass(frozen=True)
class Reduction:
    """How a node reduces."""

    combiner: Combiner
    labels: tuple[Label, ...]
    """The dimensions that it reduces, as they were when it was traced."""
    axes: tuple[int, ...]
    keepdims: bool


if TYPE_CHECKING:
    Check = Callable[[Any, Callable[[], str], type[Exception]], None]


class ShapedTrace(Trace):
    """A trace that knows the shape of every value.

    Parameters
    ----------
    name : str
    check : callable, optional
        The check of the body that calls the function. A program repeats it in every call.

    Attributes
    ----------
    dims : dict of Node to tuple
    places : tuple of (int or None), optional
        Of a function for gradients: for each array argument its result, None if it has none.
    is_gradient : bool
        Whether it computes gradients, whose divisions by a row's value need not be exactly rounded.
    """

    def __init__(self, name: str, check: Check | None = None) -> None:
        super().__init__(name)
        self.check: Check = check or _check
        self.dims: dict[Node, Dims] = {}
        self.places: tuple[int | None, ...] | None = None
        self.is_gradient = False

    def array(self, index: int, dtype: dt.DType, shape: tuple[Any, ...]) -> Node:
        """Return the node of an array argument."""
        node = self.input(index, dtype)
        self.dims[node] = tuple(
            None if type(size) is int and size == 1 else Label(size) for size in shape
        )
        return node

    def operation(
        self,
        op: str,
        dtype: dt.DType,
        args: tuple[Node, ...],
        index: int = 0,
        detail: Hashable | None = None,
    ) -> Node:
        """Return the node of an operation; its operands broadcast to its shape."""
        node = super().operation(op, dtype, args, index, detail)
        if node not in self.dims:
            self.dims[node] = self.together(op, args)
        return node

    def of(self, node: Node) -> Dims:
        """Return the dimensions of a node; numbers have none."""
        return self.dims.get(node, ())

    def labels(self, node: Node) -> frozenset[Label]:
        """Return the dimensions of more than one element."""
        return frozenset(label.root() for label in self.of(node) if label is not None)

    def together(self, what: str, args: tuple[Node, ...]) -> Dims:
        """Return the dimensions that operands broadcast to."""
        dims: Dims = ()
        for node in args:
            own = self.of(node)
            missing = len(own) - len(dims)
            padded = (*[None] * missing, *dims), (*[None] * -missing, *own)
            dims = tuple(self._common_label(what, a, b) for a, b in zip(*padded, strict=True))
        return dims

    def _common_label(self, what: str, a: Label | None, b: Label | None) -> Label | None:
        if a is None or b is None:
            return b if a is None else a
        a, b = a.root(), b.root()
        # Sizes are numbers of the call, so each comparison is a guard.
        if a is b:
            return a
        if a.size is b.size or a.size == b.size:
            a.join(b)
            return b
        # If one of two different sizes is 1, the other is not, and no later check repeats this.
        if not a.is_several and a.size == 1:
            b.is_several = True
            return b
        self.check(
            not b.is_several and b.size == 1,
            lambda: (
                f"{self.name}: {what} has operands of {a.size} and {b.size} elements along one "
                "dimension, which do not broadcast"
            ),
            ValueError,
        )
        a.is_several = True
        return a

    def shape(self, node: Node) -> tuple[Any, ...]:
        """Return the shape of a result."""
        return tuple(1 if label is None else label.root().size for label in self.of(node))


def _check(condition: Any, message: Callable[[], str], exception: type[Exception]) -> None:
    if not condition:
        raise exception(message())
