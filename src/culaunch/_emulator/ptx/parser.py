"""Parse a module: variables, functions and their bodies, files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.ptx.body import parse_body
from culaunch._emulator.ptx.check import check_bodies
from culaunch._emulator.ptx.declarations import parse_parameters, parse_variables
from culaunch._emulator.ptx.syntax import Function, Module, Variable
from culaunch._emulator.ptx.tokens import Cursor, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINKAGE = {".visible", ".weak", ".extern", ".common"}
_SPACES = {".global", ".const", ".shared"}


def parse_module(text: str) -> tuple[Module, Tokens]:
    """Parse PTX text.

    Raise ImageError if the text is not PTX, or uses an undefined name; the message has the line.
    """
    tokens = Tokens(text)
    cursor = Cursor(tokens)
    module = Module((0, 0), "", {}, {}, {}, {})
    while not cursor.done():
        _parse_top(cursor, module)
    if not module.target:
        cursor.fail("no .target directive: not a PTX module")
    for name in [name for name, one in module.functions.items() if one.is_kernel]:
        if not module.functions[name].is_definition:
            del module.functions[name]
    # Bodies come last, because a body may use later definitions, and functions are declared,
    # defined and aliased in any order.
    for function in module.functions.values():
        parse_body(function, tokens)
    check_bodies(module, tokens)
    return module, tokens


def _parse_top(cursor: Cursor, module: Module) -> None:
    word = cursor.take()
    external = weak = False
    while word in _LINKAGE:
        external |= word == ".extern"
        weak |= word in (".weak", ".common")
        word = cursor.take()
    if word in _SPACES:
        for variable in parse_variables(cursor, word[1:], external=external):
            if _takes(module, module.variables.get(variable.name), variable, weak=weak):
                module.variables[variable.name] = variable
    elif word in (".func", ".entry"):
        _parse_function(
            cursor, module, is_kernel=word == ".entry", is_external=external, is_weak=weak
        )
    elif word == ".version":
        major, _, minor = cursor.take().partition(".")
        if not (major.isdecimal() and minor.isdecimal()):
            cursor.fail("a version must be two numbers and a dot")
        module.version = (int(major), int(minor))
    elif word == ".target":
        module.target = cursor.take()
        # Options of the target, such as `debug` or `texmode_independent`.
        while cursor.accept(","):
            cursor.take()
    elif word == ".address_size":
        if cursor.integer() != 64:
            cursor.fail("only 64-bit addresses are emulated")
    elif word == ".file":
        number = cursor.integer()
        module.files[number] = cursor.take().strip('"')
        while cursor.accept(","):
            cursor.integer()
    # Debug information (DWARF): only the names of inlined functions are of use.
    elif word == ".section":
        is_names = cursor.take() == ".debug_str"
        start, stop = cursor.skip_braces()
        if is_names:
            module.strings.update(_read_strings(cursor.texts[start:stop]))
    elif word == ".alias":
        name = cursor.take()
        cursor.expect(",")
        module.aliases[name] = cursor.take()
        cursor.expect(";")
    elif word == ".pragma":
        cursor.skip_past(";")
    elif word != ";":
        cursor.at -= 1
        cursor.fail(f"unknown directive {word!r}")


def _read_strings(texts: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the labels and strings of ``name: .b8 107,0``; anything else is skipped."""
    label, data = "", bytearray()
    for i, text in enumerate(texts):
        if texts[i + 1 : i + 2] == [":"]:
            label, data = text, bytearray()
        elif text == "0" and label:
            yield label, data.decode("utf-8", "replace")
            label = ""
        elif text.isdecimal() and len(text) <= 3 and int(text) < 256:
            data.append(int(text))


def _takes(
    module: Module,
    known: Function | Variable | None,
    new: Function | Variable,
    *,
    weak: bool,
) -> bool:
    """Tell whether a new symbol replaces the known one, by the rules of a linker.

    A definition replaces a declaration, and a strong definition replaces a weak one. Otherwise the
    first one stays.
    """
    takes = known is None or not known.is_definition
    takes |= new.is_definition and new.name in module.weak and not weak
    if takes and new.is_definition:
        (module.weak.add if weak else module.weak.discard)(new.name)
    return takes


def _parse_function(
    cursor: Cursor, module: Module, *, is_kernel: bool, is_external: bool, is_weak: bool
) -> None:
    line = cursor.line
    if cursor.accept(".attribute"):
        cursor.skip_past(")")
    returns = parse_parameters(cursor)
    name = cursor.take()
    function = Function(name, is_kernel, line, parse_parameters(cursor), returns)
    while cursor.peek().startswith("."):
        word = cursor.take()
        numbers: list[int] = []
        if word == ".pragma":
            cursor.skip_past(";")
            continue
        while cursor.peek()[:1].isdigit():
            numbers.append(cursor.integer())
            cursor.accept(",")
        function.directives[word[1:]] = tuple(numbers)
    if cursor.peek() == "{":
        function.tokens = cursor.skip_braces()
    else:
        cursor.accept(";")
    known = module.functions.get(name)
    if _takes(module, known, function, weak=is_weak):
        module.functions[name] = function
    elif known is not None and function.is_definition and not is_weak:
        cursor.fail(f"{name!r} is defined twice (first in line {known.line})")
    # Another file's kernel, which this one launches. Both are linked.
    if is_kernel and function.tokens is None and not is_external:
        cursor.fail(f"the kernel {name!r} has no body")
