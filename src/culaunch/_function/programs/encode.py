"""Encodes a tree as the words of a program.

Only this module knows their order (docs/dev/functions.md).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

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
from culaunch._function.programs.record import Register
from culaunch._launch.launches.launch_options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from culaunch._base.places import Place
    from culaunch._function.programs.program import Node, Tree
    from culaunch._function.programs.record import Instruction


class Encoded(NamedTuple):
    """The arguments of ``_core.Program``."""

    words: bytes
    constants: tuple[Any, ...]
    texts: tuple[str, ...]


def encode(tree: Tree) -> Encoded:
    """Encode a tree. Anything that no path needs is omitted."""
    return _Encoder(tree).encoded()


class _Encoder:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.constants: list[Any] = []
        self.texts: dict[str, int] = {}
        self.arrays = tree.array_arguments
        self.needed = needed(tree)
        self._numbers: dict[int, int] = {}
        self._by_identity: dict[Any, int] = {}

    def encoded(self) -> Encoded:
        # Each node becomes a block of the program. Guards name their sides by block number, or -1
        # for a side that no call has taken. A call that gets there is traced.
        nodes = list(self.tree.nodes())
        index = {id(node): number for number, node in enumerate(nodes)}
        blocks = [self.block(node, index) for node in nodes]
        head = [
            oc.VERSION, len(self._numbers), self.tree.array_arguments, self.arrays,
            len(blocks), *map(len, blocks),
        ]  # fmt: skip
        words = head + [word for block in blocks for word in block]
        return Encoded(
            struct.pack(f"<{len(words)}q", *words), tuple(self.constants), tuple(self.texts)
        )

    def block(self, node: Node, index: dict[int, int]) -> list[int]:
        words: list[int] = []
        # The tree has everything that the body did. A program has only the needs of its guards,
        # checks and effects.
        for step in node.steps:
            if step.result is None or step.result in self.needed or not step.op.can_be_left_out:
                self.instruction(words, step)
        if node.leaf is not None:
            _put(words, oc.EFFECTS, [len(node.leaf.effects)])
            for effect in node.leaf.effects:
                number, operands = self.effect(effect)
                _put(words, number, operands)
        else:
            assert node.guard is not None
            sides = [
                index[id(node.branches[side])] if side in node.branches else -1
                for side in (True, False)
            ]
            condition = self.register(node.guard.condition)
            _put(words, oc.GUARD, [condition, *sides])
        return words

    def instruction(self, words: list[int], step: Instruction) -> None:
        op = step.op
        operands = [
            self.register(one) if type(one) is Register else int(one) for one in step.operands
        ]
        text = self.text(step.text)
        if op.name == "CHECK":
            condition, exception, *shown = operands
            _put(words, op.number, [condition, text, exception, len(shown), *shown])
            return
        if step.result is not None:
            operands.insert(0, self.defined(step.result))
        if op.has_text:
            operands.append(text)
        _put(words, op.number, operands)

    # ---- effects

    def effect(self, effect: Any) -> tuple[int, list[int]]:
        if isinstance(effect, Allocate):
            shape = self.registers(effect.shape)
            return oc.ALLOCATE, [
                self.array(effect.array), effect.dtype, effect.fill, len(shape), *shape,
                self.text(effect.place),
            ]  # fmt: skip
        if isinstance(effect, View):
            shape, strides = self.registers(effect.shape), self.registers(effect.strides)
            return oc.VIEW, [
                self.array(effect.array), self.array(effect.source), self.register(effect.offset),
                effect.dtype, len(shape), *shape, *strides, self.text(effect.place),
            ]  # fmt: skip
        if isinstance(effect, Launch):
            return oc.LAUNCH, self.launch(effect)
        if isinstance(effect, Call):
            arguments = [word for one in effect.arguments for word in self.encoded_argument(*one)]
            return oc.CALL, [
                self.constant(Constant(effect.callable)), self.optional(effect.predicate),
                len(effect.arguments), *arguments, len(effect.outputs),
                *map(self.array, effect.outputs), self.text(effect.place),
            ]  # fmt: skip
        assert isinstance(effect, Return)
        return oc.RETURN, self.result(effect.value)

    def launch(self, launch: Launch) -> list[int]:
        given = dict(launch.options)
        words = [
            self.constant(Constant(launch.kernel)), sum(OPTIONS[name].flag for name in given),
            self.optional(launch.predicate),
        ]  # fmt: skip
        for name, count in operands_of_launches(given):
            words += self.registers(given[name]) if name in given else [-1] * count
        words += [self.text(launch.place), len(launch.parameters)]
        for parameter in launch.parameters:
            words += self.parameter(parameter)
        return words

    def parameter(self, parameter: Parameter) -> list[int]:
        kind, offset, size, operands = parameter
        words = [kind, offset, size]
        if kind == oc.P_BYTES:
            constant, patches = operands
            words += [self.constant(constant), len(patches)]
            for patch in patches:
                words += self.parameter(patch)
            return words
        if kind == oc.P_OBJECT:
            return [*words, self.constant(operands[0])]
        if kind == oc.P_TENSOR_MAP:
            constant, *operands = operands  # type: ignore[assignment]
            words.append(self.constant(constant))
        if kind in (oc.P_ARRAY, oc.P_TENSOR_MAP):
            array, *operands = operands  # type: ignore[assignment]
            words.append(self.array(array))
        return words + [self.register(one) if type(one) is Register else one for one in operands]

    def encoded_argument(self, kind: int, value: Any) -> tuple[int, int]:
        if kind == oc.V_ARRAY:
            return kind, self.array(value)
        return kind, self.constant(value) if kind == oc.V_CONSTANT else self.register(value)

    def result(self, value: tuple[Any, ...]) -> list[int]:
        kind, *rest = value
        if kind == oc.V_DICT:
            items = [word for name, one in rest[0] for word in (self.text(name), *self.result(one))]
            return [kind, len(rest[0]), *items]
        if kind in (oc.V_TUPLE, oc.V_LIST):
            return [kind, len(rest[0]), *(word for one in rest[0] for word in self.result(one))]
        if kind == oc.V_MADE:
            items = [word for one in rest[1] for word in self.result(one)]
            return [kind, self.constant(rest[0]), len(rest[1]), *items]
        if kind == oc.V_CONSTANT:
            return [kind, self.constant(rest[0])]
        if kind == oc.V_ARRAY:
            return [kind, self.array(rest[0])]
        return [kind, *(self.register(one) if type(one) is Register else one for one in rest)]

    # ---- numbers

    def array(self, array: int) -> int:
        self.arrays = max(self.arrays, array + 1)
        return array

    def defined(self, register: Register) -> int:
        # Registers are renumbered in the order of their definitions. Omitted registers have no
        # number, and every use comes after its definition.
        return self._numbers.setdefault(register, len(self._numbers))

    def register(self, register: Register) -> int:
        return self._numbers[register]

    def registers(self, registers: tuple[Register, ...]) -> list[int]:
        return [self.register(one) for one in registers]

    def optional(self, register: Register | None) -> int:
        return -1 if register is None else self.register(register)

    def text(self, text: Place | str | None) -> int:
        return -1 if text is None else self.texts.setdefault(str(text), len(self.texts))

    def constant(self, constant: Constant) -> int:
        # Compare by identity, because equal objects may behave differently. Bytes cannot, and each
        # launch creates new ones.
        value = constant.value
        key = value if type(value) is bytes else id(value)
        found = self._by_identity.get(key)
        if found is None:
            found = self._by_identity[key] = len(self.constants)
            self.constants.append(value)
        return found


# The number of registers of each kind of option, in the order of the words.
_REGISTERS = {"required_dims": 3, "dims": 3, "bytes": 1, "int": 1}


def operands_of_launches(given: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the launch options that have registers, and the number of their registers."""
    for kind, count in _REGISTERS.items():
        for name, option in OPTIONS.items():
            if option.kind == kind and (name in given or option.flag & oc.FIRST_FLAGS):
                yield name, count


def _put(words: list[int], number: int, operands: list[int]) -> None:
    # Every instruction begins with its length, so a reader can skip instructions that it does not
    # know.
    words.append(number | (len(operands) + 1) << 32)
    words.extend(operands)


def needed(tree: Tree) -> set[int]:
    """Return the registers that effects, guards, checks, and operations that may raise need."""
    needed: set[int] = set()

    def mark(thing: Any) -> None:
        if type(thing) is Register:
            needed.add(thing)
        elif isinstance(thing, tuple):
            for one in thing:
                mark(one)

    nodes = list(tree.nodes())
    for node in nodes:
        if node.guard is not None:
            needed.add(node.guard.condition)
        if node.leaf is not None:
            mark(node.leaf.effects)
    # The code after a guard comes later in the list. In reverse order, uses come before
    # definitions.
    for node in reversed(nodes):
        for step in reversed(node.steps):
            if step.result is None or step.result in needed or not step.op.can_be_left_out:
                mark(step.operands)
    return needed
