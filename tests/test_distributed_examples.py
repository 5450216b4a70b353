"""The examples of several processes and devices; without GPUs on gloo and the emulated driver."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import culaunch as cl

EXAMPLES = Path(__file__).parents[1] / "examples" / "distributed"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node")

pytestmark = pytest.mark.slow


# Multicast over NVLink is not what these are about, and where GPUs are shared it may not be used.
WITHOUT_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}


def run(tmp_path, *command, **more):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CULAUNCH_CACHE_DIR": str(tmp_path / "c")}
    environment |= WITHOUT_MULTICAST
    environment["PYTHONUNBUFFERED"] = ""  # else a line's end is written apart, after another rank's
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        check=False,
        cwd=tmp_path,
        env={**environment, **more},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.needs("torch")
def test_a_kernel_between_all_reduces(tmp_path, has):
    emulated = {} if has("multi_gpu") else {"CUDA_VISIBLE_DEVICES": ""}
    said = run(tmp_path, *TORCHRUN, "2", EXAMPLES / "overlap.py", **emulated)
    assert sorted(line[:11] for line in said.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    assert cl.cache.Cache(tmp_path / "c").info().entries == 1


@pytest.mark.gpu
@pytest.mark.needs("torch")
def test_one_rank_alone(tmp_path):
    said = run(tmp_path, *TORCHRUN, "1", EXAMPLES / "overlap.py")
    assert said == "rank 0 of 1: 4 buckets on cuda:0\n"


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    "ranks",
    [pytest.param(1, marks=pytest.mark.gpu), pytest.param(2, marks=pytest.mark.multi_gpu)],
)
def test_a_neighbours_memory_is_an_argument(ranks, tmp_path):
    """With one rank, its own memory is the neighbor's: this needs no second GPU."""
    said = run(tmp_path, *TORCHRUN, ranks, EXAMPLES / "symmetric_memory.py")
    assert sorted(said.splitlines()) == [
        f"rank {rank}: read 100000 elements of rank {(rank + 1) % ranks}" for rank in range(ranks)
    ]


@pytest.mark.parametrize(
    "name", ["all_devices", pytest.param("jax_shard_map", marks=pytest.mark.needs("jax"))]
)
def test_one_process(name, tmp_path, has):
    driver = {} if has("gpu") else {"CULAUNCH_DRIVER": "emulator"}
    said = run(tmp_path, "-W", "error", EXAMPLES / f"{name}.py", **driver)
    assert "devices" in said


@pytest.mark.multi_gpu
def test_all_devices_are_used(tmp_path):
    assert not run(tmp_path, EXAMPLES / "all_devices.py").startswith(("0 ", "1 "))


RANK = """
import os, sys
import culaunch as cl
from culaunch._compile import compilation
build = compilation._build
def noted(*args):
    with open(sys.argv[1], "a") as file:
        file.write("compiled\\n")
    return build(*args)
compilation._build = noted
while not os.path.exists(sys.argv[2]):
    pass
image = cl.compile("__global__ void k(float* x) { *x = 1; }", arch="sm_80")
assert len(image.kernels) == 1
"""


@pytest.mark.needs("nvrtc")
def test_ranks_of_a_node_compile_once(tmp_path):
    start, log = tmp_path / "start", tmp_path / "log"
    environment = {**os.environ, "CULAUNCH_CACHE_DIR": str(tmp_path / "cache")}
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK, str(log), str(start)], env=environment)
        for _ in range(8)
    ]
    start.touch()
    assert [rank.wait(120) for rank in ranks] == [0] * 8
    assert log.read_text() == "compiled\n"
