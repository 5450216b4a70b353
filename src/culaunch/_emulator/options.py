"""The checks of an emulated device, and how it runs."""

from __future__ import annotations

import functools
import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_ENGINES = ("numpy", "compiled", "auto")

# The options that a user can change by name.
OPTION_TYPES = {
    "check_races": bool,
    "check_uninitialized": bool,
    "check_unwritten": bool,
    "check_views": bool,
    "check_variables": bool,
    "check_division": bool,
    "check_overflow": bool,
    "check_leaks": bool,
    "cores": int,
    "lanes": int,
    "seed": int,
    "time_limit": float,
    "track_allocations": bool,
}
_ON, _OFF = ("1", "true", "on", "yes"), ("0", "false", "off", "no")


def _to_stdout(text: str) -> None:
    try:
        print(text, end="")  # noqa: T201 - without a standard output, nothing is written
    except (OSError, ValueError) as error:  # it is full, closed, or lacks these characters
        # As on a GPU, a launch never fails because of its output.
        warnings.warn(f"output of kernels is lost: {error}", RuntimeWarning, stacklevel=2)


class Observer(Protocol):
    """Sees what the threads of launches execute."""

    def launch(self, arrays: list[tuple[int, int, int]]) -> None:
        """Note a launch before it begins: number, address and size of arguments that are arrays."""
        raise NotImplementedError

    def begin(self, block: Any, group: Any) -> list[Any]:
        """Note that a group begins a block of the code; return the operations to run."""
        raise NotImplementedError

    def end(self, block: Any, group: Any) -> None:
        """Note that a group has run the operations of a block, and leaves it next."""
        raise NotImplementedError

    def access(self, group: Any, space: str, address: Any, size: int, verb: str) -> None:
        """Note that the threads of a group access bytes at these addresses of a memory."""
        raise NotImplementedError


class CodeChecks(NamedTuple):
    """The checks that change decoded code; without them it is as if they did not exist."""

    variables: bool = False
    """Keep bytes free between shared variables."""
    # Report divisions by zero, and signed results that do not fit.
    division: bool = False
    overflow: bool = False
    clusters: bool = False
    """Name the block in addresses of shared variables; for a launch with clusters."""


@dataclass(frozen=True)
class Options:
    """Settings of an emulated device.

    Parameters
    ----------
    check_uninitialized : bool
        Report uses of shared memory that the block has not written.
    check_unwritten : bool
        Report uses of local memory that the thread has not written, and of device memory that
        nothing has written since its allocation.
    check_races : bool
        Report accesses of two threads to the same shared or global memory, one of them a write,
        that nothing orders.
    check_views : bool
        Report accesses beyond what the array of an argument shows, if it is a view of another.
    check_variables : bool
        Report accesses that leave a shared variable.
    check_division, check_overflow : bool
        Report integer divisions by zero, and signed results that do not fit.
    check_leaks : bool
        Report blocks of malloc in kernels that are not freed, at a synchronization or a reset.
    track_allocations : bool
        Name in reports where in Python an allocation was made.
    seed : int, optional
        Run blocks and warps in a random order, the same one for the same seed.
    lanes : int
        About how many threads to run at once.
    cores : int, optional
        How many of the processor's cores run blocks of a compiled kernel; all by default.
    time_limit : float, optional
        Seconds after which a launch is given up as one that does not end.
    write : callable
        Receives what kernels print.
    observer : Observer, optional
        Sees what threads execute.
    """

    check_uninitialized: bool = True
    check_unwritten: bool = False
    check_races: bool = False
    check_views: bool = False
    check_variables: bool = False
    check_division: bool = False
    check_overflow: bool = False
    check_leaks: bool = False
    track_allocations: bool = False
    seed: int | None = None
    lanes: int = 1 << 15
    cores: int | None = None
    time_limit: float | None = None
    write: Callable[[str], None] = _to_stdout
    observer: Observer | None = None

    # Each launch asks.
    @functools.cached_property
    def code_checks(self) -> CodeChecks:
        """The checks that are part of a kernel's decoded code."""
        return CodeChecks(self.check_variables, self.check_division, self.check_overflow)

    @property
    def needs_numpy(self) -> bool:
        """Whether only the NumPy engine has these checks."""
        return (
            self.check_races
            or self.check_unwritten
            or any(self.code_checks)
            or self.seed is not None
            or self.observer is not None
        )


def options_from_text(text: str) -> Options:
    """Read options in the form of ``CULAUNCH_EMULATOR_OPTIONS``: ``"check_races,time_limit=10"``.

    Raise ValueError if an option is unknown, or its value is invalid.
    """
    # Nothing is ignored: a misspelt check that stays off would be believed to have passed.
    found: dict[str, Any] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (part.strip() for part in word.partition("="))
        if name not in OPTION_TYPES:
            raise ValueError(
                f"CULAUNCH_EMULATOR_OPTIONS has the unknown option {name!r}: the options are "
                f"{', '.join(OPTION_TYPES)}"
            )
        try:
            found[name] = _value(OPTION_TYPES[name], value, zero=name == "seed")
        except ValueError:
            kind = OPTION_TYPES[name].__name__
            raise ValueError(
                f"CULAUNCH_EMULATOR_OPTIONS: {name} must be a {kind}, as in "
                f"'check_races=1,time_limit=10' (got {value!r})"
            ) from None
    return Options(**found)


def chosen_engine() -> str:
    """Return the engine that ``CULAUNCH_EMULATOR_ENGINE`` names.

    Raise ValueError if there is no such engine.
    """
    name = os.environ.get("CULAUNCH_EMULATOR_ENGINE") or "auto"
    if name not in _ENGINES:
        raise ValueError(
            f"CULAUNCH_EMULATOR_ENGINE must be one of {', '.join(_ENGINES)} (got {name!r})"
        )
    return name


def _value(kind: type, text: str, *, zero: bool) -> Any:
    if kind is not bool:
        number = kind(text)
        if not (number > 0 or (zero and number == 0)):
            raise ValueError(text)
        return number
    if text.lower() in ("", *_ON):
        return True
    if text.lower() in _OFF:
        return False
    raise ValueError(text)
