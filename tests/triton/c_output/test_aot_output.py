"""C output of sets that were compiled ahead of time, and the command that makes one."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sets import FLOATS, cuda_include

pytestmark = pytest.mark.needs("triton", "torch")


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


@pytest.mark.slow
@pytest.mark.needs("gcc", "g++")
def test_c_launches(add_set, tmp_path):
    """Run it against the benchmarks' null driver, which counts launches."""
    sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
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


def test_command(tmp_path):
    from click.testing import CliRunner

    import culaunch.triton as ct
    from culaunch.cli.triton import command

    file = Path(__file__).parents[1] / "shared" / "tutorials.py"
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
        (
            ["x.py:k", "--signature", "i32", "--arch", "sm_80", "-o", "k"],
            "x.py is not a Python file",
        ),
        (
            [
                f"{__file__}:subprocess",
                "--signature",
                "",
                "--arch",
                "a",
                "-o",
                "k",
                "--constant",
                "3",
            ],
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
