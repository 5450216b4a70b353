"""Functions of libraries: saved again, merged, exported."""

from __future__ import annotations

import json
import struct
from array import array

import numpy as np
import pytest
from library_parts import packed, parts_of, saved_bytes

import culaunch as cl
from culaunch._base.architectures import arch_fit
from culaunch._function.programs.encode import encode
from culaunch._ship.functions.by_device import nearness
from culaunch._ship.functions.rewritten import program_of, with_capability

pytestmark = pytest.mark.usefixtures("emulated")

x5 = np.arange(5, dtype=np.float32)


def loaded(*functions):
    return cl.ship.load_library(saved_bytes(functions))


@pytest.fixture
def full(kernels):
    """A function with most of what a program can have."""

    @cl.function
    def full(x, ys, n: int = 3, *, factor: float = 1.0, mode: str = "a"):
        """Do much."""
        cl.check(n > 0, f"n must be positive (got {n})")
        z = cl.zeros((n, x.shape[0]), x.dtype)
        kernels["scale<float>"][cl.ceildiv(x.size, 64), 64](z[n - 1], x, factor * 2, x.size)
        kernels["fill"].launch(ys[0], n, ys[0].size, grid=1, block=32, shared_memory=4 * n)
        if x.shape[0] % 2 == 0:
            return z, {"last": z[n - 1], "n": n, "mode": mode}
        return z, [x.shape[0] / 2, None, True]

    return full


def call(function, x=x5, n=3):
    y = np.zeros(4, np.int32)
    found = function(x, [y], n, factor=1.5)
    return json.dumps([y.tolist(), found], default=lambda one: one.tolist())


def test_saved_again_it_is_the_same_file(scale, full, tmp_path):
    scale.specialize()
    call(full)
    call(full, x5[:4])
    first = saved_bytes([scale, full])
    lib = cl.ship.load_library(first)
    assert saved_bytes([lib.scale, lib.full]) == first
    cl.ship.save(list(lib), tmp_path / "again.culib")
    again = cl.ship.load_library(tmp_path / "again.culib")
    for x in (x5, x5[:4]):
        assert call(again.full, x) == call(full, x)
    with pytest.raises(ValueError, match=r"n must be positive \(got 0\)"):
        call(again.full, n=0)


def test_a_program_is_the_tree_that_it_was(scale, full):
    scale.specialize()
    call(full)
    call(full, x5[:4])
    lib = loaded(scale, full)
    for one in lib:
        trees = one._exported().programs
        assert len(trees) == len(one.entry.kinds)
        for (_, tree), saved in zip(trees, one.entry.kinds, strict=True):
            encoded = encode(tree)
            assert encoded.words == one.programs.library.read(saved.program)
            assert encoded.texts == saved.texts


def test_gradients_are_saved_again(scale, kernels):
    @cl.function
    def scale_grad(grad, factor: float):
        y = cl.empty_like(grad)
        kernels["scale<float>"][1, 64](y, grad, factor, grad.size)
        return y

    scale.backward(scale_grad)
    scale(x5, 1.0)
    scale_grad(x5, 1.0)
    lib = loaded(scale, scale_grad)
    again = loaded(lib.scale, lib.scale_grad)
    assert again.scale.entry.backward == "scale_grad"
    with pytest.raises(ValueError, match=r"scale_grad.* must be saved with it"):
        saved_bytes([lib.scale])


def test_functions_of_several_libraries(scale, full):
    scale.specialize()
    call(full)
    one, other = loaded(scale), loaded(full)
    lib = loaded(one.scale, other.full, one.scale)
    assert list(lib.functions) == ["scale", "full"]
    assert call(lib.full) == call(full)
    assert lib.scale(x5, 2.0).tolist() == scale(x5, 2.0).tolist()


def test_kinds_of_several_libraries(scale):
    scale(x5, 2.0)
    one = loaded(scale)
    scale._clear()
    scale._trees.clear()
    scale(x5.astype(np.float64), 2.0)
    other = loaded(scale)
    with pytest.raises(TypeError, match="no program for"):
        one.scale(x5.astype(np.float64), 2.0)
    lib = loaded(one.scale, other.scale)
    assert len(lib.scale.kinds) == 2
    for dtype in (np.float32, np.float64):
        assert lib.scale(x5.astype(dtype), 2.0).tolist() == [0, 2, 4, 6, 8]
    # Common parts are stored once; traced functions and those of libraries can be mixed.
    assert saved_bytes([lib.scale, one.scale, scale]) == saved_bytes([lib.scale])


