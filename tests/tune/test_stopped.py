"""Tunings that are stopped, configurations that fail or give something wrong, files that lie."""

import json
import subprocess
import sys

import numpy as np
import pytest

import culaunch as cl
from culaunch._tune import candidate, contest, unfinished
from culaunch.profile import Timing

HEAD = '"format": "culaunch tuned configurations", "version": 1'


@pytest.fixture
def on_the_emulator():
    with cl.testing.use_driver("emulator"):
        yield


PROGRAM = """
import os, signal, sys
import numpy as np
import culaunch as cl

cl.driver.set_driver("emulator")
kernel = cl.load(cl.compile('extern "C" __global__ void k(float* x) { x[threadIdx.x] += 1; }'))["k"]
table = cl.tuning.TunedConfigs(sys.argv[1])
x = cl.to_device(np.zeros(96, "f4"))
called = []

def run(x, block):
    called.append(block)
    kernel[1, block](x)

def stop(tuning):
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)

configs = [{"block": block} for block in (32, 64, 96)]
tuning = cl.tuning.tune(run, configs, (x,), table=table, progress=stop)
print(called, [trial.instructions for trial in tuning.trials], tuning.best)
"""


@pytest.mark.slow
def test_a_tuning_that_was_killed_goes_on(tmp_path):
    path = tmp_path / "t.json"

    def run(how):
        words = [sys.executable, "-c", PROGRAM, path, how]
        return subprocess.run(words, text=True, capture_output=True, check=False)

    assert run("kill").returncode == -9
    (kept,) = json.loads(path.read_text())["unfinished"]
    assert kept["trials"][0] > 0
    assert kept["trials"][1:] == [None, None]
    done = run("go on")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[64, 96, 64, 96] [")
    assert done.stdout.endswith("{'block': 32}\n")
    assert f"[{kept['trials'][0]}, " in done.stdout
    content = json.loads(path.read_text())
    assert "unfinished" not in content
    assert content["entries"][0]["config"] == {"block": 32}


def test_times_of_a_gpu_go_on_too(monkeypatch):
    """A completed configuration gets no more runs; the others get the rest."""

    def timed(bound, *args, repeat, warmup, **options):
        assert repeat > 0
        return Timing("run", "device", (1.0 + 0.1 * len(trials[0].times),) * repeat)

    monkeypatch.setattr(contest, "benchmark", timed)
    trials = [cl.tuning.Trial({"slow": 1}), cl.tuning.Trial({"slow": 2})]
    first = cl.tuning.Tuning(
        "run", "device", (8,), "0", [cl.tuning.Trial({}, [1.0] * 8), cl.tuning.Trial({}, [1.5, 2])]
    )
    entry = unfinished.checked_unfinished(
        json.loads(json.dumps(unfinished.unfinished_entry(first)))
    )
    unfinished.resume(cl.tuning.Tuning("run", "device", (8,), "0", trials), entry)
    assert [len(trial.times) for trial in trials] == [8, 2]
    with cl.testing.use_driver("emulator"):
        call = candidate.caller_of(lambda slow: slow, None)
        rounds = contest.Contest(call, (), trials, 8, flush=True, stream=None).rounds()
        assert [*zip(range(2), rounds, strict=False)] == [(0, False), (1, True)]
    assert [len(trial.times) for trial in trials] == [8, 8]


@pytest.mark.gpu
def test_a_tuning_on_a_gpu_goes_on(tmp_path):
    """Runs from before the stop count, and the result is looked up."""
    kernel = cl.load(
        cl.compile('extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 3; }')
    )["fill"]
    x = cl.to_device(np.zeros(1024, "f4"))
    configs = [{"grid": 1, "block": block} for block in (32, 256, 1024)]

    def stop(_):
        raise KeyboardInterrupt

    path = tmp_path / "t.json"
    with pytest.raises(KeyboardInterrupt):
        cl.tuning.tune(
            kernel, configs, (x,), key=(1,), table=cl.tuning.TunedConfigs(path), progress=stop
        )
    (kept,) = json.loads(path.read_text())["unfinished"]
    assert [len(times) for times in kept["trials"]] == [5, 5, 5]
    table = cl.tuning.TunedConfigs(path)
    tuning = cl.tuning.tune(kernel, configs, (x,), key=(1,), table=table, repeat=20)
    for trial, times in zip(tuning.trials, kept["trials"], strict=True):
        assert trial.times[:5] == times
        assert len(trial.times) >= 10
    assert cl.tuning.TunedConfigs(path)[1] == tuning.best
    assert "unfinished" not in json.loads(path.read_text())


def test_whatever_a_configuration_raises_is_its_own(on_the_emulator):
    def run(x, how):
        if how != "well":
            raise {"value": ValueError, "compiler": RuntimeError, "type": TypeError}[how]("no")

    tuning = cl.tuning.tune(run, [{"how": one} for one in ("value", "compiler", "well")], (1,))
    assert [type(trial.error) for trial in tuning.trials] == [ValueError, RuntimeError, type(None)]
    assert tuning.best == {"how": "well"}
    with pytest.raises(RuntimeError, match="no"):
        cl.tuning.tune(run, [{"how": "compiler"}, {"how": "value"}], (1,))
    with pytest.raises(TypeError, match="no"):  # how it is called is wrong
        cl.tuning.tune(run, [{"how": "well"}, {"how": "type"}], (1,))


@pytest.mark.needs("triton", "torch")
def test_what_triton_cannot_compile_is_not_chosen(on_the_emulator):
    import torch
    from tuned_kernels import scale

    from culaunch.triton import native

    x = torch.ones(64)
    configs = [{"BLOCK": 63}, {"BLOCK": 64}]
    for kernel in (native(scale), scale):  # Triton's own object, too
        tuning = cl.tuning.tune(kernel, configs, (x, 64), grid=(1,))
        assert "power of 2" in str(tuning.trials[0].error)
        assert tuning.best == {"BLOCK": 64}
        assert tuning.name == "scale"


def test_a_result_that_is_wrong_is_not_chosen(on_the_emulator):
    kernel = cl.load(
        cl.compile("""
extern "C" __global__ void fill(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 3; }
""")
    )["fill"]
    x = cl.testing.to_driver(np.zeros(64, "f4"))

    def right(result):
        assert result is None
        found = cl.testing.from_driver(x).tolist()
        x[:] = 0
        return found == [3] * 64

    def precise(result):
        np.testing.assert_allclose(cl.testing.from_driver(x), 4)

    configs = [{"grid": 1, "block": 32}, {"grid": 1, "block": 64}]
    tuning = cl.tuning.tune(kernel, configs, (x, 64), check=right)
    assert "check rejected the result" in str(tuning.trials[0].error)
    assert tuning.best == configs[1]
    with pytest.raises(AssertionError, match="Mismatched elements"):
        cl.tuning.tune(kernel, configs, (x, 64), check=precise)
    with pytest.raises(TypeError, match="check must be a callable"):
        cl.tuning.tune(kernel, configs, (x, 64), check=3)


def test_the_emulator_stops_in_time(on_the_emulator):
    tuning = cl.tuning.tune(lambda n: None, [{"n": n} for n in range(9)], seconds=1e-9)
    assert [trial.instructions for trial in tuning.trials] == [0] + [None] * 8
    assert tuning.best == {"n": 0}


def entry(**more):
    plain = {"name": "a", "device": "d", "digest": "", "unit": "ms", "value": 1, "config": {},
             "key": []}  # fmt: skip
    return json.dumps({**plain, **more})


def stopped(**more):
    return json.dumps({"device": "d", "digest": "", "key": [], "trials": [], **more})


@pytest.mark.parametrize(
    "text",
    [
        f'{{{HEAD}, "entries": {{}}}}', f'{{{HEAD[:-1]}true, "entries": []}}', "[1]", "null", '"a"',
        *(f'{{{HEAD}, "entries": [{one}]}}' for one in (
            entry(value=float("nan")), entry(value=float("inf")), entry(value=-1),
            entry(value=True), entry(value=10**400), entry(unit="s"), entry(key=[[1]]),
            entry(config={"block": float("nan")}), entry(config=[]), "3",
        )),
        *(f'{{{HEAD}, "entries": [], "unfinished": [{one}]}}' for one in (
            stopped(device=3), stopped(key=3), stopped(trials={}), stopped(trials=["1"]),
            stopped(trials=[[None]]), stopped(trials=[[1, -1]]), stopped(trials=[True]),
            stopped(trials=[[float("nan")]]), "{}", "3",
        )),
        f'{{{HEAD}, "entries": [], "unfinished": 3}}',
    ],
)  # fmt: skip
def test_files_that_say_what_no_clock_says(tmp_path, text):
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="not a valid tuning table"):
        cl.tuning.TunedConfigs(path)
    assert path.read_text() == text


