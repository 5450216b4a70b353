"""``ChoosingDispatcher``: the choices of the decorators above a kernel, for its native calls."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from culaunch._base.untraced import untraced
from culaunch._triton.bodies.tuning import choose_in_body
from culaunch._triton.calls.choice import Choice, split_settings
from culaunch._triton.calls.dispatcher import Dispatcher
from culaunch._triton.reads.of_grid import read_grid
from culaunch._triton.upstream.target import compiling_for

if TYPE_CHECKING:
    from culaunch._launch.launches.recording import RecordingBody
    from culaunch._triton.calls.choice import Tuned
    from culaunch._triton.decorators.stack import Stack
    from culaunch._triton.reads.reads import Guard


class ChoosingDispatcher(Dispatcher):
    """Lets autotuners, heuristics and grids decide, and passes their choice to the native half."""

    _stack: Stack
    # The same kernel below its decorators; None if it has none.
    _inner: Dispatcher | None
    # Globals that grid functions use.
    _grid_guards: list[Guard]

    def _watch_more(self) -> None:
        """Guard the additional values that calls now depend on."""
        raise NotImplementedError

    # ---- called by the native half

    def _prepare(self) -> None:
        super()._prepare()
        if self._stack.is_decorated:
            checks = os.environ.get("CULAUNCH_TRITON_CHECK", "") not in ("", "0")
            self._tell_choices(checks)

    @untraced
    def _tune(
        self,
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        device: int,
    ) -> Tuned:
        """Let the decorators choose and launch; return their choice."""
        assert self._driver is not None
        assert self._inner is not None
        launch = self._inner._call  # noqa: SLF001
        if self._driver.name == "cuda":
            # Triton's active driver selects the device, and it is this driver.
            made = self._stack.decide(grid, args, kwargs, launch)
        else:  # an autotuner may ask Triton for its device
            with compiling_for(self._driver, device):
                made = self._stack.decide(grid, args, kwargs, launch)
        self._watch_more()
        constants, options = split_settings(made.settings, self._parameter_names)
        has_hook = any(config.pre_hook is not None for _, config in made.configs)
        configs, result = made.configs, made.result
        return constants, options, configs, has_hook, result, made.replaced, made.is_kept, {}

    @untraced
    def _run_hook(
        self,
        configs: Any,
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        settings: dict[str, Any],
    ) -> None:
        self._stack.run_hooks(dict(configs), grid, args, kwargs, settings)

    @untraced
    def _chose(self, configs: tuple[tuple[Any, Any], ...]) -> None:
        """Record the used configuration on the autotuners, as they do themselves."""
        for tuner, config in configs:
            tuner.best_config = config

    @untraced
    def _read_grid(
        self, grid: Any
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[object, ...], bool] | None:
        """Read a grid's code.

        Returns
        -------
        (tuple of int, tuple of int, tuple, bool) or None
            The indices of the parameters whose values it reads, and of those that it compares with
            None. Then the contents of its closed-over variables, and whether it uses globals. None
            means that the grid must be called.
        """
        found = read_grid(grid, self._parameter_names)
        if found is None:
            return None
        values, nones, held, guards = found
        if guards:
            self._grid_guards.extend(guards)
            self._watch_more()
        return values, nones, held, bool(guards)

    @untraced
    def _compare(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], chosen: dict[str, Any]
    ) -> None:
        """Find defects of culaunch: run the heuristics again, and compare the results."""
        said = self._stack.heuristics_of(args, kwargs)
        for name, value in said.items():
            if chosen[name] != value or type(chosen[name]) is not type(value):
                raise SystemError(
                    f"a defect of culaunch, please report it: the heuristic {name} of {self.name} "
                    f"returns {value!r}, but {chosen[name]!r} was used"
                )

    # ---- in the body of a function

    @untraced
    def _choose_in_body(
        self, body: RecordingBody, bound: dict[str, Any], options: dict[str, Any]
    ) -> Choice:
        if not self._stack.is_decorated:
            return Choice()
        assert self._inner is not None
        return choose_in_body(body, self, self._stack, self._inner, bound, options)
