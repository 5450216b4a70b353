"""``TunedConfigs``: the best configurations by device and key, in a file that may be shipped."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_path, checked_text
from culaunch._base.figures import label, picture
from culaunch._base.fork_lock import ForkLock
from culaunch._base.html import html_table
from culaunch._base.outputs import write_output
from culaunch._base.ratios import ratio_between
from culaunch._base.values import counted, spell
from culaunch._cache.lock import lock_key
from culaunch._errors import CacheWarning
from culaunch._launch import Device
from culaunch._tune.configs import Config, check_kept, checked_key
from culaunch._tune.key_plot import has_numbers, plot_keys
from culaunch._tune.tuning import Trial, Tuning
from culaunch._tune.unfinished import (
    checked_measurement,
    checked_unfinished,
    is_of,
    is_of_same,
    resume,
    unfinished_entry,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT, VERSION = "culaunch tuned configurations", 1
_LOCK_SECONDS = 60.0
_LOCK_KEY = "0" * 16  # one lock for the whole file, regardless of the target
_KEEP_SECONDS = 2.0  # between two writes of an unfinished table
# For threads that add to a table without a file. One for all: a table can be copied and pickled.
_IN_MEMORY = ForkLock()


class TunedConfigs:
    """Configurations chosen by :func:`culaunch.tuning.tune`, to look up in programs and functions.

    ``table[n]`` or ``table[n, dtype]`` is the configuration for a key on the current device. In the
    body of a :func:`culaunch.function`, each value of the key is a guard, and one path is recorded
    for each. Therefore round a size first (``table[cl.next_power_of_2(n)]``).

    Parameters
    ----------
    path : str or os.PathLike, optional
        A JSON file, which is read if it exists, and written on each addition. Several processes
        may add to it. Without a path, the table is in memory only.

    Raises
    ------
    ValueError
        If the file is not a table.
    OSError
        If the file cannot be read, or its directory does not exist.

    Examples
    --------
    >>> table = cl.tuning.TunedConfigs("tuned.json")
    >>> configs = [{"grid": 1, "block": 128}, {"grid": 1, "block": 256}]
    >>> tuning = cl.tuning.tune(
    ...     kernel, configs, (y, x, 2.0, 256), key=(256,), table=table, repeat=5, flush=False
    ... )
    >>> table[256] == tuning.best
    True
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else checked_path("path", path)
        self._entries: list[dict[str, Any]] = []
        self._unfinished: list[dict[str, Any]] = []
        self._unsaved: list[dict[str, Any]] = []  # choices that the file had no room for
        self._kept_at = -math.inf
        self._said = ""
        # Check this before measuring.
        if self.path is not None and not os.path.isdir(os.path.dirname(self.path) or "."):
            raise FileNotFoundError(
                errno.ENOENT,
                "the directory of the table does not exist: create it first",
                os.path.dirname(self.path),
            )
        self._read()

    def __getitem__(self, key: Any) -> Config:
        """Return the configuration for a key on the current device; see :meth:`find`."""
        return self.find(*(key if isinstance(key, tuple) else (key,)))

    def find(self, *key: Any, device: str | None = None) -> Config:
        """Return the configuration for a key.

        If the key was not measured, the result is the configuration of the nearest key, by ratio of
        the numbers. Every configuration gives the same result.

        Parameters
        ----------
        *key : int, float, str, bool, None or dtype
            The key that :func:`culaunch.tuning.tune` was given.
        device : str, optional
            The device's name; the current device's by default.

        Returns
        -------
        dict
            The configuration, as it was passed to :func:`culaunch.tuning.tune`.

        Raises
        ------
        KeyError
            If no measurements exist for this device, or for this kind of key.
        TypeError
            If a part of the key, or `device`, has the wrong type.
        """
        values = checked_key(key)
        name, found = self._entries_of(device)
        if not found:
            devices = ", ".join(dict.fromkeys(one["device"] for one in self._entries)) or "none"
            raise KeyError(
                f"no entry for {name} (the table has entries for {devices}): tune there with "
                "cl.tuning.tune(...)"
            )
        # Any configuration gives a correct result, so a key that was not tuned uses the nearest
        # one.
        near = [(_distance(one["key"], values), one) for one in found]
        distance, entry = min(near, key=lambda pair: pair[0])
        if distance == math.inf:
            keys = ", ".join(str(tuple(one["key"])) for one in found[:8])
            raise KeyError(f"no key for {name} has the types of {values} (the table has {keys})")
        return dict(entry["config"])

    def plot(self, axes: Any = None, *, device: str | None = None) -> Any:
        """Draw the time of each choice over its key with matplotlib.

        The first positive number of a key is the place. Keys that differ in other parts are
        different lines. Each point is labeled with the configuration.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            The place to draw; a new figure's by default.
        device : str, optional
            The device's name; the current device's by default.

        Returns
        -------
        matplotlib.axes.Axes
            ``axes.figure.savefig(path)`` writes it to a file.

        Raises
        ------
        MissingDependencyError
            Without matplotlib.
        TypeError
            If `axes` are not matplotlib's, or `device` is not a str.
        ValueError
            If no key of this device has a positive number.
        """
        name, found = self._entries_of(device)
        if not any(map(has_numbers, found)):
            raise ValueError(f"no entry for {name} has a key with a positive number")
        axes = plot_keys(found, axes)
        axes.set_title(label(name))
        return axes

    def _entries_of(self, device: str | None) -> tuple[str, list[dict[str, Any]]]:
        name = Device().name if device is None else checked_text("device", device)
        return name, [one for one in self._entries if one["device"] == name]

    def _repr_html_(self) -> str:
        titles = ("device", "kernel", "key", "configuration", "value", "unit")
        rows = [
            (
                one["device"],
                one["name"],
                tuple(one["key"]),
                one["config"],
                one["value"],
                one["unit"],
            )
            for one in self._entries
        ]
        drawn = {one["device"] for one in self._entries if has_numbers(one)}
        pictures = [picture(partial(self.plot, device=name)) for name in sorted(drawn)]
        return html_table(titles, rows, repr(self)[1:-1]) + "".join(pictures)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Iterate over the stored devices and keys."""
        return iter([(one["device"], tuple(one["key"])) for one in self._entries])

    def __contains__(self, item: object) -> bool:
        return item in [*self]

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else repr(self.path)
        return f"<culaunch.tuning.TunedConfigs {where}, {counted(len(self), 'entry')}>"

    # ---- for tune()

    def earlier_choice(self, device: str, key: tuple[Any, ...], digest: str) -> Tuning | None:
        """Return the earlier choice among the same configurations, if there is one.

        Parameters
        ----------
        device : str
            The name of the device.
        key : tuple
            The key of the call.
        digest : str
            The digest of the configurations.

        Returns
        -------
        Tuning or None
            The choice.
        """
        for one in self._entries:
            if is_of(one, device, key) and one["digest"] == digest:
                trial = Trial(dict(one["config"]))
                is_emulated = one["unit"] == "instructions"
                if is_emulated:
                    trial.instructions = int(one["value"])
                else:
                    trial.times = [float(one["value"])]
                return Tuning(one["name"], device, key, digest, [trial], is_emulated=is_emulated)
        return None

    def add(self, tuning: Tuning) -> None:
        """Store a choice and replace one for the same device and key; keep additions by others.

        If the file cannot be written, or is now another file, minutes of measuring are not lost.
        The table keeps the choice in memory, and a `CacheWarning` reports it.

        Parameters
        ----------
        tuning : Tuning
            The measurements with the choice.
        """
        entry = {
            "name": tuning.name,
            "device": tuning.device,
            "key": list(tuning.key),
            "config": tuning.best,
            "unit": "instructions" if tuning.is_emulated else "ms",
            "value": tuning.best_trial.value,
            "digest": tuning.digest,
        }
        try:
            with self._changed(tuning):
                self._entries.append(entry)
        except (OSError, ValueError) as error:
            self._unsaved = [*_without(self._unsaved, tuning), entry]
            self._entries = [*_without(self._entries, tuning), entry]
            self._warn(error)

    def keep(self, tuning: Tuning) -> None:
        """Store the measurements so far, for a process that continues them.

        A file that cannot be written is a `CacheWarning`.

        Parameters
        ----------
        tuning : Tuning
            The measurements so far.
        """
        # A round may take less time than writing the file.
        if self.path is None or time.monotonic() < self._kept_at + _KEEP_SECONDS:
            return
        try:
            with self._changed(tuning, is_finished=False):
                self._unfinished.append(unfinished_entry(tuning))
        except (OSError, ValueError) as error:
            self._warn(error)
        self._kept_at = time.monotonic()

    def resume(self, tuning: Tuning) -> None:
        """Give a tuning the measurements from before it was stopped.

        Parameters
        ----------
        tuning : Tuning
            A tuning of the same configurations.
        """
        for one in self._unfinished:
            if is_of(one, tuning.device, tuning.key) and one["digest"] == tuning.digest:
                resume(tuning, one)

    @contextlib.contextmanager
    def _changed(self, tuning: Tuning, *, is_finished: bool = True) -> Iterator[None]:
        """Remove the entry for a device and a key, and write the resulting entry."""
        lock: contextlib.AbstractContextManager[object] = _IN_MEMORY
        if self.path is not None:
            # Read again under the lock, because another process may have added entries since. The
            # lock is a separate file, because this file is replaced.
            lock = lock_key(self.path + ".lock", _LOCK_KEY, _LOCK_SECONDS)
        with lock:
            self._read()
            for one in self._unsaved:
                others = (entry for entry in self._entries if not is_of_same(entry, one))
                self._entries = [*others, one]
            self._unfinished = _without(self._unfinished, tuning)
            if is_finished:
                self._entries = _without(self._entries, tuning)
            yield
            if self.path is None:
                return
            content = {"format": FORMAT, "version": VERSION, "entries": self._entries}
            if self._unfinished:
                content["unfinished"] = self._unfinished
            write_output(self.path, json.dumps(content, indent=1).encode() + b"\n")
            self._said = ""
            self._unsaved = []

    def _warn(self, error: Exception) -> None:
        message = f"the table {self.path!r} cannot be written: {error}"
        # Minutes of results are stored repeatedly, so report a full disk only once.
        if message != self._said:
            self._said = message
            warnings.warn(message, CacheWarning, stacklevel=4)  # it points to the caller of tune()

    def _read(self) -> None:
        if self.path is None or not os.path.exists(self.path):
            return
        with open(self.path, "rb") as file:
            data = file.read()
        try:
            content = json.loads(data)
            if content["format"] != FORMAT:
                raise ValueError(f"format must be {FORMAT!r} (got {spell(content['format'])})")
            if type(content["version"]) is not int or content["version"] != VERSION:
                raise ValueError(f"version must be {VERSION} (got {spell(content['version'])})")
            unfinished = content.get("unfinished", [])
            if not isinstance(content["entries"], list) or not isinstance(unfinished, list):
                raise TypeError("entries must be a list")
            self._entries = [_checked(one) for one in content["entries"]]
            self._unfinished = [checked_unfinished(one) for one in unfinished]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{self.path} is not a valid tuning table: {error}") from None


def _checked(entry: Any) -> dict[str, Any]:
    for name in ("name", "device", "digest", "unit"):
        if not isinstance(entry[name], str):
            raise TypeError(f"{name} must be a str (got {spell(entry[name])})")
    if entry["unit"] not in ("ms", "instructions"):
        raise ValueError(f"unit must be 'ms' or 'instructions' (got {spell(entry['unit'])})")
    checked_measurement(entry["value"])
    if not isinstance(entry["config"], dict) or not isinstance(entry["key"], list):
        raise TypeError("an entry must have a list as key and an object as config")
    checked_key(entry["key"])
    check_kept("config", entry["config"])
    return {**entry, "config": {name: _tuples(v) for name, v in entry["config"].items()}}


def _without(entries: list[dict[str, Any]], tuning: Tuning) -> list[dict[str, Any]]:
    return [one for one in entries if not is_of(one, tuning.device, tuning.key)]


def _tuples(value: Any) -> Any:
    """Return a grid as a tuple, as it was before it was in a file."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _distance(saved: list[Any], given: tuple[Any, ...]) -> float:
    """Return the sum of the ratios of two keys; infinite if their types differ."""
    if len(saved) != len(given):
        return math.inf
    total = 0.0
    for one, other in zip(saved, given, strict=True):
        ratio = ratio_between(one, other)
        if ratio is not None:
            total += ratio
        elif type(one) is not type(other) or one != other:
            return math.inf
    return total
