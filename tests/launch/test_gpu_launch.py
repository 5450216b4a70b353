"""Launches on a GPU: shared memory, clusters, cooperation, streams, graphs, threads."""

import ctypes
import threading

import numpy as np
import pytest
from memory_growth import least_growth, resident_bytes

import culaunch as cl

# What other frameworks warn of is theirs.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore", "error:::culaunch")]

KIB = 1024


def int_array(count=1):
    return cl.to_device(np.zeros(count, "i4"))


# ---- dynamic shared memory


@pytest.mark.parametrize("kib", [0.25, 48, 49, 64, 96, 99, 100, 128, 163, 200, 227])
def test_dynamic_shared_memory(gpu_image, kib):
    kernel = cl.load(gpu_image)["fill_shared"]  # its own module: nothing is opted in yet
    size = int(kib * KIB)
    most = kernel.attributes().max_dynamic_shared
    out = cl.to_device(np.zeros(1, "u8"))
    if size > most:
        with pytest.raises(cl.LaunchError, match=f"ask for at most {most} of dynamic"):
            kernel[1, 256, size](out, size // 4)
        return
    kernel[1, 256, size](out, size // 4)
    words = size // 4
    assert out.numpy()[0] == words * (words - 1) // 2


def test_one_byte_too_much(gpu):
    kernel = gpu["fill_shared"]
    most = kernel.attributes().max_dynamic_shared
    out = cl.to_device(np.zeros(1, "u8"))
    kernel[1, 256, most](out, most // 4)
    with pytest.raises(cl.LaunchError, match=f"{most + 1} bytes of dynamic shared memory"):
        kernel[1, 256, most + 1](out, 1)
    kernel[1, 256, 1024](out, 256)
    assert out.numpy()[0] == 256 * 255 // 2


# ---- what the driver refuses, explained


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (1, 257, r"the block has 257 threads; this kernel, .* allows at most 256"),
        (1, 2048, r"block x is 2048; this device allows at most 1024"),
        (1, (1, 1, 65), r"block z is 65; this device allows at most 64"),
        (2**31, 1, r"grid x is 2147483648; this device allows at most 2147483647"),
        ((1, 65536), 1, r"grid y is 65536; this device allows at most 65535"),
        ((1, 1, 65536), 1, r"grid z is 65536; this device allows at most 65535"),
    ],
)
def test_a_refused_launch_is_explained(gpu, grid, block, message):
    out = int_array()
    with pytest.raises(cl.LaunchError, match=message) as caught:
        gpu["at_most_256"][grid, block](out)
    assert "cannot launch at_most_256" in str(caught.value)
    gpu["at_most_256"][1, 256](out)  # the context is as good as before
    assert out.numpy()[0] == 256


def test_a_kernel_that_faults_is_not_blamed_on_the_next(gpu_image, in_child, unwatched):
    text = in_child(
        """
        launcher = module["nothing"][1, 1]
        launcher()
        module["poke"][1, 1](16, 1)
        try:
            cl.synchronize()
        except cl.DriverError as error:
            print("first:", error)
        try:
            launcher()
        except cl.DriverError as error:
            print("second:", error)
        """,
        gpu_image,
    )
    assert "first: synchronizing the device failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)" in text
    assert "second: cannot launch nothing with grid (1, 1, 1)" in text
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in text.split("second:")[1]
    assert "An earlier kernel on this device failed with it; this kernel did not run" in text


# ---- clusters, cooperation, programmatic launches


@pytest.mark.parametrize("cluster", [2, 4, (2, 2), 8, 16])
def test_clusters(gpu, sm_90, cluster):
    blocks = int(np.prod(cluster))
    sizes, sums = int_array(128), int_array(128)
    gpu["cluster_ranks"].launch(sizes, sums, grid=128, block=64, cluster=blocks)
    assert (sizes.numpy() == blocks).all()
    firsts = sums.numpy()[::blocks]
    assert (firsts == blocks * (blocks - 1) // 2).all()
    gpu["cluster_ranks"].launch(sizes, sums, grid=(32, 4), block=64, cluster=cluster)
    cl.synchronize()


def test_a_cluster_that_does_not_fit_is_explained(gpu, sm_90):
    sizes, sums = int_array(32), int_array(32)
    with pytest.raises(cl.LaunchError, match="the cluster has 32 blocks"):
        gpu["cluster_ranks"].launch(sizes, sums, grid=32, block=64, cluster=32)


def test_a_kernel_s_own_cluster(gpu, sm_90):
    sizes = int_array(4)
    gpu["own_cluster"][4, 32](sizes)
    assert sizes.numpy().tolist() == [2] * 4
    with pytest.raises(cl.LaunchError, match=r"compiled for \(2, 1, 1\): leave cluster out"):
        gpu["own_cluster"].launch(sizes, grid=4, block=32, cluster=4)


def test_cooperative_grid_synchronisation(gpu):
    kernel = gpu["two_phases"]
    processors = cl.Device(0).attribute("multiprocessor_count")
    blocks = kernel.occupancy(256).active_blocks * processors
    total, out = int_array(), int_array(blocks)
    kernel.launch(total, out, grid=blocks, block=256, cooperative=True)
    assert (out.numpy() == blocks).all()
    with pytest.raises(cl.LaunchError, match=rf"grid has {blocks + 1} blocks; at most {blocks}"):
        kernel.launch(total, out, grid=blocks + 1, block=256, cooperative=True)


def test_programmatic_launches(gpu, sm_90):
    value = int_array()
    launcher = gpu["wait_and_add"].configure(grid=1, block=32, programmatic=True)
    for _ in range(100):
        launcher(value)
    assert value.numpy()[0] == 100


def test_a_priority(gpu):
    value = int_array()
    stream = cl.Stream(priority=-1)
    gpu["add"].launch(value, 3, grid=2, block=2, priority=-1, stream=stream)
    stream.synchronize()
    assert value.numpy()[0] == 12


# ---- streams


@pytest.mark.needs("torch")
def test_the_current_stream_of_torch(gpu):
    import torch

    x, y = torch.zeros(256, device="cuda"), torch.zeros(256, device="cuda")
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)  # long enough for a launch elsewhere to come too early
        x.fill_(2)
        gpu["scale<float>"][1, 256](y, x, 3.0, 256)
    stream.synchronize()
    assert (y == 6).all()


@pytest.mark.needs("cupy")
def test_the_current_stream_of_cupy(gpu):
    import cupy

    x, y = cupy.zeros(256, "f4"), cupy.zeros(256, "f4")
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        gpu["spin"][1, 1, 0, stream](50_000_000)
        x.fill(2)
        gpu["scale<float>"][1, 256](y, x, 3.0, 256)
    stream.synchronize()
    assert (y.get() == 6).all()


def _torch():
    import torch

    return torch.cuda.Stream()


def _cupy():
    import cupy

    return cupy.cuda.Stream(non_blocking=True)


def _numba():
    from numba import cuda

    return cuda.stream()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(cl.Stream, id="culaunch"),
        pytest.param(_torch, id="torch", marks=pytest.mark.needs("torch")),
        pytest.param(_cupy, id="cupy", marks=pytest.mark.needs("cupy")),
        pytest.param(_numba, id="numba", marks=pytest.mark.needs("numba_cuda")),
    ],
)
def test_a_stream_of_every_framework(gpu, make):
    stream = make()
    value = int_array()
    gpu["spin"][1, 1, 0, stream](10_000_000)
    gpu["add"].launch(value, 1, grid=1, block=1, stream=stream)
    gpu["add"][1, 1, 0, stream](value, 1)
    assert gpu["add"][1, 1, 0, stream].stream is stream
    assert value.numpy(stream)[0] == 2


