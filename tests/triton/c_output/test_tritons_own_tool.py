"""Triton's ahead-of-time tool is what the C output is held against: the same launches of both."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sets import cuda_include

pytestmark = [pytest.mark.needs("triton", "torch", "gcc", "g++"), pytest.mark.slow]

TYPES = "*fp32:16, *fp32:16, *fp32:16, {n}"
BLOCKS = (128, 256)

MAIN = """
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include "ours.h"
#include "theirs.h"
int fake_driver_declare(const char *name, int count, const size_t *sizes);
static void show(unsigned x, unsigned y, unsigned z, unsigned block, unsigned shared, void **args) {
  unsigned long long a = *(CUdeviceptr *)args[0], b = *(CUdeviceptr *)args[1];
  unsigned long long c = *(CUdeviceptr *)args[2];
  printf("%u %u %u %u %u %llu %llu %llu %d\\n", x, y, z, block, shared, a, b, c, *(int *)args[3]);
}
CUresult __wrap_cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, CUstream stream,
                               void **args, void **extra) {
  (void)f, (void)by, (void)bz, (void)stream, (void)extra;
  show(x, y, z, bx, shared, args);
  return CUDA_SUCCESS;
}
CUresult __wrap_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **args,
                                 void **extra) {
  (void)f, (void)extra;
  show(config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
       config->sharedMemBytes, args);
  return CUDA_SUCCESS;
}
CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config) {
  (void)f, (void)config;
  return CUDA_SUCCESS;
}
int main(int count, char **arguments) {
  const size_t sizes[] = {8, 8, 8, 4, 8, 8};
  CUcontext context;
  (void)arguments;
  fake_driver_declare("add", 6, sizes);
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  for (int n = 16; n < 5000; n += 496) {
    for (int which = 0; which < 3; ++which) {
      if (which == 2) {
        const CUresult code = count == 1 ? ours_default(NULL, 16, 32, 48, n)
                                         : theirs_default(NULL, 16, 32, 48, n);
        if (code != CUDA_SUCCESS) return 1;
      } else if (count == 1) {
        const ours_config config = {.BLOCK = which == 0 ? 128 : 256};
        if (ours(NULL, &config, 16, 32, 48, n) != CUDA_SUCCESS) return 1;
      } else if (theirs(NULL, 16, 32, 48, n, which) != CUDA_SUCCESS) {
        return 1;
      }
    }
  }
  return 0;
}
"""


def tritons_own(folder):
    """Compile and link as the tool does, for an H100 that is not there."""
    from triton.backends.nvidia import driver as nvidia
    from triton.tools import compile as tool

    from culaunch._triton.upstream.target import StandIn, standing_in

    if not hasattr(tool, "compile_kernel"):
        pytest.skip("the tool of this version is a program alone")
    stand_in = StandIn("sm_90a", (9, 0))
    stand_in.map_python_to_cpp_type = nvidia.ty_to_cpp
    headers = []
    with standing_in(stand_in):
        for block in BLOCKS:
            _, files = tool.compile_kernel(tool.CompileArgs(
                path=str(Path(__file__).parents[1] / "shared" / "tutorials.py"), kernel_name="add",
                signature=TYPES.format(n="i32") + f", {block}",
                grid=f"(n + {block - 1}) / {block}, 1, 1", num_warps=4, num_stages=3,
                out_name="theirs", out_path=folder / f"theirs_{block}",
            ))  # fmt: skip
            headers += [str(one) for one in files if one.suffix == ".h"]
    subprocess.run(
        [sys.executable, "-m", "triton.tools.link", *headers, "-o", folder / "theirs"], check=True
    )
    return [folder / "theirs.c", *folder.glob("theirs_*.c")]


def test_both_launch_the_same(tmp_path):
    import tutorials

    from culaunch.triton import compile  # noqa: A004

    sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
    from overhead.build import build_null_driver

    driver = build_null_driver()
    made = compile(
        tutorials.add, TYPES.format(n="i32"), arch="sm_90a", grid="cdiv(n, BLOCK)",
        configs=[{"BLOCK": block} for block in BLOCKS],
    )  # fmt: skip
    source, *_ = made.write_c(tmp_path / "ours.c", name="ours")
    theirs = tritons_own(tmp_path)
    (tmp_path / "main.c").write_text(MAIN)
    subprocess.run(
        ["gcc", "-std=gnu11", "-w", "-o", tmp_path / "main", tmp_path / "main.c", source, *theirs,
         f"-I{cuda_include()}", f"-I{tmp_path}", driver, "-lm", "-lpthread",
         "-Wl,--wrap=cuLaunchKernel,--wrap=cuLaunchKernelEx", f"-Wl,-rpath,{driver.parent}"],
        check=True,
    )  # fmt: skip
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver.parent)}
    said = [
        subprocess.run([tmp_path / "main", *more], capture_output=True, text=True, check=True,
                       env=environment).stdout.splitlines()
        for more in ((), ("theirs",))
    ]  # fmt: skip
    assert said[0] == said[1]
    assert len(said[0]) == 33
