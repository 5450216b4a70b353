"""Launches as executable graphs on a GPU: what must be as with plain launches."""

import ctypes
import threading

import numpy as np
import pytest

import culaunch as cl

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.needs("torch"),
    pytest.mark.filterwarnings("ignore", "error:::culaunch"),
]


@pytest.fixture(autouse=True)
def from_the_first_call(monkeypatch):
    monkeypatch.setenv("CULAUNCH_GRAPHS", "auto")
    cl.graph.set_graphs(True)
    yield
    cl.graph.set_graphs("auto", limit=256)


@pytest.fixture
def torch():
    import torch

    torch.zeros(1, device="cuda")
    return torch


@pytest.fixture
def scale(gpu):
    return gpu["scale<float>"][1, 256]


def test_results_are_those_of_plain_launches(torch, scale):
    x = torch.randn(256, device="cuda")
    y = [torch.zeros(256, device="cuda") for _ in range(50)]
    for i in range(50):
        scale(y[i], x, 1.0 + i / 7, 256)
    assert cl.graph.graph_status().count >= 1
    cl.graph.set_graphs(False)
    for i in range(50):
        plain = torch.zeros(256, device="cuda")
        scale(plain, x, 1.0 + i / 7, 256)
        assert torch.equal(plain, y[i])


@pytest.mark.parametrize("make", ["own", "legacy", "default"])
def test_the_order_of_a_stream(torch, gpu, scale, make):
    x, y = torch.zeros(256, device="cuda"), torch.zeros(256, device="cuda")
    stream = torch.cuda.Stream() if make == "own" else torch.cuda.default_stream()
    for i in range(1, 20):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000)
            x.fill_(i)
            scale(y, x, 3.0, 256)
            z = y + 1
        stream.synchronize()
        assert (z == 3 * i + 1).all()


def test_the_per_thread_streams_of_threads(torch, gpu):
    kernel = gpu["add"]
    totals = [torch.zeros(1, dtype=torch.int32, device="cuda") for _ in range(8)]
    torch.cuda.synchronize()
    failures = []

    def run(total):
        try:
            torch.cuda.set_device(0)
            launcher = kernel[1, 1, 0, 2]  # CU_STREAM_PER_THREAD
            for i in range(500):
                launcher(total, i)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in totals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert not failures
    assert [int(one) for one in totals] == [sum(range(500))] * 8


