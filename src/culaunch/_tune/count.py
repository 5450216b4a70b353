"""Configurations compared on the emulator, by the instructions that their threads execute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._tune.contest import bind_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from culaunch._tune.candidate import Caller
    from culaunch._tune.tuning import Trial


class Count:
    """The trials of one target on the emulator.

    Parameters
    ----------
    call : Caller
    arguments : tuple
    trials : list of Trial
    check : callable, optional
        As :func:`culaunch.tuning.tune` takes it.
    """

    def __init__(
        self,
        call: Caller,
        arguments: tuple[Any, ...],
        trials: Sequence[Trial],
        check: Callable[[Any], object] | None = None,
    ) -> None:
        self._call = call
        self._arguments = arguments
        self._trials = trials
        self._check = check

    def rounds(self) -> Iterator[bool]:
        """Count every configuration once: it is the same every time."""
        from culaunch._emulator import count_instructions

        # An earlier run has already counted it.
        left = [trial for trial in self._trials if trial.instructions is None]
        for trial, bound in bind_all(self._call, self._arguments, left, self._check):
            # Times on the emulator mean nothing, but the executed instructions are the same in each
            # run.
            with count_instructions() as count:
                bound(*self._arguments)
            trial.instructions = count.total
            yield False
        yield True
