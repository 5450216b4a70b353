"""Read-modify-write with results equal to some serial order: here, the order of the lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.types import Lanes

# More lanes than this at one address are taken one address at a time instead of in rounds.
_ROUNDS = 24


class Update:
    """The effect of an atomic operation on a word.

    Parameters
    ----------
    function : callable
        Maps old values and operands to new values; all are arrays of unsigned words.
    accumulate : tuple, optional
        A ufunc, and the dtype in which applying it from left to right has the same effect.
    in_order : callable, optional
        Takes a word and the operands of the lanes that access it. Returns the old value of each
        lane and the last word, as if `function` ran for one lane after the other.
    replaces : bool
        Whether the new value is independent of the old one.
    """

    def __init__(
        self,
        function: Callable[..., Lanes],
        accumulate: tuple[np.ufunc, np.dtype[Any]] | None = None,
        in_order: Callable[..., tuple[Lanes, Any]] | None = None,
        *,
        replaces: bool = False,
    ) -> None:
        self.function = function
        self.accumulate = accumulate
        self.in_order = in_order
        self.replaces = replaces


def update(words: Lanes, at: Lanes, operands: list[Lanes], operation: Update) -> Lanes:
    """Apply `operation` to ``words[at]`` for each lane in turn; return the old values.

    Lanes that meet at a word take their turns in order. Words are independent, so the i-th lane
    of every word goes in round i.
    """
    count = at.shape[0]
    # Equal addresses come together, and stay in the order of their lanes: that is the serial order
    # whose results these are. PTX leaves it open; a fixed one makes results repeatable.
    order = np.argsort(at, kind="stable")
    place = at[order]
    first = np.ones(count, bool)
    np.not_equal(place[1:], place[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    # All addresses are different, which is the common case of scattered updates.
    if starts.shape[0] == count:
        old = words[at]
        words[at] = operation.function(old, *operands)
        return old
    lengths = np.diff(starts, append=count)
    sorted_operands = [np.broadcast_to(value, (count,))[order] for value in operands]
    sorted_old = np.empty(count, words.dtype)
    # In a one-bin histogram, or a counter, every lane updates one word, and rounds would be as many
    # as lanes. Such words are processed one by one, each as a whole.
    long = lengths > _ROUNDS
    for start, length in zip(starts[long].tolist(), lengths[long].tolist(), strict=True):
        part = slice(start, start + length)
        where = int(place[start])
        values = [value[part] for value in sorted_operands]
        sorted_old[part] = _run_one_word(words, where, values, operation)
    starts, lengths = starts[~long], lengths[~long]
    for turn in range(int(lengths.max(initial=0))):
        index = starts[lengths > turn] + turn
        where_all = place[index]
        before = words[where_all]
        sorted_old[index] = before
        words[where_all] = operation.function(before, *[value[index] for value in sorted_operands])
    old = np.empty_like(sorted_old)
    old[order] = sorted_old
    return old


def _run_one_word(words: Lanes, at: int, operands: list[Lanes], operation: Update) -> Lanes:
    if operation.accumulate is not None:
        ufunc, dtype = operation.accumulate
        # A running sum (minimum, and so on) starting with the word: each lane gets its element, and
        # the last element remains.
        chain = np.concatenate([words[at : at + 1], operands[0]]).view(dtype)
        steps = ufunc.accumulate(chain, dtype=dtype).view(words.dtype)
        words[at] = steps[-1]
        return steps[:-1]
    if operation.in_order is not None:
        all_old, words[at] = operation.in_order(words[at], *operands)
        return all_old
    # An operation without this form, such as compare and swap of different values, runs lane by
    # lane.
    old = np.empty(operands[0].shape, words.dtype)
    current = words[at : at + 1]
    for i in range(operands[0].shape[0]):
        old[i] = current[0]
        current = operation.function(current, *[value[i : i + 1] for value in operands])
    words[at] = current[0]
    return old