@pytest.fixture
def on(kernels):
    """Return the library of a function that was compiled for an architecture, and says it."""

    def make(arch):
        source = """extern "C" __global__ void number(int* y, int value) { y[0] = value; }"""
        image = cl.compile(source, arch=arch)
        is_ptx = arch.startswith("compute")
        module = cl.load(image if is_ptx else cl.compile(source, arch="compute_80"))
        value = int(arch.partition("_")[2].rstrip("a"))

        @cl.function
        def which(y):
            module["number"][1, 1](y, value)

        which(np.zeros(1, np.int32))
        data = saved_bytes([which])
        if is_ptx:
            return data
        # A cubin does not load here: it takes the place of the PTX in the file.
        manifest, contents = parts_of(data)
        (name,) = [one for one in contents if one.startswith("images/")]
        contents.pop(name)
        contents[f"images/{arch}.cubin"] = image.data
        for one in manifest["functions"][0]["kinds"][0]["constants"]:
            if isinstance(one, dict) and "kernel" in one:
                one["kernel"]["image"] = f"images/{arch}.cubin"
        return packed(manifest, contents)

    return make


def test_programs_for_several_architectures(on):
    libraries = [cl.ship.load_library(on(arch)) for arch in ("sm_90", "compute_75", "compute_80")]
    data = saved_bytes([one.which for one in libraries])
    lib = cl.ship.load_library(data)
    assert [one.archs[0][-1] for one in lib.which.entry.kinds] == [
        "sm_90", "compute_75", "compute_80"
    ]  # fmt: skip
    assert len(lib.which.kinds) == 1
    y = np.zeros(1, np.int32)
    lib.which(y)
    assert y.tolist() == [80]  # the emulator accepts only PTX, and is an sm_80
    # Merged again with one of them, there are as many.
    assert saved_bytes([lib.which, libraries[0].which]) == data
    wrong = cl.ship.load_library(
        saved_bytes([libraries[0].which, cl.ship.load_library(on("sm_100")).which])
    )
    with pytest.raises(
        cl.KernelNotFoundError,
        match=r"no program for sm_80: .* programs for compute_90, sm_90; compute_100",
    ):
        wrong.which(y)


def test_two_programs_that_would_serve_one_call(on):
    first = cl.ship.load_library(on("compute_80"))
    manifest, contents = parts_of(on("compute_80"))
    (name,) = [one for one in contents if one.startswith("programs/")]
    words = array("q", contents[name])
    last_block = len(words) - words[4 + words[4]]
    words[words.index(80, last_block)] = 81
    contents[name] = words.tobytes()
    other = cl.ship.load_library(packed(manifest, contents))
    with pytest.raises(ValueError, match=r"and a program for .* on compute_80: rename one"):
        saved_bytes([first.which, other.which])


def test_functions_that_differ_do_not_go_together(scale, kernels):
    scale(x5, 1.0)
    one = loaded(scale)

    @cl.function
    def other(x):
        return cl.empty_like(x)

    other(x5)
    other.__name__ = "scale"
    with pytest.raises(ValueError, match="have the name scale and different parameters"):
        saved_bytes([one.scale, other])


def test_two_programs_of_one_kind_say_their_architectures(scale):
    scale(x5, 1.0)
    manifest, contents = parts_of(saved_bytes([scale]))
    kinds = manifest["functions"][0]["kinds"]
    kinds.append(kinds[0])
    with pytest.raises(cl.ImageError, match="two kinds with the same arguments must have archs"):
        cl.ship.load_library(packed(manifest, contents))
    for archs in ("sm_80", ["sm_80"], [["sm80"]], [[80]], [["sm_80"] * 65]):
        kinds[0]["archs"] = archs
        with pytest.raises(cl.ImageError, match="archs"):
            cl.ship.load_library(packed(manifest, contents))


class Unknown(cl.ship.LoadedFunction):
    """One whose calls find no way on."""

    def _trace(self, arguments):
        raise LookupError


