"""Bodies by chance, in every order of their calls and on every way to run them.

Plain Python over NumPy and torch is what they are held against: debugging shares its code with
recording. ``python tests/function/test_generated_bodies.py 100000`` runs as many; a second number
is the first seed.
"""

from __future__ import annotations

import collections
import itertools
import linecache
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from generated_bodies import Writer
from interpreter import Interpreter
from real_arrays import Real

import culaunch as cl
from culaunch._function.arrays import array, identity, views
from culaunch._function.body import bodies
from culaunch._function.programs import record
from culaunch._function.symbolic import symbols
from culaunch.testing import use_driver

SHAPES = ((2, 3), (3, 3), (2, 1, 4), (4, 2), (1, 3, 2), (2, 0))
# An error that plain Python does not raise: an int past 64 bits.
BOUND = "64 bits"
SECONDS = 40


class Disagreement(AssertionError):
    """A way to run a body gave something else than plain Python."""


def made(seed, **options):
    """Make the body of a seed, and the source."""
    source = Writer(seed, **options).source()
    name = f"<generated body {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope = {"__name__": "generated"}
    exec(compile(source, name, "exec"), scope)
    return scope["body"], source


def calls_of(seed):
    """Make the arguments of three calls of one kind."""
    rng = random.Random(~seed)
    rank = rng.choice((2, 2, 3))
    shapes = [one for one in SHAPES if len(one) == rank]
    return [
        (
            np.arange(24, dtype=np.float32)[: int(np.prod(shape))].reshape(shape),
            rng.randint(-2, 4),
            rng.choice((0.0, 1.5, -2.25, 4.0, 1e300, float("inf"), float("nan"), -0.0)),
        )
        for shape in (rng.choice(shapes) for _ in range(3))
    ]


def shown(value):
    """Convert a result for comparisons: an array of any library becomes its numbers."""
    if type(value) is tuple:
        return f"({', '.join(map(shown, value))})"
    if isinstance(value, Real):
        value = value.array
    return repr(np.asarray(value)) if hasattr(value, "shape") else repr(value)


def outcome(function, *args):
    """Run, and give what came of it in a form that compares."""
    try:
        return "gave", shown(function(*args))
    except Exception as error:  # noqa: BLE001 - of whatever kind
        if BOUND in str(error):
            return "too large", ""
        return "raised", type(error).__name__


def strided(call):
    """Give the call with an array that is not contiguous."""
    x, n, f = call
    return np.repeat(x, 2, axis=-1)[..., ::2], n, f


def compare(where, source, call, found, wanted):
    if found != wanted and found[0] != "too large":
        text = source[source.index("def body") :]
        raise Disagreement(f"{where}, of {call}:\n  {found}\nand not\n  {wanted}\n{text}")
    return found[0] == "too large"


class Check:
    """Runs bodies and counts what they did."""

    def __init__(self, *, saves=8, every_order=False):
        self.counts = collections.Counter()
        self.saves, self.every_order = saves, every_order

    def body(self, seed):
        body, source = made(seed)
        calls = calls_of(seed)
        if seed % 3 == 0:
            calls[1] = strided(calls[1])
        wanted = [outcome(body, Real(x), n, f) for x, n, f in calls]
        self.counts["bodies"] += 1
        self.counts.update(kind for kind, _ in wanted)
        orders = list(itertools.permutations(range(len(calls))))
        # Half of them, by turns: each call is the first once, which decides most.
        for order in orders if self.every_order else orders[seed % 2 :: 2]:
            function = cl.function(body)
            for i in (*order, *order):
                found = outcome(function, *calls[i])
                if compare(f"seed {seed}, order {order}", source, calls[i], found, wanted[i]):
                    self.counts["too large"] += 1
                    return
                self.counts["calls"] += 1
        self.other_ways(seed, function, source, calls, wanted)

    def other_ways(self, seed, function, source, calls, wanted):
        programs = function._programs()
        for call, known in zip(calls, wanted, strict=True):
            with cl.function_debugging():
                compare(f"seed {seed}, debugging", source, call, outcome(function, *call), known)
            if known[0] == "gave" and len(programs) == 1:
                interpreter = Interpreter(programs[0][1])
                found = outcome(lambda *args, run=interpreter.run: run(args), *call)
                compare(f"seed {seed}, interpreted", source, call, found, known)
        if seed % 4 == 0:
            self.torch(seed, function, source, calls)
        if programs and seed % self.saves == 0:
            self.saved(seed, function, source, calls, wanted)

    def torch(self, seed, function, source, calls):
        import torch

        for x, n, f in calls:
            tensor = torch.from_numpy(x)
            known = outcome(function.__wrapped__, Real(tensor), n, f)
            found = outcome(function, tensor, n, f)
            compare(f"seed {seed}, torch", source, (x, n, f), found, known)

    def saved(self, seed, function, source, calls, wanted):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "body.culib"
            cl.ship.save([function], path)
            saved = cl.ship.load_library(path).functions["body"]
            for call, known in zip(calls, wanted, strict=True):
                if known[0] == "gave":
                    found = outcome(saved, *call)
                    compare(f"seed {seed}, saved", source, call, found, known)
        self.counts["saved"] += 1


