"""Functions that the CUDA runtime gives to device code: printf, assert, malloc, launches."""

# All decoders, and all ends of a block, have one signature each.
# ruff: noqa: ARG001, ARG002

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.decode.instruction import decodes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.fault import ASSERT, LAUNCH_FAILED, Fault
from culaunch._emulator.machine.calls import CallEnd
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.bytes import store
from culaunch._emulator.memory.heap import HeapError
from culaunch._emulator.ops.child_launches import DEVICE_RUNTIME
from culaunch._emulator.ops.printf import LaneReader, format_message
from culaunch._emulator.report import Related

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op, Runner
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.report import Position
    from culaunch._emulator.types import Lanes

Builtin = Callable[..., Any]
_NO_MEMORY = 2  # cudaErrorMemoryAllocation


@dataclass(eq=False, kw_only=True)
class BuiltinCall(CallEnd):
    """Call a function of the runtime."""

    function: Builtin

    def run(self, group: Group, runner: Runner) -> int | None:
        """Run the function for all lanes."""
        result = self.function(group, [argument.read(group) for argument in self.arguments])
        if result is not None and self.results:
            slot = self.results[0]
            zero = group.code.zeros[slot]
            # The result is a .param variable, a row of bytes. This fills its first bytes.
            if zero.ndim == 2:
                words = np.zeros((result.shape[0], zero.shape[1]), np.uint8)
                size = result.dtype.itemsize
                words[:, :size] = np.ascontiguousarray(result).view(np.uint8).reshape(-1, size)
                group.regs[slot] = words
            else:
                group.regs[slot] = result.astype(zero.dtype)
        return self.following


def _of_words(function: Builtin) -> Builtin:
    """Return a function that gets words, of rows of bytes or words as the call declares them."""
    return lambda group, arguments: function(group, [_scalar(value) for value in arguments])


def _scalar(value: Lanes) -> Lanes:
    """Return a parameter's first eight bytes as a word."""
    if value.ndim == 1:
        return value.astype(np.uint64)
    return np.ascontiguousarray(value[:, :8]).view(np.uint64)[:, 0]


def _vprintf(group: Group, arguments: list[Lanes]) -> Lanes:
    formats, buffers = (np.broadcast_to(value, (group.n,)) for value in arguments[:2])
    counts = np.zeros(group.n, np.uint32)
    # In the order of the lanes, and written at once: text of other groups cannot come in between.
    texts = []
    for lane in range(group.n):
        reader = LaneReader(group, lane)
        text, count = format_message(reader, int(formats[lane]), int(buffers[lane]))
        counts[lane] = count
        texts.append(text)
    group.chunk.options.write("".join(texts))
    return counts


def _assertfail(group: Group, arguments: list[Lanes]) -> None:
    reader = LaneReader(group, 0)
    message, file, line, function = (int(value[0]) for value in arguments[:4])
    raise Fault(
        ASSERT,
        f"{reader.string(file)}:{line & 0xFFFFFFFF}: {reader.string(function)}: "
        f"assertion `{reader.string(message)}` failed",
        lane=group.lane_at(0),
    )


def _malloc(group: Group, arguments: list[Lanes]) -> Lanes:
    sizes = np.broadcast_to(arguments[0], (group.n,)).tolist()
    options = group.chunk.options
    places: list[Related | None] = [None] * group.n
    if options.check_leaks or options.track_allocations:
        call = _call(group)
        places = [_place(group, index, call) for index in range(group.n)]
    return np.array(group.chunk.launch.heap_alloc(sizes, places), np.uint64)


def _cuda_malloc(group: Group, arguments: list[Lanes]) -> Lanes:
    """Allocate of the heap of malloc, as the device runtime does, and write the address."""
    where, sizes = (np.broadcast_to(value, (group.n,)) for value in arguments[:2])
    addresses = _malloc(group, [sizes])
    store(group, LOCATORS[""](group, where, 8, "write"), 8, [addresses])
    codes: Lanes = np.where(addresses == 0, np.uint32(_NO_MEMORY), np.uint32(0))
    return codes


def _cuda_free(group: Group, arguments: list[Lanes]) -> Lanes:
    _free(group, arguments)
    return np.zeros(1, np.uint32)


def _call(group: Group) -> Position:
    return group.chunk.launch.position(group.code.blocks[group.block].instructions[-1])


def _place(group: Group, index: int, call: Position) -> Related:
    """Describe a call, for a later report on the block of memory that it is about."""
    block, thread = group.chunk.place(group.lane_at(index))
    return Related(f"block {block}, thread {thread} at {call}", call)


def _free(group: Group, arguments: list[Lanes]) -> None:
    launch, call = group.chunk.launch, _call(group)
    for index, address in enumerate(np.broadcast_to(arguments[0], (group.n,)).tolist()):
        place = _place(group, index, call)
        try:
            launch.heap_free(address, place)
        except HeapError as error:
            raise Fault(
                LAUNCH_FAILED,
                str(error),
                kind="invalid-free",
                lane=group.lane_at(index),
                related=list(error.earlier),
            ) from None


def _set_conditional(group: Group, arguments: list[Lanes]) -> None:
    conditions = group.chunk.launch.conditions
    handles, values = (np.broadcast_to(value, (group.n,)).tolist() for value in arguments[:2])
    for index, (handle, value) in enumerate(zip(handles, values, strict=True)):
        if handle not in conditions:
            raise Fault(
                LAUNCH_FAILED,
                f"cudaGraphSetConditional got {handle:#x}, which is not a condition of the graph "
                "that runs: pass a condition of the graph that launches the kernel",
                lane=group.lane_at(index),
            )
        conditions[handle] = value & 0xFFFFFFFF


BUILTINS: dict[str, Builtin] = {
    "vprintf": _of_words(_vprintf),
    "__assertfail": _of_words(_assertfail),
    "malloc": _of_words(_malloc),
    "free": _of_words(_free),
    "cudaGraphSetConditional": _of_words(_set_conditional),
    **dict.fromkeys(("__cudaCDP2Malloc", "cudaMalloc"), _of_words(_cuda_malloc)),
    **dict.fromkeys(("__cudaCDP2Free", "cudaFree"), _of_words(_cuda_free)),
    **DEVICE_RUNTIME,
}


@decodes("trap", "brkpt", results=0, effects=True, waits=False, undefined=Flow.IGNORES)
def _trap(decoder: Decoder, instruction: Instruction) -> Op:
    if instruction.name == "brkpt":
        # Without a debugger, a breakpoint is a no-op.
        return lambda _: None

    def run(group: Group) -> None:
        why = ""
        if group.chunk.launch.lacks_workspace:
            why = ", as a barrier of the whole grid does without cooperative=True in the launch"
        reason = f"the kernel executed trap{why}"
        raise Fault(LAUNCH_FAILED, reason, kind="trap", lane=group.lane_at(0))

    return run
