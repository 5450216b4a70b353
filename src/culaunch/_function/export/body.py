"""One program as a C++ function: the plan's tree as ifs, the effects at its leaves."""

from __future__ import annotations

import collections
import linecache
import os
from typing import TYPE_CHECKING, Any

from culaunch._base.places import Place
from culaunch._function.export import expressions as ex
from culaunch._function.export.launching import EffectWriter
from culaunch._function.export.names import Names, Variables, comment, text_literal
from culaunch._function.export.outputs import is_refusal
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.encode import needed
from culaunch._function.programs.record import Register

if TYPE_CHECKING:
    from culaunch._function.declarations.declaration import Declaration
    from culaunch._function.export.exported import Exported
    from culaunch._function.export.images import Images
    from culaunch._function.programs.program import Node, Tree
    from culaunch._function.programs.record import Guard, Instruction
    from culaunch._function.tracing.kinds import Kind

_FALLBACK = {"i": "number", "f": "real", "b": "condition"}
_LONGEST = 48  # characters of an expression that is written where it is used


class BodyWriter:
    """Writes the function of one kind.

    Attributes
    ----------
    lines : list[str]
    parameters : list[tuple[str, str]]
        The C++ type and name of each argument that is passed on, in order.
    arrays : dict[int, str]
        The names of the arrays that are arguments.
    """

    def __init__(
        self, name: str, function: Exported, kind: Kind, tree: Tree, images: Images
    ) -> None:
        self.name = name
        self.tree = tree
        self.lines: list[str] = []
        self.names = Names()
        self.variables = Variables(function.body)
        self.arrays: dict[int, str] = {}
        self.numbers: dict[int, str] = {}
        self.parameters: list[tuple[str, str]] = []
        self._name_parameters(function.declaration, kind)
        self.texts: dict[int, str] = {}
        self._constants: dict[int, int] = {}
        self._needed = needed(tree)
        # Count the uses before writing anything, because an expression with a single use may be
        # inlined there.
        self._uses = _uses(tree, self._needed)
        self._shown: Place | None = None
        self.effects = EffectWriter(self, images)

    def write(self) -> list[str]:
        """Write the function, from its signature to its end."""
        typed = "".join(f", {type_} {name}" for type_, name in self.parameters)
        self.lines += ["", f"fn::Any {self.name}(Outputs outputs{typed}) {{"]
        named = ", ".join(
            f"{{{text_literal(self.tree.array_names[number])}, {name}}}"
            for number, name in self.arrays.items()
        )
        self.put(1, f"const fn::Call call({text_literal(self.tree.name)}, {{{named}}}, outputs);")
        self.node(self.tree.root, 1)
        self.lines.append("}")
        return self.lines

    def put(self, depth: int, text: str) -> None:
        """Write a line."""
        self.lines.append("  " * depth + text)

    def show(self, depth: int, place: object) -> None:
        """Write the body's line as a comment, if it differs from the last one."""
        if not isinstance(place, Place) or place == self._shown:
            return
        self._shown = place
        # In a program from a library the place is a text, and no file is opened for it.
        line = linecache.getline(place.file, place.line) if self.variables.file else ""
        self.put(depth, comment([f"{os.path.basename(place.file)}:{place.line}:", line]))

    def at(self, place: object) -> str:
        """Write a place as a string literal."""
        return text_literal(short(place) if isinstance(place, Place) else self.tree.name)

    # ---- the plan

    def node(self, node: Node, depth: int) -> None:
        """Write everything that follows from here."""
        for step in node.steps:
            # The condition is the constant false, so the rest of this path can never run.
            if step.op.name == "CHECK" and self._constants.get(step.operands[0]) == 0:
                self._raise(step, depth)
                return
            self.step(step, depth)
        if node.leaf is not None:
            self.effects.leaf(node.leaf, depth)
            return
        assert node.guard is not None
        self._branches(node, node.guard, depth)

    def _branches(self, node: Node, guard: Guard, depth: int) -> None:
        condition = self.value(guard.condition)
        self.show(depth, guard.place)
        # The other branch was never taken when the function was recorded. Its effects are unknown,
        # so a call that takes it is an error.
        if len(node.branches) == 1:
            ((side, following),) = node.branches.items()
            where = f"{self.at(guard.place)}, {text_literal(_bare(condition))}"
            name = text_literal(self.tree.name)
            outcome = "false" if side else "true"
            self.put(depth, f"if ({_bare(_not(condition)) if side else _bare(condition)}) {{")
            self.put(depth + 1, f"fn::RaiseUnknownPath({name}, {where}, {outcome});")
            self.put(depth, "}")
            self.node(following, depth)
            return
        # The shorter branch goes into the block, and the other one is not indented.
        inner = min((True, False), key=lambda side: (_size(node.branches[side]), not side))
        self.put(depth, f"if ({_bare(condition) if inner else _bare(_not(condition))}) {{")
        with self.names.block():
            self.node(node.branches[inner], depth + 1)
        self.put(depth, "}")
        self._shown = None
        self.node(node.branches[not inner], depth)

    def step(self, step: Instruction, depth: int) -> None:
        """Write an instruction: a variable, a check, or nothing if it is inlined at its use."""
        op, result, operands, place = step
        if result is None:
            value = self.value(operands[0])
            if op.name == "CHECK":
                self._check(step, depth)
            else:
                self.show(depth, place)
                self.put(depth, ex.check_statement(step, value, self.at(place)))
            return
        if result not in self._needed and op.can_be_left_out:
            return
        if op.name.startswith("CONST"):
            self.texts[result] = ex.number(step)
            self._constants[result] = int(operands[0])
            return
        if op.name.startswith("ARG"):
            self.texts[result] = self.numbers[operands[0]]
            return
        written, variable = self._expression_and_name(step)
        # An expression that may raise stays in its place, because Python would raise there.
        is_short = len(written) <= _LONGEST and (self._uses[result] <= 1 or variable is None)
        if is_short and not ex.may_raise(step) and self._may_stand_at_its_use(step, result):
            self.texts[result] = written
            return
        self.show(depth, place)
        name = self.names.new(variable or self.tree.names.get(result, "") or _FALLBACK[op.result])
        self.texts[result] = name
        self.put(depth, f"const {ex.CPP_TYPES[op.result]} {name} = {_bare(written)};")

    def _may_stand_at_its_use(self, step: Instruction, result: Register) -> bool:
        return step.op.name in ("DIM", "CONTIGUOUS") or self._uses[result] <= 1

    def _expression_and_name(self, step: Instruction) -> tuple[str, str | None]:
        """Return an instruction as an expression, and the body's variable for it."""
        op, _, operands, place = step
        if op.name in ("DIM", "STRIDE", "CONTIGUOUS", "ADDRESS", "PLACE"):
            array = self.arrays[operands[0]]
            read = "" if step.result is None else self.tree.names.get(step.result, "")
            texts = [read]
            if op.name == "DIM":
                if self._rank_is_one(operands[0], read):
                    texts += [f"{array}.size", f"len({array})"]
                return f"{array}.size({operands[1]})", self.variables.of_text(*texts)
            if op.name == "STRIDE":
                return f"fn::Stride({array}, {operands[1]})", self.variables.of_text(*texts)
            if op.name == "CONTIGUOUS":
                return f"{array}.IsContiguous()", self.variables.of_text(*texts)
            reader = "Place" if op.name == "PLACE" else "Alignment"
            return f"fn::{reader}({array})", None
        if op.name == "DEVICE_ATTRIBUTE":
            return f"call.Attribute({int(operands[0])})", None
        values = [self.value(one) for one in operands if type(one) is Register]
        written = ex.expression(self.tree.name, step, values, self.at(place))
        symbol = oc.MATH_FUNCTIONS[operands[0]] if op.name == "MATH" else op.symbol
        return written, self.variables.of_operation(place, symbol)

    def _rank_is_one(self, array: int, read: str) -> bool:
        others = (name for name in self.tree.names.values() if name != read)
        start = f"{self.tree.array_names[array]}.shape["
        return read.endswith("[0]") and not any(name.startswith(start) for name in others)

    # ---- checks

    def _check(self, step: Instruction, depth: int) -> None:
        condition, exception, *_ = step.operands
        kind = text_literal(oc.EXCEPTIONS[exception].__name__)
        message = self._message(step)
        self.put(depth, f"fn::Check({_bare(self.value(condition))}, {kind}, {message});")

    def _raise(self, step: Instruction, depth: int) -> None:
        kind = text_literal(oc.EXCEPTIONS[step.operands[1]].__name__)
        self.put(depth, f"fn::Raise({kind}, fn::Text({self._message(step)}));")

    def _message(self, step: Instruction) -> str:
        shown = step.operands[2:]
        text = str(step.text)
        if self.variables.file:
            # The library is read on other machines, where a directory of this one means nothing.
            text = text.replace(os.path.dirname(self.variables.file) + os.sep, "")

        def value(index: int) -> str:
            register = shown[index]
            written = self.value(register)
            # A bare literal is an int in C++, and fn::Text has no constructor for int.
            return f"int64_t{{{written}}}" if written.lstrip("-").isdigit() else written

        return ", ".join(ex.message_parts(text, value))

    # ---- numbers

    def value(self, register: Any) -> str:
        """Return the expression of a register."""
        return self.texts[register]

    # ---- parameters

    def _name_parameters(self, declaration: Declaration, kind: Kind) -> None:
        for parameter, (name, entry) in enumerate(zip(declaration.names, kind, strict=True)):
            if entry is int or entry is float:
                self.numbers[parameter] = self.names.new(name)
                type_ = "int64_t" if entry is int else "double"
                self.parameters.append((type_, self.numbers[parameter]))
            elif type(entry) is tuple and entry[0] == "array":
                self._name_array(name)
            elif type(entry) is tuple and entry[0] in ("list", "tuple"):
                for item in range(len(entry[1])):
                    self._name_array(f"{name}_{item}")

    def _name_array(self, name: str) -> None:
        self.arrays[len(self.arrays)] = self.names.new(name)
        self.parameters.append(("const TensorView&", self.arrays[len(self.arrays) - 1]))


def short(place: Place) -> str:
    """Return a place without its directory, because a library is read elsewhere."""
    return f"{os.path.basename(place.file)}:{place.line}"


def _size(node: Node) -> int:
    own = len(node.steps) + (0 if node.leaf is None else len(node.leaf.effects))
    if is_refusal(node):
        return 0
    return own + sum(map(_size, node.branches.values()))


def _uses(tree: Tree, wanted: set[int]) -> collections.Counter[int]:
    uses: collections.Counter[int] = collections.Counter()

    def count(thing: Any) -> None:
        if type(thing) is Register:
            uses[thing] += 1
        elif isinstance(thing, tuple):
            for one in thing:
                count(one)

    for node in tree.nodes():
        for step in node.steps:
            if step.result is None or step.result in wanted or not step.op.can_be_left_out:
                count(step.operands)
        if node.guard is not None:
            count(node.guard.condition)
        if node.leaf is not None:
            count(node.leaf.effects)
    return uses


def _not(condition: str) -> str:
    return condition[1:] if condition.startswith("!") else f"!{condition}"


def _bare(text: str) -> str:
    """Return an expression without its outer brackets."""
    if not text.startswith("("):
        return text
    depth = 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return text[1:-1] if index == len(text) - 1 else text
    return text
