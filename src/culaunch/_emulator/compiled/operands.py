"""Bind operands to C variables, where the other engine binds them to arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.compiled.c_types import c_type, literal
from culaunch._emulator.compiled.lane import Lane, Untraceable
from culaunch._emulator.decode.decoder import Decoder
from culaunch._emulator.ptx.syntax import Symbol
from culaunch._emulator.types import unsigned

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.compiled.trace import Trace
    from culaunch._emulator.decode.decoder import Reader
    from culaunch._emulator.kernel_code import KernelCode
    from culaunch._emulator.machine.state import Code
    from culaunch._emulator.ptx.syntax import Operand

# Special registers, as expressions of the thread `t` and the launch `c`. Others depend on features
# of the NumPy engine, such as clusters and clocks.
_SPECIAL = {
    **{f"tid.{axis}": f"t->tid[{i}]" for i, axis in enumerate("xyz")},
    **{f"ctaid.{axis}": f"c->ctaid[{i}]" for i, axis in enumerate("xyz")},
    **{f"ntid.{axis}": f"c->block[{i}]" for i, axis in enumerate("xyz")},
    **{f"nctaid.{axis}": f"c->grid[{i}]" for i, axis in enumerate("xyz")},
    "laneid": "t->lane",
    "warpid": "t->warp",
    "lanemask_eq": "1u << t->lane",
    "lanemask_lt": "(1u << t->lane) - 1",
    "lanemask_le": "(2u << t->lane) - 1",
    "lanemask_gt": "~((2u << t->lane) - 1)",
    "lanemask_ge": "~((1u << t->lane) - 1)",
}


class LaneDecoder(Decoder):
    """A decoder whose readers record C.

    Attributes
    ----------
    symbols_used : list of str
        The module's variables. Their addresses differ from process to process, and the text must
        not.
    """

    def __init__(self, kernel: KernelCode, code: Code) -> None:
        super().__init__(kernel, code)
        self.kernel = kernel
        self.symbols_used: list[str] = []

    def read(self, operand: Operand, kind: str) -> Reader:
        """Return a reader of `operand` as type `kind`."""
        if isinstance(operand, Symbol) and self._is_variable(operand.name):
            if operand.name not in self.symbols_used:
                self.symbols_used.append(operand.name)
            index = self.symbols_used.index(operand.name)
            text, want = f"c->symbols[{index}] + {operand.offset}", unsigned(kind)
            return lambda group: _expression(group, text, "u8").astype(want)
        return super().read(operand, kind)

    def _is_variable(self, name: str) -> bool:
        function = self.code.function
        name = self.kernel.syntax.aliases.get(name, name)
        return not (
            any(param.name == name for param in function.params)
            or name in function.variables
            or name in self.kernel.syntax.functions
            or self.kernel.variables.shared_offset(name, function) is not None
        )

    def _read_special(self, operand: Any, kind: str) -> Reader:
        text = _SPECIAL.get(operand.name)
        if text is None:
            raise Untraceable(f"the special register %{operand.name}")
        want = unsigned(kind)
        return lambda group: _expression(group, text, "u4").astype(want)


class LaneGroup:
    """A group of one thread, whose registers are C variables; `name` names one by its slot."""

    n = 1
    local_base = 0
    full = whole_warps = False

    def __init__(self, trace: Trace, code: Code, name: Callable[[int], str]) -> None:
        self.trace = trace
        self.regs = _Registers(self, code, name)

    def value(self, text: str, dtype: np.dtype[Any]) -> Lane:
        """Return the value of a C expression."""
        return Lane(self.trace, [self.trace.let(text, c_type(dtype))], dtype)

    def lane(self, value: Any, dtype: Any) -> Lane:
        """Return bits as a lane of a type; one value for all threads is a constant there."""
        dtype = np.dtype(dtype)
        if isinstance(value, Lane):
            return value.view(dtype)
        constant = np.asarray(value).view(dtype).reshape(-1)[0]
        return self.value(literal(constant, dtype), dtype)

    def read(self, reader: Any, dtype: Any) -> Lane:
        """Return the value of an operand's reader."""
        return self.lane(reader(self), dtype)

    def read_address(self, reader: Any) -> Lane:
        """Return an address, which a register of 32 bits may hold, as 64 bits."""
        address = reader(self)
        return self.lane(address.astype("u8"), "u8")

    def write(self, writer: Any, text: str, dtype: Any) -> None:
        """Give the value of a C expression to a writer of an operand."""
        writer(self, self.value(text, np.dtype(dtype)))

    def __getattr__(self, name: str) -> Any:
        raise Untraceable(f"the {name} of a group")


class _Registers:
    """The registers by slot: read as they were before the instruction, written after it."""

    def __init__(self, group: LaneGroup, code: Code, name: Callable[[int], str]) -> None:
        self.group = group
        self.code = code
        self.name = name
        self.written: dict[int, Any] = {}

    def __getitem__(self, slot: int) -> Any:
        if slot in self.written:
            return self.written[slot]
        zero = self.code.zeros[slot]
        if zero.ndim > 1:
            raise Untraceable(f"a register of {zero.shape[1]} parts")
        return self.group.value(self.name(slot), zero.dtype)

    def __setitem__(self, slot: int, value: Any) -> None:
        self.written[slot] = value

    def flush(self) -> None:
        """Write the stored values back."""
        for slot, value in self.written.items():
            dtype = self.code.zeros[slot].dtype
            # A register holds bits, regardless of the type that they were computed in.
            self.group.trace.do(f"{self.name(slot)} = {self.group.lane(value, dtype).name};")


def _expression(group: Any, text: str, dtype: str) -> Any:
    # Decoders are annotated with the other engine's groups; here they get this engine's.
    return group.value(text, np.dtype(dtype))
