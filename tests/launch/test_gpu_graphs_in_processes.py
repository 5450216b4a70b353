"""Launches as graphs on a GPU, in processes of their own: loading, memory, faults, fork, exit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.needs("torch")]

HEAD = """
import culaunch as cl
import torch
cl.graph.set_graphs(True)
torch.zeros(1, device="cuda")

def load(text):
    return cl.load(cl.compile(text, arch="native"))
"""


@pytest.fixture
def run(tmp_path):
    """Run code in a process of its own; give its exit code, output and errors."""

    def run(code, timeout=300, before=(), **environment):
        path = tmp_path / "program.py"
        path.write_text(HEAD + textwrap.dedent(code))
        done = subprocess.run(
            [*before, sys.executable, str(path)],
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **environment},
        )
        return done.returncode, done.stdout, done.stderr

    return run


ADD = """
add = load('extern "C" __global__ void add(int* x, int n) { atomicAdd(x, n); }')["add"]
x = torch.zeros(1, dtype=torch.int32, device="cuda")
launcher = add[1, 1]
for i in range(10):
    launcher(x, 1)
torch.cuda.synchronize()
assert cl.graph.graph_status().count == 1
"""


@pytest.mark.parametrize("loading", ["LAZY", "EAGER"])
def test_lazy_and_eager_loading(run, loading):
    code, _, errors = run(ADD + "assert int(x) == 10", CUDA_MODULE_LOADING=loading)
    assert code == 0, errors


def test_memory_that_a_kernel_allocates(run):
    code, _, errors = run("""
    kernel = load('''extern "C" __global__ void keep(int** place, int n) {
        if (*place == nullptr) *place = static_cast<int*>(malloc(1024));
        **place = (n == 0 ? 0 : **place) + n;
    }
    extern "C" __global__ void read(int** place, int* out) { *out = **place; free(*place); }''')
    place = torch.zeros(1, dtype=torch.int64, device="cuda")
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    keep = kernel["keep"][1, 1]
    for i in range(20):
        keep(place.data_ptr(), i)
    kernel["read"][1, 1](place.data_ptr(), out)
    assert int(out) == sum(range(20))
    assert cl.graph.graph_status().count == 1
    """)
    assert code == 0, errors


def test_a_kernel_that_launches_another(run):
    code, output, errors = run("""
    from cuda.pathfinder import StaticLibNotFoundError, find_static_lib
    try:
        library = find_static_lib("cudadevrt")
    except StaticLibNotFoundError:
        raise SystemExit("no libcudadevrt")
    image = cl.compile('''__global__ void child(int* x, int n) { atomicAdd(x, n); }
    extern "C" __global__ void parent(int* x, int n) { child<<<1, 4>>>(x, n); }''',
                       arch="native", relocatable=True)
    parent = cl.load(cl.link([image, library])).kernel("parent", signature="int* x, int n")
    x = torch.zeros(1, dtype=torch.int32, device="cuda")
    launcher = parent[1, 1]
    for i in range(20):
        launcher(x, i)
    torch.cuda.synchronize()
    assert int(x) == 4 * sum(range(20)), int(x)
    print(cl.graph.graph_status().count)
    """)
    if "no libcudadevrt" in errors:
        pytest.skip("needs libcudadevrt")
    assert code == 0, errors
    assert output == "1\n"


def test_an_assertion_of_a_kernel_is_that_of_a_plain_launch(run, unwatched):
    program = """
    kernel = load('extern "C" __global__ void check(int n) { assert(n < 5); }')["check"]
    cl.graph.set_graphs(MODE)
    launcher = kernel[1, 1]
    try:
        for i in range(8):
            launcher(i)
            torch.cuda.synchronize()
    except Exception as error:
        print(i, type(error).__name__)
    try:
        launcher(0)
    except cl.CulaunchError as error:
        print(type(error).__name__, str(error))
    """
    graph, plain = (run(program.replace("MODE", mode)) for mode in ("True", "False"))
    assert graph[:2] == plain[:2]
    assert graph[1].startswith("5 ")
    assert "check" in graph[1]
    assert "n < 5" in graph[1] + graph[2]


def test_a_fork_after_graphs(run):
    """CUDA is of no use in the child; it ends all the same, and the parent goes on."""
    code, _, errors = run(
        ADD
        + """
import os
child = os.fork()
if child == 0:
    del launcher, add
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
child = os.fork()
if child == 0:
    raise SystemExit(0)  # with all that runs at exit
assert os.waitpid(child, 0)[1] == 0
for i in range(10):
    launcher(x, 1)
assert int(x) == 20
"""
    )
    assert code == 0, errors


def test_exit_while_graphs_are_under_way(run):
    code, _, errors = run(
        ADD
        + """
import threading, time
spin = load('extern "C" __global__ void spin(long long n) { long long t = clock64();'
            'while (clock64() - t < n); }')["spin"]

def work():
    launcher = spin[1, 1, 0, cl.Stream()]
    while True:
        launcher(100_000)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)  # The streams are full: a launch waits in the driver, behind those of the threads.
for i in range(20):
    launcher(x, 1)
"""
    )
    assert code == 0, errors


def test_a_million_calls_hold_no_memory_of_the_host(run, unwatched):
    code, _, errors = run(
        ADD
        + """
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

for i in range(100_000):
    launcher(x, 0)
torch.cuda.synchronize()
before = resident()
for i in range(1_000_000):
    launcher(x, i & 1)
torch.cuda.synchronize()
assert resident() - before < 4 << 20, resident() - before
assert int(x) == 500_010
"""
    )
    assert code == 0, errors


def test_profilers_see_each_kernel_by_its_name(run):
    code, _, errors = run("""
    module = load('extern "C" __global__ void one(int* x, int n) { x[0] += n; }'
                  'extern "C" __global__ void two(int* x, int n) { x[0] += n; }')
    one, two = module["one"], module["two"]
    x = torch.zeros(1, dtype=torch.int32, device="cuda")

    @cl.function
    def both(x, n: int):
        one[1, 1](x, n)
        two[1, 1](x, n)

    launcher = one[1, 1]
    for i in range(5):
        launcher(x, i)
        both(x, i)
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for i in range(3):
            launcher(x, i)
            both(x, i)
        torch.cuda.synchronize()
    counts = {event.key: event.count for event in seen.key_averages()}
    assert counts.get("one") == 6 and counts.get("two") == 3, counts
    """)
    assert code == 0, errors


def test_under_mps(run, tmp_path):
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None:
        pytest.skip("needs nvidia-cuda-mps-control")
    places = {
        "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path / "pipe"),
        "CUDA_MPS_LOG_DIRECTORY": str(tmp_path / "log"),
    }
    for path in places.values():
        os.mkdir(path)
    environment = {**os.environ, **places}
    subprocess.run([control, "-d"], check=True, env=environment, timeout=60)
    try:
        code, _, errors = run(ADD + "assert int(x) == 10", **places)
        assert code == 0, errors
    finally:
        subprocess.run([control], input="quit\n", text=True, check=False, env=environment,
                       timeout=120)  # fmt: skip
