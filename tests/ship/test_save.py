"""Functions saved to a library and loaded from it: the same calls, the same errors."""

import copy
import ctypes
import enum
import inspect
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from bodies import shape_only
from library_parts import parts_of
from runs import run_command

import culaunch as cl

pytestmark = pytest.mark.usefixtures("emulated")

x5 = np.arange(5, dtype=np.float32)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "mylib.culib"


def reloaded(path, *functions, **options):
    cl.ship.save(functions, path, **options)
    return cl.ship.load_library(path)


def test_a_function_there_and_back(scale, path):
    scale.specialize()
    lib = reloaded(path, scale)
    for x in (x5, np.arange(8.0), x5[:0], np.zeros((0,))):
        for factor in (2.0, 3, np.float32(1.5)):
            y = lib.scale(x, factor)
            assert y.dtype == x.dtype
            assert y.tolist() == scale(x, factor).tolist()
    assert lib["scale"](x=x5, factor=1.0).tolist() == x5.tolist()
    with pytest.raises(ValueError, match=r"x must be contiguous \(scale, at conftest\.py:\d+\)"):
        lib.scale(np.arange(8.0)[::2], 2.0)
    with pytest.raises(TypeError, match=r"scale\(\) missing 1 required positional argument"):
        lib.scale(x5)
    with pytest.raises(OverflowError, match=r"at conftest\.py:\d+: a float of 32 bits"):
        lib.scale(x5, 1e300)
    with pytest.raises(OverflowError, match="argument factor must fit 64 bits"):
        lib.scale(x5, 10**200)


def test_kinds_that_are_not_there(scale, path):
    scale.specialize(x=cl.Array("float32", "n"))
    lib = reloaded(path, scale)
    with pytest.raises(TypeError) as caught:
        lib.scale(np.zeros(3), 2.0)
    assert "has no program for (x: float64[_], factor: float, twice: False)" in str(caught.value)
    assert "\n    x: float32[_], factor: float, twice: False\n" in str(caught.value)
    for wrong in ((x5[None], 2.0), (x5, 2.0, True), (None, 1.0), (x5, None), (x5, "2")):
        with pytest.raises(TypeError, match=r"has no program for|must not be None"):
            lib.scale(*wrong)
    with pytest.raises(TypeError, match="x"):
        lib.scale(object(), 1.0)


def test_a_branch_that_is_not_there(scale, path):
    scale(np.zeros(8, np.float32), 2.0)
    lib = reloaded(path, scale)
    assert lib.scale(np.ones(16, np.float32), 2.0).tolist() == [2.0] * 16
    for x, condition in ((x5, r"\(x\.shape\[0\] % 4\) == 0"), (x5[:0], r"x\.shape\[0\] == 0")):
        with pytest.raises(ValueError, match="only one side of the branch at") as caught:
            lib.scale(x, 2.0)
        caught.match(rf"the branch at conftest\.py:\d+ .*`{condition}` is (True|False)")
        caught.match(rf"x: shape \({len(x)},\), factor: 2\.0")
    with pytest.raises(ValueError, match="only one side of the branch at"):
        lib.scale.abstract(shape_only((7,), "float32"), 2.0)


def test_what_a_library_says_of_its_functions(scale, path):
    scale.specialize()
    lib = reloaded(path, scale)
    assert repr(lib) == f"<culaunch.ship.Library {path}: scale>"
    assert list(lib) == [lib.scale]
    assert (len(lib), "scale" in lib, "x" in lib) == (1, True, False)
    assert "scale" in dir(lib)
    assert lib._ipython_key_completions_() == ["scale"]
    assert dict(lib.functions) == {"scale": lib.scale}
    assert lib.scale.__doc__ == scale.__doc__
    assert str(lib.scale) == str(scale)
    assert str(inspect.signature(lib.scale)) == (
        "(x: Array('float32 | float64', 'n'), factor: float, twice: bool = False)"
    )
    assert "x: float64[_], factor: float, twice: False" in str(lib)
    assert lib.scale.kinds[0] == "x: float32[_], factor: float, twice: False"
    assert "if (x.shape[0] % 4) == 0:  # conftest.py:" in lib.scale.explain()
    assert copy.deepcopy(lib.scale) is lib.scale
    assert lib.scale.declaration.annotations["factor"] is float
    with pytest.raises(AttributeError, match=r"has no function 'scal'.*scale"):
        _ = lib.scal
    with pytest.raises(KeyError, match="has no function 'y': it has scale"):
        lib["y"]
    with pytest.raises(TypeError, match="name must be a str"):
        lib[0]


