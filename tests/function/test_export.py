"""Functions as shared libraries: the same results to the last bit, the same errors, refusals."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from bodies import Params

import culaunch as cl
from culaunch.testing import use_driver

tvm_ffi = pytest.importorskip("tvm_ffi")
pytestmark = [pytest.mark.needs("g++", "nvrtc"), pytest.mark.slow]


def made(kernels):
    """Return the functions that are exported, by name."""

    @cl.function
    def scale(x: cl.Array("float32 | float64 | float16", "n"), factor: float = 2.0):
        """Return x * factor."""
        cl.check(x.is_contiguous(), f"x must be contiguous (got {x.shape[0]} elements)")
        y = cl.empty_like(x)
        n = x.shape[0]
        if n == 0:
            return y
        block = 64 if n % 2 == 0 else 32
        blocks = cl.ceildiv(n, block)
        kernels[f"scale<{x.dtype}>"][blocks, block](y, x, factor, n)
        return y

    @cl.function
    def copies(xs, times: int = 1):
        total = sum(x.shape[0] for x in xs)
        both = cl.zeros((2, total), xs[0].dtype)
        at = 0
        for x in xs:
            row = both[1][at : at + x.shape[0]]
            kernels["copy"][1, 64](row, x, x.strides[0], 1, x.shape[0])
            at += x.shape[0]
        return both[1], {"total": total * times, "half": total / 2, "is_odd": total % 2 == 1}, "end"

    @cl.function
    def fill_in_place(y, value: int, mode: str = "twice", when=None):
        if mode == "twice":
            value = value * 2
        condition = y.shape[0] > 0 if when is None else y.shape[0] > when
        cl.launch_if(condition, kernels["fill<int>"][cl.ceildiv(y.shape[0], 64), 64],
                     y, value, y.shape[0])  # fmt: skip

    @cl.function
    def structured(x, factor: float):
        y = cl.zeros_like(x)
        p = Params(n=x.shape[0], scale=factor * 2, step=1, on=x.shape[0] > 2)
        p.y, p.x = y.data_ptr(), x.data_ptr()
        kernels["structured"].launch(p, grid=1, block=64)
        return y, cl.empty((x.shape[0], 2), "int8")

    return {one.__name__: one for one in (scale, copies, fill_in_place, structured)}


f4 = cl.Array("float32", "n")


def known_in_part(module):
    """Return functions with unknown paths or calls, or that the driver refuses."""

    @cl.function
    def twice(y, z, block: int, shared: int):
        module["fill<float>"][1, 32](y, 1.0, y.shape[0])
        module["fill<float>"].launch(z, 2.0, z.shape[0], grid=1, block=block, shared_memory=shared)
        module["fill<float>"].launch(z, 2.0, 1, grid=1, block=32, cooperative=True)

    @cl.function
    def options(x, half: float):
        n = x.shape[0]
        y = cl.zeros(64, "int32")
        module["shared"].launch(y, grid=1, block=64, shared_memory=256)
        row = cl.empty(8, "float64")
        attribute = cl.ceildiv(x.device.attribute("warp_size"), 8)
        module["note"][1, 1](row, n, attribute, x.device.ordinal, half, 2.5, n % 7, n > 3)
        return y, row

    of_maps = cl.load(cl.compile(MAPPED, arch="compute_80"))

    @cl.function
    def mapped(x, rows: int):
        tensor_map = cl.arguments.TensorMap.tiled(x, (rows, 64), swizzle="128B")
        own = of_maps["mapped"].configure(
            grid=2, block=32, cluster=2, cooperative=True, programmatic=True, priority=-1
        )
        own(tensor_map, None, x, 3)

    def two(of):
        def body(x, y):
            cl.check(x.shape[0] > 2, "x is too short")
            target = cl.empty_like(x) if of == "new" else x
            target = target[1:] if of == "view" else target
            module["fill<int>"][1, 32](y, 7, y.shape[0])
            of_maps["into"][1, 32](cl.arguments.TensorMap.tiled(target, (2, 64)), y, 3)

        body.__name__ = f"two_of_{of}"
        return cl.function(body)

    in_part = made(module)["scale"].__wrapped__
    in_part.__name__ = "scale_in_part"
    every = (twice, options, mapped, cl.function(in_part), *map(two, ("argument", "view", "new")))
    return {one.__name__: one for one in every}


MAPPED = """
struct alignas(64) Map { unsigned long long opaque[16]; };
extern "C" __global__ void mapped(Map map, unsigned short* h, float* y, int n) {}
extern "C" __global__ void into(Map map, int* y, int n) {}
"""


@pytest.fixture(scope="module")
def functions(module):
    found = made(module)
    found["scale"].specialize()
    found["copies"].specialize(xs=[f4, cl.Array("float32", "m")], times=int)
    found["copies"].specialize(xs=[f4], times=int)
    found["structured"].specialize(x=f4, factor=float)
    found["fill_in_place"].specialize(y=cl.Array("int32", "n"), value=int)
    found["fill_in_place"].specialize(y=cl.Array("int32", "n"), value=int, mode="once", when=int)
    with use_driver("emulator"):
        found |= known_in_part(module)
        found["twice"](np.zeros(4, np.float32), np.zeros(4, np.float32), 32, 0)
        found["scale_in_part"](np.arange(10, dtype=np.float32), 2.0)
    found["mapped"].specialize(x=cl.Array("float32", "a b"), rows=int)
    found["options"].specialize(x=f4, half=float)
    for of in ("argument", "view", "new"):
        found[f"two_of_{of}"].specialize(x=cl.Array("float32", "a b"), y=cl.Array("int32", "n"))
    return found


@pytest.fixture(scope="module")
def library(functions, tmp_path_factory):
    """All of them in one library: a C++ compiler takes longer than all of these tests."""
    path = tmp_path_factory.mktemp("exported") / "libexported.so"
    cl.ship.export(list(functions.values()), path, flags=["-O0", "-Wall", "-Wextra", "-Werror"])
    return tvm_ffi.load_module(str(path))


@pytest.fixture(autouse=True)
def errors(emulated):
    """Python's errors that TVM-FFI does not know by itself."""
    from tvm_ffi.error import register_error

    for kind in (OverflowError, ZeroDivisionError, NotImplementedError):
        register_error(kind.__name__, kind)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("n", [0, 1, 31, 100, 640])
