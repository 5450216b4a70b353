"""``culaunch tune``: the answers of ``culaunch.tuning.tune``, from the shell."""

import json
import os

import pytest
from click.testing import CliRunner

import culaunch as cl
from culaunch.cli._input import object_of_file
from culaunch.cli.tune import command

pytestmark = pytest.mark.needs("numpy")

SOURCE = """
extern "C" __global__ void twice(float* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= 2;
}
"""
ARGUMENTS = ("--arg", "x:float32[100]=ones", "--arg", "n:int32=100")
CONFIGS = ("--config", "grid=2,block=64", "--config", "grid=(1,1),block=(32,1)")
FUNCTIONS = """
import culaunch as cl

kernel = cl.load({path!r})["twice"]


def step(x, n, block=64):
    kernel[1, block](x, n)
"""
KERNELS = """
import triton
import triton.language as tl


@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + offsets, 2 * tl.load(x + offsets, offsets < n), offsets < n)
"""


@pytest.fixture
def tune(monkeypatch, tmp_path):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    monkeypatch.chdir(tmp_path)
    cl.compile(SOURCE, arch="compute_80").save("twice.ptx")

    def call(*words, code=0):
        result = CliRunner().invoke(command, [*words])
        assert result.exit_code == code, result.output
        return result

    return call


def test_the_table_and_what_it_means(tune):
    result = tune("twice.ptx", "twice", *ARGUMENTS, *CONFIGS)
    first, *rows = result.stdout.splitlines()
    assert first.startswith("twice on ")
    assert len(rows) == 2
    assert all(" instructions " in row for row in rows)
    assert "says little about a GPU" in result.stderr


def test_json_is_what_the_api_says(tune):
    found = json.loads(tune("twice.ptx", *ARGUMENTS, *CONFIGS, "--json").stdout)
    assert found.pop("measured") is True
    assert found["unit"] == "instructions"
    assert [one["config"]["block"] for one in found["trials"]] == [64, [32, 1]]
    assert found["best"] in [one["config"] for one in found["trials"]]


def test_a_table_is_not_measured_again(tune):
    words = ("twice.ptx", *ARGUMENTS, *CONFIGS, "--key", "100", "--table", "t.json")
    first = json.loads(tune(*words, "--json").stdout)
    second = json.loads(tune(*words, "--json").stdout)
    assert (first["measured"], second["measured"]) == (True, False)
    assert second["best"] == first["best"]
    assert first["key"] == [100]
    assert "the result comes from t.json" in tune(*words).stderr
    assert json.loads(tune(*words, "--again", "--json").stdout)["measured"]
    kept = cl.tuning.TunedConfigs("t.json").find(100, device=first["device"])
    assert json.loads(json.dumps(kept)) == first["best"]


def test_a_function_of_a_file(tune, tmp_path):
    (tmp_path / "steps.py").write_text(FUNCTIONS.format(path="twice.ptx"))
    found = json.loads(
        tune(
            "steps.py:step", *ARGUMENTS, "--config", "block=32", "--config", "block=128", "--json"
        ).stdout
    )
    assert found["name"] == "step"
    assert found["best"] in ({"block": 32}, {"block": 128})


@pytest.mark.needs("triton")
def test_a_set_has_its_own_configurations(tune, tmp_path):
    import culaunch.triton as ct

    (tmp_path / "kernels.py").write_text(KERNELS)
    made = ct.compile(
        object_of_file("kernels.py:scale")[0],
        "*fp32:16, i32",
        arch="compute_80",
        configs=[{"BLOCK": 32}, {"BLOCK": 64}],
    )
    made.save(tmp_path / "scale.culib")
    words = ("scale.culib", *ARGUMENTS[:2], "--arg", "100", "--grid", "4", "--key", "n")
    found = json.loads(tune(*words, "--json").stdout)
    assert [one["config"] for one in found["trials"]] == [{"BLOCK": 32}, {"BLOCK": 64}]
    assert found["key"] == [100]
    # As `culaunch run` writes it.
    words = (*words[:4], "n:int32=100", *words[5:])
    assert json.loads(tune(*words, "--json").stdout) == found
    # The set with what was found in its table, of both sizes.
    for n, given in ((100, "scale.culib"), (64, "tuned.culib")):
        words = (given, *ARGUMENTS[:2], "--arg", str(n), "--grid", "4", "--key", "n")
        best = json.loads(tune(*words, "--json", "-o", "tuned.culib").stdout)["best"]
        table = ct.KernelSet.load("tuned.culib").table
        assert (table.entries[0].values, table.entries[0].constants) == ((n,), best)
    assert [one.values for one in table.entries] == [(64,), (100,)]
    assert table.entries[0].device == found["device"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("twice.ptx", *ARGUMENTS), "give at least one --config"),
        (("twice.ptx", *ARGUMENTS, *CONFIGS, "-o", "x.culib"), "--output needs a set"),
        (("twice.ptx", *ARGUMENTS, "--config", "grid=1,blok=3"), "configs[0] must have grid and "),
        (("twice.ptx", *ARGUMENTS, "--config", "grid=(1,block=3"), "unbalanced brackets"),
        (("twice.ptx", *ARGUMENTS, "--config", "block"), "a setting must be NAME=VALUE"),
        (
            ("twice.ptx", *ARGUMENTS, *CONFIGS, "--grid", "4"),
            "each configuration of a kernel of a module has its grid",
        ),
        (("twice.ptx", *ARGUMENTS, *CONFIGS, "--grid", "some"), "must be a number"),
        (("none.py:step", "--config", "block=32"), "not a Python file"),
        (("none.py:step", "twice", "--config", "block=32"), "KERNEL needs an image"),
    ],
)
def test_mistakes_are_named(tune, words, said):
    result = CliRunner().invoke(command, list(words))
    assert result.exit_code != 0
    assert said in result.output + str(result.exception)


def test_a_table_that_is_not_written(tune, monkeypatch):
    """The command prints the measurements and fails."""
    real = os.rename

    def rename(source, target, **more):
        if str(target).endswith("t.json"):
            raise OSError(116, "Stale file handle", target)
        real(source, target, **more)

    monkeypatch.setattr(os, "rename", rename)
    words = ("twice.ptx", *ARGUMENTS, *CONFIGS, "--table", "t.json", "--json")
    with pytest.warns(cl.CacheWarning, match="Stale file handle"):
        result = tune(*words, code=1)
    assert "t.json was not written" in result.stderr
    assert json.loads(result.stdout)["measured"]