def test_the_same_functions_give_the_same_bytes(scale, path, tmp_path):
    scale.specialize()
    cl.ship.save([scale], path)
    first = path.read_bytes()
    cl.ship.save([scale], path)
    assert path.read_bytes() == first
    assert str(tmp_path).encode() not in first
    assert __file__.rpartition("/")[0].encode() not in first  # no path of this machine
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    manifest, _ = parts_of(path.read_bytes())
    assert manifest["version"] == 4
    assert sum(name.startswith("images/") for name in manifest["members"]) == 1


USE = """
import sys
import culaunch as cl
lib = cl.ship.load_library(sys.argv[1])
repr(lib), str(lib), list(lib), dir(lib)
names = [one for one in ("numpy", "torch", "triton", "cuda") if one in sys.modules]
rooms = ("_compile", "_emulator", "_triton", "_elementwise", "_inline", "_embed")
print(names, [one for one in rooms if f"culaunch.{one}" in sys.modules])
cl.driver.set_driver("emulator")
import numpy
print(lib.scale(numpy.arange(3.0), 2.0).tolist())
print([one for one in ("torch", "triton", "culaunch._compile") if one in sys.modules])
"""


def test_it_loads_without_what_made_it(scale, path, tmp_path):
    scale.specialize()
    cl.ship.save([scale], path)
    run = [sys.executable, "-c", USE, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.split("\n")[:3] == ["[] []", "[0.0, 2.0, 4.0]", "[]"]


class Parts(NamedTuple):
    """The results of a function, by name."""

    doubled: object
    count: int


class Pair(ctypes.Structure):
    _fields_ = (
        ("n", ctypes.c_int),
        ("scale", ctypes.c_float),
        ("y", ctypes.c_void_p),
        ("x", ctypes.c_void_p),
    )


def test_everything_that_a_program_may_have(kernels, path):
    @cl.function
    def doubled(x, mode: str = "a", what=(1, 2.5, None, "t")):
        n = x.shape[0]
        y = cl.empty_like(x)
        kernels["structured"][cl.ceildiv(n, 64), 64](Pair(n, 2.0, y, x))
        return Parts(y, n)

    @cl.function
    def filled(xs, n: int, dtype):
        ones = cl.zeros((n,), "int32", like=xs[0])
        cl.launch_if(n > 0, kernels["fill"][cl.ceildiv(n, 32), 32], ones, 1, n)
        return {"ones": ones, "last": xs[-1], "same": xs[0][1:], 3: (n, n / 2, n > 2, dtype)}

    @cl.function
    def keyed(n: int):
        return {"text": float("inf"), "more": {1: [n, "a", 1j, b"\x00"]}}

    doubled(x5)
    filled([x5, x5], 3, np.dtype("float16"))
    keyed(2)
    lib = reloaded(path, doubled, filled, keyed)
    result = lib.doubled(x5)
    assert type(result).__name__ == "Parts"
    assert (result.doubled.tolist(), result.count) == ((x5 * 2).tolist(), 5)
    assert lib.doubled(x5, "a", (1, 2.5, None, "t")).count == 5
    with pytest.raises(TypeError, match="has no program"):
        lib.doubled(x5, "a", (1.0, 2.5, None, "t"))  # 1.0 is not 1
    pair = [x5, np.ones(2, np.float32)]
    for dtype in (np.dtype("float16"), np.float16):
        made = lib.filled(pair, 4, dtype)
        assert made["ones"].tolist() == [1] * 4
        assert made["last"] is pair[1]
        assert made["same"].tolist() == x5[1:].tolist()
        assert made[3][:3] == (4, 2.0, True)
        assert made[3][3] == "float16"
    assert lib.filled(pair, 0, np.float16)["ones"].size == 0
    assert lib.keyed(7) == {"text": float("inf"), "more": {1: [7, "a", 1j, b"\x00"]}}
    shapes = [shape_only((6,), "float32"), shape_only((9,), "float32")]
    found = lib.filled.abstract(shapes, 3, np.float16)
    assert found["ones"].shape == (3,)
    assert (found["last"].argument, found["same"].base) == ((0, 1), (0, 0))
    assert found["same"].shape == (5,)
    assert found[3][:3] == (3, 1.5, True)


def test_read_only_arrays(kernels, path):
    @cl.function
    def into(y, x):
        n = x.shape[0]
        kernels["scale<float>"][cl.ceildiv(n, 64), 64](y, x, 2.0, n)

    into.specialize(y=cl.Array("float32", "n"), x=cl.Array("float32", "n"))
    assert into.mutates == ("y",)
    lib = reloaded(path, into)
    frozen, y = x5.copy(), np.zeros(5, np.float32)
    frozen.flags.writeable = False
    assert lib.into(y, frozen) is None
    assert y.tolist() == (x5 * 2).tolist()
    assert (lib.into.mutates, lib.into.may_mutate) == (("y",), ())
    with pytest.raises(TypeError, match="argument y must be writable"):
        lib.into(frozen, x5)


def test_gradients(scale, kernels, path):
    @cl.function
    def scale_backward(grad: cl.Array("float32", "n"), factor: float):
        dx = cl.empty_like(grad)
        n = grad.shape[0]
        kernels["scale<float>"][cl.ceildiv(n, 64), 64](dx, grad, factor, n)
        return dx

    scale.backward(scale_backward)
    scale.specialize()
    scale_backward.specialize()
    with pytest.raises(ValueError, match="which must be saved with it"):
        cl.ship.save([scale], path)
    lib = reloaded(path, scale, scale_backward)
    gradient = lib.scale._gradient
    assert gradient.function is lib.scale_backward
    assert gradient.needs == (("grad", 0), ("argument", "factor"))
    dx = gradient.function(*gradient.inputs((x5,), (), (), {"factor": 2.0}))
    assert dx.tolist() == (x5 * 2).tolist()
    assert lib.scale_backward._gradient is None


def test_gradients_with_saved_values(scale, kernels, path):
    @cl.function
    def forward(x: cl.Array("float32 | float64", "n"), factor: float, twice: bool = False):
        return scale(x, factor, twice), scale(x, 10.0)

    @cl.function
    def backward(grad: cl.Array("float32", "n"), saved: cl.Array("float32", "n")):
        return scale(saved, 2.0)

    scale.backward(backward, forward=forward)
    for one in (scale, backward):
        one.specialize()
    forward.specialize(x=cl.Array("float32", "n"))
    with pytest.raises(ValueError, match=r"scale gets its gradients from .* must be saved with it"):
        cl.ship.save([scale, backward], path)
    lib = reloaded(path, scale, backward, forward)
    gradient = lib.scale._gradient
    assert gradient.forward is lib.forward
    _, saved = gradient.forward(x5, 2.0)
    found = gradient.function(*gradient.inputs((x5,), (), (saved,), {}))
    assert found.tolist() == (20 * x5).tolist()


def test_inspect_lists_the_functions(scale, path):
    scale.specialize()
    cl.ship.save([scale], path)
    done = run_command("inspect", str(path))
    assert done.exit_code == 0
    assert done.output == f"{cl.ship.load_library(path)}\n"
    assert "scale(x: Array('float32 | float64', 'n'), factor: float, twice: bool = False)" in (
        done.output
    )
    assert "    y = x * factor.\n    for x: float32[_], factor: float, twice: False" in done.output
    (one,) = json.loads(run_command("inspect", "--json", str(path)).output)["functions"]
    assert (one["name"], one["kind"], one["mutates"]) == ("scale", "function", [])
    assert one["kinds"] == list(cl.ship.load_library(path).scale.kinds)


@pytest.mark.slow
@pytest.mark.needs("triton")
def test_a_triton_kernel(path, tmp_path):
    """The variant that was compiled is launched from a library without Triton."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "function"))
    try:
        import kernels_in_bodies
    finally:
        sys.path.pop(0)
    from culaunch.triton import native

    add = native(kernels_in_bodies.add)

    @cl.function
    def scaled(x, y, factor: float):
        out = cl.empty_like(x)
        n = x.size
        add[lambda meta: (cl.ceildiv(n, meta["BLOCK"]),)](x, y, out, n, factor, BLOCK=64)
        return out

    aligned = np.zeros(96, np.float32)
    x = aligned[-aligned.ctypes.data // 4 % 4 :][:64]  # to 16 bytes
    x[:] = np.arange(64)
    expected = (x * 3).tolist()
    assert scaled(x, x, 2.0).tolist() == expected
    cl.ship.save([scaled], path)
    run = [sys.executable, "-c", TRITON, str(path)]
    done = subprocess.run(
        run, cwd=tmp_path, capture_output=True, text=True, env={**os.environ}, check=True
    )
    assert done.stdout.split("\n")[:2] == [str(expected), "[]"]
    lib = cl.ship.load_library(path)
    assert lib.scaled(x, x, 2.0).tolist() == expected
    with pytest.raises(ValueError, match=r"scaled: only one side of the branch at .* was saved"):
        lib.scaled(x[:17], x[:17], 2.0)


TRITON = """
import sys
import numpy as np
import culaunch as cl
cl.driver.set_driver("emulator")
lib = cl.ship.load_library(sys.argv[1])
aligned = np.zeros(96, np.float32)
x = aligned[-aligned.ctypes.data // 4 % 4:][:64]
x[:] = np.arange(64)
print(lib.scaled(x, x, 2.0).tolist())
print([one for one in ("triton", "torch") if one in sys.modules])
"""


def test_libraries_are_pickled_by_their_path(scale, path):
    scale.specialize()
    lib = reloaded(path, scale)
    again = pickle.loads(pickle.dumps(lib.scale))
    assert again(x5, 2.0).tolist() == (x5 * 2).tolist()
    with pytest.raises(TypeError, match="a library of bytes cannot be pickled"):
        pickle.dumps(cl.ship.load_library(path.read_bytes()).scale)


def test_images_for_more_architectures(scale, image, kernels, path):
    other = cl.compile(
        "template <class T> __global__ void scale(T* y, const T* x, float a, int n) {}",
        arch="compute_90", names=["scale<float>", "scale<double>"],
    )  # fmt: skip
    scale.specialize()
    cl.ship.save([scale], path, images={kernels: [other]})
    manifest, contents = parts_of(path.read_bytes())
    members = manifest["members"]
    (name,) = (name for name in members if name.startswith("images/"))
    assert cl.Image.open(contents[name]).arch == ("compute_80", "compute_90")
    with pytest.raises(ValueError, match="must be one that a function or kernel uses"):
        cl.ship.save([scale], path, images={cl.load(image): [other]})
    with pytest.raises(TypeError, match="keys of images must be modules"):
        cl.ship.save([scale], path, images={1: []})


class Mode(enum.Enum):
    FAST = 1


def test_what_cannot_be_saved(scale, kernels, path, monkeypatch):
    def refused(error, words, *functions):
        with pytest.raises(error, match=words):
            cl.ship.save(functions, path)
        assert not path.exists()

    refused(
        ValueError, "scale must be traced before it is saved: call it, or name the kinds", scale
    )
    refused(ValueError, "functions must contain at least one function")
    refused(TypeError, "functions must contain functions of cl.function", len)
    weight = np.ones(5, np.float32)

    @cl.function
    def closed(x):
        y = cl.empty_like(x)
        kernels["scale<float>"][1, 32](y, weight, 2.0, 5)
        return y

    closed(x5)
    refused(TypeError, "closed closes over an array .*pass it as an argument", closed)

    @cl.function
    def chosen(x, mode):
        return x.shape[0]

    chosen(x5, Mode.FAST)
    refused(TypeError, "chosen: argument mode cannot be saved: a library cannot hold", chosen)

    @cl.function
    def defaulted(x, mode=Mode.FAST):
        return x.shape[0]

    defaulted(x5, "a")
    refused(TypeError, "defaulted: the default of mode cannot be saved", defaulted)
    first = cl.function(lambda n: n)
    first(1)
    refused(ValueError, "functions contains one with the name '<lambda>'", first)

    def named():
        @cl.function
        def twin(n):
            return n

        twin(1)
        return twin

    refused(ValueError, "two functions with the name twin", named(), named())


def test_globals_that_changed_are_noticed(kernels, path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 2, raising=False)

    @cl.function
    def grown(n: int):
        return n * FACTOR  # noqa: F821

    grown(1)
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3)
    with pytest.raises(ValueError, match="must be traced before"):
        cl.ship.save([grown], path)


def test_in_the_body_of_another(scale, path):
    scale.specialize()
    lib = reloaded(path, scale)

    @cl.function
    def outer(x):
        return lib.scale(x, 2.0)

    with pytest.raises(TypeError, match="scale comes from a library and has no body"):
        outer(x5)
    with cl.function_debugging():
        assert lib.scale(x5, 2.0).tolist() == (x5 * 2).tolist()


def test_it_is_a_function(scale, path):
    scale.specialize()
    saved = reloaded(path, scale).scale
    assert isinstance(saved, cl.Function)
    assert saved.mutates == scale.mutates
    assert saved.explain(x5, 2.0) in saved.explain()
    with pytest.raises(TypeError, match="scale has no program for"):
        saved.explain(x5.astype("int8"), 2.0)
    with pytest.raises(TypeError, match="scale comes from a library and has no body to trace"):
        saved.specialize(x=cl.Array("float32", "n"))
    gradient = saved.backward(lambda grad, factor: grad * factor)
    assert saved._gradient.function is gradient
    assert saved._gradient.needs == (("grad", 0), ("argument", "factor"))
    assert [kind for kind, _ in saved.traced()] == [kind for kind, _ in scale.traced()]


def test_from_many_threads(scale, path):
    scale.specialize()
    lib = reloaded(path, scale)
    results = []
    start = threading.Barrier(4)

    def work():
        start.wait()
        results.append(lib.scale(x5, 2.0).tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(x5 * 2).tolist()] * 4
