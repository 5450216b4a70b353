"""Imported by workers: work that ends its process, and work that does not."""

import os
import signal
from pathlib import Path


def number_or_death(number, deadly, marker=None):
    """Return a number; the deadly number ends the process by a signal, or only the first time."""
    if number == deadly and not (marker and Path(marker).exists()):
        if marker:
            Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number
