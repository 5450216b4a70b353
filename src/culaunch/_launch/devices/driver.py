"""Which driver this process uses: libcuda, the emulator, or another library."""

from __future__ import annotations

import os
from typing import Any

from culaunch._base.cuda import DeviceAttribute
from culaunch._base.driver_choice import STRICT, VARIABLE, check_choice, strict_choice
from culaunch._base.fork_lock import ForkLock
from culaunch._base.optional import is_installed
from culaunch._base.rooms_above import open_room
from culaunch._base.values import fits
from culaunch._core import Driver, current_driver, note_driver
from culaunch._errors import DriverNotFoundError
from culaunch._launch.formats.dlpack import DeviceType

__all__ = [
    "capability_of",
    "choose_driver",
    "current_driver",
    "device_ordinal",
    "driver_name",
    "open_drivers",
    "set_driver",
]

# The C++ header looks here for the driver that Python chose (include/culaunch/driver.h).
_PUBLISHED = "CULAUNCH_DRIVER_TABLE"

_lock = ForkLock()
open_drivers: dict[str, Driver] = {}
# The emulator that accepts only its own memory, like a GPU. No framework has such memory.
_STRICT_EMULATOR = "emulator, strict"
_STRICT_MEMORY = (int(DeviceType.EXT_DEV), int(DeviceType.CUDA_MANAGED))
# The published table, and its driver.
_published: dict[str, str] = {}


def set_driver(name: str) -> None:
    """Choose the driver for modules and arrays that are created from now on.

    Existing modules and arrays keep their driver. The choice is also written to the environment
    variable ``CULAUNCH_DRIVER``. Child processes and the C++ libraries of this process that
    are built on culaunch's header then make the same choice.

    Parameters
    ----------
    name : str
        ``"cuda"`` for NVIDIA's driver, ``"emulator"`` for the one that executes PTX on the CPU,
        or the path of a shared library that exports the CUDA driver API.

    Raises
    ------
    DriverNotFoundError
        If the driver does not exist or is too old. The choice then stays as it was.
    ValueError
        If the name is not one of these.

    Examples
    --------
    >>> cl.driver.set_driver("emulator")
    >>> cl.driver.driver_name()
    'emulator'
    """
    _open(name)
    # Only after opening it, because a missing driver cannot be selected.
    os.environ[VARIABLE] = name
    _publish(name)


def driver_name() -> str:
    """Return the driver in use: ``"cuda"``, ``"emulator"`` or a path. It is opened if need be.

    Returns
    -------
    str
        The name, as for :func:`culaunch.driver.set_driver`.

    Raises
    ------
    DriverNotFoundError
        If there is none.

    Examples
    --------
    >>> cl.driver.driver_name()
    '...'
    """
    return current_driver().name


def choose_driver() -> Driver:
    """Return the driver that the environment selects, and open it if necessary. It is then in use.

    :func:`current_driver` calls this if something has changed.
    """
    known, key, raw = _environment(VARIABLE)
    # Use the recorded values, because another thread may change the environment meanwhile.
    name = (os.environ.get(VARIABLE) if known is None else _text(raw)) or "cuda"
    driver = open_drivers.get(_key(name))
    if driver is None:
        check_choice(name, VARIABLE)
    if driver is None or (name == "emulator" and not _is_published()):
        driver = _open(name)
        _publish(name)
    if known is not None:
        conditions: list[tuple[dict[Any, Any], str | bytes, object]] = [
            (vars(os), "environ", os.environ),
            (known, key, raw),
            (globals(), "open_drivers", open_drivers),
            (open_drivers, _key(name), driver),
        ]
        if name == "emulator":
            for variable in (_PUBLISHED, STRICT):
                _, place, found = _environment(variable)
                conditions.append((known, place, found))
        note_driver(driver, tuple(conditions))
    return driver


def _environment(name: str) -> tuple[dict[Any, Any] | None, Any, Any]:
    """Return the dict behind the environment, a variable's key in it, and the variable's value.

    The dict is an implementation detail of CPython. Other interpreters may not have it.
    """
    data = getattr(os.environ, "_data", None)
    encode = getattr(os.environ, "encodekey", None)
    if type(data) is not dict or encode is None:
        return None, None, None
    # Use the dict's own key object if there is one: it is found fastest.
    key = next((one for one in list(data) if one == encode(name)), encode(name))
    return data, key, data.get(key)


def _text(raw: Any) -> str | None:
    return None if raw is None else os.environ.decodevalue(raw)


def device_ordinal(driver: Driver, device: Any) -> int:
    """Return the ordinal of a device; None is the current one.

    Raises
    ------
    TypeError, OverflowError
        If it is not an int, or an int that no driver accepts. The driver decides whether the device
        exists.
    """
    return driver.current_device() if device is None else fits(device, "device", 32)


def _open(name: str) -> Driver:
    if not isinstance(name, str):
        raise TypeError(f"name must be a str (got {type(name).__name__})")
    check_choice(name, "name")
    key = _key(name)
    with _lock:
        driver = open_drivers.get(name)
        if driver is None:
            driver = _open_emulator() if name == "emulator" else _open_library(name)
            open_drivers[name] = driver
        if key != name and key not in open_drivers:
            open_drivers[key] = driver.with_memory(_STRICT_MEMORY)
        return open_drivers[key]


def _key(name: str) -> str:
    """Return the key of a driver among the open ones."""
    return _STRICT_EMULATOR if name == "emulator" and strict_choice() else name


def _open_library(name: str) -> Driver:
    try:
        return Driver.open(name)
    except DriverNotFoundError as error:
        if name != "cuda" or is_installed("numpy"):
            raise
        raise DriverNotFoundError(
            f"{error}. The emulator needs NumPy: python -m pip install numpy",
            error.code,
            error.name,
        ) from None


def _open_emulator() -> Driver:
    driver = open_room("emulator").make_driver()
    assert isinstance(driver, Driver)
    return driver


def _publish_again() -> None:
    """Update the published process id in a forked process."""
    if os.environ.get(_PUBLISHED) and _key("emulator") in open_drivers:
        _publish("emulator")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_publish_again)


def _publish(name: str) -> None:
    if name == "emulator":
        text = open_drivers[_key(name)].publish()
        _published[text] = _key(name)
        os.environ[_PUBLISHED] = text
    else:
        os.environ.pop(_PUBLISHED, None)


def _is_published() -> bool:
    """Whether a table is published that is not this process's own with the other strictness."""
    key = _key("emulator")
    text = os.environ.get(_PUBLISHED)
    return bool(text) and _published.get(text or "", key) == key


def capability_of(driver: Driver, ordinal: int) -> tuple[int, int]:
    """Return the compute capability of a device: 9, 0 for sm_90."""
    return (
        driver.attribute(DeviceAttribute.COMPUTE_CAPABILITY_MAJOR, ordinal),
        driver.attribute(DeviceAttribute.COMPUTE_CAPABILITY_MINOR, ordinal),
    )
