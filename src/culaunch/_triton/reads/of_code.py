"""The code of a function of a kernel's arguments: its reads, instruction by instruction."""

from __future__ import annotations

import builtins
import types
from typing import TYPE_CHECKING, Any

from culaunch._triton.reads.instructions import (
    Instructions,
    constant_of,
    is_call,
    is_method,
    is_subscript,
)
from culaunch._triton.reads.names import NamesInCode
from culaunch._triton.reads.purity import Unknown, is_constant, is_plain_class, is_pure, plain_code
from culaunch._triton.reads.reads import Reads
from culaunch._triton.reads.shapes import shape_parts

if TYPE_CHECKING:
    import dis
    from collections.abc import Callable

# Methods of numbers, which no array has.
_METHODS = {"bit_length", "is_integer"}
# The attributes of an element type that never change.
_OF_DTYPES = {"itemsize", "is_complex", "is_floating_point", "is_signed"}
_DEEPEST = 4
_LONGEST_NAME = 6  # parts of a class's name, with its modules

# Instructions with no effect beyond the frame, by name prefix, because the rest of a name differs
# between CPython versions.
_HARMLESS = (
    "BINARY_", "BUILD_TUPLE", "CALL", "COMPARE_OP", "CONTAINS_OP", "COPY", "DUP_TOP",
    "END_FOR", "FOR_ITER", "GET_ITER", "INPLACE_", "IS_OP", "JUMP_", "KW_NAMES",
    "LOAD_ATTR",
    "LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT", "LOAD_CONST", "LOAD_DEREF", "LOAD_FAST",
    "LOAD_GLOBAL", "LOAD_METHOD", "LOAD_SMALL_INT", "POP_ITER", "POP_JUMP_",
    "POP_TOP", "RAISE_VARARGS", "RETURN_", "ROT_", "STORE_FAST",
    "SWAP", "TO_BOOL", "UNARY_", "UNPACK_SEQUENCE",
)  # fmt: skip
_NOT_HARMLESS = {
    "CALL_FUNCTION_EX",
    "CALL_INTRINSIC_1",
    "CALL_INTRINSIC_2",
    "COPY_DICT_WITHOUT_KEYS",
}


def reads_of(function: Any, *, stays: bool = False) -> Reads:
    """Find the inputs of a function of a dict of arguments.

    Parameters
    ----------
    function : callable
    stays : bool
        Whether each call uses this same object. Otherwise a new function with the same code may
        have other defaults, and further parameters with defaults are unknown.

    Raises
    ------
    Unknown
        If only a call can tell its result.
    """
    code = plain_code(function)
    if not _takes_arguments_alone(function, with_defaults=stays):
        raise Unknown("it must take only the arguments")
    reads = Reads()
    _Code(function, reads, code.co_varnames[0], 0).read()
    return reads


