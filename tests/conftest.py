"""Parts of all tests: capabilities, and the rule that a skip names the missing one.

``@pytest.mark.slow`` keeps a test of half a second or more out of the quick loop (``make check``),
and ``@pytest.mark.sweep(8)`` all but every eighth case of a long table. It also leaves out what
``tests/slow_tests.txt`` lists, which ``tools/find_slow_tests.py`` writes.
``@pytest.mark.gpu``, ``@pytest.mark.multi_gpu`` and ``@pytest.mark.needs("torch", "nvcc")``
skip a test with a reason such as ``needs torch``. Any other reason to skip is a failure. A skip
for a capability in the environment variable ``CULAUNCH_REQUIRE`` (a list with commas, such as
``torch,triton``) is a failure, too. So a test cannot vanish unnoticed.
"""

from __future__ import annotations

import collections
import functools
import gc
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

import culaunch

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

sys.path.insert(0, str(Path(__file__).parent / "shared"))  # shared by several folders
pytest_plugins = ["culaunch._pytest_plugin"]  # the installed wheel brings it by itself
ROOT = Path(__file__).resolve().parents[1]
TOOLS = (
    "c++filt", "clang++", "cmake", "g++", "gcc", "git", "ld", "make", "mpiexec", "ninja", "nm",
    "readelf",
    "rustc",
)  # fmt: skip
# Whole folders that compile C++, build projects or run benchmarks.
SLOW_ROOMS = {ROOT / "tests" / name for name in ("benchmarks", "cmake", "cpp")}
SLOW_TESTS = ROOT / "tests" / "slow_tests.txt"
DRIVER = os.environ.get("CULAUNCH_DRIVER")  # the choice for this run
ROOM_IN_MEMORY = 8 << 30  # a run uses a fraction of it
CUDA_TOOLS = ("compute-sanitizer", "cuobjdump", "nvcc", "nvdisasm")

# Tests share two cores with each other and often with a build: no time limit for one example.
hypothesis.settings.register_profile("culaunch", deadline=None, print_blob=True)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "culaunch")


@functools.cache
def has(capability: str) -> bool:
    """Say whether this machine has ``capability``: a GPU, a tool, or a Python package."""
    if capability == "gpu":
        return gpu_count() > 0
    if capability == "multi_gpu":
        return gpu_count() > 1
    if capability == "root":
        return os.geteuid() == 0
    if capability == "numba-cuda-compiler":  # which some versions of NumPy do not have
        program = "import numba.cuda.np.arrayobj"
        done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
        return done.returncode == 0
    if capability == "CUTLASS_PATH":
        return Path(os.environ.get(capability, "-"), "include", "cute").is_dir()
    # Folders of projects that no index has.
    if capability in ("CULAUNCH_TRITONBENCH", "CULAUNCH_ARRAY_API_TESTS"):
        return Path(os.environ.get(capability, "-")).is_dir()
    if capability == "CULAUNCH_WHOLE_SUITES":  # `make suites` sets it
        return capability in os.environ
    if capability == "nvrtc":
        try:
            culaunch.compile("__global__ void k() {}", arch="compute_80", cache=False)
        except culaunch.MissingDependencyError:
            return False
        return True
    if capability == "installed-wheel":
        return any(importlib.metadata.distributions(name="culaunch"))
    if capability in CUDA_TOOLS:
        return shutil.which(capability) is not None or packaged_cuda_tool(capability) is not None
    if capability == "rustc" and shutil.which(capability):  # rustup's may have no compiler to call
        done = subprocess.run([capability, "--version"], check=False, capture_output=True)
        return done.returncode == 0
    if capability in TOOLS:
        return shutil.which(capability) is not None
    try:
        return importlib.util.find_spec(capability) is not None
    except ModuleNotFoundError:  # a package above it is missing
        return False


