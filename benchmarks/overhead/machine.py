"""The machine and the versions that a result belongs to."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from overhead.bench import Bench

_PACKAGES = (
    "culaunch",
    "torch",
    "triton",
    "cupy-cuda13x",
    "cupy-cuda12x",
    "cupy",
    "cuda-core",
    "cuda-bindings",
    "apache-tvm-ffi",
    "numpy",
    "liger-kernel",
    "flash-linear-attention",
)


def describe(bench: Bench) -> dict[str, Any]:
    """Return the processor, the device, the driver and the versions; nothing that names a host."""
    driver = f"{bench.driver_version // 1000}.{bench.driver_version % 1000 // 10}"
    return {
        **versions(),
        "device": bench.device,
        "capability": f"{bench.capability // 10}.{bench.capability % 10}",
        "driver_api": f"{driver} (null driver)" if bench.host_only else driver,
    }


def versions() -> dict[str, Any]:
    """Return only the processor, the system and the versions."""
    return {
        "cpu": _cpu(),
        "cpus": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "kernel_driver": _kernel_driver(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _kernel_driver() -> str | None:
    try:
        first = Path("/proc/driver/nvidia/version").read_text().splitlines()[0]
    except (OSError, IndexError):
        return None
    return next((word for word in first.split() if word[0].isdigit() and "." in word), None)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