def test_threads_on_one_stream(torch, gpu):
    total = torch.zeros(1, dtype=torch.int32, device="cuda")
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    launcher = gpu["add"][1, 1, 0, stream]
    threads = [
        threading.Thread(target=lambda: [launcher(total, i) for i in range(500)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert int(total) == 8 * sum(range(500))


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_a_capture_has_plain_nodes_and_is_left_alone(torch, gpu, scale, mode):
    x, y = torch.ones(256, device="cuda"), torch.zeros(256, device="cuda")
    other, z = torch.cuda.Stream(), torch.zeros(256, device="cuda")
    for _ in range(3):
        scale(y, x, 2.0, 256)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    elsewhere = gpu["scale<float>"][1, 256, 0, other]
    with torch.cuda.graph(graph, capture_error_mode=mode):
        scale(y, x, 5.0, 256)
        scale(y, y, 7.0, 256)
        for i in range(4):  # on another stream, where a graph is made meanwhile
            elsewhere(z, x, float(i), 256)
    driver = ctypes.CDLL("libcuda.so.1")
    count = ctypes.c_size_t()
    raw = ctypes.c_void_p(graph.raw_cuda_graph())
    assert driver.cuGraphGetNodes(raw, None, ctypes.byref(count)) == 0
    nodes = (ctypes.c_void_p * count.value)()
    assert driver.cuGraphGetNodes(raw, nodes, ctypes.byref(count)) == 0
    kinds = []
    for node in nodes:
        kind = ctypes.c_int(-1)
        assert driver.cuGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind)) == 0
        kinds.append(kind.value)
    assert kinds == [0, 0]
    torch.cuda.synchronize()
    assert (z == 3).all()
    graph.instantiate()
    graph.replay()
    torch.cuda.synchronize()
    assert (y == 35).all()


def test_a_stream_of_a_green_context_is_launched_on_plainly(torch, gpu):
    driver = ctypes.CDLL("libcuda.so.1")
    if not hasattr(driver, "cuGreenCtxStreamCreate"):
        pytest.skip("needs green-contexts")
    resource, part, rest = ((ctypes.c_ubyte * 144)() for _ in range(3))
    count, desc, green = ctypes.c_uint(1), ctypes.c_void_p(), ctypes.c_void_p()
    stream = ctypes.c_void_p()
    assert driver.cuDeviceGetDevResource(0, resource, 1) == 0
    assert driver.cuDevSmResourceSplitByCount(
        part, ctypes.byref(count), resource, rest, 0, 16
    ) == 0  # fmt: skip
    assert driver.cuDevResourceGenerateDesc(ctypes.byref(desc), part, 1) == 0
    assert driver.cuGreenCtxCreate(ctypes.byref(green), desc, 0, 1) == 0
    assert driver.cuGreenCtxStreamCreate(ctypes.byref(stream), green, 1, 0) == 0
    before = cl.graph.graph_status().count
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    launcher = gpu["add"][1, 1, 0, stream.value]
    for i in range(20):
        launcher(out, i)
    assert driver.cuStreamSynchronize(stream) == 0
    assert int(out) == sum(range(20))
    assert cl.graph.graph_status().count == before


def test_a_module_goes_while_its_graph_is_under_way(torch, gpu_image):
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    before = cl.graph.graph_status().count
    for _ in range(5):
        with cl.load(gpu_image) as module:
            for i in range(5):
                module["spin"][1, 1](1_000_000)
                module["add"][1, 1](out, i)
            torch.cuda.synchronize()
        assert cl.graph.graph_status().count == before
    assert int(out) == 50


def test_what_a_kernel_prints(in_child, gpu_image):
    code = """
    cl.graph.set_graphs(True)
    import torch
    kernel = cl.load(cl.compile(
        'extern "C" __global__ void say(int i) { printf("%d;", i); }', arch="native"))["say"]
    torch.zeros(1, device="cuda")
    for i in range(4):
        kernel[1, 1](i)
    torch.cuda.synchronize()
    assert cl.graph.graph_status().count == 1
    """
    assert in_child(code, gpu_image).strip() == "0;1;2;3;"


def test_a_fault_names_the_kernel_as_a_plain_launch_does(in_child, gpu_image, unwatched):
    code = """
    import torch
    x = torch.zeros(1, dtype=torch.int32, device="cuda")
    poke = module["poke"][1, 1]
    for mode in MODES:
        cl.graph.set_graphs(mode)
    for _ in range(3):
        poke(x, 1)
    torch.cuda.synchronize()
    poke(8, 1)
    try:
        torch.cuda.synchronize()
    except Exception:
        pass
    try:
        poke(x, 1)
    except cl.CulaunchError as error:
        print(type(error).__name__, str(error).replace(str(x.data_ptr()), "X"))
    """
    said = [in_child(code.replace("MODES", modes), gpu_image) for modes in ("[True]", "[False]")]
    assert said[0] == said[1]
    assert "poke" in said[0]


def test_calls_without_number_hold_no_memory(in_child, gpu_image, unwatched):
    """In a process of its own; other tests of this run have memory of the same device."""
    code = """
    import torch
    cl.graph.set_graphs(True)
    scale = module["scale<float>"][1, 256]
    x, y = torch.ones(256, device="cuda"), torch.zeros(256, device="cuda")

    def free():
        return torch.cuda.mem_get_info()[0]

    def run(count):
        for i in range(count):
            scale(y, x, float(i), 256)
        torch.cuda.synchronize()

    run(1000)
    graphs = cl.graph.graph_status().count
    rise = []
    for _ in range(5):
        before = free()
        run(200_000)
        rise.append(before - free())
    assert (y == 199_999).all()
    assert cl.graph.graph_status().count == graphs
    # Memory of another test may come in one look, not in all of them.
    assert min(rise) <= 1 << 20, rise
    """
    in_child(code, gpu_image)


def test_a_function_of_several_launches(torch, gpu):
    add, scale = gpu["add"], gpu["scale<float>"]

    @cl.function
    def both(x, total, n: int):
        y = cl.empty_like(x)
        scale[1, 256](y, x, 2.0, n)
        z = cl.empty_like(x)
        scale[1, 256](z, y, 3.0, n)
        add[1, 1](total, n)
        return z

    x = torch.randn(256, device="cuda")
    total = torch.zeros(1, dtype=torch.int32, device="cuda")
    kept = []
    for n in [256] * 10 + [100, 200] * 5:
        kept.append((n, both(x, total, n)))
    torch.cuda.synchronize()
    for n, z in kept:
        assert torch.equal(z[:n], x[:n] * 2 * 3)
    assert int(total) == 256 * 10 + 300 * 5


def test_arrays_of_numpy_that_were_copied(torch, scale):
    x = cl.to_device(np.arange(256, dtype="f4"))
    y = cl.empty(256, "float32")
    for i in range(5):
        scale(y, x, float(i), 256)
    assert np.array_equal(y.numpy(), 4 * np.arange(256.0))
