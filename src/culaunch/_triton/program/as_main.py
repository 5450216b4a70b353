"""Run a script, a module or a text like Python's own command line.

``runpy.run_path`` differs: the program has a relative ``__file__`` and no loader, and code that
runs after its end (threads, ``atexit``) has another ``__main__``.
"""

from __future__ import annotations

import io
import os
import runpy
import sys
import types
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def run_script(arguments: Sequence[str]) -> None:
    """Run a file of Python, or a folder or an archive that has a ``__main__.py``.

    Parameters
    ----------
    arguments : sequence of str
        The program's ``sys.argv``, its path first.
    """
    path = arguments[0]
    sys.argv = list(arguments)
    if _has_modules(path):
        _put_first(os.path.abspath(path), always=True)
        _run_found("__main__", alter_argv=False)
        return
    _put_first(os.path.dirname(os.path.realpath(path)))
    # Like Python, keep links and dots in the path.
    full = os.path.join(os.getcwd(), path)
    _run_code(full, lambda: _read(full), {"__loader__": SourceFileLoader("__main__", full)})


def run_module(arguments: Sequence[str]) -> None:
    """Run a module as ``python -m`` does: the module's name comes first."""
    sys.argv = ["-m", *arguments[1:]]
    _put_first(os.getcwd())
    _run_found(arguments[0], alter_argv=True)


def run_text(arguments: Sequence[str]) -> None:
    """Run a text as ``python -c`` does: the text comes first."""
    sys.argv = ["-c", *arguments[1:]]
    _put_first("")
    _run_code("<string>", lambda: arguments[0])


def _run_code(name: str, read: Callable[[], Any], more: dict[str, Any] | None = None) -> None:
    made = _new_main()
    if name != "<string>":
        made.__file__ = name
        vars(made)["__cached__"] = None
    vars(made).update(more or {})
    _call(lambda: exec(compile(read(), name, "exec", dont_inherit=True), vars(made)))  # noqa: S102


def _run_found(name: str, *, alter_argv: bool) -> None:
    """Run a module by name, as the interpreter does: it calls this function of runpy."""
    _new_main()
    _call(lambda: runpy._run_module_as_main(name, alter_argv))  # type: ignore[attr-defined]  # noqa: SLF001


def _new_main() -> types.ModuleType:
    """Create the ``__main__`` module, which stays until the process ends."""
    made = types.ModuleType("__main__")
    vars(made).update(__builtins__=sys.modules["builtins"], __loader__=None)
    if sys.version_info < (3, 14):
        made.__annotations__ = {}
    sys.modules["__main__"] = made
    return made


# ---- module search paths


def _has_modules(path: str) -> bool:
    """Whether modules can be found in a path: a folder or an archive."""
    for hook in sys.path_hooks:
        try:
            hook(path)
        except ImportError:
            continue
        return True
    return False


def _put_first(folder: str, *, always: bool = False) -> None:
    """Search a folder for modules first, as Python does unless ``-P`` is given."""
    flags: Any = sys.flags
    if not getattr(flags, "safe_path", flags.isolated):
        sys.path[0] = folder  # replaces the entry of `-m culaunch.triton`
    elif always:
        sys.path.insert(0, folder)


def _read(path: str) -> bytes:
    with io.open_code(path) as file:
        return file.read()


# ---- exceptions of the program


def _call(run: Callable[[], object]) -> None:
    """Run it, and show its exceptions without culaunch's own frames."""
    try:
        run()
    except (SystemExit, KeyboardInterrupt):
        raise  # Python ends the process with these
    except BaseException as error:
        # A debugger or a profiler that has called this program needs it; `python -i` does, too.
        if sys.flags.inspect or not _is_outermost():
            raise
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        error.__traceback__ = trace
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        sys.last_exc = error  # type: ignore[attr-defined,unused-ignore]  # from Python 3.12 on
        sys.excepthook(type(error), error, trace)
        sys.exit(1)


def _is_outermost() -> bool:
    """Whether only Python's own ``-m`` is the caller."""
    frame: types.FrameType | None = sys._getframe()  # noqa: SLF001
    below = []
    while frame is not None:
        below.append(frame.f_globals.get("__name__"))
        frame = frame.f_back
    while below and str(below[0]).startswith("culaunch."):
        del below[0]
    # The block of `culaunch.triton`, and two functions of runpy.
    return below == ["__main__", "runpy", "runpy"]
