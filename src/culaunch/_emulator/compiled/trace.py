"""Record the effects of an operation on one thread, as statements of C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.compiled.c_types import ABANDON
from culaunch._emulator.compiled.ufuncs import Untraceable

if TYPE_CHECKING:
    from collections.abc import Callable

# More ways through one instruction than this are not worth their code.
_MOST_WAYS = 24


class Trace:
    """One way through an operation.

    Attributes
    ----------
    forks : bool
        Whether a question about a lane ("is any of them a NaN?") is a branch of the C code. If
        not, the answer is the one for a group in which lanes differ, which suits every lane.
    """

    def __init__(self, decisions: list[bool], *, forks: bool) -> None:
        self.decisions = decisions
        self.forks = forks
        self.events: list[tuple[str, bool | None]] = []
        self._asked = 0
        self._temporaries = 0

    def let(self, expression: str, kind: str) -> str:
        """Name the value of an expression."""
        self._temporaries += 1
        name = f"t{self._temporaries}"
        self.do(f"const {kind} {name} = {expression};")
        return name

    def do(self, statement: str) -> None:
        """Add a statement."""
        self.events.append((statement, None))

    def decide(self, condition: str) -> bool:
        """Answer a question that decides how the trace continues."""
        if self._asked == len(self.decisions):
            self.decisions.append(True)
        answer = self.decisions[self._asked]
        self._asked += 1
        self.events.append((condition, answer))
        return answer


def statements(run: Callable[[Trace], None]) -> str:
    """Return the statements that `run` records; raise Untraceable if C cannot express them."""
    try:
        return _ways(run, forks=False)
    except Untraceable:
        return _ways(run, forks=True)


def _ways(run: Callable[[Trace], None], *, forks: bool) -> str:
    ways: list[list[tuple[str, bool | None]]] = []
    decisions: list[bool] = []
    failure: Untraceable | None = None
    whole = False
    while True:
        trace = Trace(decisions, forks=forks)
        try:
            run(trace)
            whole = True
        except Untraceable as error:
            failure = error
            # The rare way is left to the other engine.
            trace.do(ABANDON)
        ways.append(trace.events)
        if len(ways) > _MOST_WAYS:
            raise Untraceable("too many ways")
        while decisions and not decisions[-1]:
            decisions.pop()
        if not decisions:
            break
        decisions[-1] = False
    if failure is not None and not whole:
        raise failure
    return _join(ways, 0)


def _join(ways: list[list[tuple[str, bool | None]]], start: int) -> str:
    lines = []
    for at, (text, answer) in enumerate(ways[0][start:], start):
        if answer is None:
            lines.append(text)
            continue
        yes = [way for way in ways if way[at][1]]
        no = [way for way in ways if not way[at][1]]
        lines.append(f"if ({text}) {{\n{_join(yes, at + 1)}\n}} else {{\n{_join(no, at + 1)}\n}}")
        break
    return "\n".join(lines)
