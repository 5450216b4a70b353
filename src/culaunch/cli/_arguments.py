"""The arguments of a kernel, as words of a shell."""

from __future__ import annotations

import contextlib
import io
import os
import re
from typing import Any

import click

import culaunch as cl
from culaunch._base.outputs import write_output

_MADE = re.compile(r"(?:(\w+):)?([A-Za-z]\w*)(?:\[([\d,x ]*)\])?=(.+)")
_PLAIN = re.compile(r"[+-]?(?:\d+|0[xX][0-9a-fA-F]+)")
_WORDS = {"true": True, "false": False, "null": None}
_FILLS = "zeros, ones, arange, random or a number"
_SHOWN = 6


class Argument:
    """One argument: a number, or an array from a file or a fill.

    Attributes
    ----------
    name : str
    is_array : bool
    result : numpy.ndarray
        The contents of the array after the launch.
    """

    result: Any

    def __init__(self, name: str, value: Any, *, is_array: bool) -> None:
        self.name = name
        self.is_array = is_array
        self._value = value

    def value(self, device: int) -> Any:
        """Return the value for the launcher."""
        return cl.to_device(self._value, device) if self.is_array else self._value

    def summary(self) -> str:
        """Return a line with its type and its first elements."""
        flat = self.result.reshape(-1)
        shown = " ".join(f"{one!s}" for one in flat[:_SHOWN].tolist())
        more = " ..." if flat.size > _SHOWN else ""
        shape = ",".join(map(str, self.result.shape))
        return f"{self.name}: {self.result.dtype}[{shape}]  {shown}{more}"

    def save(self, path: str) -> None:
        """Write the array to a .npy file."""
        content = io.BytesIO()
        _numpy().save(content, self.result)
        write_output(path, content.getvalue())

    def compare(self, path: str) -> bool:
        """Compare with a .npy file; print how it went, and tell whether it is the same."""
        try:
            cl.testing.assert_allclose(self.result, _load(path))
        except AssertionError as error:
            click.echo(f"{self.name} does not match {path}: {str(error).strip()}", err=True)
            return False
        click.echo(f"{self.name} matches {path}")
        return True


def parse_argument(text: str, index: int, seed: int) -> Argument:
    """Read an argument in one of the forms that the command's help describes.

    Raises
    ------
    click.BadParameter
        If it has none of these forms.
    """
    name = f"arg{index}"
    if text.endswith(".npy"):
        given, equals, path = text.rpartition("=")
        stem = os.path.splitext(os.path.basename(path))[0]
        name, value = given if equals else stem, _load(path)
        if not value.shape:  # a scalar, as Python's kernels take it
            return Argument(name, value[()], is_array=False)
        return Argument(name, value, is_array=True)
    if _PLAIN.fullmatch(text):
        return Argument(name, int(text, 16 if "x" in text.lower() else 10), is_array=False)
    if text in _WORDS:
        return Argument(name, _WORDS[text], is_array=False)
    with contextlib.suppress(ValueError):
        return Argument(name, float(text), is_array=False)
    match = _MADE.fullmatch(text)
    if match is None:
        raise _refusal(
            text,
            "a number, a .npy file, NAME:DTYPE=NUMBER or NAME:DTYPE[SHAPE]=FILL, as in "
            f"out:float32[1000]=zeros, where FILL is {_FILLS}",
        )
    given_name, kind_name, shape, fill = match.groups()
    dtype = _dtype(text, kind_name)
    if shape is None:
        return Argument(given_name or name, _number(text, dtype, fill), is_array=False)
    sizes = tuple(int(size) for size in re.split(r"[,x ]+", shape) if size)
    try:
        # Each random array has a seed of its own, and the same one in the next run.
        made = _new_array(text, dtype, sizes, fill, seed + index)
    except (MemoryError, OverflowError, ValueError):
        raise _refusal(text, "an array that fits into memory") from None
    return Argument(given_name or name, made, is_array=True)


def _new_array(text: str, dtype: Any, shape: tuple[int, ...], fill: str, seed: int) -> Any:
    np = _numpy()
    if fill == "arange":
        return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    if fill == "random":
        numbers = np.random.default_rng(seed)
        if dtype.kind in "fc":
            return numbers.random(shape).astype(dtype)
        return numbers.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
    value = {"zeros": 0, "ones": 1}.get(fill)
    return np.full(shape, _number(text, dtype, fill) if value is None else value, dtype)


def _number(text: str, dtype: Any, word: str) -> Any:
    np = _numpy()
    try:
        if dtype.kind in "iu":
            value = int(word, 0)
            limits = np.iinfo(dtype)
            if not limits.min <= value <= limits.max:
                raise _refusal(text, f"a number that fits {dtype}")
            return dtype.type(value)
        return dtype.type(complex(word) if dtype.kind == "c" else float(word))
    except ValueError:
        raise _refusal(text, f"{_FILLS} after the =") from None


def _dtype(text: str, name: str) -> Any:
    if name == "bfloat16":
        # NumPy has this type only where this package has registered it.
        import ml_dtypes

        return _numpy().dtype(ml_dtypes.bfloat16)
    try:
        found = _numpy().dtype(name)
    except TypeError:
        found = None
    if found is None or found.kind not in "biufc":
        raise _refusal(text, f"a type of numbers, such as float32 or int64, not {name!r}")
    return found


def _load(path: str) -> Any:
    try:
        # A pickle could run arbitrary code.
        return _numpy().load(path, allow_pickle=False)
    except ValueError as error:
        raise click.UsageError(f"{path} is not an .npy file: {error}") from None


def _refusal(text: str, wanted: str) -> click.BadParameter:
    return click.BadParameter(f"must be {wanted} (got {text!r})", param_hint="--arg")


def _numpy() -> Any:
    try:
        import numpy as np
    except ImportError:
        raise click.ClickException("run needs numpy: python -m pip install numpy") from None
    return np
