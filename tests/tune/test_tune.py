"""Tuning: trials, results and stored choices."""

import json
import statistics
import subprocess
import sys

import numpy as np
import pytest

import culaunch as cl

SOURCE = """
extern "C" __global__ void fill(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < n; i += gridDim.x * blockDim.x) x[i] = 3;
}
"""


@pytest.fixture
def kernel(culaunch_driver):
    return cl.load(cl.compile(SOURCE))["fill"]


def grids(n, *blocks):
    return [{"grid": cl.ceildiv(n, block), "block": block} for block in blocks]


def test_a_kernel_is_tried_in_every_configuration(kernel):
    x = cl.testing.to_driver(np.zeros(5000, "f4"))
    seen = []
    tuning = cl.tuning.tune(
        kernel, grids(5000, 64, 1024), (x, 5000), progress=lambda t: seen.append(t)
    )
    assert [trial.config["block"] for trial in tuning.trials] == [64, 1024]
    assert tuning.best in [trial.config for trial in tuning.trials]
    assert tuning.best_trial.value == min(trial.value for trial in tuning.trials)
    assert seen
    assert seen[-1] is tuning
    assert (cl.testing.from_driver(x) == 3).all()
    for trial in tuning.trials:
        assert trial.value > 0
    assert str(tuning.best) in str(tuning)


@pytest.fixture
def on_the_emulator():
    with cl.testing.use_driver("emulator"):
        yield


def test_the_emulator_counts_instructions(on_the_emulator):
    kernel = cl.load(cl.compile(SOURCE))["fill"]
    x = cl.testing.to_driver(np.zeros(4096, "f4"))
    configs = [{"grid": 1, "block": 32}, {"grid": 1, "block": 1024}]
    tunings = [cl.tuning.tune(kernel, configs, (x, 4096)) for _ in range(2)]
    counts = [[trial.instructions for trial in one.trials] for one in tunings]
    assert counts[0] == counts[1]
    # Each of the elements costs the same loop; what a thread does before it, a thousand do.
    few, many = counts[0]
    assert 0 < few < many < 2 * few
    assert tunings[0].is_emulated
    assert tunings[0].best == configs[0]
    with cl.testing.count_instructions() as count:
        kernel[1, 32](x, 4096)
        kernel[1, 32](x, 4096)
    assert count.total == 2 * few
    assert tunings[0].to_dict()["unit"] == "instructions"


def test_configurations_that_fail_are_named_and_not_chosen(kernel):
    x = cl.testing.to_driver(np.zeros(8, "f4"))
    tuning = cl.tuning.tune(kernel, [{"grid": 1, "block": 4096}, {"grid": 1, "block": 32}], (x, 8))
    assert isinstance(tuning.trials[0].error, cl.LaunchError)
    assert tuning.best == {"grid": 1, "block": 32}
    reason = str(tuning.trials[0].error).splitlines()[0]
    assert str(tuning).count("failed") == 1
    assert f"failed  {tuning.trials[0].config}  {reason}\n" in f"{tuning}\n"
    assert tuning.to_dict()["trials"][0] == {"config": tuning.trials[0].config, "error": reason}
    assert "error" not in tuning.to_dict()["trials"][1]
    with pytest.raises(cl.LaunchError):
        cl.tuning.tune(kernel, [{"grid": 1, "block": 4096}], (x, 8))


def test_a_function_gets_its_configuration_as_keywords(kernel):
    @cl.function
    def fill(x, block: int):
        kernel[cl.ceildiv(x.size, block), block](x, x.size)

    x = cl.testing.to_driver(np.zeros(100, "f4"))
    tuning = cl.tuning.tune(fill, [{"block": 32}, {"block": 64}], (x,), key=(100, "float32"))
    assert tuning.best in ({"block": 32}, {"block": 64})
    assert tuning.key == (100, "float32")
    assert (cl.testing.from_driver(x) == 3).all()


