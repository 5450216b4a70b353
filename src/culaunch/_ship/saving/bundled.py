"""The calls of a program, written when it ends: ``culaunch bundle app.culib`` packs them."""

from __future__ import annotations

import os
import sys
from typing import Any

from culaunch._base.bundling import kept_to_bundle
from culaunch._base.outputs import write_output
from culaunch._elementwise.elementwise_function import ElementwiseFunction
from culaunch._errors import CulaunchError
from culaunch._function import Function
from culaunch._function.programs.encode import encode
from culaunch._launch import Kernel
from culaunch._launch.private_members import is_configured
from culaunch._library import SUFFIX
from culaunch._ship.saving.kernels_to_save import GivenKernel
from culaunch._ship.saving.save import saved_bytes


def write_used(folder: str) -> None:
    """Write the functions and kernels of this process to libraries in a directory.

    Anything that a library cannot hold is omitted, with a message on standard error. No exception
    is raised, because the program has ended, and its own work was correct.
    """
    made = kept_to_bundle()
    for name in _fused_alone(made):
        _say(f"{name} is not saved, because it was called outside a cl.function: call it in one")
    try:
        functions = _traced(made)
        if functions:
            _write(folder, saved_bytes(functions))
        for kernels in _without_namesakes(_launched(made)):
            _write(folder, saved_bytes([], kernels=kernels))
    except (CulaunchError, TypeError, ValueError) as error:
        _say(f"the kernels are not saved: {error}")
    except OSError as error:
        _say(f"the libraries in {folder} cannot be written: {error.strerror or error}")


def _traced(made: tuple[object, ...]) -> list[Function[Any, Any]]:
    """Return all functions that were called, or specialized, and that a library can hold."""
    found = [one for one in made if isinstance(one, Function) and _has_kinds(one)]
    kept: list[Function[Any, Any]] = []
    for function in sorted(found, key=lambda one: (one.__name__, one.__module__)):
        given = [*kept, *_with_gradient(function)]
        try:
            saved_bytes(given)
        except (CulaunchError, TypeError, ValueError) as error:
            _say(f"{function.__name__} is not saved: {error}")
        else:
            kept = given
    return kept


def _has_kinds(function: Function[Any, Any]) -> bool:
    try:
        return bool(function.traced())
    except (CulaunchError, TypeError, ValueError):
        return False


def _with_gradient(function: Function[Any, Any]) -> list[Any]:
    gradient = function._gradient  # noqa: SLF001 - users see backward() alone
    used = () if gradient is None else (gradient.function, gradient.forward)
    return [function, *(one for one in used if isinstance(one, Function))]


def _fused_alone(made: tuple[object, ...]) -> list[str]:
    """Return the names of fused functions that no function called."""
    functions = [one for one in made if isinstance(one, Function) and _has_kinds(one)]
    trees = [tree for function in functions for _, tree in function.traced()]
    called = {id(constant) for tree in trees for constant in encode(tree).constants}
    fused = [one for one in made if isinstance(one, ElementwiseFunction)]
    return sorted({one.__name__ for one in fused if id(one) not in called})


def _launched(made: tuple[object, ...]) -> list[Kernel]:
    """Return the kernels that the program itself launched, outside functions.

    A kernel used only by functions gets its launchers from their programs. Launches are not
    counted, so a launcher that was made but never called also counts.
    """
    return [one for one in made if isinstance(one, Kernel) and is_configured(one)]


def _without_namesakes(kernels: list[Kernel]) -> list[list[Kernel]]:
    """Split kernels into groups without duplicate names.

    The code that merges the libraries decides between kernels with the same name.
    """
    groups: list[dict[str, list[Kernel]]] = []
    for kernel in sorted(kernels, key=lambda one: one.name):
        code = GivenKernel.of(kernel).code
        for group in groups:
            known = group.setdefault(kernel.name, [kernel])
            if known[0] is kernel:
                break
            if GivenKernel.of(known[0]).code == code:
                known.append(kernel)
                break
        else:
            groups.append({kernel.name: [kernel]})
    return [[one for several in group.values() for one in several] for group in groups]


def _write(folder: str, library: bytes) -> None:
    write_output(os.path.join(folder, f"{os.getpid()}-{os.urandom(8).hex()}{SUFFIX}"), library)


def _say(message: str) -> None:
    print(f"culaunch bundle: {message}", file=sys.stderr)  # noqa: T201
