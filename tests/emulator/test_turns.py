"""Turns: places in waiting loops lose theirs until another thread reaches them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from culaunch._emulator.machine import scheduler

if TYPE_CHECKING:
    import pytest


def made(monkeypatch: pytest.MonkeyPatch) -> tuple[scheduler.Scheduler, list[str]]:
    """Return a scheduler of groups that only say when they run."""
    chunk = SimpleNamespace(
        shared=SimpleNamespace(shadow=None),
        options=SimpleNamespace(time_limit=None),
        alive_total=0,
        lanes=list,
        races=None,
        turns=None,
    )
    ran: list[str] = []
    monkeypatch.setattr(scheduler, "merge", lambda parts: parts)
    monkeypatch.setattr(
        scheduler.Scheduler, "_run_group", lambda _, parts: ran.append(names(parts))
    )
    monkeypatch.setattr(
        scheduler, "Group", lambda *_: SimpleNamespace(n=0)
    )  # the first one, which `run` makes
    return scheduler.Scheduler(cast("Any", chunk), cast("Any", None)), ran


def names(parts: list[Any]) -> str:
    return "+".join(part.name for part in parts)


def group(name: str, block: int, spin: int = 0) -> Any:
    return SimpleNamespace(name=name, block=block, spin=spin, spin_end=99, key=(block,))


def test_the_lowest_place_runs_first(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, ran = made(monkeypatch)
    for one in (group("late", 7), group("early", 3), group("same", 7)):
        turns.ready(one)
    turns.run(cast("Any", None), [])
    assert ran == ["early", "late+same"]


def test_who_waited_often_runs_last(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, ran = made(monkeypatch)
    for one in (group("waits", 3, spin=40), group("works", 7)):
        turns.ready(one)
    turns.run(cast("Any", None), [])
    assert ran == ["works", "waits"]


def test_a_place_that_somebody_new_comes_to_gets_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    # The new one has lost no turn: it need not stand behind those that have waited there.
    turns, ran = made(monkeypatch)
    for one in (group("waits", 3, spin=40), group("works", 7), group("new", 3)):
        turns.ready(one)
    turns.run(cast("Any", None), [])
    assert ran == ["waits+new", "works"]


def test_a_place_runs_once_however_often_it_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, ran = made(monkeypatch)
    for one in (group("a", 3, spin=90), group("b", 3, spin=40), group("c", 3), group("d", 3)):
        turns.ready(one)
    turns.run(cast("Any", None), [])
    assert ran == ["a+b+c+d"]
