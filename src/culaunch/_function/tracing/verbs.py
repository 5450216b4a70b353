"""The functions for bodies: checks, allocations, arithmetic. They also work outside of bodies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from culaunch._base.places import here
from culaunch._base.values import spell
from culaunch._function.arrays.array import StandIn
from culaunch._function.body.bodies import checked_message, current
from culaunch._function.programs.opcodes import COMPUTE, EXCEPTIONS
from culaunch._function.programs.record import escaped
from culaunch._function.symbolic import instructions
from culaunch._function.symbolic.symbols import hint_of, is_negative, is_symbolic, record_of
from culaunch._launch import empty as device_empty
from culaunch._launch import zeros as device_zeros
from culaunch._launch.arrays.allocate import _numpy_dtype as numpy_dtype
from culaunch._launch.arrays.allocate import allocate_like
from culaunch._launch.arrays.array import array_info
from culaunch._launch.arrays.copies import fill_bytes
from culaunch._launch.devices.stream_handle import stream_or_current
from culaunch._launch.formats.dtype import BY_NAME, as_dtype, find_dtype, from_dlpack
from culaunch._launch.formats.numpy_dtypes import checked_shape
from culaunch._launch.launches.compiled_regions import number_in_regions

if TYPE_CHECKING:
    from culaunch._function.body.bodies import Body
    from culaunch._launch import DeviceArray

T = TypeVar("T")


def check(condition: Any, message: str, exception: type[Exception] = ValueError) -> None:
    """Raise unless a condition holds.

    In the body of a function a call that fails it raises before anything was launched, and a
    message that shows numbers, as ``f"n must be even (got {n})"``, shows those of that call.

    Parameters
    ----------
    condition : bool
        Conditions of a body are joined with ``&`` if both shall be checked on one path.
    message : str
        What is wrong.
    exception : type, optional
        ValueError, TypeError, AssertionError, OverflowError, ZeroDivisionError, IndexError,
        RuntimeError or NotImplementedError.

    Raises
    ------
    ValueError
        Or the exception that was asked for.
    TypeError
        If `message` or `exception` has another type.

    Examples
    --------
    >>> cl.check(x.ndim == 1, "x must have one dimension")
    >>> cl.check(x.ndim == 2, "x must have two dimensions")
    Traceback (most recent call last):
        ...
    ValueError: x must have two dimensions
    """
    checked_message(message)
    if exception not in EXCEPTIONS:
        known = ", ".join(kind.__name__ for kind in EXCEPTIONS)
        raise TypeError(f"exception must be one of {known} (got {spell(exception)})")
    body = current()
    if body is None:
        if not condition:
            raise exception(message)
        return
    # An array has no truth value, so this raises the error.
    if isinstance(condition, StandIn):
        bool(condition)
    place = here()
    body.check(condition, f"{message} ({body.name}, at {place})", exception)


# An array like another belongs to its framework, and a device is not allowed in a body. Otherwise
# the type depends on the place: in a body the array belongs to the framework of the call.
@overload
def empty(
    shape: Any = None,
    dtype: Any = None,
    *,
    device: int | None = None,
    stream: object = None,
    like: T,
) -> T: ...
@overload
def empty(
    shape: Any = None, dtype: Any = None, *, device: int, stream: object = None
) -> DeviceArray: ...
@overload
def empty(shape: Any = None, dtype: Any = None, *, stream: object = None) -> Any: ...
def empty(
    shape: Any = None,
    dtype: Any = None,
    *,
    device: int | None = None,
    stream: object = None,
    like: Any = None,
) -> Any:
    """Allocate an uninitialized array.

    In the body of a function, the framework of the call's arrays allocates it, on their device and
    in stream order. Arrays that the body does not return are freed in stream order, too. Outside of
    a body, the result is a :class:`DeviceArray`.

    Parameters
    ----------
    shape : int or tuple[int, ...], optional
        In elements. May be omitted if ``like`` has a shape.
    dtype : dtype, optional
        A name, a type of a framework, or ``x.dtype``. The default is the element type of ``like``,
        or else float32.
    device : int, optional
        The device's ordinal; the current one by default. Not allowed in a body.
    stream : int or object, optional
        A stream to allocate in. Memory that was freed in this stream is reused without waiting.
        Order kernels and copies in other streams after it. Not allowed in a body.
    like : array, optional
        An array that supplies the shape, the element type and the device if they are not given.

    Returns
    -------
    array
        A :class:`DeviceArray`, or in a body a stand-in for the framework's array.

    Raises
    ------
    TypeError, ValueError, OverflowError
        If the shape, the dtype or the device is invalid. A dtype must have the machine's byte
        order.
    DriverError
        If the device does not have enough memory.

    Examples
    --------
    >>> a = cl.empty((2, 3), "float16")
    >>> a.shape, a.dtype.name
    ((2, 3), 'float16')
    >>> cl.empty(like=a, dtype="int32").shape
    (2, 3)
    """
    body = current()
    if body is None:
        return device_empty(shape, _of_numpy(dtype), device=device, stream=stream, like=like)
    return _in_body(body, "empty", shape, dtype, like, 0, device=device, stream=stream)


@overload
def zeros(
    shape: Any = None,
    dtype: Any = None,
    *,
    device: int | None = None,
    stream: object = None,
    like: T,
) -> T: ...
@overload
def zeros(
    shape: Any = None, dtype: Any = None, *, device: int, stream: object = None
) -> DeviceArray: ...
@overload
def zeros(shape: Any = None, dtype: Any = None, *, stream: object = None) -> Any: ...
def zeros(
    shape: Any = None,
    dtype: Any = None,
    *,
    device: int | None = None,
    stream: object = None,
    like: Any = None,
) -> Any:
    """Allocate an array of zeros, set in the stream; :func:`empty` has the parameters.

    Parameters
    ----------
    shape, dtype, device, stream, like
        As for :func:`empty`.

    Returns
    -------
    array
        As for :func:`empty`.

    Examples
    --------
    >>> cl.zeros(3, "int32").numpy()
    array([0, 0, 0], dtype=int32)
    """
    body = current()
    if body is None:
        return device_zeros(shape, _of_numpy(dtype), device=device, stream=stream, like=like)
    return _in_body(body, "zeros", shape, dtype, like, 1, device=device, stream=stream)


def empty_like(x: T, dtype: Any = None, shape: Any = None) -> T:
    """Allocate an uninitialized array with the framework of another array.

    Parameters
    ----------
    x : array
        The array that supplies the framework and the device. It also supplies the shape and the
        element type if they are not given.
    dtype : dtype, optional
        Another element type.
    shape : int or tuple[int, ...], optional
        Another shape.

    Returns
    -------
    array
        An array of the same framework.

    Examples
    --------
    >>> cl.empty_like(x, "float16").dtype.name
    'float16'
    >>> type(cl.empty_like(np.ones(3)))
    <class 'numpy.ndarray'>
    """
    return cast("T", _like("empty_like", x, dtype, shape, 0))


def zeros_like(x: T, dtype: Any = None, shape: Any = None) -> T:
    """Allocate an array of zeros like another; :func:`empty_like` has the parameters.

    Parameters
    ----------
    x, dtype, shape
        As for :func:`empty_like`.

    Returns
    -------
    array
        An array of the same framework.

    Examples
    --------
    >>> cl.zeros_like(x).numpy()[:3]
    array([0., 0., 0.], dtype=float32)
    """
    return cast("T", _like("zeros_like", x, dtype, shape, 1))


def ceildiv(x: Any, y: Any) -> Any:
    """Return ``x / y`` of ints, rounded up: the blocks that cover x elements, y in each.

    Parameters
    ----------
    x, y : int
        Ints of a call or of Python.

    Returns
    -------
    int
        The quotient, rounded up.

    Raises
    ------
    TypeError
        If they are not ints.
    ZeroDivisionError
        If y is 0.

    Examples
    --------
    >>> cl.ceildiv(1000, 256)
    4
    """
    return instructions.ceildiv(_int("ceildiv", x), _int("ceildiv", y))


def next_power_of_2(x: Any) -> Any:
    """Return the least power of 2 that is not less than an int; 1 for ints below 1.

    Parameters
    ----------
    x : int
        An int of a call or of Python.

    Returns
    -------
    int
        The power of 2.

    Raises
    ------
    TypeError
        If it is not an int.

    Examples
    --------
    >>> [cl.next_power_of_2(n) for n in (0, 5, 8)]
    [1, 8, 8]
    """
    return instructions.next_power_of_2(_int("next_power_of_2", x))


def _int(function: str, value: Any) -> Any:
    """Return an int of a call, of a framework, or of Python."""
    if isinstance(value, float) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{function} takes only ints (got {spell(hint_of(value))})")
    return value


def _like(what: str, x: Any, dtype: Any, shape: Any, fill: int) -> Any:
    body = current()
    if body is not None and isinstance(x, StandIn):
        return _in_body(body, what, shape, dtype, x, fill)
    if isinstance(x, StandIn):
        escaped()
    info = array_info(x)
    kind = from_dlpack(info.code, info.bits) if dtype is None else as_dtype(dtype)
    if kind is None:
        raise TypeError(
            f"x has an element type that culaunch does not allocate (DLPack type {info.code}, "
            f"{info.bits} bits): give dtype="
        )
    sizes = info.shape if shape is None else checked_shape(shape)
    made = allocate_like(x, sizes, tuple(range(len(sizes))), kind.name, info.device[1])
    if fill:
        fill_zeros(made)
    return made


def _in_body(
    body: Body, what: str, shape: Any, dtype: Any, like: Any, fill: int, **outside: Any
) -> StandIn:
    for name, value in outside.items():
        if value is not None:
            raise TypeError(
                f"at {here().text()}: {what} does not accept {name}= in the body of a function, "
                "where it allocates on the device of the call's arrays, in their stream"
            )
    if like is not None and not isinstance(like, StandIn):
        raise TypeError(
            f"at {here().text()}: like must be an array of the call (got {spell(like)})"
        )
    if shape is None:
        if like is None:
            raise TypeError(f"at {here().text()}: {what}: shape is missing")
        shape = like.shape
    sizes = _sizes(shape)
    if dtype is None:
        kind = BY_NAME["float32"] if like is None else like.dtype
    else:
        kind = as_dtype(dtype)
    for size in sizes:
        # The program checks a symbolic size when it allocates. This check reports it for this call,
        # with the line.
        if is_symbolic(size) and isinstance(size, int) and not isinstance(size, bool):
            record = record_of(size)
            is_bad = False
            if record.branches(fails=is_negative(size)) and not size >= 0:
                with record.tokens():
                    text = (
                        f"at {here().text()}: {what}: shape must not have negative sizes (got "
                        f"{size})"
                    )
                raise record.error(ValueError, text)
        elif hasattr(size, "node"):  # a framework's
            is_bad = False
        elif isinstance(size, (bool, float)) or not hasattr(type(size), "__index__"):
            raise TypeError(
                f"at {here().text()}: {what}: shape must be an int or a tuple of ints (got "
                f"{spell(size)} in the tuple)"
            )
        else:
            is_bad = size < 0
        if is_bad:
            raise ValueError(
                f"at {here().text()}: {what}: shape must not have negative sizes (got "
                f"{hint_of(size)})"
            )
    return body.allocate(sizes, kind, fill)  # type: ignore[no-any-return]


def _sizes(shape: Any) -> tuple[Any, ...]:
    if isinstance(shape, (str, bytes, StandIn)):
        raise TypeError(f"shape must be an int or a tuple of ints (got {spell(shape)})")
    return tuple(shape) if isinstance(shape, Iterable) else (shape,)


def _of_numpy(dtype: Any) -> Any:
    """Return a framework's or culaunch's dtype as NumPy's. NumPy decides about anything else."""
    if isinstance(dtype, str) or type(dtype).__module__.partition(".")[0] in ("numpy", "builtins"):
        return dtype
    found = find_dtype(dtype)
    return dtype if found is None else numpy_dtype(found.name)


def allocate_as(like: Any, shape: tuple[int, ...], dtype: str, ordinal: int, fill: int) -> Any:
    """Allocate with the framework of an array; for None, with culaunch."""
    if like is None:
        made = device_empty(shape, numpy_dtype(dtype), device=ordinal)
    else:
        made = allocate_like(like, shape, tuple(range(len(shape))), dtype, ordinal)
    if fill:
        fill_zeros(made)
    return made


def fill_zeros(array: Any) -> None:
    """Set every byte of an array that was just allocated to zero."""
    root = type(array).__module__.partition(".")[0]
    if root == "torch":
        array.zero_()
    elif root in ("numpy", "cupy"):
        array[...] = 0
    elif array.nbytes:
        fill_bytes(array, b"\0", stream_or_current(None, array.device))


number_in_regions(ceildiv, COMPUTE["CEILDIV"])
number_in_regions(next_power_of_2, COMPUTE["NEXT_POW2"])
