"""Operators of torch whose implementation is a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._core import TorchOperator as CoreTorchOperator
from culaunch._function.tracing.kinds import arrays_of, key_of
from culaunch._launch.launches.compiled_regions import in_regions
from culaunch._torch.findings import Findings
from culaunch._torch.results import as_output
from culaunch._torch.schema import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._function import Function
    from culaunch._function.tracing.kinds import Kind
    from culaunch._function.tracing.runs import Run
    from culaunch._torch.results import Template
    from culaunch._torch.schema import Parameter


class TorchOperator(CoreTorchOperator):
    """A function as an operator of torch, made by :func:`culaunch.frameworks.torch_op`.

    Calling it calls the operator, ``torch.ops.mylib.scale``, at a lower cost: where torch's
    dispatcher would do nothing but call the function, it is not asked. It lives as long as the
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

    Examples
    --------
    >>> operator = cl.frameworks.torch_op("mylib::scale_op", scale)
    >>> operator.mutates
    ()
    """

    def __init__(
        self, name: str, function: Function[..., Any], parameters: tuple[Parameter, ...],
        mutates: tuple[str, ...], outputs: tuple[str | None, ...], template: Template, schema: str,
    ) -> None:  # fmt: skip
        self.name = name
        self.function = function
        self.parameters = parameters
        self.mutates = mutates
        self.outputs = outputs
        # How the function's result is built from the outputs.
        self.template = template
        # The kind of arguments that it is for, and the plain Python code that rebuilds the
        # function's result from its outputs and its arguments. None: all kinds, and nothing to
        # rebuild.
        self.kind: Any = None
        self.rebuild: Callable[..., Any] | None = None
        self.schema = name + schema
        self.dispatch = "python"
        self.why_python: str | None = None
        self.overload: Any = None
        self._library: Any = None
        self._slot: int | None = None
        # The function that computes gradients, once it is registered.
        self.gradients: Any = None
        self._register_gradients: Callable[[], Any] = _not_registered
        # The functions that the dispatcher calls before the function, and their Python parts.
        self._kernels: list[tuple[CoreTorchOperator, Callable[..., Any]]] = []
        self._as_output = as_output(template)

    @property
    def shown(self) -> str:
        """The name in messages, which the user chose."""
        return self.name if self.kind is None else self.function.__name__

    @property
    def _written(self) -> tuple[int, ...]:
        """The places of the parameters whose arrays it writes."""
        return tuple(i for i, one in enumerate(self.parameters) if one.name in self.mutates)

    def __repr__(self) -> str:
        return f"<culaunch.frameworks.TorchOperator {self.schema}, dispatch: {self.dispatch}>"

    # ---- called by the function

    def learn(self, run: Run, kind: Kind) -> None:
        """Refuse a path of the function that does not match the schema.

        Parameters
        ----------
        run, kind : object
            The recorded path, and the kind of arguments.
        """
        if self.kind is not None and self.kind != key_of(kind):
            return
        names = self.function.declaration.names
        findings = Findings(self.function.__name__, names, is_free=self.kind is not None)
        effects = None if run.is_error else run.record.effects
        findings.add(run.uses, effects, arrays_of(kind))
        _require_schema(self, findings)

    def call_flat(self, *args: Any, **keywords: Any) -> Any:
        """Call the function, and return the outputs as the operator returns them.

        Parameters
        ----------
        *args, **keywords
            The arguments of the function.

        Returns
        -------
        object
            The outputs in the result.
        """
        return self._as_output(self.function(*args, **keywords))

    def differentiate(self) -> None:
        """Register gradients, because the function has got a backward function."""
        if self.gradients is None:
            self.gradients = self._register_gradients()
            self.set_way()

    # ---- the way of a call

    def set_way(self) -> None:
        """Set the way of its calls after registration, and after each change."""
        if self.overload is None:
            return
        plain = [one for one in self.parameters if not one.is_keyword_only]
        others = self.parameters[len(plain) :]
        has_all = all(one.default is not MISSING for one in others)
        facts = (
            "".join(one.code for one in plain),
            sum(one.default is MISSING for one in plain),
            self.gradients is not None,
            len(self.overload._schema.returns),
            self._written,
        )
        # Every call returns the schema's results: without a backward function's None, and a single
        # tensor by itself.
        is_output = self.rebuild is None and None not in self.outputs
        target = self.function if is_output else self.call_flat
        function = target if has_all and self.rebuild is None else None
        self._set_way(function, self._dispatcher(), *facts, False)
        for kernel, generally in self._kernels:
            kernel._set_way(target if has_all else None, generally, *facts, True)

    def _dispatcher(self) -> Callable[..., Any]:
        """Return the callable for a call that is not plain."""
        return self.overload  # type: ignore[no-any-return]


def _not_registered() -> None:
    """Do nothing. An operator that is not registered yet asks for its gradients later."""


def mutates_of(function: Function[..., Any], findings: Findings) -> tuple[str, ...]:
    names = function.declaration.names
    if function._declared is not None:
        return function._declared
    unknown = [names[i] for i in sorted(findings.unknown - findings.mutates)]
    if unknown:
        raise TypeError(
            f"{function.__name__}: the kernels do not show whether they write "
            f"{', '.join(unknown)}, which the operator's schema must declare: use "
            "@cl.function(mutates=[...]), or torch_op(..., mutates=[...]) for a Triton kernel"
        )
    return tuple(names[i] for i in sorted(findings.mutates))


def _require_schema(operator: TorchOperator, findings: Findings) -> None:
    function = operator.function
    writes = mutates_of(function, findings)
    more = [name for name in writes if name not in operator.mutates]
    if more and function._declared is None:
        raise TypeError(
            f"{function.__name__} writes {', '.join(more)} for these arguments, but its operator "
            f"{operator.schema} does not declare it: use @cl.function(mutates=[...])"
        )
    if findings.outputs is not None and (findings.outputs, findings.template) != (
        operator.outputs,
        operator.template,
    ):
        raise TypeError(
            f"{function.__name__} returns values for these arguments that differ from the schema "
            f"of its operator, {operator.schema}"
        )


in_regions(TorchOperator, "overload", "operator")
