"""The arguments of a Triton kernel in a body, in Triton's terms, with guards for their types."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._launch.arrays.array import array_info
from culaunch._triton.bodies.numbers import pinned, plain
from culaunch._triton.calls.messages import raise_binding
from culaunch._triton.calls.object_kinds import (
    DESCRIPTORS,
    TensorStandIn,
    describe_constant,
    type_in_language,
    type_name,
)

if TYPE_CHECKING:
    from culaunch._launch.launches.recording import RecordingBody
    from culaunch._triton.calls.dispatcher import Dispatcher
    from culaunch._triton.calls.parameters import TritonParameter

_LEAST, _MOST = -(1 << 31), (1 << 31) - 1
_INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
_FLOATS = ("fp16", "fp32", "fp64")


class BodyArguments:
    """One call's arguments.

    Attributes
    ----------
    values : dict
        By name, as in the body. A grid function receives these.
    description : list of (type, key)
        One for each parameter, as the native half describes a call.
    leaves : list
        The run-time arguments, with tuples flattened.
    types : list of str
        Of the leaves.
    options : dict
    compiled : dict
        By name, the stand-in that Triton's compiler gets for the argument.
    """

    def __init__(
        self,
        body: RecordingBody,
        dispatcher: Dispatcher,
        bound: dict[str, Any],
        options: dict[str, Any],
    ) -> None:
        self.body = body
        self.dispatcher = dispatcher
        self.values: dict[str, Any] = {}
        self.options = {name: pinned(body, value) for name, value in options.items()}
        self.description: list[tuple[Any, Any]] = []
        self.leaves: list[Any] = []
        self.types: list[str] = []
        self.compiled: dict[str, Any] = {}
        for parameter in dispatcher.own_parameters:
            name = parameter.name
            if name in bound:
                value = bound[name]
            elif parameter.has_default:
                value = parameter.default
            elif parameter.is_optional and parameter.is_constexpr:
                self.description.append(("constexpr", None))
                continue
            else:
                raise_binding(dispatcher, "missing", name, 0)
            self._add(parameter, value)

    def _add(self, parameter: TritonParameter, value: Any) -> None:
        if parameter.is_constexpr:
            value = pinned(self.body, value)
            self.values[parameter.name] = self.compiled[parameter.name] = value
            self.description.append(("constexpr", value))
            return
        self.values[parameter.name] = value
        kind, key, seen = self._describe(parameter, value, parameter.specialize, parameter.align)
        self.description.append((kind, key))
        self.compiled[parameter.name] = seen

    # ---- one argument: its type, its key, and its stand-in for the compiler

    def _describe(
        self, parameter: TritonParameter, value: Any, specialize: bool, align: bool
    ) -> tuple[Any, Any, Any]:
        if isinstance(value, tuple):
            return self._tuple(parameter, value)
        kind, key, seen = self._natural(parameter, value, specialize, align)
        if parameter.annotation:
            kind, key = self._forced(parameter, value, kind, key)
        self.leaves.append(value)
        self.types.append(kind)
        return kind, key, seen

    def _natural(
        self, parameter: TritonParameter, value: Any, specialize: bool, align: bool
    ) -> tuple[str, Any, Any]:
        what = self.body.what(value)
        if value is None:
            return "constexpr", None, None
        if what == "array":
            is_aligned = bool(value.is_aligned(16)) if specialize and align else False
            return self._tensor(parameter, value.dtype.name, is_aligned, specialize)
        if what == "bool":
            return "u1", None, True
        if what == "int":
            return self._int(value, specialize, align)
        if what == "float":
            return "fp32", None, float(plain(self.body, value))
        if hasattr(type(value), "__dlpack__"):  # a real array that the body closes over
            info = array_info(value)
            is_aligned = info.address % 16 == 0 and specialize and align
            return self._tensor(parameter, str(value.dtype), is_aligned, specialize)
        names = {(base.__module__, base.__name__) for base in type(value).__mro__}
        if ("triton.language.core", "constexpr") in names or any(
            module == "triton.runtime.jit" for module, _ in names
        ):
            kind, key = describe_constant(value)
            return kind, key, value
        if names & DESCRIPTORS:
            return self._descriptor(parameter, value)
        raise self._refused(parameter, value)

    def _int(self, value: Any, specialize: bool, align: bool) -> tuple[str, Any, Any]:
        # Each comparison with a number of the body, here and below, is a guard. A call with another
        # result is recorded again.
        if specialize and value == 1:
            return "constexpr", 1, 1
        kind = "i32" if (value >= _LEAST) & (value <= _MOST) else "i64"  # one guard
        key = None
        if specialize:
            key = "D" if align and value % 16 == 0 else ""
        return kind, key, plain(self.body, value)

    def _tensor(
        self, parameter: TritonParameter, dtype: str, is_aligned: bool, specialize: bool
    ) -> tuple[str, Any, Any]:
        name = type_name(dtype)
        key = None if not specialize else "D" if is_aligned else ""
        seen = None
        if self.dispatcher.compiles:
            seen = TensorStandIn(type_in_language(name), divisible=is_aligned)
        return ("*k" if parameter.is_const else "*") + name, key, seen

    def _descriptor(self, parameter: TritonParameter, value: Any) -> tuple[str, Any, Any]:
        base = value.base
        if self.body.what(base) != "array" or getattr(value, "round_f32_to_tf32", False):
            raise self._refused(parameter, value)
        _, _, seen = self._tensor(parameter, base.dtype.name, True, True)
        # The compiler uses only the descriptor's sizes and types. It gets a stand-in for an array
        # that does not exist while the body is recorded.
        shown = copy.copy(value)
        shown.base = seen
        shown.shape, shown.strides = (
            [plain(self.body, size) for size in sizes] for sizes in (value.shape, value.strides)
        )
        shown.block_shape = block = [pinned(self.body, size) for size in value.block_shape]
        sizes = ", ".join(map(str, block))
        return f"tensordesc<{type_name(base.dtype.name)}[{sizes}]>", None, shown

    def _forced(
        self, parameter: TritonParameter, value: Any, kind: str, key: Any
    ) -> tuple[str, Any]:
        wanted = parameter.annotation
        if wanted.startswith("*"):
            if value is not None and not kind.startswith("*"):
                raise self._refused(parameter, value)
        # Triton specializes only integers. A number that is declared a float has no key, even if
        # the call passes an int.
        elif wanted in _FLOATS or wanted in ("u1", "i1"):
            if self.body.what(value) not in ("int", "float", "bool"):
                raise self._refused(parameter, value)
            key = None
        elif wanted in _INTEGERS:
            if self.body.what(value) not in ("int", "bool"):
                raise self._refused(parameter, value)
        else:
            raise TypeError(
                f"argument {parameter.name!r} of {self.dispatcher.name}() is declared {wanted}, "
                "which a function cannot pass: declare it fp32, or launch the kernel outside the "
                "function"
            )
        return wanted, key

    def _tuple(self, parameter: TritonParameter, value: tuple[Any, ...]) -> tuple[Any, Any, Any]:
        """Describe a tuple. Its items are always specialized, regardless of the parameter."""
        made = [self._describe(_ITEM, item, True, True) for item in value]
        del parameter
        kinds, keys, seen = (tuple(one[i] for one in made) for i in range(3))
        if hasattr(value, "_fields"):
            like = type(value)
            return like(*kinds), like(*keys), like(*seen)
        return kinds, keys, seen

    def _refused(self, parameter: TritonParameter, value: Any) -> TypeError:
        return TypeError(
            f"argument {parameter.name!r} of {self.dispatcher.name}() must be an array, a number, "
            "a tensor descriptor of arrays, a tuple of these, or None in the body of a function "
            f"(got {spell(value)})"
        )


def _item() -> TritonParameter:
    from culaunch._triton.calls.parameters import TritonParameter

    return TritonParameter("")


_ITEM = _item()
