"""The parts that all contenders share: the driver, the image, the stream, arrays, the check."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead.build import build_null_driver, build_twin
from overhead.cases import BLOCK, CASES, ELEMENTS, GRID, SLOPE_CASES, Case, cuda_source, fake_cubin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overhead.timing import Burst


class Bench:
    """The driver in use, opened once, with everything that the contenders have in common.

    Parameters
    ----------
    host_only : bool
        Use the null driver: CPU arrays stand for device arrays and nothing runs.
    cases : tuple of Case
        The kernels that every contender launches.

    Attributes
    ----------
    image : bytes
        A cubin with every kernel, or on the null driver a header that says it is one.
    stream : int
        The stream that every contender launches on: torch's current stream, made for this run
        (on the null driver any handle will do).
    """

    def __init__(self, *, host_only: bool, cases: tuple[Case, ...] = CASES) -> None:
        self.host_only = host_only
        self.cases = cases
        self._kept: list[Any] = []
        self.driver = str(build_null_driver()) if host_only else "libcuda.so.1"
        if host_only:
            # From here on, the loader gives this library to all who ask for libcuda.so.1, because
            # it matches by SONAME. It must come before torch and cuda-bindings.
            self.null = ctypes.CDLL(self.driver, mode=ctypes.RTLD_GLOBAL)
            self.null.fake_driver_launches.restype = ctypes.c_uint64
            os.environ["CULAUNCH_DRIVER"] = self.driver
            for case in CASES + SLOPE_CASES:
                sizes = (ctypes.c_size_t * case.count)(*case.sizes)
                self.null.fake_driver_declare(case.mangled.encode(), case.count, sizes)
        self.twin = _load_twin()
        _check(self.twin.twin_open(self.driver.encode()), f"opening {self.driver}")
        self.device, self.capability, self.driver_version = self._device()
        self.torch_stream = None if host_only else _torch_stream()
        self.stream = int(self.torch_stream.cuda_stream) if self.torch_stream else 0
        self.image = fake_cubin() if host_only else compile_image(self.capability)
        self._library = ctypes.c_void_p()
        _check(self.twin.twin_load(self.image, ctypes.byref(self._library)), "loading the image")

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.stream

    def use_stream_in_cupy(self) -> None:
        """Make the stream of the run CuPy's current one."""
        import cupy

        if not self.stream:
            return
        if hasattr(cupy.cuda.Stream, "from_external"):
            cupy.cuda.Stream.from_external(self).use()
        else:  # before CuPy 14
            cupy.cuda.ExternalStream(self.stream).use()

    def synchronize(self) -> None:
        """Wait until every launch is done, and fail if one did."""
        _check(self.twin.twin_synchronize(), "synchronizing the device")

    @functools.cached_property
    def scratch(self) -> Path:
        """A folder for files that peers read, gone when the process ends."""
        folder = tempfile.TemporaryDirectory(prefix="culaunch-benchmark-")
        atexit.register(folder.cleanup)
        return Path(folder.name)

    @functools.cached_property
    def buffers(self) -> list[int]:
        """Device memory from the driver itself, for contenders that take addresses."""
        return [self.twin.twin_allocate(4 * ELEMENTS) for _ in range(20)]

    @functools.cached_property
    def tensors(self) -> list[Any]:
        """One torch tensor for each pointer parameter; all different."""
        import torch

        device = "cpu" if self.host_only else "cuda"
        return [torch.zeros(ELEMENTS, device=device) for _ in range(20)]

    def tensor_pointers(self) -> list[int]:
        """Return the addresses of :attr:`tensors`."""
        return [tensor.data_ptr() for tensor in self.tensors]

    def function(self, case: Case) -> ctypes.c_void_p:
        """Return the driver's handle of a kernel."""
        handle = ctypes.c_void_p()
        code = self.twin.twin_function(self._library, case.mangled.encode(), ctypes.byref(handle))
        _check(code, f"finding {case.mangled}")
        return handle

    def kernel(self, case: Case) -> ctypes.c_void_p:
        """Return the driver's context-free handle of a kernel, a ``CUkernel``."""
        handle = ctypes.c_void_p()
        code = self.twin.twin_kernel(self._library, case.mangled.encode(), ctypes.byref(handle))
        _check(code, f"finding {case.mangled}")
        return handle

    def c_loop(
        self, case: Case, pointers: Sequence[int], function: ctypes.c_void_p | None = None
    ) -> Burst:
        """Make the burst of the raw twin: cuLaunchKernelEx in a loop in C."""
        function = function or self.function(case)
        slots: list[Any] = [ctypes.c_uint64(p) for p in pointers[: case.pointers]]
        slots += [ctypes.c_int(i) for i in case.int_values]
        slots += [ctypes.c_float(f) for f in case.float_values]
        params = (ctypes.c_void_p * len(slots))(*(ctypes.addressof(slot) for slot in slots))
        launch, stream = self.twin.twin_launch, self.stream

        def burst(count: int) -> int:
            return int(launch(function, params, GRID, BLOCK, stream, count))

        self._kept.append(slots)  # params points into them
        return burst

    def check(self, case: Case, burst: Burst, pointers: Sequence[int]) -> None:
        """Launch once and make sure that it was the launch asked for.

        On a GPU the kernel's result is compared; the null driver counts its launches.

        Raises
        ------
        RuntimeError
            If the launch did not arrive, or arrived with wrong arguments.
        """
        if self.host_only:
            before = self.null.fake_driver_launches()
            burst(1)
            if (launches := self.null.fake_driver_launches() - before) != 1:
                raise RuntimeError(f"one call made {launches} launches on the null driver")
            return
        for index, pointer in enumerate(pointers[: case.pointers]):
            value = ctypes.c_float(index or -1)
            _check(self.twin.twin_write(pointer, ctypes.byref(value), 4), "writing an input")
        if burst(1) < 0:
            raise RuntimeError("the launch failed")
        self.synchronize()
        if case.pointers:
            result = ctypes.c_float()
            _check(self.twin.twin_read(ctypes.byref(result), pointers[0], 4), "reading the result")
            if result.value != case.expected:
                raise RuntimeError(
                    f"wrong result: the kernel wrote {result.value}, expected {case.expected} "
                    "(an argument had the wrong value or size)"
                )

    def _device(self) -> tuple[str, int, int]:
        name = ctypes.create_string_buffer(128)
        capability, version = ctypes.c_int(), ctypes.c_int()
        code = self.twin.twin_device(name, 128, ctypes.byref(capability), ctypes.byref(version))
        _check(code, "querying the device")
        return name.value.decode(), capability.value, version.value