def test_what_was_chosen_is_kept_and_found(kernel, tmp_path):
    path = tmp_path / "fill.json"
    calls = []

    def run(x, n, block):
        calls.append(block)
        kernel[cl.ceildiv(n, block), block](x, n)

    x = cl.testing.to_driver(np.zeros(64, "f4"))
    configs = [{"block": 32}, {"block": 64}]
    table = cl.tuning.TunedConfigs(path)
    first = cl.tuning.tune(run, configs, (x, 64), key=(64,), table=table)
    made = len(calls)
    again = cl.tuning.tune(run, configs, (x, 64), key=(64,), table=cl.tuning.TunedConfigs(path))
    assert len(calls) == made
    assert again.best == first.best
    cl.tuning.tune(run, configs, (x, 64), key=(64,), table=table, again=True)
    assert len(calls) > made
    assert cl.tuning.tune(run, configs[:1], (x, 64), key=(64,), table=table).best == configs[0]
    assert len(table) == 1
    cl.tuning.tune(run, configs[1:], (x, 64), key=(4096,), table=table)
    read = cl.tuning.TunedConfigs(path)
    assert read[64] == configs[0]
    assert read[100] == configs[0]
    assert read[2000] == configs[1]
    assert [*read] == [(cl.driver.Device().name, (64,)), (cl.driver.Device().name, (4096,))]
    with pytest.raises(KeyError, match="no key"):
        read[64, "float32"]
    with pytest.raises(KeyError, match="no entry for another"):
        read.find(64, device="another")


def test_a_body_looks_a_configuration_up(kernel):
    table = cl.tuning.TunedConfigs()
    x = cl.testing.to_driver(np.zeros(100, "f4"))
    for size, block in ((64, 32), (1024, 128)):
        cl.tuning.tune(kernel, [{"grid": 1, "block": block}], (x, 100), key=(size,), table=table)
    traced = []

    @cl.function
    def fill(x):
        traced.append(1)
        config = table[cl.next_power_of_2(x.size)]
        kernel[cl.ceildiv(x.size, config["block"]), config["block"]](x, x.size)

    for n in (60, 61, 1000, 1001, 62):
        y = cl.testing.to_driver(np.zeros(n, "f4"))
        fill(y)
        assert (cl.testing.from_driver(y) == 3).all()
    assert len(traced) == 2
    assert "block (32" in str(fill.explain(x)) or "32" in str(fill.explain(y))


@pytest.mark.needs("triton")
@pytest.mark.slow
def test_a_set_of_variants_is_tuned_and_looks_up(culaunch_driver):
    from tuned_kernels import scale

    kernels = cl.triton.compile(
        scale, signature="*fp32, i32",
        arch="sm_80" if culaunch_driver == "emulator" else cl.driver.Device().arch,
        configs=[{"BLOCK": 64}, {"BLOCK": 256}], keep_ptx=True,
    )  # fmt: skip
    assert kernels.configs == [{"BLOCK": 64}, {"BLOCK": 256}]
    x = cl.testing.to_driver(np.ones(1000, "f4"))
    grid = lambda meta: (cl.ceildiv(meta["n"], meta["BLOCK"]),)  # noqa: E731
    tuning = cl.tuning.tune(kernels, arguments=(x, 1000), grid=grid, key=("n",))
    assert tuning.key == (1000,)
    tuned = kernels.with_table(["n"], [((x, 1000), {"BLOCK": 256}), ((x, 10), {"BLOCK": 64})])
    before = cl.testing.from_driver(x).copy()
    tuned[lambda meta: (cl.ceildiv(1000, meta["BLOCK"]),)](x, 1000)
    assert (cl.testing.from_driver(x) == 2 * before).all()
    assert len(tuned.table.entries) == 2
    with pytest.raises(ValueError, match="no variant"):
        kernels.with_table(["n"], [((x, 1000), {"BLOCK": 128})])
    with pytest.raises(ValueError, match="parameters"):
        kernels.with_table(["m"], [((x, 1000), {"BLOCK": 64})])


