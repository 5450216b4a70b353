"""Kernels that culaunch did not launch, as CUPTI records them."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import culaunch as cl
from culaunch._profile import device_kernels

HERE = Path(__file__).parent
START = """
import ctypes, json, sys
sys.path.insert(0, sys.argv[2])
from recording import the_recorder
import culaunch as cl
from culaunch._base import cuda, nvidia_libraries

nvidia_libraries.pip_folders = lambda *_: [sys.argv[1]]
of, driver = cuda.DeviceAttribute, the_recorder()
driver.devices[0].update({
    of.MAX_THREADS_PER_MULTIPROCESSOR: 2048, of.MAX_BLOCKS_PER_MULTIPROCESSOR: 32,
    of.MAX_REGISTERS_PER_MULTIPROCESSOR: 65536, of.RESERVED_SHARED_MEMORY_PER_BLOCK: 1024,
})
fake = ctypes.CDLL(sys.argv[1] + "/cu13/lib/libcupti.so.13")
add = driver.kernel(4, name="_Z3addi")[2, 64, 128]
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory, has):
    """Return a folder like pip's ``nvidia``, with a CUPTI that tells what a test wants."""
    for name in ("g++", "nvidia.cu13"):
        if not has(name):
            pytest.skip(f"needs {name}")
    (place,) = importlib.util.find_spec("nvidia.cu13").submodule_search_locations
    if not (Path(place) / "include" / "cupti.h").exists():
        pytest.skip("needs cupti.h")
    root = tmp_path_factory.mktemp("nvidia")
    lib = root / "cu13" / "lib"
    lib.mkdir(parents=True)
    command = ["g++", "-shared", "-fPIC", "-isystem", Path(place) / "include"]
    subprocess.run([*command, "-o", lib / "libcupti.so.13", HERE / "fake_cupti.cpp"], check=True)
    return root


