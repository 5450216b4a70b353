"""A module that was loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.kernel_code import KernelCode
from culaunch._emulator.memory.windows import FUNCTION
from culaunch._emulator.options import CodeChecks
from culaunch._emulator.ptx.syntax import Symbol, Variable
from culaunch._emulator.types import BITS, Lanes, size_of
from culaunch._errors import ImageError

if TYPE_CHECKING:
    from culaunch._emulator.ptx_image import PtxImage

# A gap between variables, to detect an access past the end of one.
_GAP = 64
# The distance between the addresses of functions, which are not memory. A computed or misread
# pointer usually falls between two of them, and is reported as invalid.
_FUNCTION_STEP = 16


class LoadedModule:
    """A module that was loaded: its variables have addresses and values.

    Host memory is device memory: :meth:`address` is an ordinary pointer.
    """

    def __init__(self, image: PtxImage) -> None:
        self.image = image
        self._functions = list(image.syntax.functions)
        self._function_index = {name: i for i, name in enumerate(self._functions)}
        self._codes: dict[tuple[str, CodeChecks], KernelCode] = {}
        self._addresses: dict[str, int] = {}
        self._lay_out()
        self._initialise()

    def address(self, name: str) -> int:
        """Return the address of a variable; raise KeyError if there is none of that name."""
        return self._addresses[name]

    def size(self, name: str) -> int:
        """Return the bytes of a variable."""
        return self.image.globals[name].size

    def function_address(self, name: str) -> int:
        """Return the address of a function."""
        name = self.image.syntax.aliases.get(name, name)
        return FUNCTION + _FUNCTION_STEP * self._function_index[name]

    def function_name(self, address: int) -> str | None:
        """Return the function with an address."""
        index, rest = divmod(address - FUNCTION, _FUNCTION_STEP)
        return None if rest or not 0 <= index < len(self._functions) else self._functions[index]

    def code(self, kernel: str, checks: CodeChecks = CodeChecks()) -> KernelCode:  # noqa: B008
        """Return the decoded code of a kernel, with the checks that are part of it."""
        found = self._codes.get((kernel, checks))
        if found is None:
            found = self._codes[kernel, checks] = KernelCode(self, kernel, checks)
        return found

    # All variables are in one allocation, in the order of the text.
    def _lay_out(self) -> None:
        at = _GAP
        offsets = {}
        for name, variable in self.image.globals.items():
            if variable.external and not variable.values:
                raise ImageError(
                    f"the variable {name!r} is declared .extern but not defined",
                    source=f"PTX line {variable.line}",
                )
            align = max(variable.align, 16)
            at = -(-at // align) * align
            offsets[name] = at
            at += variable.size + _GAP
        largest = max((v.align for v in self.image.globals.values()), default=16)
        self._memory: Lanes = np.zeros(at + largest, np.uint8)
        base = -(-self._memory.ctypes.data // largest) * largest
        self._addresses = {name: base + offset for name, offset in offsets.items()}
        # The start and end of each variable, ascending. Variables without bytes are left out.
        sized = [name for name, variable in self.image.globals.items() if variable.size]
        self.limits = (
            [self._addresses[name] for name in sized],
            [self._addresses[name] + self.image.globals[name].size for name in sized],
        )

    def _initialise(self) -> None:
        start = self._memory.ctypes.data
        for name, variable in self.image.globals.items():
            size = size_of(variable.type)
            at = self._addresses[name] - start
            # The usual initializer, which contains only numbers, is processed at once: tables of a
            # hundred thousand values are common.
            if size in BITS and not any(isinstance(v, Symbol) for v in variable.values):
                raw = np.array(variable.values, BITS[size]).view(np.uint8)
                self._memory[at : at + len(raw)] = raw
                continue
            for i, value in enumerate(variable.values):
                bits = self._resolve(value, variable) if isinstance(value, Symbol) else value
                word = (bits & ((1 << 8 * size) - 1)).to_bytes(size, "little")
                self._memory[at + i * size : at + (i + 1) * size] = list(word)

    def _resolve(self, symbol: Symbol, variable: Variable) -> int:
        name = self.image.syntax.aliases.get(symbol.name, symbol.name)
        if name in self._addresses:
            return self._addresses[name] + symbol.offset
        if name in self._function_index:
            return self.function_address(name) + symbol.offset
        raise ImageError(
            f"the initializer of {variable.name!r} names {name!r}, which is not in the module",
            source=f"PTX line {variable.line}",
        )
