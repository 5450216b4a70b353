"""The record of one run of a body: instructions, guards, effects."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from culaunch._base.places import Place, here, user_frame
from culaunch._function.opcodes import MATH_NUMBER, OPS, Op

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Mapping
    from types import CodeType

# A character of the private use area stands for a number in a text.
_OPEN, _CLOSE = "\ue000", "\ue001"


class Register(int):
    """The number of a register, told from other ints: it is another one in the whole program."""

    __slots__ = ()


class Instruction(NamedTuple):
    """One instruction; ``text`` is the place in the body, or a check's message."""

    op: Op
    result: Register | None
    operands: tuple[int, ...]
    text: Place | str | None = None


class Guard(NamedTuple):
    """A decision: what was true, where the body asked, and the value that it asked for, if one."""

    condition: Register
    outcome: bool
    place: Place
    pinned: Hashable


class Branching(Protocol):
    """A place among the paths that are known: the guard there, and what follows it."""

    @property
    def guard(self) -> Guard | None:
        """The guard, if the path goes on."""

    @property
    def branches(self) -> Mapping[bool, Branching]:
        """What follows, on its sides that are known."""


class Record:
    """One run of a body along one path.

    Attributes
    ----------
    steps : list[Instruction or Guard]
        In order.
    effects : list
        What happens at the end of the path, in the body's order.
    hints : list
        The value of each register in the call that is traced.
    pinned : dict
        The registers whose value is known on this path.
    """

    def __init__(
        self,
        decide: Callable[[Register, bool], bool] | None = None,
        sites: set[tuple[CodeType, int]] | None = None,
        *,
        has_hints: bool = True,
        known: Branching | None = None,
    ) -> None:
        self.steps: list[Instruction | Guard] = []
        self.effects: list[object] = []
        self.hints: list[int | float | bool] = []
        self.pinned: dict[int, int | float | bool] = {}
        self.names: dict[int, str] = {}
        self.is_open = True
        # The places that format numbers for a check's message. A token stands for the number there,
        # so the message does not need a path for each value.
        self.sites = sites if sites is not None else set()
        self.must_repeat = False
        # Texts that were made of numbers, with the place in the body: `template` looks for them in
        # messages.
        self._formatted: list[tuple[CodeType, int, str]] = []
        # Without a call the values are made up, and an oracle says which way a path goes.
        self.has_hints = has_hints
        self._oracle = decide
        self._tokens = 0
        # Where the path is among those that are known; None: it is a new one.
        self._at = known
        self._known: dict[Hashable, Register] = {}
        self._decided: dict[int, bool] = {}

    def emit(
        self,
        name: str,
        operands: tuple[int, ...],
        hint: int | float | bool,
        place: Place | None = None,
    ) -> Register:
        """Record an instruction with a result; the same one again is the same register."""
        self.require_open()
        # Instructions of a plan have no effect except their result, so the same one of the same
        # registers need not appear twice. This holds for reads of shapes, too: shapes cannot change
        # during a call.
        key = (name, operands)
        found = self._known.get(key)
        if found is None:
            op = OPS[name]
            if op.has_text and place is None:
                place = here()
            found = Register(len(self.hints))
            self.hints.append(hint)
            self.steps.append(Instruction(op, found, operands, place))
            self._known[key] = found
        return found

    def check(self, name: str, operands: tuple[int, ...], text: Place | str) -> None:
        """Record an instruction that has no result: one that may raise."""
        self.require_open()
        # Of two equal checks the first one raises, wherever the second one stands: its place makes
        # no difference. Its message does, as the message is what is raised.
        key = (name, operands, text if isinstance(text, str) else None)
        if key not in self._known:
            self._known[key] = Register(-1)
            self.steps.append(Instruction(OPS[name], None, operands, text))

    def constant(self, value: int | float | bool) -> Register:
        """Return the register of a number."""
        if type(value) is float:
            # By its bits: 0.0 equals -0.0, and a NaN nothing.
            key: Hashable = ("CONST_F", value.hex())
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = self.emit("CONST_F", (bits_of(value),), value)
            return found
        name = "CONST_B" if type(value) is bool else "CONST_I"
        return self.emit(name, (int(value),), value)

    def decide(self, condition: Register, pinned: Hashable = None) -> bool:
        """Return whether a condition holds, as a guard that a call with the other answer fails."""
        known = self._decided.get(condition)
        if known is None:
            self.require_open()
            # A call knows the answer; where a kind is traced without one, the values are made up,
            # and the answer above is only what is likely.
            known = bool(self.hints[condition])
            if self._oracle is not None:
                known = self._oracle(condition, known)
            # On this path the answer is a fact from here on: nobody asks again.
            self._decided[condition] = known
            self.pinned[condition] = known
            self.steps.append(Guard(condition, known, here(), pinned))
            if self._at is not None:
                self._at = self._at.branches.get(known)
        return known

    def pin(self, register: Register, name: str, value: int | float | bool) -> None:
        """Guard that a register has the value of this call."""
        if register in self.pinned:
            return
        if not self.has_hints:
            raise TypeError(
                f"at {here().text()}: the body needs the value of "
                f"{self.names.get(register, 'a number')} itself, which makes a path for each value,"
                " and no call is traced: call the function, or give specialize() the number"
            )
        # A known path asks for other values first. The guards must have the order of the tree. If
        # the path asks `n == 3` first, ask that first, although this call has n = 5. The call's own
        # question comes second.
        while self._at is not None and self._at.guard is not None:
            asked = self._at.guard.pinned
            if asked is None or _is_same(asked, value):
                break
            if self.decide(self._equals(register, name, asked), asked):  # type: ignore[arg-type]
                break
        self.decide(self._equals(register, name, value), value)
        self.pinned[register] = value

    def _equals(self, register: Register, name: str, value: float) -> Register:
        """Return whether a register has a value: the same bits, of a float."""
        hint = self.hints[register]
        is_same = _is_same(value, hint)
        if name != "FEQ":
            return self.emit(name, (register, self.constant(value)), is_same)
        if value != value:
            return self.emit("ISNAN", (register,), is_same)
        equal = self.emit("FEQ", (register, self.constant(value)), hint == value)
        if value != 0.0:
            return equal
        # The two zeros are equal and divide differently: the sign is compared as well.
        copysign = MATH_NUMBER["copysign"]
        one = self.constant(1.0)
        sign = self.emit("MATH", (copysign, one, register), _sign(float(hint)))
        wanted = self.constant(_sign(value))
        same = self.emit("FEQ", (sign, wanted), _sign(float(hint)) == _sign(value))
        return self.emit("AND_B", (equal, same), is_same)

    def token(self, register: Register, spec: str) -> str | None:
        """Return what stands for a number in a check's message, or None in any other text."""
        # Without a call there is no value to write.
        if self._tokens or not self.has_hints:
            return f"{_OPEN}{int(register)}:{spec}{_CLOSE}"
        # The instruction of the body that makes the text: the same place in the next run is found
        # by it.
        frame = user_frame()
        site = (frame.f_code, frame.f_lasti)
        if site in self.sites:
            return f"{_OPEN}{int(register)}:{spec}{_CLOSE}"
        value = self.hints[register]
        self._formatted.append((*site, format(value, spec)))
        return None

    def template(self, message: str) -> tuple[str, tuple[int, ...]]:
        """Return a check's message with ``{0}`` for its numbers, and the registers of those.

        Where the message was made of numbers that guarded their values, the trace must begin again.
        """
        # A number that became text before anybody knew that the text was for a message has guarded
        # its value. Where that text is found in the message, the place that made it is noted: in
        # the run that follows, it writes a token there.
        code = user_frame().f_code
        for made_in, offset, text in self._formatted:
            if made_in is code and text in message:
                self.sites.add((made_in, offset))
                self.must_repeat = True
        self._formatted.clear()
        if _OPEN not in message:
            return message.replace("{", "{{").replace("}", "}}"), ()
        registers: list[int] = []
        parts = []
        # Every other part is what stood between the marks of a token.
        for index, part in enumerate(re.split(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}", message)):
            if index % 2 == 0:
                parts.append(part.replace("{", "{{").replace("}", "}}"))
                continue
            number, _, spec = part.partition(":")
            parts.append(f"{{{len(registers)}{':' if spec else ''}{spec}}}")
            registers.append(Register(int(number)))
        return "".join(parts), tuple(registers)

    @contextlib.contextmanager
    def tokens(self) -> Generator[None, None, None]:
        """Have tokens in texts that are made meanwhile."""
        self._tokens += 1
        try:
            yield
        finally:
            self._tokens -= 1

    def fails(self, register: Register) -> bool:
        """Tell whether a check fails in the call that is traced."""
        return self.has_hints and not self.hints[register]

    def plain_text(self, text: str) -> str:
        """Return a text with the values of this call in place of tokens."""
        if _OPEN not in text:
            return text
        template, registers = self.template(text)
        return template.format(*(self.hints[register] for register in registers))

    def has_token(self, text: str) -> bool:
        """Tell whether a text has a token in it, written as it is or as repr() does."""
        return _OPEN in text or ascii(_OPEN)[1:-1] in text

    def require_open(self) -> None:
        """Refuse what is used after its trace."""
        if not self.is_open:
            escaped()


def escaped() -> NoReturn:
    """Raise for a stand-in that outlived the run of its body."""
    raise TypeError(
        f"at {here().text()}: this value stood in for an argument while a function was traced, and "
        "is used after the trace ended. A body must not keep arrays or numbers outside of it; "
        "return them"
    )


def bits_of(value: float) -> int:
    """Return the bits of a double, as a signed int."""
    import struct

    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _is_same(x: Any, y: Any) -> bool:
    """Tell whether two numbers are the same, the sign of a zero included."""
    if type(x) is float and type(y) is float:
        return bits_of(x) == bits_of(y) or (x != x and y != y)
    return bool(x == y)


def _sign(value: float) -> float:
    import math

    return math.copysign(1.0, value)
