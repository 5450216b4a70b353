"""Parameter types read off a declaration: right, or left to the compiler."""

import pytest

from culaunch._core import kernel_signatures


def declared_types(source, kernel):
    """Return the types that a source leaves no doubt about: without a question to the compiler."""
    questions = []
    for count in range(4):
        params = ", ".join(f".param .b32 {kernel}_param_{i}" for i in range(count))
        ptx = f".visible .entry {kernel}({params})\n{{\n}}\n".encode()
        found = kernel_signatures(ptx, source, lambda _, names: questions.append(names) or {})
        if not questions and None not in found[kernel]:
            types = found[kernel]
    assert questions in ([], [{kernel: f"culaunch_signature<decltype({kernel})>"}] * 4)
    return None if questions else types


def types(params):
    return declared_types(
        f'extern "C" __global__ void __launch_bounds__(9, 2) k({params}) {{ }}', "k"
    )


@pytest.mark.parametrize(
    ("param", "expected"),
    [
        ("float x", "float"),
        ("const int n", "int"),
        ("unsigned u", "unsigned int"),
        ("short int", "short"),
        ("long unsigned int long q", "unsigned long long"),
        ("signed char c", "signed char"),
        ("size_t n", "unsigned long"),
        ("uint8_t b", "unsigned char"),
        ("half2 h", "__half2"),
        ("float4 v", "float4"),
        ("void* p", "void*"),
        ("const float* __restrict__ x", "const float*"),
        ("float const *const x", "const float*"),
        ("char **p", "char**"),
        ("const __half *", "const __half*"),
        ("/* double */ float a // int", "float"),
    ],
)
def test_what_is_beyond_doubt(param, expected):
    assert types(param + "\n") == (expected,)
    assert types(f"{param}\n, int last") == (expected, "int")


@pytest.mark.parametrize(
    "param",
    [
        "Foo x",
        "T* x",
        "float x[4]",
        "float& x",
        "const float* const* p",
        "unsigned float x",
        "int (*f)(int)",
        "ns::real x",
        "Pair<int, float> p",
        "int x = 3",
        "void x",
        "char int x",
    ],
)
def test_what_leaves_a_doubt(param):
    assert types(param) is None
    assert types(f"{param}, int last") is None


def test_no_parameters():
    assert types("") == types("void") == ()


def test_two_declarations_that_differ():
    text = "#if A\n__global__ void k(int a) {}\n#else\n__global__ void k(float a) {}\n#endif\n"
    assert declared_types(text, "k") is None
    assert declared_types(text.replace("float", "int"), "k") == ("int",)


def test_macros_and_other_kernels():
    assert declared_types("#define real double\n__global__ void k(real x) {}", "k") is None
    assert declared_types("#define float double\n__global__ void k(float x) {}", "k") is None
    text = "__global__ void kk(int a) {}\n__global__ void k(float b) {}\nvoid g() { k(1); }"
    assert declared_types(text, "k") == ("float",)
    assert declared_types("__device__ void k(int a) {}", "k") is None
    assert declared_types("", "k") is None