class _Code:
    """The code of one function.

    Parameters
    ----------
    function : function
    reads : Reads
        What is found is added to it.
    arguments : str or None
        The variable that holds the dict of a kernel's arguments; None in a helper, whose own
        arguments are values that the caller has read.
    depth : int
        How many functions called this one.
    """

    def __init__(
        self, function: types.FunctionType, reads: Reads, arguments: str | None, depth: int
    ) -> None:
        self._function = function
        self._reads = reads
        self._arguments = arguments
        self._depth = depth
        self._code = Instructions(function.__code__)
        self._names = NamesInCode(function, self._code, reads)

    def read(self) -> None:
        """Read it all."""
        while (one := self._code.next()) is not None:
            # An instruction that is not known to be harmless ends the analysis. New CPython
            # instructions make calls slower, but never wrong.
            name = one.opname
            if name in _NOT_HARMLESS or not name.startswith(_HARMLESS):
                raise Unknown(f"{name} in {self._function.__qualname__}")
            if name.startswith(("LOAD_FAST", "STORE_FAST")):
                self._variable(one)
            elif name == "LOAD_GLOBAL":
                self._check(self._names.of_global(one.argval), one.argval)
            elif name == "LOAD_DEREF":
                self._check(self._names.closed_over(one.argval), one.argval)
            elif name in ("LOAD_ATTR", "LOAD_METHOD") and one.argval not in _METHODS:
                raise Unknown(f"it reads .{one.argval}")
            elif name == "LOAD_CONST" and self._is_membership():
                self._reads.nones.add(str(one.argval))
                self._code.take(2)

    # ---- instructions

    def _variable(self, one: dis.Instruction) -> None:
        names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        if self._arguments not in names:
            return
        # If one instruction loads two variables (from CPython 3.12 on), the dict must be on top,
        # where the next instruction takes it.
        if one.opname.startswith("STORE") or names[-1] != self._arguments:
            raise Unknown("it does more with the arguments than look one up")
        self._argument()

    def _argument(self) -> None:
        """Read the use of the dict of arguments, which was just loaded."""
        if self._is_passed_on():
            return
        name, count = self._subscript() or self._get() or (None, 0)
        if name is None:
            raise Unknown("it does more with the arguments than look one up")
        # Check before advancing: this looks at the instructions before the load.
        asks_for_type = self._is_after_isinstance()
        self._code.take(count)
        found, count = shape_parts(self._code.ahead(3))
        if found:
            self._code.take(count)
            self._reads.shapes.update((name, part) for part in found)
            return
        self._kind_of_reading(asks_for_type=asks_for_type).add(name)

    def _is_passed_on(self) -> bool:
        """Whether a helper is called with only this dict. If so, analyze the helper."""
        before, ahead = self._code.before(1), self._code.ahead(1)
        if before is None or not ahead or not is_call(ahead[0], 1):
            return False
        find = self._finder(before)
        found = find(before.argval) if find is not None else None
        if not isinstance(found, types.FunctionType) or self._depth == _DEEPEST:
            return False
        if not _takes_arguments_alone(found, with_defaults=True):
            return False
        plain_code(found)
        _Code(found, self._reads, found.__code__.co_varnames[0], self._depth + 1).read()
        return True

    def _finder(self, one: dis.Instruction) -> Callable[[str], Any] | None:
        """Return the kind of the loaded name; None for anything but a name."""
        return {"LOAD_GLOBAL": self._names.of_global, "LOAD_DEREF": self._names.closed_over}.get(
            one.opname
        )

    def _subscript(self) -> tuple[str, int] | None:
        """Read ``args["name"]``: the name, and the number of its instructions."""
        ahead = self._code.ahead(2)
        name = _text(ahead[0]) if len(ahead) == 2 else None
        return (name, 2) if name is not None and is_subscript(ahead[1]) else None

    def _get(self) -> tuple[str, int] | None:
        """Read ``args.get("name")``, perhaps with a constant default."""
        ahead = self._code.ahead(4)
        if len(ahead) < 3 or not is_method(ahead[0]) or ahead[0].argval != "get":
            return None
        name = _text(ahead[1])
        if name is None or is_call(ahead[2], 1):
            return (name, 3) if name is not None else None
        has_default = len(ahead) == 4 and constant_of(ahead[2]) is not None
        return (name, 4) if has_default and is_call(ahead[3], 2) else None

    def _kind_of_reading(self, *, asks_for_type: bool) -> set[str]:
        """Determine from the next instructions which part of an argument is read."""
        reads = self._reads
        ahead = self._code.ahead(2)
        if not ahead:
            return reads.values
        first, second = ahead[0], ahead[-1]
        # POP_JUMP_IF_NONE and similar instructions of 3.11 and later combine "is None" and the
        # jump.
        if first.opname.endswith("NONE"):  # a jump
            return reads.nones
        if constant_of(first) == (None,) and second.opname == "IS_OP":
            return reads.nones
        if first.opname == "LOAD_ATTR" and first.argval == "dtype" and not is_method(first):
            is_asked = second.opname == "LOAD_ATTR" and second.argval in _OF_DTYPES
            self._code.take(2 if is_asked and not is_method(second) else 1)
            return reads.dtypes
        if is_method(first) and first.argval == "element_size" and is_call(second, 0):
            self._code.take(2)
            return reads.dtypes
        if asks_for_type and self._is_class():
            return reads.types
        return reads.values

    def _is_membership(self) -> bool:
        """Whether ``"name" in args`` comes next."""
        ahead = self._code.ahead(2)
        return (
            self._arguments is not None
            and len(ahead) == 2
            and ahead[0].opname.startswith("LOAD_FAST")
            and ahead[0].argval == self._arguments
            and ahead[1].opname == "CONTAINS_OP"
        )

    def _is_after_isinstance(self) -> bool:
        """Whether ``isinstance(`` precedes the arguments that were just loaded."""
        before = self._code.before(1)
        return (
            before is not None
            and before.opname == "LOAD_GLOBAL"
            and before.argval == "isinstance"
            and self._names.of_global("isinstance") is builtins.isinstance
        )

    def _is_class(self) -> bool:
        """Whether a class is loaded next for a call with two arguments. If so, take it."""
        ahead = self._code.ahead(_LONGEST_NAME)
        find = self._finder(ahead[0]) if ahead else None
        if find is None:
            return False
        behind = [one for one in ahead[1:] if one.opname != "LOAD_ATTR"]
        if not behind or not is_call(behind[0], 2):
            return False
        self._code.take(1)
        found = find(ahead[0].argval)
        if not is_plain_class(found):
            raise Unknown(f"it uses {ahead[0].argval}, of type {type(found).__name__}")
        return True

    def _check(self, found: Any, name: str) -> None:
        """Refuse an object whose value may change."""
        if is_constant(found) or is_pure(found):
            return
        # A helper is analyzed like the function itself. The caller has already read its arguments,
        # so they add nothing.
        if isinstance(found, types.FunctionType):
            if self._depth == _DEEPEST:
                raise Unknown(f"it calls {name}, whose calls are nested too deep")
            _check_helper(found)
            _Code(found, self._reads, None, self._depth + 1).read()
            return
        raise Unknown(f"it uses {name}, of type {type(found).__name__}")


def _text(one: dis.Instruction) -> str | None:
    """Return the text that is loaded."""
    found = constant_of(one)
    return found[0] if found is not None and isinstance(found[0], str) else None


def _takes_arguments_alone(function: types.FunctionType, *, with_defaults: bool) -> bool:
    """Whether it can be called with the arguments; its further parameters have defaults."""
    code = function.__code__
    further = code.co_argcount - 1 + code.co_kwonlyargcount
    if code.co_argcount == 0 or not further:
        return code.co_argcount == 1
    # `lambda args, size=size: size` gives each function in a loop its own value.
    has_defaults = len(_defaults_of(function)) >= further
    return with_defaults and has_defaults


def _check_helper(function: types.FunctionType) -> None:
    """Refuse a helper that depends on more than its arguments."""
    plain_code(function)
    _defaults_of(function)


def _defaults_of(function: types.FunctionType) -> tuple[Any, ...]:
    """Return the defaults of a function's parameters."""
    found = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    for default in found:
        if not is_constant(default):
            raise Unknown(f"a default of {function.__qualname__}")
    return found