@functools.cache
def gpu_count() -> int:
    """Count the GPUs as the driver does: no framework is asked, none need be installed.

    In another process: a test may have loaded a library here that passes for the driver.
    """
    program = (
        "import ctypes; cuda, n = ctypes.CDLL('libcuda.so.1'), ctypes.c_int()\n"
        "print(n.value if cuda.cuInit(0) == cuda.cuDeviceGetCount(ctypes.byref(n)) == 0 else 0)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    return int(answer.stdout or 0)


def packaged_cuda_tool(name: str) -> Path | None:
    """Find a CUDA program in pip's packages (``nvidia/cu13/bin``), which PATH does not have."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for program in sorted(Path(place).glob(f"cu*/bin/{name}")):
            return program
    return None


def reason(capability: str) -> str:
    """Word the reason to skip that goes with a capability."""
    return {"gpu": "needs a GPU", "multi_gpu": "needs two GPUs"}.get(
        capability, f"needs {capability}"
    )


def required() -> set[str]:
    """Read the capabilities that the environment promises for this run."""
    return {name.strip() for name in os.environ.get("CULAUNCH_REQUIRE", "").split(",")} - {""}


@pytest.fixture(scope="session", name="has")
def has_capability() -> Callable[[str], bool]:
    """Return a test that runs either way the function that says what this machine has."""
    return has


@pytest.fixture(scope="session")
def processor_time() -> Callable[..., float]:
    """Return what measures a run: ``processor_time(run, times=4)``, in seconds of processor time.

    It is the shortest of some runs. A fixed piece of work, which takes 5 ms on the machine that
    the limits are for, is timed before and after. On a slower or busy machine the seconds are
    scaled by it. So a limit fails because of culaunch, not because of the machine.
    """

    def best(run: Callable[[], object], times: int) -> float:
        taken = []
        for _ in range(times):
            start = time.process_time()
            run()
            taken.append(time.process_time() - start)
        return min(taken)

    def work() -> None:
        texts = [str(number) for number in range(20_000)]
        table = {text: number for number, text in enumerate(texts)}
        assert sum(table[text] for text in texts) > 0
        for _ in range(4):
            assert bytearray(1 << 20).count(b"x") == 0

    def measure(run: Callable[[], object], times: int = 4) -> float:
        before = best(work, 10)
        shortest = best(run, times)
        return shortest / max(1.0, before / 5e-3, best(work, 10) / 5e-3)

    return measure


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the emulator the driver in use."""
    import culaunch as cl

    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    cl.driver.set_driver("emulator")


@pytest.fixture(scope="session")
def torch() -> Any:
    """Return torch, which only the tests that use it import."""
    return pytest.importorskip("torch", reason="needs torch")


@pytest.fixture(scope="session")
def run_after_torch() -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Return what runs ``python WORDS`` in a process that has imported torch already."""
    from after_torch import AfterTorch

    programs = AfterTorch()
    yield programs.run
    programs.close()


@pytest.fixture(scope="session")
def unoptimized(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the variables by which a program's C++ is compiled without the optimizer.

    That takes half the time. A compiler of its own is needed: the last level counts, and
    culaunch's flags follow those in ``CXX``.
    """
    from runs import alone_in, folder_of_the_run

    if not has("g++"):
        return {}
    folder = folder_of_the_run(tmp_path_factory) / "unoptimized"
    program = folder / "g++"
    with alone_in(folder):
        program.write_text('#!/bin/sh\nexec g++ "$@" -O0 -g0\n')
        program.chmod(0o755)
    return {"CXX": str(program)}


@pytest.fixture(scope="module", autouse=True)
def driver_stays() -> Iterator[None]:
    """Let no file, and no fixture that outlives it, choose the driver of the tests after it."""
    yield
    assert os.environ.get("CULAUNCH_DRIVER") == DRIVER, "a choice of the driver is left behind"


# ---- hooks of pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*capabilities): needs tools or Python packages")
    if missing := sorted(name for name in required() if not has(name)):
        raise pytest.UsageError(f"CULAUNCH_REQUIRE promises what is missing: {', '.join(missing)}")
    if os.environ.get("CULAUNCH_TEST_INSTALLED"):
        spec = importlib.util.find_spec("culaunch")
        where = Path(spec.origin).resolve() if spec and spec.origin else None
        if where is None or ROOT / "src" in where.parents:
            raise pytest.UsageError(f"the installed wheel is to be tested, not {where}")
    # Parsed and decoded kernels are many objects, with little garbage among them. Python's own
    # thresholds cost a tenth of a run.
    gc.set_threshold(20_000, 20, 50)
    if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit the environment
        use_own_folders(config)
        # A process that imports NumPy starts no threads for it.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def use_own_folders(config: pytest.Config) -> None:
    """Let temporary files, and the caches of images and of Triton, go with the run.

    Compilers and frameworks make many, and a program that a test ends by a signal does not remove
    its own. They are in memory if possible. On a disk, each entry of a cache waits for it several
    times. What :func:`tmp_path` gives is there, too, and stays if its test fails.
    """
    memory = folder_in_memory()
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory or tempfile.gettempdir())
    own = tempfile.mkdtemp(prefix="culaunch-tests-", dir=memory)
    os.chmod(own, 0o711)  # for the users that tests become
    config.add_cleanup(lambda: shutil.rmtree(own, ignore_errors=True))
    os.environ["TMPDIR"] = tempfile.tempdir = own
    for name, folder in (("CULAUNCH_CACHE_DIR", "cache"), ("TRITON_CACHE_DIR", "triton")):
        os.environ.setdefault(name, str(Path(own, folder)))


