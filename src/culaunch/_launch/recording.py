"""What may stand in the body of a function: who records it.

A package that launches in a way of its own (Triton kernels, fused functions) registers here how a
body takes part in that; ``culaunch._function`` asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class RecordingBody(Protocol):
    """What a recorder may ask of the body that runs.

    Attributes
    ----------
    mode : str
        ``"trace"``: record; ``"live"``: do it now, on ``real(value)``; ``"abstract"``: check, and
        leave it out.
    name : str
        The function's.
    """

    mode: str
    name: str

    def check(
        self, condition: Any, message: str | Callable[[], str], exception: type[Exception], /
    ) -> None:
        """Raise unless a condition holds, in this call and in later ones."""

    def launch(
        self, kernel: Any, configuration: Any, predicate: Any, args: tuple[Any, ...], /
    ) -> None:
        """Launch a kernel with the arguments of the body."""


# A type of object -> recorder(body, object, how, args, keywords). `how` is "call", "subscript" or
# "configure". It returns what the body gets, or NotImplemented to go on as without a body.
Recorder = Callable[[Any, Any, str, tuple[Any, ...], dict[str, Any]], Any]
RECORDERS: dict[type, Recorder] = {}
