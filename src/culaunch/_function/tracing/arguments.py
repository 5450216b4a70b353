"""The arguments of a recorded launch: the rules of a launch for a body's values."""

from __future__ import annotations

import ctypes
import operator
from typing import TYPE_CHECKING, Any, NoReturn

from culaunch._core import argument_rules
from culaunch._function.arrays.array import StandIn
from culaunch._function.arrays.pointers import Pointer
from culaunch._function.arrays.structures import patches_of
from culaunch._function.arrays.tensor_maps import TensorMapStandIn
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.effects import Constant, Parameter
from culaunch._function.symbolic.arithmetic import as_float, as_int
from culaunch._function.symbolic.limits import fits_float
from culaunch._function.symbolic.numbers import SymBool, SymFloat
from culaunch._function.symbolic.symbols import is_symbolic
from culaunch._function.tracing.argument_classes import STRUCTURES, argument_class
from culaunch._launch import messages
from culaunch._launch.arrays.array import array_info
from culaunch._launch.formats.dlpack import TypeCode
from culaunch._launch.formats.dtype import find_dtype
from culaunch._launch.signatures.parameter_type import ParameterType, TypeClass

if TYPE_CHECKING:
    from culaunch._base.places import Place
    from culaunch._function.tracing.trace import TraceBody
    from culaunch._launch import Kernel

_RULES = tuple(argument_rules().values())
# The sizes of parameters that a row of the rules fits. A row that is missing here has its own size.
_SIZES = {
    "int": (1, 2, 4, 8), "IntEnum": (1, 2, 4, 8), "float": (2, 4, 8), "bool": (1,), "None": (8,),
    "array": (8,),
}  # fmt: skip


class Argument:
    """One argument of a launch in a body, and its error."""

    def __init__(self, kernel: Kernel, index: int, value: Any, place: Place) -> None:
        self.kernel = kernel
        self.index = index
        self.value = value
        self.place = place
        self.parameter = kernel.signature.parameters[index]
        self.kind: ParameterType = self.parameter._kind

    def rule(self) -> str:
        """Return its row in a launch's rules, if the parameter accepts that row."""
        # The rows and their order are the same as in the extension (`argument_rules`). A trace
        # accepts and refuses the same arguments as a launch, with the same messages.
        given = argument_class(self.value)
        size = self.parameter.size
        if given is None:
            self.refuse("unsupported")
        sizes = _SIZES.get(given)
        takes = _RULES[self.kind.type_class]
        if given not in takes or (sizes is not None and size not in sizes):
            self.refuse("kind")
        if self.kind.type_class is TypeClass.POINTER and size != 8:
            self.refuse("kind")
        if given == "array":
            self._check_array()
        return given

    def _check_array(self) -> None:
        value = self.value
        if isinstance(value, StandIn):
            code, bits = value.dtype.code, value.dtype.bits
        else:
            info = array_info(value)
            code, bits = info.code, info.bits
        if self.kind.bits and (self.kind.code, self.kind.bits) != (code, bits):
            self.refuse("element", code | bits << 8 | 1 << 16)
        if isinstance(value, StandIn) and value._root.is_read_only and self.kind.may_write:
            self.refuse("read_only")

    def refuse(self, mismatch: str, detail: int = 0) -> NoReturn:
        """Raise the launch's error, with the line of the body."""
        # The launch composes the message, and needs a launcher for that. Only the line is added.
        launcher: Any = OfKernel(self.kernel)
        try:
            messages.raise_argument(launcher, self.index, self.value, mismatch, detail, -1)
        except (TypeError, ValueError, OverflowError) as error:
            raise type(error)(f"at {self.place.text()}: {error}") from None


