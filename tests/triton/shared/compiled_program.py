"""What calls returned, launched again, on the emulated driver, by Triton's launcher or natively.

`python compiled_program.py FOLDER triton|installed` prints what came of each launch.
"""

import os
import sys

import own_driver
import torch
import triton
import triton.language as tl
from triton import knobs


@triton.jit
def scale(x, n, out, BLOCK: tl.constexpr, factor=2.0):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


def launches(compiled, x, out):
    """Yield names and launches."""
    yield "as it was", lambda: compiled[2, 1, 1](x, 100, out, 64, 2.0)
    yield "of other values", lambda: compiled[2, 1, 1](x + 1, 50, out, 64, 3.0)
    yield "a longer grid", lambda: compiled[[1, 1, 1, 5]](x, 100, out, 64, 4.0)
    yield "no blocks", lambda: compiled[0, 1, 1](x, 100, out, 64, 2.0)
    yield "another constant, which is not asked", lambda: compiled[2, 1, 1](x, 100, out, 9, 5.0)
    yield "another alignment", lambda: compiled[1, 1, 1](x[1:], 60, out[1:], 64, 6.0)
    yield "too few", lambda: compiled[2, 1, 1](x, 100, out)
    yield "of another type", lambda: compiled[2, 1, 1](x, 100, out, 64, "a")
    yield "a short grid", lambda: compiled[2,](x, 100, out, 64, 2.0)
    yield "by keyword", lambda: compiled[2, 1, 1](x, n=100, out=out, BLOCK=64, factor=2.0)
    yield "with a stream", lambda: compiled[2, 1, 1](x, 100, out, 64, 7.0, stream=0)
    warm = scale.warmup(x, 7, out, BLOCK=32, grid=(1,))
    yield "of a warm-up", lambda: warm[1, 1, 1](x, 7, out, 32, 8.0)
    yield "by its launcher", lambda: compiled.run(
        2, 1, 1, 0, compiled.function, compiled.packed_metadata, None, None, None,
        x, 100, out, 64, 9.0,
    )  # fmt: skip


def attempt(launch, out):
    out.zero_()
    try:
        return launch(), out.tolist()
    except Exception as error:  # noqa: BLE001
        return type(error).__name__, str(error)


def main(folder, how):
    os.environ["CULAUNCH_DRIVER"] = "emulator"
    own_driver.build(folder)
    if how == "installed":
        from culaunch.triton import install, report

        install()
    triton.runtime.driver.set_active(own_driver.OwnDriver())
    x, out = torch.arange(100.0), torch.zeros(100)
    compiled = scale[2, 1, 1](x, 100, out, 64)
    for name, launch in launches(compiled, x, out):
        print(name, *attempt(launch, out), flush=True)
    told = []
    hook = lambda metadata: told.append(sorted(metadata.get()))  # noqa: E731
    knobs.runtime.launch_enter_hook.add(hook)
    print("with a hook", attempt(lambda: compiled[2, 1, 1](x, 100, out, 64, 2.0), out), told)
    knobs.runtime.launch_enter_hook.remove(hook)
    if how == "installed":
        print(report(), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
