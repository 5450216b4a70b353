"""Ahead-of-time compilation, the set that it gives, and its file."""

import errno
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from full_disks import no_file_larger_than
from sets import FLOATS

import culaunch as cl

pytestmark = pytest.mark.needs("triton", "torch")


@pytest.fixture
def saved(add_set, tmp_path):
    path = tmp_path / "add.culib"
    add_set.save(path)
    return path


@pytest.fixture
def x():
    import torch

    return torch.zeros(4096)


# ---- what is compiled


def test_variants_say_what_they_are(add_set):
    assert len(add_set) == 8
    assert {one.arch for one in add_set.variants} == {"sm_80", "sm_90a"}
    first = add_set.variants[0]
    assert first.types == ("*fp32", "*fp32", "*fp32", "i32")
    assert first.keys == ("D", "D", "D", "")
    assert first.constants == {"BLOCK": 256}
    assert {one.facts.num_warps for one in add_set.variants} == {4, 8}
    assert str(first) == "sm_80 (*fp32:16, *fp32:16, *fp32:16, i32) BLOCK=256"


def test_constants_may_stand_in_the_signature(tutorials):
    import culaunch.triton as ct

    made = ct.compile(tutorials.add, "*fp32, *fp32, *fp32, i32:1, 128", arch="sm_80")
    assert made.variants[0].constants == {"BLOCK": 128}
    assert made.variants[0].types[3] == "constexpr"
    assert made.variants[0].keys[3] == 1


def test_ptx_alone(tutorials):
    import culaunch.triton as ct

    made = ct.compile(tutorials.add, FLOATS, arch="compute_80", constants={"BLOCK": 64})
    assert made.variants[0].arch == "compute_80"
    assert made.variants[0].image is None


def test_an_autotuner_without_choices_gives_all_its_configurations(tutorials):
    import culaunch.triton as ct

    signature = "*fp16:16, *fp16:16, *fp16:16, i32, i32, i32, i32, i32:1, i32, i32:1, i32, i32:1"
    made = ct.compile(tutorials.autotuned(), signature, arch="sm_80", constants={"ACTIVATION": ""})
    assert len(made) == 2
    assert made.variants[1].constants["BLOCK_N"] == 64
    assert made.table is None


@pytest.mark.parametrize(
    ("signature", "options", "error", "words"),
    [
        ("*fp32, *fp32", {}, ValueError, "needs a signature of 5 entries|of 4 entries"),
        ("*fp99, *fp32, *fp32, i32", {}, ValueError, "no element type 'fp99'"),
        ("float, *fp32, *fp32, i32", {}, ValueError, "'float' in the signature is not a type"),
        ("*fp32:8, *fp32, *fp32, i32", {}, ValueError, "only :16"),
        ("fp32:16, *fp32, *fp32, i32", {}, ValueError, "only :16"),
        ("*fp32, *fp32, *fp32, 7", {}, ValueError, "only the values 1 and None can be folded"),
        ("(i32, *fp32, *fp32, i32", {}, ValueError, "does not close"),
        (FLOATS, {"constants": {"NO": 1}}, ValueError, "has no parameter NO"),
        (FLOATS, {"arch": "90"}, ValueError, "arch must be an architecture such as"),
        (FLOATS, {"arch": []}, ValueError, "must not be empty"),
        (FLOATS, {"constants": {"BLOCK": 3}}, cl.CompileError, "cannot compile add for sm_80"),
    ],
)
def test_refused(tutorials, signature, options, error, words):
    import culaunch.triton as ct

    options = {"arch": "sm_80", "constants": {"BLOCK": 256}, **options}
    with pytest.raises(error, match=words):
        ct.compile(tutorials.add, signature, **options)


def test_a_full_disk_is_no_mistake_of_the_kernel(tutorials, monkeypatch, tmp_path):
    import culaunch.triton as ct

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    with no_file_larger_than(10), pytest.raises(OSError, match="TRITON_CACHE_DIR") as caught:
        ct.compile(tutorials.add, FLOATS, arch="sm_80", constants={"BLOCK": 2})
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename.startswith(str(tmp_path))
    assert "to compile add, Triton writes" in str(caught.value)


def test_what_is_no_kernel(tutorials):
    import culaunch.triton as ct

    with pytest.raises(TypeError, match=r"must be a @triton\.jit kernel"):
        ct.compile(3, "i32", arch="sm_80")


# ---- what is launched