class RecordedArgument(Argument):
    """One argument of a launch in a traced body, and its encoding in the program."""

    def __init__(
        self, body: TraceBody, kernel: Kernel, index: int, value: Any, predicate: Any, place: Place
    ) -> None:
        super().__init__(kernel, index, value, place)
        self.body = body
        self.predicate = predicate

    def recorded(self) -> Parameter:
        """Return the program's parameter.

        Errors that other calls may have are checked in its plan.
        """
        return self._place(*getattr(self, f"_{self.rule()}")())

    def _place(self, kind: int, operands: tuple[Any, ...]) -> Parameter:
        return Parameter(kind, self.parameter.offset, self.parameter.size, operands)

    # ---- one method for each kind of object

    def _array(self) -> tuple[int, tuple[Any, ...]]:
        value = self.value
        if not isinstance(value, StandIn):  # a real array that the body closes over
            return oc.P_OBJECT, (Constant(value),)
        root = value._root
        self.body.note_use(root, _access(self.kernel, self.index))
        return oc.P_ARRAY, (self.body.pointed(value),)

    def _address(self) -> tuple[int, tuple[Any, ...]]:
        if isinstance(self.value, Pointer):
            root = self.value.array._root
            self.body.note_use(root, _access(self.kernel, self.index))
            return oc.P_ARRAY, (self.body.pointed(self.value.array, self.value.offset),)
        return self._scalar()

    def _int(self) -> tuple[int, tuple[Any, ...]]:
        return oc.P_INT, (
            self._checked_int(self.value, self.parameter.size, _signedness(self.kind)),
        )

    _IntEnum = _int

    def _checked_int(self, value: Any, size: int, is_signed: int) -> Any:
        if not is_symbolic(value):
            value = operator.index(value)
            # A parameter of unknown sign (2) accepts what fits either sign.
            low = 0 if is_signed == 0 else -(1 << 8 * size - 1)
            high = (1 << 8 * size - 1) if is_signed == 1 else 1 << 8 * size
            if not low <= value < high:
                self.refuse("overflow")
            # The register holds the bits.
            return self.body.register(value - (1 << 64) if value >= 1 << 63 else value)
        # The arguments of a skipped launch are not checked. Zero, which fits every parameter,
        # replaces them.
        guarded = self.body.where(self.predicate, value, 0)
        # A number of the trace is a signed 64-bit int. A signed 64-bit parameter accepts all of
        # them.
        if not (size == 8 and is_signed != 0):
            try:
                self.body.bounded("RANGE", guarded, (size, is_signed), self.place)
            except OverflowError:
                self.refuse("overflow")
        return self.body.register(value)

    def _float(self) -> tuple[int, tuple[Any, ...]]:
        size, kind = self.parameter.size, self.kind
        if size == 2 and not (kind.type_class is TypeClass.FLOAT and kind.bits):
            self.refuse("ambiguous")
        # An unknown type is inferred from its size: 4 bytes are a float, 8 bytes a double.
        code, bits = (kind.code, kind.bits) if kind.bits else (2, 8 * size)
        # float() of a huge int raises an error without the parameter's name.
        if type(self.value) is int and self.value.bit_length() > 1024:  # larger than any double
            self.refuse("overflow")
        return oc.P_FLOAT, (self._checked_float(self.value, code, bits), code, bits)

    def _checked_float(self, value: Any, code: int, bits: int) -> Any:
        if bits != 64:
            if not is_symbolic(value):
                if not fits_float(float(value), code, bits):
                    self.refuse("overflow")
            else:
                guarded = self.body.where(self.predicate, value, 0.0)
                try:
                    self.body.bounded("FLOAT_RANGE", guarded, (code, bits), self.place)
                except OverflowError:
                    self.refuse("overflow")
        return self.body.register(value if is_symbolic(value) else float(value))

    def _bool(self) -> tuple[int, tuple[Any, ...]]:
        return oc.P_BOOL, (self.body.register(self.value),)

    def _None(self) -> tuple[int, tuple[Any, ...]]:  # noqa: N802 - the rule's name
        return oc.P_NULL, ()

    def _scalar(self) -> tuple[int, tuple[Any, ...]]:
        code = getattr(type(self.value), "_type_", None)
        data = bytes(self.value) if isinstance(code, str) else self.value.tobytes()
        self._require_size(len(data))
        given = argument_class(self.value)
        if given == "floating" and self.kind.bits:
            wanted = (self.kind.code, self.kind.bits)
            if wanted != _float_type(self.value):
                self.refuse("kind")
        signedness, negative = _signedness(self.kind), data[-1] & 0x80
        is_signed = _is_signed(self.value)
        # A typed number has its own sign. A negative one must not become a large unsigned one.
        if given == "integer" and negative and signedness != 2 and is_signed != bool(signedness):
            self.refuse("overflow")
        return oc.P_BYTES, (Constant(data), ())

    _integer = _floating = _bool_ = _complex = _scalar

    def _structure(self) -> tuple[int, tuple[Any, ...]]:
        value = self.value
        if isinstance(value, TensorMapStandIn):
            self._require_size(128)
            return oc.P_TENSOR_MAP, self.body.tensor_map_operands(value)
        data = bytes(value) if isinstance(value, STRUCTURES) else value.tobytes()
        self._require_size(len(data))
        patches = []
        for patch in patches_of(value):
            kind, operands = self._patch(patch)
            patches.append(Parameter(kind, patch.offset, patch.size, operands))
        return oc.P_BYTES, (Constant(data), tuple(patches))

    def _patch(self, patch: Any) -> tuple[int, tuple[Any, ...]]:
        value = patch.value
        if patch.kind == "p":
            array, offset = (
                (value.array, value.offset) if isinstance(value, Pointer) else (value, 0)
            )
            # A structure does not record which of its pointers are const.
            self.body.note_use(array._root, "unknown")
            return oc.P_ARRAY, (self.body.pointed(array, offset),)
        if patch.kind == "f":
            if type(value) is not SymFloat:
                value = as_float(value)
            bits = 8 * patch.size
            return oc.P_FLOAT, (self._checked_float(value, 2, bits), 2, bits)
        if patch.kind == "b":
            return oc.P_BOOL, (
                self.body.register(value != 0 if type(value) is not SymBool else value),
            )
        if type(value) is SymFloat:
            raise TypeError(
                f"at {self.place.text()}: field {patch.name} must be an int (got a float): "
                "convert it with int(x)"
            )
        number = self._checked_int(as_int(value), patch.size, int(patch.kind == "i"))
        return oc.P_INT, (number,)

    def _require_size(self, size: int) -> None:
        if size != self.parameter.size:
            self.refuse("size", size)