def test_a_program_that_is_for_one_architecture_alone(scale):
    """On a machine with several, a call on another device comes back, and gets its own program."""
    scale.specialize(x=cl.Array("float32", "n"))
    lib = loaded(scale)
    (saved,) = lib.scale.entry.kinds
    _, tree = lib.scale.programs.program(saved.kind, saved)
    for capability, is_run in ((80, True), (86, False), (90, False)):
        guarded = with_capability(tree, capability)
        assert len(guarded.blocks) == len(tree.blocks) + 1
        function = Unknown(lib.scale._library, lib.scale.entry)
        function._add(saved.kind, program_of(guarded), ())
        if is_run:
            assert function(x5, 2.0).tolist() == [0, 2, 4, 6, 8]
            assert function(x5[:0], 2.0).tolist() == []
        else:
            with pytest.raises(LookupError):
                function(x5, 2.0)


@pytest.mark.parametrize(
    ("archs", "capability", "only_ptx", "expected"),
    [
        ((), 80, False, 1000),
        ((("sm_80",),), 80, False, 80),
        ((("sm_80",),), 86, False, 80),
        ((("sm_80",),), 90, False, None),
        ((("compute_80",),), 90, False, 80 - 1000),
        ((("compute_80", "sm_90"),), 90, False, 90),
        ((("sm_90a",),), 90, False, 90),
        ((("sm_90a",),), 100, False, None),
        ((("sm_80",), ("sm_90",)), 90, False, None),
        ((("sm_80", "sm_90"), ("sm_90",)), 90, False, 90),
        ((("sm_80",),), 80, True, None),
        ((("sm_80", "compute_80"),), 80, True, 80 - 1000),
    ],
)
def test_how_near_images_are_to_a_device(archs, capability, only_ptx, expected):
    assert nearness(archs, capability, only_ptx=only_ptx) == expected


def test_architectures_that_nobody_knows():
    assert arch_fit("gfx90a", 80, only_ptx=False) == ("its architecture gfx90a is unknown", 0)


# ---- exports


def test_the_source_of_a_function_of_a_library(scale, full):
    scale.specialize()
    call(full)
    lib = loaded(scale, full)
    text = lib.scale.source()
    assert text.startswith(
        "// Generated by culaunch from Python functions: change those instead.\n"
    )
    assert "// scale, of <" in text
    assert "fn::Any ScaleFloat32(Outputs outputs, const TensorView& x, double factor)" in text
    assert 'fn::Check(x.IsContiguous(), "ValueError", "x must be contiguous' in text
    with pytest.raises(ValueError, match=r'language must be "c\+\+"'):
        lib.scale.source("rust")
    assert ".result()" in lib.full.source()


def test_places_of_a_library_are_no_files(scale, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden = 1\n")
    scale.specialize(x=cl.Array("float32", "n"))
    manifest, contents = parts_of(saved_bytes([scale]))
    for kind in manifest["functions"][0]["kinds"]:
        kind["texts"] = [f"{secret}:1" if "conftest.py:" in one and "(" not in one else one
                         for one in kind["texts"]]  # fmt: skip
        kind["guards"] = [[block, f"{secret}:1", text] for block, _, text in kind["guards"]]
    lib = cl.ship.load_library(packed(manifest, contents))
    assert "secret.txt:1" in lib.scale.source()
    assert "hidden" not in lib.scale.source()
    with pytest.raises(OverflowError, match=r"secret\.txt:1: ") as caught:
        lib.scale(x5, 1e300)
    assert "hidden" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.needs("tvm_ffi", "g++")
def test_a_function_of_a_library_is_exported(scale, tmp_path):
    tvm_ffi = pytest.importorskip("tvm_ffi")
    scale.specialize()
    cl.ship.export(list(loaded(scale)), tmp_path / "libscale.so", flags=["-O0"])
    module = tvm_ffi.load_module(str(tmp_path / "libscale.so"))
    for x in (x5, np.arange(8.0)):
        y = np.zeros_like(x)
        module.scale_into(*(tvm_ffi.from_dlpack(one) for one in (y, x)), 2.0)
        assert y.tolist() == (2 * x).tolist()


def test_words_that_are_changed_reach_no_export(scale):
    """A program is checked by the extension before any text is made of it."""
    scale.specialize(x=cl.Array("float32", "n"))
    manifest, contents = parts_of(saved_bytes([scale]))
    (name,) = [one for one in contents if one.startswith("programs/")]
    good = contents[name]
    for at in range(0, len(good), 8):
        for number in (-1, 1 << 40, 255):
            contents[name] = good[:at] + struct.pack("<q", number) + good[at + 8 :]
            lib = cl.ship.load_library(packed(manifest, contents))
            try:
                text = lib.scale.source()
            except (cl.ImageError, TypeError, ValueError):
                continue
            assert "fn::Any ScaleFloat32" in text
