"""The emulator finds the bugs of benchmarks/planted_bugs as its table declares."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import alone_in, folder_of_the_run

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path.stem for path in (ROOT / "benchmarks" / "planted_bugs").glob("*.cu"))


@pytest.fixture(scope="module")
def found_bugs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the rows of all bugs, which one process finds once in a run of the tests."""
    with alone_in(folder_of_the_run(tmp_path_factory) / "planted_bugs") as folder:
        out = folder / "found.json"
        if not out.exists():
            command = [sys.executable, ROOT / "benchmarks" / "planted_bugs.py"]
            command += ["--parts", "emulator", "--json", out]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        return json.loads(out.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_bugs_are_found_as_declared(source: str, found_bugs: dict[str, Any]) -> None:
    rows = {name: row for name, row in found_bugs.items() if row["source"] == source}
    assert rows
    for name, row in rows.items():
        found = row["emulator"]
        assert found["fixed"] is None, f"{name}: a report on the corrected kernel"
        if row["missed"]:
            assert found["checked"] is None, f"{name} is found now: remove `missed` in table.py"
            continue
        assert found["checked"] is not None, f"{name} is not found"
        assert found["checked"]["kind"] == row["kind"], name
        if row["profiled"]:  # its words name an argument and no line
            assert found["checked"]["words"] == "argument 0: of 800 bytes, 512 written", name
        else:
            assert found["checked"]["place"].startswith(row["place"]), name
    # The page shows the recorded results.
    recorded = json.loads((ROOT / "docs" / "benchmarks" / "planted_bugs.json").read_text())
    for name, row in rows.items():
        assert {key: recorded[name][key] for key in row} == row, (
            f"{name} differs from docs/benchmarks/planted_bugs.json: run benchmarks/planted_bugs.py"
        )