def _access(kernel: Kernel, index: int) -> str:
    """Return how a kernel uses a pointer's array: ``read``, ``write`` or ``unknown``."""
    signature = kernel.signature
    parameter = signature.parameters[index]
    kind = parameter._kind
    if kind.type_class is not TypeClass.POINTER:
        return "unknown"
    if kind.may_write:
        return "write"
    # `const` is trusted if it comes from a mangled name, the user, or an image that says more than
    # "void*". Otherwise the kernel may write through the pointer.
    is_told = signature.source in ("name", "user") or (
        signature.source == "image" and parameter.type != "void*"
    )
    return "read" if is_told else "unknown"


def _signedness(kind: ParameterType) -> int:
    """Return 1 for signed, 0 for unsigned, 2 for either."""
    if kind.type_class is TypeClass.SIGNED:
        return 1
    return 0 if kind.type_class in (TypeClass.UNSIGNED, TypeClass.POINTER) else 2


def _float_type(value: Any) -> tuple[int, int]:
    code = getattr(type(value), "_type_", None)
    if isinstance(code, str):
        return TypeCode.FLOAT, 8 * ctypes.sizeof(value)
    known = find_dtype(value.dtype)
    return TypeCode.FLOAT if known is None else known.code, 8 * value.dtype.itemsize


def _is_signed(value: Any) -> bool:
    code = getattr(type(value), "_type_", None)
    return code in "bhilq" if isinstance(code, str) else value.dtype.kind == "i"


class OfKernel:
    """The part of a launcher that a message needs: its kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
