"""A driver in Python that runs nothing and remembers everything, bit for bit.

It has two devices like an H100. It refuses what the real driver refuses, with the same
code: no context, a block too large, shared memory that was not opted in to, loading during a
capture. Any function can be told to fail.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading

from driver_api import DriverApi, FakeKernel, Launch
from driver_tables import DEVICE_ATTRIBUTES, PROTOTYPES

import culaunch as cl
from culaunch import _core
from culaunch._launch.devices import driver as drivers

NAME = "/recorder"  # where a library's path would stand
# A table of functions lives forever, like a loaded library. A stream or an event may outlive its
# test, in the traceback of a failure, and calls the driver when it is freed.
CALLBACKS: list[list] = []


def recorders(monkeypatch, **defaults):
    """Yield a function that makes recording drivers, the last one the driver in use.

    It is the value of a fixture. Errors inside a driver are raised afterwards.
    """
    made = []

    def make(**options) -> RecordingDriver:
        driver = RecordingDriver(**{**defaults, **options})
        made.append(driver)
        use(driver, monkeypatch)
        return driver

    yield make
    for driver in made:
        for defect in driver.defects:
            raise defect


def use(driver: RecordingDriver, monkeypatch) -> None:
    """Make a recording driver the one in use, for a test."""
    monkeypatch.setitem(drivers.open_drivers, NAME, driver.core)
    monkeypatch.setenv("CULAUNCH_DRIVER", NAME)


def the_recorder(**options) -> RecordingDriver:
    """Make a recording driver the one in use for good: in a process of its own."""
    driver = RecordingDriver(**options)
    drivers.open_drivers[NAME] = driver.core
    os.environ["CULAUNCH_DRIVER"] = NAME
    return driver


class RecordingDriver(DriverApi):
    """The driver; ``core`` is what culaunch takes. `device_types` are DLPack's, its own first."""

    def __init__(self, device_types=(2, 13, 3), devices=2, version=13000, instead=None):
        self.version = version
        self.devices = [dict(DEVICE_ATTRIBUTES) for _ in range(devices)]
        self.launches: list[Launch] = []
        self.calls: list[tuple[str, tuple]] = []
        self.failures: dict[str, list[int]] = {}
        self.defects: list[BaseException] = []  # exceptions in a callback: the fixture raises them
        self.contexts = {0xC0000 + i: i for i in range(devices)}  # the primary ones first
        self.ids: dict[int, int] = {}  # context -> its number
        self.streams: dict[int, int] = {}  # handle -> context
        self.capturing: set[int] = set()
        self.apart: set[tuple[int, int]] = set()  # devices without a connection
        self.peers: set[tuple[int, int]] = set()  # contexts, and whose memory they reach
        self.images: dict[bytes, dict] = {}
        self.libraries: dict[int, dict] = {}
        self.kernels: dict[int, FakeKernel] = {}
        self.functions: dict[int, tuple[FakeKernel, int]] = {}  # handle -> kernel, context
        self.memory: dict[int, tuple[int, object]] = {}  # address -> (device, buffer)
        self.jit_log = b""
        self.events: dict[int, int] = {}  # handle -> device
        self.not_ready: set[int] = set()  # streams and events
        self.elapsed: list[float] = []  # the next times between events, in milliseconds
        self.pinned: dict[int, object] = {}
        self.objects: dict[int, bool] = {}  # arrays, textures and surfaces
        self.descriptors: list[bytes] = []
        self.recording = True
        self._thread = threading.local()
        self._handles = itertools.count(0x10000, 16)
        self._numbers = itertools.count(1)
        self._kept = []
        CALLBACKS.append(self._kept)
        self._of_one: dict = {}
        # Graphs it has not, as a driver may.
        functions = {name: self._callback(name) for name in PROTOTYPES if hasattr(self, name)}
        functions.update(instead or {})
        self.core = _core.Driver.from_functions("recorder", functions, tuple(device_types))

    # ---- what a test does

    def kernel(self, *sizes, name="k", signature=None, layout=None, attributes=None):
        """Load a kernel whose parameters have these sizes, aligned as C aligns them."""
        layout = layout_of(sizes) if layout is None else layout
        module = cl.load(self.image({name: layout}, attributes={name: attributes or {}}))
        return module.kernel(name, signature=signature)

    def bytes_of(self, value, size, type=None) -> bytes:  # noqa: A002
        """Pass one value for a parameter of this size and type; give the bytes that arrived."""
        kernel = self._of_one.get((size, type))
        if kernel is None:
            kernel = self._of_one[size, type] = self.kernel(size, signature=type)
        kernel[1, 1](value)
        return self.last.arguments[0]

    def image(self, kernels, variables=None, attributes=None) -> bytes:
        """Make an image of the given kernels, {name: ((offset, size), ...)}, and variables."""
        text = b".version 8.4\n.target sm_90\n.address_size 64\n// %d\n" % next(self._handles)
        self.images[text] = {
            "kernels": kernels, "variables": variables or {}, "attributes": attributes or {},
        }  # fmt: skip
        return text

    def fail(self, function, *codes):
        """Let the next calls of a function give these codes."""
        self.failures.setdefault(function, []).extend(codes)

    def make_context(self, device=0) -> int:
        handle = next(self._handles)
        self.contexts[handle] = device
        return handle

    def destroy_context(self, context):
        """Destroy one, with what is in it; the next one may be at its address."""
        assert self.stack[-1:] == [context]
        self.stack.pop()
        del self.contexts[context]
        self.ids.pop(context, None)

    def make_stream(self, device=0) -> int:
        handle = next(self._handles)
        self.streams[handle] = 0xC0000 + device
        return handle

    def count(self, function) -> int:
        return sum(name == function for name, _ in self.calls)

    @property
    def stack(self) -> list[int]:
        """The contexts of this thread, the current one last."""
        return self._thread.__dict__.setdefault("stack", [])

    @property
    def last(self) -> Launch:
        return self.launches[-1]

    def _callback(self, name):
        method = getattr(self, name)
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *PROTOTYPES[name])

        def call(*args):
            try:
                if self.recording:
                    self.calls.append((name, args))
                codes = self.failures.get(name)
                if codes:
                    return codes.pop(0)
                return method(*args) or 0
            except BaseException as error:  # noqa: BLE001
                self.defects.append(error)
                return 999

        callback = prototype(call)
        self._kept.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value


def layout_of(sizes):
    """Place parameters as C does: each at a multiple of the largest power of 2 in its size."""
    layout, end = [], 0
    for size in sizes:
        alignment = min(size & -size, 16)
        offset = (end + alignment - 1) // alignment * alignment
        layout.append((offset, size))
        end = offset + size
    return tuple(layout)
