"""What ``import culaunch`` loads and costs, and that no name pulls in a framework."""

import subprocess
import sys

MEASURE = """
import __future__, importlib, sys, time, typing  # what the standard library itself brings
before = set(sys.modules)
start = time.process_time()
import culaunch
took = time.process_time() - start
start = time.process_time()
sorted(str(number) for number in range(20_000))  # takes 2.5 ms where the limit is meant for
slowness = (time.process_time() - start) / 2.5e-3
print(took / max(1, slowness), *sorted(set(sys.modules) - before))
"""


def python(code):
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()


def test_import_loads_one_module():
    assert python(MEASURE)[1:] == ["culaunch"]


def test_import_takes_less_than_50_ms():
    assert min(float(python(MEASURE)[0]) for _ in range(10)) < 0.05


def test_looking_up_names_loads_only_ours_and_the_standard_library():
    """All names in one process: what one of them loads too much is loaded then, too."""
    loaded = python(
        "import sys\n"
        "before = set(sys.modules)\n"  # site may have loaded something for an editable install
        "import culaunch\n"
        "for name in culaunch.__all__: getattr(culaunch, name)\n"
        "print(*sorted({m.partition('.')[0] for m in set(sys.modules) - before}))"
    )
    assert set(loaded) - set(sys.stdlib_module_names) == {"culaunch"}


def test_launching_needs_no_compiler_and_no_emulator():
    loaded = python("import sys, culaunch; culaunch.load; print(*sys.modules)")
    strangers = ("_compile", "_emulator", "_embed", "_inline", "_triton", "_elementwise", "cli")
    assert [name for name in strangers if f"culaunch.{name}" in loaded] == []


def test_operators_of_frameworks_need_no_compiler():
    """Libraries of functions run where only they are installed."""
    for door in ("_torch.registration", "_jax", "_ship.bundled"):
        loaded = python(f"import sys, culaunch.{door}; print(*sys.modules)")
        assert "culaunch._compile" not in loaded, door
