"""Ahead-of-time compilation, the set that it gives, its file, and what it becomes in C."""

import ctypes
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("triton", "torch")

FLOATS = "*fp32:16, *fp32:16, *fp32:16, i32"
HALVES = "*fp16:16, *fp16:16, *fp16:16, i32:16"


@pytest.fixture(scope="module")
def tutorials():
    import tutorials

    return tutorials


@pytest.fixture
def add_set(compiled_set):
    """A set that has met no driver yet: it keeps the one that it meets first."""
    import culaunch.triton as ct

    one = compiled_set
    return ct.KernelSet(one.name, one.parameters, one.variants, one.read)


@pytest.fixture(scope="module")
def compiled_set(tutorials):
    """Two signatures, two configurations, two architectures."""
    import culaunch.triton as ct

    return ct.compile(
        tutorials.add, [FLOATS, HALVES], arch=["sm_80", "sm_90a"],
        configs=[{"BLOCK": 256}, {"BLOCK": 512, "num_warps": 8}], keep_ptx=True,
    )  # fmt: skip


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
        ("float, *fp32, *fp32, i32", {}, ValueError, "'float' in the signature is no type"),
        ("*fp32:8, *fp32, *fp32, i32", {}, ValueError, "only :16"),
        ("fp32:16, *fp32, *fp32, i32", {}, ValueError, "only :16"),
        ("*fp32, *fp32, *fp32, 7", {}, ValueError, "only 1 and None are folded"),
        ("(i32, *fp32, *fp32, i32", {}, ValueError, "does not close"),
        (FLOATS, {"constants": {"NO": 1}}, ValueError, "has no parameter NO"),
        (FLOATS, {"arch": "90"}, ValueError, "arch must be such as"),
        (FLOATS, {"arch": []}, ValueError, "must not be empty"),
        (FLOATS, {"constants": {"BLOCK": 3}}, cl.CompileError, "cannot compile add for sm_80"),
    ],
)
def test_refused(tutorials, signature, options, error, words):
    import culaunch.triton as ct

    options = {"arch": "sm_80", "constants": {"BLOCK": 256}, **options}
    with pytest.raises(error, match=words):
        ct.compile(tutorials.add, signature, **options)


def test_what_is_no_kernel(tutorials):
    import culaunch.triton as ct

    with pytest.raises(TypeError, match=r"what @triton\.jit makes"):
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
    assert "it is for sm_80; the device is sm_90" in message
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


def test_a_thousand_variants_cost_no_more(add_set, tmp_path, recorder, x):
    from dataclasses import replace

    import culaunch.triton as ct

    one = add_set.variants[1]
    many = [replace(one, constants={"BLOCK": 2 * i}) for i in range(1000)]
    many.append(one)
    whole = ct.KernelSet(add_set.name, add_set.parameters, many, add_set.read)
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
    with pytest.raises(cl.KernelNotFoundError, match="'other' was asked for; it has add"):
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
    with pytest.raises(cl.ImageError, match="no metadata of a Triton kernel"):
        ct.from_cache(tmp_path, FLOATS)


def test_an_unknown_newer_triton(tutorials):
    """Its kernels load if their parameters are as expected, else the error says so."""
    from dataclasses import replace

    from culaunch._triton.launch_facts import LaunchFacts
    from culaunch._triton.parameter_sources import parameter_sources

    facts = LaunchFacts("k", "3.12.0")
    sizes = [(0, 8), (8, 4), (16, 8), (24, 8)]
    assert len(parameter_sources(["*fp32", "i32"], facts, sizes)) == 4
    with pytest.raises(cl.ImageError, match=r"newer than the newest that culaunch knows, 3\.9"):
        parameter_sources(["*fp32", "i32"], facts, [*sizes, (32, 8)])
    with pytest.raises(cl.ImageError, match="has 2"):
        parameter_sources(["*fp32", "i32"], replace(facts, triton_version="3.6.0"), sizes[:2])
    assert (
        len(parameter_sources(["*fp32", "i32"], replace(facts, triton_version="3.2.0"), sizes[:2]))
        == 2
    )


# ---- C


@pytest.mark.needs("gcc")
def test_c(add_set, tmp_path):
    """The C that is written compiles without a warning, and launches what Python does."""
    names = compile_c(add_set, tmp_path, "add")
    header = (tmp_path / "add.h").read_text()
    assert "int64_t n);" in header
    assert {"add_fp32", "add_fp16"} <= set(names)


@pytest.mark.needs("gcc")
def test_c_types_and_tuned_table(tutorials, tmp_path):
    import culaunch.triton as ct

    tuner = tutorials.autotuned()
    types = ["torch.float16"] * 3
    tuner.cache[(64, 64, 64, *types)], tuner.cache[(1024, 64, 64, *types)] = tutorials.CONFIGS
    signature = "*fp16:16, *fp16:16, *fp16:16, i32, i32, i32, i32, i32:1, i32, i32:1, i32, i32:1"
    made = ct.compile(tuner, signature, arch="sm_90a", constants={"ACTIVATION": ""})
    compile_c(made, tmp_path, "matmul")
    header = (tmp_path / "matmul.h").read_text()
    assert "matmul_body_choose(int64_t M, int64_t N, int64_t K)" in header
    assert "int64_t stride_ak" in header  # though every variant folds it
    dropout = ct.compile(tutorials.dropout, "*fp32:16, *fp32:16, i32, fp32, i32", arch="sm_90a",
                         constants={"BLOCK": 128})  # fmt: skip
    compile_c(dropout, tmp_path, "dropout")
    header = (tmp_path / "dropout.h").read_text()
    assert "float p, int64_t seed" in header
    assert "#define DROPOUT_BLOCK 128" in header


