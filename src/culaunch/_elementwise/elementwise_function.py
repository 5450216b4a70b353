"""The common part of both forms of an elementwise function: calls, sources, images."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._base.bundling import keep_to_bundle
from culaunch._base.values import counted, spell
from culaunch._core import NUMBERS
from culaunch._core import Elementwise as CoreElementwise
from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.cuda_source import kernel_name, render
from culaunch._elementwise.graph import ReducesError
from culaunch._elementwise.kernels import kernel_for, make_image, target_arch
from culaunch._elementwise.loop import Layout, unroll
from culaunch._elementwise.trace import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._core import ElementwiseMethods
    from culaunch._elementwise.element_code import ElementCode
    from culaunch._elementwise.graph import Node, Trace
    from culaunch._function.calling.function import Function
    from culaunch._image import Image
    from culaunch._launch import Kernel

_KINDS = {"c": "contiguous", "s": "strided", "t": "tiled"}
_ROLES = {"mapped": 1, "raw": 2, "scalar": 3}


class ElementwiseFunction(CoreElementwise):
    """The base class of fused functions and of kernels from C++ text.

    Each combination of argument types and memory layouts has one kernel. Call it with arrays of one
    framework on one device, Python numbers and NumPy scalars. The framework of the arrays allocates
    the result, and the kernel runs in the framework's current stream.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> twice = ew.fuse(lambda x: x * 2)
    >>> isinstance(twice, ew.ElementwiseFunction)
    True
    """

    __name__: str
    _parameters: tuple[str, ...]
    # Whether it reduces. Its calls then go to a function with its host side.
    reduces: bool = False

    def _trace(self, trace: Trace, values: list[Any]) -> tuple[Node, ...]:
        raise NotImplementedError

    def _element_code(self, dtypes: tuple[dt.DType, ...], numbers: bytes) -> ElementCode:
        raise NotImplementedError

    def _bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        raise NotImplementedError

    def source(self, *args: Any, **keywords: Any) -> str:
        """Return the CUDA source that a call with these arguments runs.

        Functions that differ only in names have the same source. A function that reduces may
        have several kernels, in the order in which they run.

        Parameters
        ----------
        *args, **keywords
            The arguments of a call.

        Returns
        -------
        str
            The source of all kernels of the call.
        """
        return "\n".join(source for _, source in self._lower(args, keywords)[0])

    def lower(self, *args: Any, **keywords: Any) -> Lowered:
        """Compile for these arguments without running, for embedding and shipping.

        Parameters
        ----------
        *args, **keywords
            The arguments of a call.

        Returns
        -------
        Lowered
            The kernel's name, source and image. Its parameters are the outputs, the inputs, the
            scalars, and then the size, or the sizes and strides that the source shows.

        Raises
        ------
        TypeError
            If the function reduces: save or export its :meth:`as_function` instead.
        """
        kernels, ordinal = self._lower(args, keywords)
        if self.reduces:
            raise TypeError(
                f"{self.__name__} reduces, and its kernels need host code: call it in a "
                "cl.function, and save or export that function"
            )
        name, source = kernels[0]
        return Lowered(name, source, make_image(source, name, target_arch(ordinal)))

    def _lower(
        self, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[list[tuple[str, str]], int]:
        keywords = dict(keywords)
        out = keywords.pop("out", None)
        bound = self._bind(args, keywords)
        if any(isinstance(arg, Value) for arg in bound):
            raise TypeError("source and lower accept arrays, not traced values")
        try:
            found = None if self.reduces else self._describe(bound, out)
        except TypeError:
            if not self.reduces:
                raise
            found = None
        if found is None:
            from culaunch._elementwise.reductions.described import texts_of

            texts, ordinal = texts_of(self, bound, out)
            return [(text.name, text.source) for text in texts], ordinal
        code, ordinal, kind, vector, rank, flags, classes = found
        if not kind:
            raise ValueError(f"{self.__name__}: the arrays are empty: no kernel runs")
        layout = _layout(kind, vector, rank, flags, classes)
        return [(kernel_name(code, layout), render(code, layout))], ordinal

    def as_function(self, *, backward: str | None = None) -> Function[..., Any]:
        """Return a :class:`culaunch.Function` that calls this one.

        You can save it, export it, and register it as an operator of a framework.

        Parameters
        ----------
        backward : str, optional
            ``"auto"`` adds a backward function, which is derived from the trace.

        Returns
        -------
        Function
            A function with the name and the parameters of this one.

        Raises
        ------
        ValueError
            If `backward` is another word.

        Examples
        --------
        >>> from culaunch import elementwise as ew
        >>> twice = ew.fuse(lambda x: x * 2)
        >>> host = twice.as_function(backward="auto")
        """
        if backward is None:
            return host_function(self)
        if backward != "auto":
            raise ValueError(f"backward must be 'auto' or None (got {spell(backward)})")
        return gradient_makers[0](self)

    # The native half calls these methods.

    def _specialize(self, numbers: bytes) -> tuple[bytes, bytes, bytes, bool, object] | None:
        if self.reduces:
            return None
        dtypes = tuple(dt.operand_type(number) for number in numbers)
        try:
            code = self._element_code(dtypes, numbers)
        except ReducesError:
            self.reduces = True
            return None
        # Numbers that the extension uses (`elementwise` in csrc); 0 is not used.
        roles = [0] * len(numbers)
        for array in code.inputs:
            roles[array.argument] = _ROLES["raw" if array.is_raw else "mapped"]
        for scalar in code.scalars:
            roles[scalar.argument] = _ROLES["scalar"]
        for index, number in enumerate(numbers):
            # An array that the result does not depend on still takes part in broadcasting, but its
            # memory is not read.
            if roles[index] == 0 and number < dt.FIRST_SCALAR:
                roles[index] = 4
        scalars = bytes(
            part for scalar in code.scalars for part in (scalar.argument, scalar.dtype.number)
        )
        outputs = bytes(array.dtype.number for array in code.outputs)
        return outputs, bytes(roles), scalars, code.uses_index, code

    def _make_kernel(
        self, code: ElementCode, ordinal: int, kind: str, vector: int, rank: int, flags: int,
        classes: bytes,
    ) -> tuple[Kernel, int]:  # fmt: skip
        layout = _layout(kind, vector, rank, flags, classes)
        # A thread of a tiled kernel already has sixteen elements.
        times = 1 if layout.kind == "tiled" else unroll(code, layout)
        keep_to_bundle(self)
        return kernel_for(code, layout, ordinal), times

    def _call_slowly(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Bring arguments into the order of the parameters, or raise the error about them."""
        out = keywords.pop("out", None)
        bound = self._bind(args, keywords)
        # The native half gave up the call, so there is time to find out why.
        unknown = [i for i, arg in enumerate(bound) if not _is_known(arg)]
        if any(isinstance(arg, Value) for arg in bound):
            return self._inline(bound, out)
        if unknown:
            index = unknown[0]
            raise TypeError(
                f"{self.__name__}: argument {self._parameters[index]} must be an array, a Python "
                f"number or a NumPy scalar (got {type(bound[index]).__name__})"
            )
        if len(bound) >= _MOST:
            raise TypeError(
                f"{self.__name__} has {counted(len(bound), 'parameter')}, but at most "
                f"{_MOST - 1} are "
                "supported"
            )
        if self.reduces:
            self._delegate(host_function(self, with_out=True), Value)
        # In order and complete, as the native half expects. Everything checked above will not
        # return here.
        return self(*bound, out=out)

    def _runs_in_place(self, args: tuple[Any, ...]) -> bool:
        """Tell whether the output of a function that reduces may be one of its arguments."""
        from culaunch._elementwise.reductions.described import runs_in_place

        return runs_in_place(self, args)

    def _inline(self, args: tuple[Any, ...], out: object) -> Any:  # noqa: ARG002
        raise TypeError(f"{self.__name__} cannot be called while another function is traced")


