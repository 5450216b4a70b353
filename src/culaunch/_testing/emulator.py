"""The emulator in tests: its checks, its counts, its seeds."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_flag, checked_number
from culaunch._base.values import spell
from culaunch._errors import DriverNotFoundError, MissingDependencyError
from culaunch._launch import driver_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from culaunch._emulator import InstructionCount, SourceProfile


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
    check_unwritten: bool | None = None,
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
    check_unwritten : bool, optional
        Report uses of local arrays that the thread has not written, and of device memory that was
        allocated in the block and never written. Off by default, because compilers store registers
        in local memory that are never set, and because both are otherwise zero.
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
        "check_unwritten": check_unwritten,
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