@pytest.mark.needs("gcc", "g++")
def test_c_launches(add_set, tmp_path):
    """Run it against the benchmarks' null driver, which counts launches."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    from overhead.build import build_null_driver

    driver = build_null_driver()
    compile_c(add_set, tmp_path, "add")
    (tmp_path / "main.c").write_text(
        """
#include <stdio.h>
#include "add.h"
uint64_t fake_driver_launches(void);
int fake_driver_declare(const char *name, int count, const size_t *sizes);
int main(void) {
  const size_t sizes[] = {8, 8, 8, 4, 8, 8};
  fake_driver_declare("add", 6, sizes);
  cuInit(0);
  CUcontext context;
  int none = add_fp32(NULL, 1, 1, 1, NULL, 16, 16, 16, 5);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  add_config config = {512, 8}, wrong = {1, 1};
  int first = add_fp32(NULL, 4, 1, 1, NULL, 16, 32, 48, 5);
  int second = add_fp32(NULL, 4, 1, 1, &config, 16, 32, 48, 5);
  int unfit = add_fp32(NULL, 4, 1, 1, &wrong, 16, 32, 48, 5);
  int unaligned = add_fp16(NULL, 4, 1, 1, NULL, 16, 32, 48, 5);
  int empty = add_fp16(NULL, 0, 1, 1, NULL, 16, 32, 48, 5);
  printf("%d %d %d %d %d %d %d\\n", none, first, second, unfit, unaligned, empty,
         (int)fake_driver_launches());
  return 0;
}
"""
    )
    program = tmp_path / "main"
    subprocess.run(
        ["gcc", "-std=gnu99", f"-I{cuda_include()}", "-o", program, tmp_path / "main.c",
         tmp_path / "add.c", driver, "-lm", "-lpthread", f"-Wl,-rpath,{driver.parent}"], check=True,
    )  # fmt: skip
    # LD_LIBRARY_PATH would come before the program's own path, with the real driver.
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver.parent)}
    done = subprocess.run([program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["201", "0", "0", "1", "1", "0", "2"]


def cuda_include():
    import importlib.util

    for place in importlib.util.find_spec("nvidia").submodule_search_locations:
        for header in Path(place).glob("**/cuda.h"):
            return header.parent
    pytest.fail("no cuda.h")


def compile_c(kernels, folder, name):
    source, header = kernels.write_c(folder / name)
    assert header.exists()
    library = folder / f"{name}.so"
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{cuda_include()}"]
    compiler = ["gcc", "-std=gnu99", *flags, "-shared", "-fPIC"]
    subprocess.run([*compiler, "-o", library, source, "-lm"], check=True)
    (folder / "use.cc").write_text(f'#include "{name}.h"\n')
    subprocess.run(["g++", "-c", *flags, "-o", os.devnull, folder / "use.cc"], check=True)
    with library.open("rb") as stream:
        symbols = stream.read()
    assert ctypes.sizeof(ctypes.c_void_p) == 8
    return [one for one in ("add_fp32", "add_fp16") if one.encode() in symbols]


# ---- the command


def test_command(tmp_path):
    from click.testing import CliRunner

    import culaunch.triton as ct
    from culaunch.cli.triton import command

    file = Path(__file__).parent / "tutorials.py"
    library = tmp_path / "add.culib"
    done = CliRunner().invoke(
        command,
        [f"{file}:add", "--signature", FLOATS, "--arch", "sm_80,compute_80", "--constant",
         "BLOCK=128", "--num-warps", "8", "-o", str(library),
         "--c-output", str(tmp_path / "add.c")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "compute_80" in done.output
    loaded = ct.KernelSet.load(library)
    assert len(loaded) == 2
    assert loaded.variants[0].facts.num_warps == 8
    assert (tmp_path / "add.h").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x.py:k", "--signature", "i32", "--arch", "sm_80"], "name an output"),
        (["x.py", "--signature", "i32", "--arch", "sm_80", "-o", "k.culib"], "FILE.py:KERNEL"),
        (["x.py:k", "--signature", "i32", "--arch", "sm_80", "-o", "k"], "x.py is no Python file"),
        (
            [f"{__file__}:cl", "--signature", "", "--arch", "a", "-o", "k", "--constant", "3"],
            "NAME=VA",
        ),
    ],
)
def test_command_refuses(words, message, tmp_path, monkeypatch):
    from click.testing import CliRunner

    from culaunch.cli.triton import command

    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 2
    assert message in done.output