def run(count, first=0, seconds=None, *, saves=8):
    """Run bodies until there were enough, or the time is over."""
    check, start = Check(saves=saves), time.process_time()
    for seed in range(first, first + count):
        check.body(seed)
        if seconds is not None and time.process_time() - start > seconds:
            break
    return check.counts


@pytest.mark.slow
def test_bodies_by_chance(emulated):
    # They detect all mutants below, the last one at seed 1106. Run the file for more.
    counts = run(1200, seconds=SECONDS)
    assert counts["bodies"] > 100, counts


def from_ffi(value):
    """Give a result of an exported function as Python's own."""
    return value if isinstance(value, (int, float, str)) else tuple(map(from_ffi, value))


@pytest.mark.slow
@pytest.mark.needs("g++", "nvrtc")
def test_bodies_by_chance_are_exported(emulated, tmp_path):
    tvm_ffi = pytest.importorskip("tvm_ffi")
    functions = {}
    for seed in range(60):
        body, source = made(seed, numbers=True)
        body.__name__ = f"f{seed}"
        function = cl.function(body)
        wanted = [outcome(body, Real(x), n, f) for x, n, f in calls_of(seed)]
        for call in calls_of(seed):
            outcome(function, *call)
        try:
            function.source()
        except (TypeError, ValueError):  # math.ldexp, or no path
            continue
        functions[seed] = function, source, wanted
    path = tmp_path / "libbodies.so"
    cl.ship.export([one for one, _, _ in functions.values()], path, flags=["-O0"])
    for kind in (IndexError, OverflowError, ZeroDivisionError, NotImplementedError):
        tvm_ffi.register_error(kind.__name__, kind)
    library, compared = tvm_ffi.load_module(str(path)), 0
    for seed, (_, source, wanted) in functions.items():
        for call, known in zip(calls_of(seed), wanted, strict=True):
            if known[0] == "gave":
                exported = getattr(library, f"f{seed}")
                found = outcome(lambda *args, f=exported: from_ffi(f(*args)), *call)
                compare(f"seed {seed}, exported", source, call, found, known)
                compared += 1
    assert compared > 30


# Replacements, each with a seed shortly before the first body that detects it.
MUTANTS = {
    "nothing is caught": (record, "may_be_caught", lambda: False, 50),
    "a text has no guard": (symbols.Number, "__format__", lambda n, spec: format(n.hint, spec), 0),
    "a matrix is not swapped": (
        array.StandIn, "swapaxes", lambda x, a, b: x if x.ndim == 2 else x.permute(2, 1, 0), 0
    ),
    "the first call decides": (record.Record, "fails", lambda *_: False, 50),
    "a known number is asked for again": (record.Record, "_is_decided", lambda *_: False, 1100),
    "a condition is no bool": (identity, "_is_number", lambda x, y: x is y, 0),
    "methods are not seen": (bodies, "follow_calls", lambda _: False, 0),
    "no index is too low": (views, "_index_in_range", lambda index, size: index < size, 420),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_of_the_recorder_is_found(emulated, monkeypatch, name):
    *mutant, first = MUTANTS[name]
    monkeypatch.setattr(*mutant)
    with pytest.raises(Disagreement):
        run(600, first)


if __name__ == "__main__":
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    failures = 0
    check, start = Check(saves=50, every_order=True), time.monotonic()
    for seed in range(first, first + count):
        if seed % 1000 == 0:
            print(dict(check.counts), f"{time.monotonic() - start:.0f} s, next {seed}", flush=True)
        try:
            with use_driver("emulator"):
                check.body(seed)
        except Disagreement as error:
            failures += 1
            print(error, flush=True)
            if failures == 5:
                break
    print(dict(check.counts), f"{time.monotonic() - start:.0f} s, the last seed {seed}")
