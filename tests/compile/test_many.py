"""``compile_many``: order, errors, progress, executors."""

import concurrent.futures
import math
import multiprocessing
import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest
from terminals import shown_on_a_terminal

import culaunch as cl


def sources(count):
    return [f"__global__ void k{number}() {{}}" for number in range(count)]


def names(images):
    return [image.kernels[0].demangled for image in images]


def test_order_is_that_of_the_requests(cache):
    images = cl.compiling.compile_many(sources(6), jobs=3, arch="sm_80", cache=cache)
    assert names(images) == [f"k{number}()" for number in range(6)]
    assert cl.compiling.compile_many([], arch="sm_80") == []


def test_a_requests_own_arguments_win(cache, tmp_path):
    (tmp_path / "two.cu").write_text("__global__ void two() {}")
    requests = [
        {"source": "template <class T> __global__ void one() {}", "names": ["one<int>"]},
        tmp_path / "two.cu",
        {"source": "__global__ void three() {}", "arch": "sm_90"},
    ]
    one, two, three = cl.compiling.compile_many(requests, arch="sm_80", cache=cache)
    assert one.names == {"one<int>": "_Z3oneIiEvv"}
    assert names([two]) == ["two()"]
    assert (two.arch, three.arch) == (("sm_80",), ("sm_90",))


def test_the_same_request_is_compiled_once(cache):
    images = cl.compiling.compile_many(sources(1) * 8, jobs=4, arch="sm_80", cache=cache)
    assert len(set(map(id, images))) == 8
    assert len({image.data for image in images}) == 1
    assert cache.info().entries == 1


def test_progress(cache):
    seen = []
    start = time.monotonic()
    cl.compiling.compile_many(
        sources(4), jobs=2, arch="sm_80", cache=cache, progress=lambda *a: seen.append(a)
    )
    assert [(now.done, now.total, now.failed) for (now,) in seen] == [
        (number, 4, 0) for number in (1, 2, 3, 4)
    ]
    elapsed = [now.elapsed for (now,) in seen]
    assert 0 < elapsed[0] <= elapsed[1] <= elapsed[2] <= elapsed[3] <= time.monotonic() - start
    assert seen[3][0].remaining == 0
    assert math.isnan(cl.compiling.Progress(0, 4, 0, 0.0).remaining)
    assert cl.compiling.Progress(1, 4, 0, 2.0).remaining == 6.0


def test_progress_counts_failures(cache):
    seen = []
    requests = ["oops;", *sources(1)]
    cl.compiling.compile_many(
        requests, jobs=1, arch="sm_80", cache=cache, progress=seen.append, return_exceptions=True
    )
    assert [(now.done, now.failed) for now in seen] == [(1, 1), (2, 1)]


SHOWN = """
import culaunch as cl
from culaunch._base import waiting
waiting._EVERY = 0.001
sources = [f"__global__ void k{i}() {{}}" for i in range(3)]
print(len(cl.compiling.compile_many([*sources, "oops;"], jobs=1, arch="sm_80", cache=False,
                                    progress=True, return_exceptions=True)))
"""


def test_progress_is_a_line_on_a_terminal():
    text = shown_on_a_terminal([sys.executable, "-c", SHOWN])
    assert "compiling 0 of 4, 0 s" in text
    assert "compiling 3 of 4, about " in text
    assert text.endswith("\x1b[K4\r\n")


def test_progress_is_nothing_elsewhere():
    done = subprocess.run([sys.executable, "-c", SHOWN], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("4\n", "")


def test_the_first_failure_is_raised(cache):
    requests = [*sources(2), "__global__ void k() { oops }"]
    with pytest.raises(cl.CompileError, match=r"request 2 of compile_many .a text.: .*oops"):
        cl.compiling.compile_many(requests, jobs=2, arch="sm_80", cache=cache)


def test_a_failure_says_which_request_it_was(cache, tmp_path):
    (tmp_path / "bad.cu").write_text("oops;")
    requests = ["oops;", tmp_path / "bad.cu", {"source": "oops;", "name": "mine.cu"}]
    for index, shown in enumerate(["a text", tmp_path / "bad.cu", "mine.cu"]):
        chosen = [requests[index] if n == index else sources(3)[n] for n in range(3)]
        with pytest.raises(cl.CompileError) as info:
            cl.compiling.compile_many(chosen, arch="sm_80", cache=cache)
        assert str(info.value).startswith(f"request {index} of compile_many ({shown}): ")
        assert "oops" in info.value.log
    with pytest.raises(ValueError, match=r"request 1 of compile_many \(a text\): std must|arch"):
        cl.compiling.compile_many([sources(1)[0], {"source": "x;", "arch": "sm_1"}], arch="sm_80")
    if sys.version_info >= (3, 11):  # which has notes
        with pytest.raises(FileNotFoundError) as missing:
            cl.compiling.compile_many(["nowhere.cu"], arch="sm_80", cache=cache)
        assert missing.value.__notes__ == ["in request 0 of compile_many (nowhere.cu)"]


def test_the_others_are_not_lost_to_a_failure(cache):
    requests = [*sources(2), "oops;", *sources(4)[3:], "oops again;"]
    found = cl.compiling.compile_many(requests, arch="sm_80", cache=cache, return_exceptions=True)
    assert [isinstance(one, cl.Image) for one in found] == [True, True, False, True, False]
    assert str(found[2]).startswith("request 2 of compile_many (a text), and 1 more failed: ")
    assert cache.info().entries == 3, "and another call finds them"


class Elsewhere(concurrent.futures.Executor):
    """A worker in another directory, and how many bytes go there."""

    def __init__(self, directory):
        self.directory = directory
        self.bytes = []

    def submit(self, function, message):
        self.bytes.append(len(message))
        future = concurrent.futures.Future()
        here = os.getcwd()
        os.chdir(self.directory)
        try:
            future.set_result(function(message))
        finally:
            os.chdir(here)
        return future


def test_paths_mean_the_same_on_every_worker(cache, tmp_path, monkeypatch):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "two.h").write_text("#define NAME two")
    (tmp_path / "k.cu").write_text('#include "two.h"\n__global__ void NAME() {}')
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    executor = Elsewhere(tmp_path / "elsewhere")
    found = cl.compiling.compile_many(
        [pathlib.Path("k.cu")], executor=executor, include_dirs=["include"], arch="sm_80",
        cache=cache,
    )  # fmt: skip
    assert names(found) == ["two()"]


