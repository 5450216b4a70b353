"""Copies of a kernel's decorators, which decide for it and launch natively."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from culaunch._triton.decorators.decision import NotMeasured, Recorder, give_back, refuse_to_measure
from culaunch._triton.upstream.host_clock import set_benchmark
from culaunch._triton.upstream.native_half import ATTRIBUTE, OwnWay

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class CopiedLayers:
    """Copies of a kernel's decorators, which record their notes in Triton's own objects.

    Parameters
    ----------
    layers : sequence
        Triton's own, outermost first.
    tuner_type : type
        Triton's class of autotuners.
    function : JITFunction
    launch : callable
        Takes a grid, arguments and keywords, and launches natively.

    Attributes
    ----------
    recorder : Recorder
        The calls that reached the function.
    """

    def __init__(
        self,
        layers: Sequence[Any],
        tuner_type: type,
        function: Any,
        launch: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any],
        *,
        may_measure: bool,
    ) -> None:
        self.recorder = Recorder(function, launch)
        self._may_measure = may_measure
        self._tuners: list[tuple[Any, Any]] = []
        inner: Any = self.recorder
        # From the inside out: each copy calls the one made before it, and the innermost calls the
        # recorder.
        for layer in reversed(layers):
            made = copy.copy(layer)
            made.fn = inner
            vars(made)[ATTRIBUTE] = OwnWay()
            if isinstance(layer, tuner_type):
                set_benchmark(made)
                if not may_measure:
                    made._bench = refuse_to_measure  # noqa: SLF001 - Triton's own place for it
                self._tuners.append((layer, made))
            inner = made
        self._outermost = inner

    def run(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Decide and launch.

        Raise NotMeasured if an autotuner has to measure its configurations first, and must not.
        """
        if self._may_measure:  # hooks and pruning may read it from the original object
            for layer, _ in self._tuners:
                layer.nargs = dict(zip(layer.arg_names, args, strict=False))
        try:
            result = self._outermost.run(*args, grid=grid, warmup=False, **kwargs)
        except NotMeasured:
            raise
        except BaseException:
            self._give_back()
            raise
        self._give_back()
        return result

    @property
    def configs(self) -> tuple[tuple[Any, Any], ...]:
        """The autotuners with their choices, outermost first."""
        return tuple((layer, made.best_config) for layer, made in reversed(self._tuners))

    def _give_back(self) -> None:
        for layer, made in self._tuners:
            give_back(made, layer)
