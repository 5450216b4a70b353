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

from environment import ROOT, digest_of, say

if TYPE_CHECKING:
    from mutants.mutations import Mutation

BUILD = ROOT / "build" / "mutants"
# The folders of tests for a room. By default it is the folder with the room's name.
FOLDERS = {
    "_base": ("base", "cache"),
    "_errors.py": ("base", "launch"),
    "_image": ("image", "launch"),
    "_includes": ("includes", "compile"),
    "_export": ("function", "cpp"),
    "_jax": ("function",),
    "_pytest_plugin.py": ("testing",),
    "_torch": ("torch_operators",),
}
QUICK = "not slow and not gpu and not multi_gpu"
MOST = 200  # tests of one mutant
LIMIT = 600  # seconds for the tests of one mutant, which may loop forever


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
        self._calls: dict[str, dict[str, list[str]]] = {}
        self._stamps = itertools.count(int(time.time()))

    def try_out(self, mutation: Mutation) -> Verdict:
        """Plant a mutant, run the tests of its room until one fails, and take it back."""
        room = mutation.path.relative_to(self.package).parts[0]
        folders = folders_of(room)
        key = f"{mutation.path.relative_to(self.package)}:{mutation.function}"
        callers = self._callers(room, folders).get(key, []) if mutation.function else []
        original = mutation.path.read_bytes()
        tests = [str(ROOT / test) for test in callers[:MOST]] or folders
        self._write(mutation.path, mutation.applied())
        try:
            return Verdict(self._first_failure(*tests), f"{len(callers)} tests run it")
        finally:
            self._write(mutation.path, original)

    def _write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        # Bytecode is current if it has the size of the source and the second of its last change.
        stamp = next(self._stamps)
        os.utime(path, (stamp, stamp))

    def _callers(self, room: str, folders: tuple[str, ...]) -> dict[str, list[str]]:
        """Return the tests that run each function, the fastest first."""
        if room not in self._calls:
            note = BUILD / f"calls-{room}.json"
            names = [str(Path(one).relative_to(ROOT)) for one in folders]
            digest = digest_of("src", "csrc", "include", "tests/shared", *names)
            if not note.exists() or json.loads(note.read_text())["digest"] != digest:
                say(f"which tests of {', '.join(names)} run which function")
                calls = BUILD / "calls.json"
                calls.unlink(missing_ok=True)
                done = self._pytest("-p", "mutants.calls", *folders, CULAUNCH_CALLS=str(calls))
                if done.returncode != 0:  # no mutant is found by a test that fails without one
                    sys.exit(f"the tests fail without a mutant:\n{done.stdout}{done.stderr}")
                note.write_text(
                    json.dumps({"digest": digest, "calls": json.loads(calls.read_text())})
                )
            self._calls[room] = json.loads(note.read_text())["calls"]
        return self._calls[room]

    def _first_failure(self, *tests: str) -> str:
        try:
            done = self._pytest("-x", *tests)
        except subprocess.TimeoutExpired:
            return f"no end within {LIMIT} s"
        if done.returncode == 0:
            return ""
        if done.returncode not in (1, 2):  # a test failed, or a file of tests could not be imported
            sys.exit(f"pytest failed:\n{done.stdout}{done.stderr}")
        named = re.search(
            r"^(?:FAILED|ERROR) (?:\S*/)?tests/(.*?)(?: - |$)", done.stdout, re.MULTILINE
        )
        return named[1] if named else f"pytest's exit status {done.returncode}"

    def _pytest(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT,
                   "-q", "-r", "fE", "--tb", "no", "-p", "no:cacheprovider", "-p", "no:xdist",
                   "-m", QUICK, *words]  # fmt: skip
        environment = {**os.environ, **more, "CI": "1", "CULAUNCH_TEST_INSTALLED": "1"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPATH"] = os.pathsep.join([str(BUILD / "site"), str(ROOT / "tools")])
        environment["PYTHONPYCACHEPREFIX"] = str(BUILD / "bytecode")
        environment["PATH"] = os.pathsep.join(
            [str(Path(sys.executable).parent), os.environ["PATH"]]
        )
        return subprocess.run(
            command, check=False, cwd=BUILD / "run", env=environment, capture_output=True,
            text=True, timeout=LIMIT,
        )  # fmt: skip


def folders_of(room: str) -> tuple[str, ...]:
    """Return the folders of tests that mirror a room."""
    names = FOLDERS.get(room, (room.removeprefix("_").removesuffix(".py"),))
    return tuple(str(ROOT / "tests" / name) for name in names if (ROOT / "tests" / name).is_dir())
