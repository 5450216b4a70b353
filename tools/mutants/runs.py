"""Where mutants are tried: a copy of the package, its tests, and which test runs which function."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from environment import ROOT, digest_of, say

if TYPE_CHECKING:
    from mutants.mutations import Mutation

BUILD = ROOT / "build" / "mutants"
# The folders whose tests cover a room. By default it is the folder with the room's name.
FOLDERS = {
    "__main__.py": ("cli",),
    "_base": ("base", "cache", "compile", "embed", "image", "library"),
    "_compile": ("compile", "cli"),
    "_elementwise": ("elementwise", "junk"),
    "_embed": ("embed", "cli", "cmake"),
    "_errors.py": ("base", "launch"),
    "_export": ("function", "cpp"),
    "_farm": ("farm", "compile", "tune"),
    "_graph": ("graph", "junk"),
    "_image": ("image", "launch", "cli", "library", "triton/saved"),
    "_includes": ("includes", "compile", "inline"),
    "_jax": ("function",),
    "_launch": ("launch", "junk", "profile", "testing", "cli"),
    "_library": ("library", "ship"),
    "_pytest_plugin.py": ("testing",),
    "_torch": ("torch_operators",),
    "_triton": ("triton", "function"),
    "cli": ("cli", "emulator/libcuda"),
}
QUICK = "not slow and not gpu and not multi_gpu"
SLOW = "slow and not gpu and not multi_gpu"
MOST = 200  # quick tests of one mutant
LIMIT = 600  # seconds for each kind of tests of one mutant, which may loop forever
OVERTIME = f"no end within {LIMIT} s"


class Verdict(NamedTuple):
    """The fate of a mutant."""

    by: str  # the test that found it; "" if all passed
    tests: str  # what ran


class Bench:
    """A copy of the installed package, in which one file at a time is changed."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("culaunch")
        if found is None or found.origin is None:
            sys.exit("culaunch is not installed for this Python: run make check first")
        self.package = BUILD / "site" / "culaunch"
        shutil.rmtree(self.package, ignore_errors=True)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(found.origin).parent, self.package, ignore=ignored)
        (BUILD / "run").mkdir(exist_ok=True)
        self._calls: dict[str, dict[str, list[tuple[float, str]]]] = {}
        self._failing: list[str] = []  # slow tests that fail without a mutant
        self._stamps = itertools.count(int(time.time()))

    def try_out(self, mutation: Mutation) -> Verdict:
        """Plant a mutant, run the tests of its room until one fails, and take it back."""
        room = mutation.path.relative_to(self.package).parts[0]
        folders = folders_of(room)
        key = f"{mutation.path.relative_to(self.package)}:{mutation.function}"
        callers = self._callers(key, folders) if mutation.function else []
        original = mutation.path.read_bytes()
        tests = [str(ROOT / test) for test in callers[:MOST]] or folders
        self._write(mutation.path, mutation.applied())
        try:
            by = self._first_failure(QUICK, *tests)
            while not by and (slow := self._slow_failure(folders)):
                self._write(mutation.path, original)
                if self._first_failure(SLOW, str(ROOT / "tests" / slow)):
                    self._failing.append(slow)
                    self._write(mutation.path, mutation.applied())
                else:
                    by = slow
        finally:
            self._write(mutation.path, original)
        return Verdict(by, f"{len(callers)} quick tests run it")

    def _slow_failure(self, folders: tuple[str, ...]) -> str:
        """Return the first slow test that fails; none if the time is over before."""
        known = [word for test in self._failing for word in ("--deselect", f"tests/{test}")]
        by = self._first_failure(SLOW, *folders, *known)
        return "" if by == OVERTIME else by

    def _write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        # Bytecode is current if it has the size of the source and the second of its last change.
        stamp = next(self._stamps)
        os.utime(path, (stamp, stamp))

    def _callers(self, place: str, folders: tuple[str, ...]) -> list[str]:
        """Return the quick tests of the folders that run a function, the fastest first."""
        calls = [call for folder in folders for call in self._calls_of(folder).get(place, [])]
        return [test for _, test in sorted(calls)]

    def _calls_of(self, folder: str) -> dict[str, list[tuple[float, str]]]:
        """Return the quick tests of a folder that run each function, and their seconds."""
        if folder not in self._calls:
            name = str(Path(folder).relative_to(ROOT))
            note = BUILD / f"calls-{name.replace('/', '-')}.json"
            digest = digest_of("src", "csrc", "include", "tests/shared", name)
            if not note.exists() or json.loads(note.read_text())["digest"] != digest:
                say(f"which tests of {name} run which function")
                calls = BUILD / "calls.json"
                calls.unlink(missing_ok=True)
                more = {"CULAUNCH_CALLS": str(calls)}
                done = self._pytest(QUICK, "-p", "mutants.calls", folder, limit=None, **more)
                # No mutant is found by a test that fails without one.
                if done.returncode not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
                    sys.exit(f"the tests fail without a mutant:\n{done.stdout}{done.stderr}")
                note.write_text(
                    json.dumps({"digest": digest, "calls": json.loads(calls.read_text())})
                )
            self._calls[folder] = json.loads(note.read_text())["calls"]
        return self._calls[folder]

    def _first_failure(self, mark: str, *tests: str) -> str:
        try:
            done = self._pytest(mark, "-x", *tests, limit=LIMIT)
        except subprocess.TimeoutExpired:
            return OVERTIME
        if done.returncode in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            return ""
        # A test failed, a file of tests could not be imported, a named test is in none of them, or
        # a signal ended the process.
        if done.returncode not in (1, 2, 4) and done.returncode > 0:
            sys.exit(f"pytest failed:\n{done.stdout}{done.stderr}")
        named = re.search(
            r"^(?:FAILED|ERROR) (?:\S*/)?tests/(.*?)(?: - |$)", done.stdout, re.MULTILINE
        )
        return named[1] if named else f"pytest's exit status {done.returncode}"

    def _pytest(
        self, mark: str, *words: str, limit: int | None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT,
                   "-q", "-r", "fE", "--tb", "no", "-p", "no:cacheprovider", "-p", "no:xdist",
                   "-m", mark, *words]  # fmt: skip
        environment = {**os.environ, **more, "CI": "1", "CULAUNCH_TEST_INSTALLED": "1"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPATH"] = os.pathsep.join([str(BUILD / "site"), str(ROOT / "tools")])
        environment["PYTHONPYCACHEPREFIX"] = str(BUILD / "bytecode")
        environment["PATH"] = os.pathsep.join(
            [str(Path(sys.executable).parent), os.environ["PATH"]]
        )
        return subprocess.run(
            command, check=False, cwd=BUILD / "run", env=environment, capture_output=True,
            text=True, timeout=limit,
        )  # fmt: skip


def folders_of(room: str) -> tuple[str, ...]:
    """Return the folders whose tests cover a room; the names of public modules have one test."""
    mirror = (room.removeprefix("_").removesuffix(".py"),)
    names = FOLDERS.get(room, (*mirror, "test_names.py") if room.endswith(".py") else mirror)
    return tuple(str(ROOT / "tests" / name) for name in names if (ROOT / "tests" / name).exists())
