"""Which engine runs a launch, and the run of a compiled kernel."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import time
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.compiled.build import Built, find_compiler
from culaunch._emulator.compiled.lane import Untraceable
from culaunch._emulator.compiled.text import kernel_text
from culaunch._emulator.compiled.textures import LaunchTextures
from culaunch._emulator.compiled.thread_order import (
    SHARED,
    communicating_access,
    ordered_access,
    reads_textures,
)
from culaunch._emulator.compiled.ufuncs import LOOPS
from culaunch._emulator.outside import comes_from_outside

if TYPE_CHECKING:
    from culaunch._emulator.kernel_code import KernelCode
    from culaunch._emulator.machine.chunk import LaunchView

_PAGE = 4096
_ALONE = 1 << 20  # work, of about a nanosecond, that does not pay for another thread
_kernels: weakref.WeakKeyDictionary[KernelCode, CompiledKernel] = weakref.WeakKeyDictionary()


def compiled_kernel(kernel: KernelCode) -> CompiledKernel:
    """Return this engine's compiled form of a kernel."""
    found = _kernels.get(kernel)
    if found is None:
        found = _kernels[kernel] = CompiledKernel(kernel)
    return found


class CompiledKernel:
    """A kernel in the compiled engine.

    Attributes
    ----------
    ran : int
        How many launches ran to their end here.
    why_not : str
        Why the NumPy engine runs it; empty if this one does.
    ordered : str or None
        The opcode of an access whose effect may depend on the order of threads, or empty; None
        before the first launch.
    watches : bool
        Whether all such accesses are in shared memory. Then a launch ends as soon as the order may
        affect one of them.
    reads_textures : bool
    communicates : bool
        Whether blocks may communicate. Then one thread of the processor runs them in order.
    cores : int
        How many threads of the processor ran the blocks of the last launch.
    groups : int
        How many groups of threads ran to their end side by side.
    apart : bool
        Whether all threads run one after the other, because a group could not run a launch.
    """

    def __init__(self, kernel: KernelCode) -> None:
        # The one that keeps this one alive.
        self._kernel = weakref.ref(kernel)
        self.ran = 0
        self.why_not = ""
        self.ordered: str | None = None
        self.watches = False
        self.reads_textures = False
        self.communicates = True
        self.cores = 0
        self.groups = 0
        self.apart = False
        self._run: Any = None
        self._symbols: np.ndarray[Any, Any] = np.zeros(1, np.uint64)

    def run(self, launch: LaunchView, begin: int, *, always: bool) -> bool:
        """Run a launch from a block to its end, or return False with memory as it was.

        A kernel whose results may depend on the order of threads runs here only if it is to
        `always` run here, or if the run shows that they do not. So results never depend on when a
        kernel was compiled.
        """
        if self.ordered is None:
            kernel = self._kernel()
            assert kernel is not None
            code = kernel.code(kernel.entry.name)
            self.ordered = ordered_access(code)
            self.watches = bool(self.ordered) and not ordered_access(code, besides=SHARED)
            self.reads_textures = reads_textures(code)
            self.communicates = bool(communicating_access(code))
        if self.why_not or (self.ordered and not always and not self.watches):
            return False
        if self._run is None:
            self._compile()
        if self._run is None:
            return False
        result = _REASONS[self._run_once(launch, begin, watches=self.watches and not always)]
        self.ran += not result
        if result and not always:
            # A kernel that did something unusual mostly does it again: undefined values, asserts.
            self.why_not = result
        return not result

    def _compile(self) -> None:
        kernel = self._kernel()
        assert kernel is not None
        try:
            if find_compiler() is None or not _loops():
                self.why_not = "there is no C compiler, or this NumPy is not supported"
                return
            built = Built(kernel)
            library = built.find() or built.build(_text_of(kernel))
        except (Untraceable, OSError) as error:
            if comes_from_outside(error):
                raise
            self.why_not = str(error)
        except subprocess.CalledProcessError as error:
            self.why_not = f"{' '.join(error.cmd)} failed: {error.stderr}"
        else:
            self._run = library.culaunch_run
            # The variables whose addresses it needs.
            names = ctypes.cast(library.culaunch_symbols, ctypes.c_char_p).value or b""
            addresses = [kernel.module.address(name) for name in names.decode().split()]
            self._symbols = np.array([*addresses, 0], np.uint64)

    def _run_once(self, launch: LaunchView, begin: int, *, watches: bool) -> int:
        memory, options = launch.memory, launch.options
        bases = np.array(memory.bases, np.uint64)
        ends = np.array(memory.ends, np.uint64)
        counts = (ends + np.uint64(_PAGE - 1)) // np.uint64(_PAGE) - bases // np.uint64(_PAGE)
        pages = np.zeros(len(bases) + 1, np.uint64)
        np.cumsum(counts, out=pages[1:])
        saved = np.zeros(int(pages[-1]) + 1, np.uint8)
        textures = LaunchTextures(launch) if self.reads_textures else None
        fixed = [] if launch.read_only is None else [*launch.read_only.ranges]
        if textures is not None:
            # A read sees what the launch has written, or not.
            fixed += textures.memory
        _mark_read_only(fixed, bases, pages, saved)
        records = textures.records if textures is not None else ()
        loops = _loops()
        params = launch.params
        cores = 1 if self.communicates else options.cores or len(os.sched_getaffinity(0))
        record = _Record(
            ranges=len(bases),
            bases=bases.ctypes.data,
            ends=ends.ctypes.data,
            pages=pages.ctypes.data,
            saved=saved.ctypes.data,
            params=params.array.ctypes.data,
            params_size=params.size,
            symbols=self._symbols.ctypes.data,
            grid=launch.grid,
            block=launch.block,
            begin=begin,
            shared_size=launch.shared_bytes,
            local_size=launch.local_bytes,
            checks=options.check_uninitialized,
            loops=ctypes.addressof(loops[0]),
            loop_data=ctypes.addressof(loops[1]),
            call=_address_of("PyObject_CallNoArgs"),
            release=_address_of("Py_DecRef"),
            nothing=id(_nothing),
            apart=self.apart,
            deadline=0 if options.time_limit is None else time.monotonic() + options.time_limit,
            alone=_ALONE,
            cores=cores,
            watches=watches,
            textures=ctypes.addressof(records) if records else None,
            texture_count=len(records),
        )
        found: int = self._run(ctypes.byref(record))
        self.groups += record.groups
        self.cores = record.used
        self.apart = bool(record.apart)
        return found