def test_torch_tensors(functions, library, n, dtype):
    torch = pytest.importorskip("torch")
    x = torch.linspace(-3, 5, n).to(getattr(torch, dtype))
    y = library.scale(x, 1.25)
    assert type(y) is torch.Tensor
    assert torch.equal(y, functions["scale"](x, 1.25))
    assert torch.equal(library.scale(x), functions["scale"](x))
    assert torch.equal(library.scale(x, 3), functions["scale"](x, 3))  # declared a float


def test_arrays_without_an_allocator(library):
    x = np.arange(100, dtype=np.float32)
    assert np.array_equal(np.from_dlpack(library.scale(x, 0.5)), x * np.float32(0.5))
    y = np.zeros(100, np.float32)
    assert library.scale_into(y, x, 3.0) is None
    assert np.array_equal(y, x * 3)
    own = cl.to_device(x)
    made = library.scale(own, 2.0)
    assert type(made) is cl.DeviceArray
    assert np.array_equal(made.numpy(), x * 2)


def test_errors_are_those_of_the_function(functions, library):
    x = np.arange(10, dtype=np.float32)

    def same(call):
        errors = []
        for function in (functions["scale"], library.scale):
            with pytest.raises((ValueError, OverflowError)) as raised:
                call(function)
            errors.append(raised.value)
        direct, exported = errors
        assert type(exported) is type(direct)
        return str(direct), str(exported)

    direct, exported = same(lambda f: f(x[::2], 2.0))
    assert direct.startswith("x must be contiguous (got 5 elements)")
    assert exported == direct.replace(__file__, "test_export.py")
    direct, exported = same(lambda f: f(x, 1e300))
    assert "a float of 32 bits cannot hold a number this large (got 1e+300)" in exported
    assert re.match(r"at test_export\.py:\d+: a float", exported)


