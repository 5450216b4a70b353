"""``tune``: measure a kernel or a function under each of some configurations."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_flag, checked_list, checked_number
from culaunch._base.values import fits, spell
from culaunch._launch import Device, driver_name
from culaunch._tune.candidate import caller_of
from culaunch._tune.configs import checked_configs, digest_of
from culaunch._tune.contest import Contest
from culaunch._tune.count import Count
from culaunch._tune.elsewhere import compile_elsewhere
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
    """Find the configuration in which a kernel or a function takes the least time.

    Every configuration is called once, which compiles and loads what it needs, and then timed in
    rounds, each of some runs of every configuration that can still be the best: what changes while
    it is measured changes for all. A configuration is out when its median is above the best one's
    with 95 % confidence. On a GPU the runs are timed by events, with the second-level cache
    overwritten before each; the emulator counts the instructions that all threads execute, which
    says little of a GPU, and is the same every time.

    The arguments are the same in every call: what a kernel changes in place, it changes often.

    Parameters
    ----------
    target : Kernel, KernelSet, Function or callable
        A kernel of a module is called as ``target.configure(**config)(*arguments)``, what is
        launched as Triton's kernels are as ``target[grid](*arguments, **config)``, anything else
        as ``target(*arguments, **config)``.
    configs : sequence of dict
        What is tried. A `KernelSet` has its own: those of its variants.
    arguments : sequence
        What each call is given.
    grid : tuple or callable, optional
        Of what is launched as Triton's kernels are.
    key : sequence of int, float, str, bool or None
        What the choice depends on besides the device, such as a size. Of a `KernelSet` these are
        names of its parameters, as `triton.autotune` has them.
    table : TunedConfigs, optional
        Where the choice is kept. What it has for this device, key, and these configurations, is
        returned without measuring; what was measured before a tuning was stopped, however that
        happened, is not measured again. Where its file cannot be written, a
        `CacheWarning` says so, and what was measured is returned all the same.
    again : bool, default False
        Measure all the same.
    seconds : float, optional
        When to stop, with what is known by then; every configuration has been called once.
    repeat : int, default 100
        How many runs of one configuration are timed at most.
    flush : bool, default True
        Whether runs find their arguments in memory, as `benchmark` says.
    stream : int or object, optional
        The stream that the calls launch in, as `benchmark` takes it.
    check : callable, optional
        Called with what the first call of each configuration returned, when all of it is done:
        where it raises, or returns anything false but None, that configuration is not chosen.
    progress : callable, optional
        Called with what is known, after each round.
    executor : concurrent.futures.Executor, optional
        Of a :class:`Function` at the top of a module: the workers trace all configurations first,
        for the sake of what that compiles and leaves in the caches that they share with this
        process. What is measured is measured here.

    Returns
    -------
    Tuning
        The best configuration and what was measured of each.

    Raises
    ------
    TypeError, ValueError
        If an argument is none of these.
    LaunchError, CompileError, DriverError, ...
        If no configuration works: the first one's error, whatever it is. One that fails is tried
        no further, and its trial has the error; a TypeError is raised at once.
    """
    call = caller_of(target, grid)
    tried = checked_configs(target, configs)
    given = tuple(checked_list("arguments", arguments, "the arguments of a call"))
    names = tuple(checked_list("key", key, "values that the choice depends on"))
    if table is not None and not isinstance(table, TunedConfigs):
        raise TypeError(f"table must be a TunedConfigs (got {spell(table)})")
    if check is not None and not callable(check):
        raise TypeError(f"check must be a callable of a result (got {spell(check)})")
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
    # Known by its configurations, too: with others the choice is made anew.
    if table is not None and not again and (known := table.known(device, values, digest)):
        return known
    is_emulated = driver_name() == "emulator"
    if executor is not None:
        compile_elsewhere(target, tried, given, executor)
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
        # At least one round, whatever the limit: there is always a best one.
        if is_settled or (limit is not None and time.monotonic() > limit):
            break
    # Some may fail, such as one that needs more shared memory than there is; that all do is a
    # mistake of the call's.
    if all(trial.error is not None for trial in trials):
        error = trials[0].error
        assert error is not None
        raise error
    if table is not None:
        table.add(tuning)
    return tuning
