"""Where the threads of a chunk are, for the report of a launch that does not end."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from culaunch._base.values import counted
from culaunch._emulator.fault import LAUNCH_TIMEOUT, Fault
from culaunch._emulator.report import Related

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.ptx.syntax import Instruction

# The action of a group, the group, and its current instruction.
Standing: TypeAlias = "tuple[str, Group, Instruction | None]"

# A divergent kernel's threads can be at hundreds of places. The first few show what happened.
_MOST = 8


def timeout(chunk: Chunk, running: Group, places: list[Related]) -> Fault:
    """Return the fault of a launch that took too long while `running` was about to go on."""
    limit = chunk.options.time_limit
    fault = Fault(
        LAUNCH_TIMEOUT,
        f"the launch took longer than {limit:g} seconds",
        lane=running.lane_at(0),
        related=places,
    )
    instruction = next_instruction(running)
    if instruction is not None:
        fault.position = chunk.launch.position(instruction)
    return fault


def whereabouts(chunk: Chunk, groups: Iterable[Standing]) -> list[Related]:
    """Describe each place of threads, with their state."""
    places = []
    for state, group, instruction in groups:
        block, thread = chunk.place(group.lane_at(0))
        where, position = "at the end of the function", None
        if instruction is not None:
            position = chunk.launch.position(instruction)
            where = f"at {position}: {position.text.strip()}"
        many = counted(group.n, "thread")
        message = f"{many} {state}, the first block {block}, thread {thread}, {where}"
        places.append(Related(message, position))
    if len(places) > _MOST:
        places[_MOST:] = [Related(f"and threads at {len(places) - _MOST} other places")]
    return places


def next_instruction(group: Group) -> Instruction | None:
    """Return the instruction that a group executes next, None at the end of its function."""
    instructions = group.code.blocks[group.block].instructions
    return instructions[0] if instructions else None
