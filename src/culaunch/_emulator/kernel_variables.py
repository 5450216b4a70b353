"""Which functions a kernel can reach, and where its shared variables are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.ptx.syntax import (
    Address,
    Function,
    Instruction,
    Operand,
    Symbol,
    Variable,
    Vector,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._emulator.ptx.syntax import Module

_MOST_GAP = 4096


class KernelVariables:
    """Shared memory of a kernel.

    Attributes
    ----------
    static_bytes : int
        The size of the declared variables.
    dynamic_align : int
        The alignment of the dynamic part, which begins after them.
    shared : list of (int, Variable)
        The declared shared variables with their addresses, ascending.

    Parameters
    ----------
    gaps : bool
        Whether to leave bytes free around each shared variable, to detect an access to them.
    """

    def __init__(self, syntax: Module, kernel: Function, *, gaps: bool = False) -> None:
        self._syntax = syntax
        self._gaps = gaps
        self.shared: list[tuple[int, Variable]] = []
        self._offsets: dict[tuple[str, str], int] = {}
        self.static_bytes = 0
        self.dynamic_align = 16
        self.local_bytes = 0
        self._dynamic: set[str] = set()
        self._visit(kernel)
        self.dynamic_offset = -(-self.static_bytes // self.dynamic_align) * self.dynamic_align

    def shared_offset(self, name: str, function: Function) -> int | None:
        """Return the shared address of a variable; None if it is not shared."""
        if name in self._dynamic:
            return self.dynamic_offset
        found = self._offsets.get((function.name, name))
        return self._offsets.get(("", name)) if found is None else found

    def _visit(self, kernel: Function) -> None:
        """Walk everything reachable from `kernel`, depth first, as deep as its calls may go."""
        syntax = self._syntax
        # A stack of iterators in place of recursion: the depth of calls is the module's choice, and
        # Python has less of it than PTX may ask for.
        functions, names = {kernel.name}, set()
        to_do = [self._enter(kernel)]
        while to_do:
            name = next(to_do[-1], None)
            if name is None:
                to_do.pop()
                continue
            if name in names:
                continue
            names.add(name)
            name = syntax.aliases.get(name, name)
            variable = syntax.variables.get(name)
            if variable is not None:
                if variable.space == "shared":
                    self._place("", variable)
                # A variable may be initialized with addresses, for example of functions in a table.
                # A kernel that reads the table may call all of them.
                to_do.append(v.name for v in variable.values if isinstance(v, Symbol))
            function = syntax.functions.get(name)
            if function is not None and name not in functions:
                functions.add(name)
                to_do.append(self._enter(function))

    def _enter(self, function: Function) -> Iterator[str]:
        """Place a function's own variables; yield the names that its instructions use."""
        for variable in function.variables.values():
            if variable.space == "shared":
                self._place(function.name, variable)
            elif variable.space == "local":
                self.local_bytes = max(self.local_bytes, variable.offset + variable.size)
        for instruction in function.instructions:
            # Every name counts, not only called ones: the address of a function is enough to call
            # it later.
            yield from _symbols(instruction)

    def _place(self, owner: str, variable: Variable) -> None:
        # An .extern array without a size is the dynamic shared memory. All of these names are views
        # of it: they begin at the same place, with the strictest of their alignments.
        if variable.external or not variable.size:
            self._dynamic.add(variable.name)
            self.dynamic_align = max(self.dynamic_align, variable.align)
            return
        # As far as the variable is large: a row too far is found, too.
        gap = min(max(variable.size, 16), _MOST_GAP) if self._gaps else 0
        at = -(-(self.static_bytes + gap) // variable.align) * variable.align
        self._offsets[owner, variable.name] = at
        self.shared.append((at, variable))
        self.static_bytes = at + variable.size + gap


def _symbols(instruction: Instruction) -> list[str]:
    names: list[str] = []
    for operand in instruction.operands:
        _collect(operand, names)
    return names


def _collect(operand: Operand, names: list[str]) -> None:
    if isinstance(operand, Symbol):
        names.append(operand.name)
    elif isinstance(operand, Address):
        _collect(operand.base, names)
    elif isinstance(operand, Vector):
        for item in operand.items:
            _collect(item, names)
