"""The parts of a PTX module, as the parser leaves them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias


@dataclass(frozen=True)
class Register:
    """A register, a device function's parameter or a ``.param`` variable: a slot of the frame."""

    slot: int
    type: str


@dataclass(frozen=True)
class Immediate:
    """A number; `float_size` is 4 or 8 when it was written as a floating-point one."""

    bits: int
    float_size: int = 0


@dataclass(frozen=True)
class Special:
    """A special register such as ``%tid.x``."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """A variable or function by name, plus an offset in bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Label:
    """A place in the function, as an index into its instructions."""

    name: str
    target: int


@dataclass(frozen=True)
class Sink:
    """The operand ``_``: an unused result."""


@dataclass(frozen=True)
class Negated:
    """A predicate operand after ``!``."""

    operand: Operand


@dataclass(frozen=True)
class Vector:
    """Operands in braces, or in parentheses in a call."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """Two destinations: ``a|b``."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Address:
    """A place in memory: ``[base + offset]``."""

    base: Operand
    offset: int = 0


Operand: TypeAlias = (
    "Register | Immediate | Special | Symbol | Label | Sink | Negated | Vector | Pair | Address"
)


class InlinedCall(NamedTuple):
    """A function that was inlined, by the label of its name, and the file and line of the call."""

    name: str
    file: int
    line: int


@dataclass
class Instruction:
    """One instruction; `mods` are the words after the dots of its name.

    `loc` is its file and line, and `inlined` has the calls around it, the innermost first.
    """

    name: str
    mods: tuple[str, ...]
    operands: tuple[Operand, ...]
    line: int
    guard: Operand | None = None
    loc: tuple[int, int] | None = None
    inlined: tuple[InlinedCall, ...] = ()

    @property
    def opcode(self) -> str:
        """The whole name, as written."""
        return ".".join((self.name, *self.mods))


@dataclass
class Variable:
    """A variable in some state space, or a parameter.

    `values` is the initialiser flattened: integers (already the bits of one element) and symbols.
    """

    name: str
    space: str
    type: str
    align: int
    size: int
    element: int = 0
    values: tuple[int | Symbol, ...] = ()
    line: int = 0
    offset: int = 0
    external: bool = False
    generic: frozenset[int] = frozenset()
    # Whether it is a .texref, .samplerref or .surfref.
    is_reference: bool = False

    @property
    def is_definition(self) -> bool:
        """Whether it is more than a declaration."""
        return not self.external


@dataclass
class Function:
    """A kernel or a device function; one without `tokens` is declared only."""

    name: str
    is_kernel: bool
    line: int
    params: list[Variable] = field(default_factory=list)
    returns: list[Variable] = field(default_factory=list)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    tokens: tuple[int, int] | None = None
    # The body.
    instructions: list[Instruction] = field(default_factory=list)
    slots: list[str] = field(default_factory=list)
    slot_sizes: dict[int, int] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    prototypes: set[str] = field(default_factory=set)

    @property
    def is_definition(self) -> bool:
        """Whether it is more than a declaration."""
        return self.tokens is not None


@dataclass
class Module:
    """The top level of one PTX text."""

    version: tuple[int, int]
    target: str
    functions: dict[str, Function]
    variables: dict[str, Variable]
    files: dict[int, str]
    aliases: dict[str, str]
    # Definitions with .weak or .common, which others of the same name may replace.
    weak: set[str] = field(default_factory=set)
    # The names of functions in the debug information, by their labels.
    strings: dict[str, str] = field(default_factory=dict)
