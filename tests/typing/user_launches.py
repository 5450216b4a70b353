"""A user's code with launches. Type checkers refuse only the marked lines."""

from typing import Any

import culaunch as cl
from culaunch import elementwise as ew


def launches(kernel: cl.Kernel, x: Any, stream: cl.Stream) -> None:
    launcher: cl.Launcher = kernel[4, 256]
    launcher(x, 1000)
    kernel[(4, 1, 1), (16, 16)](x)
    kernel[cl.ceildiv(1000, 256), 256, 0, stream](x)
    kernel[[4, 1], True, 1024](x)
    kernel.launch(x, grid=4, block=(32, 8), shared_memory=0, stream=stream)
    kernel["a", 3](x)  # refused
    kernel[4](x)  # refused
    kernel[4, 256, 0, stream, 1](x)  # refused
    kernel.configure(grid=4, block="256")  # refused
    kernel.launch(x, grid=4)  # refused
    kernel.launch(x, grid=4, block=32, shared_mem=3)  # refused


def modules(image: cl.Image) -> tuple[int, str]:
    module: cl.Module = cl.load(image)
    names: list[str] = [one.name for one in cl.inspect(image).images[0].kernels]
    return len(module), names[0]


def misspelt() -> None:
    cl.lunch()  # refused
    cl.load("x.cubin").kernle("a")  # refused
    cl.compile("", arch=["sm_80", "compute_90"])
    cl.compile("", arch=90)  # refused


def words_of_others(module: cl.Module, x: cl.DeviceArray, stream: cl.Stream) -> None:
    cl.RawKernel("", "add")  # refused
    module.get_function("add")  # refused
    module["add"].max_dynamic_shared_size_bytes = 65536  # refused
    print(module["add"].num_regs)  # refused
    x.get()  # refused
    stream.sync()  # refused


def around(module: cl.Module, x: cl.DeviceArray, stream: cl.Stream) -> float:
    variable: cl.kernel.GlobalVariable = module.get_global("table")
    variable.as_array((2, 2), "float32").copy_from(x[:4].view(shape=(2, 2)), stream)
    with stream:
        start = stream.record()
        module["add"][1, 32](x, variable)
    timing: cl.profile.Timing = cl.profile.benchmark(module["add"][1, 32], x, bytes=1 << 20)
    milliseconds: float = stream.record().elapsed(start)
    return timing.median + milliseconds


@ew.fuse
def gelu(x: Any, slope: float = 0.5) -> Any:
    return slope * x * (1 + ew.tanh(x))


def fused(x: Any) -> None:
    gelu(x)
    gelu(x, 0.3, out=x)
    gelu(x=x, slope=1)
    gelu()  # refused
    gelu(x, "a")  # refused