def test_what_was_not_exported_is_named(library, module, tmp_path):
    x = np.arange(10, dtype=np.float32)
    kinds = r"(?s)scale\(int8\[_\], float\) was not .*scale\(x: float32\[_\], factor: float\)"
    with pytest.raises(TypeError, match=kinds):
        library.scale(x.astype("i1"), 1.0)
    for call in (
        lambda: library.scale(),
        lambda: library.scale(x, 1.0, 2),
        lambda: library.scale([x], 1.0),
        lambda: library.scale("x", None),
        lambda: library.scale(x.reshape(2, 5), True),
        lambda: library.fill_in_place(x.astype("i4"), 1, "thrice"),
    ):
        with pytest.raises(TypeError, match="was not exported"):
            call()
    y = np.zeros(3, np.float32)
    for output, text in (
        (y, r"output 0 of scale must have the shape \(10,\) \(got \(3,\)\)"),
        (np.zeros(20, np.float32)[::2], "output 0 of scale must be contiguous"),
    ):
        with pytest.raises(ValueError, match=text):
            library.scale_into(output, x, 1.0)
    with pytest.raises(TypeError, match="element type of output 0 of scale must be float32"):
        library.scale_into(np.zeros(10), x, 1.0)
    with pytest.raises(TypeError, match="takes its 1 output"):
        library.scale_into()


def test_a_path_that_was_not_traced(library):
    x = np.arange(10, dtype=np.float32)
    assert np.array_equal(np.from_dlpack(library.scale_in_part(x, 2.0)), x * 2)
    with pytest.raises(
        NotImplementedError,
        match=r"scale_in_part was exported without the path that this call takes: at "
        r"test_export.py:\d+, "
        "where .* is false",
    ):
        library.scale_in_part(x[:9], 2.0)


def test_what_the_driver_would_refuse_is_known_before(library):
    y, z = np.zeros(4, np.float32), np.zeros(4, np.float32)
    for wrong, message in (((32, 200_000), "dynamic shared memory"), ((1025, 0), "1025")):
        with pytest.raises((ValueError, RuntimeError), match=message):
            library.twice(y, z, *wrong)
    assert y.tolist() == [0] * 4
    library.twice(y, z, 64, 1024)
    assert (y.tolist(), z.tolist()) == ([1] * 4, [2] * 4)


def test_lists_views_and_several_results(functions, library):
    a, b = np.arange(5, dtype=np.float32), np.arange(12, dtype=np.float32)[::3]
    for xs, times in (([a, b], 3), ((a,), 1)):
        direct = functions["copies"](list(xs), times)
        row, numbers, end = library.copies(list(xs), times)
        assert np.array_equal(np.from_dlpack(row), np.concatenate(xs))
        assert np.array_equal(np.from_dlpack(row), np.asarray(direct[0]))
        assert {key: numbers[key] for key in direct[1]} == direct[1]
        assert str(end) == "end"
    assert not hasattr(library, "copies_into")


def test_in_place(functions, library):
    for n, rest in ((0, ()), (100, ()), (100, ("once", 5)), (4, ("once", 5))):
        y, expected = np.zeros(n, np.int32), np.zeros(n, np.int32)
        functions["fill_in_place"](expected, 21, *rest)
        assert library.fill_in_place(y, 21, *rest) is None
        assert np.array_equal(y, expected)
    with pytest.raises(OverflowError, match=r"test_export.py:\d+: \* of 9223372036854775807 and 2"):
        library.fill_in_place(np.zeros(4, np.int32), 2**63 - 1)


def test_structures_and_two_outputs(library):
    for n in (2, 60):
        whole = np.arange(n, dtype=np.float32)
        x = cl.to_device(whole)
        y, other = library.structured(x, 1.5)
        expected = (whole * 3 * (n > 2)).tolist()
        assert np.from_dlpack(y).tolist() == expected
        assert other.shape == (n, 2)
        given, second = cl.to_device(whole), cl.empty((n, 2), "int8")
        library.structured_into(given, second, x, 1.5)
        assert given.numpy().tolist() == expected


def test_every_option_of_a_launch_compiles(functions, library):
    text = functions["mapped"].source()
    assert "call.TensorMap({7, 0, 3, 0, 0}, ffi::Data(x), {x.size(0), " in text
    assert "config.cluster = fn::Dims(2);" in text
    x = cl.to_device(np.zeros(12, np.float32))
    for one, direct in zip(library.options(x, 0.5), functions["options"](x, 0.5), strict=True):
        assert np.from_dlpack(one).tolist() == direct.numpy().tolist()


@pytest.mark.parametrize("of", ["argument", "view", "new"])
def test_a_tensor_map_that_cannot_be_is_known_before(of, functions, library):
    """The emulator takes none: nothing is launched half."""
    name = f"two_of_{of}"
    y = np.zeros(4, np.int32)
    for call in (getattr(library, name), functions[name]):
        x = np.zeros((8, 64), np.float32)
        with pytest.raises((RuntimeError, cl.CulaunchError), match="encoding a tensor map"):
            call(*map(tvm_ffi.from_dlpack, (x, y)))
    assert y.tolist() == [0] * 4


