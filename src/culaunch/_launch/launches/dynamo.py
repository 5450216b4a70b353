"""How Dynamo treats our types: functions become operators, everything else breaks the graph once.

Dynamo has a table from a value's type to its treatment. The table is not a public part of torch. If
any part of it differs from this module's expectation, Dynamo stays unchanged, and breaks the graph
with its own message.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
import types
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._base.rooms_above import open_room
from culaunch._base.untraced import untraced

if TYPE_CHECKING:
    from collections.abc import Callable


class Region(NamedTuple):
    """How a compiled region treats an object."""

    way: str
    """``"operator"``: a call becomes an operator of torch. ``"overload"``: it already has one.
    ``"break"``: it breaks the graph once."""
    what: str
    """A description of the object for the message."""


_ADVICE = (
    "Launch it in the body of a cl.function, and call that function here: it becomes an operator "
    "of the graph (docs/frameworks.md)."
)
_told: set[Any] = set()


@untraced
def tell(regions: dict[type, Region], numbers: dict[Callable[..., Any], Any]) -> None:
    """Register types and functions of numbers with Dynamo, which is loaded."""
    new = regions.keys() - _told
    try:
        builder = importlib.import_module("torch._dynamo.variables.builder")
        table_of = builder.VariableBuilder._type_dispatch_impl  # noqa: SLF001 - there is no other
        tables = [table_of(numpy) for numpy in (True, False)]
        made = {kind: _Variables(builder, regions[kind]).of(kind) for kind in new}
    except Exception:  # noqa: BLE001 - another Dynamo
        return
    for table in tables:
        table.update(made)
    # A version of Dynamo without this interface works without this support.
    with contextlib.suppress(Exception):
        if not _told:  # Dynamo must not trace our frames
            importlib.import_module("torch._dynamo.trace_rules").add("culaunch")
        substitute = importlib.import_module("torch._dynamo.decorators").substitute_in_graph
        for function in numbers.keys() - _told:
            substitute(function, skip_signature_check=True)(_plain(numbers[function]))
    _told.update(new, numbers)


class _Variables:
    """Makes the variables that represent the objects of a type while Dynamo traces."""

    def __init__(self, builder: types.ModuleType, region: Region) -> None:
        self.builder = builder
        self.region = region
        self.base: Any = importlib.import_module(
            "torch._dynamo.variables.user_defined"
        ).UserDefinedObjectVariable
        self.guard = builder.GuardBuilder.ID_MATCH
        self.subscripted = self._subscripted()

    def of(self, kind: type) -> Callable[[Any, Any], Any]:
        """Return the factory of variables for the objects of a type."""
        methods = {"operator": _call_function, "overload": _call_overload}
        call = methods.get(self.region.way, _refuse)

        def call_function(variable: Any, tx: Any, args: Any, kwargs: Any) -> Any:
            return call(self, variable, tx, list(args), dict(kwargs))

        def call_method(variable: Any, tx: Any, name: str, args: Any, kwargs: Any) -> Any:
            if name == "__call__":
                return call(self, variable, tx, list(args), dict(kwargs))
            if name == "__getitem__":
                return self.subscript(variable, args[0])
            return self.stop(variable.value, f"a call of .{name}() of")

        def subscript(variable: Any, _: Any, key: Any) -> Any:
            return self.subscript(variable, key)

        members: dict[str, Any] = {"call_function": call_function, "call_method": call_method}
        if hasattr(self.base, "mp_subscript_impl"):
            members["mp_subscript_impl"] = subscript
        made = type(self.base)(f"Culaunch{kind.__name__}Variable", (self.base,), members)

        def variable(builder: Any, value: Any) -> Any:
            builder.install_guards(self.guard)
            return made(value, source=builder.source)

        return variable

    def subscript(self, owner: Any, key: Any) -> Any:
        """Return the variable for ``kernel[key]``. A call of it breaks the graph once."""
        made = self.subscripted()
        made.owner, made.key, made.value = owner, key, owner.value
        return made

    def _subscripted(self) -> Any:
        """Make the class of the variable for a subscript."""
        tracker = importlib.import_module("torch._dynamo.variables.base").VariableTracker
        codes = importlib.import_module("torch._dynamo.bytecode_transformation")

        def reconstruct(variable: Any, codegen: Any) -> None:
            codegen(variable.owner)
            codegen(variable.key)
            codegen.append_output(codes.create_binary_subscr())

        def stop(variable: Any, *_: Any) -> Any:
            return self.stop(variable.value, "a launch of")

        def resubscript(variable: Any, _: Any, key: Any) -> Any:
            return self.subscript(variable, key)

        def call_method(variable: Any, tx: Any, name: str, args: Any, _: Any) -> Any:
            return resubscript(variable, tx, args[0]) if name == "__getitem__" else stop(variable)

        members: dict[str, Any] = {
            "reconstruct": reconstruct, "call_function": stop, "call_method": call_method,
            "mp_subscript_impl": resubscript, "python_type": lambda one: type(one.value),
            "var_getattr": stop,
        }  # fmt: skip
        return type(tracker)("CulaunchSubscriptVariable", (tracker,), members)

    def build(self, tx: Any, value: Any) -> Any:
        """Return the variable of a thing that Dynamo knows."""
        return self.builder.SourcelessBuilder.create(tx, value)

    def stop(self, value: Any, action: str, reason: str = "", *hints: str) -> Any:
        """Break the graph here."""
        what = self.region.what
        name = getattr(value, "__name__", None) or getattr(value, "name", None)
        shown = f"the {what} {name}" if isinstance(name, str) else f"a {what}"
        words = {
            "gb_type": f"culaunch: a {what} in a compiled region",
            "context": repr(value)[:200],
            "explanation": f"torch.compile reached {action} {shown} of culaunch, "
            + (reason or "which is not an operation of a graph."),
            "hints": list(hints) or [_ADVICE],
        }
        exceptions = importlib.import_module("torch._dynamo.exc")
        # The parameter names of its messages have changed between releases.
        known = inspect.signature(exceptions.unimplemented).parameters
        if set(words) <= set(known):
            exceptions.unimplemented(**words)
        raise exceptions.Unsupported(f"{words['explanation']} {' '.join(words['hints'])}")


def _plain(function: types.FunctionType) -> Any:
    """Return the function with code from none of culaunch's files, so Dynamo does not skip it."""
    code = function.__code__.replace(co_filename="<culaunch, in a compiled region>")
    return types.FunctionType(code, globals(), function.__name__)