def test_more_trials_than_configurations(on_the_emulator, tmp_path):
    """A digest that was written by hand: values that do not fit are ignored."""
    path = tmp_path / "t.json"
    tuning = cl.tuning.tune(
        lambda n: None, [{"n": 1}, {"n": 2}], table=cl.tuning.TunedConfigs(path)
    )
    trials = [[1.0], 7, 8, 9]
    one = stopped(device=tuning.device, digest=tuning.digest, trials=trials)
    path.write_text(f'{{{HEAD}, "entries": [], "unfinished": [{one}]}}')
    again = cl.tuning.tune(lambda n: None, [{"n": 1}, {"n": 2}], table=cl.tuning.TunedConfigs(path))
    assert [trial.instructions for trial in again.trials] == [0, 7]


def test_a_table_without_a_directory_is_refused_before_anything_is_measured(tmp_path):
    with pytest.raises(FileNotFoundError, match="directory of the table does not exist"):
        cl.tuning.TunedConfigs(tmp_path / "no" / "t.json")


def test_rounds_end_where_one_is_the_best_or_all_have_run(on_the_emulator, monkeypatch):
    """The contest of a GPU, with times that are known: the emulator's say nothing."""

    def timed(bound, *args, repeat, warmup, **options):
        slow = bound(*args)
        return Timing("run", "device", tuple(slow + 0.1 * (i % 5) for i in range(repeat)))

    monkeypatch.setattr(contest, "benchmark", timed)

    def race(*slow, repeat):
        trials = [cl.tuning.Trial({"slow": one}) for one in slow]
        call = candidate.caller_of(lambda slow: slow, None)
        rounds = contest.Contest(call, (), trials, repeat, flush=True, stream=None).rounds()
        settled = []
        for is_settled in rounds:
            settled.append(is_settled)
            if is_settled:
                break
        return [len(trial.times) for trial in trials], settled

    # Far apart: ten runs are enough to know. Alike: all the runs are made, and no more.
    assert race(1.0, 9.0, repeat=100) == ([10, 10], [False, True])
    assert race(1.0, 1.0, repeat=23) == ([23, 23], [False] * 4 + [True])
    # The third is out after ten runs, and the others go on.
    assert race(1.0, 1.0, 9.0, repeat=20) == ([20, 20, 10], [False, False, False, True])
    assert race(1.0, repeat=3) == ([3], [True])
