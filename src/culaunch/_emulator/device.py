"""An emulated device: its memory, its launches, and the error that ended it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from culaunch._base.fork_lock import ForkLock
from culaunch._base.values import counted
from culaunch._emulator.allocation_site import allocation_site
from culaunch._emulator.fault import (
    INVALID_CLUSTER_SIZE,
    INVALID_VALUE,
    LAUNCH_FAILED,
    NOT_SUPPORTED,
    Fault,
)
from culaunch._emulator.launch import Launch
from culaunch._emulator.machine.children import ChildLaunch
from culaunch._emulator.machine.clusters import Cluster
from culaunch._emulator.memory.heap import Heap
from culaunch._emulator.memory.ranges import GlobalMemory
from culaunch._emulator.memory.read_only import NamedArray, ReadOnlyMemory
from culaunch._emulator.memory.unwritten import Unwritten
from culaunch._emulator.module import LoadedModule
from culaunch._emulator.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from culaunch._emulator.fault import Explanation
    from culaunch._emulator.memory.surface import Surface
    from culaunch._emulator.memory.texture import Texture
    from culaunch._emulator.ptx_image import PtxImage
    from culaunch._emulator.types import Lanes

# KiB that a block can opt in to, by compute capability (CUDA C++ Programming Guide, "Technical
# Specifications per Compute Capability"). A device that is not listed gets the smallest size.
_MAX_SHARED = {80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 120: 99}


# The guide's limit for kernels that launch each other ("Nesting Depth").
_MAX_DEPTH = 24


class Reserved(NamedTuple):
    """Memory that is not an allocation yet: its address, its size, and the array that holds it."""

    address: int
    size: int
    memory: Lanes


class Device:
    """A device whose memory is host memory.

    Parameters
    ----------
    arch : str
        The architecture it reports, such as ``"sm_80"``.
    options : Options, optional
        Its checks.

    Attributes
    ----------
    fault : Fault or None
        The first fault of a kernel. It is sticky, as in CUDA: later launches raise it again.
    """

    def __init__(self, arch: str = "sm_80", options: Options | None = None) -> None:
        self.arch = arch
        # One call at a time: the emulator's state is Python objects, which threads of C++ enter as
        # they like. A callback of the caller's may call the driver again, in the same thread.
        self.lock = ForkLock()
        self.options = options or Options()
        self.fault: Fault | None = None
        self._modules: list[LoadedModule] = []
        # Address -> the requested size, and the array that holds the memory. Dropping the entry
        # frees the memory.
        self._allocations: dict[int, tuple[int, Lanes]] = {}
        # Where allocations were made, of those that were tracked.
        self._sites: dict[int, str] = {}
        # The allocations whose unwritten bytes are followed.
        self._unwritten: dict[int, Unwritten] = {}
        self.heap = Heap()
        # The values of the conditions of the graph that runs; None: not set yet.
        self.conditions: dict[int, int | None] = {}
        # Textures and surfaces by handle. None: destroyed, and never the handle of another.
        self.texture_units: dict[int, Texture | Surface | None] = {}
        self._launches = 0

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability."""
        number = int("".join(c for c in self.arch if c.isdigit()))
        return number // 10, number % 10

    @property
    def has_clusters(self) -> bool:
        """Whether blocks can be launched in clusters."""
        return self.capability >= (9, 0)

    @property
    def max_shared(self) -> int:
        """The most shared memory a block can opt in to, in bytes."""
        major, minor = self.capability
        return _MAX_SHARED.get(10 * major + minor, 99) * 1024

    def load(self, image: PtxImage) -> LoadedModule:
        """Give the variables of a module memory and their initial values.

        Kernels of every module may touch them, as long as the module is loaded.
        """
        module = LoadedModule(image)
        self._modules.append(module)
        return module

    def unload(self, module: LoadedModule) -> None:
        """Take a module's variables away from the kernels of others."""
        self._modules.remove(module)

    def alloc(self, size: int, align: int = 512, *, zeros: bool = True) -> int:
        """Allocate `size` bytes and return their address; without `zeros` they may be checked."""
        reserved = self.reserve(size, align)
        self.commit(reserved)
        address, memory = reserved.address, reserved.memory
        if self.options.check_unwritten and not zeros:
            first = address - memory.ctypes.data
            part = memory[first : first + -(-size // 16) * 16]
            self._unwritten[address] = Unwritten(address, size, part)
        return address

    def reserve(self, size: int, align: int = 512) -> Reserved:
        """Return memory with an address, which nothing may access yet."""
        # NumPy aligns to 16 bytes only. cuMemAlloc promises 256, which kernels with wide vectors
        # rely on, and textures need 512.
        memory: Lanes = np.zeros(max(size, 1) + align, np.uint8)
        return Reserved(-(-memory.ctypes.data // align) * align, size, memory)

    def commit(self, reserved: Reserved) -> None:
        """Make reserved memory an allocation."""
        self._allocations[reserved.address] = (reserved.size, reserved.memory)
        if self.options.track_allocations:
            self._sites[reserved.address] = allocation_site()

    def register(self, address: int, size: int) -> None:
        """Let kernels access memory of the host, until it is freed here; the host keeps it."""
        self._allocations[address] = (size, np.empty(0, np.uint8))

    def has(self, address: int) -> bool:
        """Tell whether `address` is the start of an allocation."""
        return address in self._allocations

    def free(self, address: int) -> None:
        """Free an allocation; raise KeyError if `address` is not the start of one."""
        del self._allocations[address]
        self._sites.pop(address, None)
        self._unwritten.pop(address, None)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Address and size of every allocation of the host's."""
        # A copy, because the garbage collector may free an allocation at any step of the loop.
        return [(address, size) for address, (size, _) in self._allocations.copy().items()]

    def require_no_fault(self) -> None:
        """Raise the fault of an earlier launch, if there was one, as another exception each time.

        One that is raised again grows by a traceback, and holds all that the frames in it hold.
        """
        if self.fault is not None:
            raise self.fault.later()

    def require_no_leaks(self) -> None:
        """Raise a fault for the blocks of malloc that are not freed, if leaks are checked.

        It is not sticky: the device is good, and each block is reported once.
        """
        if not self.options.check_leaks:
            return
        count, size, places = self.heap.leaks()
        if count:
            raise Fault(
                LAUNCH_FAILED,
                f"{counted(count, 'block')} of malloc in kernels, {counted(size, 'byte')} in all, "
                f"{'is' if count == 1 else 'are'} not freed",
                kind="leak",
                position=next((place.position for place in places if place.position), None),
                related=places,
            )

    def launch(
        self,
        module: LoadedModule,
        kernel: str,
        params: bytes,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int = 0,
        *,
        cluster: Sequence[int] = (1, 1, 1),
        cooperative: bool = False,
        ranges: Iterable[tuple[int, int]] = (),
        storages: Iterable[tuple[int, int]] = (),
        read_only: Sequence[NamedArray] = (),
        beyond: Callable[[int], Explanation | None] | None = None,
        name: Callable[[int, int], str] = lambda _begin, _end: "",
        depth: int = 0,
    ) -> None:
        """Run a kernel to its end, and then the kernels that it launches.

        Parameters
        ----------
        module : LoadedModule
            The loaded module.
        kernel : str
            The kernel's name in the PTX.
        params : bytes
            The parameters in the kernel's layout.
        grid, block : sequence of int
            Up to three extents.
        shared_bytes : int
            Dynamic shared memory in bytes.
        cluster : sequence of int
            Up to three extents: these blocks can access each other's shared memory.
        cooperative : bool
            Run all blocks at the same time, so they can wait for each other.
        ranges : iterable of (int, int)
            Address and size of host memory that the kernel may access, in addition to the
            allocations of the device and the module.
        storages : iterable of (int, int)
            Likewise, but this does not allow writes to what is also in ``read_only``.
        read_only : sequence of NamedArray
            Host memory that the kernel may only read.
        beyond : callable, optional
            Says of an address outside all of these what else it may be, or None.
        name : callable, optional
            Returns the argument that points to memory between two addresses, or an empty string.
        depth : int
            How many kernels launched each other before this one.

        Raises
        ------
        Fault
            If the launch is refused (``INVALID_VALUE``, ``LAUNCH_OUT_OF_RESOURCES``: nothing ran,
            the device is still good), or the kernel failed (sticky).
        """
        # The driver checks in the same order: a sticky fault first, then the reasons to refuse the
        # launch. A refused launch has therefore run nothing.
        self.require_no_fault()
        grid3, block3 = _extents(grid, "grid", kernel), _extents(block, "block", kernel)
        info = module.image.kernel(kernel)
        threads = block3[0] * block3[1] * block3[2]
        if threads > info.max_threads:
            _refuse(
                INVALID_VALUE,
                kernel,
                f"the block has {counted(threads, 'thread')}, but at most {info.max_threads} are "
                "allowed",
            )
        if info.required_threads is not None and block3 != info.required_threads:
            _refuse(
                INVALID_VALUE, kernel, f"the block must be {info.required_threads}, got {block3}"
            )
        if len(params) < info.param_bytes:
            _refuse(
                INVALID_VALUE,
                kernel,
                f"the parameters have {counted(len(params), 'byte')}, but the kernel needs "
                f"{info.param_bytes}",
            )
        if info.static_shared + shared_bytes > self.max_shared:
            _refuse(
                INVALID_VALUE,
                kernel,
                f"{info.static_shared} bytes of static and {shared_bytes} of dynamic shared "
                f"memory, but at most {self.max_shared} together are available",
            )
        shape = Cluster(*(*cluster, 1, 1, 1)[:3])
        if shape.size > 1 and not self.has_clusters:
            _refuse(
                NOT_SUPPORTED,
                kernel,
                f"clusters need sm_90 or newer, but the device is {self.arch}",
            )
        if any(extent % size for extent, size in zip(grid3, shape, strict=True)):
            reason = f"the grid {grid3} is not a multiple of the cluster {tuple(shape)}"
            _refuse(INVALID_CLUSTER_SIZE, kernel, reason)
        # The accessible memory is determined for each launch, because allocations change, and host
        # arrays are known only for one launch.
        ranges, storages = list(ranges), list(storages)
        writable = [*self.ranges, *self.heap.ranges, *ranges]
        everything = [*writable, *storages, *((base, size) for base, size, _ in read_only)]
        self._launches += 1

        def explain(address: int) -> Explanation | None:
            return self.heap.describe_freed(address) or (beyond and beyond(address)) or None

        def about(begin: int, end: int) -> str:
            site = self._sites.get(begin) or self.heap.maker(begin)
            words = (name(begin, end), site and f"made at {site}")
            return "".join(f", {word}" for word in words if word)

        variables = [loaded.limits for loaded in self._modules]
        launch = Launch(
            self.options,
            self.heap,
            module.code(kernel, self.options.code_checks._replace(clusters=shape.size > 1)),
            params,
            grid3,
            block3,
            shared_bytes,
            GlobalMemory(everything, variables, explain, about),
            self._launches,
            shape,
        )
        launch.conditions = self.conditions
        launch.unwritten = self._unwritten
        launch.texture_units = self.texture_units
        if read_only:
            launch.read_only = ReadOnlyMemory(read_only, writable)
        try:
            launch.run(cooperative=cooperative)
        # Only a fault of the kernel is sticky. A refusal above left the device unchanged. Keep a
        # copy, because the raised fault holds the frames of the launch.
        except Fault as fault:
            self.fault = fault.copy()
            raise
        for child in launch.children.in_order():
            if not isinstance(child, ChildLaunch):
                child()
                continue
            # The children may access the memory of their parent.
            shares: Any = {"ranges": ranges, "storages": storages, "read_only": read_only}
            shares.update(beyond=beyond, name=name, depth=depth + 1)
            try:
                self._launch_child(module, child, shares)
            except Fault as fault:
                fault.code = fault.code if self.fault else LAUNCH_FAILED
                if child.place is not None:
                    fault.related.append(child.place)
                self.fault = fault.copy()
                raise

    def _launch_child(self, module: LoadedModule, child: ChildLaunch, shares: Any) -> None:
        if shares["depth"] > _MAX_DEPTH:
            reason = f"kernels launch each other more than {_MAX_DEPTH} times in a row"
            _refuse(LAUNCH_FAILED, child.kernel, reason)
        shape = child.grid, child.block, child.shared
        self.launch(module, child.kernel, child.values, *shape, **shares)


def _extents(given: Sequence[int], what: str, kernel: str) -> tuple[int, int, int]:
    x, y, z = (*given, 1, 1, 1)[:3]
    if min(x, y, z) < 1:
        _refuse(INVALID_VALUE, kernel, f"the {what} {tuple(given)} has an extent below 1")
    # CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; the same for
    # all.
    limits = (2**31 - 1, 65535, 65535) if what == "grid" else (1024, 1024, 64)
    if x > limits[0] or y > limits[1] or z > limits[2]:
        _refuse(INVALID_VALUE, kernel, f"the {what} {tuple(given)} exceeds {limits}")
    return int(x), int(y), int(z)


def _refuse(code: int, kernel: str, reason: str) -> None:
    raise Fault(code, reason, kernel=kernel)
