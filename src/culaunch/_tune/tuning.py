"""What tuning found: a trial for each configuration, and the best of them."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from culaunch._base.figures import axes_for, label, picture
from culaunch._base.html import html_table
from culaunch._tune.key_plot import config_text

if TYPE_CHECKING:
    from culaunch._tune.configs import Config


@dataclass
class Trial:
    """One configuration.

    Attributes
    ----------
    config : dict
    times : list of float
        Milliseconds of its runs on a GPU.
    instructions : int or None
        The number of instructions that its threads executed on the emulator.
    error : Exception or None
        Why it cannot run.

    Examples
    --------
    >>> configs = [{"grid": 1, "block": 128}, {"grid": 1, "block": 256}]
    >>> tuning = cl.tuning.tune(kernel, configs, (y, x, 2.0, 256), repeat=5, flush=False)
    >>> [trial.error for trial in tuning.trials]
    [None, None]
    """

    config: Config
    times: list[float] = field(default_factory=list)
    instructions: int | None = None
    error: Exception | None = None

    @property
    def value(self) -> float:
        """The median of the times, or the number of instructions; infinite if it has neither."""
        if self.instructions is not None:
            return float(self.instructions)
        return statistics.median(self.times) if self.times else math.inf

    @property
    def interval(self) -> tuple[float, float]:
        """Where the median is with 95 % confidence, whatever the distribution of the times.

        The bounds are order statistics of the times: as many of them are below the median as
        heads fall among so many coins.
        """
        if not self.times:
            return self.value, self.value
        ordered, n = sorted(self.times), len(self.times)
        # The number of runs below the median is distributed like heads among n coin throws, for any
        # distribution of times.
        rank = _rank(n)
        return ordered[rank], ordered[n - 1 - rank]


@dataclass
class Tuning:
    """The measurements of a target.

    Attributes
    ----------
    name : str
        Name of the kernel or the function.
    device : str
        The device's name.
    key : tuple
        The values that the choice was made for.
    digest : str
        A digest of the configurations.
    trials : list of Trial
        In the order of the configurations; only the best one for a looked-up result.
    is_emulated : bool
        Whether the values are counted instructions instead of times.

    Examples
    --------
    >>> configs = [{"grid": 1, "block": 128}, {"grid": 1, "block": 256}]
    >>> tuning = cl.tuning.tune(kernel, configs, (y, x, 2.0, 256), repeat=5, flush=False)
    >>> tuning.best in configs
    True
    """

    name: str
    device: str
    key: tuple[Any, ...]
    digest: str
    trials: list[Trial]
    is_emulated: bool = False

    @property
    def best(self) -> Config:
        """The configuration that took the least, the first one among equals."""
        return self.best_trial.config

    @property
    def best_trial(self) -> Trial:
        """The trial of the best configuration."""
        return min(self.trials, key=lambda trial: trial.value)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in a form that JSON can hold.

        Returns
        -------
        dict
            The fields, with the trials as dicts.
        """
        return {
            "name": self.name,
            "device": self.device,
            "key": list(self.key),
            "unit": "instructions" if self.is_emulated else "ms",
            "best": self.best,
            "trials": [_trial_to_dict(trial) for trial in self.trials],
        }

    def plot(self, axes: Any = None) -> Any:
        """Draw the configurations with matplotlib, the best on top.

        A bar is the median time with its 95 % confidence interval, or the counted instructions on
        the emulator. Configurations that cannot run are left out.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            The place to draw; a new figure's by default.

        Returns
        -------
        matplotlib.axes.Axes
            ``axes.figure.savefig(path)`` writes it to a file.

        Raises
        ------
        MissingDependencyError
            Without matplotlib.
        """
        axes = axes_for("Tuning.plot", axes)
        trials = [trial for trial in self.trials if math.isfinite(trial.value)]
        trials.sort(key=lambda trial: trial.value)
        values = [trial.value for trial in trials]
        bounds = [trial.interval for trial in trials]
        errors = [
            [value - low for value, (low, _) in zip(values, bounds, strict=True)],
            [high - value for value, (_, high) in zip(values, bounds, strict=True)],
        ]
        colors = ["C2"] + ["C0"] * len(trials)
        places = range(len(trials))
        axes.barh(places, values, xerr=errors, color=colors[: len(trials)])
        axes.set_yticks(places, [label(config_text(trial.config)) for trial in trials])
        axes.invert_yaxis()
        unit = "instructions" if self.is_emulated else "milliseconds"
        axes.set(title=label(self.name), xlabel=unit)
        return axes

    def __str__(self) -> str:
        unit = "instructions" if self.is_emulated else "ms"
        lines = [f"{self.name} on {self.device}, key {self.key}: best {self.best}"]
        for trial in sorted(self.trials, key=lambda trial: trial.value):
            if trial.error is not None:
                lines.append(f"  {'failed':>14}  {trial.config}  {_first_line(trial.error)}")
            elif trial.times:
                low, high = trial.interval
                lines.append(
                    f"  {trial.value:>11.5f} {unit}  {trial.config}  {low:.5f} to {high:.5f}, "
                    f"{len(trial.times)} runs"
                )
            elif trial.instructions is not None:
                lines.append(f"  {trial.instructions:>14} {unit}  {trial.config}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        unit = "instructions" if self.is_emulated else "ms"
        trials = sorted(self.trials, key=lambda trial: trial.value)
        titles = ("configuration", unit, "95 % of medians", "runs")
        caption = f"{self.name} on {self.device}, key {self.key}"
        is_drawn = any(math.isfinite(trial.value) for trial in trials)
        drawn = picture(self.plot) if is_drawn else ""
        return html_table(titles, map(_row, trials), caption) + drawn


def _row(trial: Trial) -> tuple[object, ...]:
    if trial.error is not None:
        return trial.config, "failed", _first_line(trial.error), None
    if trial.times:
        low, high = trial.interval
        return trial.config, f"{trial.value:.5f}", f"{low:.5f} to {high:.5f}", len(trial.times)
    return trial.config, trial.instructions, None, None


def _trial_to_dict(trial: Trial) -> dict[str, Any]:
    found: dict[str, Any] = {"config": trial.config}
    if trial.error is not None:
        found["error"] = _first_line(trial.error)
    elif trial.instructions is not None:
        found["instructions"] = trial.instructions
    elif trial.times:
        low, high = trial.interval
        found |= {"median": trial.value, "low": low, "high": high, "runs": len(trial.times)}
    return found


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _rank(n: int) -> int:
    """Return the largest k for which fewer than k + 1 heads of n have a chance of 2.5 % at most."""
    total, k = 0.0, -1
    while k < n // 2:
        total += math.comb(n, k + 1) / 2**n
        if total > 0.025:
            break
        k += 1
    return max(k, 0)
