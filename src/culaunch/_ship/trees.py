"""Programs back to trees, as tracing makes them: for what reads trees, such as an export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.places import Place
from culaunch._function import opcodes as oc
from culaunch._function.effects import Allocate, Call, Constant, Launch, Parameter, Return, View
from culaunch._function.encode import operands_of_launches
from culaunch._function.kinds import arrays_of
from culaunch._function.program import Leaf, Node, Tree
from culaunch._function.record import Guard, Instruction, Register
from culaunch._launch.launches.launch_options import OPTIONS
from culaunch._ship.results import with_constants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from culaunch._function.kinds import Kind
    from culaunch._ship.entry import SavedKind
    from culaunch._ship.plan import Block, Plan, Step

_REGISTERS = "ifb"


class TreeBuilder:
    """Makes the tree of one kind.

    Parameters
    ----------
    name : str
        The function's.
    saved : SavedKind
    plan : Plan
        Of a program that the extension has checked.
    constant : callable
        Returns a constant by its number.
    """

    def __init__(
        self, name: str, saved: SavedKind, plan: Plan, constant: Callable[[int], Any]
    ) -> None:
        self._saved = saved
        self._plan = plan
        self._constants = constant
        self._tree = Tree(name, arrays_of(saved.kind))

    def tree(self, array_names: dict[int, str]) -> Tree:
        """Return the tree; the arguments that are arrays have these names."""
        tree = self._tree
        # Guards lead only to higher numbers: the targets exist before the guards.
        nodes: list[Node] = [Node() for _ in self._plan.blocks]
        for number in reversed(range(len(nodes))):
            self._fill(nodes[number], number, self._plan.blocks[number], nodes)
        tree.root = nodes[0]
        tree.registers = len(self._plan.definitions)
        tree.array_names = array_names
        tree.uses = {parameter: {"write"} for parameter in self._saved.writes}
        return tree

    def _fill(self, node: Node, number: int, block: Block, nodes: list[Node]) -> None:
        node.steps = [self._instruction(step) for step in block.steps]
        if block.guard is None:
            node.leaf = Leaf(tuple(self._effect(*one) for one in block.effects))
            self._tree.paths += 1
            return
        condition, *following = block.guard
        place, _ = self._saved.guards.get(number, ("", ""))
        node.guard = Guard(Register(condition), True, _place(place), None)
        for side, target in zip((True, False), following, strict=True):
            if target >= 0:
                node.branches[side] = nodes[target]

    # ---- the plan

    def _instruction(self, step: Step) -> Instruction:
        op, words = step
        if op.name == "CHECK":
            condition, text, exception, _, *shown = words
            operands = (Register(condition), exception, *map(Register, shown))
            return Instruction(op, None, operands, self._plan.texts[text])
        letters = op.operands
        # Registers are told from numbers by the letters of the operation.
        found = [
            Register(word) if letter in _REGISTERS or (letter == "g" and word >= 0) else word
            for letter, word in zip(letters, words, strict=True)
            if letter != "t" and letter not in "IFB"
        ]
        place = self._at(words[letters.index("t")]) if op.has_text else None
        return Instruction(op, Register(words[0]) if op.result else None, tuple(found), place)

    # ---- effects

    def _effect(self, number: int, words: tuple[int, ...]) -> Any:
        reader = iter(words)
        if number == oc.ALLOCATE:
            array, dtype, fill, rank = _take(reader, 4)
            shape = _registers(reader, rank)
            return Allocate(array, dtype, fill, self._at(next(reader, -1)), shape)
        if number == oc.VIEW:
            array, source, offset, dtype, rank = _take(reader, 5)
            shape, strides = _registers(reader, rank), _registers(reader, rank)
            place = self._at(next(reader, -1))
            return View(array, source, Register(offset), dtype, place, shape, strides)
        if number == oc.LAUNCH:
            return self._launch(reader)
        if number == oc.CALL:
            return self._call(reader)
        if number == oc.RETURN:
            return Return(_with_registers(with_constants(words, self._constants, self._plan.texts)))
        raise ValueError(f"program: there is no effect {number} in a body")

    def _launch(self, reader: Iterator[int]) -> Launch:
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
        parameters = tuple(self._parameter(reader) for _ in range(count))
        place = self._at(text)
        return Launch(self._constants(kernel), _optional(predicate), options, place, parameters)

    def _call(self, reader: Iterator[int]) -> Call:
        called, predicate, count = _take(reader, 3)
        arguments = []
        for _ in range(count):
            kind, index = _take(reader, 2)
            value: Any = index
            if kind in (oc.V_INT, oc.V_FLOAT, oc.V_BOOL):
                value = Register(index)
            elif kind == oc.V_CONSTANT:
                value = Constant(self._constants(index))
            arguments.append((kind, value))
        outputs = tuple(_take(reader, next(reader)))
        place = self._at(next(reader, -1))
        return Call(self._constants(called), _optional(predicate), place, tuple(arguments), outputs)

    def _parameter(self, reader: Iterator[int]) -> Parameter:
        kind, offset, size = _take(reader, 3)
        operands: tuple[Any, ...] = ()
        if kind == oc.P_BYTES:
            constant, count = _take(reader, 2)
            patches = tuple(self._parameter(reader) for _ in range(count))
            operands = (Constant(self._constants(constant)), patches)
        elif kind == oc.P_OBJECT:
            operands = (Constant(self._constants(next(reader))),)
        elif kind == oc.P_TENSOR_MAP:
            constant, array, rank = _take(reader, 3)
            registers = _registers(reader, 4 * rank - 1)
            operands = (Constant(self._constants(constant)), array, rank, *registers)
        elif kind == oc.P_ARRAY:
            operands = (next(reader),)
        elif kind == oc.P_FLOAT:
            register, code, bits = _take(reader, 3)
            operands = (Register(register), code, bits)
        elif kind != oc.P_NULL:
            operands = (Register(next(reader)),)
        return Parameter(kind, offset, size, operands)

    def _at(self, text: int) -> Place:
        return _place("" if text < 0 else self._plan.texts[text])


def array_names(names: tuple[str, ...], kind: Kind) -> dict[int, str]:
    """Return the names of the arguments that are arrays, as a body has them."""
    found: list[str] = []
    for name, entry in zip(names, kind, strict=True):
        if type(entry) is tuple and entry[0] == "array":
            found.append(name)
        elif type(entry) is tuple and entry[0] != "value":
            found += [f"{name}[{i}]" for i in range(len(entry[1]))]
    return dict(enumerate(found))


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


def _with_registers(value: tuple[Any, ...]) -> tuple[Any, ...]:
    kind, *rest = value
    if kind in (oc.V_INT, oc.V_FLOAT, oc.V_BOOL):
        return kind, Register(rest[0])
    if kind == oc.V_DICT:
        return kind, tuple((key, _with_registers(one)) for key, one in rest[0])
    if kind in (oc.V_TUPLE, oc.V_LIST):
        return kind, tuple(map(_with_registers, rest[0]))
    if kind == oc.V_MADE:
        return kind, rest[0], tuple(map(_with_registers, rest[1]))
    return value
