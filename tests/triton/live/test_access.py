"""The accesses of a kernel to its arrays, from its intermediate representation."""

import pytest

from culaunch._triton.variants.access import pointer_access

pytestmark = pytest.mark.needs("triton")

READ, WRITE, UNKNOWN = "read", "write", "unknown"
EXPECTED = {
    "loop": (READ, READ, WRITE),
    "branch": (WRITE, WRITE),
    "loop_of_outputs": (READ, WRITE),
    "chosen": (WRITE, WRITE, READ),
    "atomics": (WRITE, READ),
    "calls": None,
    "casts": (UNKNOWN, READ),
    "swaps": None,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_access_is_told(name):
    import access_kernels
    import triton
    from triton.backends.compiler import GPUTarget

    kernel = getattr(access_kernels, name)
    types = {}
    for parameter in kernel.params:
        kind = "i32" if parameter.name == "n" else "*fp32"
        types[parameter.name] = "constexpr" if parameter.is_constexpr else kind
    constants = {"BLOCK": 16} if "BLOCK" in types else {}
    source = triton.compiler.ASTSource(kernel, types, constants)
    ttir = triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm["ttir"]
    told = pointer_access(ttir)
    if EXPECTED[name] is None:
        assert told == () or set(told) == {UNKNOWN}
        return
    if name == "casts" and "tt.ptr_to_int" not in ttir:  # compilers from 3.9 on fold it
        told = tuple(UNKNOWN if one == WRITE else one for one in told)
    assert tuple(one for one in told if one is not None) == EXPECTED[name], ttir


def test_text_that_is_not_understood_tells_nothing():
    twice = "tt.func public @f(%x: !tt.ptr<f32>) {\n" * 2
    for text in ("", "module {}", "tt.func public @f(", twice):
        assert pointer_access(text) == ()
