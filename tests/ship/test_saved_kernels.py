"""Kernels of libraries: saved by themselves, found by name, launched without their source."""

import json

import numpy as np
import pytest
from library_parts import packed, parts_of, saved_bytes
from runs import run_command

import culaunch as cl

pytestmark = pytest.mark.usefixtures("emulated")


@pytest.fixture
def data(kernels):
    return saved_bytes([], kernels=[kernels["scale<float>"], kernels["fill"]])


def filled(kernel, value):
    y = cl.zeros(5, "int32")
    kernel[1, 32](y, value, 5)
    return y.numpy().tolist()


def test_there_and_back(kernels, tmp_path):
    path = tmp_path / "k.culib"
    cl.ship.save([], path, kernels=[kernels["scale<float>"], kernels["fill"]])
    lib = cl.ship.load_library(path)
    assert list(lib.kernels) == [kernels["scale<float>"].name, "fill"]
    assert len(lib) == 0
    before = len(cl.profile.load_report())
    assert "fill" in lib.kernels
    assert "scale<float>" in lib.kernels
    assert "scale<double>" not in lib.kernels
    assert 5 not in lib.kernels
    assert len(cl.profile.load_report()) == before, "nothing is loaded before a kernel is asked for"
    x, y = cl.to_device(np.arange(5, dtype=np.float32)), cl.zeros(5, "float32")
    lib.kernels["scale<float>"][1, 32](y, x, 3.0, 5)
    assert y.numpy().tolist() == [0, 3, 6, 9, 12]
    assert filled(lib.kernels["fill"], 7) == [7] * 5
    # One module for one image, so kernels share its variables.
    assert lib.kernels["fill"].module is lib.kernels["scale<float>"].module
    assert lib.kernels["fill"].signature == kernels["fill"].signature
    assert lib.kernels.get("none") is None
    with pytest.raises(cl.KernelNotFoundError, match=r"k\.culib has no kernel 'fil'.*fill"):
        lib.kernels["fil"]
    with pytest.raises(TypeError, match="name must be a str"):
        lib.kernels[3]


def test_a_terminal_shows_them(data, tmp_path):
    path = tmp_path / "k.culib"
    path.write_bytes(data)
    said = run_command("inspect", str(path))
    assert said.exit_code == 0, said.output
    assert "void scale<float>(float*, float const*, float, int)" in said.output
    assert "fill(int*, int, int)" in said.output
    said = run_command("inspect", "--json", str(path))
    assert [one["demangled"] for one in json.loads(said.output)["kernels"]][1] == "fill"


def test_beside_a_function(scale, kernels, tmp_path):
    scale.specialize(x=cl.Array("float32", "n"))
    cl.ship.save([scale], tmp_path / "k.culib", kernels=[kernels["fill"]])
    lib = cl.ship.load_library(tmp_path / "k.culib")
    assert lib.scale(np.ones(4, np.float32), 2.0).tolist() == [2] * 4
    assert filled(lib.kernels["fill"], 3) == [3] * 5
    text = str(lib)
    assert text.endswith("kernels\n    fill(int*, int, int)")
    assert lib.to_dict()["kernels"][0]["name"] == "fill"
    assert repr(lib).endswith("scale, fill>")
    assert len(cl.ship.preload(cl.ship.load_library(tmp_path / "k.culib"))) == 1
    # The image is there once for both.
    _, contents = parts_of((tmp_path / "k.culib").read_bytes())
    assert len([name for name in contents if name.startswith("images/")]) == 1


def test_names_of_ones_own(tmp_path):
    source = 'extern "C" __global__ void k(int* y, int v, int n) { y[threadIdx.x] = v * FACTOR; }'
    made = [cl.load(cl.compile(source, defines={"FACTOR": f}))["k"] for f in (2, 3)]
    with pytest.raises(ValueError, match="two kernels with the name k and different images"):
        cl.ship.save([], tmp_path / "k.culib", kernels=made)
    assert not (tmp_path / "k.culib").exists()
    cl.ship.save([], tmp_path / "k.culib", kernels={"by 2": made[0], "by 3": made[1]})
    kernels = cl.ship.load_library(tmp_path / "k.culib").kernels
    y = cl.zeros(1, "int32")
    for name, factor in (("by 2", 2), ("by 3", 3)):
        kernels[name][1, 1](y, 5, 1)
        assert y.numpy().tolist() == [5 * factor]
    # The same kernel twice is one.
    cl.ship.save([], tmp_path / "one.culib", kernels=[made[0], made[0]])
    assert list(cl.ship.load_library(tmp_path / "one.culib").kernels) == ["k"]


