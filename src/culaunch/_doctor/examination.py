"""``doctor``: look at everything that culaunch can use on this machine."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING

from culaunch._base.values import counted
from culaunch._core import __version__
from culaunch._doctor.compilers import check_compilers
from culaunch._doctor.diagnosis import Component, Diagnosis
from culaunch._doctor.drivers import check_drivers
from culaunch._doctor.packages import check_frameworks

if TYPE_CHECKING:
    from collections.abc import Iterator


def doctor() -> Diagnosis:
    """Report the software on this machine that culaunch can use, and its problems.

    It opens the driver and makes a context on each device, imports the frameworks that are
    installed, and changes nothing. Every bug report should have it.

    Returns
    -------
    Diagnosis
        ``print(culaunch.machine.doctor())`` shows it as ``culaunch doctor`` does.

    Examples
    --------
    >>> print(cl.machine.doctor())
    this installation
      culaunch ...
    """
    looks = (_check_python, check_drivers, check_compilers, check_frameworks, _check_cache)
    return Diagnosis(tuple(component for look in looks for component in look()))


def _check_python() -> Iterator[Component]:
    yield Component("this installation", "culaunch", "ok", __version__)
    kind = platform.python_implementation()
    yield Component("this installation", "Python", "ok", f"{kind} {platform.python_version()}")
    libc = " ".join(platform.libc_ver())
    system = f"{platform.system()} {platform.release()}, {platform.machine()}, {libc}"
    yield Component("this installation", "system", "ok", system.rstrip(", "))
    # The first thing to look at when something is otherwise than expected.
    given = sorted(name for name, value in os.environ.items() if _is_ours(name) and value)
    if given:
        shown = ", ".join(f"{name}={os.environ[name]}" for name in given)
        yield Component("this installation", "environment", "ok", shown)


def _is_ours(variable: str) -> bool:
    # The table's address is a message between copies of culaunch, not a setting.
    return variable.startswith("CULAUNCH_") and variable != "CULAUNCH_DRIVER_TABLE"


def _check_cache() -> Iterator[Component]:
    from culaunch._cache import Cache

    topic, name = "caching", "cache"
    try:
        info = Cache().info()
    except (OSError, ValueError) as error:
        yield Component(
            topic, name, "broken", str(error), "set CULAUNCH_CACHE_DIR to another directory"
        )
        return
    size = f"{counted(info.entries, 'entry')}, {info.size / (1 << 20):.1f} MiB"
    detail = f"{info.path}, {size}, {_owner(info.path)}"
    if info.usable:
        yield Component(topic, name, "ok", detail)
    else:
        yield Component(topic, name, "broken", f"{detail}: {info.reason}", "")


def _owner(path: str) -> str:
    try:
        owner = os.stat(path).st_uid
    except OSError:
        return "not created yet"
    if sys.platform == "win32" or owner == os.getuid():
        return "owned by you"
    return f"owned by user {owner}, but you are user {os.getuid()}"
