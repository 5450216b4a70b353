"""How other libraries spell a launch: each message has the spelling that is right here."""

import ctypes
import re

import numpy as np
import pytest

import culaunch as cl
from culaunch._base.other_words import DONE_BY_OTHERS, OTHER_WORDS

SOURCE = """
extern "C" __global__ void add(float* z, const float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = a + x[i];
}
struct Four { float a[4]; };
extern "C" __global__ void take(float* z, Four v) { *z = v.a[1]; }
extern "C" __global__ void scalars(double* z, int n, double a, float2 p) { *z = n * a + p.x; }
"""


@pytest.fixture
def module(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    return cl.load(cl.compile(SOURCE))


def test_cupy_calls_a_kernel_with_its_grid_and_block(module):
    x = cl.zeros(4)
    with pytest.raises(TypeError, match=r"launch it with add\[4, 256\]\(\.\.\.\), with the arg"):
        module["add"]((4,), (256,), (x, x, 2.0, 4))
    with pytest.raises(TypeError, match=r"add\[\(4, 2\), \(16, 16\)\]"):
        module["add"]((4, 2), (16, 16), (x, x, 2.0, 4))
    for call in ((), (x, x, 2.0, 4)):
        with pytest.raises(TypeError, match=r"launch it with add\[grid, block\]\(\.\.\.\), or"):
            module["add"](*call)


@pytest.mark.parametrize(
    ("keyword", "said"),
    [
        ("shared_mem", "has no keyword 'shared_mem': did you mean 'shared_memory'?"),
        ("smem", "did you mean 'shared_memory'?"),
        ("threads", "did you mean 'block'?"),
        ("cooperativ", "did you mean 'cooperative'?"),
        ("args", "has no keyword 'args': give the arguments themselves, by position"),
        ("xyz", "has no keyword 'xyz': its keywords are grid, block, shared_memory,"),
    ],
)
def test_keywords_of_other_libraries(module, keyword, said):
    for call in (module["add"].launch, module["add"].configure):
        with pytest.raises(TypeError) as caught:
            call(grid=1, block=1, **{keyword: 1})
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("keyword", "meant"),
    [("options", "extra_options"), ("fastmath", "fast_math"), ("include_path", "include_dirs"),
     ("name_expressions", "names"), ("archs", "arch"), ("headerss", "headers")],
)  # fmt: skip
def test_keywords_of_other_compilers(keyword, meant):
    with pytest.raises(TypeError) as caught:
        cl.compile("int x;", **{keyword: ()})
    assert str(caught.value) == f"compile has no keyword {keyword!r}: did you mean {meant!r}?"


def test_a_grid_and_a_block_that_look_like_each_other_s(module):
    x = cl.zeros(4)
    with pytest.raises(cl.LaunchError, match="the grid comes first, then the block"):
        module["add"][256, 4096](x, x, 2.0, 4)
    for grid in (4, 4096):
        with pytest.raises(cl.LaunchError) as caught:
            module["add"][grid, 2048](x, x, 2.0, 4)
        assert "the grid comes first" not in str(caught.value)


def test_source_is_compiled_before_it_is_loaded(module, tmp_path):
    path = tmp_path / "a.cu"
    path.write_text(SOURCE)
    for source in (str(path), path, SOURCE, "__global__ void k() {}"):
        with pytest.raises(cl.ImageError, match=r"compile it first, as in culaunch\.load\(cul"):
            cl.load(source)
    with pytest.raises(FileNotFoundError):
        cl.load(tmp_path / "missing.cu")
    with pytest.raises(TypeError, match=r"for a path or bytes, call culaunch\.load"):
        cl.Module("x.cubin")


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda module: module["ad"], "'add'"),
        (lambda module: module["Take"], "'take'"),
        (
            lambda module: cl.driver.Device(0).attribute("multiprocesor_count"),
            "'multiprocessor_count'",
        ),
        (lambda module: cl.compile("int x;", backend="nvc"), "'nvcc'"),
        (lambda module: cl.driver.set_driver("emulater"), "'emulator'"),
        (lambda module: cl.driver.set_driver("gpu"), "'cuda'"),
    ],
)
def test_a_name_that_was_nearly_right(module, call, meant):
    with pytest.raises((ValueError, cl.KernelNotFoundError)) as caught:
        call(module)
    assert f"did you mean {meant}?" in str(caught.value)


def test_an_array_by_value_is_a_structure(module):
    z, array = cl.zeros(1), np.array([1, 2, 3, 4], "f4")
    with pytest.raises(TypeError, match=r"pass its 16 bytes as one structure, array\.reshape"):
        module["take"][1, 1](z, array)
    for value in (array.reshape(-1).view("V16")[0], (ctypes.c_float * 4)(*array)):
        module["take"][1, 1](z, value)
        assert z.numpy()[0] == 2


def test_arrays_without_dimensions_are_scalars_once_they_are_unpacked(module):
    z = cl.zeros(1, "f8")
    n, a = np.array(3, "i4"), np.array(0.5)
    pair = np.array((7, 8), [("x", "f4"), ("y", "f4")])
    for values in ((n, a, pair), (n[()], a, pair), (n[()], a[()], pair)):
        with pytest.raises(TypeError, match=r"pass array\[\(\)\]"):
            module["scalars"][1, 1](z, *values)
    module["scalars"][1, 1](z, n[()], a[()], pair[()])
    assert z.numpy()[0] == 8.5


