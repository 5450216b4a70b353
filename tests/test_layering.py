"""Rules that import-linter cannot check: outside packages, the extension, names in strings.

The rules for imports in the package are in pyproject.toml (``tool.importlinter``); ``make lint``
checks them.
"""

import ast
import functools
import importlib
import re
import sys
from pathlib import Path

import pytest

import culaunch

PACKAGE = Path(culaunch.__file__).parent
# The scripts that the CMake functions run are no modules.
MODULES = sorted(set(PACKAGE.rglob("*.py")) - set(PACKAGE.glob("cmake/*")))
# The rooms that the extension is below of.
USES_THE_EXTENSION = {
    "_cache", "_compile", "_doctor", "_elementwise", "_emulator", "_function", "_graph", "_image",
    "_includes", "_jax", "_launch", "_profile", "_ship", "_torch", "_triton",
}  # fmt: skip
DOTTED = r"culaunch(\.\w+)+(?<!\.h)"  # a module, not the header
# The packages that a part may import at the top of a module, besides the standard library.
NEEDED = {"_emulator": {"numpy"}, "_pytest_plugin": {"pytest"}, "cli": {"click"}}


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
        if "_core" in text_of(path)  # to parse all takes a second
        for name in imported(ast.parse(text_of(path)))
        if f"{name}.".startswith("culaunch._core.")
    }
    assert found == USES_THE_EXTENSION


def test_no_module_is_named_in_a_string():
    """The lint cannot see this import: ``__init__.py`` connects rooms instead."""
    names = {".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in MODULES}
    names |= {name.removesuffix(".__init__") for name in names}
    found = []
    for path in MODULES:
        if not re.search(rf"['\"]{DOTTED}['\"]", text_of(path)):
            continue
        found += [
            f"{path.relative_to(PACKAGE)} names {node.value}"
            for node in ast.walk(ast.parse(text_of(path)))
            if isinstance(node, ast.Constant)
            and re.fullmatch(DOTTED, str(node.value))
            and node.value.removeprefix("culaunch.") in names
        ]
    assert found == []


def test_a_computed_name_of_a_module_is_in_its_own_room():
    """Except in the root, whose names are lazy."""
    computed = {
        path.relative_to(PACKAGE).as_posix(): re.findall(
            r"import_module\(f['\"]culaunch\.(\w*)", text_of(path)
        )
        for path in MODULES
    }
    assert computed.pop("__init__.py")
    assert {path for path, rooms in computed.items() if set(rooms) - {path.split("/")[0]}} == set()


def test_loading_a_module_needs_the_standard_library_only():
    found = []
    for path in MODULES:
        # cli/__init__.py is what reports that click is missing.
        known = set() if path.parts[-2:] == ("cli", "__init__.py") else NEEDED.get(part_of(path))
        roots = {name.split(".")[0] for name in imported_on_load(ast.parse(text_of(path)).body)}
        outside = roots - set(sys.stdlib_module_names) - {"culaunch"} - (known or set())
        if outside:
            found.append(f"{path.relative_to(PACKAGE)} imports {outside} at the top")
    assert found == []


@functools.cache
def text_of(path):
    return path.read_text(encoding="utf-8")


ROOT = Path(__file__).parents[1]
PROGRAMS = sorted(
    path.relative_to(ROOT)
    for folder in ("benchmarks", "cmake", "examples", "tools")
    for path in (ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_what_a_program_beside_the_package_takes_of_it_is_there(program):
    """Nobody else looks: they are not type-checked, and most run rarely."""
    for node in ast.walk(ast.parse((ROOT / program).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("culaunch."):
            module = importlib.import_module(node.module)
            for one in node.names:
                if not hasattr(module, one.name):
                    importlib.import_module(f"{node.module}.{one.name}")
