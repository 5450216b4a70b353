"""Which driver the environment chooses: one reading of ``CULAUNCH_DRIVER``, everywhere."""

from __future__ import annotations

import os

from culaunch._base.similar import did_you_mean

VARIABLE = "CULAUNCH_DRIVER"
STRICT = "CULAUNCH_EMULATOR_STRICT"
_NAMES = ("cuda", "emulator")
_OTHER_WORDS = {"cpu": "emulator", "emu": "emulator", "gpu": "cuda", "nvidia": "cuda"}


def driver_choice() -> str:
    """Return ``"cuda"``, ``"emulator"`` or the path of a library.

    Raise ValueError if the variable has anything else.
    """
    choice = os.environ.get(VARIABLE) or "cuda"
    check_choice(choice, VARIABLE)
    return choice


def strict_choice() -> bool:
    """Return whether the emulator refuses arrays of the host, as a GPU does.

    Raise ValueError if the variable is neither 0 nor 1.
    """
    choice = os.environ.get(STRICT) or "0"
    if choice not in ("0", "1"):
        raise ValueError(f"{STRICT} must be 0 or 1 (got {choice!r})")
    return choice == "1"


def check_choice(choice: str, what: str) -> None:
    """Raise ValueError unless a text names a driver; ``what`` names the text's source."""
    if choice in _NAMES or os.sep in choice:
        return
    raise ValueError(
        f"{what} must be 'cuda', 'emulator' or the path of a library that exports the CUDA driver "
        f"API (got {choice!r}){_meant(choice)}"
    )


def _meant(choice: str) -> str:
    other = _OTHER_WORDS.get(choice.lower())
    return f": did you mean {other!r}?" if other else did_you_mean(choice, _NAMES)