def test_a_pointer_of_cuda_python_is_given_as_an_int(module):
    driver = pytest.importorskip("cuda.bindings.driver")
    x, z = cl.to_device(np.ones(4, "f4")), cl.zeros(4)
    pointer = driver.CUdeviceptr(z.address)
    with pytest.raises(TypeError, match=r"pass int\(cudeviceptr\)"):
        module["add"][1, 4](pointer, x, 1.0, 4)
    module["add"][1, 4](int(pointer), x, 1.0, 4)
    assert (z.numpy() == 2).all()


def owners(module):
    """Return something of each kind that knows other words."""
    stream = cl.Stream()
    return {
        "culaunch": cl,
        "Module": module,
        "Kernel": module["add"],
        "DeviceArray": cl.zeros(4),
        "Stream": stream,
        "Event": stream.record(),
    }


def test_names_of_other_libraries(module):
    for owner, one in owners(module).items():
        for name, meant in OTHER_WORDS[owner].items():
            assert not hasattr(one, name)
            with pytest.raises(AttributeError) as caught:
                getattr(one, name)
            said = meant if meant.startswith("not needed") else f"use {meant}"
            assert str(caught.value).endswith(f" has no attribute {name!r}: {said}")
            assert name not in (*dir(one), *dir(type(one)))


def test_a_property_without_a_value_keeps_its_message(module):
    with pytest.raises(AttributeError, match="an array in the memory of an emulated device"):
        _ = cl.zeros(4).__cuda_array_interface__
    with pytest.raises(AttributeError, match="'Kernel' object has no attribute 'lunch'"):
        module["add"].lunch()
    assert not hasattr(module, "__dlpack__")


def test_what_they_are_told_is_there(module):
    """Suggested names exist in this library."""
    there = owners(module)
    there |= {name.lower(): one for name, one in there.items()}
    there |= {"array": there["DeviceArray"], "end": there["Event"], "start": there["Event"]}
    looked_up = 0
    for words in OTHER_WORDS.values():
        for meant in words.values():
            for owner, path in re.findall(rf"\b({'|'.join(there)})\.([a-zA-Z_.]+)", meant):
                value = there[owner]
                for name in path.split("."):
                    value = getattr(value, name)
                looked_up += 1
    assert looked_up > 60


def test_a_kernel_is_not_told_things_by_attributes(module):
    kernel = module["add"]
    for name, said in (
        ("max_dynamic_shared_size_bytes", "not needed: each launch opts in automatically"),
        ("anything", "a Kernel has no attribute 'anything' to set"),
    ):
        with pytest.raises(AttributeError, match=re.escape(said)):
            setattr(kernel, name, 1)
    assert vars(kernel).keys() == {"module", "signature"}


def test_numba_has_the_stream_before_the_shared_memory(module):
    stream = cl.Stream()
    for configuration in ((1, 4, stream), (1, 4, stream, 0)):
        with pytest.raises(
            TypeError, match=r"the stream comes after it, as in \[grid, block, 0, s"
        ):
            module["add"][configuration]
    for wrong in ("16", None, 2.5, 1 << 40):
        with pytest.raises((TypeError, OverflowError)) as caught:
            module["add"][1, 4, wrong]
        assert "stream" not in str(caught.value)


def test_a_compute_capability_is_not_an_architecture():
    for arch, meant in (((9, 0), "sm_90"), ([12, 1], "sm_121"), (9.0, "sm_90"), (90, "sm_90")):
        with pytest.raises(TypeError, match=f"did you mean '{meant}'"):
            cl.compile("int x;", arch=arch)


def test_source_is_no_path(module):
    for verb in (cl.inspect, cl.Image.open, lambda source: cl.link([source], arch="sm_80")):
        with pytest.raises(cl.ImageError, match=r"got CUDA source.: compile it"):
            verb(SOURCE)


def test_a_tensor_map_is_made_by_its_method(module):
    with pytest.raises(
        TypeError,
        match=r"make a TensorMap with TensorMap\.tiled\(array, box\), not from fields \(got",
    ):
        cl.arguments.TensorMap(cl.zeros(4))
    assert bytes(cl.arguments.TensorMap()) == bytes(128)


@pytest.mark.needs("tvm_ffi", "g++")
def test_an_argument_of_load_inline_that_is_nearly_right():
    with pytest.raises(TypeError, match="has no argument function: did you mean 'functions'"):
        cl.cpp.load_inline("a", "int f() { return 1; }", function="f")


def test_names_that_frameworks_have(module):
    for owner, value in (("culaunch", cl), ("DeviceArray", cl.zeros(4))):
        for name, advice in DONE_BY_OTHERS[owner].items():
            assert name not in dir(value)
            with pytest.raises(AttributeError) as caught:
                getattr(value, name)
            assert str(caught.value).endswith(f" has no attribute {name!r}: {advice}")
