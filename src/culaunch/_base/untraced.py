"""Functions that torch.compile does not trace."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

Function = TypeVar("Function", bound="Callable[..., Any]")

# PyTorch's hook that sees each new Python frame. It exists once torch is imported.
_FRAMES = "torch._C._dynamo.eval_frame"


def untraced(function: Function) -> Function:
    """Make a function, with all that it calls, one that Dynamo does not trace.

    A compiled region that reaches culaunch breaks the graph once. The code there is called from C,
    and Dynamo would treat each of its frames as the user's. This function imports nothing.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        frames = sys.modules.get(_FRAMES)
        if frames is None:
            return function(*args, **kwargs)
        # torch does this for functions that it must not trace.
        before = frames.set_eval_frame(None)
        try:
            return function(*args, **kwargs)
        finally:
            frames.set_eval_frame(before)

    # Where Dynamo traces the caller, it looks for this.
    call._torchdynamo_disable = True  # type: ignore[attr-defined]  # noqa: SLF001 - torch's mark
    return cast("Function", call)
