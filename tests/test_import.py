"""The modules and the cost of ``import culaunch``; no name loads a framework."""

import subprocess
import sys

import pytest

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


def test_import_loads_the_root_alone():
    """And the registry of the rooms that it connects."""
    assert python(MEASURE)[1:] == ["culaunch", "culaunch._base", "culaunch._base.rooms_above"]


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


IMAGES = {"_base", "_core", "_errors", "_image"}
LAUNCH = {*IMAGES, "_launch"}
FUNCTION = {*LAUNCH, "_farm", "_function"}
# The rooms that a name loads: a program that only launches loads no compiler and no emulator.
ROOMS = {
    "CompileError": {"_base", "_errors"},
    "Image": {"_base", "_errors", "_image"},
    "inspect": IMAGES,
    "compile": {*IMAGES, "_cache", "_compile", "_includes"},
    "link": {*IMAGES, "_cache", "_compile"},
    "load": LAUNCH,
    "Graph": {*LAUNCH, "_graph"},
    "function": FUNCTION,
    "ship": {*FUNCTION, "ship", "_export", "_library", "_ship"},
}  # fmt: skip


@pytest.mark.parametrize("name", ROOMS)
def test_a_name_loads_the_rooms_that_it_needs(name):
    loaded = python(f"import sys, culaunch; culaunch.{name}; print(*sys.modules)")
    found = {module.split(".")[1] for module in loaded if module.startswith("culaunch.")}
    assert found == ROOMS[name]


def test_compiling_loads_no_remote_cache_and_no_linker():
    loaded = python("import sys, culaunch; culaunch.compile; print(*sys.modules)")
    ours = {name.removeprefix("culaunch.") for name in loaded if name.startswith("culaunch.")}
    assert "_cache.remote.environment" in ours
    strangers = {"_cache.remote.minisign", "_cache.remote.server", "_compile.linking"}
    assert ours & {*strangers, "_compile.many", "_compile.nvrtc", "_image.parse"} == set()
    # A hit needs none of these modules of the standard library.
    assert set(loaded) & {"bz2", "ctypes", "lzma", "shutil", "subprocess", "tempfile"} == set()


def test_operators_of_frameworks_need_no_compiler():
    """Libraries of functions run where only they are installed."""
    for door in ("_torch.registration", "_jax", "_ship.saving.bundled"):
        loaded = python(f"import sys, culaunch.{door}; print(*sys.modules)")
        assert "culaunch._compile" not in loaded, door
