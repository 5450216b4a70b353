"""Memory of another process, or of another device, as an argument: CUDA's IPC and peers on GPUs."""

import ctypes
import os
import subprocess
import sys

import pytest

import culaunch as cl

pytestmark = [
    pytest.mark.needs("numpy", "nvrtc"),
    # Warnings of other frameworks do not matter here.
    pytest.mark.filterwarnings("ignore", "error:::culaunch"),
]

SOURCE = """
extern "C" __global__ void add(float* y, const float* x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += factor * x[i];
}"""

# Another process reads a tensor that was sent to it, and then writes to it.
OF_TORCH = """
import sys, pickle
import torch
import culaunch as cl

device = torch.device(sys.argv[2])
if device.type == "cuda":
    torch.cuda.set_device(device)
theirs = pickle.load(sys.stdin.buffer)
add = cl.load(sys.argv[1])["add"]
n = theirs.numel()
mine = torch.ones(n, device=device)
before = theirs.to(device)

if theirs.device != device:
    try:
        add[cl.ceildiv(n, 256), 256](mine, theirs, 2.0, n)
    except ValueError as error:
        assert "on one device" in str(error)
    else:
        raise AssertionError("another device's memory was taken without a word")
    sys.exit()  # peers do not see what was opened on another device: see peer_array

def wait():
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.synchronize(theirs.device)

wait()
add[cl.ceildiv(n, 256), 256](mine, theirs, 2.0, n)
wait()
assert torch.equal(mine, 1 + 2 * before)
add[cl.ceildiv(n, 256), 256](theirs, mine, 1.0, n)
wait()
"""

# The same without a framework: a handle of the driver's, opened while a device is current.
OF_DRIVER = """
import ctypes, sys
import numpy as np
import culaunch as cl

class Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_ubyte * 64)]

class Array:
    def __init__(self, address, n):
        self.__cuda_array_interface__ = {
            "data": (address, False), "shape": (n,), "typestr": "<f4", "version": 3
        }

ordinal, n = int(sys.argv[2]), int(sys.argv[3])
handle = Handle.from_buffer_copy(sys.stdin.buffer.read())
add = cl.load(sys.argv[1])["add"]
mine = cl.to_device(np.ones(n, np.float32), device=ordinal)
libcuda = ctypes.CDLL("libcuda.so.1")
libcuda.cuIpcOpenMemHandle_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), Handle, ctypes.c_uint]
libcuda.cuIpcCloseMemHandle.argtypes = [ctypes.c_uint64]
theirs = ctypes.c_uint64()
with cl.driver.Device(ordinal):
    code = libcuda.cuIpcOpenMemHandle_v2(ctypes.byref(theirs), handle, 1)  # with peer access
    assert code == 0, f"cuIpcOpenMemHandle: {code}"
    add[cl.ceildiv(n, 256), 256](mine, theirs.value, 2.0, n)
    cl.synchronize(ordinal)
    assert (mine.numpy() == 1 + 2 * np.arange(n, dtype=np.float32)).all()
    argument = Array(theirs.value, n) if ordinal == 0 else theirs.value
    add[cl.ceildiv(n, 256), 256](argument, mine, 1.0, n)
    cl.synchronize(ordinal)
    assert libcuda.cuIpcCloseMemHandle(theirs) == 0
"""


@pytest.fixture
def add(tmp_path, has):
    """Compile the kernel for the GPU that is here, or for the emulated driver; return its file."""
    path = tmp_path / "add.image"
    path.write_bytes(cl.compile(SOURCE, arch="native" if has("gpu") else "compute_80").data)
    return path


def in_another_process(program, given, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        check=False,
        input=bytes(given),
        capture_output=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.slow
@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("cpu", "cpu"),
        pytest.param("cuda:0", "cuda:0", marks=pytest.mark.gpu),
        pytest.param("cuda:0", "cuda:1", marks=pytest.mark.multi_gpu),
    ],
)
def test_a_tensor_of_another_process(add, here, there):
    from multiprocessing.reduction import ForkingPickler

    import torch
    import torch.multiprocessing  # which teaches the pickler tensors

    whole = torch.arange(5000, dtype=torch.float32, device=here)
    part = whole[1000:4000]  # the handle is the whole's, and the tensor begins inside
    strategy = torch.multiprocessing.get_sharing_strategy()
    # Memory of the host by its name: a descriptor would have to be fetched from this process.
    torch.multiprocessing.set_sharing_strategy("file_system")
    try:
        given = ForkingPickler.dumps(part)
    finally:
        torch.multiprocessing.set_sharing_strategy(strategy)
    if here == "cpu":
        in_another_process(OF_TORCH, given, add, there, CULAUNCH_DRIVER="emulator")
    else:
        torch.cuda.synchronize()
        in_another_process(OF_TORCH, given, add, there)
        torch.cuda.synchronize()
    expected = torch.arange(5000, dtype=torch.float32)
    if here == there:
        expected[1000:4000] = 3 * expected[1000:4000] + 1
    assert torch.equal(whole.cpu(), expected)


@pytest.mark.parametrize(
    "there",
    [pytest.param(0, marks=pytest.mark.gpu), pytest.param(1, marks=pytest.mark.multi_gpu)],
)
def test_memory_of_another_process_by_its_handle(add, there):
    import numpy as np

    n = 1 << 20  # so much that the driver gives it an allocation of its own, whose start is shared
    array = cl.to_device(np.arange(n, dtype=np.float32), device=0)
    handle = (ctypes.c_ubyte * 64)()
    libcuda = ctypes.CDLL("libcuda.so.1")
    libcuda.cuIpcGetMemHandle.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    with cl.driver.Device(0):
        assert libcuda.cuIpcGetMemHandle(handle, array.address) == 0
    in_another_process(OF_DRIVER, handle, add, there, n)
    np.testing.assert_array_equal(array.numpy(), 1 + 3 * np.arange(n, dtype=np.float32))


@pytest.mark.multi_gpu
@pytest.mark.needs("torch")
def test_a_tensor_of_another_device(add):
    import torch

    kernel = cl.load(add)["add"]
    x = torch.arange(1000, dtype=torch.float32, device="cuda:1")
    y = torch.ones(1000, device="cuda:0")
    torch.cuda.synchronize(1)
    with pytest.raises(ValueError, match="all arrays of a call must be on one device"):
        kernel[4, 256](y, x, 1.0, 1000)
    there = cl.arguments.peer_array(x, 0)

    @cl.function(mutates=["y"])
    def add_to(y: cl.Array("float32", "n"), x: cl.Array("float32", "n"), factor: float):
        kernel[cl.ceildiv(y.size, 256), 256](y, x, factor, y.size)

    for current in (0, 1):
        with torch.cuda.device(current):
            kernel[4, 256](y, there, 1.0, 1000)
            add_to(y, torch.from_dlpack(there), 10.0)  # one framework for all arrays
            assert torch.cuda.current_device() == current
    torch.cuda.synchronize(0)
    assert torch.equal(y, 1 + 22 * torch.arange(1000, dtype=torch.float32, device="cuda:0"))
    # Written to, as well, which its own device sees.
    kernel[4, 256](there, y, 1.0, 1000)
    torch.cuda.synchronize(0)
    assert x[10].item() == 10 + y[10].item() == 10 + 221
