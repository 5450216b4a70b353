"""Code that a body calls and that no copy replaces: methods, and functions of other packages."""

from __future__ import annotations

import builtins
import ctypes
import dis
import sys
import warnings
from typing import TYPE_CHECKING, Any

from culaunch._base.places import is_own_file, room_of
from culaunch._core import open_frames
from culaunch._function.arrays.identity import MARKERS, Markers, asking_alone
from culaunch._function.tracing.answering import ASKING, Builtins
from culaunch._function.tracing.replaced import ELSEWHERE

if TYPE_CHECKING:
    from types import CodeType

_monitoring: Any = getattr(sys, "monitoring", None)  # from Python 3.12 on
# Whether code calls `type`, and the names by which it asks for ``is``.
Key = tuple[bool, Markers]
# Kept for ever, because a generator that begins in a body may end after it.
_BUILTINS: dict[tuple[int, Key], Builtins] = {}
# The rooms of culaunch that call a body's own code. The others work on their own, and may run much
# code of other packages, such as a compiler.
_ROOMS = ("_function", "_base")


def followed_code(
    code: CodeType,
) -> tuple[CodeType, Key, dict[str, Any], dict[str, Any]] | bool | None:
    """Return the replacement of code that a body calls.

    None means the code itself. False means the code itself, which calls nothing of the body's.

    Returns
    -------
    code : code
    key : tuple
        For :func:`followed_builtins`.
    builtins, answering : dict
        Python's builtins, and those that replace them.
    """
    if is_own_file(code.co_filename):
        return None if room_of(code.co_filename) in _ROOMS else False
    if code.co_filename.startswith("<frozen importlib"):
        return False  # importing a module is not part of the body
    # Each inner function has its own frame, and may also run after the body.
    code_, markers = asking_alone(code)
    calls_type = "type" in code.co_names and _calls_type(code)
    if code_ is code:
        if _TOOL is None and not calls_type and ASKING.isdisjoint(code.co_names):
            return None
        code_ = code.replace()  # whose inline caches belong to these builtins
    if _TOOL is not None:
        _monitoring.set_local_events(_TOOL, code_, _monitoring.events.CALL)
    key, plain = (calls_type, markers), vars(builtins)
    return code_, key, plain, followed_builtins(plain, key)


def followed_builtins(plain: dict[str, Any], key: Key) -> dict[str, Any]:
    """Return the builtins of followed code that has others in plain Python."""
    calls_type, markers = key
    if type(plain) is Builtins and markers == MARKERS:
        return plain  # a body's builtins, or those of a function made by followed code
    found = _BUILTINS.get((id(plain), key))
    if found is None:
        types = ELSEWHERE if calls_type else {}
        found = _BUILTINS[id(plain), key] = Builtins(plain, markers, types=types, modules={})
    return found


def _calls_type(code: CodeType) -> bool:
    # A class derived from `type` needs the class itself.
    listed = [*dis.get_instructions(code)]
    return any(
        one.argval == "type" and _loads_to_call(one, listed[i:]) for i, one in enumerate(listed, 1)
    )


def _loads_to_call(load: dis.Instruction, after: list[dis.Instruction]) -> bool:
    if load.opname != "LOAD_GLOBAL":
        return load.opname == "LOAD_NAME"
    if sys.version_info >= (3, 11):
        return bool((load.arg or 0) & 1)  # the instruction says so
    above = 0  # the number of values above it on the stack
    for one in after:
        if one.opname == "CALL_FUNCTION" and one.arg == above:
            return True
        effect = dis.stack_effect(one.opcode, one.arg, jump=False)
        if above == 0 and effect <= 0:
            return False
        above += effect
    return False


def _open() -> None:
    python, names = ctypes.pythonapi, (
        "_PyInterpreterState_GetEvalFrameFunc", "_PyInterpreterState_SetEvalFrameFunc",
        "_PyEval_EvalFrameDefault", "PyUnstable_Eval_RequestCodeExtraIndex",
        "PyUnstable_Code_GetExtra", "PyUnstable_Code_SetExtra",
    )  # fmt: skip
    try:
        is_known = open_frames(*(_address(python, name) for name in names))
    except AttributeError:  # a Python without them
        is_known = False
    if not is_known:
        _warn("does not know the frames of this Python", "in methods")


def _address(python: Any, name: str) -> int:
    found = getattr(python, name, None)
    if found is None:  # the name before Python 3.12
        found = getattr(python, name.replace("PyUnstable_", "_Py"))
    return ctypes.cast(found, ctypes.c_void_p).value or 0


def _free_tool() -> int | None:
    # In Python 3.13 only, the specialized call of a class enters __init__ without calling the
    # evaluation function. Monitored calls are not specialized.
    if sys.hexversion >> 16 != 0x30D:
        return None
    for tool in (4, 3, 5, 2, 1, 0):
        if _monitoring.get_tool(tool) is None:
            _monitoring.use_tool_id(tool, "culaunch")
            return tool
    _warn("finds no free number of a tool in sys.monitoring", "in __init__")
    return None


def _warn(reason: str, where: str) -> None:
    warnings.warn(
        f"culaunch {reason}: in functions, it cannot answer `is` {where} and in code of other "
        "packages; use ==",
        RuntimeWarning,
        stacklevel=3,
    )


_open()
_TOOL = _free_tool()
