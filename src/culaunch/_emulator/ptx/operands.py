"""Parse one operand of an instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.ptx.syntax import (
    Address,
    Immediate,
    Negated,
    Operand,
    Pair,
    Sink,
    Special,
    Symbol,
    Vector,
)
from culaunch._emulator.ptx.tokens import Cursor, parse_number

if TYPE_CHECKING:
    from culaunch._emulator.ptx.scope import Scope


def parse_operand(cursor: Cursor, scope: Scope) -> Operand:
    """Parse the operand at `cursor`, looking names up in `scope`."""
    text = cursor.take()
    if text == "[":
        return _address(cursor, scope)
    if text in "{(":
        vector = Vector(_items(cursor, scope, "}" if text == "{" else ")"))
        return _pair(cursor, scope, vector)
    if text == "!":
        # Count the depth at each nested operand, because Python's stack is limited, too.
        cursor.enter()
        operand = parse_operand(cursor, scope)
        cursor.leave()
        return Negated(operand)
    if text in "-~+" or text[0].isdigit():
        return _number(cursor, text)
    return _pair(cursor, scope, _name(cursor, scope, text))


def _pair(cursor: Cursor, scope: Scope, first: Operand) -> Operand:
    if not cursor.accept("|"):
        return first
    cursor.enter()
    second = parse_operand(cursor, scope)
    cursor.leave()
    return Pair(first, second)


def _number(cursor: Cursor, text: str) -> Immediate:
    sign = ""
    while text in ("-", "~", "+"):
        sign += text
        text = cursor.take()
    if not text[0].isdigit():
        cursor.at -= 1
        cursor.fail(f"expected a number, found {text!r}")
    bits, float_size = parse_number(text)
    # From the number outward. A float's sign is always its highest bit.
    for mark in reversed(sign):
        if mark == "~":
            bits = ~bits
        elif mark == "-":
            bits = bits ^ (1 << (8 * float_size - 1)) if float_size else -bits
    return Immediate(bits, float_size)


def _name(cursor: Cursor, scope: Scope, text: str) -> Operand:
    if text == "_":
        return Sink()
    if not (text[0] in "%$_" or text[0].isalpha()):
        cursor.at -= 1
        cursor.fail(f"expected an operand, found {text!r}")
    # Registers first: a compiler may give one any name, even `WARP_SZ` or a variable's.
    register = scope.register(text)
    if register is not None:
        return register
    if text == "WARP_SZ":
        return Immediate(32)
    if text[0] == "%":
        if cursor.peek() in (".x", ".y", ".z", ".w"):
            text += cursor.take()
        return Special(text[1:])
    offset = 0
    while cursor.peek() in ("+", "-"):
        sign = 1 if cursor.take() == "+" else -1
        offset += sign * cursor.integer()
    return Symbol(text, offset)


def _items(cursor: Cursor, scope: Scope, close: str) -> tuple[Operand, ...]:
    items: list[Operand] = []
    if close == ")" and cursor.accept(close):  # a call may have no arguments
        return ()
    cursor.enter()
    items.append(parse_operand(cursor, scope))
    while not cursor.accept(close):
        cursor.expect(",")
        items.append(parse_operand(cursor, scope))
    cursor.leave()
    return tuple(items)


def _address(cursor: Cursor, scope: Scope) -> Operand:
    cursor.enter()
    base = parse_operand(cursor, scope)
    cursor.leave()
    offset = 0
    while cursor.peek() in ("+", "-"):
        sign = 1 if cursor.take() == "+" else -1
        offset += sign * cursor.integer()
    if cursor.accept(","):
        # A texture, a surface or a tensor with coordinates.
        return Vector((base, *_items(cursor, scope, "]")))
    cursor.expect("]")
    # ``[name+4]`` is read as a symbol with an offset; elsewhere the offset of an address is its
    # own.
    if isinstance(base, Symbol) and base.offset:
        base, offset = Symbol(base.name), offset + base.offset
    return Address(base, offset)
