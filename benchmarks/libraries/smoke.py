"""A run without a GPU: the emulator launches, and Triton itself launches nothing."""

from __future__ import annotations

import os
from typing import Any


def prepare() -> None:
    """Choose the emulator, and make libraries that ask for the GPU see an A100."""
    os.environ["CULAUNCH_DRIVER"] = "emulator"
    import torch
    from triton.runtime.driver import driver

    from culaunch._launch.driver import current_driver
    from culaunch._triton.target import StandIn

    class Idle(StandIn):
        """Takes Triton's launches, and makes none."""

        def launcher_cls(self, source: Any, metadata: Any) -> Any:  # noqa: ARG002
            return lambda *args: None  # noqa: ARG005

        def load_binary(self, *args: Any) -> tuple[int, int, int, int, int]:  # noqa: ARG002
            return 1, 2, 32, 0, 1024

        def get_benchmarker(self) -> Any:
            return lambda call, quantiles: [(call() and 0) or 1.0] * len(quantiles)

    torch.cuda.get_device_name = lambda *_: "NVIDIA A100"
    torch.cuda.get_device_capability = lambda *_: (8, 0)
    found = current_driver()
    idle = Idle("emulator", (8, 0), lambda number: found.attribute(number, 0))
    driver.set_active(idle)
