"""The benchmark of compile_many runs."""

import ast
import importlib
import json
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.needs("nvrtc")


@pytest.mark.needs("distributed")
def test_dasks_settings_are_those_of_the_page(benchmarks, monkeypatch):
    import dask
    import distributed  # noqa: F401 - its settings are there then

    monkeypatch.syspath_prepend(benchmarks)
    quiet = importlib.import_module("compile_many").QUIET
    page = (benchmarks.parent / "docs" / "scaling.md").read_text()
    ((name, text),) = re.findall(r"^(dask_settings) = (\{.*?^\})", page, re.DOTALL | re.MULTILINE)
    assert ast.literal_eval(text) == quiet, name
    for key in quiet:
        assert dask.config.get(key) is not None, "a setting that Dask has"
    assert "MALLOC_TRIM_THRESHOLD_" in dask.config.get("distributed.nanny.pre-spawn-environ")
    with dask.config.set(quiet):
        assert dask.config.get("distributed.nanny.pre-spawn-environ") == {"OMP_NUM_THREADS": 1}


def test_smoke(benchmarks, tmp_path):
    numbers = tmp_path / "numbers.json"
    command = [sys.executable, str(benchmarks / "compile_many.py"), "--quick"]
    command += ["--engines", "threads,fork,threads", "--json", str(numbers)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "one process" in said
    results = json.loads(numbers.read_text())["results"]
    assert set(results) == {"one process", "apart", "threads", "fork"}
    for found in results.values():
        assert found["seconds"] > 0 < found["cpu_seconds"]
        assert found["least_times"] <= found["times"] <= found["most_times"]
    assert results["one process"]["times"] == 1