def _nothing() -> None:
    """Give Python the opportunity to run something else, or to raise."""


# By the numbers of types.c. An interrupted launch raises Python's exception.
_REASONS = (
    "",
    "something that only the NumPy engine handles: a fault, an undefined value or a call",
    "threads that wait for others, or the time limit",
    "interrupted",
    "no memory",
)


class _Record(ctypes.Structure):
    """`Launch` of types.c."""

    _fields_ = (
        ("ranges", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in ("bases", "ends", "pages", "saved", "params")),
        ("params_size", ctypes.c_uint64),
        ("symbols", ctypes.c_void_p),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("begin", ctypes.c_uint64),
        ("shared_size", ctypes.c_uint64),
        ("local_size", ctypes.c_uint64),
        ("checks", ctypes.c_uint32),
        *((name, ctypes.c_void_p) for name in ("loops", "loop_data")),
        *((name, ctypes.c_void_p) for name in ("call", "release", "nothing")),
        ("deadline", ctypes.c_double),
        ("alone", ctypes.c_uint64),
        ("cores", ctypes.c_uint32),
        ("groups", ctypes.c_uint64),
        ("apart", ctypes.c_uint32),
        ("used", ctypes.c_uint32),
        ("watches", ctypes.c_uint32),
        ("textures", ctypes.c_void_p),
        ("texture_count", ctypes.c_uint64),
        # Room for the run's own state.
        ("own", ctypes.c_uint64 * 20),
    )


class _UfuncHead(ctypes.Structure):
    """The start of NumPy's PyUFuncObject (numpy/ufuncobject.h)."""

    _fields_ = (
        ("head", ctypes.c_char * object.__basicsize__),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    )


@functools.cache
def _loops() -> Any:
    """Return NumPy's loops over float64 and their data; an empty tuple if it has other ones.

    These functions round as NumPy's authors chose, in each release and for each processor. Calling
    the same loop gives the same bits.
    """
    functions, data = (ctypes.c_void_p * len(LOOPS))(), (ctypes.c_void_p * len(LOOPS))()
    for i, ufunc in enumerate(LOOPS):
        head = _UfuncHead.from_address(id(ufunc))
        if (head.nin, head.nout, head.nargs, head.ntypes) != (1, 1, 2, len(ufunc.types)):
            return ()
        at = ufunc.types.index("d->d")
        functions[i] = head.functions[at]
        data[i] = head.data[at] if head.data else None
    return functions, data


def _text_of(kernel: KernelCode) -> str:
    return f"#define RECORD {ctypes.sizeof(_Record)}\n{kernel_text(kernel)}"


def _address_of(name: str) -> int | None:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value


def _mark_read_only(ranges: list[tuple[int, int]], bases: Any, pages: Any, saved: Any) -> None:
    """Let a write to a page that is read-only, at least in part, end the launch."""
    for start, end in ranges:
        first = int(np.searchsorted(bases, np.uint64(start), side="right")) - 1
        for index in range(max(first, 0), len(bases)):
            base = int(bases[index])
            if base >= end:
                break
            low = max(start, base) // _PAGE - base // _PAGE
            high = (end - 1) // _PAGE - base // _PAGE
            stop = int(pages[index + 1])
            saved[int(pages[index]) + low : min(int(pages[index]) + high + 1, stop)] = 2
