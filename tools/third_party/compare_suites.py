"""Run test suites of others by Triton and then with culaunch.triton.install(), and compare.

FOLDER holds the suites, which are not part of this repository. Its ``suites.json`` names the files
of each suite, the share of each file's tests to run, and the environment:

    {"fla": {"tests": "fla/tests", "path": ["fla"], "environment": {},
             "files": {"ops/test_gla.py": 0.1}}}

Each file runs in two processes, one after the other: by Triton for about half of its time, and then
natively with the tests that were completed. Results are lines of JSON, written at once, so an
aborted run keeps them. A test that passes only by Triton is a failure of culaunch.

A suite may also be scripts that leave results, without tests, such as TritonBench's:

    {"tritonbench": {"scripts": "tritonbench/data/TritonBench_G_v1", "each": 45, "configs": 1}}

compare_scripts.py describes how those run and how they are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WAYS = ("triton", "native")
_LEAST = 12.0  # seconds: below, a file is not begun


@dataclass(frozen=True)
class Suite:
    """One suite, as ``suites.json`` has it."""

    name: str
    folder: Path
    tests: Path
    path: list[Path]
    environment: dict[str, str]
    files: dict[str, float]


@dataclass(frozen=True)
class ScriptSuite:
    """A folder of scripts that leave results, as ``suites.json`` has it."""

    name: str
    scripts: Path
    environment: dict[str, str]
    each: float
    configs: int


class Run:
    """All suites, one after another; the files of one at the same time.

    Parameters
    ----------
    suites : list of (Suite or ScriptSuite)
    output : pathlib.Path
    seconds : float
        For all of it.
    jobs : int
        Files at a time.
    """

    def __init__(
        self, suites: list[Suite | ScriptSuite], output: Path, seconds: float, jobs: int
    ) -> None:
        self._suites = suites
        self._output = output
        self._start = time.monotonic()
        self._end = self._start + seconds
        self._jobs = jobs
        output.mkdir(parents=True, exist_ok=True)

    def run(self) -> None:
        """Run them, each for its share of the time that is left."""
        for i, suite in enumerate(self._suites):
            until = time.monotonic() + (self._end - time.monotonic()) / (len(self._suites) - i)
            if isinstance(suite, ScriptSuite):
                self._compare_scripts(suite, until - time.monotonic())
                continue
            queue = list(suite.files.items())
            share = (until - time.monotonic()) * self._jobs / max(self._jobs, len(queue))
            threads = [
                threading.Thread(target=self._work, args=(suite, queue, max(20.0, share), until))
                for _ in range(self._jobs)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            print("\n".join(compared(suite.name, self._output)[0]), flush=True)

    def _compare_scripts(self, suite: ScriptSuite, seconds: float) -> None:
        print(f"{suite.name}:", flush=True)
        command = [sys.executable, str(HERE / "compare_scripts.py"), str(suite.scripts)]
        command += ["--output", str(self._output / suite.name), "--jobs", str(self._jobs)]
        command += ["--seconds", str(seconds), "--each", str(suite.each)]
        command += ["--configs", str(suite.configs)]
        if os.environ.get("CULAUNCH_DRIVER") == "emulator":
            command.append("--emulator")
        subprocess.run(command, check=False, env={**os.environ, **suite.environment})

    def _work(
        self, suite: Suite, queue: list[tuple[str, float]], share: float, until: float
    ) -> None:
        while queue:
            try:
                file, rate = queue.pop(0)
            except IndexError:  # another thread took it
                return
            begun = time.monotonic()
            end = min(begun + share, until)
            if end - begun < _LEAST:
                return
            counts = [self._one(suite, file, "triton", (end - begun) * 0.55, rate)]
            if counts[0]:
                counts.append(self._one(suite, file, "native", end - time.monotonic(), 1))
            self._say(f"{suite.name} {file}: " + ", ".join(map(str, counts)))

    def _one(self, suite: Suite, file: str, way: str, seconds: float, rate: float) -> int:
        """Run one file one way; return how many of its tests are through."""
        into = results_of(self._output, suite.name, way, file)
        into.unlink(missing_ok=True)
        path = [HERE, *suite.path, os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            **suite.environment,
            "PYTHONPATH": os.pathsep.join(str(one) for one in path if str(one)),
            "THIRD_INTO": str(into),
            "THIRD_RATE": str(rate),
            "THIRD_UNTIL": str(time.time() + seconds - 3),
        }
        command = [sys.executable, "-m", "pytest", str(suite.tests / file), "-p", "suite_plugin"]
        command += ["-p", "no:cacheprovider", "-q", "--tb=short", "-W", "ignore"]
        command += ["--rootdir", str(suite.folder), "-c", str(HERE / "pytest.ini")]
        if way == "native":
            command.append("--culaunch-triton")
            environment["CULAUNCH_TRITON_CHECK"] = "1"
            environment["THIRD_ONLY"] = str(results_of(self._output, suite.name, "triton", file))
        log = into.with_suffix(".log")
        with log.open("w") as said:
            process = subprocess.Popen(
                command, stdout=said, stderr=subprocess.STDOUT, env=environment,
                start_new_session=True,
            )  # fmt: skip
            code = _wait(process, max(5.0, seconds))
        through = len(outcomes(into))
        if not through:
            last = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            self._say(f"{suite.name} {file} {way}: nothing ran, rc {code}: {last[-1:]}")
        return through

    def _say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._start:4.0f} s] {text}", flush=True)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int:
    """Wait for a process; one that takes longer is interrupted, and then ended."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(seconds)
    os.killpg(process.pid, signal.SIGINT)  # it and its children
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(4)
    os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def results_of(output: Path, suite: str, way: str, file: str) -> Path:
    """Return where the outcomes of a file go."""
    return output / f"{suite}.{way}.{file.replace('/', '_')}.jsonl"


