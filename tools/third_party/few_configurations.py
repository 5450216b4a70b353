"""Autotuners that try few configurations: compiling all of them would take all the time."""

from __future__ import annotations

from typing import Any


def few_configurations(count: int) -> None:
    """Keep the first ``count`` configurations of each autotuner that is made from here on."""
    from triton.runtime.autotuner import Autotuner

    original = Autotuner.__init__

    def few(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.configs = self.configs[:count]

    Autotuner.__init__ = few
