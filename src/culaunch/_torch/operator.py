"""Operators of torch whose implementation is a function."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_text
from culaunch._base.untraced import untraced
from culaunch._base.values import spell
from culaunch._function import Function
from culaunch._torch import dispatch, fake, gradients
from culaunch._torch.findings import Findings, find
from culaunch._torch.package import torch_package
from culaunch._torch.schema import Parameter, parameters_of, schema_text

if TYPE_CHECKING:
    from culaunch._function.runs import Run

_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")
_operators: dict[str, TorchOperator] = {}
_lock = threading.RLock()


class TorchOperator:
    """A function as an operator of torch: what :func:`torch_op` makes.

    A call of it is a call of the operator, ``torch.ops.mylib.scale``. It lives as long as the
    process.

    Attributes
    ----------
    name : str
        Such as ``"mylib::scale"``.
    schema : str
        Such as ``"mylib::scale(Tensor x, float factor) -> Tensor"``.
    function : Function
    mutates : tuple[str, ...]
        The parameters whose arrays it writes.
    dispatch : str
        ``"native"``: torch's dispatcher calls the function without Python. ``"python"``: through
        ``torch.library``; ``why_python`` says why.
    why_python : str or None
    overload : torch._ops.OpOverload
        The operator itself.
    """

    def __init__(
        self, name: str, function: Function[..., Any], parameters: tuple[Parameter, ...],
        mutates: tuple[str, ...], outputs: tuple[str | None, ...], schema: str,
    ) -> None:  # fmt: skip
        self.name = name
        self.function = function
        self.parameters = parameters
        self.mutates = mutates
        self.outputs = outputs
        self.schema = name + schema
        self.dispatch = "python"
        self.why_python: str | None = None
        self.overload: Any = None
        self._library: Any = None
        self._slot: int | None = None
        self._has_gradients = False

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the operator."""
        return self.overload(*args, **keywords)

    def __repr__(self) -> str:
        return f"<culaunch.TorchOperator {self.schema}, dispatch: {self.dispatch}>"

    # ---- what the function tells

    def learn(self, run: Run, array_arguments: int) -> None:
        """Refuse a path of the function that does not keep to the schema."""
        findings = Findings(self.function.__name__, self.function.declaration.names)
        effects = None if run.is_error else run.record.effects
        findings.add(run.uses, effects, array_arguments)
        _require_schema(self, findings)

    def differentiate(self) -> None:
        """Register gradients: the function has been given a backward function."""
        if self._has_gradients:
            return
        gradients.register(self, self._library)
        self._has_gradients = True

    # ---- registration

    def _register(self) -> None:
        torch = torch_package()
        namespace, _, name = self.name.partition("::")
        self._library = torch.library.Library(namespace, "FRAGMENT")
        try:
            # Kernels are compiled for the strides that the body has seen: a compiler of torch's
            # must not choose others.
            tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
            self._library.define(self.schema.partition("::")[2], tags=tags)
        except RuntimeError as error:
            self._library = None
            if "same name" in str(error):
                raise ValueError(
                    f"name: torch has an operator {self.name} already, which is not of culaunch: "
                    "operators live as long as the process, choose another name"
                ) from None
            raise ValueError(f"torch refuses the operator {self.schema}: {error}") from error
        self.overload = getattr(getattr(torch.ops, namespace), name).default
        dispatch.register(self, self._library)
        torch.library.register_fake(self.name, fake.fake_of(self), lib=self._library)
        if self.function._gradient is not None:
            self.differentiate()

    def _replace(self, function: Function[..., Any]) -> None:
        """Let another function, of the same schema, be behind the operator."""
        self.function._doors.remove(self)
        self.function = function
        dispatch.replace(self)
        if function._gradient is not None:
            self.differentiate()


def torch_op(name: str, function: Any, *, schema: str | None = None) -> TorchOperator:
    """Register a function as an operator of torch.

    The operator has a schema and an implementation for tensors without data (``torch.compile``,
    ``torch.export``), from the function's declaration and its body; gradients where the function
    has a ``backward`` function. It lives as long as the process.

    Parameters
    ----------
    name : str
        ``"namespace::name"``.
    function : Function
        Its parameters are tensors where neither an annotation nor a default says another thing.
        A fused elementwise function may be given, too.
    schema : str, optional
        What torch shall know of it, such as ``"(Tensor x, float factor) -> Tensor"``. By default it
        is found: the body is traced for kinds of arguments that it takes.

    Returns
    -------
    TorchOperator
        Call it, or ``torch.ops.namespace.name``.

    Raises
    ------
    TypeError
        If it is no function, or one that no operator can be: an output that is an argument or a
        view of one, a tuple in a tuple, or an argument of which the kernels do not say whether it
        is written.
    ValueError
        If the name is none, or that of another operator.
    MissingDependencyError
        If torch is not installed.
    """
    checked_text("name", name, "a str, namespace::name")
    if _NAME.fullmatch(name) is None:
        raise ValueError(
            f"name must be 'namespace::name', such as 'mylib::scale' (got {spell(name)})"
        )
    torch_package()
    return _registered(name, as_function(function), schema, None)


