"""One launch of a kernel: its grid in chunks, its memory, its faults."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from culaunch._base.values import counted
from culaunch._emulator.compiled.thread_order import SHARED, ordered_access
from culaunch._emulator.fault import COOPERATIVE_LAUNCH_TOO_LARGE, Fault
from culaunch._emulator.machine.children import Children
from culaunch._emulator.machine.chunk import Chunk
from culaunch._emulator.machine.history import History
from culaunch._emulator.machine.races import Races
from culaunch._emulator.machine.records import Records, shared_records
from culaunch._emulator.machine.scheduler import Scheduler
from culaunch._emulator.machine.shadow import Shadow
from culaunch._emulator.machine.zones import Zones
from culaunch._emulator.memory.scratch import Scratch
from culaunch._emulator.memory.undefined_bytes import UndefinedBytes
from culaunch._emulator.options import chosen_engine
from culaunch._emulator.report import Inlined, Position
from culaunch._emulator.undefined.engine import Undefined
from culaunch._image import demangle

if TYPE_CHECKING:
    from culaunch._emulator.kernel_code import KernelCode
    from culaunch._emulator.machine.clusters import Cluster
    from culaunch._emulator.memory.heap import Heap
    from culaunch._emulator.memory.ranges import GlobalMemory
    from culaunch._emulator.memory.read_only import ReadOnlyMemory
    from culaunch._emulator.memory.surface import Surface
    from culaunch._emulator.memory.texture import Texture
    from culaunch._emulator.memory.unwritten import Unwritten
    from culaunch._emulator.options import Options
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.report import Related
    from culaunch._emulator.types import Lanes

# A cooperative grid runs as one chunk. A larger one would not fit in memory.
_MAX_COOPERATIVE_LANES = 1 << 20
_WORKSPACE_BYTES = 16
# Seconds in the NumPy engine after which a kernel is compiled: at least this, and for each of its
# instructions. That is about what compiling takes, so nobody waits for more than twice what was
# necessary.
_HOT, _HOT_PER_INSTRUCTION = 0.1, 0.0015  # seconds
_FIRST_CHUNK = 32  # by which the first chunk of a kernel is smaller than the others


class Launch:
    """A kernel with its grid and arguments."""

    def __init__(
        self,
        options: Options,
        heap: Heap,
        kernel: KernelCode,
        params: bytes,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        dynamic_shared: int,
        memory: GlobalMemory,
        number: int,
        cluster: Cluster,
    ) -> None:
        self.options: Options = options
        self.heap = heap
        self.kernel = kernel
        self.grid: tuple[int, int, int] = grid
        self.block: tuple[int, int, int] = block
        self.cluster: Cluster = cluster
        self.threads = block[0] * block[1] * block[2]
        self.dynamic_shared: int = dynamic_shared
        self.shared_bytes: int = kernel.variables.dynamic_offset + dynamic_shared
        self.number: int = number
        self.memory = memory
        self.read_only: ReadOnlyMemory | None = None
        # The conditions of the graph that the launch is in, which the kernel may set.
        self.conditions: dict[int, int | None] = {}
        # The allocations of the device whose unwritten bytes are followed, by address.
        self.unwritten: dict[int, Unwritten] = {}
        self.children = Children()
        # The textures and surfaces of the device, by handle.
        self.texture_units: dict[int, Texture | Surface | None] = {}
        # The counter of grid barriers; null unless the launch is cooperative.
        self.grid_workspace = 0
        self.lacks_workspace = False
        # The first block that has not started, in the order of the run.
        self._next_block = 0
        # The order of clusters, or of blocks without clusters; None for the grid's own. It depends
        # only on the seed and on their number.
        self._cluster_order: Lanes | None = None
        if options.seed is not None:
            count = grid[0] * grid[1] * grid[2] // cluster.size
            self._cluster_order = np.random.default_rng(options.seed).permutation(count)
        # Set if races are checked: the accesses to global memory, by the place of each range.
        self._history: History | None = None
        self._shadows: dict[tuple[int, int], Shadow] = {}
        # Parameters are one row for all blocks: a kernel may not write to them.
        self.params = Scratch("param", 1, max(len(params), 1))
        self.params.array[: len(params)] = np.frombuffer(params, np.uint8)
        self.code = kernel.code(kernel.entry.name)
        self.local_bytes = self.code.local_bytes

    def run(self, *, cooperative: bool = False) -> None:
        """Run every block.

        Raises
        ------
        Fault
            With the kernel, block, thread and position of what went wrong.
        """
        engine = chosen_engine()
        is_possible = not (cooperative or self.options.needs_numpy or self.cluster.size > 1)
        if is_possible and (engine == "compiled" or (engine == "auto" and self._is_worth_it())):
            if self._run_compiled(always=engine == "compiled"):
                return
            is_possible = False
        self._run_chunks(cooperative=cooperative, may_change=is_possible and engine == "auto")

    def _run_compiled(self, *, always: bool) -> bool:
        """Run the blocks that have not started in the compiled engine, or return False."""
        # Loaded only now, because it needs a compiler, and the cache.
        from culaunch._emulator.compiled.engine import compiled_kernel

        return compiled_kernel(self.kernel).run(self, self._next_block, always=always)

    def _is_worth_it(self) -> bool:
        """Tell whether a kernel has run as long as its compilation takes, or is compiled."""
        kernel, seconds = self.kernel, self.kernel.seconds
        count = sum(len(block.instructions) for block in self.code.blocks)
        if seconds >= _HOT and seconds >= _HOT_PER_INSTRUCTION * count:
            return True
        if kernel.is_built is None:
            # Loaded only now, because it needs the cache.
            from culaunch._emulator.compiled.build import is_built

            kernel.is_built = is_built(kernel)
        return kernel.is_built

    def _run_chunks(self, *, cooperative: bool, may_change: bool) -> None:
        total = self.grid[0] * self.grid[1] * self.grid[2]
        width = -(-self.threads // 32) * 32
        # Blocks of a grid may run in any order, one after another as well as together: a chunk has
        # as many as fill the arrays that NumPy is quick with.
        # Those of a cluster run together.
        size = self.cluster.size
        step = max(1, self.options.lanes // (width * size)) * size
        if cooperative:
            if total * width > _MAX_COOPERATIVE_LANES:
                raise Fault(
                    COOPERATIVE_LAUNCH_TOO_LARGE,
                    f"a cooperative grid of {counted(total, 'block')} of "
                    f"{counted(self.threads, 'thread')}: the "
                    f"emulator runs at most {_MAX_COOPERATIVE_LANES} threads at once",
                    kernel=self.kernel.entry.name,
                )
            # A grid barrier waits for every block of the grid, so all of them must exist.
            step = total
            # Its own words begin at a multiple of two words.
            self._workspace = np.zeros(2 * _WORKSPACE_BYTES, np.uint8)
            at = self._workspace.ctypes.data
            self.grid_workspace = -(-at // _WORKSPACE_BYTES) * _WORKSPACE_BYTES
            self.memory.add([(self.grid_workspace, _WORKSPACE_BYTES)])
        if self.options.check_races:
            self._history = History(self)
        if self.options.check_races or self.options.check_unwritten:
            self.memory.observe = self._observe
        while self._next_block < total:
            first, started = self._next_block, time.perf_counter()
            # A small chunk of a new kernel tells early whether compiling is worth its time.
            is_first = may_change and step < total and not self.kernel.seconds
            is_small = is_first and not ordered_access(self.code, besides=SHARED)
            count = -(-step // _FIRST_CHUNK) if is_small else step
            self._next_block = min(first + count, total)
            self._run_chunk(first, self._next_block - first)
            self.kernel.seconds += time.perf_counter() - started
            # A kernel may become hot in its only launch.
            if may_change and self._next_block < total and self._is_worth_it():
                if self._run_compiled(always=False):
                    break
                may_change = False
        for (base, _), shadow in self._shadows.items():
            # The garbage collector may have freed an allocation.
            followed = self.unwritten.get(base)
            if followed is not None and shadow.undefined is not None:
                followed.end_launch()

    def cancel_cluster(self) -> tuple[int, int, int] | None:
        """Cancel the next cluster that has not started, and return its first block."""
        number = self._next_block
        if number >= self.grid[0] * self.grid[1] * self.grid[2]:
            return None
        self._next_block += self.cluster.size
        x, y, z = self.cluster.block_of(self.block_numbers(number, 1), self.grid)
        return int(x[0]), int(y[0]), int(z[0])

    def block_numbers(self, first: int, count: int) -> Lanes:
        """Return the numbers in the grid of some consecutive blocks in the order of the run."""
        numbers = np.arange(first, first + count)
        if self._cluster_order is None:
            return numbers
        size = self.cluster.size
        chosen: Lanes = self._cluster_order[numbers // size] * size + numbers % size
        return chosen

    def position(self, instruction: Instruction) -> Position:
        """Describe where an instruction is, in the PTX and in the source."""
        image = self.kernel.module.image
        syntax = image.syntax
        file, line = None, None
        if instruction.loc is not None:
            number, line = instruction.loc
            file = syntax.files.get(number, f"file {number}")
        inlined = []
        for call in instruction.inlined:
            name = syntax.strings.get(call.name, "a function")
            place = syntax.files.get(call.file, f"file {call.file}")
            called = image.source_text(place, call.line)
            inlined.append(Inlined(demangle(name) or name, place, call.line, called))
        text = image.tokens.line_text(instruction.line)
        known = "" if file is None or line is None else image.source_text(file, line)
        return Position(instruction.line, text, file, line, known, tuple(inlined))

    def heap_alloc(self, sizes: list[int], places: list[Related | None]) -> list[int]:
        """Allocate for malloc in a kernel; the launch may touch the blocks at once."""
        pairs = zip(sizes, places, strict=True)
        addresses = [self.heap.alloc(size, place) for size, place in pairs]
        self.memory.add(
            [(at, size) for at, size in zip(addresses, sizes, strict=True) if at and size]
        )
        return addresses

    def heap_free(self, address: int, place: Related) -> None:
        """Free a block of `heap_alloc`, which the launch may not touch any more."""
        self.heap.free(address, place)
        self.memory.remove(address)
        # Another allocation may get the address.
        for key in [key for key in self._shadows if key[0] == address]:
            del self._shadows[key]

    def _observe(self, base: int, size: int) -> Shadow:
        """Return the observer of a range of global memory, which lives as long as the launch."""
        if (base, size) not in self._shadows:
            records, undefined = None, None
            if self._history is not None:
                unit = self.kernel.smallest_access
                records = Records(size, unit, "global", lambda at: base + at, fresh=False)
            followed = self.unwritten.get(base) if self.options.check_unwritten else None
            if followed is not None:
                undefined = followed.bytes_of(size)
                if undefined is None:
                    self.unwritten.pop(base, None)
            self._shadows[base, size] = Shadow(undefined, records)
        return self._shadows[base, size]

    def _run_chunk(self, first: int, blocks: int) -> None:
        chunk = Chunk(self, first, blocks)
        options = self.options
        if self._history is not None:
            chunk.races = Races(chunk, self._history)
        # Without shared memory, none of these checks can find uninitialized memory or a race there.
        # Without `check_unwritten`, the shadow of local memory is created when an undefined value
        # is first stored there.
        if options.check_unwritten:
            chunk.local.shadow = Shadow(UndefinedBytes(chunk.local, undefined=True))
        shared, variables = chunk.shared, self.kernel.variables
        has_gaps = options.check_variables and variables.shared
        if self.shared_bytes and (options.check_uninitialized or options.check_races or has_gaps):
            shared.shadow = Shadow(
                UndefinedBytes(shared, undefined=True) if options.check_uninitialized else None,
                shared_records(shared) if options.check_races else None,
                Zones(shared, variables.shared, variables.dynamic_offset) if has_gaps else None,
            )
        scheduler = Scheduler(chunk, Undefined(chunk, self.kernel, self.kernel.plans))
        try:
            # Overflow, division by zero and NaN are ordinary results of a kernel. NumPy would warn
            # of each.
            with np.errstate(all="ignore"):
                scheduler.run(self.code, list(self.code.zeros))
        except Fault as fault:
            fault.kernel = self.kernel.entry.name
            if fault.lane is not None and fault.block is None:
                fault.block, fault.thread = chunk.place(fault.lane)
            raise
