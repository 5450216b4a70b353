"""What a heuristic, or a grid, depends on: read from its code, so that it need not be called.

Such functions are nearly always a lambda over a few arguments: ``args["h0"] is not None``,
``args["D"] % args["BD"] == 0``. Where everything that one can come to is known to be pure, its
result is that of an earlier call for which the same was read. Whatever is not known has to be
called.
"""

from __future__ import annotations

import builtins
import dis
import types
from dataclasses import dataclass, field
from typing import Any

from culaunch._triton.purity import Unknown, is_constant, is_pure, plain_code
from culaunch._triton.shape_reads import ShapePart, shape_parts

# An entry of a dict that must be as it is: (dict, name, is present, object).
Guard = tuple[dict[Any, Any], Any, bool, object]

# Methods of numbers, which no array has.
_METHODS = {"bit_length", "is_integer"}
# What is asked of an element type, and never changes.
_OF_DTYPES = {"itemsize", "is_complex", "is_floating_point", "is_signed"}
_DEEPEST = 4

# Instructions without an effect beyond the frame, by the beginnings of their names: the versions of
# CPython differ in what comes behind.
_HARMLESS = (
    "BINARY_", "BUILD_TUPLE", "CACHE", "CALL", "COMPARE_OP", "CONTAINS_OP", "COPY", "DUP_TOP",
    "END_FOR", "EXTENDED_ARG", "FOR_ITER", "GET_ITER", "INPLACE_", "IS_OP", "JUMP_", "KW_NAMES",
    "LOAD_ATTR",
    "LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT", "LOAD_CONST", "LOAD_DEREF", "LOAD_FAST",
    "LOAD_GLOBAL", "LOAD_METHOD", "LOAD_SMALL_INT", "NOP", "NOT_TAKEN", "POP_ITER", "POP_JUMP_",
    "POP_TOP", "PRECALL", "PUSH_NULL", "RAISE_VARARGS", "RESUME", "RETURN_", "ROT_", "STORE_FAST",
    "SWAP", "TO_BOOL", "UNARY_",
)  # fmt: skip
_NOT_HARMLESS = {
    "CALL_FUNCTION_EX",
    "CALL_INTRINSIC_1",
    "CALL_INTRINSIC_2",
    "COPY_DICT_WITHOUT_KEYS",
}
_SKIPPED = {"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "NOT_TAKEN", "RESUME"}


@dataclass
class Reads:
    """What the result of a function of a kernel's arguments depends on.

    Attributes
    ----------
    values : set of str
        Arguments whose values it reads, which have to be numbers, bools, strings or None.
    nones : set of str
        Arguments of which it asks only whether they are given, and None.
    types : set of str
        Arguments whose type it reads.
    dtypes : set of str
        Arguments whose element type it reads.
    shapes : set of (str, ShapePart)
        Tensors of PyTorch of whose shape, or strides, it reads a part.
    guards : list of Guard
        Globals that it uses.
    cells : list of (cell, object)
        Closed-over variables that it uses, with what they hold.
    """

    values: set[str] = field(default_factory=set)
    nones: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    shapes: set[tuple[str, ShapePart]] = field(default_factory=set)
    guards: list[Guard] = field(default_factory=list)
    cells: list[tuple[Any, object]] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """All arguments that it reads."""
        return self.values | self.nones | self.types | self.dtypes | {one for one, _ in self.shapes}

    @classmethod
    def of(cls, function: Any) -> Reads:
        """Read what a function of a dict of arguments depends on.

        Raises
        ------
        Unknown
            If it has to be called to know its result.
        """
        code = plain_code(function)
        if code.co_argcount != 1 or code.co_kwonlyargcount:
            raise Unknown("it takes more than the arguments")
        reads = cls()
        _Code(function, reads, arguments=code.co_varnames[0], depth=0).read()
        return reads


class _Code:
    """The code of one function, read from its first instruction to its last.

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
        self, function: types.FunctionType, reads: Reads, *, arguments: str | None, depth: int
    ) -> None:
        self._function = function
        self._reads = reads
        self._arguments = arguments
        self._depth = depth
        # All of the code from first to last, not along its jumps: what stands in a branch that was
        # not taken may be taken by the next call.
        every = dis.get_instructions(function.__code__)
        self._all = [one for one in every if one.opname not in _SKIPPED]
        self._at = 0

    def read(self) -> None:
        """Read it all."""
        while self._at < len(self._all):
            one = self._all[self._at]
            # What is not known to be harmless ends the reading: a version of CPython with new
            # instructions makes calls slower, and none wrong.
            name = one.opname
            if name in _NOT_HARMLESS or not name.startswith(_HARMLESS):
                raise Unknown(f"{name} in {self._function.__qualname__}")
            self._at += 1
            if name.startswith(("LOAD_FAST", "STORE_FAST")):
                self._variable(one)
            elif name == "LOAD_GLOBAL":
                self._global(one.argval)
            elif name == "LOAD_DEREF":
                self._closed_over(one.argval)
            elif name in ("LOAD_ATTR", "LOAD_METHOD"):
                self._attribute(one.argval)
            elif name == "LOAD_CONST" and self._is_membership():
                self._reads.nones.add(str(one.argval))
                self._at += 2

    # ---- instructions

    def _variable(self, one: dis.Instruction) -> None:
        names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        if self._arguments not in names:
            return
        # Two variables loaded by one instruction (CPython 3.12 and later): the dict must be the one
        # on top, which the next instruction takes.
        if one.opname.startswith("STORE") or names[-1] != self._arguments:
            raise Unknown("it does more with the arguments than to look one up")
        self._argument()

    def _argument(self) -> None:
        """Read what is done with the dict of arguments, which was just loaded."""
        first, second = self._ahead(0), self._ahead(1)
        is_got = first.opname in ("LOAD_ATTR", "LOAD_METHOD") and first.argval == "get"
        constant = second if is_got else first
        if constant.opname != "LOAD_CONST" or not isinstance(constant.argval, str):
            raise Unknown("it does more with the arguments than to look one up")
        name = constant.argval
        if is_got:
            self._at += 2
            self._reads.values.add(name)
            return
        if second.opname != "BINARY_SUBSCR" and (second.opname, second.argrepr) != (
            "BINARY_OP",
            "[]",
        ):
            raise Unknown("it does more with the arguments than to look one up")
        # Asked before the place moves on: it looks at what stands before the load.
        is_asked_for_type = self._is_isinstance()
        self._at += 2
        found, count = shape_parts(self._all[self._at : self._at + 3])
        if found:
            self._at += count
            self._reads.shapes.update((name, part) for part in found)
            return
        self._kind_of_reading(is_asked_for_type).add(name)

    def _kind_of_reading(self, is_asked_for_type: bool) -> set[str]:
        """Tell from what follows what of an argument is read."""
        reads = self._reads
        first, second = self._ahead(0), self._ahead(1)
        # POP_JUMP_IF_NONE and its relatives, of 3.11 and later, are "is None" and the jump in one.
        if first.opname.endswith("NONE"):  # a jump
            return reads.nones
        if first.opname == "LOAD_CONST" and first.argval is None and second.opname == "IS_OP":
            return reads.nones
        if first.opname == "LOAD_ATTR" and first.argval == "dtype":
            self._at += 1
            if second.opname == "LOAD_ATTR" and second.argval in _OF_DTYPES:
                self._at += 1
            return reads.dtypes
        if first.opname in ("LOAD_ATTR", "LOAD_METHOD") and first.argval == "element_size":
            self._at += 1
            return reads.dtypes
        if is_asked_for_type and self._is_class():
            return reads.types
        return reads.values

    def _is_membership(self) -> bool:
        """Whether ``"name" in args`` is what comes."""
        first, second = self._ahead(0), self._ahead(1)
        return (
            self._arguments is not None
            and first.opname.startswith("LOAD_FAST")
            and first.argval == self._arguments
            and second.opname == "CONTAINS_OP"
        )

    def _is_isinstance(self) -> bool:
        """Whether ``isinstance(`` stands before the arguments that were just loaded."""
        if self._at < 2:
            return False
        before = self._all[self._at - 2]
        return before.opname == "LOAD_GLOBAL" and before.argval == "isinstance"

    def _is_class(self) -> bool:
        """Whether a class is what is loaded next; take it."""
        at = self._at
        first = self._ahead(0)
        resolve = {"LOAD_GLOBAL": self._resolve, "LOAD_DEREF": self._resolve_cell}.get(first.opname)
        if resolve is None:
            return False
        self._at += 1
        found = resolve(first.argval)
        if isinstance(found, type) and self._ahead(0).opname.startswith("CALL"):
            return True
        self._at = at
        return False

    def _attribute(self, name: str) -> None:
        if name not in _METHODS:
            raise Unknown(f"it reads .{name}")

    def _global(self, name: str) -> None:
        self._check(self._resolve(name), name)

    def _resolve(self, name: str) -> Any:
        """Return what a global, with the attributes of modules that follow it, is now."""
        namespace = self._function.__globals__
        if name in namespace:
            found = self._entry(namespace, name)
        else:
            # A builtin: a global of that name, were it set, would come first.
            self._reads.guards.append((namespace, name, False, None))
            found = self._entry(vars(builtins), name)
        return self._of_module(found, name)

    def _of_module(self, found: Any, name: str) -> Any:
        """Follow attributes of modules, which are loaded next."""
        while isinstance(found, types.ModuleType):
            following = self._ahead(0)
            if following.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                raise Unknown(f"it uses the module {name}")
            self._at += 1
            found = self._entry(vars(found), following.argval)
        return found

    def _entry(self, namespace: dict[str, Any], name: str) -> Any:
        if name not in namespace:
            raise Unknown(f"it uses {name}, which is not there")
        found = namespace[name]
        self._reads.guards.append((namespace, name, True, found))
        return found

    def _closed_over(self, name: str) -> None:
        self._check(self._resolve_cell(name), name)

    def _resolve_cell(self, name: str) -> Any:
        """Return what a closed-over variable, with the attributes of modules, is now."""
        function = self._function
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        if name not in cells:
            raise Unknown(f"it uses {name}")
        try:
            found = cells[name].cell_contents
        except ValueError:
            raise Unknown(f"it uses {name}, which is not set") from None
        self._reads.cells.append((cells[name], found))
        return self._of_module(found, name)

    def _check(self, found: Any, name: str) -> None:
        """Refuse what may say something else the next time."""
        if is_constant(found) or is_pure(found):
            return
        # A helper is read like the function itself. Its own arguments are values that the caller
        # has read, so that nothing new comes in by them.
        if isinstance(found, types.FunctionType):
            if self._depth == _DEEPEST:
                raise Unknown(f"it calls {name}, which calls more and more")
            _Code(found, self._reads, arguments=None, depth=self._depth + 1).check().read()
            return
        raise Unknown(f"it uses {name}, {type(found).__name__}")

    def check(self) -> _Code:
        """Refuse a helper that is more than a function of its arguments."""
        function = self._function
        plain_code(function)
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        for default in defaults:
            if not is_constant(default):
                raise Unknown(f"a default of {function.__qualname__}")
        return self

    def _ahead(self, count: int) -> dis.Instruction:
        return self._all[min(self._at + count, len(self._all) - 1)]