def folder_in_memory() -> str | None:
    """Return a folder in memory that has room for a run and may hold libraries, if there is one.

    ``TMPDIR`` in the environment is a choice, which is kept.
    """
    if "TMPDIR" in os.environ:
        return None
    try:
        room = os.statvfs("/dev/shm")
        with open("/proc/meminfo") as lines:
            memory = dict(line.split(":") for line in lines)
    except OSError:
        return None
    available = int(memory["MemAvailable"].split()[0]) << 10
    if room.f_flag & os.ST_NOEXEC or min(available, room.f_bavail * room.f_frsize) < ROOM_IN_MEMORY:
        return None
    return "/dev/shm"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file that has slow tests only, if none of them runs."""
    has_no_slow_ones = re.fullmatch("not slow( and .*)?", config.option.markexpr)
    return True if has_no_slow_ones and collection_path in SLOW_ROOMS else None


def slow_tests() -> dict[str, int]:
    """Read the test functions that take long, and of how many cases one stays; 0: none stays."""
    lines = SLOW_TESTS.read_text().splitlines()
    rows = [line.partition(" ") for line in lines if line[0] != "#"]
    return {name: int(every or 0) for name, _, every in rows}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    measured = slow_tests()
    cases: collections.Counter[str] = collections.Counter()
    # Of some ten thousand tests in a few hundred files: asked once for each file.
    is_slow = functools.cache(lambda path: not SLOW_ROOMS.isdisjoint(path.parents))
    for item in items:
        sweep = item.get_closest_marker("sweep")
        table = item.nodeid.partition("[")[0]
        if is_slow(item.path) or (sweep and cases[table] % sweep.args[0]):
            item.add_marker("slow")
        every = measured.get(table)
        if every == 0 or (every and cases[table] % every):
            item.add_marker("takes_long")
        cases[table] += 1


class Heap:
    """Freeze the imported modules, such as frameworks, for the garbage collector.

    Tests that collect garbage need not look through it each time, which takes seconds.
    """

    def __init__(self) -> None:
        self._modules = 0

    def freeze(self) -> None:
        """Leave out the current objects from now on, if many of them are new."""
        if len(sys.modules) > self._modules + 100:
            gc.collect()
            gc.freeze()
            self._modules = len(sys.modules)


_HEAP = Heap()


def pytest_collection_finish() -> None:
    _HEAP.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    gc.collect()
    gc.freeze()  # pytest collects twice more, which takes seconds at the end of a long run


def pytest_runtest_setup(item: pytest.Item) -> None:
    _HEAP.freeze()
    wanted = [name for name in ("gpu", "multi_gpu") if item.get_closest_marker(name)]
    wanted += [name for mark in item.iter_markers("needs") for name in mark.args]
    for name in wanted:
        if not has(name):
            pytest.skip(reason(name))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        judge_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        judge_skip(report)
    return report


def judge_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure unless it names a capability that this run may lack."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    named = re.search(
        r"needs (?P<name>[^\s,:;]+( (GPUs?|driver))?)|could not import '(?P<mod>\w+)", text
    )
    if named is None:
        problem = "a skip must name the capability it misses, such as 'needs torch'"
    else:
        name = named["mod"] or named["name"]
        name = {"a GPU": "gpu", "two GPUs": "multi_gpu"}.get(name, name)
        if name not in required():
            return
        problem = f"CULAUNCH_REQUIRE promises {name}, so no test may be skipped for it"
    report.outcome = "failed"
    report.longrepr = f"{problem}; the reason given was: {text.removeprefix('Skipped: ')}"