def run(root, program):
    command = [sys.executable, "-c", START + program, root, HERE.parent / "launch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_all_kernels_are_listed_with_their_times(root):
    found = run(root, """
fake.ran(b"before", 1, 32, 0, 8, 0, 1000)
with cl.profile.launches(others=True) as profile:
    fake.ran(b"_Z4gemmPf", 8, 256, 1024, 40, 1000, 5000)
    add(1)
    fake.ran(b"_Z3addi", 2, 64, 128, 16, 2000, 3000)
    fake.ran(b"_Z4gemmPf", 8, 256, 1024, 40, 9000, 7000)
fake.ran(b"after", 1, 32, 0, 8, 0, 1000)
print(profile.to_json())
assert "gemm(float*)" in str(profile)
assert "gemm(float*)" in profile._repr_html_()
""")  # fmt: skip
    gemm, add = found["kernels"]
    assert (gemm["name"], gemm["calls"]) == ("gemm(float*)", 2)
    assert gemm["device_times"] == pytest.approx([0.005, 0.007])
    assert (gemm["host_times"], gemm["host_time"]) == ([], None)
    assert (gemm["registers"], gemm["shared_memory"], gemm["static_shared"]) == (40, 1024, 48)
    assert gemm["local_bytes"] == 16
    # 256 threads of 40 registers: 6 blocks of an H100 (65,536 registers), limited by them.
    assert (gemm["active_blocks"], gemm["limited_by"]) == (6, ["registers"])
    # A launch of culaunch's has CUPTI's time, and its own facts.
    assert (add["name"], add["calls"]) == ("add(int)", 1)
    assert add["device_times"] == pytest.approx([0.003])
    assert len(add["host_times"]) == 1
    names = [one["name"] for one in found["launches"]]
    assert names == ["gemm(float*)", "add(int)", "gemm(float*)"]
    assert [one["thread"] for one in found["launches"]] == ["", "MainThread", ""]
    assert [one["stream"] for one in found["launches"]] == [7, 7, 7]


def test_a_kernel_that_both_launch_is_one_row(root):
    found = run(root, """
with cl.profile.launches(others=True) as profile:
    fake.ran(b"_Z3addi", 2, 64, 128, 16, 0, 1000)
    add(1)
    fake.ran(b"_Z3addi", 2, 64, 128, 16, 1000, 3000)
print(profile.to_json())
""")  # fmt: skip
    (row,) = found["kernels"]
    assert (row["calls"], len(row["host_times"])) == (2, 1)
    theirs, ours = found["launches"]
    # It began before culaunch's call, so it is another's.
    assert (theirs["host_time"], theirs["device_time"]) == (None, pytest.approx(0.001))
    assert ours["device_time"] == pytest.approx(0.003)


def test_launches_are_listed_as_the_device_ran_them(root):
    """Not as they were called: other kernels that waited in the queue ran before."""
    found = run(root, """
with cl.profile.launches(others=True) as profile:
    fake.ran(b"first", 1, 32, 0, 8, 50_000_000, 1000)
    add(1)
    fake.ran(b"_Z3addi", 2, 64, 128, 16, 60_000_000, 1000)
    fake.ran(b"last", 1, 32, 0, 8, 70_000_000, 1000)
print(profile.to_json())
""")  # fmt: skip
    assert [one["name"] for one in found["launches"]] == ["first", "add(int)", "last"]
    assert found["launches"][1]["begin"] < found["launches"][0]["device_begin"]


def test_a_launch_without_a_record_keeps_its_own_time(root):
    found = run(root, """
driver.elapsed = [0.5, 0.0]
fake.drop(0)
with cl.profile.launches(others=True) as profile:
    add(1)
    fake.ran(b"other", 1, 32, 0, 8, 0, 1000)
    fake.drop(3)
print(profile.to_json())
""")  # fmt: skip
    times = {one["name"]: one["device_time"] for one in found["launches"]}
    assert times == {"add(int)": 0.5, "other": pytest.approx(0.001)}
    assert found["omitted"] == 3


def test_many_launches_of_one_kernel_are_matched_in_order(root):
    """In time that grows with their number, not with its square."""
    found = run(root, """
import time
from culaunch._profile.device_kernels import DeviceKernel, Recording
from culaunch.profile import Launch

count, size = 50_000, (1, 1, 1)
recording = Recording(0, (0, 0, 0))
recording.kernels = [
    DeviceKernel("k", size, size, 0, 7, 8, 0, 0, 0, 1000 * i + 500, 1000 * i + 500 + i % 7)
    for i in range(count)
]
own = [Launch("k", "k", size, size, 0, 0, 0, "t", i / 1000, 0.0, "timed") for i in range(count)]
start = time.process_time()
pairs = recording.complete(own)
assert time.process_time() - start < 20
print(json.dumps([
    len(pairs), [round(1e6 * launch.device_time) for launch, _ in pairs] == [
        i % 7 for i in range(count)
    ],
]))
""")  # fmt: skip
    assert found == [50_000, True]


def test_blocks_within_each_other(root):
    found = run(root, """
with cl.profile.launches(others=True) as outer:
    fake.ran(b"first", 1, 32, 0, 8, 0, 1000)
    with cl.profile.launches(others=True) as inner:
        fake.ran(b"second", 1, 32, 0, 8, 0, 1000)
    with cl.profile.launches() as own:
        fake.ran(b"third", 1, 32, 0, 8, 0, 1000)
print(json.dumps([sorted(row.name for row in one.kernels) for one in (outer, inner, own)]))
""")  # fmt: skip
    assert found == [["first", "second", "third"], ["second"], []]


def test_another_profiler_is_named(root):
    found = run(root, """
fake.refuse(39)
try:
    with cl.profile.launches(others=True):
        raise AssertionError("it began")
except cl.InternalError as error:
    said = str(error)
# Nothing is left behind.
fake.refuse(0)
with cl.profile.launches(others=True) as profile:
    fake.ran(b"first", 1, 32, 0, 8, 0, 1000)
print(json.dumps([said, len(profile.launches)]))
""")  # fmt: skip
    assert "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED. Only one profiler" in found[0]
    assert found[1] == 1


def test_without_cupti(driver, monkeypatch):
    def nowhere():
        raise cl.MissingDependencyError("CUPTI cannot be loaded: it is nowhere")

    monkeypatch.setattr(device_kernels, "start_device_kernels", nowhere)
    with (
        pytest.raises(cl.MissingDependencyError, match="pip install nvidia-cuda-cupti"),
        cl.profile.launches(others=True),
    ):
        pytest.fail("it began")
    with pytest.raises(TypeError, match="others must be"), cl.profile.launches(others=1):
        pytest.fail("it began")


def test_on_the_emulator_only_culaunch_launches(emulated, array):
    from profiled_kernels import add_kernel

    kernel = add_kernel()
    with cl.profile.launches(others=True) as profile:
        kernel[1, 1](array, 1)
    assert [row.name for row in profile.kernels] == ["add"]


@pytest.mark.gpu
@pytest.mark.needs("torch", "nvrtc")
def test_torchs_kernels_are_listed_beside_culaunchs():
    import torch

    source = (
        'extern "C" __global__ void scale(float* x) { x[blockIdx.x * 256 + threadIdx.x] *= 2; }'
    )
    scale = cl.load(cl.compile(source))["scale"][1 << 14, 256]
    x = torch.randn(1 << 11, 1 << 11, device="cuda")
    scale(x)
    torch.softmax(x, -1)
    torch.cuda.synchronize()
    with cl.profile.launches(others=True) as profile:
        for _ in range(5):
            torch.softmax(x, -1)
            scale(x)
    (softmax,) = [row for row in profile.kernels if "softmax" in row.name.lower()]
    (own,) = [row for row in profile.kernels if row.name == "scale"]
    assert len(profile.kernels) == 2
    assert softmax.calls == own.calls == 5
    assert softmax.host_times == ()
    assert len(own.host_times) == 5
    # 16 MB are read and written: between the memory's bandwidth and a hundredth of it.
    for row in (softmax, own):
        assert 0.001 < row.device_time < 0.5
    # Each kernel begins after the one before it.
    begins = [one.device_begin for one in profile.launches]
    assert begins == sorted(begins)
    assert all(begin is not None for begin in begins)