@pytest.mark.parametrize(
    ("runs", "interval"),
    [(1, (0, 0)), (2, (0, 1)), (5, (0, 4)), (6, (0, 5)), (9, (1, 7)), (12, (2, 9)), (25, (7, 17)),
     (100, (39, 60))],
)  # fmt: skip
def test_the_interval_is_that_of_the_tables_of_the_sign_test(runs, interval):
    assert cl.tuning.Trial({}, [float(i) for i in reversed(range(runs))]).interval == interval


def test_the_interval_holds_the_median():
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        times = list(rng.lognormal(size=25))
        low, high = cl.tuning.Trial({}, times).interval
        assert low <= statistics.median(times) <= high
        held += low <= 1.0 <= high  # the median of the distribution
    assert held >= 370


@pytest.mark.slow
def test_several_processes_add_to_one_table(tmp_path):
    path = tmp_path / "shared.json"
    program = """
import sys
import culaunch as cl
from culaunch.tuning import Trial, TunedConfigs, Tuning
number = int(sys.argv[2])
table = TunedConfigs(sys.argv[1])
for i in range(25):
    table.add(Tuning("k", "d", (number, i), str(number) * 16, [Trial({"block": i}, [1.0])]))
"""
    workers = [
        subprocess.Popen([sys.executable, "-c", program, str(path), str(number)])
        for number in range(4)
    ]
    assert [worker.wait(120) for worker in workers] == [0] * 4
    assert len(cl.tuning.TunedConfigs(path)) == 100


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": "other", "version": 1, "entries": []}',
     '{"format": "culaunch tuned configurations", "version": 9, "entries": []}',
     '{"format": "culaunch tuned configurations", "version": 1, "entries": [{}]}',
     ('{"format": "culaunch tuned configurations", "version": 1, "entries": [{"name": "a", '
      '"device": "d", "digest": "", "unit": "ms", "value": "1", "config": {}, "key": []}]}'),
     "[" * 100_000],
)  # fmt: skip
def test_files_that_are_no_tables_are_refused(tmp_path, text):
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="not a valid tuning table"):
        cl.tuning.TunedConfigs(path)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"configs": []}, ValueError, "at least one"),
        ({"configs": None}, TypeError, "configs must be a sequence of dicts"),
        ({"configs": [{"block": object()}]}, TypeError, r"configs\[0\]\['block'\]"),
        ({"configs": [{"block": 1}, {"block": 1}]}, ValueError, "twice"),
        ({"configs": {"block": 1}}, TypeError, "configs"),
        ({"key": ([1],)}, TypeError, r"key\[0\]"),
        ({"key": (float("nan"),)}, ValueError, "finite"),
        ({"grid": 1}, TypeError, "grid"),
        ({"table": "x.json"}, TypeError, "TunedConfigs"),
        ({"repeat": 0}, ValueError, "repeat"),
        ({"seconds": -1}, ValueError, "seconds"),
        ({"seconds": 0}, ValueError, "seconds"),
        ({"again": 1}, TypeError, "again"),
    ],
)
def test_wrong_arguments_are_named(change, error, match):
    given = {"configs": [{"block": 1}], "arguments": (), **change}
    with pytest.raises(error, match=match):
        cl.tuning.tune(lambda block: None, **given)


def test_a_launcher_has_its_configuration_already(kernel):
    with pytest.raises(TypeError, match="pass its kernel"):
        cl.tuning.tune(kernel[1, 1], [{}], ())


def test_json(kernel):
    x = cl.testing.to_driver(np.zeros(8, "f4"))
    found = cl.tuning.tune(kernel, grids(8, 32), (x, 8), key=(8,)).to_dict()
    assert json.loads(json.dumps(found))["key"] == [8]
