"""Programs and signatures, as text to read."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Any

from culaunch._base.values import counted
from culaunch._function.declarations.declaration import POSITIONAL_ONLY
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
from culaunch._function.programs.encode import needed
from culaunch._function.programs.record import Register
from culaunch._function.tracing.kinds import Kind, described
from culaunch._launch.formats.dtype import DTYPES
from culaunch._launch.launches.launch_options import OPTIONS

if TYPE_CHECKING:
    from culaunch._base.places import Place
    from culaunch._function.declarations.declaration import Declaration
    from culaunch._function.programs.program import Node, Tree
    from culaunch._function.programs.record import Instruction

_INFIX = frozenset("+ - * / // % ** << >> & | ^ == != < <= > >= and or".split())  # noqa: SIM905


def explained(
    declaration: Declaration, kind: Kind, tree: Tree, *, unseen: str = "not seen yet: trace again"
) -> str:
    """Describe a tree: the values, checks and decisions of a call, then its effects."""
    arguments = ", ".join(
        f"{name}: {described(entry)}" for name, entry in zip(declaration.names, kind, strict=True)
    )
    count = "1 path" if tree.paths == 1 else f"{tree.paths} paths"
    lines = [f"{declaration.name}({arguments}), {count}"]
    writer = _Writer(tree, lines, declaration.names)
    writer.unseen = unseen
    writer.node(tree.root, 1)
    return "\n".join(lines)


def conditions(declaration: Declaration, tree: Tree) -> list[tuple[int, Place, str]]:
    """Return a tree's guards: the block's number in its program, the place, and the condition."""
    writer = _Writer(tree, [], declaration.names)
    writer.longest = 200
    nodes = list(tree.nodes())
    for node in nodes:
        for step in node.steps:
            writer.step(step, 0)
    return [
        (block, node.guard.place, writer.value(node.guard.condition))
        for block, node in enumerate(nodes)
        if node.guard is not None
    ]


def signature_text(
    declaration: Declaration,
    mutates: tuple[str, ...],
    may_mutate: tuple[str, ...],
    declared: tuple[str, ...] | None,
) -> str:
    """Write a function's signature, and mark the arguments that it writes."""
    parts = []
    kinds = [kind for _, kind in declaration.parameters]
    for index, name in enumerate(declaration.names):
        if declaration.keyword_only[:1] == (name,):
            parts.append("*")
        want = declaration.wanted.get(index)
        text = name if want is None else f"{name}: {want.text()}"
        if name in declaration.defaults:
            sign = "=" if want is None else " = "
            text += f"{sign}{declaration.defaults[name]!r}"
        parts.append(text)
        if kinds[index] == POSITIONAL_ONLY and kinds[index + 1 : index + 2] != [POSITIONAL_ONLY]:
            parts.append("/")
    lines = [f"{declaration.name}({', '.join(parts)})"]
    if mutates:
        lines.append(f"    writes {', '.join(mutates)}" + (" (declared)" if declared else ""))
    if may_mutate:
        lines.append(f"    may write {', '.join(may_mutate)}: the kernels' signatures do not say")
    return "\n".join(lines)


