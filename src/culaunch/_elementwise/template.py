"""``kernel``: an elementwise kernel from its parameters and its C++, in CuPy's convention."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from culaunch._base.c_keywords import KEYWORDS
from culaunch._base.checks import checked_text
from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.element_code import Array, ElementCode, Scalar
from culaunch._elementwise.elementwise_function import ElementwiseFunction
from culaunch._launch.launches.compiled_regions import in_regions

_NAME = re.compile(r"[A-Za-z_]\w*")
_RESERVED = ("i", "_ind")


class TemplateKernel(ElementwiseFunction):
    """An elementwise kernel from C++ text; :func:`culaunch.elementwise.kernel` makes one.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> square = ew.kernel("T x", "T y", "y = x * x", "square")
    >>> square
    <culaunch.elementwise kernel square(x)>
    """

    def __new__(
        cls, inputs: str, outputs: str, operation: str, name: str, preamble: str
    ) -> TemplateKernel:
        """Read the parameters; the kernel is compiled at the first call."""
        if not _NAME.fullmatch(checked_text("name", name)):
            raise ValueError(f"name must be a C identifier (got {name!r})")
        checked_text("operation", operation)
        checked_text("preamble", preamble)
        read_inputs = read_parameters(inputs, "in_params")
        read_outputs = read_parameters(outputs, "out_params")
        if not read_outputs:
            raise ValueError("out_params must have at least one parameter")
        if any(parameter.is_raw for parameter in read_outputs):
            raise ValueError("out_params: a raw output is not supported")
        names = [parameter.name for parameter in (*read_inputs, *read_outputs)]
        for each in names:
            if names.count(each) > 1:
                raise ValueError(f"the parameter name {each!r} appears twice")
            if each in _RESERVED:
                raise ValueError(
                    f"a parameter cannot be called {each!r}: in the operation, i is the element's "
                    "index, and _ind has the number of elements"
                )
            if each in KEYWORDS:
                raise ValueError(f"a parameter cannot be called {each!r}: it is a keyword of C++")
        if any(parameter.name == "out" for parameter in read_inputs):
            raise ValueError("an input cannot be called 'out': the call has out= for the outputs")
        # An input determines a type parameter.
        known = {parameter.type for parameter in read_inputs if parameter.dtype is None}
        for parameter in read_outputs:
            if parameter.dtype is None and parameter.type not in known:
                raise ValueError(
                    f"the type {parameter.type} of {parameter.name} is not an element type, and no "
                    "input has it"
                )
        self = super().__new__(cls, name, tuple(parameter.name for parameter in read_inputs))
        self.__name__ = name
        self._inputs, self._outputs = read_inputs, read_outputs
        self._operation, self._preamble = operation, preamble
        self._parameters = tuple(parameter.name for parameter in read_inputs)
        return self

    _inputs: tuple[Parameter, ...]
    _outputs: tuple[Parameter, ...]
    _operation: str
    _preamble: str

    def __repr__(self) -> str:
        return f"<culaunch.elementwise kernel {self.__name__}({', '.join(self._parameters)})>"

    def _bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        given = dict(zip(self._parameters, args, strict=False)) | keywords
        count = len(args) + len(keywords)
        if count != len(self._parameters) or set(given) != set(self._parameters):
            raise TypeError(
                f"{self.__name__} takes {', '.join(self._parameters)} and out= (got {len(args)} "
                f"positional arguments and {', '.join(keywords) or 'no names'})"
            )
        return tuple(given[name] for name in self._parameters)

    def _element_code(self, dtypes: tuple[dt.DType, ...], numbers: bytes) -> ElementCode:
        types = self._resolve(dtypes)
        inputs: list[Array] = []
        scalars: list[Scalar] = []
        for index, (parameter, dtype) in enumerate(zip(self._inputs, dtypes, strict=True)):
            wanted = types[parameter.type]
            what = f"{self.__name__}: argument {parameter.name}"
            if numbers[index] >= dt.FIRST_SCALAR:
                if parameter.is_raw:
                    raise TypeError(f"{what} is raw and must be an array")
                if not dtype.is_weak and dtype != wanted:
                    raise TypeError(f"{what} must be {wanted.name} (got {dtype.name})")
                # A Python number may widen, never narrow: 1.5 does not become an int32.
                if dtype.is_weak and "biufc".index(dtype.kind) > "biufc".index(wanted.kind):
                    raise TypeError(f"{what} must be {wanted.name} (got a {dtype.name})")
                scalars.append(Scalar(parameter.name, wanted, index))
            elif dtype != wanted:
                raise TypeError(f"{what} must be an array of {wanted.name} (got {dtype.name})")
            else:
                inputs.append(Array(parameter.name, wanted, index, parameter.is_raw))
        outputs = tuple(Array(p.name, types[p.type]) for p in self._outputs)
        aliases = [
            f"using {name} = {dt.compute(dtype)};\n"
            for name, dtype in sorted(types.items())
            if name not in dt.BY_NAME
        ]
        operation = self._operation.strip()
        uses_index = any(p.is_raw for p in self._inputs) or bool(
            re.search(r"\b(i|_ind)\b", operation)
        )
        body = (*operation.splitlines(), *([] if operation.endswith((";", "}")) else [";"]))
        return ElementCode(
            self.__name__,
            outputs,
            tuple(inputs),
            tuple(scalars),
            body,
            "".join([*aliases, self._preamble]),
            uses_index,
        )

    def _resolve(self, dtypes: tuple[dt.DType, ...]) -> dict[str, dt.DType]:
        """Find the type parameters: arrays decide, then Python's numbers by NumPy's defaults."""
        types = {p.type: p.dtype for p in (*self._inputs, *self._outputs) if p.dtype is not None}
        pairs = [
            (p, dtype) for p, dtype in zip(self._inputs, dtypes, strict=True) if p.dtype is None
        ]
        # Stable: arrays keep the order of the parameters, as do numbers.
        for parameter, dtype in sorted(pairs, key=lambda pair: pair[1].is_weak):
            if dtype.is_weak:
                default = {"b": dt.bool_, "i": dt.int64, "f": dt.float64, "c": dt.complex128}
                types.setdefault(parameter.type, default[dtype.kind])
            elif types.setdefault(parameter.type, dtype) != dtype:
                known = types[parameter.type].name
                raise TypeError(
                    f"{self.__name__}: {parameter.type} is {known}, and argument "
                    f"{parameter.name} is {dtype.name}: convert one of them"
                )
        return types


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str  # an element type's name, or a type parameter
    is_raw: bool

    @property
    def dtype(self) -> dt.DType | None:
        """The element type, if it is fixed."""
        return dt.BY_NAME.get(self.type)


def kernel(
    in_params: str,
    out_params: str,
    operation: str,
    name: str = "kernel",
    *,
    preamble: str = "",
) -> TemplateKernel:
    """Make an elementwise kernel from C++, in the convention of CuPy's ElementwiseKernel.

    Parameters
    ----------
    in_params, out_params : str
        Types and names, as in ``"float32 a, T x, raw T y"``. A type is NumPy's name, or a type
        parameter that the arguments determine. The operation indexes a ``raw`` input, as in
        ``y[i]``.
    operation : str
        C++ statements that assign to the outputs. ``i`` is the element's index in C order, and
        ``_ind.size()`` the number of elements. Half precision is ``float`` here.
    name : str, optional
        The name of the kernel in profilers and messages.
    preamble : str, optional
        C++ before the kernel.

    Returns
    -------
    TemplateKernel
        Call it with the inputs and, optionally, ``out=``.

    Raises
    ------
    ValueError
        If the parameters cannot be read.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> saxpy = ew.kernel("float32 a, T x, T y", "T z", "z = a * x + y")
    >>> saxpy(2.0, x, x).numpy()[:3].tolist()
    [3.0, 3.0, 3.0]
    """
    return TemplateKernel(in_params, out_params, operation, name, preamble)


def read_parameters(text: str, what: str) -> tuple[Parameter, ...]:
    parameters = []
    for part in checked_text(what, text).split(","):
        words = part.split()
        if not words and not text.strip():
            continue
        is_raw = words[:1] == ["raw"]
        names = words[1:] if is_raw else words
        if len(names) != 2 or not all(_NAME.fullmatch(word) for word in names):
            raise ValueError(
                f"{what}: a parameter must be 'type name' or 'raw type name' (got {part.strip()!r})"
            )
        # CuPy's type parameters are single letters, and any word that begins with a capital; a
        # lower-case word is a misspelt type.
        if names[0] not in dt.BY_NAME and len(names[0]) > 1 and names[0].islower():
            known = ", ".join(dt.BY_NAME)
            raise ValueError(
                f"{what}: {names[0]} is not an element type; the element types are {known}"
            )
        parameters.append(Parameter(names[1], names[0], is_raw))
    return tuple(parameters)


in_regions(TemplateKernel, "operator", "fused function")
