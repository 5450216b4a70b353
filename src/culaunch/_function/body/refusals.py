"""The operations that an array in a body refuses, each with its replacement."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

from culaunch._base.places import here
from culaunch._function.body.bodies import reads_data

if TYPE_CHECKING:
    from collections.abc import Callable


class Refusals:
    """Methods that raise: arithmetic with arrays, and operations that need their data."""

    __slots__ = ()

    _root: Any
    _body: Any

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[Any, ...]: ...

    def _reads_data(self, how: str, instead: str) -> Exception:
        """Make the error for a body that reads the data of the array."""
        error = reads_data(self._label(), how, instead)
        self._body.refuse(error)
        return error

    def _refused(self, text: str) -> Exception:
        error = TypeError(f"at {here().text()}: {self._label()} {text}")
        self._body.refuse(error)
        return error

    def _label(self) -> str:
        root = self._root
        return f"argument {root.name}" if root.kind == "argument" else root.name

    def _refuse_tritons_python(self) -> None:
        """Refuse Triton's own launch, which asks any object for its address."""
        # This error is not shown: `require_no_plain_kernel` names the kernel and the replacement.
        frame = sys._getframe(2)
        for _ in range(2):
            if frame.f_globals.get("__name__") == "triton.runtime.jit":
                raise TypeError(
                    f"{self._label()} has no address: it is passed to a kernel that Triton launches"
                )
            if frame.f_back is None:
                return
            frame = frame.f_back

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"{self._root.name} has no length, because it has no dimensions")
        return int(self.shape[0])

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"at {here().text()}: attribute {name!r} of {self._label()} cannot be set: a body must "
            "not change its arguments"
        )

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise self._refused("cannot be assigned to: launch a kernel that writes to it")

    def __getattr__(self, name: str) -> Any:
        if name in _DATA:
            raise self._reads_data(
                f"is read with {name}()", "pass numbers as arguments of the function"
            )
        raise AttributeError(
            f"at {here().text()}: an array in a function's body has no attribute {name!r}: "
            f"{_INSTEAD.get(name, _HAS)}"
        )

    def __bool__(self) -> NoReturn:
        raise self._reads_data("is used as a condition", "compare shapes, or `x is None`")

    def __int__(self) -> NoReturn:
        raise self._reads_data("is converted to an int", _AS_NUMBER)

    def __float__(self) -> NoReturn:
        raise self._reads_data("is converted to a float", _AS_NUMBER)

    def __complex__(self) -> NoReturn:
        raise self._reads_data("is converted to a complex", _AS_NUMBER)

    def __index__(self) -> NoReturn:
        raise self._reads_data("is used as an int", _AS_NUMBER)

    def __array__(self, *_: object, **_keywords: object) -> NoReturn:
        raise self._reads_data("is converted to a NumPy array", "launch a kernel on it")

    def __iter__(self) -> NoReturn:
        raise self._refused(
            "cannot be iterated over: index it, as in `for i in range(x.shape[0]): row = x[i]`"
        )

    def __contains__(self, _: object) -> NoReturn:
        raise self._reads_data("is searched", "launch a kernel that searches it")

    def __eq__(self, other: object) -> bool:
        if other is not None and self is not other:
            _refuse_operator(self, "==")
        return self is other

    def __hash__(self) -> int:
        if not self._body.is_open:  # every use of it is refused elsewhere
            return object.__hash__(self)
        raise self._refused("cannot be a key: use its name or its position")

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{self._label()} cannot be pickled: it stands for an array in a function's body"
        )


def _refuse_operator(array: Refusals, sign: str) -> NoReturn:
    raise array._body.refuse(
        TypeError(
            f"at {here().text()}: {sign} is not available for {array._label()}, because a body "
            "cannot compute with arrays: launch a kernel or call a fused elementwise function"
        )
    )


def _operator(sign: str) -> Callable[[Refusals, object], NoReturn]:
    def method(self: Refusals, _: object) -> NoReturn:
        _refuse_operator(self, sign)

    return method


for _sign, _name in (
    ("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "truediv"), ("//", "floordiv"), ("%", "mod"),
    ("**", "pow"), ("@", "matmul"), ("&", "and"), ("|", "or"), ("^", "xor"), ("<<", "lshift"),
    (">>", "rshift"),
):  # fmt: skip
    setattr(Refusals, f"__{_name}__", _operator(_sign))
    setattr(Refusals, f"__r{_name}__", _operator(_sign))
    setattr(Refusals, f"__i{_name}__", _operator(f"{_sign}="))
for _sign, _name in (("<", "lt"), ("<=", "le"), (">", "gt"), (">=", "ge")):
    setattr(Refusals, f"__{_name}__", _operator(_sign))


_AS_NUMBER = "pass the number as an argument of the function, or let a kernel read it"
_DATA = frozenset(("item", "tolist", "numpy", "cpu", "get", "any", "all", "max", "min", "sum"))
_HAS = (
    "it has shape, ndim, size, dtype, device, strides, itemsize, nbytes, is_contiguous(), "
    "is_aligned(bytes), data_ptr(), indexing, reshape(), permute(), transpose(), swapaxes(), T, mT"
)
_INSTEAD = {
    "numel": "use x.size",
    "dim": "use x.ndim",
    "stride": "use x.strides, in elements",
    "element_size": "use x.itemsize",
    "is_cuda": "use x.device",
    "data": "use x.data_ptr()",
    "contiguous": "check x.is_contiguous(), or launch a kernel that copies",
    "to": "convert before the call, or launch a kernel that converts",
    "astype": "convert before the call, or launch a kernel that converts",
    "clone": "allocate with cl.empty_like(x) and launch a kernel that copies",
    "copy": "allocate with cl.empty_like(x) and launch a kernel that copies",
    "fill_": "allocate with cl.zeros_like(x), or launch a kernel that fills",
    "zero_": "allocate with cl.zeros_like(x), or launch a kernel that fills",
    "new_empty": "use cl.empty(shape, dtype)",
    "new_zeros": "use cl.zeros(shape, dtype)",
    "squeeze": "use x.reshape(...) or x[0]",
    "unsqueeze": "use x[None]",
}
