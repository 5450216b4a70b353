"""A body that runs on shapes only, for a framework's shape inference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.places import here
from culaunch._base.values import spell
from culaunch._function.arrays import views
from culaunch._function.arrays.array import Layout, Root, StandIn
from culaunch._function.arrays.device import BodyDevice
from culaunch._function.arrays.pointers import Pointer
from culaunch._function.arrays.tensor_maps import TensorMapStandIn, checked_box
from culaunch._function.body.bodies import Body
from culaunch._function.declarations.annotation_checks import check
from culaunch._function.programs.catchers import boundary
from culaunch._function.symbolic.symbols import foreign_kind
from culaunch._function.tracing.arguments import Argument
from culaunch._function.tracing.runs import call, inlined, recording
from culaunch._function.tracing.scope import plainly
from culaunch._launch.devices.driver import current_driver
from culaunch._launch.formats.dtype import DType, as_dtype, find_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._function.declarations.declaration import Declaration


class AbstractArray:
    """A shape and an element type, as an argument or a result of :func:`run_abstract`.

    Attributes
    ----------
    shape : tuple
        Ints, or stand-ins for them.
    dtype : DType
    strides : tuple or None
        In elements; None: contiguous.
    argument : tuple[int, ...] or None
        For a result that is an unchanged argument: the parameter, and the places in its lists.
    base : tuple[int, ...] or None
        For a result that is a view of an argument: the same.
    dense : callable or None
        For an argument: tells whether it is contiguous, if a framework knows more than the strides.
    """

    def __init__(
        self,
        shape: tuple[Any, ...],
        dtype: Any,
        strides: tuple[Any, ...] | None = None,
        *,
        argument: tuple[int, ...] | None = None,
        base: tuple[int, ...] | None = None,
        dense: Callable[[], Any] | None = None,
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = as_dtype(dtype)
        self.strides = strides
        self.argument = argument
        self.base = base
        self.dense = dense

    def __repr__(self) -> str:
        return f"<{self.dtype!r} of shape {self.shape}>"


class AbstractBody(Body):
    """A run of a body on shapes: launches are left out."""

    mode = "abstract"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        # Device 0, whatever the tensors' device is. Its attributes are hints for shapes, and the
        # graph runs on the device of its tensors.
        self.device = BodyDevice(lambda: 0, _attribute)
        self.uses: dict[int, set[str]] = {}

    def check(
        self, condition: Any, message: str | Callable[[], str], exception: type[Exception]
    ) -> None:
        """Raise unless a condition holds.

        A condition on a framework's symbol becomes a guard. If nothing is known about the size yet,
        for example for the number of nonzero elements, the check happens when the graph runs.
        """
        if foreign_kind(condition) is bool:
            place = here()
            # torch's own way to state a condition. It becomes a guard of the graph, or a check in
            # the graph if the number is known only at run time.
            condition = condition.node.expect_true(place.file, place.line)
        super().check(condition, message, exception)

    def _allocate(self, shape: tuple[Any, ...], dtype: DType, _: int) -> StandIn:
        """Return a stand-in for an allocation."""
        layout = Layout(shape, views.dense_strides(shape), lambda: True)
        root = Root("allocated", f"the array of line {here().line}")
        return StandIn(self, root, dtype, layout, is_whole=True)

    def address(self, root: Root) -> int | None:
        """Return an address that is a multiple of every alignment."""
        # Shapes do not depend on alignment; the path of aligned arrays is the usual one.
        return None if root.kind == "allocated" else 0

    def pointer(self, array: StandIn) -> Any:
        """Return the stand-in for an address."""
        return Pointer(array)

    def _enqueue(self, kernel: Any, _: object, __: object, args: tuple[Any, ...]) -> None:
        """Check a launch as far as possible, without launching."""
        place = here()
        for index, value in enumerate(args):
            # A framework's symbol has no value to check.
            if not hasattr(value, "node"):
                Argument(kernel, index, value, place).rule()

    def _call(self, *_: Any) -> None:
        """Skip a call."""

    def tensor_map(
        self, array: StandIn, box: Any, steps: Any, numbers: tuple[int, ...], _: object
    ) -> TensorMapStandIn:
        """Describe an array for bulk copies, which are skipped."""
        sizes, strides = checked_box(array, box, steps)
        return TensorMapStandIn(array, sizes, strides, numbers)

    def inline(self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run the body of another function as part of this body."""
        return inlined(
            self, function.declaration, plainly(function.declaration.body), args, keywords
        )


@boundary
def run_abstract(declaration: Declaration, values: tuple[Any, ...]) -> Any:
    """Run a body on shapes.

    Parameters
    ----------
    declaration : Declaration
    values : tuple
        One for each parameter: an :class:`AbstractArray` for an array, and numbers, None and the
        rest as in a call; a framework's symbolic numbers, too.

    Returns
    -------
    object
        What the body returns, with an :class:`AbstractArray` for each array.
    """
    body = AbstractBody(declaration.name)
    arguments = [
        _stand_in(body, name, value, (parameter,))
        for parameter, (name, value) in enumerate(zip(declaration.names, values, strict=True))
    ]
    try:
        with recording(body):
            check(body, declaration.wanted, declaration.names, arguments)
            value = call(declaration, plainly(declaration.body), arguments)
        body.require_possible()
        return _result(value)
    except Exception:
        body.require_possible()
        raise
    finally:
        # Stand-ins that the body has kept are invalid from now on.
        body.is_open = False


def _stand_in(body: AbstractBody, name: str, value: Any, path: tuple[int, ...]) -> Any:
    if isinstance(value, AbstractArray):
        strides = value.strides
        dense = (lambda: True) if strides is None else value.dense
        layout = Layout(
            value.shape, views.dense_strides(value.shape) if strides is None else strides, dense
        )
        root = Root("argument", name, parameter=path[0], real=path)
        return StandIn(body, root, value.dtype, layout, is_whole=True)
    if type(value) in (tuple, list):
        return type(value)(
            _stand_in(body, f"{name}[{i}]", one, (*path, i)) for i, one in enumerate(value)
        )
    dtype = None if value is None or isinstance(value, str) else find_dtype(value)
    return value if dtype is None else dtype


def _result(value: Any) -> Any:
    if isinstance(value, StandIn):
        root = value._root
        path = root.real if root.kind == "argument" else None
        whole = value._is_whole
        return AbstractArray(
            value.shape,
            value.dtype,
            value.strides,
            argument=path if whole else None,
            base=None if whole else path,
        )
    if type(value) in (tuple, list):
        return type(value)(map(_result, value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_result, value))
    if type(value) is dict:
        return {key: _result(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str, DType)) or hasattr(value, "node"):
        return value
    raise TypeError(f"a function must return arrays and numbers (got {spell(value)})")


def _attribute(number: int, _: str) -> int:
    driver = current_driver()
    return driver.attribute(number, driver.current_device())
