"""Errors that leave a body: its own, and errors of other code that rejects a stand-in."""

from __future__ import annotations

import dis
from typing import TYPE_CHECKING

from culaunch._base.places import Place, is_ours

if TYPE_CHECKING:
    from types import FrameType, FunctionType, TracebackType


def is_of_body(error: BaseException) -> bool:
    """Tell errors of a call from operations that no program can record."""
    if getattr(error, "is_of_check", False):
        return True
    last = _frames(error)[-1:]
    return bool(last) and not is_ours(last[0].tb_frame)


def with_numbers(error: BaseException) -> None:
    """Put the numbers of the call into the message of an error that has left the body."""
    text = getattr(error, "in_full", None)
    if text is not None:
        error.args = (text, *error.args[1:])


def locate(error: Exception, body: FunctionType) -> None:
    """Add the line of the body where other code rejected a stand-in."""
    frames = _frames(error)
    places = [one for one in frames if not is_ours(one.tb_frame)]
    if type(error) is not TypeError or not places or is_ours(frames[-1].tb_frame):
        return
    text, last = str(error), frames[-1]
    if text.startswith("at ") or (_package(last.tb_frame) == _root(body) and _raises(last)):
        return
    own = [one for one in places if _package(one.tb_frame) == _root(body)] or places
    place = Place(own[-1].tb_frame.f_code.co_filename, own[-1].tb_lineno)
    located = (
        f"at {place.text()}: {text} (the body of {body.__name__} is recorded with stand-ins for "
        "numbers and arrays: operator.index(n) gives the int of this call)"
    )
    error.args = (located,)


def _raises(place: TracebackType) -> bool:
    """Tell whether the code itself has raised it, with ``raise``."""
    code = place.tb_frame.f_code
    steps = [one for one in dis.get_instructions(code) if one.offset <= place.tb_lasti]
    return bool(steps) and steps[-1].opname == "RAISE_VARARGS"


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _root(body: FunctionType) -> str:
    return (body.__module__ or "").partition(".")[0]


def _frames(error: BaseException) -> list[TracebackType]:
    found = []
    trace_back = error.__traceback__
    while trace_back is not None:
        found.append(trace_back)
        trace_back = trace_back.tb_next
    return found