# ---- devices and contexts


def current_context():
    context = ctypes.c_void_p()
    assert ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context)) == 0
    return context.value


def test_a_thread_without_a_context(gpu):
    value, seen = int_array(), []

    def work():
        seen.append(current_context())
        gpu["add"][1, 1](value, 5)
        gpu["add"][1, 1](value.address, 5)
        seen.append(current_context())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [None, None]
    cl.synchronize(0)
    assert value.numpy()[0] == 10


@pytest.mark.needs("torch")
def test_a_stream_says_its_context(gpu):
    """Whatever is current, under capture too; what is current stays."""
    import torch

    libcuda = ctypes.CDLL("libcuda.so.1")
    own = ctypes.c_void_p()
    value = torch.zeros(1, dtype=torch.int32, device="cuda")
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    launcher = gpu["add"][1, 1, 0, stream]
    launcher(value, 1)
    assert libcuda.cuCtxCreate_v2(ctypes.byref(own), 0, 0) == 0
    try:
        for _ in range(2):
            launcher(value, 1)
        assert current_context() == own.value
        assert libcuda.cuCtxPopCurrent_v2(ctypes.byref(own)) == 0
        with torch.cuda.graph(graph, stream=stream):
            assert libcuda.cuCtxPushCurrent_v2(own) == 0
            launcher(value, 10)
            assert current_context() == own.value
            assert libcuda.cuCtxPopCurrent_v2(ctypes.byref(own)) == 0
        graph.replay()
        torch.cuda.synchronize()
        assert value.item() == 13
    finally:
        assert libcuda.cuCtxDestroy_v2(own) == 0


