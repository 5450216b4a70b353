"""The rooms of csrc, read from its source: who may include whom, and who may name Python."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CSRC = ROOT / "csrc"
FILES = sorted([*CSRC.rglob("*.h"), *CSRC.rglob("*.cpp")])
INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
# From the lowest room up. A room includes itself and rooms of lower floors; rooms of one floor do
# not know each other.
FLOORS = (
    {"python"},
    {"formats", "compile"},
    {"driver"},
    {"arguments"},
    {"launch"},
    {"elementwise", "triton", "function", "graph", "profile", "torch", "xla"},
    {"extension"},  # which sees them all
)
# Rooms with floors of their own: their folders, from the lowest up. Files beside them are on top.
ROOT_OF_JIT = ROOT / "include" / "culaunch" / "jit"
INNER_FLOORS = {
    CSRC / "triton": (
        "values", "variants", "grids", "dispatchers", "quick", "general", "objects",
    ),
    CSRC / "function": ("program", "plans", "kinds", "calls", "execution"),
    CSRC / "arguments": ("views", "torch", "device_array", "types", "protocols"),
    ROOT_OF_JIT: ("base", "source", "files", "toolkit", "store"),
}  # fmt: skip
UPCALLS = CSRC / "python" / "upcalls.h"
# The classes of _core.pyi with what each part gives, and with what a subclass must have.
PARTS = {
    "launch": "LaunchUpcalls",
    "triton": "TritonUpcalls",
    "function": "FunctionUpcalls",
    "jax": "JaxUpcalls",
}
METHODS = ("DispatcherMethods", "ElementwiseMethods", "FunctionMethods")


def room_of(path):
    return path.relative_to(CSRC).parts[0].partition(".")[0]


def floor_of(room):
    return next(floor for floor, rooms in enumerate(FLOORS) if room in rooms)


def unit_of(path):
    """Return a header and its source as one: what a circle is between."""
    return path.relative_to(CSRC).with_suffix("").as_posix()


def included(path):
    return [CSRC / name for name in INCLUDE.findall(path.read_text())]


def test_every_file_is_in_a_room():
    rooms = {room for floor in FLOORS for room in floor}
    assert {room_of(path) for path in FILES} == rooms


def test_every_include_is_written_from_the_root():
    missing = [
        (path.name, one.name) for path in FILES for one in included(path) if not one.exists()
    ]
    assert missing == []


def test_a_room_includes_only_rooms_below_it():
    found = []
    for path in FILES:
        room = room_of(path)
        for other in map(room_of, included(path)):
            if other != room and floor_of(other) >= floor_of(room):
                found.append(f"{path.relative_to(CSRC)} includes {other}")
    assert found == []


@pytest.mark.parametrize("room", INNER_FLOORS, ids=lambda room: room.name)
def test_a_floor_includes_only_floors_below_it(room):
    floors = INNER_FLOORS[room]
    assert {path.name for path in room.iterdir() if path.is_dir()} == set(floors)

    def floor(path):
        inside = path.relative_to(room).parts
        return floors.index(inside[0]) if len(inside) > 1 else len(floors)

    wrong = [
        f"{path.relative_to(room)} includes {other}"
        for path in room.rglob("*.*")
        for other in INCLUDE.findall(path.read_text())
        for target in [((path.parent if room == ROOT_OF_JIT else CSRC) / other).resolve()]
        if target.is_relative_to(room) and floor(target) > floor(path)
    ]
    assert wrong == []


def test_no_circle_between_files():
    """A header and its source are one file here: a circle through a source is one, too."""
    arrows = {unit_of(path): set() for path in FILES}
    for path in FILES:
        arrows[unit_of(path)] |= {unit_of(one) for one in included(path)} - {unit_of(path)}
    assert circles(arrows) == set()


def test_the_public_headers_do_not_include_the_extensions():
    names = {path.name for path in FILES}
    for path in (ROOT / "include").rglob("*.h"):
        own = {one.name for one in path.parent.iterdir()}
        assert not set(map(name_of, INCLUDE.findall(path.read_text()))) & (names - own), path


def name_of(include):
    return include.rpartition("/")[2]


def circles(arrows):
    """Return the files that include themselves by way of others."""
    reached = {start: set(ends) for start, ends in arrows.items()}
    grows = True
    while grows:
        grows = False
        for ends in reached.values():
            more = set().union(*(reached.get(end, set()) for end in ends)) - ends
            ends |= more
            grows = grows or bool(more)
    return {start for start, ends in reached.items() if start in ends}


@pytest.mark.parametrize("path", FILES, ids=unit_of)
def test_python_is_named_in_the_list_of_upcalls_alone(path):
    """All names of Python that the extension calls are in csrc/python/upcalls.h."""
    if path == UPCALLS:
        return
    text = path.read_text()
    assert "PyImport_" not in text, "Import(modules::...) imports"
    # The names of types, such as culaunch._core.Kernel, are the extension's own.
    assert re.findall(r'"culaunch\.(?!_core\b)[\w.]*"', text) == [], "modules are in upcalls.h"
    called = re.findall(r'PyObject_CallMethod\([^"]*"(_[a-z]\w*)"', text)
    assert called == [], "methods of subclasses are in upcalls.h"


def test_the_list_and_the_stub_have_the_same_functions():
    listed = re.findall(r'UPCALL\(k\w+, "(\w+)", "(\w+)"\)', UPCALLS.read_text())
    assert len(listed) > 15
    for part, protocol in PARTS.items():
        assert {name for other, name in listed if other == part} == methods_of(protocol)
    assert {part for part, _ in listed} == set(PARTS)


def test_the_list_and_the_stub_have_the_same_methods_of_subclasses():
    listed = re.findall(r'char k\w+\[\] = "(_[a-z]\w*)"', UPCALLS.read_text())
    assert set(listed) == set().union(*map(methods_of, METHODS))


def methods_of(protocol):
    stub = ast.parse((ROOT / "src" / "culaunch" / "_core.pyi").read_text())
    (found,) = (node for node in stub.body if getattr(node, "name", None) == protocol)
    return {node.name for node in found.body if isinstance(node, ast.FunctionDef)}