def test_the_source_is_readable(functions):
    text = functions["scale"].source("c++")
    assert "const int64_t n = x.size(0);" in text
    assert "const int64_t blocks = fn::CeilDivide(n, 64, " in text
    assert re.search(r"// test_export.py:\d+: blocks = cl.ceildiv\(n, block\)", text)
    assert "const fn::Array y = call.Allocate(ffi::kFloat32, {n}, 0, " in text
    assert max(map(len, text.splitlines())) <= 160
    assert functions["scale"].source() == text
    with pytest.raises(ValueError, match=r'language must be "c\+\+" \(got \'rust\'\)'):
        functions["scale"].source("rust")


def test_what_cannot_be_exported_is_named(module, tmp_path):
    path = tmp_path / "libnone.so"
    x = np.ones(4, np.float32)

    def refused(body, text, *args):
        function = cl.function(body)
        function(*args)
        with pytest.raises(TypeError, match=f"{body.__name__} cannot be exported: {text}"):
            cl.ship.export(function, path)

    def same_back(x):
        return x

    def view_back(x):
        return x[1:]

    def by_tuple(x, sizes):
        return cl.empty((sizes[0],), x.dtype)

    def lengths(x, a):
        import math

        return math.hypot(a, 1.0)

    def closed_over(x):
        y = cl.empty_like(x)
        module["copy"][1, 64](y, known, 1, 1, 4)
        return y

    known = np.ones(4, np.float32)
    refused(same_back, "it returns one of its arguments", x)
    refused(view_back, "it returns a view of one of its arguments", x)
    refused(by_tuple, r"its argument sizes is \(2, 3\), which TVM-FFI cannot represent", x, (2, 3))
    refused(lengths, "math.hypot is computed by Python itself", x, 3.0)
    refused(closed_over, "it closes over an array", x)
    assert not path.exists()

    @cl.function
    def never(x):
        return x.size

    with pytest.raises(ValueError, match="never was neither called nor specialized"):
        cl.ship.export(never, path)
    never(x)
    with pytest.raises(ValueError, match="two exports would be named never"):
        cl.ship.export([never, never], path)
    with pytest.raises(TypeError, match=r"functions must contain functions of culaunch \(got 3\)"):
        cl.ship.export([3], path)
    with pytest.raises(ValueError, match="functions must contain at least one function"):
        cl.ship.export([], path)


@pytest.mark.parametrize(
    ("file", "namespace"),
    [("lib.so", "library_"), ("9 lives.so", "library_9_lives"), ("lib__.so", "library___"),
     ("libmy.1.so", "my")],
)  # fmt: skip
def test_a_library_may_have_any_file_name(tmp_path, file, namespace):
    @cl.function
    def doubled(n: int):
        return 2 * n

    doubled.specialize(n=int)
    cl.ship.export(doubled, tmp_path / file, header=tmp_path / "of.h", flags=["-O0"])
    assert {one.name for one in tmp_path.iterdir()} == {file, "of.h"}
    assert f"\nnamespace {namespace} {{" in (tmp_path / "of.h").read_text()
    assert tvm_ffi.load_module(str(tmp_path / file)).doubled(21) == 42


def test_the_command_for_a_missing_tvm_ffi_is_said_before_anything_is_written(
    functions, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "tvm_ffi", None)
    with pytest.raises(cl.MissingDependencyError, match=r"export needs apache-tvm-ffi: python -m"):
        cl.ship.export(functions["scale"], tmp_path / "libnone.so")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs("jax", "jax_tvm_ffi")
def test_a_target_of_jax(library):
    """By jax-tvm-ffi, on XLA's CPU client: XLA allocates the result, which comes first."""
    jax = pytest.importorskip("jax")
    bridge = pytest.importorskip("jax_tvm_ffi")
    words = ["rets", "args", "attrs.factor"]
    bridge.register_ffi_target("exported_scale", library.scale_into, words, platform="cpu")

    @jax.jit
    def program(x):
        result = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.ffi.ffi_call("exported_scale", result)(x + 1, factor=2.5) * 2

    x = jax.numpy.arange(100, dtype="float32")
    assert program(x).tolist() == ((x + 1) * 5).tolist()
