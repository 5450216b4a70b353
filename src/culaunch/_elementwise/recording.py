"""The recorder of calls of fused functions in a body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._core import Elementwise as CoreElementwise
from culaunch._elementwise.elementwise_function import CHECKED
from culaunch._elementwise.graph import ReducesError
from culaunch._elementwise.in_bodies import BodyCall
from culaunch._elementwise.reductions.call import ReductionCall
from culaunch._elementwise.trace import Value
from culaunch._launch.launches.recording import RECORDERS

if TYPE_CHECKING:
    from culaunch._launch.launches.recording import RecordingBody


def record(
    body: RecordingBody, function: Any, how: str, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Take part in a call of a fused function in a body."""
    if how != "call" or any(isinstance(one, Value) for one in (*args, *keywords.values())):
        return NotImplemented  # a fused function called while another one is traced
    out = keywords.pop("out", None)
    is_checked = keywords.pop(CHECKED, False)
    bound = function._bind(args, keywords)  # noqa: SLF001
    try:
        call = (ReductionCall if function.reduces else BodyCall)(body, function, bound)
    except ReducesError:
        call = ReductionCall(body, function, bound)
    if isinstance(call, ReductionCall):
        call.checks_overlap = not is_checked
    return call.run(out)


RECORDERS[CoreElementwise] = record
