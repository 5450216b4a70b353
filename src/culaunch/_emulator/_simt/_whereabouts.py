"""Where the threads of a chunk are, for the report of a launch that does not end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator._fault import LAUNCH_TIMEOUT, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._emulator._ptx._syntax import Instruction
    from culaunch._emulator._simt._group import Group
    from culaunch._emulator._simt._scheduler import Scheduler

__all__ = ["timeout", "whereabouts"]

_MOST = 8


def timeout(scheduler: Scheduler, running: Group) -> Fault:
    """Return the fault of a launch that took too long while `running` was about to go on."""
    limit = scheduler.chunk.options.time_limit
    fault = Fault(
        LAUNCH_TIMEOUT,
        f"the launch took longer than {limit:g} seconds",
        lane=running.lane_at(0),
        notes=whereabouts(scheduler, running),
    )
    instruction = _next_instruction(running)
    if instruction is not None:
        scheduler.locate(fault, instruction)
    return fault


def whereabouts(scheduler: Scheduler, running: Group | None = None) -> list[str]:
    """Return a line for each place at which threads are, and what they do there."""
    lines = []
    for state, group, instruction in _groups(scheduler, running):
        block, thread = scheduler.chunk.place(group.lane_at(0))
        where = "at the end of the function"
        if instruction is not None:
            position = scheduler.chunk.launch.position(instruction)
            where = f"at {position}: {position.text.strip()}"
        many = f"{group.n} threads" if group.n > 1 else "1 thread"
        lines.append(f"{many} {state}, the first block {block}, thread {thread}, {where}")
    if len(lines) > _MOST:
        lines[_MOST:] = [f"and threads at {len(lines) - _MOST} other places"]
    return lines


def _groups(
    scheduler: Scheduler, running: Group | None
) -> Iterator[tuple[str, Group, Instruction | None]]:
    if running is not None:
        yield "running", running, _next_instruction(running)
    for parts in scheduler.pending.values():
        for group in parts:
            yield "ready to run", group, _next_instruction(group)
    for group in scheduler.warp_sync.parked.values():
        yield "waiting for lanes of the warp", group, _next_instruction(group)
    for barrier in scheduler.barriers.barriers.values():
        for waiter in barrier.waiters:
            yield "waiting at a barrier", waiter.group, waiter.arrival.instruction


def _next_instruction(group: Group) -> Instruction | None:
    instructions = group.code.blocks[group.block].instructions
    return instructions[0] if instructions else None