def register_gradient(
    operator: TorchOperator, function: Function[..., Any]
) -> _WithNone | TorchOperator:
    """Register the backward function of an operator as one, too."""
    known = {one.name: one for one in operator.parameters}
    return _WithNone(_registered(f"{operator.name}_backward", function, None, known))


def as_function(function: Any) -> Function[..., Any]:
    """Return a function, or make one of what else has an operator."""
    if isinstance(function, Function):
        return function
    raise TypeError(
        f"function must be a cl.function (got {spell(function)}): write one that calls it"
    )


class _WithNone:
    """A call of an operator that returns no None, with the None of its function."""

    def __init__(self, operator: TorchOperator) -> None:
        self.operator = operator

    def __call__(self, *args: Any) -> Any:
        result = self.operator.overload(*args)
        outputs = self.operator.outputs
        if None not in outputs:
            return result
        values = iter(result if isinstance(result, (tuple, list)) else (result,))
        return tuple(None if one is None else next(values) for one in outputs)


@untraced
def _registered(
    name: str,
    function: Function[..., Any],
    schema: str | None,
    known: dict[str, Parameter] | None,
) -> TorchOperator:
    with _lock:
        there = _operators.get(name)
        if there is not None and there.function is function:
            return there
        parameters = parameters_of(function.declaration, known)
        findings = _findings(function, parameters, schema)
        mutates = _mutates(function, findings)
        outputs = findings.outputs or ()
        if None in outputs and known is None:
            raise TypeError(
                f"{function.__name__} returns a tuple with None in it, and an operator of torch "
                "returns arrays and numbers"
            )
        if mutates and any(one not in (None, "Tensor") for one in outputs):
            raise TypeError(
                f"{function.__name__} writes {', '.join(mutates)} and returns numbers: torch "
                "compiles no operator that does both; return arrays or None"
            )
        text = schema
        if text is None:
            given = tuple(one for one in outputs if one is not None)
            text = schema_text(parameters, mutates, given)
        operator = TorchOperator(name, function, parameters, mutates, outputs, text)
        if there is not None:
            return _reloaded(there, operator)
        operator._register()
        _operators[name] = operator
        function._doors.append(operator)
        return operator


def _reloaded(there: TorchOperator, operator: TorchOperator) -> TorchOperator:
    """Take the function of a module that is loaded again."""
    old, new = there.function.__wrapped__, operator.function.__wrapped__
    names = tuple(f"{one.__module__}.{one.__qualname__}" for one in (old, new))
    if names[0] != names[1]:
        raise ValueError(
            f"name: {there.name} is the operator of {names[0]}, and "
            "operators live as long as the process: choose another name"
        )
    if there.schema != operator.schema:
        raise ValueError(
            f"{there.name} is registered as {there.schema}, and {new.__name__} is "
            f"{operator.schema} now: operators live as long as the process, begin a new one"
        )
    there._replace(operator.function)
    operator.function._doors.append(there)
    return there


def _findings(
    function: Function[..., Any], parameters: tuple[Parameter, ...], schema: str | None
) -> Findings:
    if schema is None:
        return find(function, parameters)
    findings = Findings(function.__name__, function.declaration.names)
    given = torch_package()._C.parse_schema(f"x::y{schema}")
    names = [argument.name for argument in given.arguments]
    if names != list(function.declaration.names):
        raise ValueError(
            f"schema has the parameters {', '.join(names)}, and {function.__name__} has "
            f"{', '.join(function.declaration.names)}"
        )
    findings.mutates = {
        i
        for i, argument in enumerate(given.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    }
    findings.outputs = tuple(_output_type(str(one.type)) for one in given.returns)
    return findings


def _output_type(text: str) -> str:
    return {"int": "SymInt"}.get(text, text)


def _mutates(function: Function[..., Any], findings: Findings) -> tuple[str, ...]:
    names = function.declaration.names
    if function._declared is not None:
        return function._declared
    unknown = [names[i] for i in sorted(findings.unknown - findings.mutates)]
    if unknown:
        raise TypeError(
            f"{function.__name__}: the kernels do not say whether they write {', '.join(unknown)}, "
            "and an operator's schema does: say it with @cl.function(mutates=[...])"
        )
    return tuple(names[i] for i in sorted(findings.mutates))


def _require_schema(operator: TorchOperator, findings: Findings) -> None:
    function = operator.function
    writes = _mutates(function, findings)
    more = [name for name in writes if name not in operator.mutates]
    if more and function._declared is None:
        raise TypeError(
            f"{function.__name__} writes {', '.join(more)} for these arguments, and its operator "
            f"{operator.schema} does not say so: declare it with @cl.function(mutates=[...])"
        )
    if findings.outputs is not None and findings.outputs != operator.outputs:
        raise TypeError(
            f"{function.__name__} returns something else for these arguments than its operator "
            f"{operator.schema} says"
        )
