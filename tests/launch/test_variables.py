"""Variables of a module, by every name that a kernel would be found by."""

import contextlib
import ctypes

import numpy as np
import pytest

import culaunch as cl

SOURCE = """
namespace n { __constant__ float c[4]; __device__ int v = 3; namespace m { __device__ int d; } }
template <class T> __device__ T of_type = T(1);
__device__ int plain;
static __device__ int own;
extern "C" { __device__ int c_name; }
__managed__ int managed;
extern "C" __global__ void k(int* x, const char** text) {
  static int inside;
  *x = n::v + n::c[0] + plain + own + c_name + of_type<float> + managed + n::m::d + inside++;
  *text = "a string of its own";
}
"""
NAMES = {
    "_ZN1n1cE", "_ZN1n1vE", "_ZN1n1m1dE", "_Z7of_typeIfE", "plain", "c_name", "managed",
}  # fmt: skip
ARCHS = ["compute_80", "sm_80", ["sm_80", "sm_90"], ["compute_80", "sm_90"]]
EXPRESSIONS = ("&n::c", "&of_type<float>")


@pytest.mark.parametrize("arch", ARCHS, ids=str)
@pytest.mark.parametrize("relocatable", [False, True])
def test_the_variables_of_an_image(arch, relocatable):
    image = cl.compile(SOURCE, arch=arch, names=EXPRESSIONS, relocatable=relocatable)
    # A static variable's name is made longer if another file could have the same.
    names = [variable.name for variable in image.variables]
    own = {name for name in names if "own" in name or "inside" in name}
    assert set(names) - own == NAMES
    known = {one.demangled: (one.size, one.constant) for one in image.variables}
    assert known["n::c"] == (16, True)
    assert known["n::v"] == (4, False)
    assert len(names) == len(set(names))
    assert len(own) == 2


def test_an_image_that_is_damaged_is_an_error_and_no_crash():
    image = cl.compile(SOURCE, arch="sm_80", names=EXPRESSIONS)
    for position in range(64, len(image.data), 97):
        damaged = bytearray(image.data)
        damaged[position] ^= 0x55
        with contextlib.suppress(cl.ImageError):
            assert cl.Image(bytes(damaged)).variables is not None


def test_a_variable_has_the_names_that_a_kernel_has(culaunch_driver):
    module = cl.load(cl.compile(SOURCE, names=EXPRESSIONS))
    for names, size in (
        (("_ZN1n1cE", "&n::c", "n::c", "::n::c", " n :: c ", "& n::c"), 16),
        (("_ZN1n1vE", "n::v", "&n::v"), 4),
        (("n::m::d", "&n::m::d"), 4),
        (("_Z7of_typeIfE", "&of_type<float>", "of_type<float>", "of_type< float >"), 4),
        (("plain", "&plain", "::plain"), 4),
        (("c_name",), 4),
    ):
        found = {module.get_global(name) for name in names}
        assert len(found) == 1
        assert found.pop().size == size


def test_what_is_written_there_is_what_the_kernel_reads(culaunch_driver):
    source = """
        namespace n { __device__ int v = 3; }
        extern "C" __global__ void k(int* x) { *x = n::v; }
        extern "C" __global__ void w(int* p) { *p = 7; }
    """
    module = cl.load(cl.compile(source))
    x = cl.to_device(np.zeros(1, np.int32))
    module["k"][1, 1](x)
    assert x.numpy()[0] == 3
    module["w"][1, 1](module.get_global("n::v").address)
    module["k"][1, 1](x)
    assert x.numpy()[0] == 7


def test_a_name_that_is_none_lists_what_there_is(culaunch_driver):
    module = cl.load(cl.compile(SOURCE, names=EXPRESSIONS))
    with pytest.raises(cl.KernelNotFoundError) as info:
        module.get_global("n::missing")
    text = str(info.value)
    assert text.startswith("the module has no variable 'n::missing'; it has\n  ")
    assert "\n  n::c  (_ZN1n1cE)" in text
    assert "\n  plain\n" in text + "\n"
    empty = cl.load(cl.compile("__global__ void k() {}"))
    with pytest.raises(cl.KernelNotFoundError, match="'v'; it has no variables at all"):
        empty.get_global("v")
    with pytest.raises(TypeError, match="name must be a str, the name of a variable"):
        module.get_global(3)


def test_a_template_without_its_arguments_lists_the_instances(culaunch_driver):
    source = "namespace ns { template <class T> __global__ void sc(T* x) {} }"
    for names in (["ns::sc<float>"], ["ns::sc<float>", "ns::sc<int>"]):
        module = cl.load(cl.compile(source, names=names))
        with pytest.raises(cl.KernelNotFoundError, match="'ns::sc' is a template") as info:
            module["ns::sc"]
        assert all(f"void {name}(" in str(info.value) for name in names)
        assert "ns::sc" not in module


def test_after_unload_every_way_to_a_kernel_is_the_same_error(culaunch_driver):
    source = 'extern "C" __global__ void v() {} extern "C" __global__ void w() {}'
    module = cl.load(cl.compile(source))
    module["v"]
    module.unload()
    for way in (
        lambda: module["v"],
        lambda: module["w"],
        lambda: module["nosuch"],
        lambda: module.kernel("v"),
        lambda: "v" in module,
        lambda: "w" in module,
        lambda: 3 in module,
        lambda: list(module),
        lambda: module.kernels,
        lambda: module.get_global("x"),
    ):
        with pytest.raises(ValueError, match="the module was unloaded: load it again"):
            way()


# ---- what is in a variable