# The keyword of a call in a body whose output is known not to overlap an argument.
CHECKED = "_out_is_checked"

# ``gradients`` registers the maker of functions with gradients here, because it is a layer above.
gradient_makers: list[Callable[[ElementwiseFunction], Function[..., Any]]] = []


def host_function(function: ElementwiseFunction, *, with_out: bool = False) -> Function[..., Any]:
    """Return a function whose body is a call of a fused one: its host side, with its parameters.

    With ``out``, it takes all arguments by position, as the native half passes them.
    """
    from culaunch._function.calling.decorator import function as make_function

    parameters, arguments, defaults = _parameters_of(function)
    scope: dict[str, Any] = {"fused": function, "defaults": defaults}
    if with_out:
        parameters = f"{', '.join(function._parameters)}, *, out=None"  # noqa: SLF001
        arguments += f", out=out, {CHECKED}=True"
    # A body with named parameters: a schema needs names, and *args has none.
    exec(f"def body({parameters}): return fused({arguments})", scope)  # noqa: S102
    body = scope["body"]
    wrapped = getattr(function, "__wrapped__", function)
    body.__name__ = function.__name__
    body.__qualname__ = getattr(wrapped, "__qualname__", body.__name__)
    body.__module__ = getattr(wrapped, "__module__", __name__)
    body.__doc__ = wrapped.__doc__ if wrapped is not function else None
    host = make_function(body)
    host._paths_are_alike = not with_out  # noqa: SLF001
    return host