def test_names_and_types_that_only_the_compiler_knew(tmp_path):
    source = """
    using real = float;
    template <class T> __global__ void twice(T* y) { y[threadIdx.x] *= 2; }
    extern "C" __global__ void raw(float* y, float a) { y[threadIdx.x] = a; }
    """
    image = cl.compile(source, names=["twice<real>", "raw"])
    module = cl.load(image)
    bare = cl.load(image.data)
    given = bare.kernel("raw", signature="float*, float")
    cl.ship.save(
        [], tmp_path / "k.culib", kernels={"t": module["twice<real>"], "raw": module["raw"]}
    )
    cl.ship.save([], tmp_path / "given.culib", kernels=[given])
    lib = cl.ship.load_library(tmp_path / "k.culib")
    assert lib.kernels["twice<real>"].name == module["twice<real>"].name
    assert lib.kernels["raw"].signature == module["raw"].signature
    again = cl.ship.load_library(tmp_path / "given.culib").kernels["raw"]
    assert again.signature == given.signature
    assert again.signature.source == "user"


def test_one_kernel_that_was_found_with_a_signature_and_without(tmp_path):
    bare = cl.load(
        cl.compile('extern "C" __global__ void k(int* y) { *y = 1; }', arch="sm_80").data
    )
    given = bare.kernel("k", signature="int*")
    for kernels in ([bare["k"], given], [given, bare["k"]], [bare["k"], given, given]):
        cl.ship.save([], tmp_path / "k.culib", kernels=kernels)
        (types,) = (
            one.types for one in cl.ship.load_library(tmp_path / "k.culib").kernels.entries.values()
        )
        assert types == ("int*",)
    with pytest.raises(ValueError, match="two kernels with the name k and different signatures"):
        cl.ship.save(
            [], tmp_path / "k.culib", kernels=[given, bare.kernel("k", signature="float*")]
        )


def test_from_one_library_to_another_without_a_driver(data, tmp_path):
    lib = cl.ship.load_library(data)
    before = len(cl.profile.load_report())
    again = saved_bytes([], kernels=lib.kernels)
    assert again == data
    one = saved_bytes([], kernels=[lib.kernels.only(["fill"])])
    assert len(cl.profile.load_report()) == before
    assert list(cl.ship.load_library(one).kernels) == ["fill"]
    assert filled(cl.ship.load_library(one).kernels["fill"], 2) == [2] * 5


def test_what_is_no_kernel(kernels, tmp_path):
    for given, error, words in (
        ([kernels], TypeError, "kernels must contain kernels, .* .got <culaunch.Module"),
        ("fill", TypeError, "kernels must be"),
        (3, TypeError, "kernels must be"),
        ({"": kernels["fill"]}, ValueError, "printable"),
        ({"a\nb": kernels["fill"]}, ValueError, "printable"),
        ({3: kernels["fill"]}, ValueError, "printable"),
        ([], ValueError, "at least one function"),
    ):
        with pytest.raises(error, match=words):
            cl.ship.save([], tmp_path / "k.culib", kernels=given)
    assert not (tmp_path / "k.culib").exists()


WRONG = {
    "name": ({"name": ""}, "printable characters"),
    "image": ({"image": "images/none"}, "must be a member .got 'images/none'"),
    "symbol": ({"symbol": "a b"}, "symbol must be a symbol of the image"),
    "types": ({"types": {}}, "types must be a list"),
    "type": ({"types": [3]}, "must be a text of"),
    "user": ({"by_user": 1}, "by_user must be true or false"),
    "unknown": ({"by_user": True, "types": ["int", None]}, "must have a type for each parameter"),
    "expressions": ({"expressions": [1]}, "each item of expressions must be a text of"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_entry(data, name):
    change, words = WRONG[name]
    manifest, contents = parts_of(data)
    manifest["functions"][0].update(change)
    with pytest.raises(cl.ImageError, match=words):
        cl.ship.load_library(packed(manifest, contents))


def test_wrong_ones_that_a_look_up_finds(data):
    manifest, contents = parts_of(data)
    manifest["functions"].append(dict(manifest["functions"][0]))
    with pytest.raises(cl.ImageError, match="must not appear twice"):
        cl.ship.load_library(packed(manifest, contents))
    manifest, contents = parts_of(data)
    for change in ({"symbol": "none"}, {"types": ["float", "int"], "by_user": True}):
        first = {**manifest["functions"][0], **change, "name": "wrong"}
        lib = cl.ship.load_library(packed({**manifest, "functions": [first]}, contents))
        with pytest.raises(cl.ImageError):
            lib.kernels["wrong"]


def test_an_older_format_has_none(data):
    manifest, contents = parts_of(data)
    assert manifest["version"] == 4
    lib = cl.ship.load_library(packed({**manifest, "version": 3}, contents))
    assert len(lib.kernels) == 0
    assert json.dumps(lib.to_dict()["kernels"]) == "[]"