def test_dispatch(recorder, add_set, x):
    grid = lambda meta: (meta["n"] // meta["BLOCK"],)  # noqa: E731
    add_set[grid](x, x, x, 4096)
    assert recorder.last.grid == (16, 1, 1)
    assert recorder.last.block == (128, 1, 1)
    add_set[grid](x, x, x, n=4096, BLOCK=512)
    assert (recorder.last.grid, recorder.last.block) == ((8, 1, 1), (256, 1, 1))
    add_set[grid](x, x, x, 4096, num_warps=8)
    assert recorder.last.block == (256, 1, 1)
    half = x.half()
    add_set[grid](half, half, half, 4096)
    loaded = recorder.count("cuLibraryLoadData")
    for _ in range(3):
        add_set[grid](half, half, half, 4096)
    assert recorder.count("cuLibraryLoadData") == loaded


def test_the_most_specialised_variant_that_fits(recorder, tutorials, x):
    import culaunch.triton as ct

    made = ct.compile(
        tutorials.add, ["*fp32, *fp32, *fp32, i32", FLOATS, "*fp32:16, *fp32:16, *fp32:16, i32:1"],
        arch="sm_90a", constants={"BLOCK": 256},
    )  # fmt: skip

    def chosen(*args):
        made[(1,)](*args)
        variant = made._resolve((1,), args, {})[0]
        return next(i for i, one in made._loaded.items() if one is variant)

    assert chosen(x[1:], x, x, 100) == 0
    assert chosen(x, x, x, 100) == 1
    assert chosen(x, x, x, 1) == 2
    assert len(recorder.last.arguments) == len(made.variants[2].types) - 1 + 2 - (
        made.variants[2].facts.hidden == 1
    )
    assert chosen(x[1:], x, x, 1) == 0  # not folded: it is passed
    assert recorder.last.arguments[3] == (1).to_bytes(4, "little")


def test_no_variant_fits(recorder, add_set, x):
    with pytest.raises(cl.KernelNotFoundError) as caught:
        add_set[(1,)](x.double(), x, x, 64, BLOCK=512)
    message = str(caught.value)
    assert "no variant of add fits the call (*fp64:16, *fp32:16, *fp32:16, i32:16)" in message
    assert "BLOCK is 512, not 256" in message
    assert "it is for sm_80, but the device is sm_90" in message
    assert "argument 0 is *fp64, not *fp32" in message
    with pytest.raises(cl.KernelNotFoundError, match="argument 3 is not known to be divisible"):
        add_set[(1,)](x.half(), x.half(), x.half(), 65)
    with pytest.raises(cl.KernelNotFoundError, match="argument 3 is i64, not i32"):
        add_set[(1,)](x, x, x, 2**40)


def test_declared_types(recorder):
    from typed_kernels import typed

    import culaunch.triton as ct

    made = ct.compile(typed, "i8, u16, fp16, bf16, fp64, u1", arch="sm_90a")
    made[(1,)](-1, 65535, 1.0, -2.0, 1.1, True)
    given = [int.from_bytes(one, "little") for one in recorder.last.arguments]
    assert given[:4] == [0xFF, 0xFFFF, 0x3C00, 0xC000]
    with pytest.raises(OverflowError, match="does not fit i8"):
        made[(1,)](200, 1, 1.0, 1.0, 1.0, True)


@pytest.mark.slow
def test_a_thousand_variants_cost_no_more(add_set, tmp_path, recorder, x):
    from dataclasses import replace

    import culaunch.triton as ct

    one = add_set.variants[1]
    many = [replace(one, constants={"BLOCK": 2 * i}) for i in range(1000)]
    many.append(one)
    whole = ct.KernelSet(replace(add_set._saved, variants=tuple(many)))
    whole.save(tmp_path / "many.culib")
    loaded = ct.KernelSet.load(tmp_path / "many.culib")
    assert recorder.count("cuLibraryLoadData") == 0
    loaded[(1,)](x, x, x, 64, BLOCK=256)
    loaded[(1,)](x, x, x, 64, BLOCK=256)
    assert recorder.count("cuLibraryLoadData") == 1


# ---- the file


def test_a_file_gives_the_same_set(add_set, saved, recorder, x, tmp_path):
    import culaunch.triton as ct

    loaded = ct.KernelSet.load(saved)
    assert loaded.variants == add_set.variants
    assert [one.name for one in loaded.parameters] == [one.name for one in add_set.parameters]
    loaded[(3,)](x, x, x, 64)
    assert recorder.last.grid == (3, 1, 1)
    again = tmp_path / "again.culib"
    loaded.save(again)
    assert again.read_bytes() == saved.read_bytes()
    assert ct.KernelSet.load(saved.read_bytes(), name="add").variants == add_set.variants
    with pytest.raises(
        cl.KernelNotFoundError, match=r"must have Triton kernel 'other' .it has add"
    ):
        ct.KernelSet.load(saved, name="other")


def test_equal_images_are_kept_once(saved):
    with zipfile.ZipFile(saved) as archive:
        names = archive.namelist()
    assert names[0] == "manifest.json"
    assert len(names) == len(set(names)) <= 17


@pytest.mark.slow
def test_loading_needs_no_triton(saved):
    program = f"""
import sys
sys.modules["triton"] = None
import torch
from culaunch.triton import KernelSet, native
kernels = KernelSet.load({str(saved)!r})
x, y, out = torch.randn(1000), torch.randn(1000), torch.empty(1000)
kernels[lambda meta: (-(-1000 // meta["BLOCK"]),)](x, y, out, 1000)
assert torch.equal(out, x + y)
try:
    native(None)
except ImportError as error:
    print(error)
"""
    environment = {**os.environ, "CULAUNCH_DRIVER": "emulator"}
    environment["PYTHONPATH"] = str(Path(cl.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "python -m pip install triton" in done.stdout


def test_the_tuned_table_ships(tutorials, recorder, tmp_path, monkeypatch):
    import culaunch.triton as ct

    tuner = tutorials.autotuned()
    small, large = tutorials.CONFIGS
    types = ["torch.float16"] * 3
    tuner.cache[(64, 64, 64, *types)] = small
    tuner.cache[(1024, 64, 64, *types)] = large
    signature = "*fp16:16, *fp16:16, *fp16:16, i32, i32, i32, i32, i32:1, i32, i32:1, i32, i32:1"
    made = ct.compile(tuner, signature, arch="sm_90a", constants={"ACTIVATION": ""})
    made.save(tmp_path / "matmul.culib")
    loaded = ct.KernelSet.load(tmp_path / "matmul.culib")
    for sizes, config in [((64, 64, 64), small), ((1024, 64, 64), large), ((900, 64, 64), large)]:
        for _ in range(2):
            tutorials.run_matmul(loaded, "cpu", sizes, "")
            assert recorder.last.block[0] == 32 * config.num_warps


def test_sets_merge(tutorials, add_set, recorder, x):
    import culaunch.triton as ct

    other = ct.compile(tutorials.add, "*fp64, *fp64, *fp64, i32", arch="sm_90a",
                       constants={"BLOCK": 128})  # fmt: skip
    both = add_set.merge(other)
    assert len(both) == 9
    double = x.double()
    both[(1,)](double, double, double, 64)
    both[(1,)](x, x, x, 64)
    dropout = ct.compile(tutorials.dropout, "*fp32, *fp32, i32, fp32, i32", arch="sm_80",
                         constants={"BLOCK": 128})  # fmt: skip
    with pytest.raises(ValueError, match="dropout is not the kernel add"):
        add_set.merge(dropout)


# ---- what is compiled already


def test_from_compiled(recorder, tutorials, x):
    import culaunch.triton as ct

    compiled = ct.native(tutorials.add)[(4,)](x, x, x, 1000, BLOCK=256)
    made = ct.from_compiled(compiled)
    made[(2,)](x, x, x, 1000)
    assert recorder.last.grid == (2, 1, 1)
    assert made.variants[0].keys == ("D", "D", "D", "")


def test_a_constant_needs_no_entry_in_the_signature(tutorials):
    """Triton compiles with and without "constexpr" entries, and so both are taken."""
    import triton
    from triton.backends.compiler import GPUTarget

    import culaunch.triton as ct

    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "output_ptr": "*fp32", "n_elements": "i32"}
    names = tutorials.add.arg_names
    types = dict(zip(names[:4], types.values(), strict=True))
    made = [
        ct.from_compiled(
            triton.compile(
                triton.compiler.ASTSource(tutorials.add, signature, {names[4]: 16}),
                target=GPUTarget("cuda", 80, 32),
            )
        )
        for signature in (types, {**types, names[4]: "constexpr"})
    ]
    assert made[0].variants[0].constants == made[1].variants[0].constants == {names[4]: 16}


def test_from_cache(recorder, tutorials, x, tmp_path):
    import culaunch.triton as ct

    compiled = ct.native(tutorials.add)[(4,)](x, x, x, 1000, BLOCK=256)
    (tmp_path / "add.cubin").write_bytes(compiled.asm["cubin"])
    metadata = {**compiled.metadata._asdict(), "target": vars(compiled.metadata.target)}
    (tmp_path / "add.json").write_text(json.dumps(metadata))
    made = ct.from_cache(tmp_path, FLOATS, names=["x", "y", "out", "n"])
    made[(2,)](x, x, out=x, n=1000)
    assert recorder.last.grid == (2, 1, 1)
    with pytest.raises(cl.ImageError, match=r"the image has \d: \(8, 8, 8, 4, 8"):
        ct.from_cache(tmp_path, "*fp32, *fp32, i32")
    with pytest.raises(FileNotFoundError, match="must hold one kernel"):
        ct.from_cache(tmp_path / "..", FLOATS)
    (tmp_path / "add.json").write_text("{}")
    with pytest.raises(cl.ImageError, match="not the metadata of a Triton kernel"):
        ct.from_cache(tmp_path, FLOATS)
