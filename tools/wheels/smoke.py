"""Try an installed wheel: import, inspect, launch on the emulator, embed. Needs only NumPy.

``python tools/wheels/smoke.py`` in an environment that has the wheel and NumPy: cibuildwheel runs
it in its containers, ``build.py`` on other machines' processors. Prints one line for each step; an
exception ends it.
"""

from __future__ import annotations

import os
import platform
import struct
import sys
import tempfile
from pathlib import Path

os.environ["CULAUNCH_DRIVER"] = "emulator"
PTX = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 factor, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %i, %n, %block, %width;
    .reg .f32 %v, %f;
    .reg .b64 %x;
    ld.param.u32 %n, [n];
    mov.u32 %i, %tid.x;
    mov.u32 %block, %ctaid.x;
    mov.u32 %width, %ntid.x;
    mad.lo.u32 %i, %block, %width, %i;
    setp.ge.u32 %p, %i, %n;
    @%p bra END;
    ld.param.u64 %x, [x];
    mad.wide.u32 %x, %i, 4, %x;
    ld.param.f32 %f, [factor];
    ld.global.f32 %v, [%x];
    mul.f32 %v, %v, %f;
    st.global.f32 [%x], %v;
END:
    ret;
}
"""
E_MACHINE = {"x86_64": 62, "aarch64": 183}


def main() -> None:
    """Do all of it."""
    import culaunch as cl

    print(f"import    culaunch {cl.__version__}, Python {platform.python_version()}")
    cl.load  # noqa: B018  (brings the extension)
    if is_free_threaded() and sys._is_gil_enabled():  # type: ignore[attr-defined]  # noqa: SLF001
        raise SystemExit("the import of culaunch has turned the GIL on")

    (image,) = cl.inspect(PTX).images
    (kernel,) = image.kernels
    assert (kernel.name, len(kernel.parameters)) == ("scale", 3), kernel
    print(f"inspect   {kernel.name}, {len(kernel.parameters)} parameters")

    import numpy as np

    x = np.arange(1000, dtype=np.float32)
    cl.load(PTX)["scale"][8, 128](x, 2.5, 1000)
    assert np.array_equal(x, np.arange(1000, dtype=np.float32) * 2.5), x
    print("launch    1000 numbers")
    try:
        cl.load(PTX)["scale"][8, 128](x, "2.5", 1000)
    except TypeError as error:
        print(f"refuse    {str(error).partition(',')[0]}")
    else:
        raise SystemExit("text was taken for a float")

    @cl.function
    def scaled(x: cl.Array) -> None:
        n = x.size
        cl.check(n > 0, "x is empty")
        kernels["scale"][cl.ceildiv(n, 128), 128](x, 2.0, n)

    kernels = cl.load(PTX)
    scaled(x)
    assert x[-1] == 999 * 5, x
    print("function  recorded, and run natively")

    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "image.o")
        cl.cpp.embed(PTX, made, "image")
        elf = made.read_bytes()
        assert PTX in elf
        machine = struct.unpack_from("<H", elf, 18)[0]
        assert machine == E_MACHINE[platform.machine()], machine
    print(f"embed     an object for {platform.machine()}")

    names = {name.partition(".")[0] for name in sys.modules}
    strangers = names & {"click", "cuda", "cupy", "jax", "rich", "torch", "triton", "tvm_ffi"}
    assert not strangers, strangers


def is_free_threaded() -> bool:
    """Whether this Python was built to run without the GIL."""
    import sysconfig

    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


if __name__ == "__main__":
    main()
