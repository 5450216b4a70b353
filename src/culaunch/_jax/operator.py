"""Functions as operations of JAX."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from culaunch._base.fork_lock import ForkLock
from culaunch._base.values import spell
from culaunch._core import Function as CoreFunction
from culaunch._jax.gradients import differentiable
from culaunch._jax.package import TARGET, jax_package
from culaunch._jax.plan import Plan, dtype_of, filled
from culaunch._jax.texts import ARRAY, VALUE
from culaunch._jax.varying import axes_of, varying

if TYPE_CHECKING:
    from collections.abc import Callable

_WAYS = ("sequential", "sequential_unrolled", "broadcast_all")


class JaxOperator:
    """A function as an operation of JAX: the result of :func:`culaunch.frameworks.jax_op`.

    Call it with arrays of JAX, traced ones too; it returns new arrays. Arrays that the function
    writes are returned instead of changed. If the function itself returns one of these, that result
    is the new array. Others follow, in the order of their names.

    Attributes
    ----------
    function : Function
    target : str
        The name of the custom call, for ``jax.export.DisabledSafetyCheck.custom_call``.

    Examples
    --------
    >>> operator = cl.frameworks.jax_op(scale, vmap="broadcast_all")
    """

    target = TARGET

    def __init__(self, function: Any, vmap: str | Callable[..., Any]) -> None:
        self.function = function
        self._vmap = vmap
        self._plans: dict[Any, tuple[Plan, Any, Any]] = {}
        self._lock = ForkLock()
        self.__name__: str = function.__name__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the function in a program of JAX, or at once.

        Raises
        ------
        TypeError, ValueError
            As a call of the function; and where JAX traces a number.
        """
        return self.run(*self.prepare(self.function._bind(args, keywords)))

    def run(self, plan: Plan, call: Callable[..., Any], arrays: list[Any]) -> Any:
        """Call the result of :meth:`prepare`.

        Parameters
        ----------
        plan, call : object
            Results of :meth:`prepare`.
        arrays : list of jax.Array
            The arrays of the call.

        Returns
        -------
        object
            The function's result.

        Raises
        ------
        TypeError
            If JAX traces the call in forward mode.
        """
        try:
            outputs = call(*arrays)
        except TypeError as error:
            # JAX's own message names neither the function nor a remedy.
            if "forward-mode" not in str(error):
                raise
            raise TypeError(
                f"{plan.name} has only reverse-mode gradients, but jax.jvp, jax.jacfwd and "
                "jax.hessian need forward mode: use jax.grad, jax.vjp or jax.jacrev. "
                "jax.jacrev(jax.jacrev(f)) computes a Hessian"
            ) from error
        return plan.rebuild(outputs, arrays)

    def prepare(self, values: tuple[Any, ...]) -> tuple[Plan, Callable[..., Any], list[Any]]:
        """Return the plan of a call, the object to call, and the arrays for it.

        Parameters
        ----------
        values : tuple
            One for each parameter.

        Returns
        -------
        tuple
            The plan, the callable, and the list of arrays, for :meth:`run`.
        """
        jax = jax_package()
        values = tuple(map(_number, values))
        found: list[Any] = []
        kinds = tuple(
            _sorted(jax, self.function, name, value, found)
            for name, value in zip(self.function.declaration.names, values, strict=True)
        )
        plan, call, jitted = self._plan(values, kinds, found)
        # Outside a trace, the call is a compiled program. Inside a trace, it is part of another
        # program, and jit would add a level that XLA has to remove.
        if not any(isinstance(one, jax.core.Tracer) for one in found):
            return plan, jitted, found
        # Do this before gradients are computed: the gradient of a value common to all devices is
        # then a sum.
        axes = axes_of(jax, found)
        return plan, call, [varying(jax, one, axes) for one in found]

    def __repr__(self) -> str:
        return f"<culaunch.frameworks.JaxOperator {self.function}>".replace("\n", " ")

    def _plan(self, values: Any, kinds: tuple[int, ...], arrays: list[Any]) -> Any:
        shapes = tuple((tuple(one.shape), dtype_of(one)) for one in arrays)
        # A plan lives as long as the operator, and must keep no array or tracer alive.
        values = tuple(
            value if kind == VALUE else None for value, kind in zip(values, kinds, strict=True)
        )
        rest = tuple((type(value), value) for value in values)
        # The user chooses JAX's types, and may change them before the next call.
        is_wide = jax_package().config.jax_enable_x64
        key: Any = (kinds, shapes, rest, self.function._gradient, is_wide)
        try:
            known = self._plans.get(key)
        except TypeError:  # an unhashable argument is refused below, by name
            known = key = None
        # A global that the body reads may have changed, or the path may have been dropped.
        if known is not None and self._is_current(known[0]):
            return known
        plan = Plan(self.function, values, kinds, shapes)  # type: ignore[arg-type]
        jax = jax_package()
        call = differentiable(
            self.function, plan, values, kinds, self._batched(plan, values, kinds)
        )
        made = (plan, call, jax.jit(call))
        with self._lock:
            self._plans[key] = made
        return made

    def _is_current(self, plan: Plan) -> bool:
        if plan.tree is None:
            return True
        self.function._require_same_reads()
        return any(tree is plan.tree for _, tree in self.function._trees.values())

    def _batched(self, plan: Plan, values: Any, kinds: tuple[int, ...]) -> Any:
        vmap = self._vmap
        if vmap in ("sequential", "sequential_unrolled"):
            return plan.ffi_call(str(vmap))
        jax = jax_package()
        # JAX itself knows only the methods that repeat the call. The others are our own rule.
        call = jax.custom_batching.custom_vmap(plan.ffi_call(None))

        @call.def_vmap  # type: ignore[untyped-decorator]
        def rule(size: int, is_batched: list[bool], *arrays: Any) -> Any:
            if callable(vmap):
                result = vmap(size, tuple(is_batched), *filled(values, kinds, list(arrays)))
            else:
                spread = [
                    one if batched else jax.numpy.broadcast_to(one, (size, *one.shape))
                    for one, batched in zip(arrays, is_batched, strict=True)
                ]
                result = self(*filled(values, kinds, spread))
            outputs = tuple(jax.tree_util.tree_leaves(result))
            _require_batch(plan, size, outputs)
            # Every result has a batch dimension, even if only some arguments had one.
            return outputs, (True,) * len(outputs)

        return call


