"""Accesses of neighboring threads to places at equal distances, checked all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.compiled.memory import READS, WRITES, word_at
from culaunch._emulator.ops.memory import check_hints, space_of
from culaunch._emulator.ptx.syntax import Address, Register
from culaunch._emulator.types import size_of, unsigned

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.compiled.operands import LaneGroup
    from culaunch._emulator.compiled.recorder import Recorder
    from culaunch._emulator.compiled.strides import Strides
    from culaunch._emulator.ptx.syntax import Instruction


class Span:
    """A load or a store whose address has a stride."""

    def __init__(self, recorder: Recorder, instruction: Instruction, stride: int) -> None:
        store = instruction.name == "st"
        values, place = instruction.operands[:2][:: -1 if store else 1]
        self._recorder = recorder
        self._instruction = instruction
        self._place = place
        self._values = recorder.decoder.vector(values)
        self._kind = recorder.decoder.type(instruction)
        self._stride = stride
        self.writes = store

    @classmethod
    def of(cls, recorder: Recorder, strides: Strides, instruction: Instruction) -> Span | None:
        """Return the span of an instruction, or None if it accesses memory in another way."""
        if instruction.name not in ("ld", "ldu", "st") or instruction.guard is not None:
            return None
        check_hints(instruction)
        span = cls(recorder, instruction, 0)
        space, place = space_of(instruction), span._place
        if not isinstance(place, Address) or not isinstance(place.base, Register):
            return None
        if space not in ("", "global", "const", "shared") or span._kind == "b128":
            return None
        if space == "" and recorder.code.local_bytes:
            return None  # it may be a thread's own memory
        stride = strides.of(place)
        if not stride or stride < 0 or stride % span._size():
            return None
        span._stride = stride
        return span

    def check(self, pointer: str) -> str:
        """Return the statements that check all accesses, and point to the first."""
        recorder, place = self._recorder, self._place

        def record(group: LaneGroup) -> None:
            address = group.read_address(recorder.decoder.address(place))
            call = recorder.sites.span(
                space_of(self._instruction),
                f"{address.name}, {self._size()}, {self._stride}, n",
                WRITES if self.writes else READS,
            )
            group.trace.do(f"{pointer} = {call};")

        text = recorder.record(self._instruction, record)
        return f"u8 *{pointer};\n{text}if (__builtin_expect(!{pointer}, 0)) return ALONE;\n"

    def access(self, pointer: str, name: Callable[[int], str]) -> str:
        """Return the statements of thread `l`."""
        decoder, kind = self._recorder.decoder, self._kind
        size, dtype = size_of(kind), unsigned(kind)

        def record(group: LaneGroup) -> None:
            for i, value in enumerate(self._values):
                place = word_at(f"({pointer} + {self._stride} * l)", i, size)
                if self.writes:
                    bits = group.read(decoder.read(value, kind), dtype)
                    group.trace.do(f"{place} = {bits.name};")
                else:
                    group.write(decoder.write(value, kind), place, dtype)

        return self._recorder.record(self._instruction, record, name)

    def _size(self) -> int:
        return size_of(self._kind) * len(self._values)