def compile_image(capability: int) -> bytes:
    """Compile the kernels for a device: with culaunch, else with cuda-core."""
    arch = f"sm_{capability}"
    try:
        import culaunch as cl

        return bytes(cl.compile(cuda_source(), arch=arch).data)
    except Exception as error:  # noqa: BLE001 - the peers can be measured anyway
        print(f"culaunch could not compile the kernels ({error}); using cuda-core")
    from cuda.core import Program, ProgramOptions

    program = Program(cuda_source(), "c++", ProgramOptions(arch=arch))
    code = program.compile("cubin").code
    return code if isinstance(code, bytes) else bytes(code)


def _torch_stream() -> Any:
    try:
        import torch

        stream = torch.cuda.Stream()
        torch.cuda.set_stream(stream)
    except Exception as error:  # noqa: BLE001 - without torch everyone uses the default stream
        print(
            f"torch has no current stream ({type(error).__name__}: {error}); "
            "using the default stream"
        )
        return None
    return stream


def _load_twin() -> ctypes.PyDLL:
    # PyDLL, because the exchange loop calls into Python objects; no loop here waits for the GPU.
    twin = ctypes.PyDLL(str(build_twin()))
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    twin.twin_launch.argtypes = [pointer, pointer, ctypes.c_uint, ctypes.c_uint, pointer, number]
    twin.twin_launch.restype = number
    twin.twin_exchange.argtypes = [pointer, pointer, number, number]
    twin.twin_exchange.restype = number
    twin.twin_work_stream.argtypes = [pointer, ctypes.c_int, ctypes.c_int, number]
    twin.twin_work_stream.restype = number
    twin.twin_gil.argtypes = [pointer, pointer, number]
    twin.twin_gil.restype = number
    twin.twin_least.argtypes = [
        *twin.twin_launch.argtypes[:-1], pointer, pointer, number, pointer, pointer, pointer, number
    ]  # fmt: skip
    twin.twin_least.restype = number
    twin.twin_allocate.argtypes = [ctypes.c_size_t]
    twin.twin_allocate.restype = ctypes.c_uint64
    twin.twin_write.argtypes = [ctypes.c_uint64, pointer, ctypes.c_size_t]
    twin.twin_read.argtypes = [pointer, ctypes.c_uint64, ctypes.c_size_t]
    twin.twin_load.argtypes = [ctypes.c_char_p, pointer]
    twin.twin_function.argtypes = [pointer, ctypes.c_char_p, pointer]
    twin.twin_kernel.argtypes = [pointer, ctypes.c_char_p, pointer]
    return twin


def _check(code: int, doing: str) -> None:
    if code != 0:
        raise RuntimeError(f"{doing} failed: the driver's code {code}")
