"""Unregistered functions in compiled regions: each registers itself for its calls."""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
from typing import TYPE_CHECKING, Any

from culaunch._base.fork_lock import ForkLock
from culaunch._base.untraced import untraced
from culaunch._function.tracing.kinds import key_of
from culaunch._launch.arrays.array import ArrayInfo
from culaunch._launch.formats.dtype import find_dtype
from culaunch._torch.findings import find
from culaunch._torch.operator import TorchOperator, mutates_of
from culaunch._torch.package import torch_package
from culaunch._torch.registration import as_function, register
from culaunch._torch.results import is_plain, rebuilder
from culaunch._torch.schema import MISSING, Parameter, parameters_of, schema_text

if TYPE_CHECKING:
    import types
    from collections.abc import Generator

    from culaunch._function import Function
    from culaunch._function.tracing.kinds import Entry, Kind

_NAMESPACE = "culaunch"
_lock = ForkLock()


class _Operators:
    """The operators of a function, for each kind of arguments: it lives as long as they do."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.function = as_function(target)
        self.of_kind: dict[Any, TorchOperator] = {}


# By the address of a function, which its entry keeps alive, so no other function can have it.
_known: dict[int, _Operators] = {}
_names: set[str] = set()


@untraced
def operator_for(target: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> TorchOperator:
    """Return the operator for a call of a function and its kind of arguments.

    Parameters
    ----------
    target : Function or fused function
    args, keywords
        The arguments of the call: tensors, which may be fake, and numbers, which may be symbolic.

    Raises
    ------
    TypeError, ValueError
        If it does not accept the call, or cannot be an operator.
    """
    with _lock:
        # The lock is reentrant, because the body may be traced here, and functions that it calls
        # may need their own operators.
        known = _known.get(id(target)) or _Operators(target)
        function = known.function
        values = function._bind(args, keywords)
        names = function.declaration.names
        kind = tuple(
            _entry(f"{function.__name__}: argument {name}", value)
            for name, value in zip(names, values, strict=True)
        )
        key = key_of(kind)
        # A function is kept only once it has an operator: a call that is refused leaves nothing.
        if key not in known.of_kind:
            known.of_kind[key] = _make_operator(function, kind, key, values)
            _known[id(target)] = known
        return known.of_kind[key]


def call_refused(
    function: Function[..., Any], values: tuple[Any, ...], error: TypeError | None
) -> Any:
    """Call a function's operator if a tensor has no memory of its own, else raise the error.

    Without an error, torch asks to see each operation of this thread. NotImplemented is returned if
    the function is not an operator, or if an operator already calls it.
    """
    if error is not None and not any(map(_is_traced, values)):
        raise error
    if error is None and _seen.is_inside:
        return NotImplemented
    # The operator's schema has the function's own parameters, so it is called in the same way:
    # arguments by name are by name here, too.
    args, keywords = function.declaration.as_passed(values)
    try:
        with _untraced_by_script():
            operator = operator_for(function, args, keywords)
    except Warning:  # which a filter makes an error
        raise
    except Exception as reason:  # noqa: BLE001 - whatever it is
        if error is None:
            return NotImplemented
        raise TypeError(f"{error}; and it is not a torch operator: {reason}") from None
    before, _seen.is_inside = _seen.is_inside, error is None
    try:
        result = operator(*args, **keywords)
    finally:
        _seen.is_inside = before
    return result if operator.rebuild is None else operator.rebuild(result, *values)


@contextlib.contextmanager
def _untraced_by_script() -> Generator[None, None, None]:
    """Keep queries of tensors out of the graph that torch.jit.trace makes."""
    script = torch_package()._C
    state = script._get_tracing_state()
    script._set_tracing_state(None)
    try:
        yield
    finally:
        script._set_tracing_state(state)


class _Seen(threading.local):
    """Whether this thread is in a call that torch sees: what that calls is called as it is."""

    is_inside = False


_seen = _Seen()


def _is_traced(value: Any) -> bool:
    """Tell whether a tensor represents others: torch computes shapes with it, or transforms it."""
    torch = torch_package()
    if isinstance(value, (list, tuple)):
        return any(map(_is_traced, value))
    if not isinstance(value, torch.Tensor):
        return False
    fakes = torch._subclasses
    return (
        value.is_meta
        or isinstance(value, (fakes.FakeTensor, fakes.functional_tensor.FunctionalTensor))
        or torch._C._functorch.is_functorch_wrapped_tensor(value)
    )


def _make_operator(
    function: Function[..., Any], kind: Kind, key: Any, values: tuple[Any, ...]
) -> TorchOperator:
    parameters = _parameters(function, kind)
    findings = find(function, parameters, (kind, tuple(map(_described, values))))
    mutates = mutates_of(function, findings)
    outputs = findings.outputs or ()
    if mutates and any(one != "Tensor" for one in outputs):
        raise TypeError(
            f"{function.__name__} writes {', '.join(mutates)} and returns numbers, but torch "
            "compiles no operator that does both: return arrays or None"
        )
    text = schema_text(parameters, mutates, tuple(one for one in outputs if one is not None))
    name = _free_name(function, f"{text} {key}")
    operator = TorchOperator(name, function, parameters, mutates, outputs, findings.template, text)
    operator.kind = key
    if not is_plain(operator.template):
        operator.rebuild = rebuilder(operator.template, len(outputs))
    register(operator)
    function._doors.append(operator)
    return operator


def _entry(what: str, value: Any) -> Entry:
    """Return the entry of a kind for an argument."""
    torch = torch_package()
    if isinstance(value, torch.Tensor):
        dtype = find_dtype(value.dtype)
        if dtype is None:
            raise TypeError(
                f"{what} has the element type {value.dtype}, which kernels do not support"
            )
        return ("array", dtype.number, value.dim(), False)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, torch.SymInt)):
        return int
    if isinstance(value, (float, torch.SymFloat)):
        return float
    if isinstance(value, (list, tuple)) and value:
        if all(isinstance(one, torch.Tensor) for one in value):
            return ("list", tuple(_entry(what, one) for one in value))
    elif isinstance(value, str) or find_dtype(value) is not None:
        return ("value", value)
    raise TypeError(
        f"{what} is {value!r}. A torch operator accepts tensors, lists of tensors, int, float, "
        "bool, str, dtypes and None. Call the function outside the compiled region, or write a "
        "function of only the other arguments for this value"
    )


def _described(value: Any) -> Any:
    """Return an argument as it is traced without a call: no array is there."""
    torch = torch_package()
    if isinstance(value, torch.Tensor):
        shape, strides = (tuple(map(_size, sizes)) for sizes in (value.shape, value.stride()))
        # The address and the element type do not matter: the kind has the type already.
        return ArrayInfo(0, shape, strides, 2, 32, (2, 0))
    if isinstance(value, (list, tuple)):
        return tuple(map(_described, value))
    return _size(value) if isinstance(value, (torch.SymInt, torch.SymFloat)) else value


def _size(value: Any) -> Any:
    """Return the value of a symbol in this call, or a likely size if nothing is known yet."""
    node = getattr(value, "node", None)
    if node is None:
        return value
    # Any size takes some path. A size of thousands takes the path of most calls, and not the path
    # of empty arrays.
    return node.hint if node.has_hint() else 4096


def _parameters(function: Function[..., Any], kind: Kind) -> tuple[Parameter, ...]:
    """Return the parameters. The call determines the types that the declaration leaves open."""
    declaration = function.declaration
    known = {
        name: _parameter(name, entry, declaration.defaults.get(name, MISSING))
        for name, entry in zip(declaration.names, kind, strict=True)
    }
    return parameters_of(declaration, known)


def _parameter(name: str, entry: Entry, default: Any) -> Parameter:
    kinds: dict[Any, str] = {None: "Tensor", int: "SymInt", float: "float", True: "bool"}
    kinds[False] = "bool"
    if type(entry) is not tuple:
        kind = kinds[entry]
    elif entry[0] == "value":
        kind = "str" if isinstance(entry[1], str) else "ScalarType"
    else:
        kind = "Tensor" if entry[0] == "array" else "Tensor[]"
    return Parameter(name, kind, entry is None, default, False, None)


def _free_name(function: Function[..., Any], text: str) -> str:
    """Return a name that is the same in the next process, for compilers' caches on disk."""
    body: Any = getattr(function, "__wrapped__", None)
    code = getattr(body, "__code__", None)
    names = (function.__module__ or "", str(getattr(function, "__qualname__", "")))
    words = [*names, text]
    words += [] if code is None else _code_words(code)
    digest = hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]
    stem = re.sub(r"\W+", "_", "_".join(names), flags=re.ASCII).strip("_")
    # torch's caches on disk know an operator by its name: the name must change with the code, or a
    # graph that was compiled with another body would be taken.
    name = f"{_NAMESPACE}::{stem}_{digest}"
    number = 1
    # Functions that a loop makes have the same name and text, but are different functions.
    while name in _names:
        number += 1
        name = f"{_NAMESPACE}::{stem}_{digest}_{number}"
    _names.add(name)
    return name


def _code_words(code: types.CodeType) -> list[str]:
    words = [code.co_code.hex(), *code.co_names, *code.co_varnames, *code.co_freevars]
    for one in code.co_consts:
        if hasattr(one, "co_code"):
            words += _code_words(one)
        else:
            # The order of a frozenset depends on hashes, which differ in the next process.
            words.append(repr(sorted(map(repr, one)) if isinstance(one, frozenset) else one))
    return words
