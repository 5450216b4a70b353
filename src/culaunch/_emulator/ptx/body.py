"""Parse a function's body: registers, scopes, labels and instructions."""

from __future__ import annotations

from dataclasses import replace

from culaunch._emulator.ptx.declarations import parse_variables
from culaunch._emulator.ptx.operands import parse_operand
from culaunch._emulator.ptx.scope import Scope
from culaunch._emulator.ptx.syntax import (
    Function,
    InlinedCall,
    Instruction,
    Label,
    Operand,
    Symbol,
)
from culaunch._emulator.ptx.tokens import Cursor, Tokens
from culaunch._emulator.types import is_type

_BRANCHES = {"bra", "brx"}
# Functions that are inlined into each other more deeply do not make a report clearer.
_MOST_CALLS = 16


class _Body:
    """The state of one function's parse."""

    def __init__(self, function: Function, tokens: Tokens, start: int, stop: int) -> None:
        self.function = function
        self.cursor = Cursor(tokens, start, stop)
        self.scope = Scope(None, function)
        self.loc: tuple[int, int] | None = None
        self.inlined: tuple[InlinedCall, ...] = ()
        # By file, line and column: the inlined calls around a place.
        self.calls: dict[tuple[int, int, int], tuple[InlinedCall, ...]] = {}
        self.branches: list[tuple[int, Scope]] = []

    def parse(self) -> None:
        cursor, function = self.cursor, self.function
        # A kernel's parameters are memory, which ld.param reads by address. Those of a device
        # function have no address in practice: they are slots of the frame, like its registers.
        if not function.is_kernel:
            for param in (*function.returns, *function.params):
                size = param.size if param.space == "param" else 0
                self.scope.add(param.name, "param" if size else param.type, size)
        while not cursor.done():
            self.statement()
        # Now that every label of the function is known: branches go forwards as well as back, to
        # labels that the branch's own scope can see.
        for index, scope in self.branches:
            self.resolve(index, scope)

    def statement(self) -> None:
        cursor = self.cursor
        text = cursor.peek()
        if text == "{":
            cursor.take()
            # Compilers put each call into braces, with its own .param variables, which always have
            # the same names.
            self.scope = Scope(self.scope, self.function)
        elif text == "}":
            if self.scope.outer is None:
                cursor.fail("a '}' without a matching '{'")
            cursor.take()
            self.scope = self.scope.outer
        elif text == ";":
            cursor.take()
        elif text[0] == ".":
            self.directive(cursor.take())
        elif text != "@" and cursor.peek_after() == ":":
            self.label()
        else:
            self.instruction()

    def directive(self, word: str) -> None:
        cursor = self.cursor
        if word == ".loc":
            # The column only tells calls in one line apart.
            place = (cursor.integer(), cursor.integer(), cursor.integer())
            calls: tuple[InlinedCall, ...] = ()
            # For inlined code: the function's name, and the call. That is itself a place, which the
            # text has before.
            if cursor.accept(","):
                name = ""
                while not cursor.peek().startswith(".") and cursor.peek() != "inlined_at":
                    word = cursor.take()
                    name = name or ("" if word == "function_name" else word)
                cursor.accept("inlined_at")
                call = (cursor.integer(), cursor.integer(), cursor.integer())
                outer = self.calls.get(call, ())[: _MOST_CALLS - 1]
                calls = (InlinedCall(name, call[0], call[1]), *outer)
            self.calls[place] = calls
            # Line 0 means "no source line": the line before is the better answer.
            if place[1]:
                self.loc, self.inlined = place[:2], calls
        elif word == ".reg":
            self.registers()
        elif word in (".local", ".shared", ".global", ".const"):
            for variable in parse_variables(cursor, word[1:]):
                # Variables in braces are hoisted to the function, because CUDA compilers name each
                # one uniquely.
                self.function.variables[variable.name] = variable
        elif word == ".param":
            for variable in parse_variables(cursor, "param"):
                self.scope.add(variable.name, "param", variable.size)
        elif word == ".pragma":
            cursor.skip_past(";")
        else:
            cursor.at -= 1
            cursor.fail(f"unknown directive {word!r}")

    def registers(self) -> None:
        cursor = self.cursor
        kind = cursor.take()[1:]
        if not is_type(kind):
            cursor.fail(f"registers of type {kind!r} are not emulated")
        while True:
            name = cursor.take()
            if cursor.accept("<"):
                self.scope.ranges[name] = (cursor.integer(), kind)
                cursor.expect(">")
            else:
                self.scope.add(name, kind)
            if not cursor.accept(","):
                break
        cursor.expect(";")

    def label(self) -> None:
        cursor = self.cursor
        name = cursor.take()
        cursor.expect(":")
        if cursor.accept(".branchtargets"):
            names = [cursor.take()]
            while cursor.accept(","):
                names.append(cursor.take())
            cursor.expect(";")
            self.scope.targets[name] = tuple(names)
        # Prototypes are for ptxas, which allocates registers by them; here a call through a pointer
        # takes the callee's own declaration.
        elif cursor.peek() in (".callprototype", ".calltargets"):
            cursor.skip_past(";")
            self.function.prototypes.add(name)
        else:
            self.scope.labels[name] = len(self.function.instructions)

    def instruction(self) -> None:
        cursor = self.cursor
        guard: Operand | None = None
        if cursor.accept("@"):
            guard = parse_operand(cursor, self.scope)
        # The line of the opcode, which a report shows, and not the line of the guard.
        line = cursor.line
        name = cursor.take()
        mods = []
        while cursor.peek().startswith("."):
            mods.append(cursor.take()[1:])
        operands: list[Operand] = []
        if not cursor.accept(";"):
            operands.append(parse_operand(cursor, self.scope))
            while not cursor.accept(";"):
                cursor.expect(",")
                operands.append(parse_operand(cursor, self.scope))
        if name in _BRANCHES:
            self.branches.append((len(self.function.instructions), self.scope))
        self.function.instructions.append(
            Instruction(name, tuple(mods), tuple(operands), line, guard, self.loc, self.inlined)
        )

    def resolve(self, index: int, scope: Scope) -> None:
        """Turn the target names of a branch into labels."""
        instruction = self.function.instructions[index]
        last = instruction.operands[-1] if instruction.operands else None
        if not isinstance(last, Symbol):
            return
        names = (last.name,) if instruction.name == "bra" else scope.target_list(last.name)
        labels = []
        for name in names or ():
            target = scope.label(name)
            if target is None:
                self.cursor.at = self.cursor.stop
                self.cursor.fail(f"no label {name!r} (line {instruction.line})")
            labels.append(Label(name, target))
        operands = (*instruction.operands[:-1], *labels)
        self.function.instructions[index] = replace(instruction, operands=operands)


def parse_body(function: Function, tokens: Tokens) -> None:
    """Parse the body of `function`, if it has one."""
    if function.tokens is None:
        return
    _Body(function, tokens, *function.tokens).parse()
    offset = 0
    for variable in function.variables.values():
        # A frame's local variables are placed one after another, with their alignments. The frame's
        # own place in a thread's memory is known at the call.
        if variable.space == "local":
            offset = -(-offset // variable.align) * variable.align
            variable.offset = offset
            offset += variable.size
