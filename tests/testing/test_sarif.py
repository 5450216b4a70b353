"""The emulator's reports as records and as SARIF: of errors, of tests that fail, of a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

import culaunch as cl
from culaunch import testing
from culaunch._emulator.report import KINDS
from culaunch.cli.run import command

SOURCE = """\
extern "C" __global__ void past(int* x) { x[threadIdx.x + 8] = 1; }
extern "C" __global__ void unwritten(int* x) {
  __shared__ int box[32];
  if (threadIdx.x < 31) box[threadIdx.x] = 1;
  __syncthreads();
  int y = box[31 - threadIdx.x];
  if (y > x[threadIdx.x])
    x[threadIdx.x] = 2;
}
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Load a file below the working folder; its name needs an escape in a URI."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").mkdir()
    Path("a b/kernels.cu").write_text(SOURCE)
    with testing.use_driver("emulator"):
        yield cl.load(cl.compile(Path("a b/kernels.cu"), arch="compute_80", line_info=True))


def error_of(kernel, block=32):
    with pytest.raises(cl.DriverError) as caught:
        kernel[1, block](cl.zeros(32, "i4"))
    testing.reset_emulator()
    return caught.value


def results_of(path):
    """Return the results of a log, which has all that the specification requires."""
    log = json.loads(Path(path).read_text())
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "culaunch emulator"
    assert driver["version"] == cl.__version__
    ids = [rule["id"] for rule in driver["rules"]]
    assert ids == list(KINDS)
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in {"error", "warning"}
        assert result["message"]["text"]
        for location in (*result["locations"], *result.get("relatedLocations", [])):
            place = location["physicalLocation"]
            assert place["artifactLocation"]["uri"]
            assert place["region"]["startLine"] >= 1
    return run["results"]


def test_an_error_has_a_record_of_the_report(module):
    report = error_of(module["past"]).report
    assert report.kind == "out-of-bounds"
    assert report.message.startswith("4-byte write of global address")
    assert (report.kernel, report.block, report.thread) == ("past", (0, 0, 0), (24, 0, 0))
    assert report.position.file.endswith("kernels.cu")
    assert report.position.file_line == 1
    assert report.position.text.startswith("st.global")


def test_a_later_error_has_the_record_of_its_own_text(module):
    with pytest.raises(cl.DriverError):
        module["past"][1, 32](cl.zeros(16, "i4"))
    with pytest.raises(cl.DriverError) as caught:
        cl.synchronize()
    assert caught.value.report.message.startswith("an earlier launch is to blame")
    assert caught.value.report.kernel == "past"
    testing.reset_emulator()


def test_an_error_that_no_kernel_caused_has_no_record(module):
    error_of(module["past"])
    assert cl.DriverError("something else").report is None


def test_a_launch_that_is_refused_has_no_record(module):
    with pytest.raises(cl.LaunchError) as caught:
        module["past"].configure(grid=1, block=32, shared_memory=1 << 20)(cl.zeros(16, "i4"))
    assert caught.value.report is None


def test_results_have_the_place_and_the_other_place(module, tmp_path):
    errors = [error_of(module["past"]), error_of(module["unwritten"])]
    testing.write_sarif("out.sarif", errors)
    past, unwritten = results_of("out.sarif")
    assert past["ruleId"] == "out-of-bounds"
    assert past["message"]["text"] == str(errors[0].report)
    assert "PTX line" in past["message"]["text"]
    (location,) = past["locations"]
    assert location["logicalLocations"] == [{"name": "past", "kind": "function"}]
    place = location["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b/kernels.cu"
    assert place["region"] == {"startLine": 1}
    assert "relatedLocations" not in past
    assert unwritten["ruleId"] == "uninitialized"
    assert unwritten["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    (related,) = unwritten["relatedLocations"]
    assert related["physicalLocation"]["region"]["startLine"] == 6
    assert related["message"]["text"].startswith("the value: block (0, 0, 0), thread (0, 0, 0)")


def test_a_source_elsewhere_has_an_absolute_uri(module, tmp_path, monkeypatch):
    error = error_of(module["past"])
    monkeypatch.chdir(os.path.dirname(tmp_path))
    testing.write_sarif(tmp_path / "out.sarif", [error])
    (result,) = results_of(tmp_path / "out.sarif")
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == f"{tmp_path.name}/a%20b/kernels.cu"
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    testing.write_sarif("out.sarif", [error, error])
    (result,) = results_of("out.sarif")  # the same result once
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == (tmp_path / "a b" / "kernels.cu").as_uri()


def test_an_error_without_a_report_is_refused(tmp_path):
    with pytest.raises(ValueError, match="errors must be of kernels on the emulator"):
        testing.write_sarif(tmp_path / "out.sarif", [cl.DriverError("no")])
    assert not (tmp_path / "out.sarif").exists()


def test_the_command_writes_its_report(module, tmp_path):
    words = ["a b/kernels.cu", "past", "--grid", "1", "--sarif", "out.sarif"]
    words += ["--arg", "x:int32[16]=zeros", "--driver", "emulator"]
    assert CliRunner().invoke(command, [*words, "--block", "8"]).exit_code == 0
    assert results_of("out.sarif") == []
    failed = CliRunner().invoke(command, [*words, "--block", "32"])
    assert isinstance(failed.exception, cl.DriverError)
    (result,) = results_of("out.sarif")
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith(
        "kernels.cu"
    )


TESTS = """
import pytest
import culaunch as cl

SOURCE = 'extern "C" __global__ void past(int* x) { x[threadIdx.x + 8] = 1; }'

def launch(**how):
    image = cl.compile(SOURCE, arch="compute_80", name="kernels.cu", **how)
    cl.load(image)["past"][1, 32](cl.zeros(16, "i4"))

@pytest.mark.culaunch_drivers("emulator")
def test_fails(culaunch_driver):
    launch(line_info=True)

@pytest.mark.culaunch_drivers("emulator")
def test_fails_without_lines(culaunch_driver):
    try:
        launch()
    except cl.DriverError:
        assert False, "as a helper of a test may"

@pytest.mark.culaunch_drivers("emulator")
def test_expects_the_error(culaunch_driver):
    with pytest.raises(cl.DriverError):
        launch(line_info=True)

def test_fails_otherwise():
    assert False
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")])
def test_the_plugin_writes_the_reports_of_tests_that_fail(tmp_path, workers):
    (tmp_path / "test_kernels.py").write_text(textwrap.dedent(TESTS))
    home = str(Path(cl.__file__).parents[1])
    command = [sys.executable, "-m", "pytest", "-p", "culaunch._pytest_plugin", "-c", os.devnull]
    command += ["--rootdir", str(tmp_path), "--culaunch-sarif", "out.sarif", *workers]
    done = subprocess.run(
        [*command, "test_kernels.py"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTEST_ADDOPTS": "", "PYTHONPATH": home},
        cwd=tmp_path,
    )
    assert "3 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    results = sorted(results_of(tmp_path / "out.sarif"), key=lambda one: "relatedLocations" in one)
    without_lines, with_lines = results
    place = with_lines["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("kernels.cu")
    (test,) = with_lines["relatedLocations"]
    assert test["message"]["text"] == "the test"
    assert test["physicalLocation"] == {
        "artifactLocation": {"uri": "test_kernels.py"}, "region": {"startLine": 11}
    }  # fmt: skip
    place = without_lines["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "test_kernels.py"
    assert place["region"] == {"startLine": 15}
