"""The public names: sorted, all there, in one table, and the same words in the command line."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import culaunch as cl

TREE = ast.parse(Path(cl.__file__).read_text())
MODULES = [name for name, home in cl._HOME.items() if home == name]
# The commands whose word is not a function of the API, and why.
CLI_ONLY = {
    "demo": "shows the API",
    "emulate": "runs a program, which need not know culaunch",
    "bundle": "runs a program, and calls Cache.bundle",
    "cache": "manages what compile keeps",
    "run": "launches, as kernel[grid, block] does",
}
# Options that only a command has: files, and how to print.
CLI_OPTIONS = {
    "compile": {"driver", "output", "verbose"},
    "doctor": {"as_json", "driver"},
    "embed": {"input_obj", "output", "output_obj", "verbose"},
    "fatbin": {"output", "verbose"},
    "inspect": {"as_json", "files", "folder", "is_long", "no_kernels", "pattern"},
    "link": {"output", "verbose"},
    "tune": {"as_json", "device", "driver", "kernel", "output", "plot", "seed", "signature"},
}


def typed_names():
    """Read what ``__init__`` imports for type checkers: name -> module."""
    for node in TREE.body:
        if isinstance(node, ast.If):
            for statement in node.body:
                if not isinstance(statement, ast.ImportFrom):
                    continue  # names that exist at run time
                for alias in statement.names:
                    assert alias.asname in (None, alias.name)
                    home = statement.module.removeprefix("culaunch").removeprefix(".")
                    yield alias.name, home or alias.name  # a name may be a module


def test_all_is_sorted_and_unique():
    assert cl.__all__ == sorted(set(cl.__all__))


def test_the_table_has_every_name_and_no_other():
    assert sorted(cl._HOME) == cl.__all__
    assert list(cl._HOME) == sorted(cl._HOME)


def test_type_checkers_see_what_the_table_says():
    assert dict(typed_names()) == cl._HOME


@pytest.mark.parametrize("name", cl.__all__)
def test_a_name_resolves_and_is_documented(name):
    value = getattr(cl, name)
    home = importlib.import_module(f"culaunch.{cl._HOME[name]}")
    assert value is (home if cl._HOME[name] == name else getattr(home, name))
    assert name in dir(cl)
    if callable(value):
        assert inspect.getdoc(value), f"{name} has no docstring"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'lunch'"):
        cl.lunch  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'Kernle': did you mean 'Kernel'\?"):
        cl.Kernle  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'kernle': did you mean 'kernel'\?"):
        cl.kernle  # noqa: B018


def test_what_completion_shows_is_public():
    shown = {name for name in dir(cl) if not name.startswith("_")}
    assert shown == set(cl.__all__)


@pytest.mark.parametrize("module", MODULES)
def test_a_public_module_shows_its_names_alone(module):
    face = getattr(cl, module)
    assert face.__doc__
    assert len(face.__all__) == len(set(face.__all__))
    assert [name for name in dir(face) if name[0] not in "_@"] == sorted(face.__all__)


def test_an_object_has_one_public_place():
    places = {}
    for face in (cl, *(getattr(cl, module) for module in MODULES)):
        for name in face.__all__:
            places.setdefault(id(getattr(face, name)), set()).add(f"{face.__name__}.{name}")
    assert [found for found in places.values() if len(found) > 1] == []


def test_type_checkers_refuse_an_unknown_name():
    """A ``__getattr__`` that they see would give every name a type."""
    seen = [node.name for node in TREE.body if isinstance(node, ast.FunctionDef)]
    assert "__getattr__" not in seen
    hidden = [node for node in TREE.body if isinstance(node, ast.If) and node.body]
    assert any(ast.unparse(node.test) == "not TYPE_CHECKING" for node in hidden)


def test_the_commands_are_words_of_the_api():
    click = pytest.importorskip("click", reason="needs click")
    group = importlib.import_module("culaunch.cli._group").group
    public = {*cl.__all__, *(name for module in MODULES for name in getattr(cl, module).__all__)}
    words = set(group.list_commands(click.Context(group)))
    assert words - set(CLI_ONLY) <= public


def test_the_options_are_words_of_the_api():
    """Those of every command that is a function of the API, a new one too."""
    click = pytest.importorskip("click", reason="needs click")
    group = importlib.import_module("culaunch.cli._group").group
    public = {
        name: getattr(face, name)
        for face in (*(getattr(cl, module) for module in MODULES), cl)
        for name in face.__all__
    }
    functions = {
        name: public[name]
        for name in group.list_commands(click.Context(group))
        if callable(public.get(name))
    }
    assert functions.keys() >= CLI_OPTIONS.keys()
    for name, function in functions.items():
        command = importlib.import_module(f"culaunch.cli.{name}").command
        options = {option.name for option in command.params}
        known = set(inspect.signature(function).parameters)
        assert options - CLI_OPTIONS.get(name, set()) <= known, name
