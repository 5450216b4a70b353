"""Stand-ins for a kernel's arguments. A function's operations on them become an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from culaunch._triton.expressions.saved import is_dimension
from culaunch._triton.expressions.tree import Expression, constant, make, same
from culaunch._triton.reads.purity import Unknown
from culaunch._triton.variants.constants import normal_constant

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_CASES = 24  # questions on one path through a function


class Fork(BaseException):
    """A question that was not answered yet."""

    def __init__(self, question: Expression) -> None:
        self.question = question


class Failure(BaseException):
    """A function would have decided by an unknown value."""

    def __init__(self, error: Expression) -> None:
        self.error = error


class Answers:
    """The answers to a function's questions, in order.

    Parameters
    ----------
    given : tuple of bool
        Beyond these a question raises `Fork`.
    """

    def __init__(self, given: tuple[bool, ...]) -> None:
        self._given = given
        self._asked: list[Expression] = []

    def ask(self, question: Expression) -> bool:
        """Return the answer."""
        # `bool(x)` and `if x` ask the same question.
        if question.op == "bool":
            question = question.operands[0]
        if question.op == "error":
            raise Failure(question)
        if question.is_constant:
            return bool(question.value)
        # An answer stays the same on one path: a function that tests `n > 0` twice has two cases,
        # not four.
        for known, answer in zip(self._asked, self._given, strict=False):
            if same(known, question):
                return answer
        if len(self._asked) == len(self._given):
            if len(self._given) == _MOST_CASES:
                raise Unknown("it distinguishes too many cases")
            # A BaseException leaves the function past its handlers. The function is run again with
            # each answer.
            raise Fork(question)
        self._asked.append(question)
        return self._given[len(self._asked) - 1]


class Symbol:
    """A value that is not known yet."""

    def __init__(self, expression: Expression, answers: Answers) -> None:
        self.expression = expression
        self.answers = answers

    @property
    def dtype(self) -> Symbol:
        """The element type of an argument."""
        if self.expression.op != "value":
            self._refuse()
        return Symbol(Expression("dtype", self.expression.operands), self.answers)

    @property
    def shape(self) -> Shape:
        """The shape of an argument."""
        if self.expression.op != "value":
            self._refuse()
        return Shape(self)

    def size(self, dimension: Any) -> Symbol:
        """Return the size of one dimension."""
        return self.of_shape("size", dimension)

    def stride(self, dimension: Any) -> Symbol:
        """Return the stride of one dimension, in elements."""
        return self.of_shape("stride", dimension)

    @property
    def ndim(self) -> Symbol:
        """The number of dimensions."""
        return self.of_shape("rank")

    def dim(self) -> Symbol:
        """Return the number of dimensions."""
        return self.of_shape("rank")

    def numel(self) -> Symbol:
        """Return the number of elements."""
        return self.of_shape("count")

    ndimension, nelement = dim, numel

    def of_shape(self, op: str, *dimension: Any) -> Symbol:
        """Return a part of the shape of an argument."""
        if self.expression.op != "value" or not all(map(is_dimension, dimension)):
            self._refuse()
        return Symbol(Expression(op, (*self.expression.operands, *dimension)), self.answers)

    def __bool__(self) -> bool:
        return self.answers.ask(self.expression)

    def apply(self, op: str, *operands: Any) -> Symbol:
        """Make an operation on this and others."""
        return Symbol(make(op, *map(expression_of, operands)), self.answers)

    def __divmod__(self, other: Any) -> tuple[Symbol, Symbol]:
        return self.apply("//", self, other), self.apply("%", self, other)

    def __rdivmod__(self, other: Any) -> tuple[Symbol, Symbol]:
        return self.apply("//", other, self), self.apply("%", other, self)

    def __pos__(self) -> Symbol:
        return self

    def bit_length(self) -> NoReturn:
        """Refuse: there is no such operation."""
        self._refuse()

    def is_integer(self) -> NoReturn:
        """Refuse: there is no such operation."""
        self._refuse()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise Unknown(f"it uses {self.expression} in a way that an expression cannot represent")

    # A TypeError would look like the function's own.
    __len__ = __iter__ = __contains__ = __hash__ = __index__ = __float__ = __int__ = _refuse
    __complex__ = __getitem__ = __call__ = __format__ = __str__ = __repr__ = __round__ = _refuse
    __trunc__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __bytes__ = __reversed__ = _refuse
    __next__ = __enter__ = __exit__ = __setitem__ = __delitem__ = __await__ = _refuse
    __getattr__ = _refuse


_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNARY = {"neg": "neg", "invert": "invert", "abs": "abs", "ceil": "ceil", "floor": "floor"}


def _method(op: str, is_reflected: bool = False) -> Callable[..., Symbol]:
    def method(self: Symbol, *other: Any) -> Symbol:
        operands = (*other, self) if is_reflected else (self, *other)
        return self.apply(op, *operands)

    return method


for _name, _op in {**_BINARY, **_COMPARED, **_UNARY}.items():
    setattr(Symbol, f"__{_name}__", _method(_op))
for _name, _op in _BINARY.items():
    setattr(Symbol, f"__r{_name}__", _method(_op, is_reflected=True))


class Shape:
    """The shape of an argument, which can be read one dimension at a time."""

    def __init__(self, array: Symbol) -> None:
        self._array = array

    def __getitem__(self, dimension: Any) -> Symbol:
        return self._array.of_shape("size", dimension)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise Unknown(f"it reads the shape of {self._array.expression} as a whole")

    __bool__ = __len__ = __iter__ = __contains__ = __hash__ = __reversed__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __mul__ = __rmul__ = __format__ = __str__ = __repr__ = _refuse
    __getattr__ = _refuse


class Arguments:
    """The mapping of arguments by name; each is asked whether it is None when it is looked up.

    Parameters
    ----------
    answers : Answers
    """

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def __getitem__(self, name: str) -> Symbol | None:
        # None must be None itself, because functions test it with `is`, which a stand-in cannot
        # answer. This question therefore comes first.
        if self._answers.ask(Expression("is_none", (name,))):
            return None
        return Symbol(Expression("value", (name,)), self._answers)

    def get(self, name: str, *default: Any) -> Symbol | None:  # noqa: ARG002
        """Look up an argument. Parameters always exist."""
        return self[name]

    def __contains__(self, name: object) -> bool:
        return True


def expression_of(value: Any) -> Expression:
    """Return a symbol, or a constant, as an expression; raise Unknown if it is neither."""
    if isinstance(value, Symbol):
        return value.expression
    if isinstance(value, (tuple, list)):
        raise Unknown("it makes a tuple")
    try:
        return constant(normal_constant(value))
    except (TypeError, ValueError):
        raise Unknown(f"it uses {type(value).__qualname__}") from None
