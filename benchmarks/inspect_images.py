"""How long an inspection takes, beside NVIDIA's cuobjdump on the same file.

Usage: ``python benchmarks/inspect_images.py [FILE ...] [--rounds N] [--json]``. Without a file it
takes the ``libcurand.so.10`` of pip's ``nvidia-curand``: 105 MB, all architectures, all payloads
compressed. The bar is 0.5 s for all of it. Each number is the best of the rounds; CPU time is
beside the wall clock because a busy machine stretches only the latter.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import culaunch as cl

if TYPE_CHECKING:
    from collections.abc import Callable

BAR_SECONDS = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    found = [measure(file, options.rounds) for file in options.files or [find_libcurand()]]
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    if options.json:
        print(json.dumps({"machine": machine, "files": found}, indent=2))
        return 0
    print(machine)
    for result in found:
        size = f"{result['bytes'] / 1e6:.1f} MB"
        print(f"\n{result['file']}: {size}, {result['images']} images, {result['kernels']} kernels")
        for name, times in result["times"].items():
            if times is None:
                print(f"  {name:<32} not installed")
            else:
                print(f"  {name:<32} {times['wall']:8.4f} s   {times['cpu']:8.4f} s of CPU")
    return 0


def measure(file: str, rounds: int) -> dict[str, Any]:
    """Time every way to look into one file."""
    inspection = cl.inspect(file)
    times: dict[str, dict[str, float] | None] = {
        "inspect": best(lambda: cl.inspect(file), rounds),
        "inspect, kernels=False": best(lambda: cl.inspect(file, kernels=False), rounds),
    }
    if inspection.format != "elf":
        times["Image.open (as loading does)"] = best(lambda: cl.Image.open(file), rounds)
    cuobjdump = find_cuobjdump()
    for option in ("-res-usage", "-elf"):
        times[f"cuobjdump {option}"] = None
        if cuobjdump and inspection.format != "ptx":  # which cuobjdump does not read
            run = functools.partial(
                subprocess.run,
                [cuobjdump, option, file],
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            times[f"cuobjdump {option}"] = best(run, min(rounds, 2))
    return {
        "file": file,
        "bytes": Path(file).stat().st_size,
        "images": len(inspection.images),
        "kernels": sum(len(image.kernels) for image in inspection.images),
        "bar": BAR_SECONDS,
        "times": times,
    }


def best(call: Callable[[], object], rounds: int) -> dict[str, float]:
    """Return the shortest wall clock and CPU time, of this process and its children."""
    found = []
    for _ in range(rounds):
        before, cpu = time.perf_counter(), cpu_seconds()
        call()
        found.append((time.perf_counter() - before, cpu_seconds() - cpu))
    walls, cpus = zip(*found, strict=True)
    return {"wall": min(walls), "cpu": min(cpus)}


def cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def find_libcurand() -> str:
    try:
        import nvidia
    except ImportError:
        sys.exit("name a file, or install the package nvidia-curand")
    for root in nvidia.__path__:
        for path in sorted(Path(root).glob("**/libcurand.so.10")):
            return str(path)
    sys.exit("name a file, or install the package nvidia-curand")


def find_cuobjdump() -> str | None:
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        return shutil.which("cuobjdump")
    return find_nvidia_binary_utility("cuobjdump") or shutil.which("cuobjdump")


if __name__ == "__main__":
    sys.exit(main())