def test_the_default_stream_is_of_the_current_context(gpu):
    """A launch by guess, with a function of the primary context, is refused in another one."""
    libcuda = ctypes.CDLL("libcuda.so.1")
    own, address = ctypes.c_void_p(), ctypes.c_uint64()
    stream, read = ctypes.c_void_p(), ctypes.c_int32()
    for _ in range(3):
        gpu["add"][1, 1](int_array().address, 1)  # in the primary context, by an address alone
    assert libcuda.cuCtxCreate_v2(ctypes.byref(own), 0, 0) == 0
    try:
        # Memory of this context alone: a launch in another one would be an illegal access.
        assert libcuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4)) == 0
        assert libcuda.cuMemsetD32_v2(address, 0, ctypes.c_size_t(1)) == 0
        assert libcuda.cuStreamCreate(ctypes.byref(stream), 0) == 0
        for _ in range(100):
            gpu["add"][1, 1](address.value, 1)
            gpu["add"][1, 1, 0, stream.value](address.value, 1)
            assert libcuda.cuCtxSynchronize() == 0
        assert libcuda.cuMemcpyDtoH_v2(ctypes.byref(read), address, ctypes.c_size_t(4)) == 0
        assert read.value == 200
        assert current_context() == own.value
    finally:
        assert libcuda.cuCtxDestroy_v2(own) == 0


@pytest.mark.multi_gpu
def test_the_default_stream_follows_the_current_device(gpu):
    values = [cl.to_device(np.zeros(1, "i4"), device) for device in (0, 1)]
    for turn in range(200):
        with cl.Device(turn % 2):
            gpu["add"][1, 1](values[turn % 2].address, 1)
    for device, value in enumerate(values):
        cl.synchronize(device)
        assert value.numpy()[0] == 100


@pytest.mark.multi_gpu
@pytest.mark.needs("torch")
def test_a_handle_that_was_of_another_devices_stream(gpu):
    """Destroyed and made again elsewhere, for as long as the driver gives another handle."""
    libcuda = ctypes.CDLL("libcuda.so.1")
    values = [cl.to_device(np.zeros(1, "i4"), device) for device in (0, 1)]
    seen, reused, launches = {}, 0, [0, 0]
    for turn in range(400):
        device = turn % 2
        with cl.Device(device):
            stream = ctypes.c_void_p()
            assert libcuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
            reused += seen.get(stream.value, device) != device
            seen[stream.value] = device
            launches[device] += 1
            gpu["add"][1, 1, 0, stream.value](values[device].address, 1)
            assert libcuda.cuStreamSynchronize(stream) == 0
            assert libcuda.cuStreamDestroy_v2(stream) == 0
    assert [value.numpy()[0] for value in values] == launches
    if not reused:
        pytest.skip("the driver gave no handle to a stream of another device")


@pytest.mark.multi_gpu
@pytest.mark.needs("torch")
def test_a_stream_of_a_device_that_is_not_current(gpu):
    import torch

    value = torch.zeros(1, dtype=torch.int32, device="cuda:1")
    stream, graph = torch.cuda.Stream(1), torch.cuda.CUDAGraph()
    with torch.cuda.device(0):
        launcher = gpu["add"][1, 1, 0, stream]
        for _ in range(3):
            launcher(value, 1)
        assert torch.cuda.current_device() == 0
    torch.cuda.synchronize(1)
    assert value.item() == 3
    with torch.cuda.device(1), torch.cuda.graph(graph, stream=stream), torch.cuda.device(0):
        launcher(value, 10)
    graph.replay()
    torch.cuda.synchronize(1)
    assert value.item() == 13


def test_the_current_context_stays(gpu):
    with cl.Device(0):
        before = current_context()
        assert before
        gpu["add"][1, 1](int_array(), 1)
        assert current_context() == before


