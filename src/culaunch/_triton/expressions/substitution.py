"""``Substitution``: copies of functions that accept symbols, with copies of their callees."""

from __future__ import annotations

import builtins
import types
from typing import TYPE_CHECKING, Any

from culaunch._triton.expressions.symbols import Answers, Shape, Symbol, expression_of
from culaunch._triton.expressions.tree import Expression, make
from culaunch._triton.reads.purity import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_TYPES = (bool, int, float)


class Substitution:
    """Copies of functions that can handle symbols."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        # The global builtins may differ from Python's: IPython adds some.
        self._builtins = {
            name: self._of(found)
            for name, found in vars(builtins).items()
            if name == "__debug__" or (callable(found) and type(found) is not types.FunctionType)
        }

    def function(
        self, function: types.FunctionType, symbols: Collection[str] = ()
    ) -> types.FunctionType:
        """Return a copy whose globals and closed-over variables are substituted."""

        def named(name: str, found: Any) -> Any:
            if name in symbols:
                return Symbol(Expression("value", (name,)), self._answers)
            return self._of(found)

        code = function.__code__
        namespace: dict[str, Any] = {"__builtins__": self._builtins}
        for name in code.co_names:
            if name in function.__globals__:
                namespace[name] = named(name, function.__globals__[name])
        cells = tuple(
            types.CellType(named(name, cell.cell_contents))
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
        )
        made = types.FunctionType(code, namespace, function.__name__, function.__defaults__, cells)
        made.__kwdefaults__ = function.__kwdefaults__
        return made

    def _of(self, found: Any) -> Any:
        if isinstance(found, types.ModuleType):
            return _Module(found, self._of)
        name = getattr(found, "__name__", "")
        module = getattr(found, "__module__", "")
        if module == "triton" and name in ("cdiv", "next_power_of_2"):
            return self._operation(name, found)
        # Only for types, because an array's "==", which a function may use, has no truth value.
        if found in _TYPES if isinstance(found, type) else False:
            return self._conversion(found)
        if found is isinstance:
            return self._isinstance
        if found is min or found is max:
            return self._extreme(found)
        return self.function(found) if isinstance(found, types.FunctionType) else found

    def _isinstance(self, value: Any, kinds: Any) -> Any:
        if not isinstance(value, (Symbol, Shape)):
            return isinstance(value, kinds)
        # The argument determines which queries are possible. A number has no certain class, because
        # a call may pass a NumPy number.
        is_tensor = (getattr(kinds, "__module__", ""), getattr(kinds, "__qualname__", "")) == (
            "torch", "Tensor",
        )  # fmt: skip
        if isinstance(value, Shape) or not is_tensor or value.expression.op != "value":
            asked = "a shape" if isinstance(value, Shape) else value.expression
            raise Unknown(f"it asks for the type of {asked}")
        return Symbol(Expression("is_array", value.expression.operands), self._answers)

    def _operation(self, op: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if any(isinstance(one, Symbol) for one in args):
                return Symbol(make(op, *map(expression_of, args)), self._answers)
            return real(*args)

        return call

    def _conversion(self, kind: type) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if len(args) == 1 and isinstance(args[0], Symbol):
                return args[0].apply(kind.__name__, args[0])
            return kind(*args)

        return call

    def _extreme(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            items = args[0] if len(args) == 1 else args
            if not any(isinstance(one, Symbol) for one in items):
                return real(*args)
            first, *others = map(expression_of, items)
            for one in others:
                first = make(real.__name__, first, one)
            return Symbol(first, self._answers)

        return call


class _Module:
    """A module whose attributes are substituted."""

    def __init__(self, module: types.ModuleType, substitute: Callable[[Any], Any]) -> None:
        self._module = module
        self._substitute = substitute

    def __getattr__(self, name: str) -> Any:
        return self._substitute(getattr(self._module, name))
