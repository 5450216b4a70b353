"""Run a quick part of the tests with the newest PyTorch and Triton, or with other Pythons.

    python tools/other_versions.py newest    the newest PyTorch and Triton that pip has
    python tools/other_versions.py pythons   the oldest Python that is supported, and a new one

Each has an environment of its own in build/. `make newest` and `make pythons` call this. A version
that cannot be had is said and skipped; a test that fails, or takes too long, fails the step.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from environment import FRAMEWORKS, ROOT, Environment, say, version_of

PYTHONS = ("3.10", "3.13")
# Tests of a step: those that are not slow, of what changes most with the version.
NEWEST_TESTS = (
    # Names that are read from Triton itself, its compiler's options, operators of torch and their
    # gradients, and tensors that are read in place.
    "tests/torch_operators",
    "tests/triton/compiling",
    "tests/triton/installed",
    "tests/triton/live",
    "tests/triton/saved",
    "tests/function/test_triton_bodies.py",
    "tests/function/test_mixed_bodies.py",
    "tests/launch/test_framework_arrays.py",
    "tests/launch/test_torch_in_place.py",
    "tests/launch/test_torch_tensor.py",
)
PYTHON_TESTS = (
    # The extension, which is built for each Python, the bodies of functions, which are read as
    # bytecode, and the whole path from source to a launch on the emulator.
    "tests/launch",
    "tests/function",
    "tests/elementwise/test_calls.py",
    "tests/testing",
)
QUICK = "not slow and not gpu and not multi_gpu"
TIME_LIMIT = 420  # seconds for the tests of one environment: a hang, or a subset that has grown
NEEDED = 12  # GiB: half of it for a PyTorch with CUDA's libraries, half for the tests after it
# The extension of these runs is not optimized, which halves its build time.
UNOPTIMIZED = (
    "-C", "cmake.define.CULAUNCH_IPO=OFF", "-C", "cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O0",
)  # fmt: skip


def main() -> int:
    """Run what the command line names."""
    steps = {"newest": newest, "pythons": pythons}
    if len(sys.argv) != 2 or sys.argv[1] not in steps:
        sys.exit(__doc__)
    return steps[sys.argv[1]]()


def newest() -> int:
    """Run tests with the newest PyTorch and Triton."""
    environment = Environment(ROOT / "build" / "newest")
    # The wheel of `make test`, which is of the same Python.
    environment.install(Environment(ROOT / ".venv").build_wheel(), {"suite"})
    # PyTorch pins the Triton of its own release date, so Triton is installed after it, separately.
    if not (install_torch(environment) and environment.try_pip(
        "install", "--no-deps", "--upgrade", "triton"
    )):  # fmt: skip
        say("skipped: pip has no PyTorch or no Triton for this Python")
        return 0
    return run_tests(environment, NEWEST_TESTS, "torch,triton,numpy,installed-wheel")


def install_torch(environment: Environment) -> bool:
    """Install the newest PyTorch, without CUDA's libraries if pip has that build."""
    free = shutil.disk_usage(ROOT).free >> 30
    if free >= NEEDED:
        return environment.try_pip("install", "--upgrade", "--no-compile", "torch")
    say(
        f"{free} GiB are free, and the newest PyTorch needs {NEEDED}: {FRAMEWORKS['torch']} instead"
    )
    return environment.try_pip("install", FRAMEWORKS["torch"])


def pythons() -> int:
    """Run tests with other Pythons."""
    failed = 0
    for version in PYTHONS:
        interpreter = find_python(version)
        if interpreter is None:
            say(f"skipped: there is no Python {version}, on PATH or in pyenv")
            continue
        environment = Environment(ROOT / "build" / f"python{version}", interpreter)
        environment.install(environment.build_wheel(*UNOPTIMIZED), {"suite"})
        failed |= run_tests(environment, PYTHON_TESTS, "numpy,nvrtc,installed-wheel")
    return failed


def find_python(version: str) -> str | None:
    """Find the interpreter of a version: this one, on PATH, or one of pyenv's."""
    name = f"python{version}"
    for found in (sys.executable, shutil.which(name), *pyenv_pythons(version)):
        # pyenv's own programs on PATH fail for a version that is not chosen.
        if found and version_of(found).startswith(f"{version}."):
            return found
    return None


def pyenv_pythons(version: str) -> list[str]:
    """List pyenv's interpreters of a version, the newest first."""
    root = os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv"
    found = Path(root, "versions").glob(f"{version}.*/bin/python{version}")
    return [str(path) for path in sorted(found, reverse=True)]


def run_tests(environment: Environment, tests: tuple[str, ...], required: str) -> int:
    """Run tests on the wheel of an environment, from a folder where only that can be imported."""
    folder = environment.folder / "tests"
    folder.mkdir(exist_ok=True)
    command = [
        str(environment.python), "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-q", "-r",
        "fE", "--rootdir", str(ROOT), "-n", os.environ.get("JOBS", "2"), "--dist", "worksteal",
        "-p", "no:cacheprovider", "-m", QUICK, *(str(ROOT / test) for test in tests),
    ]  # fmt: skip
    # Warnings are errors here, too (pyproject.toml).
    settings = {
        **os.environ,
        "CULAUNCH_REQUIRE": required,
        "CULAUNCH_TEST_INSTALLED": "1",
        "PATH": f"{environment.folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYTHONPYCACHEPREFIX": str(environment.folder / "bytecode"),
    }
    begin = time.monotonic()
    try:
        done = subprocess.run(command, check=False, cwd=folder, env=settings, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        say(f"the tests did not end within {TIME_LIMIT} seconds")
        return 1
    say(f"{environment.folder.name}: {time.monotonic() - begin:.0f} s of tests")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
