"""Where a run takes place: on a GPU, on a driver that does nothing, or on the emulator."""

from __future__ import annotations

import ctypes
import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

GPU, HOST_ONLY, SMOKE = "gpu", "host-only", "smoke"


@dataclass(frozen=True)
class Mode:
    """One of them, prepared.

    Attributes
    ----------
    name : str
    device : str
        Of the tensors, to torch.
    wait : callable
        Waits until all launches are done.
    """

    name: str
    device: str
    wait: Callable[[], None]

    @property
    def runs(self) -> bool:
        """Whether Triton's own launches do what kernels say."""
        return self.name == GPU


def prepare(name: str, configs: int = 0) -> Mode:
    """Make this process ready, before a library is imported.

    Parameters
    ----------
    name : str
    configs : int
        At most so many configurations of each autotuner are tried; 0 is all of them.
    """
    warnings.filterwarnings("ignore", module=r"fla|liger_kernel|torch")
    if name == HOST_ONLY:
        null = _null_driver()
    import torch

    if name == GPU:
        torch.cuda.init()
    else:
        if name == SMOKE:
            os.environ["CULAUNCH_DRIVER"] = "emulator"
        _idle(torch, (8, 0) if name == SMOKE else (9, 0))
        if name == HOST_ONLY:
            _declare_what_is_loaded(null)
    if configs:
        _try_few(configs)
    if name == GPU:
        return Mode(name, "cuda", torch.cuda.synchronize)
    return Mode(name, "cpu", lambda: None)


def _null_driver() -> Any:
    """Replace libcuda with the null driver before torch looks for it."""
    from overhead.build import build_null_driver

    path = str(build_null_driver())
    os.environ["CULAUNCH_DRIVER"] = path
    return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


def _idle(torch: Any, capability: tuple[int, int]) -> None:
    """Make Triton compile for a device and launch nothing, and show libraries that device."""
    from triton.runtime.driver import driver

    from culaunch._launch.devices.driver import current_driver
    from culaunch._triton.upstream.target import StandIn

    class Idle(StandIn):
        """Accepts Triton's launches, and launches nothing."""

        def launcher_cls(self, source: Any, metadata: Any) -> Any:  # noqa: ARG002
            return lambda *args: None  # noqa: ARG005

        def load_binary(self, *args: Any) -> tuple[int, int, int, int, int]:  # noqa: ARG002
            return 1, 2, 32, 0, 1024

        def get_benchmarker(self) -> Any:
            return lambda call, quantiles: [(call() and 0) or 1.0] * len(quantiles)

    names = {8: "NVIDIA A100", 9: "NVIDIA H200"}
    torch.cuda.get_device_name = lambda *_: names[capability[0]]
    torch.cuda.get_device_capability = lambda *_: capability
    found = current_driver()
    driver.set_active(Idle("idle", capability, lambda number: found.attribute(number, 0)))


def _declare_what_is_loaded(null: Any) -> None:
    """Declare a kernel's parameters to the null driver when the kernel is loaded."""
    from pathlib import Path

    from triton import knobs

    import culaunch as cl

    def declare(module: Any, function: Any, name: str, files: Any, digest: str) -> None:  # noqa: ARG001
        if f"{name}.cubin" not in files:
            return
        (kernel,) = cl.inspect(Path(files[f"{name}.cubin"]).read_bytes()).images[0].kernels
        sizes = [one.size for one in kernel.parameters]
        array = (ctypes.c_size_t * len(sizes))(*sizes)
        null.fake_driver_declare(name.encode(), len(sizes), array)

    knobs.runtime.kernel_load_start_hook.add(declare)


def _try_few(configs: int) -> None:
    """Let autotuners try the first few of their configurations: the winner does not matter."""
    from triton.runtime.autotuner import Autotuner

    original = Autotuner.__init__

    def few(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.configs = self.configs[:configs]

    Autotuner.__init__ = few
