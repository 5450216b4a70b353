"""A body that runs as plain Python: launches launch, and a debugger steps through it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from culaunch._base.places import here
from culaunch._function.arrays.array import Layout, Root, StandIn
from culaunch._function.arrays.device import BodyDevice
from culaunch._function.arrays.pointers import Pointer
from culaunch._function.body.bodies import Body, running
from culaunch._function.declarations.annotation_checks import check
from culaunch._function.programs.catchers import boundary
from culaunch._function.tracing.kinds import Kind, first_array, static
from culaunch._function.tracing.runs import call, inlined, recording
from culaunch._function.tracing.scope import plainly
from culaunch._function.tracing.verbs import allocate_as
from culaunch._launch import TensorMap
from culaunch._launch.arrays.allocate import finish_allocation, view_of
from culaunch._launch.arrays.array import array_info
from culaunch._launch.devices.driver import current_driver
from culaunch._launch.formats.dtype import DType, from_dlpack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from culaunch._function.declarations.declaration import Declaration
    from culaunch._function.symbolic.configuration import Configuration


class LiveBody(Body):
    """A run of a body on the arrays of a call."""

    mode = "live"

    def __init__(self, name: str, like: Any, ordinal: int) -> None:
        super().__init__(name)
        self._like = like
        self.ordinal = ordinal
        driver = current_driver()
        self.device = BodyDevice(
            lambda: ordinal, lambda number, _: driver.attribute(number, ordinal)
        )

    def stand_in(self, root: Root, array: Any) -> StandIn:
        """Return the body's stand-in for an array."""
        info = array_info(array)
        dtype = from_dlpack(info.code, info.bits)
        if dtype is None:
            raise TypeError(
                f"{root.name} has an element type that functions do not support (DLPack type "
                f"{info.code}, {info.bits} bits): convert the array"
            )
        root.real, root.address = array, info.address
        return StandIn(self, root, dtype, Layout(info.shape, info.strides), is_whole=True)

    def _allocate(self, shape: tuple[Any, ...], dtype: DType, fill: int) -> StandIn:
        """Allocate with the framework of the call's first array."""
        sizes = tuple(map(int, shape))
        # Leave the body here and below. Otherwise it would also record the real work.
        with running(None):
            made = allocate_as(self._like, sizes, dtype.name, self.ordinal, fill)
        return self.stand_in(Root("allocated", f"the array of line {here().line}"), made)

    def address(self, root: Root) -> int | None:
        """Return an argument's address. An allocation has no known address before it is made."""
        return None if root.kind == "allocated" else root.address

    def pointer(self, array: StandIn) -> int:
        """Return the address of an array's first element."""
        return int(array._root.address + array._offset * array.itemsize)

    def _enqueue(
        self, kernel: Any, configuration: Configuration, predicate: Any, args: tuple[Any, ...]
    ) -> None:
        """Launch now."""
        if predicate is not None and not predicate:
            return
        real = tuple(map(self.real, args))
        with running(None):
            kernel.configure(**configuration)(*real)

    def _call(
        self, function: Callable[..., Any], args: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """Call now."""
        real = tuple(map(self.real, args))
        out = tuple(map(self.real, outputs))
        with running(None):
            function(*real, **({} if not out else {"out": out[0] if len(out) == 1 else out}))

    def tensor_map(
        self, array: StandIn, box: Any, _: object, __: object, keywords: dict[str, Any]
    ) -> TensorMap:
        """Describe an array for bulk copies."""
        with running(None):
            return TensorMap.tiled(self.real(array), box, **keywords)

    def inline(self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run the body of another function as part of this body."""
        return inlined(
            self, function.declaration, plainly(function.declaration.body), args, keywords
        )

    def real(self, value: Any) -> Any:
        """Return the array of a stand-in; any other value is returned unchanged."""
        if isinstance(value, Pointer):
            return self.pointer(value.array) + value.offset
        if not isinstance(value, StandIn):
            return value
        root = value._root
        if value._is_whole:
            return root.real
        return real_view(root.real, value)

    def result(self, value: Any) -> Any:
        """Return a result with real arrays in place of stand-ins."""
        if isinstance(value, StandIn):
            made = self.real(value)
            if value._root.kind == "allocated" and self._like is not None:
                return finish_allocation(self._like, made, 0)
            return made
        if type(value) in (tuple, list):
            return type(value)(map(self.result, value))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self.result, value))
        if type(value) is dict:
            return {key: self.result(item) for key, item in value.items()}
        return value


@boundary
def run_live(declaration: Declaration, kind: Kind, values: tuple[Any, ...]) -> Any:
    """Run a body as plain Python on the arguments of a call."""
    like = first_array(kind, values)
    ordinal = current_driver().current_device() if like is None else array_info(like).device[1]
    body = LiveBody(declaration.name, like, ordinal)
    stand_ins = [
        _stand_in(body, name, entry, value, parameter)
        for parameter, (name, entry, value) in enumerate(
            zip(declaration.names, kind, values, strict=True)
        )
    ]
    try:
        with recording(body):
            check(body, declaration.wanted, declaration.names, stand_ins)
            value = call(declaration, plainly(declaration.body), stand_ins)
        body.require_possible()
        return body.result(value)
    except Exception:
        body.require_possible()
        raise
    finally:
        body.is_open = False


def _stand_in(body: LiveBody, name: str, entry: Any, value: Any, parameter: int) -> Any:
    if entry is int or entry is float:
        return entry(value)
    if type(entry) is not tuple:
        return entry
    if entry[0] == "value":
        return static(value)
    if entry[0] == "array":
        root = Root("argument", name, parameter=parameter, is_read_only=entry[3])
        return body.stand_in(root, value)
    items = [
        _stand_in(body, f"{name}[{i}]", one, value[i], parameter) for i, one in enumerate(entry[1])
    ]
    return tuple(items) if entry[0] == "tuple" else items


def real_view(owner: Any, view: StandIn) -> Any:
    """Return a view of a framework's array."""
    root = type(owner).__module__.partition(".")[0]
    shape, strides = tuple(map(int, view.shape)), tuple(map(int, view.strides))
    offset = int(view._offset)
    if root == "torch":
        # A torch view shares the storage of its base, which autograd and the allocator track.
        torch = sys.modules["torch"]
        base = owner
        dtype = getattr(torch, view.dtype.name)
        if base.dtype != dtype:
            base = base.view(dtype)
        return torch.as_strided(base, shape, strides, base.storage_offset() + offset)
    address = view._root.address + offset * view.itemsize
    return view_of(owner, address, shape, strides, view.dtype.name)