def _refuse(variables: _Variables, variable: Any, *_: Any) -> Any:
    return variables.stop(variable.value, "a call of")


def _call_overload(
    variables: _Variables, variable: Any, tx: Any, args: list[Any], keywords: dict[str, Any]
) -> Any:
    values = [_value_of(one) for one in (*args, *keywords.values())]
    return _operator_call(variables, variable.value, variable.value, values)(tx, args, keywords)


def _call_function(
    variables: _Variables, variable: Any, tx: Any, args: list[Any], keywords: dict[str, Any]
) -> Any:
    """Call the operator of a function, and rebuild the function's result."""
    function = variable.value
    try:
        given = (
            tuple(map(_value_of, args)),
            {name: _value_of(one) for name, one in keywords.items()},
        )
        operator = open_room("torch").operator_for(function, *given)
    except Exception as error:  # noqa: BLE001 - whatever it is, the graph is broken with its words
        return variables.stop(
            function, "a call of", f"which is not a torch operator: {error}",
            "Change it as the message says, or call it outside the region.",
        )  # fmt: skip
    values = [*given[0], *given[1].values()]
    result = _operator_call(variables, function, operator, values)(tx, args, keywords)
    # The graph's operator returns only arrays. Python code that Dynamo traces adds the function's
    # other results.
    if operator.rebuild is None:
        return result
    names = operator.function.declaration.names
    bound = dict(zip(names, args, strict=False)) | keywords
    nothing = variables.build(tx, None)
    arguments = [bound.get(name, nothing) for name in names]
    return variables.build(tx, operator.rebuild).call_function(tx, [result, *arguments], {})


def _operator_call(
    variables: _Variables, value: Any, operator: Any, arguments: list[Any]
) -> Callable[..., Any]:
    """Return the callable for the operator in the graph. A missing gradient breaks the graph."""
    torch = sys.modules["torch"]
    # Inside the graph it would raise at run time, far from the line that causes it.
    if operator.gradients is None and torch.is_grad_enabled():
        for one in arguments:
            if isinstance(one, torch.Tensor) and one.requires_grad:
                variables.stop(
                    value, "a call of", "which has no gradient, with a tensor that requires grad.",
                    "Give the function a gradient with function.backward, detach the argument, or "
                    "call it under torch.no_grad().",
                )  # fmt: skip

    def call(tx: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        return variables.build(tx, operator.overload).call_function(tx, args, keywords)

    return call


def _value_of(variable: Any) -> Any:
    """Return Dynamo's value of an argument: a fake tensor, or a number that may be symbolic."""
    if hasattr(variable, "realize"):
        variable = variable.realize()
    if hasattr(variable, "raw_value"):
        return variable.raw_value
    with contextlib.suppress(NotImplementedError):
        if variable.is_python_constant():
            return variable.as_python_constant()
    return _examples(variable.as_proxy())


def _examples(proxy: Any) -> Any:
    if isinstance(proxy, (list, tuple)):
        return [_examples(one) for one in proxy]
    node = getattr(proxy, "node", None)
    return proxy if node is None else node.meta["example_value"]
