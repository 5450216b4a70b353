"""Parse variable and parameter declarations, with their initialisers."""

from __future__ import annotations

import re
import struct

from culaunch._emulator.ptx.syntax import Symbol, Variable
from culaunch._emulator.ptx.tokens import Cursor, parse_number
from culaunch._emulator.types import is_type, size_of

# Far above ptxas's limits. They keep a hostile text from requesting too much memory before any
# check.
_MAX_ALIGN = 1 << 20
# A leading zero would make it octal.
_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,20})\Z").match
_MAX_BYTES = 1 << 40

_REFERENCES = (".texref", ".samplerref", ".surfref")

# Words about the target of a pointer parameter: hints for the optimizer.
_IGNORED = {".ptr", ".global", ".const", ".shared", ".local", ".generic", ".relaxed"}


def parse_variables(cursor: Cursor, space: str, *, external: bool = False) -> list[Variable]:
    """Parse the declaration after its state space, through the semicolon."""
    found = []
    variable = parse_variable(cursor, space)
    while True:
        variable.external = external
        found.append(variable)
        if not cursor.accept(","):
            break
        # ``.global .b32 a, b[4];``: the words before the first name hold for all.
        variable = _parse_name(cursor, space, variable.type, variable.align, variable.element)
    cursor.expect(";")
    return found


def parse_parameters(cursor: Cursor) -> list[Variable]:
    """Parse a parenthesised list of parameters; an absent list is empty."""
    found: list[Variable] = []
    if not cursor.accept("("):
        return found
    while not cursor.accept(")"):
        space = cursor.take()
        if space not in (".param", ".reg"):
            cursor.fail(f"expected .param or .reg, found {space!r}")
        found.append(parse_variable(cursor, space[1:]))
        if not cursor.accept(","):
            cursor.expect(")")
            break
    # The layout that C compilers use, and the driver reports: each at the next multiple of its
    # alignment.
    offset = 0
    for param in found:
        if not param.size:
            cursor.fail(f"the parameter {param.name!r} has no size")
        offset = -(-offset // param.align) * param.align
        param.offset = offset
        offset += param.size
    return found


def parse_variable(cursor: Cursor, space: str) -> Variable:
    """Parse ``.align 4 .b8 name[16] = {...}``, without the state space before it."""
    align, lanes, kind, is_reference = 0, 1, "", False
    while cursor.peek().startswith("."):
        word = cursor.take()
        if word == ".align":
            # In a kernel's .ptr clause the alignment is the pointee's, not the parameter's.
            value = cursor.integer()
            if value < 1 or value & (value - 1) or value > _MAX_ALIGN:
                cursor.fail("an alignment must be a power of two")
            align = align if kind else value
        elif word in (".v2", ".v4", ".v8"):
            lanes = int(word[2:])
        elif word == ".attribute":
            cursor.skip_past(")")
        elif is_type(word[1:]):
            kind = word[1:]
        # A reference to a texture, sampler or surface has 64 bits: the handle of an object.
        elif word in _REFERENCES:
            kind, is_reference = "b64", True
        elif word not in _IGNORED:
            cursor.fail(f"unknown word {word!r} in a declaration")
    if not kind:
        cursor.fail("a declaration without a type")
    element = size_of(kind)
    variable = _parse_name(cursor, space, kind, max(align, element * lanes), element * lanes)
    variable.is_reference = is_reference
    return variable


def _parse_name(cursor: Cursor, space: str, kind: str, align: int, element: int) -> Variable:
    line = cursor.line
    name = cursor.take()
    count, sized, is_array = 1, True, False
    while cursor.accept("["):
        is_array = True
        # The first extent may be left open: the initialiser says it, or it is dynamic shared
        # memory.
        if cursor.accept("]"):
            sized = False
            continue
        count *= cursor.integer()
        if not 0 <= count <= _MAX_BYTES:
            cursor.fail("the size of an array is negative or far too large")
        cursor.expect("]")
    values: list[int | Symbol] = []
    generic: set[int] = set()
    if cursor.accept("="):
        _parse_initialiser(cursor, kind, values, generic)
        if is_array and not sized:
            # `element` is a vector's size for .v2 and the like: the values are those of its
            # components.
            count = len(values) * size_of(kind) // element
            sized = True
        if len(values) * size_of(kind) > count * element:
            cursor.fail("more values than the variable has elements")
    return Variable(
        name=name,
        space=space,
        type=kind,
        align=align,
        size=count * element if sized else 0,
        element=element,
        values=tuple(values),
        line=line,
        generic=frozenset(generic),
    )


def _parse_initialiser(
    cursor: Cursor, kind: str, values: list[int | Symbol], generic: set[int]
) -> None:
    if cursor.accept("{"):
        # Arrays of arrays have braces in braces; the values come flat, as they lie in memory.
        cursor.enter()
        while not cursor.accept("}"):
            numbers = _plain_numbers(cursor, kind)
            if numbers:
                values += numbers
            else:
                _parse_initialiser(cursor, kind, values, generic)
            if not cursor.accept(","):
                cursor.expect("}")
                break
        cursor.leave()
        return
    values.append(_parse_value(cursor, kind, generic, len(values)))


def _plain_numbers(cursor: Cursor, kind: str) -> list[int]:
    """Step over ``1, 2, 3`` up to the closing brace, if nothing but short decimals is there.

    Tables of random number generators have hundreds of thousands of them: this is what makes a
    module with one load in a fraction of a second.
    """
    if kind in ("f32", "f64"):
        return []
    texts, start = cursor.texts, cursor.at
    try:
        close = texts.index("}", start, cursor.stop)
    except ValueError:
        return []
    numbers, commas = texts[start:close:2], texts[start + 1 : close : 2]
    if len(commas) != len(numbers) - 1 or commas.count(",") != len(commas):
        return []
    if not all(map(_DECIMAL, numbers)):
        return []
    mask = (1 << 8 * size_of(kind)) - 1
    cursor.at = close
    return [int(text) & mask for text in numbers]


def _parse_value(cursor: Cursor, kind: str, generic: set[int], index: int) -> int | Symbol:
    negative = False
    while cursor.peek() in ("-", "+"):
        negative ^= cursor.take() == "-"
    text = cursor.take()
    if not text[0].isdigit():
        # ``generic(name)`` is the variable's generic address: for .global and .const ones, the only
        # ones with initializers, that is the address itself.
        if text == "generic":
            generic.add(index)
            cursor.expect("(")
            text = cursor.take()
            cursor.expect(")")
        offset = 0
        while cursor.peek() in ("+", "-"):
            sign = 1 if cursor.take() == "+" else -1
            offset += sign * cursor.integer()
        return Symbol(text, offset)
    bits, float_size = parse_number(text)
    width = 8 * size_of(kind)
    # Hexadecimal floats are bits. They are read as numbers, because a 32-bit one may initialize an
    # f64.
    if float_size and kind in ("f32", "f64"):
        value = struct.unpack(
            "<f" if float_size == 4 else "<d", bits.to_bytes(float_size, "little")
        )[0]
        return _float_bits(cursor, kind, -value if negative else value)
    if kind in ("f32", "f64"):
        return _float_bits(cursor, kind, -bits if negative else bits)
    return (-bits if negative else bits) & ((1 << width) - 1)


def _float_bits(cursor: Cursor, kind: str, value: float) -> int:
    try:
        packed = struct.pack("<f" if kind == "f32" else "<d", value)
    except OverflowError:
        cursor.fail(f"a number too large for {kind}")
    return int.from_bytes(packed, "little")