def jax_op(function: Any, *, vmap: str | Callable[..., Any] = "sequential") -> JaxOperator:
    """Make a function an operation of JAX: for ``jax.jit``, ``grad``, ``vmap`` and ``export``.

    ``scale.jax`` is ``jax_op(scale)``. The body supplies the shapes and types of the results. XLA
    calls the function natively, on its stream, with its memory.

    Parameters
    ----------
    function : Function
        A function, or a function of a library.
    vmap : str or callable, optional
        How ``jax.vmap`` calls it. ``"sequential"`` is a loop, and ``"sequential_unrolled"`` one
        call for each item. ``"broadcast_all"`` is one call, with one more dimension in front of
        each array. A function ``rule(size, is_batched, *arguments)`` returns the results with the
        batch in front.

    Returns
    -------
    JaxOperator

    Raises
    ------
    TypeError, ValueError
        If it is not a function, or `vmap` is unknown.
    MissingDependencyError
        If JAX is not installed, or too old.

    Examples
    --------
    >>> import jax
    >>> operator = cl.frameworks.jax_op(scale)
    >>> y = jax.jit(operator)(jax.numpy.ones(256), 2.0)  # doctest: +SKIP
    """
    if not isinstance(function, CoreFunction):
        raise TypeError(f"function must be a function of culaunch (got {spell(function)})")
    if not callable(vmap) and vmap not in _WAYS:
        raise ValueError(
            f"vmap must be one of {', '.join(map(repr, _WAYS))}, or a function (got {spell(vmap)})"
        )
    jax_package()
    return JaxOperator(function, vmap)


def _require_batch(plan: Plan, size: int, outputs: tuple[Any, ...]) -> None:
    """Check the results of one call for a whole batch."""
    wanted = [(size, *shape) for shape, _ in plan.outputs]
    got = [tuple(one.shape) for one in outputs]
    if got != wanted:
        raise ValueError(
            f"{plan.name}: the call for a batch must return arrays of the shapes "
            f"{', '.join(map(str, wanted))} (got {', '.join(map(str, got))}): count dimensions "
            "from the end in the body, or pass vmap='sequential'"
        )


def _sorted(jax: Any, function: Any, name: str, value: Any, found: list[Any]) -> int:
    """Append the arrays of an argument; return the number of its kind."""
    if type(value) in (tuple, list) and value and _is_array(jax, value[0]):
        found += [_array(jax, function, f"{name}[{i}]", one) for i, one in enumerate(value)]
        # The sign distinguishes a list from a tuple, because a body may treat them differently. An
        # empty one has no arrays, and is a VALUE.
        return len(value) if type(value) is tuple else -1 - len(value)
    if not _is_array(jax, value):
        return VALUE
    if _takes_number(function, name) and value.ndim == 0:
        raise TypeError(
            f"{function.__name__}: argument {name} must be a number, but {spell(value)} is a JAX "
            "array whose value the host does not know. Pass a Python number (in jax.jit with "
            f"static_argnames={name!r}), or let the kernel read it from an array"
        )
    found.append(_array(jax, function, name, value))
    return ARRAY


def _number(value: Any) -> Any:
    """Return the Python number that a NumPy scalar is equal to, as a direct call does."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        return value
    kind = {"i": int, "u": int, "f": float, "b": bool}.get(value.dtype.kind)
    return value if kind is None else kind(value)


def _takes_number(function: Any, name: str) -> bool:
    wanted = getattr(function.declaration, "annotations", {})
    return wanted.get(name) in (int, float, bool, "int", "float", "bool")


def _is_array(jax: Any, value: Any) -> bool:
    if isinstance(value, jax.Array):
        return True
    # Check by name, because NumPy may be missing. A subclass may have another meaning.
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def _array(jax: Any, function: Any, name: str, value: Any) -> Any:
    if not _is_array(jax, value):
        raise TypeError(
            f"{function.__name__}: argument {name} must be an array, because the first "
            f"item is one (got {spell(value)})"
        )
    if any(not isinstance(size, int) for size in value.shape):
        raise TypeError(
            f"{function.__name__}: argument {name} must have a fixed shape (got {value.shape}): "
            "export a program for fixed shapes"
        )
    if dtype_of(value) is None:
        raise TypeError(
            f"{function.__name__}: argument {name} has the element type {value.dtype}, which "
            "kernels do not support"
        )
    return jax.numpy.asarray(value)
