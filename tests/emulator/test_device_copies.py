"""Copies, fills and allocations that kernels start by the device runtime."""

from __future__ import annotations

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Fault

# The parameters of each function: words of 64 bits, and ints.
FUNCTIONS = {
    "cudaMemcpyAsync": "lllil",
    "__cudaCDP2Memcpy2DAsync_ptsz": "llllllil",
    "cudaMemsetAsync": "lill",
    "cudaMemset2DAsync": "llilll",
    "cudaMalloc": "ll",
    "cudaFree": "l",
    "cudaGetDevice": "l",
    "cudaGetDeviceCount": "l",
}
BITS = {"l": "b64", "i": "b32"}
ADD = """
.visible .entry add(.param .u64 p, .param .u32 more) {
.reg .b64 %at; .reg .b32 %n, %more; ld.param.u64 %at, [p]; ld.param.u32 %more, [more];
ld.global.u32 %n, [%at]; add.u32 %n, %n, %more; st.global.u32 [%at], %n; ret; }
"""
LAUNCH = """{
mov.u64 %f, add; .param .b64 pf, pr, pp, ps; .param .align 4 .b8 pg[12], pb[12]; .param .b32 pm, pc;
st.param.b64 [pf], %f; st.param.b32 [pg], 1; st.param.b32 [pg+4], 1; st.param.b32 [pg+8], 1;
st.param.b32 [pb], 1; st.param.b32 [pb+4], 1; st.param.b32 [pb+8], 1; st.param.b32 [pm], 0;
call.uni (pr), cudaGetParameterBufferV2, (pf, pg, pb, pm); ld.param.b64 %f, [pr];
st.global.u64 [%f], %x; mov.b32 %c, 1000; st.global.u32 [%f+8], %c;
st.param.b64 [pp], %f; st.param.b64 [ps], 0; call.uni (pc), cudaLaunchDeviceV2, (pp, ps); }
"""


def call(name: str, *values: str | int) -> str:
    """Return PTX that calls a function; its code is in ``%c``."""
    kinds = FUNCTIONS[name]
    params = [f"p{i}" for i in range(len(kinds))]
    stores = " ".join(
        f".param .{BITS[kind]} {param}; st.param.{BITS[kind]} [{param}], {value};"
        for kind, param, value in zip(kinds, params, values, strict=True)
    )
    call_ = f"call.uni (pc), {name}, ({', '.join(params)});"
    return f"{{ {stores} .param .b32 pc; {call_} ld.param.b32 %c, [pc]; }}\n"


def run(body: str, x: np.ndarray, y: np.ndarray, threads: int = 1) -> None:
    externs = "\n".join(
        f".extern .func (.param .b32 r) {name}("
        + ", ".join(f".param .{BITS[kind]} a{i}" for i, kind in enumerate(kinds)) + ");"
        for name, kinds in FUNCTIONS.items()
    )  # fmt: skip
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) cudaGetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12],
                                                       .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, .param .b64 s);
{externs}
{ADD}
.visible .entry k(.param .u64 px, .param .u64 py) {{
.reg .b64 %x, %y, %f, %z; .reg .b32 %c, %t; .reg .pred %p; .local .align 8 .b8 place[8];
ld.param.u64 %x, [px]; ld.param.u64 %y, [py]; mov.u32 %t, %tid.x;
{body}
ret; }}"""
    launch(text, "k", x, y, block=(threads,), device=Device())


def test_copies_and_fills_keep_the_order_of_launches() -> None:
    x, y = np.arange(8, dtype="i4"), np.zeros(8, "i4")
    body = LAUNCH + call("cudaMemcpyAsync", "%y", "%x", 16, 3, 0)
    body += call("cudaMemsetAsync", "%x", 0x111, 8, 0) + LAUNCH
    body += "mov.b32 %c, 70; st.global.u32 [%x+4], %c;"  # before all of them
    run(body, x, y)
    assert y.tolist() == [1000, 70, 2, 3, 0, 0, 0, 0]
    assert x.tolist() == [0x11111111 + 1000, 0x11111111, 2, 3, 4, 5, 6, 7]


def test_a_tail_is_the_last() -> None:
    x, y = np.arange(4, dtype="i4"), np.zeros(4, "i4")
    body = call("cudaMemcpyAsync", "%y", "%x", 16, 4, 3) + call("cudaMemsetAsync", "%x", 0, 4, 0)
    run(body, x, y)
    assert y.tolist() == [0, 1, 2, 3]


def test_rows() -> None:
    x, y = np.arange(16, dtype="u1"), np.zeros(32, "u1")
    body = call("__cudaCDP2Memcpy2DAsync_ptsz", "%y", 10, "%x", 5, 3, 3, 3, 0)
    body += "add.u64 %y, %y, 5;" + call("cudaMemset2DAsync", "%y", 10, -1, 2, 2, 0)
    run(body, x, y)
    expected = np.zeros(32, "u1")
    for row in range(3):
        expected[10 * row : 10 * row + 3] = x[5 * row : 5 * row + 3]
    expected[[5, 6, 15, 16]] = 255
    np.testing.assert_array_equal(y, expected)


def test_each_thread_copies() -> None:
    x, y = np.arange(4, dtype="i4"), np.zeros(4, "i4")
    body = "mul.wide.u32 %z, %t, 4; add.u64 %x, %x, %z; sub.u64 %z, 12, %z; add.u64 %y, %y, %z;"
    run(body + call("cudaMemcpyAsync", "%y", "%x", 4, 3, 0), x, y, threads=4)
    assert y.tolist() == [3, 2, 1, 0]


def test_memory_of_the_heap_and_the_device() -> None:
    x, y = np.zeros(8, "i4"), np.zeros(8, "i4")
    body = call("cudaMalloc", "%y", 64) + "st.global.u32 [%x], %c; ld.global.u64 %z, [%y];"
    body += "mov.b32 %c, 7; st.global.u32 [%z+60], %c; ld.global.u32 %t, [%z+60];"
    body += "st.global.u32 [%x+4], %t;" + call("cudaFree", "%z") + "st.global.u32 [%x+8], %c;"
    body += call("cudaMalloc", "%y", 1 << 40) + "st.global.u32 [%x+12], %c;"
    body += "add.u64 %z, %x, 16;" + call("cudaGetDevice", "%z")
    body += "add.u64 %z, %x, 20;" + call("cudaGetDeviceCount", "%z")
    run(body, x, y)
    assert x.tolist() == [0, 7, 0, 2, 0, 1, 0, 0]
    assert y[:2].tolist() == [0, 0]  # of the allocation that fails


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (call("cudaMemcpyAsync", "%y", "%x", 36, 3, 0), "36-byte read .* crossing the end of"),
        (call("cudaMemsetAsync", 64, 0, 8, 0), "8-byte write of global address 0x40 .* null"),
        (call("cudaMemcpyAsync", "%y", "%x", 16, 1, 0), r"device to device only .got kind 1."),
        (
            "cvta.local.u64 %z, place;" + call("cudaMemcpyAsync", "%z", "%x", 8, 3, 0),
            "8-byte write of global address",
        ),
        (call("cudaFree", "%x"), "which malloc in a kernel did not return"),
    ],
)
def test_what_a_kernel_may_not_do(body: str, words: str) -> None:
    with pytest.raises(Fault, match=words):
        run(body, np.zeros(8, "i4"), np.zeros(16, "i4"))