@pytest.mark.multi_gpu
@pytest.mark.needs("torch")
def test_a_device_that_is_not_current(gpu):
    import torch

    with torch.cuda.device(0):
        x = torch.arange(256.0, device="cuda:1")
        y = torch.empty_like(x)
        gpu["scale<float>"][1, 256](y, x, 2.0, 256)
        assert torch.cuda.current_device() == 0
        assert torch.equal(y, x * 2)
        other = torch.empty(256, device="cuda:0")
        with pytest.raises(ValueError, match="all arrays of a call must be on one device"):
            gpu["scale<float>"][1, 256](y, other, 2.0, 256)
        with pytest.raises(ValueError, match="but the stream is of device 0"):
            gpu["scale<float>"][1, 256, 0, torch.cuda.Stream(0)](y, x, 2.0, 256)
        big = gpu["fill_shared"]
        out = torch.zeros(1, dtype=torch.int64, device="cuda:1").view(torch.uint64)
        big[1, 256, 64 * KIB](out, 16 * KIB)
        assert out.view(torch.int64).item() == 16 * KIB * (16 * KIB - 1) // 2


@pytest.mark.multi_gpu
def test_device_arrays_of_two_devices(gpu):
    for device in cl.devices():
        x = cl.to_device(np.arange(64, dtype="f4"), device.ordinal)
        y = cl.empty(64, "f4", device=device.ordinal)
        gpu["scale<float>"][1, 64](y, x, 2.0, 64)
        np.testing.assert_array_equal(y.numpy(), 2 * np.arange(64, dtype="f4"))


# ---- graphs


@pytest.mark.needs("torch")
def test_the_first_launch_of_a_kernel_inside_a_capture(gpu_image):
    import torch

    module = cl.load(gpu_image)
    add, fill = module["add"], module["fill_shared"]
    value = torch.zeros(1, dtype=torch.int32, device="cuda")
    total = torch.zeros(1, dtype=torch.int64, device="cuda").view(torch.uint64)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add[2, 32](value, 1)
        fill[1, 256, 64 * KIB](total, 16 * KIB)  # an opt-in too
    torch.cuda.synchronize()
    assert value.item() == 0
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert value.item() == 3 * 64
    assert total.view(torch.int64).item() == 16 * KIB * (16 * KIB - 1) // 2


@pytest.mark.needs("torch")
def test_programmatic_launches_in_a_graph(gpu, sm_90):
    import torch

    value = torch.zeros(1, dtype=torch.int32, device="cuda")
    launcher = gpu["wait_and_add"].configure(grid=1, block=32, programmatic=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            launcher(value)
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    assert value.item() == 20


# ---- threads


@pytest.mark.needs("torch")
def test_two_threads_and_two_streams(gpu):
    import torch

    launcher = gpu["add"][4, 32]
    values = [torch.zeros(1, dtype=torch.int32, device="cuda") for _ in range(2)]
    torch.cuda.synchronize()
    failures = []

    def work(value):
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for i in range(2000):
                    launcher(value, 1)
                    gpu["add"][(i % 20) + 1, 1](value, 1)
            stream.synchronize()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(value,)) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    expected = 2000 * 128 + sum(i % 20 + 1 for i in range(2000))
    assert [value.item() for value in values] == [expected, expected]


def test_a_full_queue_does_not_hold_the_gil(gpu_image, in_child):
    # The queue cannot drain before the callback has run, and that needs the GIL.
    text = in_child(
        """
        import ctypes, time
        cuda = ctypes.CDLL("libcuda.so.1")
        stream = cl.Stream()
        @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        def callback(data):
            for _ in range(50):
                time.sleep(0.01)
            print("callback ran", flush=True)
        handle = ctypes.c_void_p(stream.handle)
        assert cuda.cuLaunchHostFunc(handle, callback, None) == 0
        launcher = module["nothing"][1, 1, 0, stream]
        for _ in range(20_000):
            launcher()
        stream.synchronize()
        print("all ran")
        """,
        gpu_image,
        timeout=300,
    )
    assert text.split("\n")[:2] == ["callback ran", "all ran"]


# ---- a million launches


def test_a_million_launches_take_no_memory(gpu, unwatched):
    value = int_array()
    launcher, kernel = gpu["add"][1, 1], gpu["add"]

    def run(count):
        for i in range(count // 1000):
            for _ in range(500):
                launcher(value, 1)
                kernel[1, 1](value, i)
            cl.synchronize()

    run(50_000)
    # Where the first round shows nothing, there is no other.
    assert least_growth(run, 1_000_000, resident_bytes, 4 << 20, rounds=3) < 4 << 20
