"""Exceptions that other code raised while the emulator ran: they belong to the user."""

from __future__ import annotations

import os

import numpy as np

# Where the code of the emulator is, and of all that it calls.
_PACKAGES = (os.path.dirname(os.path.dirname(__file__)), os.path.dirname(np.__file__))
_STANDARD_LIBRARY = os.path.dirname(os.__file__)


def comes_from_outside(error: BaseException) -> bool:
    """Whether other code raised it, such as a signal handler: then the emulator is not at fault.

    A signal's handler may run, and raise any exception, between any two steps. So every ``except
    Exception`` of the emulator asks this, and raises those exceptions again.
    """
    frames = error.__traceback__
    while frames is not None:
        if not _is_own(frames.tb_frame.f_code.co_filename):
            return True
        frames = frames.tb_next
    return False


def _is_own(file: str) -> bool:
    if file.startswith(("<frozen ", "<__array_function__", *_PACKAGES)):
        return True
    return file.startswith(_STANDARD_LIBRARY) and "-packages" not in file
