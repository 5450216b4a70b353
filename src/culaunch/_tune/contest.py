"""Configurations timed in rounds, until one is the best or none is better than another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._launch.devices.device import Device
from culaunch._launch.measure.benchmark import benchmark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from culaunch._tune.candidate import Caller
    from culaunch._tune.tuning import Trial

_RUNS = 5  # of each configuration in a round
_FEWEST = 10  # before one is judged
_CLOSE = 0.005  # medians known as well as this need no more runs


class Contest:
    """The trials of one target on a GPU.

    Parameters
    ----------
    call : Caller
    arguments : tuple
    trials : list of Trial
        The measurements are added to them.
    repeat : int
    check : callable or None
        As in :func:`culaunch.tuning.tune`.
    flush : bool
    stream : object
    """

    def __init__(
        self,
        call: Caller,
        arguments: tuple[Any, ...],
        trials: Sequence[Trial],
        repeat: int,
        *,
        check: Callable[[Any], object] | None = None,
        flush: bool,
        stream: object,
    ) -> None:
        self._arguments = arguments
        self._repeat = repeat
        self._options: dict[str, Any] = {"flush": flush, "stream": stream}
        self._trials = trials
        self._call = call
        self._check = check

    def rounds(self) -> Iterator[bool]:
        """Measure a round at a time; yield whether nothing more is to be learnt."""
        # Call each once before the measurement, which must not include compilation, loading and
        # first launches.
        racing = bind_all(self._call, self._arguments, self._trials, self._check)
        while racing:
            # In turns and not one after the other: a device that becomes warmer slows all of them
            # down alike.
            for trial, bound in racing:
                # A configuration from an earlier run may already have all of its times.
                runs = min(_RUNS, self._repeat - len(trial.times))
                if runs <= 0:
                    continue
                timing = benchmark(bound, *self._arguments, repeat=runs, warmup=1, **self._options)
                trial.times.extend(timing.times)
            racing = _still_racing(racing)
            yield not racing or all(len(t.times) >= self._repeat for t, _ in racing)


Racing = list[tuple["Trial", "Callable[..., object]"]]


def bind_all(
    call: Caller,
    arguments: tuple[Any, ...],
    trials: Sequence[Trial],
    check: Callable[[Any], object] | None = None,
) -> Racing:
    """Call every configuration once; a failing one gets the error, and is not measured."""
    working = []
    for trial in trials:
        try:
            bound = call.bind(trial.config)
            result = bound(*arguments)
            Device().synchronize()
            said = None if check is None else check(result)
            # NumPy and PyTorch have their own False. A function that only raises returns None.
            if said is not None and not said:
                raise ValueError(f"check rejected the result of {trial.config}")
        except TypeError:  # noqa: PERF203 - how it is called is wrong
            raise
        # Catch any exception of a compiler or a checking function: Triton has its own types.
        except Exception as error:  # noqa: BLE001
            trial.error = error
        else:
            working.append((trial, bound))
    return working


def _still_racing(racing: Racing) -> Racing:
    """Drop configurations that another one beats. Stop when the winner is known well enough."""
    if min(len(trial.times) for trial, _ in racing) < _FEWEST:
        return racing
    best = min((trial for trial, _ in racing), key=lambda trial: trial.value)
    _, highest = best.interval
    # Those whose best guess is worse than the worst of the winner's are beaten; the rest may still
    # turn out best.
    left = [(trial, bound) for trial, bound in racing if trial.interval[0] <= highest]
    # Those that are left are as good as each other if all are known closely.
    is_known = all(t.interval[1] - t.interval[0] <= _CLOSE * t.value for t, _ in left)
    return [] if len(left) == 1 or is_known else left
