"""Launches on a GPU: shared memory, clusters, cooperation, graphs, threads."""

import threading

import numpy as np
import pytest
from gpu_arrays import KIB, int_array
from memory_growth import least_growth, resident_bytes

import culaunch as cl

# Warnings of other frameworks do not matter here.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore", "error:::culaunch")]

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


def test_clusters_that_are_spread(gpu, sm_90):
    sizes, sums = int_array(8), int_array(8)
    gpu["cluster_ranks"].launch(sizes, sums, grid=8, block=64, cluster=4, spread_clusters=True)
    assert sizes.numpy().tolist() == [4] * 8


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
    processors = cl.driver.Device(0).attribute("multiprocessor_count")
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
    # If the first round shows nothing, there is no other.
    assert least_growth(run, 1_000_000, resident_bytes, 4 << 20, rounds=3) < 4 << 20
