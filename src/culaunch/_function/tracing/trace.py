"""A traced body, whose operations become a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from culaunch._base.places import Place, here
from culaunch._function.arrays import views
from culaunch._function.arrays.array import Layout, Root, StandIn
from culaunch._function.arrays.device import BodyDevice
from culaunch._function.arrays.pointers import Pointer
from culaunch._function.arrays.tensor_maps import TensorMapStandIn, checked_box
from culaunch._function.body.bodies import Body
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.effects import Allocate, Call, Constant, View
from culaunch._function.symbolic.instructions import select
from culaunch._function.symbolic.limits import is_within, is_within_traced
from culaunch._function.symbolic.numbers import SymBool, SymFloat, SymInt
from culaunch._function.symbolic.symbols import hint_of, is_symbolic, make, register_of
from culaunch._launch.devices.driver import current_driver
from culaunch._launch.formats.dtype import DTYPES, DType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from culaunch._function.programs.record import Record, Register
    from culaunch._launch.arrays.array import ArrayInfo


class TraceBody(Body):
    """A run of a body that records.

    Attributes
    ----------
    recorded : Record
        Its plan and its effects.
    uses : dict
        Parameter -> how kernels use its array: ``read``, ``write`` or ``unknown``.
    """

    mode = "trace"

    def __init__(self, name: str, recorded: Record, array_arguments: int, ordinal: int) -> None:
        super().__init__(name)
        self.recorded = recorded
        self.uses: dict[int, set[str]] = {}
        self.array_names: dict[int, str] = {}
        self.ordinal = ordinal
        self.device = BodyDevice(
            lambda: self.number("DEVICE", (), ordinal, "device"), self._device_attribute
        )
        # The numbering of the program's arrays: the arguments first, then the arrays that effects
        # define.
        self._arrays = array_arguments
        self._viewed: dict[Any, int] = {}

    # ---- arguments

    def array_argument(self, root: Root, dtype: int, facts: ArrayInfo) -> StandIn:
        """Return the stand-in of an array argument."""
        self.array_names[root.index] = root.name
        layout = ArgumentLayout(self, root, facts)
        return StandIn(self, root, DTYPES[dtype], layout, is_whole=True)

    def number_argument(self, name: str, parameter: int, value: float) -> Any:
        """Return the stand-in of a Python number."""
        op = "ARG_F" if type(value) is float else "ARG_I"
        return self.number(op, (parameter,), value, name)

    def number(self, op: str, operands: tuple[int, ...], hint: Any, name: str = "") -> Any:
        """Record a read, and name it."""
        register = self.recorded.emit(op, operands, hint)
        if name:
            self.recorded.names.setdefault(register, name)
        return make(self.recorded, register)

    def address(self, root: Root) -> Any:
        """Return the address of an array that has one before the effects, or None."""
        if root.kind != "argument":
            return None
        # A body asks only for the alignment of an address. The whole address would make a program
        # for each array.
        return self.number("ADDRESS", (root.index,), root.address % 256, f"address({root.name})")

    def _base(self, root: Root) -> Any:
        """Record a read of a whole address."""
        # Arrays of a kind without a call have no addresses. The likely ones are far apart.
        likely = root.address or (root.index + 1) << 44
        return self.number("PLACE", (root.index,), likely, f"place({root.name})")

    def pointer(self, array: StandIn) -> Any:
        """Return the stand-in for an address."""
        return Pointer(array)

    # ---- checks

    def check(
        self, condition: Any, message: str | Callable[[], str], exception: type[Exception]
    ) -> None:
        """Record a check. If it fails in this call, it raises now."""
        if is_symbolic(condition) and type(condition) is not SymBool:
            condition = condition != 0
        record = self.recorded
        if not is_symbolic(condition):
            # This may be known only because the message was made earlier and guards a number.
            if isinstance(message, str):
                record.template(message)
            if not condition:
                self._fail(message, exception)
            return
        register = self.register(condition)
        text = self._text(message)
        template, registers = record.template(text)
        if record.branches(fails=record.fails(register)):
            if not record.decide(register):
                raise record.error(exception, text, is_data=isinstance(message, str))
            return
        operands = (register, oc.EXCEPTIONS.index(exception), *registers)
        record.check("CHECK", operands, template)

    def _fail(self, message: str | Callable[[], str], exception: type[Exception]) -> NoReturn:
        is_data = isinstance(message, str)
        raise self.recorded.error(exception, self._text(message), is_data=is_data)

    def _text(self, message: str | Callable[[], str]) -> str:
        """Make a message. In culaunch's own messages, numbers are always tokens."""
        if isinstance(message, str):
            return message
        with self.recorded.tokens():
            return f"{message()} (at {here()})"

    def bounded(self, name: str, value: Any, limits: tuple[int, ...], place: Place) -> None:
        """Record that a number must be within limits.

        Raise OverflowError if it is not within them in this call.
        """
        is_fine = is_within(name, hint_of(value), limits)
        if self.recorded.branches(fails=not is_fine):
            if not is_within_traced(name, value, limits):
                raise OverflowError
            return
        self.recorded.check(name, (self.register(value), *limits), place)

    def refuse(self, error: Exception) -> Exception:
        """Record an operation that no program can do.

        The call raises it, even if the body catches it.
        """
        return self.recorded.refuse(error)

    # ---- numbers

    def register(self, value: Any) -> Register:
        """Return the register of a number."""
        return register_of(self.recorded, value)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """Return x if a launch happens."""
        return x if condition is None else select(condition, x, y)

    def _device_attribute(self, number: int, name: str) -> Any:
        hint = current_driver().attribute(number, self.ordinal) if self.recorded.has_hints else 1
        return self.number("DEVICE_ATTRIBUTE", (number,), hint, f"device.{name}")

    # ---- arrays of the program

    def note_use(self, root: Root, access: str) -> None:
        """Record how an array is used."""
        if root.kind == "argument":
            self.uses.setdefault(root.parameter, set()).add(access)

    def _allocate(self, shape: tuple[Any, ...], dtype: DType, fill: int) -> StandIn:
        """Record an allocation."""
        self.require_open()
        index = self.new_array()
        sizes = tuple(self.register(size) for size in shape)
        self.recorded.effects.append(Allocate(index, dtype.number, fill, here(), sizes))
        root = Root("allocated", f"the array of line {here().line}", index)
        layout = Layout(shape, views.dense_strides(shape), lambda: True)
        return StandIn(self, root, dtype, layout, is_whole=True)

    def _call(
        self, function: Callable[..., Any], args: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """Record a call of something native."""
        given = tuple(map(self._argument_of_call, args))
        numbers = []
        for output in outputs:
            self.note_use(output._root, "write")
            numbers.append(self.viewed(output))
        effects = self.recorded.effects
        effects.append(Call(function, None, here(), given, tuple(numbers)))

    def _argument_of_call(self, value: Any) -> tuple[int, Any]:
        if isinstance(value, StandIn):
            self.note_use(value._root, "read")
            return oc.V_ARRAY, self.viewed(value)
        if is_symbolic(value):
            kinds = {SymInt: oc.V_INT, SymFloat: oc.V_FLOAT, SymBool: oc.V_BOOL}
            return kinds[type(value)], self.register(value)
        return oc.V_CONSTANT, Constant(value)

    def new_array(self) -> int:
        """Return the number of a new array that an effect defines."""
        self._arrays += 1
        return self._arrays - 1

    def pointed(self, array: StandIn, more: Any = 0) -> int:
        """Return the number of an array that begins at a stand-in, plus an offset in bytes."""
        return self._view(array, array._offset * array.itemsize + more, None)

    def viewed(self, array: StandIn) -> int:
        """Return the number of an array with the stand-in's shape, strides and type."""
        self._require_own(array)
        if array._is_whole:
            return array._root.index
        offset = array._offset * array.itemsize
        return self._view(array, offset, (array.shape, array.strides))

    def _view(self, array: StandIn, offset: Any, layout: tuple[Any, Any] | None) -> int:
        self._require_own(array)
        source = array._root.index
        # This is the array itself.
        if layout is None and type(offset) is int and offset == 0:
            return source
        shape, strides = ((), ()) if layout is None else layout
        sizes, steps = tuple(map(self.register, shape)), tuple(map(self.register, strides))
        where = (source, self.register(offset), array.dtype.number)
        # A body may make the same view for each launch. One Python object serves them all.
        key = (*where, sizes, steps)
        found = self._viewed.get(key)
        if found is None:
            found = self._viewed[key] = self.new_array()
            self.recorded.effects.append(View(found, *where, here(), sizes, steps))
        return found

    def _require_own(self, array: StandIn) -> None:
        array._body.require_open()
        if array._body is not self:
            raise TypeError(f"at {here().text()}: {array._root.name} belongs to another call")

    # ---- tensor maps

    def tensor_map(
        self, array: StandIn, box: Any, steps: Any, numbers: tuple[int, ...], _: object
    ) -> TensorMapStandIn:
        """Describe an array of the body for bulk copies."""
        sizes, strides = checked_box(array, box, steps)
        self.check(
            array.strides[-1] == 1,
            lambda: f"{array._root.name}: the last dimension must be contiguous",
            ValueError,
        )
        return TensorMapStandIn(array, sizes, strides, numbers)

    def tensor_map_operands(self, value: TensorMapStandIn) -> tuple[Any, ...]:
        """Return the operands of a parameter that is a tensor map."""
        array, itemsize = value.array, value.array.itemsize
        self.note_use(array._root, "unknown")
        strides = [stride * itemsize for stride in array.strides[:-1]]
        numbers = (*array.shape, *strides, *value.box, *value.steps)
        registers = tuple(map(self.register, numbers))
        return (Constant(value.numbers), self.pointed(array), array.ndim, *registers)


class ArgumentLayout:
    """The sizes and strides of an argument, read on demand."""

    __slots__ = ("_body", "_facts", "_root")

    def __init__(self, body: TraceBody, root: Root, facts: ArrayInfo) -> None:
        self._body = body
        self._root = root
        self._facts = facts

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes."""
        return self._read("DIM", self._facts.shape, "shape")

    @property
    def strides(self) -> tuple[Any, ...]:
        """The steps, in elements."""
        return self._read("STRIDE", self._facts.strides, "strides")

    def dense(self) -> Any:
        """Tell whether it is contiguous."""
        hint = views.is_dense(self._facts.shape, self._facts.strides)
        root = self._root
        return self._body.number("CONTIGUOUS", (root.index,), hint, f"{root.name}.is_contiguous()")

    def _read(self, op: str, hints: tuple[int, ...], word: str) -> tuple[Any, ...]:
        root = self._root
        return tuple(
            self._body.number(op, (root.index, axis), hint, f"{root.name}.{word}[{axis}]")
            for axis, hint in enumerate(hints)
        )
