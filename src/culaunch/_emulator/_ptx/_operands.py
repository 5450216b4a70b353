"""Parse one operand of an instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator._ptx._syntax import (
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
from culaunch._emulator._ptx._tokens import Cursor, parse_number

if TYPE_CHECKING:
    from culaunch._emulator._ptx._body import Scope

__all__ = ["parse_operand"]


def parse_operand(cursor: Cursor, scope: Scope) -> Operand:
    """Parse the operand at `cursor`, looking names up in `scope`."""
    token = cursor.take()
    if token == "[":
        return _address(cursor, scope)
    if token in "{(":
        close = "}" if token == "{" else ")"
        items: list[Operand] = []
        while not cursor.accept(close):
            items.append(parse_operand(cursor, scope))
            if not cursor.accept(","):
                cursor.expect(close)
                break
        return Vector(tuple(items))
    if token == "!":
        return Negated(parse_operand(cursor, scope))
    if token in "-~+" or token[0].isdigit():
        return _number(cursor, token)
    first = _name(cursor, scope, token)
    if cursor.accept("|"):
        return Pair(first, parse_operand(cursor, scope))
    return first


def _number(cursor: Cursor, token: str) -> Immediate:
    sign = ""
    while token in ("-", "~", "+"):
        sign += token
        token = cursor.take()
    bits, float_size = parse_number(token)
    for mark in reversed(sign):
        if mark == "~":
            bits = ~bits
        elif mark == "-":
            bits = bits ^ (1 << (8 * float_size - 1)) if float_size else -bits
    return Immediate(bits, float_size)


def _name(cursor: Cursor, scope: Scope, token: str) -> Operand:
    if token == "_":
        return Sink()
    if not (token[0] in "%$_" or token[0].isalpha()):
        cursor.at -= 1
        cursor.fail(f"expected an operand, found {token!r}")
    register = scope.register(token)
    if register is not None:
        return register
    if token == "WARP_SZ":
        return Immediate(32)
    if token[0] == "%":
        if cursor.peek() in (".x", ".y", ".z", ".w"):
            token += cursor.take()
        return Special(token[1:])
    offset = 0
    while cursor.peek() in ("+", "-"):
        sign = 1 if cursor.take() == "+" else -1
        offset += sign * cursor.integer()
    return Symbol(token, offset)


def _address(cursor: Cursor, scope: Scope) -> Operand:
    base = parse_operand(cursor, scope)
    offset = 0
    while cursor.peek() in ("+", "-"):
        sign = 1 if cursor.take() == "+" else -1
        offset += sign * cursor.integer()
    if cursor.accept(","):
        # A texture or a tensor with coordinates: no instruction that takes one is emulated.
        items: list[Operand] = [base]
        while not cursor.accept("]"):
            items.append(parse_operand(cursor, scope))
            if not cursor.accept(","):
                cursor.expect("]")
                break
        return Vector(tuple(items))
    cursor.expect("]")
    if isinstance(base, Symbol) and base.offset:
        base, offset = Symbol(base.name), offset + base.offset
    return Address(base, offset)
