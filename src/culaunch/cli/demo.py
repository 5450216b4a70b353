"""``culaunch demo``: from source to a checked result, with every step shown."""

from __future__ import annotations

import os
import re
import statistics
import time
from typing import TYPE_CHECKING, Any

import click

import culaunch as cl
from culaunch.cli._messages import echo
from culaunch.cli._options import driver_option

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = """\
__global__ void add(float* z, const float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}

template <typename T>
__global__ void scale(T* y, const T* x, T factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}
"""
NAMES = ["add", "scale<float>"]
# The default architecture if nothing says which GPU will run the kernels.
FALLBACK_ARCH = "sm_90"
BLOCK = 256


@click.command()
@click.option(
    "--size",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    help="Elements of each array.",
)
@driver_option
def command(size: int) -> None:
    """Compile, inspect, launch and check two kernels."""
    Demo(size).run()


class Demo:
    """The steps of the demonstration, in order; each prints its result."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.np = _import_numpy()
        self._say("culaunch", cl.__version__)
        self.refusal = ""  # why the driver that was chosen does not work
        self.driver = self._choose_driver()
        self._say("driver", self.driver or self.refusal or "none")

    def run(self) -> None:
        """Do every step that this machine allows, and say in the last line how it went."""
        image = self._compile()
        self._inspect(image)
        if self.driver is None:
            echo("No GPU on this machine: everything worked but the launch.")
            if self.refusal:  # a launch was asked for
                raise click.exceptions.Exit(1)
            return
        self._launch(cl.load(image))
        self._fault()
        if self.driver == "emulator":
            echo("Everything worked, emulated: no GPU was used, and no times are shown.")
        else:
            echo(f"Everything worked on the {cl.driver.Device().name}.")

    def _choose_driver(self) -> str | None:
        """Find out which driver works here; the emulated one only if no other was chosen."""
        chosen = os.environ.get("CULAUNCH_DRIVER")
        try:
            if cl.driver.device_count() > 0:
                return cl.driver.driver_name()
        except cl.DriverNotFoundError as error:
            self.refusal = str(error) if chosen else ""
        if chosen:
            return None
        try:
            cl.driver.set_driver("emulator")
        except cl.DriverNotFoundError:
            return None
        return cl.driver.driver_name()

    def _compile(self) -> cl.Image:
        arch = FALLBACK_ARCH if self.driver is None else None
        start = time.perf_counter()
        image = cl.compile(SOURCE, arch=arch, names=NAMES, name="demo.cu")
        took = (time.perf_counter() - start) * 1e3
        made_for = ", ".join(image.arch)
        self._say(
            "compile", f"{image.format} for {made_for}, {len(image.data):,} bytes, {took:.1f} ms"
        )
        return image

    def _inspect(self, image: cl.Image) -> None:
        found = {kernel.name: kernel for kernel in cl.inspect(image).images[0].kernels}
        for name in NAMES:
            kernel = found[image.names[name]]
            types = ", ".join(parameter.type or "?" for parameter in kernel.parameters)
            # PTX has no registers yet. Only the driver's compiler assigns them.
            cost = "" if kernel.registers is None else f": {kernel.registers} registers"
            self._say("inspect", f"{name}({types}){cost}")

    def _launch(self, module: cl.Module) -> None:
        np, n = self.np, self.size
        x, y = np.linspace(0, 1, n, dtype=np.float32), np.arange(n, dtype=np.float32)
        grid = -(-n // BLOCK)
        a, b, out = cl.to_device(x), cl.to_device(y), cl.to_device(np.zeros(n, np.float32))

        module["add"][grid, BLOCK](out, a, b, n)
        self._check("add", out.numpy(), x + y)
        module["scale<float>"][grid, BLOCK](out, b, 2.5, n)
        self._check("scale<float>", out.numpy(), np.float32(2.5) * y)

        kernel = module["add"]
        try:
            kernel[grid, BLOCK](out, a, b, n + 0.5)
        except TypeError as error:
            self._say("refused", str(error))
        if self.driver == "emulator":
            return  # the time of an emulation is not the time of a launch
        launcher = kernel.configure(grid=grid, block=BLOCK)
        configured = self._cost(lambda: launcher(out, a, b, n), out)
        chevrons = self._cost(lambda: kernel[grid, BLOCK](out, a, b, n), out)
        self._say("cost", f"launcher(...) {configured}, kernel[grid, block](...) {chevrons}")

    def _fault(self) -> None:
        """Read past the end of an array, on the emulator: it names the thread and the line."""
        with cl.testing.use_driver("emulator"):
            image = cl.compile(SOURCE, arch="compute_80", names=NAMES, name="demo.cu",
                               line_info=True)  # fmt: skip
            x = cl.to_device(self.np.zeros(1000, self.np.float32))
            try:
                cl.load(image)["add"][4, BLOCK](x, x, x, 1003)
                cl.synchronize()
            except cl.DriverError as error:
                self._say("fault", _located(str(error)))
            finally:
                cl.testing.reset_emulator()

    def _check(self, name: str, result: Any, expected: Any) -> None:
        if not self.np.array_equal(result, expected):
            raise cl.InternalError(f"{name} computed numbers that differ from NumPy's")
        self._say("launch", f"{name}: {self.size:,} elements, equal to NumPy's")

    def _cost(self, launch: Callable[[], object], out: Any) -> str:
        """Time a launch: the median of bursts shorter than the driver's queue, idle between."""
        burst, repeats = 200, 20
        costs = []
        for _ in range(repeats):
            start = time.perf_counter()
            for _ in range(burst):
                launch()
            costs.append((time.perf_counter() - start) / burst)
            out.numpy()
        cost = statistics.median(costs)
        return f"{cost * 1e6:.2f} us" if cost < 1e-3 else f"{cost * 1e3:.1f} ms"

    def _say(self, step: str, text: str) -> None:
        echo(click.style(f"{step:9}", bold=True) + text)


def _located(message: str) -> str:
    """Return the fault, the thread and the line of the source, from the whole message."""
    what = re.search(
        r"(\d+-byte \w+) of global address \w+: (.*?)(?: at \w+)?(, argument \d+)?$",
        message,
        re.MULTILINE,
    )
    thread = re.search(r"^ +(block .*)$", message, re.MULTILINE)
    line = re.search(r"demo\.cu:(\d+): (.*)$", message, re.MULTILINE)
    if what is None or thread is None or line is None:
        return message
    fault = "".join(filter(None, [what[1], " ", what[2], what[3]]))
    return f"(emulated) {fault}; {thread[1]}; demo.cu, line {line[1]}: {line[2]}"


def _import_numpy() -> Any:
    try:
        import numpy as np
    except ImportError as error:
        raise cl.MissingDependencyError(
            "the demo checks results with NumPy: python -m pip install numpy"
        ) from error
    return np