def _parameters_of(function: ElementwiseFunction) -> tuple[str, str, dict[str, Any]]:
    """Return a function's parameters and the arguments that pass them on, as text; and defaults."""
    parameter = inspect.Parameter
    own = (
        inspect.signature(function).parameters.values()
        if hasattr(function, "__wrapped__")
        else [parameter(name, parameter.POSITIONAL_OR_KEYWORD) for name in function._parameters]  # noqa: SLF001
    )
    defaults = {one.name: one.default for one in own if one.default is not parameter.empty}
    words: list[str] = []
    arguments: list[str] = []
    for one in own:
        if one.kind == parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        is_given = one.name in defaults
        words.append(f"{one.name}=defaults[{one.name!r}]" if is_given else one.name)
        arguments.append(f"{one.name}={one.name}" if "*" in words else one.name)
    count = sum(one.kind == parameter.POSITIONAL_ONLY for one in own)
    if count:
        words.insert(count, "/")
    return ", ".join(words), ", ".join(arguments), defaults


@dataclass(frozen=True)
class Lowered:
    """The source and the image of a fused function, for given types and layouts of its arrays.

    Attributes
    ----------
    name : str
        The kernel's name.
    source : str
        The kernel in CUDA C++.
    image : Image
        The kernel, compiled for the device of the arrays.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> lowered = ew.fuse(lambda x: x * 2).lower(x)
    >>> lowered.name
    'multiply_float32_contiguous_small'
    """

    name: str
    source: str
    image: Image


_MOST = NUMBERS["operands"]["MAX_OPERANDS"]
_WIDE, _SMALL = NUMBERS["elementwise"]["WIDE"], NUMBERS["elementwise"]["SMALL"]


def _layout(kind: str, vector: int, rank: int, flags: int, classes: bytes) -> Layout:
    return Layout(
        _KINDS[kind], vector, rank, bool(flags & _WIDE), classes.decode(), bool(flags & _SMALL)
    )


def _is_known(value: object) -> bool:
    if isinstance(value, (bool, int, float, complex, Value)):
        return True
    protocols = ("__dlpack__", "__cuda_array_interface__", "__array_interface__", "_type_")
    return any(hasattr(type(value), name) for name in protocols)


if TYPE_CHECKING:  # the extension calls methods of it
    _methods: type[ElementwiseMethods] = ElementwiseFunction