def outcomes(path: Path) -> dict[str, dict[str, Any]]:
    """Return the outcome of each test that was not skipped because time ran out."""
    found: dict[str, dict[str, Any]] = {}
    for line in path.read_text().splitlines(keepends=True) if path.exists() else []:
        if not line.endswith("\n"):  # the process was ended while it wrote this one
            continue
        one = json.loads(line)
        if "no time was left" in one["why"]:
            continue
        # A failure in setup or teardown is one of the test.
        if found.get(one["id"], {}).get("outcome") != "failed":
            found[one["id"]] = one
    return found


def compared(suite: str, output: Path) -> tuple[list[str], int]:
    """Return lines with the outcome of a suite, and the number of tests that only Triton passed."""
    found: dict[str, dict[str, dict[str, Any]]] = {way: {} for way in WAYS}
    for way, tests in found.items():
        for path in sorted(output.glob(f"{suite}.{way}.*.jsonl")):
            tests.update({f"{path.name}:{key}": one for key, one in outcomes(path).items()})
    by_triton = {key.replace(".triton.", ".", 1): one for key, one in found["triton"].items()}
    natively = {key.replace(".native.", ".", 1): one for key, one in found["native"].items()}
    both = sorted(by_triton.keys() & natively.keys())
    passed = {key for key in both if by_triton[key]["outcome"] == "passed"}
    worse = [key for key in sorted(passed) if natively[key]["outcome"] != "passed"]
    better = [key for key in both if key not in passed and natively[key]["outcome"] == "passed"]
    launches = [
        json.loads(path.read_text()) for path in sorted(output.glob(f"{suite}.native.*.report"))
    ]
    went = [f"{sum(one[way] for one in launches)} {said}"
            for way, said in (("native", "native"), ("triton", "by Triton"))]  # fmt: skip
    head = f"{suite}: {len(both)} tests both ways, {len(passed)} passed by Triton; "
    head += f"passed by Triton alone: {len(worse)}, natively alone: {len(better)}; launches: "
    lines = [head + ", ".join(went)]
    for key in worse[:25]:
        lines += [f"  WORSE {key}", *(f"    {line}" for line in _last(natively[key]["why"]))]
    lines += [f"  better {key}" for key in better[:10]]
    return lines, len(worse)


def _last(text: str) -> list[str]:
    return text[-600:].splitlines()


def faults(suite: Suite | ScriptSuite, output: Path) -> int:
    """Return how many tests or scripts of a suite went worse natively than by Triton."""
    if isinstance(suite, Suite):
        return compared(suite.name, output)[1]
    rows = json.loads((output / suite.name / "scripts.json").read_text())
    return sum(row["fault"] for row in rows)


def read_suites(folder: Path, wanted: list[str]) -> list[Suite | ScriptSuite]:
    """Read which suites there are."""
    found = json.loads((folder / "suites.json").read_text())
    return [_suite(folder, *one) for one in found.items() if not wanted or one[0] in wanted]


def _suite(folder: Path, name: str, one: dict[str, Any]) -> Suite | ScriptSuite:
    environment = one.get("environment", {})
    if "scripts" in one:
        scripts = folder / one["scripts"]
        return ScriptSuite(name, scripts, environment, one.get("each", 45), one.get("configs", 1))
    tests = folder / one["tests"]
    path = [folder / path for path in one.get("path", [])]
    return Suite(name, tests.parent, tests, path, environment, one["files"])


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of the suites")
    parser.add_argument("--only", action="append", default=[], help="one suite; may be repeated")
    parser.add_argument("--output", type=Path, required=True, help="a folder")
    parser.add_argument("--seconds", type=float, default=150, help="for all of it (150)")
    parser.add_argument("--jobs", type=int, default=12, help="files at a time (12)")
    options = parser.parse_args()
    suites = read_suites(options.folder.resolve(), options.only)
    Run(suites, options.output.resolve(), options.seconds, options.jobs).run()
    worse = sum(faults(one, options.output.resolve()) for one in suites)
    print(f"worse than by Triton, in all suites: {worse}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
