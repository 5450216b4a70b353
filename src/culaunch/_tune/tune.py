"""``tune``: measure a kernel or a function under each of some configurations."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_flag, checked_list, checked_number
from culaunch._base.values import fits, spell
from culaunch._launch import Device, driver_name
from culaunch._tune.candidate import caller_of
from culaunch._tune.compile_on_executor import compile_on_executor
from culaunch._tune.configs import checked_configs, digest_of
from culaunch._tune.contest import Contest
from culaunch._tune.count import Count
from culaunch._tune.table import TunedConfigs
from culaunch._tune.tuning import Trial, Tuning

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Mapping, Sequence


def tune(
    target: Any,
    configs: Sequence[Mapping[str, Any]] | None = None,
    arguments: Sequence[Any] = (),
    *,
    grid: Any = None,
    key: Sequence[Any] = (),
    table: TunedConfigs | None = None,
    again: bool = False,
    seconds: float | None = None,
    repeat: int = 100,
    flush: bool = True,
    stream: object = None,
    check: Callable[[Any], object] | None = None,
    progress: Callable[[Tuning], None] | None = None,
    executor: concurrent.futures.Executor | None = None,
) -> Tuning:
    """Find the fastest configuration of a kernel or a function.

    First, every configuration is called once, which compiles and loads its code. Then the
    configurations are timed in rounds. Each round has some runs of every configuration that can
    still be the best: a change of the machine's speed affects all of them. A configuration drops
    out when its median is above the best median with 95 % confidence. On a GPU, events time the
    runs, and the second-level cache is overwritten before each. The emulator counts the
    instructions that all threads execute. That is the same every time, and says little about a GPU.

    All calls get the same arguments: an array that a kernel changes in place is changed many times.

    Parameters
    ----------
    target : Kernel, KernelSet, Function or callable
        A kernel of a module is called as ``target.configure(**config)(*arguments)``. An object with
        Triton's launch syntax is called as ``target[grid](*arguments, **config)``. Anything else is
        called as ``target(*arguments, **config)``.
    configs : sequence of dict
        The configurations to try. A `KernelSet` has its own: those of its variants.
    arguments : sequence
        The arguments of each call.
    grid : tuple or callable, optional
        The grid, for objects with Triton's launch syntax.
    key : sequence of int, float, str, bool or None
        The values that the choice depends on, besides the device, such as a size. For a
        `KernelSet`, these are names of its parameters, as in `triton.autotune`.
    table : TunedConfigs, optional
        The table that stores the choice. If it has one for this device, key and these
        configurations, that one is returned without measuring. Results of an interrupted tuning are
        reused. If the file cannot be written, a `CacheWarning` reports it, and the result is still
        returned.
    again : bool, default False
        Measure even if the table has a choice.
    seconds : float, optional
        Time limit. The best result so far is then returned; every configuration has been called
        once.
    repeat : int, default 100
        Maximum number of timed runs of one configuration.
    flush : bool, default True
        Whether runs find their arguments in memory, as in `benchmark`.
    stream : int or object, optional
        The stream that the calls launch in, as in `benchmark`.
    check : callable, optional
        Called with the result of each configuration's first call, after that call has completed. If
        it raises or returns a false value other than None, that configuration is not chosen.
    progress : callable, optional
        Called with the results so far, after each round.
    executor : concurrent.futures.Executor, optional
        For a :class:`Function` at the top level of a module: the workers trace all configurations
        first. That fills the caches that they share with this process. The measurements happen in
        this process.

    Returns
    -------
    Tuning
        The best configuration, and the measurements of each.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.
    LaunchError, CompileError, DriverError, ...
        If no configuration works: the error of the first one. A failed configuration is not tried
        again, and its trial has the error. A TypeError is raised immediately.

    Examples
    --------
    >>> configs = [{"grid": 1, "block": 128}, {"grid": 1, "block": 256}]
    >>> tuning = cl.tuning.tune(kernel, configs, (y, x, 2.0, 256), repeat=5, flush=False)
    >>> launcher = kernel.configure(**tuning.best)
    """
    call = caller_of(target, grid)
    tried = checked_configs(target, configs)
    given = tuple(checked_list("arguments", arguments, "the arguments of a call"))
    names = tuple(checked_list("key", key, "values that the choice depends on"))
    if table is not None and not isinstance(table, TunedConfigs):
        raise TypeError(f"table must be a TunedConfigs (got {spell(table)})")
    if check is not None and not callable(check):
        raise TypeError(f"check must be a callable that accepts a result (got {spell(check)})")
    for name, switch in (("again", again), ("flush", flush)):
        checked_flag(name, switch)
    if fits(repeat, "repeat", 32) < 1:
        raise ValueError(f"repeat must be at least 1 (got {repeat})")
    limit = None
    if seconds is not None:
        if not checked_number("seconds", seconds) > 0:
            raise ValueError(f"seconds must be above 0 (got {spell(seconds)})")
        limit = time.monotonic() + seconds
    values = call.key_values(names, given)
    digest = digest_of(call.name, tried)
    device = Device().name
    # The configurations are also part of the key, because other configurations need a new choice.
    if table is not None and not again and (known := table.earlier_choice(device, values, digest)):
        return known
    is_emulated = driver_name() == "emulator"
    if executor is not None:
        compile_on_executor(target, tried, given, executor)
    trials = [Trial(config) for config in tried]
    tuning = Tuning(call.name, device, values, digest, trials, is_emulated=is_emulated)
    if table is not None and not again:
        table.resume(tuning)
    contest = (
        Count(call, given, trials, check)
        if is_emulated
        else Contest(call, given, trials, repeat, check=check, flush=flush, stream=stream)
    )
    for is_settled in contest.rounds():
        if table is not None and not is_settled:
            table.keep(tuning)
        if progress is not None:
            progress(tuning)
        # At least one round, regardless of the limit, so there is always a best configuration.
        if is_settled or (limit is not None and time.monotonic() > limit):
            break
    # Some may fail, such as one that needs too much shared memory. If all fail, the call itself is
    # wrong.
    if all(trial.error is not None for trial in trials):
        error = trials[0].error
        assert error is not None
        raise error
    if table is not None:
        table.add(tuning)
    return tuning
