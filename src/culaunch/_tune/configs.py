"""Configurations and keys: their rules and their digests."""

from __future__ import annotations

import hashlib
import json
import math
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_list
from culaunch._base.values import spell
from culaunch._launch import Kernel
from culaunch._launch.formats.dtype import find_dtype
from culaunch._triton.kernel_set import KernelSet

if TYPE_CHECKING:
    from collections.abc import Sequence

Config = dict[str, Any]


def checked_configs(target: Any, configs: Sequence[Mapping[str, Any]] | None) -> list[Config]:
    """Return the configurations, or the configurations of a set's variants."""
    if configs is None:
        if not isinstance(target, KernelSet):
            raise TypeError("configs must be a sequence of dicts, one for each trial")
        configs = target.configs
    found: list[Config] = []
    for i, config in enumerate(checked_list("configs", configs, "dicts, one for each trial")):
        if not isinstance(config, Mapping) or not all(isinstance(name, str) for name in config):
            raise TypeError(f"configs[{i}] must be a dict with str keys (got {spell(config)})")
        check_kept(f"configs[{i}]", dict(config))
        if isinstance(target, Kernel) and not {"grid", "block"} <= config.keys():
            raise TypeError(
                f"configs[{i}] must have grid and block, as kernel.configure() takes them (got "
                f"{spell(dict(config))})"
            )
        if any(_alike(dict(config), one) for one in found):
            raise ValueError(f"configs[{i}] must not appear twice (got {spell(dict(config))})")
        found.append(dict(config))
    if not found:
        raise ValueError("configs must have at least one configuration (got none)")
    return found


def checked_key(key: Sequence[Any]) -> tuple[Any, ...]:
    """Return a key whose values can be kept and compared."""
    values = []
    for i, given in enumerate(key):
        value = given
        if type(value) not in (bool, int, float, str, type(None)):
            value = _plain(given)
        if value is None and given is not None:
            raise TypeError(
                f"key[{i}] must be an int, a float, a str, a bool, a dtype or None (got "
                f"{spell(given)})"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"key[{i}] must be finite (got {value})")
        values.append(value)
    return tuple(values)


def digest_of(name: str, configs: Sequence[Config]) -> str:
    """Return the digest that identifies a target with these configurations."""
    # Sort the keys, so the order in which a dict was written does not change the digest. The order
    # of the configurations stays, because the first of equals wins.
    text = json.dumps([name, configs], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two keys are: True is not 1."""
    return len(a) == len(b) and all(
        type(x) is type(y) and x == y for x, y in zip(a, b, strict=True)
    )


def check_kept(what: str, value: Any) -> None:
    """Refuse a value that a file cannot store unchanged."""
    if isinstance(value, dict):
        for name, item in value.items():
            if not isinstance(name, str):
                raise TypeError(f"{what} must be a dict with str keys (got {spell(value)})")
            check_kept(f"{what}[{name!r}]", item)
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            check_kept(f"{what}[{i}]", item)
    elif not isinstance(value, (bool, int, float, str, type(None))):
        raise TypeError(
            f"{what} must be an int, a float, a str, a bool, None, or a tuple of them (got "
            f"{spell(value)})"
        )
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{what} must be finite (got {value})")


def _plain(value: Any) -> int | float | str | None:
    """Return the stored form of a value in a key, or None if a key cannot hold it."""
    # A number of an enumeration is that number.
    if isinstance(value, (int, float, str)):
        return next(kind(value) for kind in (int, float, str) if isinstance(value, kind))
    # An array of one number may be on a device, and is not a size. NumPy's scalars are numbers.
    if hasattr(value, "__dlpack__"):
        return None
    if type(value).__name__ in ("bool", "bool_"):  # of NumPy, by the version
        return bool(value)
    if getattr(value, "shape", ()) == () and not isinstance(value, type):
        # A number of a function's body is known by its value.
        if hasattr(type(value), "__index__"):
            return operator.index(value)
        if hasattr(type(value), "__float__"):
            return float(value)
    # A dtype of any framework.
    name = getattr(value, "name", getattr(find_dtype(value), "name", None))
    return name if isinstance(name, str) else None


def _alike(a: Any, b: Any) -> bool:
    """Whether two configurations are one: True is not 1, and a list is a tuple in a file."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(one, b[name]) for name, one in a.items())
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(_alike, a, b))
    return type(a) is type(b) and a == b
