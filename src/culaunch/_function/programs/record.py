"""The record of one run of a body: instructions, guards, effects."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from culaunch._base.places import Place, here, user_frame
from culaunch._function.programs.catchers import may_be_caught
from culaunch._function.programs.opcodes import MATH_NUMBER, OPS, Op
from culaunch._function.programs.texts import Name, as_token, call_at, goes_to, has_token, split

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Mapping
    from types import CodeType


class Register(int):
    """The number of a register in the whole program, distinct from other ints."""

    __slots__ = ()


class Instruction(NamedTuple):
    """One instruction; ``text`` is the place in the body, or a check's message."""

    op: Op
    result: Register | None
    operands: tuple[int, ...]
    text: Place | str | None = None


class Guard(NamedTuple):
    """A decision: its outcome, its place in the body, and the requested value, if any."""

    condition: Register
    outcome: bool
    place: Place
    pinned: Hashable


class Branching(Protocol):
    """A place in the known paths: its guard, and the branches after it."""

    @property
    def guard(self) -> Guard | None:
        """The guard, if the path continues."""

    @property
    def branches(self) -> Mapping[bool, Branching]:
        """The known branches."""


class Notes:
    """Facts about a body from its runs. Each new fact makes a new version.

    Attributes
    ----------
    sites : set
        The places that format numbers for a check's message. A token stands for the number there,
        so the message does not need a path for each value.
    catches_unseen : bool
        Whether it caught an exception that nothing in the code around could catch. Each operation
        that may raise is a branch then.
    """

    def __init__(self) -> None:
        self.sites: set[tuple[CodeType, int]] = set()
        self.catches_unseen = False

    @property
    def version(self) -> int:
        """The number of known facts."""
        return len(self.sites) + self.catches_unseen


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
    refusal : Exception or None
        An operation that no program can do. The call raises it, even if the body catches it.
    raised : Exception or None
        The last exception of an operation that apparently nothing catches.
    """

    def __init__(
        self,
        decide: Callable[[Register, bool], bool] | None = None,
        notes: Notes | None = None,
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
        self._thread = threading.get_ident()
        self.notes = Notes() if notes is None else notes
        self.must_repeat = False
        self.refusal: Exception | None = None
        self.raised: Exception | None = None
        # Texts made of numbers, with their place in the body. `template` looks for them in
        # messages.
        self._formatted: list[tuple[CodeType, int, str]] = []
        # Without a call, the values are made up, and an oracle decides the way of a path.
        self.has_hints = has_hints
        self._oracle = decide
        self._tokens = 0
        # The place among the known paths; None on a new path.
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
        """Record an instruction with a result. An equal instruction reuses its register."""
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
        """Record an instruction without a result, which may raise."""
        self.require_open()
        # Of two equal checks, the first one always raises, so the place of the second does not
        # matter. Its message does, because it is part of the error.
        key = (name, operands, text if isinstance(text, str) else None)
        if key not in self._known:
            self._known[key] = Register(-1)
            self.steps.append(Instruction(OPS[name], None, operands, text))

    def constant(self, value: int | float | bool) -> Register:
        """Return the register of a number."""
        if type(value) is float:
            # Compare by bits: 0.0 equals -0.0, and a NaN equals nothing.
            key: Hashable = ("CONST_F", value.hex())
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = self.emit("CONST_F", (bits_of(value),), value)
            return found
        name = "CONST_B" if type(value) is bool else "CONST_I"
        return self.emit(name, (int(value),), value)

    def decide(self, condition: Register, pinned: Hashable = None) -> bool:
        """Return whether a condition holds, with a guard that fails for other calls."""
        known = self._decided.get(condition)
        if known is None:
            self.require_open()
            # A call knows the answer. If a kind is traced without a call, values are made up, and
            # the answer is only the likely one.
            known = bool(self.hints[condition])
            if self._oracle is not None:
                known = self._oracle(condition, known)
            # From here on, the answer is a fact on this path, and is not guarded again.
            self._decided[condition] = known
            self.pinned[condition] = known
            place = here()
            self.steps.append(Guard(condition, known, place, pinned))
            if self._at is not None:
                # Facts learned since then, such as the texts that are messages, may have changed
                # the decisions. Then this path is not known.
                is_known = self._at.guard is not None and self._at.guard.place == place
                self._at = self._at.branches.get(known) if is_known else None
        return known

    def pin(self, register: Register, name: str, value: int | float | bool) -> None:
        """Guard that a register has this call's value."""
        if register in self.pinned:
            return
        if not self.has_hints:
            raise self.refuse(
                TypeError(
                    f"at {here().text()}: the body needs the value of "
                    f"{self.names.get(register, 'a number')} itself, which makes a path for each "
                    "value, but no call is traced: call the function, or give specialize() the "
                    "number"
                )
            )
        # The body has compared it with this value before, so no guard is needed now.
        if self._is_decided(register, name, value):
            self.pinned[register] = value
            return
        # A known path guards other values first, and the guards must have the tree's order. If the
        # path asks `n == 3` first, guard that first, although this call has n = 5. This call's own
        # question comes second.
        while self._at is not None and self._at.guard is not None:
            asked = self._at.guard.pinned
            if type(asked) is not type(value) or self._at.guard.place != here():
                break
            if _is_same(asked, value):
                break
            if self.decide(self._equals(register, name, asked), asked):
                break
        self.decide(self._equals(register, name, value), value)
        self.pinned[register] = value

    def _is_decided(self, register: Register, name: str, value: float) -> bool:
        """Tell whether a register is known to have a value on this path."""
        if value != value:
            condition = self._known.get(("ISNAN", (register,)))
        elif name == "FEQ":
            # A comparison does not determine the sign of a zero.
            number = self._known.get(("CONST_F", value.hex())) if value != 0.0 else None
            condition = self._known.get((name, (register, number)))
        else:
            condition = self._known.get((name, (register, self._known.get(("CONST_I", (value,))))))
        return condition is not None and self._decided.get(condition, False)

    def _equals(self, register: Register, name: str, value: float) -> Register:
        """Return whether a register has a value. Floats are compared by bits."""
        hint = self.hints[register]
        is_same = _is_same(value, hint)
        if name != "FEQ":
            return self.emit(name, (register, self.constant(value)), is_same)
        if value != value:
            return self.emit("ISNAN", (register,), is_same)
        equal = self.emit("FEQ", (register, self.constant(value)), hint == value)
        if value != 0.0:
            return equal
        # The two zeros are equal but divide differently, so the sign is compared as well.
        copysign = MATH_NUMBER["copysign"]
        one = self.constant(1.0)
        sign = self.emit("MATH", (copysign, one, register), _sign(float(hint)))
        wanted = self.constant(_sign(value))
        same = self.emit("FEQ", (sign, wanted), _sign(float(hint)) == _sign(value))
        return self.emit("AND_B", (equal, same), is_same)

    def recorded(self, name: str, operands: tuple[int, ...]) -> Register | None:
        """Return the register of an instruction, if it is already recorded."""
        return self._known.get((name, operands))

    # ---- what may raise

    def refuse(self, error: Exception) -> Exception:
        """Record an operation that no program can do.

        A body that catches the error is refused, too.
        """
        if self.refusal is None:
            self.refusal = error
        return error

    def may_be_caught(self) -> bool:
        """Tell whether the body may catch an exception raised here."""
        return self.notes.catches_unseen or may_be_caught()

    def branches(self, *, fails: bool) -> bool:
        """Tell whether an operation that needs something is a branch here, with a guard.

        It is one if it raises in this call, or if the body may catch the exception. Anywhere else
        the program raises by itself, and needs no path for that.
        """
        return (fails and self.has_hints) or self.may_be_caught()

    def error(self, kind: type[Exception], text: str, *, is_data: bool = False) -> Exception:
        """Create the exception of an operation; tokens of the text become numbers.

        Parameters
        ----------
        kind : type
        text : str
        is_data : bool, optional
            Whether the body has made the text, and may do anything with it.
        """
        template, numbers = split(text)
        registers = tuple(map(Register, numbers))
        if not self.has_hints:
            shown = whole = text
        elif not self.may_be_caught():
            shown = whole = template.format(*(self.hints[one] for one in registers))
        else:
            # The body may use the text as data, so each number in the body's own text gets a guard.
            # In culaunch's text, names represent the numbers until the error has left the body.
            whole = template.format(*(self.hints[one] for one in registers))
            if is_data:
                for one in registers:
                    self.settle(one)
                shown = whole
            else:
                shown = template.format(*(Name(self.names.get(one, "_")) for one in registers))
        error = kind(shown)
        # culaunch raises it, but it is an error that the body reports to its caller.
        error.is_of_check, error.in_full = True, whole  # type: ignore[attr-defined]
        if not self.may_be_caught():
            self.raised = error
        return error

    def settle(self, register: Register) -> None:
        """Guard that a register has this call's value, whatever it contains."""
        value = self.hints[register]
        if type(value) is bool:
            self.decide(register)
        else:
            self.pin(register, "FEQ" if type(value) is float else "EQ", value)

    # ---- texts

    def token(self, register: Register, spec: str) -> str | None:
        """Return the token of a number in a message, or None in any other text."""
        written = as_token(register, spec)
        if self._tokens:
            return written
        # The body's instruction that makes the text. The next run finds the same place by it.
        frame = user_frame()
        site = (frame.f_code, call_at(frame.f_code, frame.f_lasti))
        # Without a call, there is no value to write.
        if site in self.notes.sites or (not self.has_hints and goes_to(*site, None)):
            shown: str | None = written
        else:
            shown = None
        text = format(self.hints[register], spec) if shown is None else written
        self._formatted.append((*site, text))
        return shown

    def template(self, message: str) -> tuple[str, tuple[int, ...]]:
        """Return a check's message with ``{0}`` for its numbers, and the registers of those.

        If the message was made of numbers that guarded their values, the trace must begin again.
        """
        # A number guards its value if it becomes text before the text is known to be a message's.
        # If that text is in the message and nowhere else, the place that made it is noted: in the
        # next run, it writes a token there.
        frame = user_frame()
        for code, made, text in self._formatted:
            is_here = code is frame.f_code and text in message
            if is_here and goes_to(code, made, call_at(code, frame.f_lasti)):
                self.must_repeat |= has_token(text) is False
                self.notes.sites.add((code, made))
        template, registers = split(message)
        return template, tuple(map(Register, registers))

    @contextlib.contextmanager
    def tokens(self) -> Generator[None, None, None]:
        """Put tokens into texts made in the block."""
        self._tokens += 1
        try:
            yield
        finally:
            self._tokens -= 1

    def fails(self, register: Register) -> bool:
        """Tell whether a check fails in the traced call."""
        return self.has_hints and not self.hints[register]

    def require_open(self) -> None:
        """Refuse a stand-in that is used after its trace."""
        if not self.is_open:
            escaped()
        # Calls are followed only in the body's own thread, and the order between two threads is
        # random.
        if threading.get_ident() != self._thread:
            raise self.refuse(
                TypeError(
                    f"at {here().text()}: a body must not use its arguments in another thread, "
                    "because its calls run there by chance: compute with them in the body"
                )
            )


def escaped() -> NoReturn:
    """Raise for a stand-in that outlived the run of its body."""
    raise TypeError(
        f"at {here().text()}: this value stood in for an argument while a function was traced, and "
        "is used after the trace ended. A body must not keep arrays or numbers outside it; "
        "return them"
    )


def bits_of(value: float) -> int:
    """Return the bits of a double, as a signed int."""
    import struct

    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _is_same(x: Any, y: Any) -> bool:
    """Tell whether two numbers are identical, including the sign of a zero."""
    if type(x) is float and type(y) is float:
        return bits_of(x) == bits_of(y) or (x != x and y != y)
    return bool(x == y)


def _sign(value: float) -> float:
    import math

    return math.copysign(1.0, value)
