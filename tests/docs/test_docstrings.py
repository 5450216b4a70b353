"""The rule of public docstrings, by numpydoc: a sentence, and a section for each thing to know."""

import ast
import builtins
import inspect
import re
import textwrap
from pathlib import Path

import pytest

import culaunch as cl

# Keywords that only raise, with a hint, and other libraries' spellings of the documented ones.
CATCH_ALLS = ("unknown", "extra")
STUBS = ast.parse((Path(cl.__file__).parent / "_core.pyi").read_text())


def public_callables():
    """Yield the public functions, and the methods of every public class."""
    spaces = [cl, *(value for name in cl.__all__ if inspect.ismodule(value := getattr(cl, name)))]
    named = {
        value: f"{space.__name__}.{name}"
        for space in reversed(spaces)
        for name in space.__all__
        if callable(value := getattr(space, name)) and value.__module__.startswith("culaunch")
    }
    for owner, name in named.items():
        if not isinstance(owner, type):
            yield pytest.param(owner, id=name)
            continue
        for member in dir(owner):
            home = next((base for base in owner.__mro__ if member in vars(base)), None)
            if member.startswith("_") or home is None or not home.__module__.startswith("culaunch"):
                continue
            value = inspect.getattr_static(owner, member)
            value = getattr(value, "__func__", value)  # of a class or static method
            if callable(value) and not isinstance(value, type):
                yield pytest.param(value, id=f"{name}.{member}")


def section(function, title):
    """Return a section of a docstring; empty if it is missing."""
    rule = "-" * len(title)
    return inspect.getdoc(function).partition(f"\n{title}\n{rule}\n")[2].partition("\n\n")[0]


def result(function):
    """Return the annotation of a result, from the source or, for native code, from the stubs."""
    if hasattr(function, "__annotations__"):
        return str(function.__annotations__.get("return"))
    *_, owner, name = function.__qualname__.split(".")
    stub = next(node for node in STUBS.body if getattr(node, "name", None) == owner)
    method = next(node for node in stub.body if getattr(node, "name", None) == name)
    return ast.unparse(method.returns)


def raised(function):
    """Return the names of the exceptions that the body itself raises, without helpers."""
    function = inspect.unwrap(function)
    if not hasattr(function, "__code__"):
        return set()
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc]
    return {
        ast.unparse(call.func)
        for call in calls
        if isinstance(call, ast.Call) and re.fullmatch(r"[A-Z]\w+", ast.unparse(call.func))
    }


@pytest.mark.parametrize("function", list(public_callables()))
def test_a_public_docstring_is_complete(function):
    text = inspect.getdoc(function)
    assert text, "has no docstring"
    assert text.partition("\n")[0].endswith("."), "the first line is not a sentence"
    parameters = section(function, "Parameters")
    for name, parameter in inspect.signature(function).parameters.items():
        if name in ("self", "cls", *CATCH_ALLS):
            continue
        named = rf"^(?:.*, )?\*{{0,2}}{name}\b(?:,.*)?(?: :|$)"
        if parameter.kind is parameter.KEYWORD_ONLY:  # or all keywords together
            named += r"|^\*\*options$"
        assert re.search(named, parameters, re.MULTILINE) or f"`{name}`" in text, name
    if result(function) not in ("None", "NoReturn"):
        assert section(function, "Returns") or section(function, "Yields"), "says no result"
    raises = section(function, "Raises")
    for name in raised(function):
        bases = getattr(builtins, name, None) or getattr(cl, name)
        words = "|".join(base.__name__ for base in bases.__mro__[:-2])
        assert re.search(rf"\b({words})\b", raises), name
