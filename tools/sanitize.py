"""Run tests on an extension that is built with AddressSanitizer and UndefinedBehaviorSanitizer.

    python tools/sanitize.py [arguments of pytest]

It builds the extension in build/sanitize (a minute or two the first time), and puts it over a copy
of the installed package. Run it with the Python that culaunch is installed for, as in ``make
sanitize``. Without arguments it runs the tests of SELECTION. A sanitizer's report ends the process
and the tests, and is printed last.

Python's own allocator is off, so the memory of Python objects is checked, too. Leaks are not
reported, because interpreters keep much memory until the end.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "sanitize"
SITE = BUILD / "site"
REPORT = BUILD / "report"
SANITIZERS = "address,undefined"
# Tests that call the extension in every way: names, arguments, launches, arrays, elementwise calls,
# Triton's quick calls, and calls within calls.
SELECTION = (
    "tests/launch",
    "tests/image/test_names.py",
    "tests/elementwise/test_calls.py",
    "tests/function",
    "tests/torch_operators/test_dispatch.py",
    "tests/ship/test_hostile_libraries.py",
    "tests/emulator/test_nested_calls.py",
    "tests/triton/live/test_reentrant.py",
    "tests/triton/live/test_quick.py",
    "tests/triton/live/test_grids.py",
    "tests/triton/live/test_heuristics.py",
    "tests/triton/live/test_native_objects.py",
    "tests/triton/live/test_specialize.py",
)
# The quick tests, and the slow ones that are about memory. Other slow tests wait for compilers and
# frameworks, which take many times longer under a sanitizer.
QUICK = ("-m", "not slow or memory")
# A worker that a report has ended is not replaced: its tests have failed.
WORKERS = (
    "-n", os.environ.get("JOBS", "2"), "--dist", "worksteal", "--max-worker-restart", "0",
)  # fmt: skip


def main() -> int:
    """Build, lay over, run."""
    compiler = os.environ.get("CXX", "g++")
    build(compiler)
    lay_over()
    arguments = sys.argv[1:] or [
        *(str(ROOT / one) for one in SELECTION),
        "-x",
        "-q",
        *QUICK,
        *WORKERS,
    ]
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"),
               "--rootdir", str(ROOT), "-p", "no:cacheprovider", *arguments]  # fmt: skip
    folder = BUILD / "run"
    folder.mkdir(exist_ok=True)
    for old in reports():
        old.unlink()
    done = subprocess.run(command, check=False, cwd=folder, env=environment(compiler))
    for report in reports():
        print(report.read_text(errors="replace"))
    return done.returncode or int(bool(reports()))


def reports() -> list[Path]:
    """List the reports of the sanitizers, one of each process that made one."""
    return sorted(BUILD.glob(f"{REPORT.name}.*"))


def build(compiler: str) -> None:
    """Build the extension incrementally."""
    configure = [
        "cmake", "-S", str(ROOT), "-B", str(BUILD / "cmake"), "-G", "Ninja",
        f"-DCULAUNCH_SANITIZE={SANITIZERS}", "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_CXX_COMPILER={compiler}", f"-DPython_EXECUTABLE={sys.executable}",
        "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", "-DCULAUNCH_UNITY=ON",
    ]  # fmt: skip
    if launcher := shutil.which("ccache"):
        configure.append(f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}")
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(BUILD / "cmake")], check=True)


def lay_over() -> None:
    """Copy the installed package, with this extension in place of its own."""
    found = importlib.util.find_spec("culaunch")
    if found is None or found.origin is None:
        sys.exit("culaunch is not installed for this Python: run make sanitize")
    package = SITE / "culaunch"
    shutil.rmtree(package, ignore_errors=True)
    ignored = shutil.ignore_patterns("_core.*.so", "__pycache__")
    shutil.copytree(Path(found.origin).parent, package, ignore=ignored)
    for module in (BUILD / "cmake").glob("_core*.so"):
        shutil.copy(module, package)


def environment(compiler: str) -> dict[str, str]:
    """Return what a process needs whose Python is not built with the sanitizer."""
    # The C++ library, too: else the first exception finds no way to its real thrower.
    libraries = (
        subprocess.run(
            [compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name in ("libasan.so", "libstdc++.so")
    )
    found = importlib.util.find_spec("nvidia")
    roots = found.submodule_search_locations or [] if found is not None else []
    beside = [str(one.parent) for root in roots for one in Path(root).rglob("libnvrtc-builtins.*")]
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(str(Path(one).resolve()) for one in libraries),
        # The sanitizer hides the caller, NVRTC, from the loader, which then does not find the
        # libraries beside NVRTC.
        "LD_LIBRARY_PATH": os.pathsep.join([*beside, os.environ.get("LD_LIBRARY_PATH", "")]),
        "PYTHONPATH": str(SITE),
        "PYTHONMALLOC": "malloc",
        # pytest keeps what a test prints, and would take a report with it when the process ends.
        "ASAN_OPTIONS": f"detect_leaks=0:handle_segv=0:log_path={REPORT}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={REPORT}",
        "CULAUNCH_TEST_INSTALLED": "1",
    }


if __name__ == "__main__":
    sys.exit(main())
