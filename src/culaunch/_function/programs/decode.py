"""Decodes the words of a program into a tree, the reverse of ``encode``."""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING, Any

from culaunch._base.places import Place
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.effects import (
    Allocate,
    Call,
    Constant,
    Launch,
    Parameter,
    Return,
    View,
)
from culaunch._function.programs.encode import operands_of_launches
from culaunch._function.programs.program import Leaf, Node, Tree
from culaunch._function.programs.record import Guard, Instruction, Register
from culaunch._launch.launches.launch_options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# The exceptions of reading words that the extension has not checked.
DAMAGED = (
    IndexError, KeyError, ValueError, TypeError, StopIteration, RuntimeError, struct.error
)  # fmt: skip


class DecodedTree(Tree):
    """The tree of a program. Its nodes are the program's blocks, in order.

    Attributes
    ----------
    blocks : list[Node]
    """

    def __init__(self, name: str, array_arguments: int, blocks: list[Node]) -> None:
        super().__init__(name, array_arguments)
        self.blocks = blocks
        self.root = blocks[0]
        self.paths = sum(node.leaf is not None for node in blocks)
        results = [step.result for node in blocks for step in node.steps]
        self.registers = 1 + max((one for one in results if one is not None), default=-1)

    @functools.cached_property
    def definitions(self) -> dict[int, Instruction]:
        """The instruction that writes a register."""
        steps = (step for node in self.blocks for step in node.steps)
        return {step.result: step for step in steps if step.result is not None}

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes; guards lead only to later ones."""
        yield from self.blocks

    def leaves(self) -> Iterator[Leaf]:
        """Yield the ends of paths, except those that always end in an error."""
        for node in self.blocks:
            if node.leaf is not None and not any(map(self._fails, node.steps)):
                yield node.leaf

    def _fails(self, step: Instruction) -> bool:
        if step.op.name != "CHECK":
            return False
        condition = self.definitions.get(step.operands[0])
        if condition is None or condition.op.name != "CONST_B":
            return False
        return condition.operands[0] == 0

    def new_register(self) -> Register:
        """Return a register that is not used yet."""
        self.registers += 1
        return Register(self.registers - 1)


def decode(
    name: str,
    words: bytes,
    texts: tuple[str, ...],
    constant: Callable[[int], Any],
    places: Mapping[int, str] | None = None,
) -> DecodedTree:
    """Return the tree of a program.

    Parameters
    ----------
    name : str
        The function's.
    words : bytes
        The extension's Program checks them; otherwise they may raise any of :data:`DAMAGED`.
    texts : tuple[str, ...]
    constant : callable
        Returns a constant by its number.
    places : Mapping[int, str], optional
        The places of guards, by the numbers of their blocks.
    """
    numbers = struct.unpack(f"<{len(words) // 8}q", words)
    # Version, registers, given and made arrays, the number of blocks, the size of each, then the
    # blocks: docs/dev/functions.md.
    at = 5 + numbers[4]
    nodes = [Node() for _ in range(numbers[4])]
    for number, (node, size) in enumerate(zip(nodes, numbers[5:at], strict=True)):
        place = _place((places or {}).get(number, ""))
        _Reader(texts, constant).fill(node, numbers[at : at + size], nodes, place)
        at += size
    return DecodedTree(name, numbers[2], nodes)


class _Reader:
    def __init__(self, texts: tuple[str, ...], constant: Callable[[int], Any]) -> None:
        self._texts = texts
        self._constant = constant

    def fill(self, node: Node, words: tuple[int, ...], nodes: list[Node], place: Place) -> None:
        records = _records(words)
        for number, operands in records:
            if number == oc.GUARD:
                condition, *following = operands
                node.guard = Guard(Register(condition), True, place, None)
                for side, target in zip((True, False), following, strict=True):
                    if target >= 0:
                        node.branches[side] = nodes[target]
                return
            if number == oc.EFFECTS:
                node.leaf = Leaf(tuple(self.effect(*one) for one in records))
                return
            node.steps.append(self.instruction(oc.BY_NUMBER[number], operands))
        raise ValueError("a block has no end")

    def instruction(self, op: oc.Op, words: tuple[int, ...]) -> Instruction:
        if op.name == "CHECK":
            condition, text, exception, _, *shown = words
            operands = (Register(condition), exception, *map(Register, shown))
            return Instruction(op, None, operands, self._texts[text])
        letters = op.operands
        # The letters of the operation distinguish registers from numbers.
        found = [
            Register(word) if letter in "ifb" or (letter == "g" and word >= 0) else word
            for letter, word in zip(letters, words, strict=True)
            if letter != "t" and letter not in "IFB"
        ]
        place = self.at(words[letters.index("t")]) if op.has_text else None
        return Instruction(op, Register(words[0]) if op.result else None, tuple(found), place)

    # ---- effects

    def effect(self, number: int, words: tuple[int, ...]) -> Any:
        reader = iter(words)
        if number == oc.ALLOCATE:
            array, dtype, fill, rank = _take(reader, 4)
            shape = _registers(reader, rank)
            return Allocate(array, dtype, fill, self.at(next(reader, -1)), shape)
        if number == oc.VIEW:
            array, source, offset, dtype, rank = _take(reader, 5)
            shape, strides = _registers(reader, rank), _registers(reader, rank)
            place = self.at(next(reader, -1))
            return View(array, source, Register(offset), dtype, place, shape, strides)
        if number == oc.LAUNCH:
            return self.launch(reader)
        if number == oc.CALL:
            return self.call(reader)
        if number == oc.RETURN:
            return Return(self.value(reader))
        raise ValueError(f"program: there is no effect {number} in a body")

    def launch(self, reader: Iterator[int]) -> Launch:
        kernel, flags, predicate = _take(reader, 3)
        given = {
            name for name, option in OPTIONS.items() if option.is_required or flags & option.flag
        }
        registers = {name: _take(reader, count) for name, count in operands_of_launches(given)}
        options = tuple(
            (name, tuple(map(Register, registers.get(name, ()))))
            for name in OPTIONS
            if name in given
        )
        text, count = _take(reader, 2)
        parameters = tuple(self.parameter(reader) for _ in range(count))
        place = self.at(text)
        return Launch(self._constant(kernel), _optional(predicate), options, place, parameters)

    def call(self, reader: Iterator[int]) -> Call:
        called, predicate, count = _take(reader, 3)
        arguments = []
        for _ in range(count):
            kind, index = _take(reader, 2)
            value: Any = index
            if kind in oc.V_NUMBERS:
                value = Register(index)
            elif kind == oc.V_CONSTANT:
                value = Constant(self._constant(index))
            arguments.append((kind, value))
        outputs = tuple(_take(reader, next(reader)))
        place = self.at(next(reader, -1))
        return Call(self._constant(called), _optional(predicate), place, tuple(arguments), outputs)

    def parameter(self, reader: Iterator[int]) -> Parameter:
        kind, offset, size = _take(reader, 3)
        operands: tuple[Any, ...] = ()
        if kind == oc.P_BYTES:
            constant, count = _take(reader, 2)
            patches = tuple(self.parameter(reader) for _ in range(count))
            operands = (Constant(self._constant(constant)), patches)
        elif kind == oc.P_OBJECT:
            operands = (Constant(self._constant(next(reader))),)
        elif kind == oc.P_TENSOR_MAP:
            constant, array, rank = _take(reader, 3)
            registers = _registers(reader, 4 * rank - 1)
            operands = (Constant(self._constant(constant)), array, rank, *registers)
        elif kind == oc.P_ARRAY:
            operands = (next(reader),)
        elif kind == oc.P_FLOAT:
            register, code, bits = _take(reader, 3)
            operands = (Register(register), code, bits)
        elif kind != oc.P_NULL:
            operands = (Register(next(reader)),)
        return Parameter(kind, offset, size, operands)

    def value(self, reader: Iterator[int]) -> tuple[Any, ...]:
        kind = next(reader)
        if kind == oc.V_NONE:
            return (kind,)
        if kind == oc.V_ELEMENT:
            return (kind, *_take(reader, 2))
        if kind in oc.V_NUMBERS:
            return kind, Register(next(reader))
        if kind == oc.V_CONSTANT:
            return kind, Constant(self._constant(next(reader)))
        if kind < oc.V_TUPLE:
            return kind, next(reader)
        maker = (Constant(self._constant(next(reader))),) if kind == oc.V_MADE else ()
        count = next(reader)
        if kind == oc.V_DICT:
            pairs = [(self._texts[next(reader)], self.value(reader)) for _ in range(count)]
            return kind, tuple(pairs)
        return (kind, *maker, tuple([self.value(reader) for _ in range(count)]))

    def at(self, text: int) -> Place:
        return _place("" if text < 0 else self._texts[text])


def _records(words: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    at = 0
    while at < len(words):
        length = words[at] >> 32
        if length < 1:
            raise ValueError("an instruction has no length")
        yield words[at] & 0xFFFFFFFF, words[at + 1 : at + length]
        at += length


def _place(text: str) -> Place:
    file, _, line = text.rpartition(":")
    is_place = line.isascii() and line.isdigit()
    return Place(file, int(line)) if is_place else Place(text or "a library", 0)


def _take(reader: Iterator[int], count: int) -> list[int]:
    return [next(reader) for _ in range(count)]


def _registers(reader: Iterator[int], count: int) -> tuple[Register, ...]:
    return tuple(map(Register, _take(reader, count)))


def _optional(register: int) -> Register | None:
    return None if register < 0 else Register(register)
