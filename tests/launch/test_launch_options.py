"""All descriptions of launch options match the extension's table.

That each option arrives at the driver is in tests/cpp/test_launch_options.py.
"""

import ast
import inspect
import pydoc
import struct
from pathlib import Path

import pytest

import culaunch as cl
from culaunch._launch.launches.launch_options import KINDS, OPTIONS

STUB = ast.parse((Path(cl.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))
# The types of an option, and of the launcher's property, for type checkers.
TYPES = {
    "required_dims": ("Required[_Dims]", "tuple[int, int, int]"),
    "bytes": ("int", "int"),
    "stream": ("object", "object"),
    "dims": ("_Dims | None", "tuple[int, int, int] | None"),
    "switch": ("bool", "bool"),
    "int": ("int | None", "int | None"),
}


def members(name, kind):
    (found,) = (one for one in STUB.body if isinstance(one, ast.ClassDef) and one.name == name)
    return [one for one in found.body if isinstance(one, kind)]


def test_type_checkers_know_each_option():
    known = {
        one.target.id: ast.unparse(one.annotation)
        for one in members("LaunchOptions", ast.AnnAssign)
    }
    assert known == {name: TYPES[option.kind][0] for name, option in OPTIONS.items()}
    assert list(known) == list(OPTIONS)


def test_type_checkers_know_each_property_of_a_launcher():
    typed = {one.name: ast.unparse(one.returns) for one in members("Launcher", ast.FunctionDef)}
    properties = {name: typed.get(name) for name in OPTIONS}
    assert properties == {name: TYPES[option.kind][1] for name, option in OPTIONS.items()}


@pytest.mark.parametrize("method", ["configure", "launch"])
def test_signatures_have_each_option(method):
    parameters = inspect.signature(getattr(cl.Kernel, method)).parameters
    first = {"configure": ["self"], "launch": ["self", "args"]}[method]
    assert list(parameters) == [*first, *OPTIONS]
    for name, option in OPTIONS.items():
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default == option.default
        assert parameters[name].annotation == KINDS[option.kind].annotation


def test_help_has_each_option():
    text = inspect.getdoc(cl.Kernel.configure)
    for name, option in OPTIONS.items():
        assert f"{name} : {KINDS[option.kind].type}\n    {option.text}" in text
        if option.attribute:
            assert getattr(cl.Launcher, name).__doc__.startswith(option.text)
    assert "**options" not in text


def test_the_command_line_has_each_option_but_a_stream():
    from culaunch.cli.run import command

    known = {one.name: one for one in command.params}
    assert known.keys() >= OPTIONS.keys() - {"stream"}
    assert "stream" not in known
    for name in OPTIONS.keys() - {"stream"}:
        assert known[name].help == OPTIONS[name].text
        assert known[name].required == OPTIONS[name].is_required


def test_a_launch_needs_what_is_required(driver):
    kernel = driver.kernel()
    for method in (kernel.configure, kernel.launch):
        with pytest.raises(TypeError, match=f"^{method.__name__} needs grid= and block=$"):
            method(grid=1)


def test_help_says_what_a_call_of_a_launcher_does(driver):
    assert "Launch the kernel with one argument for each" in pydoc.render_doc(cl.Launcher)
    assert str(inspect.signature(cl.Launcher.__call__)) == "(self, /, *arguments)"
    launcher = driver.kernel(4).configure(grid=2, block=3)
    launcher.__call__(5)
    cl.Launcher.__call__(launcher, 6)
    sent = [one.arguments for one in driver.launches]
    assert sent == [(struct.pack("<i", number),) for number in (5, 6)]
    with pytest.raises(TypeError, match="keyword"):
        launcher.__call__(n=5)
