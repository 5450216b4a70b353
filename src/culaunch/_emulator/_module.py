"""A PTX module: what is in it, and an instance of it with memory for its variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from culaunch._emulator._memory._windows import FUNCTION
from culaunch._emulator._ptx import parse_module
from culaunch._emulator._ptx._syntax import Function, Symbol, Variable
from culaunch._emulator._types import BITS, Lanes, size_of
from culaunch._errors import ImageError

__all__ = ["ModuleInstance", "Parameter", "PtxKernel", "PtxModule"]

# Between variables, so that running off the end of one is noticed.
_GAP = 64
_FUNCTION_STEP = 16
# What ptxas takes (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
_MAX_STATIC_SHARED = 48 * 1024
_MAX_LOCAL = 512 * 1024


@dataclass(frozen=True)
class Parameter:
    """Where a kernel's parameter lies in its parameter bytes."""

    offset: int
    size: int
    align: int
    name: str = ""


@dataclass(frozen=True)
class PtxKernel:
    """A kernel as its declaration describes it.

    Attributes
    ----------
    max_threads : int
        The most threads a block may have.
    required_threads : tuple of int, optional
        The block that the kernel was compiled for, if it says so.
    static_shared : int
        Bytes of shared memory that every block has.
    """

    name: str
    params: tuple[Parameter, ...]
    max_threads: int
    required_threads: tuple[int, int, int] | None
    static_shared: int
    local_bytes: int
    cluster: tuple[int, int, int] | None

    @property
    def param_bytes(self) -> int:
        """The size of the parameter bytes."""
        return max((param.offset + param.size for param in self.params), default=0)


class PtxModule:
    """PTX text, parsed.

    Parameters
    ----------
    text : str or bytes
        The PTX.

    Raises
    ------
    ImageError
        If it is not PTX; the message has the line.
    """

    def __init__(self, text: str | bytes) -> None:
        if isinstance(text, bytes):
            text = text.rstrip(b"\0").decode("utf-8", "replace")
        self.syntax, self.tokens = parse_module(text)
        # The variables that have an address: .global and .const ones.
        self.globals: dict[str, Variable] = {
            name: variable
            for name, variable in self.syntax.variables.items()
            if variable.space in ("global", "const")
        }
        self._kernels = {
            function.name: self._describe(function)
            for function in self.syntax.functions.values()
            if function.is_kernel
        }

    @property
    def target(self) -> str:
        """The architecture it was compiled for, such as ``"sm_80"``."""
        return self.syntax.target

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return tuple(self._kernels)

    def kernel(self, name: str) -> PtxKernel:
        """Describe a kernel; raise KeyError if there is none of that name."""
        return self._kernels[name]

    def _describe(self, function: Function) -> PtxKernel:
        from culaunch._emulator._layout import Layout

        layout = Layout(self, function)
        for what, size, most in (
            ("static shared memory", layout.static_bytes, _MAX_STATIC_SHARED),
            ("local memory for each thread", layout.local_bytes, _MAX_LOCAL),
        ):
            if size > most:
                raise ImageError(
                    f"the kernel {function.name!r} has {size} bytes of {what}, at most {most}",
                    source=f"PTX line {function.line}",
                )
        directives = function.directives
        threads = 1024
        required = directives.get("reqntid")
        limit = required or directives.get("maxntid")
        if limit:
            threads = int(np.prod(limit, dtype=np.int64))
        return PtxKernel(
            function.name,
            tuple(Parameter(p.offset, p.size, p.align, p.name) for p in function.params),
            threads,
            None if required is None else _three(required),
            layout.static_bytes,
            layout.local_bytes,
            _three(directives["reqnctapercluster"]) if "reqnctapercluster" in directives else None,
        )


class ModuleInstance:
    """A module that was loaded: its variables have addresses and values.

    Host memory is device memory: :meth:`address` is an ordinary pointer.
    """

    def __init__(self, module: PtxModule) -> None:
        self.module = module
        self._functions = list(module.syntax.functions)
        self._function_index = {name: i for i, name in enumerate(self._functions)}
        self._programs: dict[str, Any] = {}
        self._addresses: dict[str, int] = {}
        self._lay_out()
        self._initialise()

    def address(self, name: str) -> int:
        """Return the address of a variable; raise KeyError if there is none of that name."""
        return self._addresses[name]

    def size(self, name: str) -> int:
        """Return the bytes of a variable."""
        return self.module.globals[name].size

    def function_address(self, name: str) -> int:
        """Return the address that stands for a function."""
        name = self.module.syntax.aliases.get(name, name)
        return FUNCTION + _FUNCTION_STEP * self._function_index[name]

    def function_name(self, address: int) -> str | None:
        """Return the function that an address stands for."""
        index, rest = divmod(address - FUNCTION, _FUNCTION_STEP)
        return None if rest or not 0 <= index < len(self._functions) else self._functions[index]

    def program(self, kernel: str) -> Any:
        """Return the decoded program of a kernel."""
        found = self._programs.get(kernel)
        if found is None:
            from culaunch._emulator._program import Program

            found = self._programs[kernel] = Program(self, kernel)
        return found

    def _lay_out(self) -> None:
        at = _GAP
        offsets = {}
        for name, variable in self.module.globals.items():
            if variable.external and not variable.values:
                raise ImageError(
                    f"the variable {name!r} is declared .extern and defined nowhere",
                    source=f"PTX line {variable.line}",
                )
            align = max(variable.align, 16)
            at = -(-at // align) * align
            offsets[name] = at
            at += variable.size + _GAP
        largest = max((v.align for v in self.module.globals.values()), default=16)
        self._memory: Lanes = np.zeros(at + largest, np.uint8)
        base = -(-self._memory.ctypes.data // largest) * largest
        self._addresses = {name: base + offset for name, offset in offsets.items()}
        # Where the variables start and end, ascending. Those of no bytes are nowhere.
        sized = [name for name, variable in self.module.globals.items() if variable.size]
        self.limits = (
            [self._addresses[name] for name in sized],
            [self._addresses[name] + self.module.globals[name].size for name in sized],
        )

    def _initialise(self) -> None:
        start = self._memory.ctypes.data
        for name, variable in self.module.globals.items():
            size = size_of(variable.type)
            at = self._addresses[name] - start
            if size in BITS and not any(isinstance(v, Symbol) for v in variable.values):
                raw = np.array(variable.values, BITS[size]).view(np.uint8)
                self._memory[at : at + len(raw)] = raw
                continue
            for i, value in enumerate(variable.values):
                bits = self._resolve(value, variable) if isinstance(value, Symbol) else value
                word = (bits & ((1 << 8 * size) - 1)).to_bytes(size, "little")
                self._memory[at + i * size : at + (i + 1) * size] = list(word)

    def _resolve(self, symbol: Symbol, variable: Variable) -> int:
        name = self.module.syntax.aliases.get(symbol.name, symbol.name)
        if name in self._addresses:
            return self._addresses[name] + symbol.offset
        if name in self._function_index:
            return self.function_address(name) + symbol.offset
        raise ImageError(
            f"the initialiser of {variable.name!r} names {name!r}, which is not in the module",
            source=f"PTX line {variable.line}",
        )


def _three(numbers: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*numbers, 1, 1, 1)[:3]
    return x, y, z
