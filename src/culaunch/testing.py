"""Test kernels on the emulated driver, and on the GPU if there is one, with the same test.

culaunch installs a pytest plugin. A test with the fixture ``culaunch_driver`` runs once for each
driver. ``@pytest.mark.culaunch_drivers("emulator")`` selects drivers::

    def test_scale(culaunch_driver):
        x = np.arange(1000, dtype=np.float32)
        y = testing.to_driver(np.zeros_like(x))
        cl.load(cl.compile(SOURCE))["scale"][4, 256](y, testing.to_driver(x), 2.0, 1000)
        testing.assert_allclose(y, 2 * x)

Nothing here imports pytest: the functions work with any test runner.

Examples
--------
>>> from culaunch import testing
>>> a = testing.to_driver(np.arange(4, dtype=np.float32))
>>> testing.assert_allclose(a, [0, 1, 2, 3])
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import operator
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_flag, checked_list, checked_number, checked_path
from culaunch._base.driver_choice import STRICT, VARIABLE, strict_choice
from culaunch._base.optional import optional
from culaunch._base.outputs import write_output
from culaunch._base.values import spell
from culaunch._errors import DriverError, DriverNotFoundError, MissingDependencyError
from culaunch._launch import DeviceArray, driver_name, set_driver, to_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from culaunch._emulator import InstructionCount, SourceProfile

__all__ = [
    "assert_allclose",
    "c_driver",
    "count_instructions",
    "emulator_options",
    "for_each_seed",
    "from_driver",
    "has_gpu",
    "profile",
    "reset_emulator",
    "to_driver",
    "use_driver",
    "write_sarif",
]


def __dir__() -> list[str]:
    return list(__all__)  # for completion, without the names imported here


# Relative and absolute, by the name of the computed type: the values of torch.testing.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
_ALIGNMENT = 256  # bytes: cuMemAlloc's
_CHOICE = (VARIABLE, STRICT, "CULAUNCH_DRIVER_TABLE")


def to_driver(array: Any) -> Any:
    """Copy an array to the memory of the driver in use.

    Parameters
    ----------
    array : array_like or torch.Tensor
        An array on the CPU.

    Returns
    -------
    numpy.ndarray, culaunch.DeviceArray or torch.Tensor
        On the emulator, a new NumPy array. On a GPU or a strict emulator, a
        :class:`culaunch.DeviceArray`. A torch tensor stays a torch tensor. The address of the first
        element is a multiple of 256 bytes.

    Raises
    ------
    TypeError
        If the array is a torch tensor and the emulator is strict: torch cannot allocate the
        emulator's memory.

    Examples
    --------
    >>> from culaunch import testing
    >>> a = testing.to_driver(np.zeros(256, np.float32))
    >>> kernel[1, 256](a, testing.to_driver(np.ones(256, np.float32)), 2.0, 256)
    >>> testing.from_driver(a)[:3].tolist()
    [2.0, 2.0, 2.0]
    """
    is_emulated = driver_name() == "emulator"
    on_host = is_emulated and not strict_choice()
    if _is_torch(array):
        if is_emulated and not on_host:
            raise TypeError(
                "array must not be a tensor, because torch has no tensors in the memory of a "
                f"strict emulator: pass tensor.numpy() (got {spell(array)})"
            )
        return _aligned_tensor(array.detach()) if on_host else array.detach().cuda()
    if on_host:
        return _aligned_array(_numpy("to_driver").array(array))
    return to_device(array)


def from_driver(array: Any) -> Any:
    """Copy an array of :func:`culaunch.testing.to_driver` back to the CPU.

    The copy waits for the work in the default stream.

    Parameters
    ----------
    array : array
        An array on the driver in use, such as a result of :func:`culaunch.testing.to_driver`.

    Returns
    -------
    numpy.ndarray or torch.Tensor
        A torch tensor stays a torch tensor.

    Examples
    --------
    >>> from culaunch import testing
    >>> testing.from_driver(testing.to_driver([1, 2, 3])).tolist()
    [1, 2, 3]
    """
    if isinstance(array, DeviceArray):
        return array.numpy()
    if _is_torch(array):
        return array.detach().cpu().clone()
    return _numpy("from_driver").array(array)


def assert_allclose(
    actual: Any, desired: Any, *, rtol: float | None = None, atol: float | None = None
) -> None:
    """Fail unless two arrays are equal; floats may differ within a tolerance.

    Parameters
    ----------
    actual : array_like, culaunch.DeviceArray or torch.Tensor
        The computed array; its type decides the tolerance.
    desired : array_like, culaunch.DeviceArray or torch.Tensor
        The expected array, with the same shape or one that broadcasts to it.
    rtol, atol : float, optional
        Relative and absolute tolerance. The defaults are 1e-3 and 1e-5 for float16, 1.6e-2 and
        1e-5 for bfloat16, 1.3e-6 and 1e-5 for float32, and 1e-7 and 1e-7 for float64.

    Raises
    ------
    AssertionError
        If the arrays differ, or their shapes do not broadcast. The message has the largest
        differences.
    TypeError
        If the type has no default tolerance and you give none, or a tolerance is not a number. Also
        if an argument is not an array of numbers.
    MissingDependencyError
        If NumPy is not installed, or ml_dtypes for bfloat16.

    Examples
    --------
    >>> from culaunch import testing
    >>> kernel[1, 256](y, x, 2.0, 256)
    >>> testing.assert_allclose(y, np.full(256, 2.0))
    """
    np = _numpy("assert_allclose")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance is not None:
            checked_number(name, tolerance)
    got, wanted = _to_numpy(actual), _to_numpy(desired)
    try:
        wanted = np.broadcast_to(wanted, got.shape)
    except ValueError:
        raise AssertionError(
            f"the shapes differ: actual has {got.shape}, desired has {wanted.shape}"
        ) from None
    exact = got.dtype.kind in "biu"
    if exact or got.dtype.name in _TOLERANCES:
        default = (0.0, 0.0) if exact else _TOLERANCES[got.dtype.name]
    elif rtol is None and atol is None:
        raise TypeError(f"{got.dtype} has no default tolerance: give rtol= or atol=")
    else:
        default = (0.0, 0.0)
    if rtol is not None or atol is not None:
        default = (rtol or 0.0, atol or 0.0)
    if default == (0.0, 0.0):
        np.testing.assert_array_equal(got, wanted)
        return
    # Types such as bfloat16 cannot compute with tolerances this small.
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        got.astype(wide),
        wanted.astype(wide),
        rtol=default[0],
        atol=default[1],
        err_msg=f"tolerance of {got.dtype.name}",
    )


@contextlib.contextmanager
def use_driver(name: str, *, strict: bool | None = None) -> Iterator[None]:
    """Select a driver for the block, and restore the previous one at its end.

    The end of the block also clears a fault of the emulated device. Load modules inside the block:
    a module belongs to the driver that loaded it.

    Parameters
    ----------
    name : str
        A name for :func:`culaunch.driver.set_driver`.
    strict : bool, optional
        Make the emulator refuse NumPy arrays and CPU tensors, as a GPU does. Kernels then accept
        arrays of :func:`culaunch.empty`, :func:`culaunch.to_device` and
        :func:`culaunch.testing.to_driver`. By default the environment variable
        ``CULAUNCH_EMULATOR_STRICT`` decides. A GPU ignores this argument.

    Yields
    ------
    None
        The driver is in use in the block.

    Examples
    --------
    >>> from culaunch import testing
    >>> with testing.use_driver("emulator"):
    ...     cl.driver.driver_name()
    'emulator'
    """
    if strict is not None:
        checked_flag("strict", strict)
    before = {variable: os.environ.get(variable) for variable in _CHOICE}
    try:
        if strict is not None:
            os.environ[STRICT] = str(int(strict))
        set_driver(name)
        yield
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value
        if name == "emulator":
            reset_emulator()


def c_driver(folder: str | os.PathLike[str]) -> str:
    """Build a ``libcuda.so.1`` whose functions call the driver in use.

    Use it to test C code for the driver, such as the output of
    :meth:`culaunch.triton.KernelSet.write_c`. Link the code with it into a shared library, and call
    that library with :mod:`ctypes`: it then runs on the emulated driver. The library has the driver
    functions that culaunch calls, with asynchronous copies only. It calls the driver that is
    in use when the library is first loaded. Other libraries of the process still find the system's
    ``libcuda.so.1``.

    Parameters
    ----------
    folder : str or os.PathLike
        The folder for the library and its link; it is created. Link with ``-Wl,-rpath`` and this
        folder.

    Returns
    -------
    str
        The path of the library.

    Raises
    ------
    CompileError
        If there is no C++ compiler, or it fails.
    MissingDependencyError
        If ``cuda.h`` is missing.

    Examples
    --------
    >>> from culaunch import testing
    >>> Path(testing.c_driver("driver")).name
    'libcuda.so.1'
    """
    from culaunch._inline.c_driver import build_c_driver

    return build_c_driver(checked_path("folder", folder))


def has_gpu() -> bool:
    """Return whether this machine has CUDA's driver and a GPU.

    Returns
    -------
    bool
        False also if the driver cannot be opened.

    Examples
    --------
    >>> from culaunch import testing
    >>> driver = "cuda" if testing.has_gpu() else "emulator"
    """
    from culaunch._launch import device_count

    try:
        with use_driver("cuda"):
            return device_count() > 0
    except DriverNotFoundError:
        return False


def reset_emulator() -> None:
    """Clear the fault of the emulated device, so you can launch on it again.

    Memory, modules and kernels stay as they are. On a GPU, a process cannot use the device after a
    fault.

    Raises
    ------
    DriverError
        If the option ``check_leaks`` is on and blocks of ``malloc`` in kernels are not freed.

    Examples
    --------
    >>> from culaunch import testing
    >>> testing.reset_emulator()
    """
    from culaunch._emulator import reset

    reset()


@contextlib.contextmanager
def count_instructions() -> Iterator[InstructionCount]:
    """Count the instructions that the emulator's launches in the block execute.

    An instruction counts once for each thread that executes it. The number is the same every
    time. It says little about the time on a GPU.

    Yields
    ------
    InstructionCount
        ``total`` is the number so far.

    Raises
    ------
    RuntimeError
        If the driver in use is not the emulator.

    Examples
    --------
    >>> from culaunch import testing
    >>> with testing.count_instructions() as count:
    ...     kernel[1, 256](y, x, 2.0, 256)
    >>> count.total > 256
    True
    """
    _require_emulator()
    from culaunch import _emulator

    with _emulator.count_instructions() as count:
        yield count


def profile(call: Callable[..., object], *args: Any, **keywords: Any) -> SourceProfile:
    """Count what the emulator's launches in a call execute, for each line of the code.

    The numbers are exact, and the same every time: instructions, active lanes, divergent branches,
    sectors of global memory, bank conflicts, contention of atomic operations and floating-point
    operations. They concern PTX, which a GPU's compiler changes further. Times are not estimated.

    Compile with ``line_info=True`` to see the lines of the source beside those of PTX.

    Parameters
    ----------
    call : callable
        A launcher (``kernel[grid, block]``), a function, or anything that launches.
    *args, **keywords
        Its arguments.

    Returns
    -------
    SourceProfile
        ``print`` it, show it in a notebook, or read its ``kernels``.

    Raises
    ------
    TypeError
        If `call` is not callable.
    RuntimeError
        If the driver in use is not the emulator.

    Examples
    --------
    >>> from culaunch import testing
    >>> profile = testing.profile(kernel[1, 256], y, x, 2.0, 256)
    >>> profile.kernels[0].total.bank_conflicts
    0
    """
    if not callable(call):
        raise TypeError(
            "call must be a launcher, such as kernel[grid, block], or another callable (got "
            f"{spell(call)})"
        )
    _require_emulator()
    from culaunch._emulator import SourceProfile, count_lines

    with count_lines() as collector:
        call(*args, **keywords)
    return SourceProfile(collector)


def _require_emulator() -> None:
    if driver_name() != "emulator":
        raise RuntimeError(
            f"instructions can be counted only on the emulator (the driver is {driver_name()}): "
            "use cl.testing.use_driver('emulator')"
        )


@contextlib.contextmanager
def emulator_options(
    *,
    check_races: bool | None = None,
    check_uninitialized: bool | None = None,
    check_local: bool | None = None,
    check_views: bool | None = None,
    check_variables: bool | None = None,
    check_division: bool | None = None,
    check_overflow: bool | None = None,
    check_leaks: bool | None = None,
    track_allocations: bool | None = None,
    seed: int | None = None,
    time_limit: float | None = None,
) -> Iterator[None]:
    """Change the checks of the emulator for the launches in the block; a no-op on a GPU.

    Set the environment variable ``CULAUNCH_EMULATOR_OPTIONS`` to change them for a whole process,
    as in ``check_races,time_limit=10,check_uninitialized=0``.

    Parameters
    ----------
    check_races : bool, optional
        Report accesses of two threads to the same shared or global memory that nothing orders. Off
        by default, because kernels then take several times as long.
    check_uninitialized : bool, optional
        Report uses of shared memory that the block has not written. On by default.
    check_local : bool, optional
        Report uses of local arrays that the thread has not written. Off by default, because
        compilers store registers there that are never set.
    check_views : bool, optional
        Report an access outside a view that is an argument, even if it is inside the array or
        storage behind the view. Off by default, because a GPU allows it.
    check_variables : bool, optional
        Report an access that leaves a shared variable and would reach its neighbor. Off by default,
        because it changes the layout of shared memory.
    check_division : bool, optional
        Report integer divisions by zero. Off by default, because a GPU does not detect them.
    check_overflow : bool, optional
        Report results of signed instructions that do not fit. Off by default, because compilers use
        these instructions for unsigned numbers, too.
    check_leaks : bool, optional
        Report blocks of ``malloc`` in kernels that are not freed, at the end of the block, in
        :func:`culaunch.synchronize` and in :func:`culaunch.testing.reset_emulator`. Off by default.
    track_allocations : bool, optional
        Name in reports the line of Python that made an allocation. Off by default.
    seed : int, optional
        Run blocks and warps in a random order, the same one for the same seed.
    time_limit : float, optional
        Seconds after which a kernel is stopped with ``CUDA_ERROR_LAUNCH_TIMEOUT``.

    Yields
    ------
    None
        The previous checks are restored at the end of the block.

    Raises
    ------
    TypeError, ValueError
        If a check is not a bool, or the limit is not a number of seconds above 0. Also if the seed
        is not an int of at least 0.
    DriverError
        At the end of a block with `check_leaks`, if blocks of ``malloc`` are not freed.

    Examples
    --------
    >>> from culaunch import testing
    >>> with testing.emulator_options(check_races=True, time_limit=60):
    ...     kernel[1, 256](y, x, 2.0, 256)
    """
    switches = {
        "check_races": check_races,
        "check_uninitialized": check_uninitialized,
        "check_local": check_local,
        "check_views": check_views,
        "check_variables": check_variables,
        "check_division": check_division,
        "check_overflow": check_overflow,
        "check_leaks": check_leaks,
        "track_allocations": track_allocations,
    }
    for name, switch in switches.items():
        if switch is not None:
            checked_flag(name, switch)
    if seed is not None:
        _checked_int("seed", seed, 0)
    if time_limit is not None and not checked_number("time_limit", time_limit) > 0:
        raise ValueError(f"time_limit must be above 0 seconds (got {spell(time_limit)})")
    if driver_name() != "emulator":
        yield
        return
    from culaunch._emulator import with_options

    given = {**switches, "seed": seed, "time_limit": time_limit}
    with with_options(**{name: value for name, value in given.items() if value is not None}):
        yield


def for_each_seed(test: Callable[[], object], seeds: int | Iterable[int] = 10) -> None:
    """Call a test with several orders of blocks and warps, and name the seed that fails.

    On a GPU, the test is repeated without seeds.

    Parameters
    ----------
    test : callable
        A function without arguments, which launches kernels and checks their results.
    seeds : int or iterable of int, optional
        The number of seeds, from 0 on, or the seeds.

    Raises
    ------
    AssertionError
        If the test raises an exception: the message has the seed, and the exception is its cause.
    DriverNotFoundError, MissingDependencyError
        If there is no driver, or the emulator needs a package that is not installed.
    TypeError, ValueError
        If `test` is not callable, or `seeds` are not ints of at least 0.

    Examples
    --------
    >>> from culaunch import testing
    >>> def test():
    ...     kernel[1, 256](y, x, 2.0, 256)
    ...     testing.assert_allclose(y, np.full(256, 2.0))
    >>> testing.for_each_seed(test, seeds=3)
    """
    if not callable(test):
        raise TypeError(f"test must be a function without arguments (got {spell(test)})")
    chosen = seeds if isinstance(seeds, Iterable) else range(_checked_int("seeds", seeds, 1))
    for seed in chosen:
        with _naming(_checked_int("seeds", seed, 0)), emulator_options(seed=seed):
            test()


def write_sarif(path: str | os.PathLike[str], errors: Iterable[DriverError]) -> None:
    """Write the emulator's reports as SARIF 2.1.0, which CI services show beside the source.

    Compile with ``line_info=True``, so a report has a line of the source. A path below the working
    folder is written relative to it, as GitHub expects. ``pytest --culaunch-sarif FILE`` writes the
    reports of the tests that fail.

    Parameters
    ----------
    path : str or os.PathLike
        The file, such as ``culaunch.sarif``.
    errors : iterable of DriverError
        Errors of kernels on the emulator. Without any, the file says that there was no error.

    Raises
    ------
    TypeError
        If `errors` contains anything else.
    ValueError
        If an error has no report: it is no error of a kernel on the emulator.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> from culaunch import testing
    >>> try:
    ...     kernel[1, 256](y, x, 2.0, 10**6)
    ... except cl.DriverError as error:
    ...     testing.write_sarif("culaunch.sarif", [error])
    """
    from culaunch._emulator import sarif_log, sarif_result

    results = []
    for error in checked_list("errors", errors, "errors of kernels"):
        if not isinstance(error, DriverError):
            raise TypeError(f"errors must contain only DriverError (got {spell(error)})")
        if error.report is None:
            raise ValueError(
                "errors must be of kernels on the emulator, whose report is not None (got "
                f"{spell(error)}): select the emulator with CULAUNCH_DRIVER=emulator"
            )
        results.append(sarif_result(error.report))
    text = json.dumps(sarif_log(results), indent=1)
    write_output(checked_path("path", path), text.encode())


@contextlib.contextmanager
def _naming(seed: int) -> Iterator[None]:
    """Name the seed in a failure of the block."""
    try:
        yield
    except (DriverNotFoundError, MissingDependencyError):
        raise  # with any seed
    except Exception as error:
        what = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise AssertionError(
            f"the test fails with seed={seed}: {what}\nTo repeat it, use "
            f"testing.emulator_options(seed={seed}), or set CULAUNCH_EMULATOR_OPTIONS=seed={seed}"
        ) from error


def _checked_int(argument: str, value: object, least: int) -> int:
    """Return an int that is not below `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{argument} must be an int (got {spell(value)})")
    number = operator.index(value)
    if number < least:
        raise ValueError(f"{argument} must be at least {least} (got {number})")
    return number


def _aligned_array(copy: Any) -> Any:
    """Move an array to where a GPU's memory would be: wide loads must not depend on luck."""
    import numpy as np

    if copy.dtype.hasobject or copy.nbytes == 0:
        return copy
    room = _aligned_bytes(copy.nbytes)
    aligned: Any = np.ndarray(copy.shape, copy.dtype, room, 0, copy.strides)
    aligned[...] = copy
    return aligned


def _aligned_bytes(size: int) -> Any:
    """Return memory that does not show the bytes around it: a kernel may not reach them."""
    room = bytearray(size + _ALIGNMENT)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(room)) % _ALIGNMENT
    return (ctypes.c_ubyte * size).from_buffer(room, start)


def _aligned_tensor(tensor: Any) -> Any:
    torch: Any = sys.modules["torch"]  # it is loaded: it made the tensor

    copy = tensor.clone()
    if copy.layout != torch.strided or copy.is_quantized or copy.numel() == 0:
        return copy
    size = copy.untyped_storage().nbytes() // copy.element_size() * copy.element_size()
    elements = torch.frombuffer(_aligned_bytes(size), dtype=torch.uint8).view(copy.dtype)
    return elements.as_strided(copy.shape, copy.stride(), elements.storage_offset()).copy_(copy)


def _is_torch(array: Any) -> bool:
    return type(array).__module__.partition(".")[0] == "torch"


def _to_numpy(array: Any) -> Any:
    host = from_driver(array)
    if _is_torch(host):
        if str(host.dtype) == "torch.bfloat16":
            ml_dtypes = optional("ml_dtypes", "a bfloat16 tensor in assert_allclose", "ml_dtypes")
            return host.float().numpy().astype(ml_dtypes.bfloat16)
        return host.numpy()
    values = _numpy("assert_allclose").asarray(host)
    if values.dtype.kind in "OSU":
        raise TypeError(f"actual and desired must be arrays of numbers (got {spell(array)})")
    return values


def _numpy(purpose: str) -> Any:
    return optional("numpy", f"testing.{purpose}", "numpy")
