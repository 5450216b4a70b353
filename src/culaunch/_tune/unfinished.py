"""Trials of interrupted tunings, stored beside the choices for the next run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._tune.configs import checked_key, same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._tune.tuning import Tuning


def is_of(entry: dict[str, Any], device: str, key: Sequence[Any]) -> bool:
    """Whether an entry of a table belongs to a device and a key."""
    return entry["device"] == device and same(entry["key"], key)


def is_of_same(entry: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two entries have the same device and key."""
    return is_of(entry, other["device"], other["key"])


def unfinished_entry(tuning: Tuning) -> dict[str, Any]:
    """Return the table's entry for an unfinished tuning.

    Trials are in the order of the configurations, which the digest identifies. Errors are not
    stored: a failed configuration may work the next time, and is called again.
    """
    return {
        "device": tuning.device,
        "key": list(tuning.key),
        "digest": tuning.digest,
        "trials": [
            trial.instructions if tuning.is_emulated else list(trial.times)
            for trial in tuning.trials
        ],
    }


def resume(tuning: Tuning, entry: dict[str, Any]) -> None:
    """Add the stored measurements to the trials of a tuning."""
    for trial, known in zip(tuning.trials, entry["trials"], strict=False):
        if tuning.is_emulated and isinstance(known, int):
            trial.instructions = known
        elif not tuning.is_emulated and isinstance(known, list):
            trial.times = [float(one) for one in known]


def checked_unfinished(entry: Any) -> dict[str, Any]:
    """Return an entry of a file, if it is valid.

    Raises
    ------
    TypeError, ValueError, KeyError
        If it is invalid.
    """
    for name in ("device", "digest"):
        if not isinstance(entry[name], str):
            raise TypeError(f"{name} must be a str (got {spell(entry[name])})")
    if not isinstance(entry["key"], list) or not isinstance(entry["trials"], list):
        raise TypeError("an unfinished entry must have a list as key and a list of trials")
    checked_key(entry["key"])
    for trial in entry["trials"]:
        for value in trial if isinstance(trial, list) else [trial]:
            if value is not None or isinstance(trial, list):
                checked_measurement(value)
    return {name: entry[name] for name in ("device", "key", "digest", "trials")}


def checked_measurement(value: Any) -> None:
    """Refuse a value that is not a valid time.

    Raises
    ------
    ValueError
        Naming it.
    """
    if type(value) not in (int, float) or not 0 <= value < math.inf or value > 1e300:
        raise ValueError(f"a measurement must be a finite number from 0 on (got {spell(value)})")
