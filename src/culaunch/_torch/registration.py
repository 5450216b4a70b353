"""Registering functions as operators of torch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_text
from culaunch._base.fork_lock import ForkLock
from culaunch._base.untraced import untraced
from culaunch._base.values import spell
from culaunch._core import Elementwise as CoreElementwise
from culaunch._core import TritonDispatcher
from culaunch._elementwise.elementwise_function import ElementwiseFunction
from culaunch._function import Function
from culaunch._function.declarations.annotations import Array
from culaunch._torch import dispatch, fake, gradients, kernels
from culaunch._torch.findings import Findings, find
from culaunch._torch.operator import TorchOperator, mutates_of
from culaunch._torch.package import torch_package
from culaunch._torch.schema import (
    Parameter,
    given_outputs,
    given_parameters,
    parameters_of,
    schema_text,
)
from culaunch._torch.triton_kernels import kernel_function

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")
_operators: dict[str, TorchOperator] = {}
_lock = ForkLock()


def torch_op(
    name: str,
    function: Any,
    *,
    schema: str | None = None,
    grid: Any = None,
    constants: Mapping[str, Any] | None = None,
    mutates: Sequence[str] | None = None,
    backward: str | None = None,
) -> TorchOperator:
    """Register a function as an operator of torch.

    The function's declaration and body supply the schema and an implementation for tensors without
    data (``torch.compile``, ``torch.export``). A ``backward`` function supplies gradients. The
    operator lives as long as the process.

    Parameters
    ----------
    name : str
        ``"namespace::name"``.
    function : Function
        The function. Its parameters are tensors, unless an annotation or a default says otherwise.
        You may also pass a fused elementwise function, or a Triton kernel: the result of
        ``culaunch.triton.native``, or a saved set.
    schema : str, optional
        The schema for torch, such as ``"(Tensor x, float factor) -> Tensor"``. By default the body
        is traced to find it, for kinds of arguments that it accepts.
    grid : tuple or callable, optional
        For a Triton kernel: as in ``kernel[grid]``.
    constants : dict, optional
        For a Triton kernel: values of its constants, and options such as ``num_warps``.
    mutates : sequence of str, optional
        For a Triton kernel: the arrays that it writes, if its intermediate representation does not
        tell.
    backward : str, optional
        ``"auto"``, of a fused function: its trace gives its gradients, as fused kernels.

    Returns
    -------
    TorchOperator
        Call it, or ``torch.ops.namespace.name``.

    Raises
    ------
    TypeError
        If it is not a function, or cannot be an operator. Operators cannot return an argument, a
        view of one, or a tuple in a tuple. The kernels must tell whether they write to each
        argument.
    ValueError
        If the name is invalid, or another operator has it.
    MissingDependencyError
        If torch is not installed.

    Examples
    --------
    >>> operator = cl.frameworks.torch_op("mylib::scale", scale)
    """
    checked_text("name", name, "a str of the form namespace::name")
    if _NAME.fullmatch(name) is None:
        raise ValueError(
            f"name must be 'namespace::name', such as 'mylib::scale' (got {spell(name)})"
        )
    torch_package()
    if isinstance(function, TritonDispatcher):
        function = kernel_function(function, grid, constants, mutates, schema)
        return _registered(name, function, schema, None, both_sides=False)
    for word, value in (("grid", grid), ("constants", constants), ("mutates", mutates)):
        if value is not None:
            raise TypeError(
                f"{word} must be given only for Triton kernels (got {spell(function)}): a "
                "function determines it itself"
            )
    if backward is None:
        return _registered(name, as_function(function), schema, None)
    if not isinstance(function, ElementwiseFunction):
        raise TypeError(
            f"backward must be given only for fused functions (got {spell(function)}): for a "
            "function, use function.backward"
        )
    return _registered(name, function.as_function(backward=backward), schema, None)


def _register_beside(
    operator: TorchOperator, suffix: str, function: Function[..., Any]
) -> TorchOperator:
    """Register a function that computes gradients, or saves values for them, as an operator."""
    # The parameters of an unregistered function's operator come from a call, without annotations.
    known = {
        one.name: one._replace(array=Array())
        if one.array is None and one.type.startswith("Tensor")
        else one
        for one in operator.parameters
    }
    return _registered(f"{operator.name}_{suffix}", function, None, known)


def as_function(function: Any) -> Function[..., Any]:
    """Return a function; make one of a fused elementwise function."""
    if isinstance(function, Function):
        return function
    if isinstance(function, CoreElementwise):
        return function.as_function()  # type: ignore[attr-defined,no-any-return]
    raise TypeError(
        "function must be a cl.function, a function of a library, a fused elementwise function, "
        f"or culaunch.triton.native(kernel) (got {spell(function)}): write a cl.function that "
        "launches it"
    )


def register(operator: TorchOperator) -> None:
    """Register an operator with torch, including everything that torch needs for it."""
    torch = torch_package()
    namespace, _, name = operator.name.partition("::")
    # A FRAGMENT, because others may define operators in the same namespace.
    library = torch.library.Library(namespace, "FRAGMENT")
    try:
        # Kernels are made for the strides in the body, so a torch compiler must not choose others.
        tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
        library.define(operator.schema.partition("::")[2], tags=tags)
    except RuntimeError as error:
        if "same name" in str(error):
            raise ValueError(
                "name must be new, but another library has registered the operator "
                f"{operator.name}. Operators live as long as the process: choose another name"
            ) from None
        raise ValueError(f"torch rejects the operator {operator.schema}: {error}") from error
    # torch removes the operator when the library object is freed.
    operator._library = library
    operator.overload = getattr(getattr(torch.ops, namespace), name).default
    dispatch.register(operator, library)
    torch.library.register_fake(operator.name, fake.fake_of(operator), lib=library)
    kernels.register(operator, library)
    # The backward function may come much later, or never. It is registered when it comes.
    operator._register_gradients = lambda: gradients.make(operator, _register_beside)
    if operator.function._gradient is not None:
        operator.differentiate()
    operator.set_way()


def _replace(operator: TorchOperator, function: Function[..., Any]) -> None:
    """Put another function with the same schema behind an operator."""
    operator.function._doors.remove(operator)
    operator.function = function
    dispatch.replace(operator)
    if function._gradient is not None:
        operator.differentiate()
    operator.set_way()


@untraced
def _registered(
    name: str,
    function: Function[..., Any],
    schema: str | None,
    known: dict[str, Parameter] | None,
    *,
    both_sides: bool = True,
) -> TorchOperator:
    with _lock:
        there = _operators.get(name)
        # A second registration is allowed, because a module may be imported under two names.
        if there is not None and there.function is function:
            return there
        parameters = parameters_of(function.declaration, known)
        given = None if schema is None else torch_package()._C.parse_schema(f"x::y{schema}")
        if given is not None:
            parameters = given_parameters(parameters, given)
        findings = _findings(function, parameters, given, both_sides=both_sides)
        mutates = mutates_of(function, findings)
        outputs = findings.outputs or ()
        if None in outputs and known is None:
            raise TypeError(
                f"{function.__name__} returns a tuple that contains None, but a torch operator "
                "must return arrays and numbers"
            )
        if mutates and any(one not in (None, "Tensor") for one in outputs):
            raise TypeError(
                f"{function.__name__} writes {', '.join(mutates)} and returns numbers, but torch "
                "compiles no operator that does both: return arrays or None"
            )
        text = schema
        if text is None:
            given = tuple(one for one in outputs if one is not None)
            text = schema_text(parameters, mutates, given)
        operator = TorchOperator(
            name, function, parameters, mutates, outputs, findings.template, text
        )
        if there is not None:
            return _reloaded(there, operator)
        register(operator)
        _operators[name] = operator
        function._doors.append(operator)
        return operator


def _reloaded(there: TorchOperator, operator: TorchOperator) -> TorchOperator:
    """Use the function of a module that was reloaded."""
    old: Any = getattr(there.function, "__wrapped__", there.function)
    new: Any = getattr(operator.function, "__wrapped__", operator.function)
    names = tuple(f"{one.__module__}.{one.__qualname__}" for one in (old, new))
    # The name distinguishes a reloaded module from another module's function.
    if names[0] != names[1]:
        raise ValueError(
            f"name must be new, but {there.name} is the operator of {names[0]}. Operators live as "
            "long as the process: choose another name"
        )
    if there.schema != operator.schema:
        raise ValueError(
            f"{there.name} is registered as {there.schema}, but {new.__name__} now has the schema "
            f"{operator.schema}. Operators live as long as the process: start a new process"
        )
    _replace(there, operator.function)
    operator.function._doors.append(there)
    return there


def _findings(
    function: Function[..., Any],
    parameters: tuple[Parameter, ...],
    given: Any,
    *,
    both_sides: bool,
) -> Findings:
    if given is None:
        return find(function, parameters, both_sides=both_sides)
    findings = Findings(function.__name__, function.declaration.names)
    findings.mutates = {
        i
        for i, argument in enumerate(given.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    }
    types = given_outputs(given)
    findings.outputs = types
    if types:
        each = tuple(("output", i) for i in range(len(types)))
        findings.template = ("tuple", each) if len(each) > 1 else each[0]
    return findings
