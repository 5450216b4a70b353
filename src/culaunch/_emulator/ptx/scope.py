"""The names that are known in a part of a function's body."""

from __future__ import annotations

import re

from culaunch._emulator.ptx.syntax import Function, Register

_NUMBERED = re.compile(r"(.*?)(0|[1-9]\d{0,8})\Z", re.DOTALL)


class Scope:
    """The names that a block in braces declares, on top of those around it."""

    def __init__(self, outer: Scope | None, function: Function) -> None:
        self.outer = outer
        self.function = function
        self.registers: dict[str, Register] = {}
        self.ranges: dict[str, tuple[int, str]] = {}
        self.labels: dict[str, int] = {}
        self.targets: dict[str, tuple[str, ...]] = {}

    def register(self, name: str) -> Register | None:
        """Return the register called `name`, giving it a slot on first use."""
        scope: Scope | None = self
        # ``.reg .b32 %r<100>;`` declares a hundred registers, and few of them occur. Each gets its
        # slot when it is first seen, so the frame contains only those that occur.
        numbered = _NUMBERED.match(name)
        while scope is not None:
            found = scope.registers.get(name)
            if found is not None:
                return found
            if numbered:
                count, kind = scope.ranges.get(numbered[1], (0, ""))
                # The digits are limited by the pattern, and a leading zero is another name: %r01 is
                # not %r1.
                if int(numbered[2]) < count:
                    return scope.add(name, kind)
            scope = scope.outer
        return None

    def add(self, name: str, kind: str, size: int = 0) -> Register:
        """Give `name` a slot of the frame; a parameter's takes `size` bytes."""
        function = self.function
        slot = len(function.slots)
        function.slots.append(kind)
        if size:
            function.slot_sizes[slot] = size
        self.registers[name] = Register(slot, kind)
        return self.registers[name]

    def label(self, name: str) -> int | None:
        """Return the instruction after the label `name`."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.outer
        return None

    def target_list(self, name: str) -> tuple[str, ...] | None:
        """Return the labels of the ``.branchtargets`` list called `name`."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.targets:
                return scope.targets[name]
            scope = scope.outer
        return None