class _Writer:
    longest = 40  # characters of an expression without a name
    unseen = ""  # the text for a branch that was not recorded

    def __init__(self, tree: Tree, lines: list[str], names: tuple[str, ...]) -> None:
        self.names = names
        self.tree = tree
        self.lines = lines
        self.needed = needed(tree)
        self.texts: dict[int, str] = dict(tree.names)
        self._count = 0

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def node(self, node: Node, depth: int) -> None:
        for step in node.steps:
            self.step(step, depth)
        if node.leaf is not None:
            arrays: dict[int, str] = {}
            for effect in node.leaf.effects:
                self.effect(effect, depth, arrays)
            return
        assert node.guard is not None
        condition = self.value(node.guard.condition)
        for side in (True, False):
            text = f"if {condition}:" if side else "else:"
            branch = node.branches.get(side)
            self.put(depth, f"{text}  # {_short(node.guard.place)}")
            if branch is None:
                self.put(depth + 1, self.unseen)
            else:
                self.node(branch, depth + 1)

    def step(self, step: Instruction, depth: int) -> None:
        op, result, operands, text = step
        if result is not None:
            if result not in self.needed and op.can_be_left_out:
                return
            # An argument keeps the name that the body uses.
            if result in self.texts:
                return
            written = self.expression(step)
            # A short expression is inlined; a long one has a name.
            if len(written) <= self.longest or op.name.startswith("CONST"):
                self.texts[result] = written
                return
            self._count += 1
            self.texts[result] = f"t{self._count}"
            self.put(depth, f"t{self._count} = {written}")
            return
        value = self.value(operands[0])
        if op.name == "CHECK":
            exception = oc.EXCEPTIONS[operands[1]].__name__
            shown = [_Field(self.value(one)) for one in operands[2:]]
            message = str(text).format(*shown) if shown else str(text).format()
            self.put(depth, f"check {value}, else {exception}: {message}")
        elif op.name == "RANGE":
            sign = ("unsigned", "signed", "signed or not")[operands[2]]
            self.put(depth, f"check {value} fits {8 * operands[1]} bits, {sign}  # {_short(text)}")
        elif op.name == "DIMENSION":
            self.put(depth, f"check {value} is from 1 to {operands[1]}  # {_short(text)}")
        else:
            self.put(depth, f"check {value} fits a float of {operands[2]} bits  # {_short(text)}")

    def expression(self, step: Instruction) -> str:
        op, _, operands, _ = step
        if op.name == "CONST_F":
            return repr(struct.unpack("<d", struct.pack("<q", operands[0]))[0])
        if op.name == "CONST_B":
            return str(bool(operands[0]))
        if op.name.startswith("CONST"):
            return str(operands[0])
        values = [self.value(one) if type(one) is Register else str(one) for one in operands]
        if op.name == "RAISES":
            raised = oc.EXCEPTIONS[operands[1]].__name__
            if oc.BY_NUMBER[operands[0]].name == "FPOW":
                return f"{values[3]} ** {values[4]} raises {raised}"
            count = 5 if operands[4] >= 0 else 4
            return f"{oc.MATH_FUNCTIONS[operands[2]]}({', '.join(values[3:count])}) raises {raised}"
        if op.name == "MATH":
            count = 3 if operands[2] >= 0 else 2
            return f"{oc.MATH_FUNCTIONS[operands[0]]}({', '.join(values[1:count])})"
        if op.symbol in _INFIX and len(values) == 2:
            return f"{_bracketed(values[0])} {op.symbol} {_bracketed(values[1])}"
        if op.symbol in ("-", "~") and len(values) == 1:
            return f"{op.symbol}{_bracketed(values[0])}"
        if op.symbol == "select":
            return (
                f"{_bracketed(values[1])} if {_bracketed(values[0])} else {_bracketed(values[2])}"
            )
        if op.symbol == "not":
            return f"not {_bracketed(values[0])}"
        return f"{op.symbol}({', '.join(values)})"

    def value(self, register: Any) -> str:
        return self.texts.get(register, f"r{int(register)}")

    def sizes(self, registers: tuple[Any, ...]) -> str:
        inside = ", ".join(map(self.value, registers))
        return f"({inside},)" if len(registers) == 1 else f"({inside})"

    # ---- effects

    def effect(self, effect: Any, depth: int, arrays: dict[int, str]) -> None:
        if isinstance(effect, Allocate):
            name = arrays[effect.array] = f"a{effect.array}"
            what = "zeros" if effect.fill else "empty"
            shape, dtype = self.sizes(effect.shape), DTYPES[effect.dtype].name
            self.put(depth, f"{name} = {what}({shape}, {dtype})  # {_short(effect.place)}")
        elif isinstance(effect, View):
            source, offset = self.array(effect.source, arrays), self.value(effect.offset)
            if effect.shape:
                name = arrays[effect.array] = f"a{effect.array}"
                shape, strides = self.sizes(effect.shape), self.sizes(effect.strides)
                self.put(
                    depth,
                    f"{name} = view({source}, {offset} bytes on, {shape}, strides {strides})",
                )
            else:
                arrays[effect.array] = f"{source} + {offset} bytes"
        elif isinstance(effect, Launch):
            self.put(depth, self.launch(effect, arrays))
        elif isinstance(effect, Call):
            arguments = ", ".join(self.argument_text(*one, arrays) for one in effect.arguments)
            outputs = ", ".join(self.array(one, arrays) for one in effect.outputs)
            name = getattr(effect.callable, "__name__", type(effect.callable).__name__)
            self.put(depth, f"{name}({arguments}, out=({outputs}))  # {_short(effect.place)}")
        else:
            assert isinstance(effect, Return)
            self.put(depth, f"return {self.result(effect.value, arrays)}")

    def launch(self, launch: Launch, arrays: dict[int, str]) -> str:
        kernel = launch.kernel.demangled.partition("(")[0].removeprefix("void ")
        words = [self.option(*one) for one in launch.options]
        parameters = ", ".join(self.parameter(one, arrays) for one in launch.parameters)
        start = "" if launch.predicate is None else f"if {self.value(launch.predicate)}: "
        return f"{start}{kernel}[{', '.join(words)}]({parameters})  # {_short(launch.place)}"

    def option(self, name: str, registers: tuple[Any, ...]) -> str:
        if not registers:
            return name
        value = self.dims(registers)
        is_in_brackets = OPTIONS[name].attribute == 0  # kernel[grid, block, shared_memory]
        return value if is_in_brackets else f"{name}={value}"

    def dims(self, registers: tuple[Any, ...]) -> str:
        values = list(map(self.value, registers))
        while len(values) > 1 and values[-1] == "1":
            values.pop()
        return values[0] if len(values) == 1 else f"({', '.join(values)})"

    def parameter(self, parameter: Parameter, arrays: dict[int, str]) -> str:
        kind, _, size, operands = parameter
        if kind == oc.P_ARRAY:
            return self.array(operands[0], arrays)
        if kind == oc.P_NULL:
            return "None"
        if kind == oc.P_BYTES:
            fields = [self.parameter(one, arrays) for one in operands[1]]
            return f"<{counted(size, 'byte')}{': ' if fields else ''}{', '.join(fields)}>"
        if kind == oc.P_TENSOR_MAP:
            return f"tensor_map({self.array(operands[1], arrays)})"
        if kind == oc.P_OBJECT:
            return "<an array that the body closes over>"
        return self.value(operands[0])

    def argument_text(self, kind: int, value: Any, arrays: dict[int, str]) -> str:
        if kind == oc.V_ARRAY:
            return self.array(value, arrays)
        return repr(value.value) if isinstance(value, Constant) else self.value(value)

    def result(self, value: tuple[Any, ...], arrays: dict[int, str]) -> str:
        kind, *rest = value
        if kind == oc.V_NONE:
            return "None"
        if kind == oc.V_DICT:
            pairs = [f"{name!r}: {self.result(one, arrays)}" for name, one in rest[0]]
            return f"{{{', '.join(pairs)}}}"
        if kind in (oc.V_TUPLE, oc.V_LIST):
            items = ", ".join(self.result(one, arrays) for one in rest[0])
            return f"({items})" if kind == oc.V_TUPLE else f"[{items}]"
        if kind == oc.V_MADE:
            items = ", ".join(self.result(one, arrays) for one in rest[1])
            return f"{getattr(rest[0].value, '__name__', 'dict')}({items})"
        if kind == oc.V_CONSTANT:
            return repr(rest[0].value)
        if kind == oc.V_ARRAY:
            return self.array(rest[0], arrays)
        if kind in (oc.V_ARGUMENT, oc.V_ELEMENT):
            name = self.names[rest[0]]
            return name if kind == oc.V_ARGUMENT else f"{name}[{rest[1]}]"
        return self.value(rest[0])

    def array(self, number: int, arrays: dict[int, str]) -> str:
        return arrays.get(number) or self.tree.array_names.get(number, f"array {number}")


def _bracketed(text: str) -> str:
    return f"({text})" if " " in text else text


def _short(place: Any) -> str:
    file, _, line = str(place).rpartition(":")
    return f"{os.path.basename(file)}:{line}"


class _Field(str):
    """An expression in a check's text, which keeps the body's format."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return f"{{{self!s}:{spec}}}" if spec else f"{{{self!s}}}"

    def __str__(self) -> str:
        return str.__str__(self)

    def __repr__(self) -> str:
        return f"{{{self!s}!r}}"