@pytest.mark.slow
@pytest.mark.parametrize("size", [4000, 5000])
def test_what_is_large_crosses_once(cache, tmp_path, size):
    # Random, or a worker that other tests had would know it.
    headers = {"big.h": f"// {os.urandom(50_000).hex()}\n"}
    source = '#include "big.h"\n__global__ void k() {}\n'
    source += f"// {os.urandom(size).hex()}"[: size - len(source)]
    executor = Elsewhere(tmp_path)
    requests = [{"source": source, "defines": {"N": n}} for n in range(20)]
    cl.compiling.compile_many(
        requests, executor=executor, headers=headers, arch="sm_80", cache=cache
    )
    with_headers = [one for one in executor.bytes if one > 100_000]
    without = [one for one in executor.bytes if one < 100_000]
    assert len(with_headers) == 1
    # Several requests go in one message; a text of 4,096 characters and more is in none of them.
    assert max(without) < 20 * 600 if size > 4096 else min(without) > size


@pytest.mark.slow
def test_a_process_pool(cache):
    # Images and requests cross to other processes and back.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        images = cl.compiling.compile_many(sources(3), executor=pool, arch="sm_80", cache=cache)
    assert names(images) == ["k0()", "k1()", "k2()"]
    assert cache.info().entries == 3


def test_mistakes(cache):
    with pytest.raises(ValueError, match="jobs must be a positive int"):
        cl.compiling.compile_many(sources(1), jobs=0)
    for requests in (None, "text;", {"source": "text;"}, 3, [3], [None]):
        with pytest.raises(TypeError, match=r"requests must (be a list of|contain only) sources"):
            cl.compiling.compile_many(requests)
    for keyword in ("progress", "return_exceptions"):
        with pytest.raises(TypeError, match=f"{keyword} must be True"):
            cl.compiling.compile_many([], **{keyword: "no"})
    with pytest.raises(ValueError, match="must have 'source'"):
        cl.compiling.compile_many([{"arch": "sm_80"}])
    with (
        concurrent.futures.ThreadPoolExecutor(1) as pool,
        pytest.raises(ValueError, match="not both"),
    ):
        cl.compiling.compile_many(sources(1), jobs=1, executor=pool)


@pytest.mark.slow
def test_other_threads_go_on_while_one_compiles(cache):
    source = "#include <cub/block/block_reduce.cuh>\n__global__ void k() {}"
    done = threading.Event()

    def work():
        cl.compile(source, arch="sm_80", cache=cache)
        done.set()

    thread = threading.Thread(target=work)
    start = time.process_time()
    thread.start()
    ticks = 0
    while not done.is_set():
        time.sleep(0.005)
        ticks += 1
    thread.join()
    took = time.process_time() - start
    # With the GIL held there would be next to none. Processor time: on a shared machine there is
    # less of it in each tick.
    assert ticks > took / 0.005 / 5


@pytest.mark.slow
def test_the_places_of_libraries_are_set_while_others_search():
    """Each thread says where pip's packages are, and no other one sees half of an answer."""
    from culaunch._base.cuda_places import pip_folders
    from culaunch._core import library_place, set_pip_folders

    folders, ended = pip_folders(""), threading.Event()

    def choose():
        while not ended.is_set():
            set_pip_folders(["/nowhere" + "x" * 200] * 50 + folders)
            set_pip_folders(folders)

    threads = [threading.Thread(target=choose) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # otherwise each search waits 10 ms for the other threads
    for thread in threads:
        thread.start()
    try:
        places = {library_place("nvFatbin") for _ in range(2000)}
    finally:
        sys.setswitchinterval(interval)
        ended.set()
        for thread in threads:
            thread.join()
        set_pip_folders(folders)
    assert len(places) == 1