TABLES = """
namespace ns {
__constant__ float table[4] = {1, 2, 4, 8};
__device__ double values[3];
__device__ char bytes[5];
}
struct Pair { int count; double scale; };
__constant__ Pair pair;
extern "C" __global__ void sum(float* out) {
  for (int i = 0; i < 4; ++i) out[i] = ns::table[i] + (float)ns::values[0];
}
extern "C" __global__ void scale(double* out) { *out = pair.count * pair.scale + ns::bytes[0]; }
extern "C" __global__ void copy(float* to, const float* from) {
  to[threadIdx.x] = from[threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def tables_image():
    return cl.compile(TABLES, arch="compute_80")


@pytest.fixture
def tables(tables_image, culaunch_driver):
    with cl.load(tables_image) as module:
        yield module


def test_a_variable_is_read_and_written(tables):
    table, values = tables.get_global("ns::table"), tables.get_global("ns::values")
    assert table.read("f4").tolist() == [1, 2, 4, 8]
    assert table.read().dtype == np.uint8
    table.write(np.array([3, 5, 7, 9], "f4"))
    values.write(np.array([0.5, 0.25, 0.125]))
    out = cl.zeros(4)
    tables["sum"][1, 1](out)
    assert out.numpy().tolist() == [3.5, 5.5, 7.5, 9.5]
    values.fill()
    assert values.read(float).tolist() == [0, 0, 0]
    values.fill(255)
    assert set(values.read().tolist()) == {255}
    table.as_array(dtype="f4").fill(2.5)
    assert table.read("f4").tolist() == [2.5] * 4
    table.as_array(dtype="f4")[1:3].copy_from(np.array([6, 7], "f4"))
    assert table.as_array((2, 2), "f4").numpy().tolist() == [[2.5, 6], [7, 2.5]]


def test_a_structure_is_written(tables):
    class Pair(ctypes.Structure):
        _fields_ = (("count", ctypes.c_int), ("scale", ctypes.c_double))

    out = cl.zeros(1, "f8")
    pair = tables.get_global("pair")
    dtype = np.dtype([("count", "i4"), ("scale", "f8")], align=True)
    for value in (Pair(3, 0.5), np.array([(3, 0.5)], dtype), np.array((3, 0.5), dtype)[()]):
        pair.fill()
        pair.write(value)
        assert pair.read(dtype)[0]["count"] == 3
        tables["scale"][1, 1](out)
        assert out.numpy()[0] == 1.5


def test_a_variable_is_an_argument(tables):
    table, out = tables.get_global("ns::table"), cl.zeros(4)
    tables["copy"][1, 4](out, table)
    assert out.numpy().tolist() == [1, 2, 4, 8]
    tables["copy"][1, 4](tables.get_global("ns::values"), out)
    assert tables.get_global("ns::values").read("f4")[:4].tolist() == [1, 2, 4, 8]
    tables.kernel("copy", signature="void*, const void*")[1, 4](out, table)


def test_a_variable_takes_and_gives_arrays_of_devices(tables):
    table = tables.get_global("ns::table")
    table.write(cl.to_device(np.array([1, 2, 3, 4], "i4")))
    assert table.read("i4").tolist() == [1, 2, 3, 4]
    torch = pytest.importorskip("torch")
    over = torch.from_dlpack(table.as_array((2, 2), "i4"))
    over += 1
    cl.synchronize()
    assert table.read("i4").tolist() == [2, 3, 4, 5]


def test_the_variables_of_a_module(tables):
    found = {one.name: one.size for one in tables.variables}
    assert found == {"_ZN2ns5tableE": 16, "_ZN2ns6valuesE": 24, "_ZN2ns5bytesE": 5, "pair": 16}


def test_what_a_variable_does_not_take(tables):
    table, five = tables.get_global("ns::table"), tables.get_global("ns::bytes")
    with pytest.raises(ValueError, match=r"value must have the variable's 16 bytes \(got 32"):
        table.write(np.zeros(4))
    with pytest.raises(ValueError, match="value must have the variable's 16 bytes"):
        table.write(cl.zeros(5))
    for value in ([1.0, 2.0], (1, 2), 3, 0.5, True, None):  # the type of these 16 bytes is unknown
        with pytest.raises(TypeError, match=r"typed value, .*numpy\.array\(value, dtype\)"):
            table.write(value)
    with pytest.raises(TypeError, match="value must contain numbers"):
        table.write(np.array([None, None]))
    with pytest.raises(
        ValueError, match="dtype must have a size that divides the variable's 5 bytes"
    ):
        five.read("f4")
    with pytest.raises(ValueError, match=r"shape must give 16 bytes for float32, .* .got 3"):
        table.as_array(3, "f4")
    for value in (-1, 256, 1.5, True, None):
        with pytest.raises(ValueError, match="value must be a byte"):
            table.fill(value)
    with pytest.raises(BufferError, match="as_array"):
        np.from_dlpack(table)


def test_a_variable_of_a_device_that_is_not_there(tables):
    with pytest.raises(ValueError, match="there is no device 100: this machine has"):
        tables.get_global("ns::table", device=100)


def test_a_variable_of_a_module_that_was_unloaded(tables_image, culaunch_driver):
    module = cl.load(tables_image)
    table, copy = module.get_global("ns::table"), module["copy"][1, 4]
    module.unload()
    for call in (table.read, table.fill, table.as_array, lambda: table.write(b"16 bytes of these")):
        with pytest.raises(ValueError, match="unloaded"):
            call()
    with pytest.raises(ValueError, match="unloaded"):
        copy(table, table)
