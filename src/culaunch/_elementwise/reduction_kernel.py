"""``ReductionKernel``: a reduction from C++, in CuPy's convention."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_flag, checked_text
from culaunch._base.values import counted, spell
from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.apply import convert
from culaunch._elementwise.elementwise_function import ElementwiseFunction
from culaunch._elementwise.reductions.axes import not_an_axis, require_elements
from culaunch._elementwise.reductions.combiner import Combiner
from culaunch._elementwise.reductions.reduce import reduced_nodes
from culaunch._elementwise.template import read_parameters
from culaunch._elementwise.trace import node_of

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node
    from culaunch._elementwise.reductions.labels import ShapedTrace
    from culaunch._elementwise.template import Parameter

_NAME = re.compile(r"[A-Za-z_]\w*")


class ReductionKernel:
    """A reduction from C++ text, in the convention of CuPy's class of this name.

    Parameters
    ----------
    in_params, out_params : str
        Types and names, as in ``"float32 a, T x"``. A type is NumPy's name, or a type parameter
        that the arguments determine. There is one output.
    map_expr : str
        A C++ expression that maps the inputs to the value to reduce, for each element.
    reduce_expr : str
        A C++ expression that combines ``a`` and ``b``. It must be associative and commutative.
    post_map_expr : str
        C++ statements that assign to the output from ``a``, such as ``"y = sqrt(a)"``.
        ``_in_ind.size()`` and ``_out_ind.size()`` are the numbers of elements.
    identity : str, int, float or None
        The neutral element in C++: combining a value with it does not change the value. With None,
        reducing no elements is an error.
    name : str, optional
        The name of the kernel in profilers and messages.
    reduce_type : str, optional
        The type of ``a`` and ``b``; the output's type by default. Half precision is ``float`` in
        all expressions.
    preamble : str, optional
        C++ before the kernel.

    Raises
    ------
    ValueError
        If the parameters cannot be read.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> norm = ew.ReductionKernel(
    ...     "T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", name="norm"
    ... )
    >>> norm(x).numpy().tolist()
    16.0
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: str | float | None,
        name: str = "reduce_kernel",
        *,
        reduce_type: str | None = None,
        preamble: str = "",
    ) -> None:
        if not _NAME.fullmatch(checked_text("name", name)):
            raise ValueError(f"name must be a C identifier (got {name!r})")
        for word, text in (
            ("map_expr", map_expr), ("reduce_expr", reduce_expr),
            ("post_map_expr", post_map_expr), ("preamble", preamble),
        ):  # fmt: skip
            checked_text(word, text)
        self.__name__ = name
        self.inputs = read_parameters(in_params, "in_params")
        outputs = read_parameters(out_params, "out_params")
        if len(outputs) != 1:
            raise ValueError(f"out_params must have one parameter (got {len(outputs)})")
        if not self.inputs:
            raise ValueError("in_params must have at least one parameter")
        for parameter in (*self.inputs, *outputs):
            if parameter.is_raw:
                raise ValueError(
                    f"the parameter {parameter.name} is raw, but a reduction cannot "
                    "have a raw parameter"
                )
        (self.output,) = outputs
        self.expressions = (map_expr, reduce_expr, post_map_expr)
        self.identity = _identity(identity)
        self.reduce_type, self.preamble = reduce_type, preamble
        self._functions: dict[Any, _Reduction] = {}

    def __call__(
        self,
        *args: Any,
        out: Any = None,
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
    ) -> Any:
        """Broadcast the arrays and reduce them. The output may follow the inputs."""
        count = len(self.inputs)
        if len(args) == count + 1 and out is None:
            *args, out = args  # type: ignore[assignment]
        if len(args) != count:
            raise TypeError(
                f"{self.__name__} takes {', '.join(one.name for one in self.inputs)} (got "
                f"{counted(len(args), 'argument')})"
            )
        # An axis may be a list, as in CuPy.
        axis = tuple(axis) if isinstance(axis, list) else axis
        key = (axis, checked_flag("keepdims", keepdims))
        try:
            function = self._functions.get(key)
        except TypeError:  # it has no hash
            raise not_an_axis(self.__name__, axis) from None
        if function is None:
            function = self._functions.setdefault(key, _Reduction(self, axis, keepdims))
        return function(*args, out=out)

    def __repr__(self) -> str:
        names = ", ".join(one.name for one in self.inputs)
        return f"<culaunch.elementwise reduction kernel {self.__name__}({names})>"


