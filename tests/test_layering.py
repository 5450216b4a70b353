"""What import-linter cannot see: packages from outside, the extension, modules named in strings.

Who may import whom in the package is in pyproject.toml (``tool.importlinter``), which ``make lint``
checks.
"""

import ast
import re
import sys
from pathlib import Path

import culaunch

PACKAGE = Path(culaunch.__file__).parent
# The scripts that the CMake functions run are no modules.
MODULES = sorted(set(PACKAGE.rglob("*.py")) - set(PACKAGE.glob("cmake/*")))
# The rooms that the extension is below of, and the modules that a room imports by name.
USES_THE_EXTENSION = {"_elementwise", "_emulator", "_launch", "_triton"}
BY_NAME = {"_launch": {"culaunch._emulator"}}
# The inside of the emulator, lowest floor first; those of one floor do not know each other.
EMULATOR_FLOORS = [
    {"fault", "options", "types"},
    {"ptx", "numerics", "memory"},
    {"matrix", "kernel_variables", "machine"},
    {"decode", "ptx_image"},
    {"ops"},
    {"undefined"},
    {"kernel_code"},
    {"module", "launch"},
    {"device"},
    {"driver"},
    {"control"},
]
DOTTED = r"culaunch(\.\w+)+(?<!\.h)"  # a module, not the header
# What a part may import at the top of a module, besides the standard library and culaunch.
NEEDED = {"_emulator": {"numpy"}, "_pytest_plugin": {"pytest"}, "cli": {"click", "rich"}}


def part_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree):
    """List the modules that a module imports, wherever it does, with the name's first part."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "no relative imports"
            yield node.module
            if node.module == "culaunch":
                yield from (f"culaunch.{name.name}" for name in node.names)


def imported_on_load(body):
    """List the modules imported as the module loads: not in a function, not for type checkers."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imported(ast.Module([node], []))
        elif isinstance(node, ast.ClassDef | ast.If | ast.Try | ast.With):
            for block in ("body", "orelse", "finalbody"):
                yield from imported_on_load(getattr(node, block, []))


def test_only_the_rooms_above_the_extension_import_it():
    found = {
        part_of(path)
        for path in MODULES
        for name in imported(parse(path))
        if f"{name}.".startswith("culaunch._core.")
    }
    assert found == USES_THE_EXTENSION


def test_a_module_named_in_a_string_is_the_emulator():
    """It plugs in below the launch layer as any driver does; nothing there may know it."""
    found = {}
    for path in MODULES:
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.Constant) and re.fullmatch(DOTTED, str(node.value)):
                found.setdefault(part_of(path), set()).add(node.value)
    assert found == BY_NAME


def test_loading_a_module_needs_the_standard_library_only():
    found = []
    for path in MODULES:
        # cli/__init__.py is what reports that click or rich is missing.
        known = set() if path.parts[-2:] == ("cli", "__init__.py") else NEEDED.get(part_of(path))
        roots = {name.split(".")[0] for name in imported_on_load(parse(path).body)}
        outside = roots - set(sys.stdlib_module_names) - {"culaunch"} - (known or set())
        if outside:
            found.append(f"{path.relative_to(PACKAGE)} imports {outside} at the top")
    assert found == []


def test_the_files_of_the_emulator_import_each_other_one_way():
    """Whatever an import is for: at the top of a file, in a function, for type checkers."""
    left = {}
    for path in MODULES:
        if part_of(path) == "_emulator":
            name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            left[name.removesuffix(".__init__")] = set(targets(parse(path)))
    while free := [name for name in left if not left[name] & left.keys() - {name}]:
        for name in free:
            del left[name]
    # What is left is in a circle, or imports one.
    assert {name: sorted(wanted & left.keys()) for name, wanted in left.items()} == {}


def targets(tree):
    """List the modules that a module imports, as far as its own text can tell names from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            dotted = {f"{node.module}.{name.name}" for name in node.names}
            found = {name for name in dotted if is_module(name)}
            yield from found
            if len(found) < len(dotted):
                yield node.module


def is_module(name):
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def parse(path):
    return ast.parse(path.read_text())


def test_a_floor_of_the_emulator_imports_only_those_below_it():
    """A floor is a folder or a file; `culaunch._emulator` itself is the face, above all."""
    floor = {name: i for i, names in enumerate(EMULATOR_FLOORS) for name in names}
    found = []
    for path in MODULES:
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] != "_emulator" or parts[1] == "__init__":
            continue
        assert parts[1] in floor, f"{parts[1]} is new: say in this test on which floor it is"
        for name in targets(parse(path)):
            if name.startswith("culaunch._emulator"):
                wanted = [*name.split("."), ""][2]
                if wanted != parts[1] and floor.get(wanted, 99) >= floor[parts[1]]:
                    found.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert found == []