def _identity(value: object) -> str | None:
    """Return the neutral element in C++. As in CuPy, an empty text means none."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return checked_text("identity", value)
    if not isinstance(value, (int, float)):
        raise TypeError(f"identity must be a str, int, float or None (got {spell(value)})")
    if isinstance(value, int) and value.bit_length() > 64:
        raise ValueError(f"identity must have at most 64 bits (got {spell(value)})")
    return {"True": "true", "False": "false"}.get(str(value), str(value))


class _Reduction(ElementwiseFunction):
    """A reduction kernel along given dimensions."""

    reduces = True

    def __new__(cls, kernel: ReductionKernel, axis: Any, keepdims: bool) -> _Reduction:
        names = tuple(one.name for one in kernel.inputs)
        self = super().__new__(cls, kernel.__name__, names)
        self.__name__ = kernel.__name__
        self._parameters = names
        self._kernel, self._axis, self._keepdims = kernel, axis, keepdims
        return self

    _kernel: ReductionKernel
    _axis: Any
    _keepdims: bool

    def _bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        given = dict(zip(self._parameters, args, strict=False)) | keywords
        return tuple(given[name] for name in self._parameters)

    def _trace(self, trace: ShapedTrace, values: list[Any]) -> tuple[Node, ...]:  # type: ignore[override]
        kernel = self._kernel
        nodes = [node_of(value) for value in values]
        types = self._types(nodes)
        inputs = tuple(
            convert(node, types[one.type], self.__name__)
            for one, node in zip(kernel.inputs, nodes, strict=True)
        )
        result = types[kernel.output.type]
        partial = self._partial(types, result)
        map_text, reduce_text, post_text = kernel.expressions
        space = "".join(
            f"using {name} = {dt.compute(dtype)};\n"
            for name, dtype in sorted(types.items())
            if name not in dt.BY_NAME
        )
        space += kernel.preamble + "\n"
        kind = dt.compute(partial)
        parameters = ", ".join(f"{dt.compute(types[one.type])} {one.name}" for one in kernel.inputs)
        define = "__device__ __forceinline__"
        text = f"{define} {kind} map_element({parameters}) {{\n  return ({kind})({map_text});\n}}\n"
        mapped = trace.operation("call", partial, inputs, detail=("map_element", (space, text)))
        combine = (
            f"{define} {kind} combine_two({kind} a, {kind} b) {{\n"
            f"  return ({kind})({reduce_text});\n}}\n"
        )
        parts = self._reduce(trace, mapped, partial, (space, combine))
        dims = trace.of(mapped)
        counts = tuple(
            trace.operation("count", dt.weak_int, (), detail=labels)
            for labels in (
                tuple(label for label in dims if label is not None),
                tuple(label for label in trace.of(parts) if label is not None),
            )
        )
        # CuPy's accessors: the number of elements is known here, but their values are not.
        post = (
            f"struct ElementCount {{\n  long long count;\n"
            f"  __device__ long long size() const {{ return count; }}\n}};\n"
            f"{define} {dt.compute(result)} finish({kind} a, long long in_size, "
            f"long long out_size) {{\n"
            f"  const ElementCount _in_ind{{in_size}}, _out_ind{{out_size}};\n"
            f"  {dt.compute(result)} {kernel.output.name};\n  {post_text.strip()};\n"
            f"  return {kernel.output.name};\n}}\n"
        )
        return (
            trace.operation("call", result, (parts, *counts), detail=("finish", (space, post))),
        )

    def _reduce(
        self, trace: ShapedTrace, mapped: Node, partial: dt.DType, text: tuple[str, ...]
    ) -> Node:
        kernel = self._kernel
        if kernel.identity is not None:
            combiner = Combiner(
                self.__name__, (partial,), (f"({dt.compute(partial)})({kernel.identity})",),
                ("y0 = combine_two(x0, x1);",), text,
            )  # fmt: skip
            return reduced_nodes(self.__name__, (mapped,), combiner, self._axis, self._keepdims)[0]
        refusal = f"{self.__name__} cannot reduce zero elements, because it has no identity"
        require_elements(trace, trace.of(mapped), self._axis, self.__name__, refusal)
        # Without an identity, a partial result says whether it has seen an element.
        combiner = Combiner(
            self.__name__,
            (partial, dt.bool_),
            (f"{dt.compute(partial)}()", "false"),
            ("y0 = !x1 ? x2 : !x3 ? x0 : combine_two(x0, x2);", "y1 = x1 || x3;"),
            text,
        )
        seen = trace.constant(True, dt.bool_)
        parts = reduced_nodes(self.__name__, (mapped, seen), combiner, self._axis, self._keepdims)
        return parts[0]

    def _partial(self, types: dict[str, dt.DType], result: dt.DType) -> dt.DType:
        name = self._kernel.reduce_type
        if name is None:
            return result
        found = types.get(name) or dt.BY_NAME.get(name)
        if found is None:
            raise ValueError(
                f"{self.__name__}: reduce_type must be one of {', '.join(dt.BY_NAME)}, or a type "
                f"of a parameter (got {spell(name)})"
            )
        return found

    def _types(self, nodes: list[Node]) -> dict[str, dt.DType]:
        """Find the type parameters: arrays decide, then Python's numbers by NumPy's defaults."""
        kernel = self._kernel
        every: tuple[Parameter, ...] = (*kernel.inputs, kernel.output)
        types = {one.type: one.dtype for one in every if one.dtype is not None}
        pairs = list(zip(kernel.inputs, nodes, strict=True))
        default = {"b": dt.bool_, "i": dt.int64, "f": dt.float64, "c": dt.complex128}
        for one, node in sorted(pairs, key=lambda pair: pair[1].dtype.is_weak):
            own = default[node.dtype.kind] if node.dtype.is_weak else node.dtype
            known = types.setdefault(one.type, own)
            if not node.dtype.is_weak and known != own:
                raise TypeError(
                    f"{self.__name__}: argument {one.name} must be {known.name} (got "
                    f"{own.name}): convert it"
                )
        if kernel.output.type not in types:
            raise ValueError(
                f"{self.__name__}: the type {kernel.output.type} of {kernel.output.name} is "
                "neither an element type nor the type of an input"
            )
        return types
