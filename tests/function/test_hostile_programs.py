"""Programs that nobody would write: refused, or harmless."""

from __future__ import annotations

import contextlib
import random
import struct

import pytest
from assembler import Assembler, Traced
from fake_arrays import ExchangeArray
from recording import RecordingDriver, use

from culaunch import _core


def varied(driver):
    """Assemble a program with a bit of everything."""
    a = Assembler(arrays=2)
    n, m, x = a.op("DIM", 0, 0), a.op("ARG_I", 2), a.op("ARG_F", 3)
    sizes = [a.op("ADD", n, m, text="t"), a.op("CEILDIV", n, a.i(4), text="t")]
    yes = a.op("EQ", a.op("STRIDE", 0, 0), a.i(1))
    a.check(yes, "stride of {0}, {1}", n, x)
    a.op("RANGE", n, 4, 1, text="n")
    a.op("FLOAT_RANGE", x, 2, 32, text="x")
    a.op("MATH", "sqrt", a.op("FABS", x, text="t"), text="t")
    a.guard(a.op("LT", n, a.i(100)), 1, 2)
    for end in ("int", "float"):
        y = a.allocate("float32", sizes, zeros=True)
        one = a.i(1)
        v = a.view(y, a.i(4), "float32", [one], [one])
        a.memset(y, a.i(3), a.i(4), predicate=yes)
        inner = a.part("int", 0, 4, n)
        parts = [("array", 0, 8, v), ("int", 8, 4, n), ("float", 12, 4, x, 2, 32),
                 ("bytes", 16, 16, a.constant(bytes(16)), 1, *inner)]  # fmt: skip
        a.launch(driver.kernel(8, 4, 4, 16), (one,) * 3, (one,) * 3, *parts, predicate=yes)
        result = (end, n if end == "int" else x)
        a.give("tuple", [result, ("argument", 2), ("list", [("none",), ("bool", yes)])])
    return a


# The errors that a mutant's call may raise.
ERRORS = (
    ArithmeticError,
    ValueError,
    TypeError,
    AssertionError,
    IndexError,
    RuntimeError,
    MemoryError,
)
KIND = (("array", 11, 1, False), ("array", 11, 1, False), int, float)


def run(a, words):
    """Decode and call a program; whether it was taken."""
    try:
        data = struct.pack(f"<{len(words)}q", *words)
        program = _core.Program(data, tuple(a.constants), tuple(a.texts))
        f = Traced("x y n z")
        f._add(KIND, program, ())
    except ValueError as error:
        if not str(error).startswith("program: "):
            raise
        return False
    array = ExchangeArray(0x7000)
    with contextlib.suppress(*ERRORS):
        f(array, array, 3, 2.0)
    return True


def test_the_program_itself_runs(install):
    driver = install(device_types=(2,))
    assert run(varied(driver), varied(driver).words())


def mutations(words, seed, count):
    rng = random.Random(seed)
    numbers = [0, 1, -1, 2, 3, 8, 255, 256, 1 << 31, 1 << 32, (1 << 63) - 1, -(1 << 63)]
    for _ in range(count):
        mutant = list(words)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            at = rng.randrange(len(mutant))
            kind = rng.randrange(5)
            if kind == 0:
                mutant[at] = rng.choice(numbers)
            elif kind == 1:
                mutant[at] = max(-(1 << 63), min((1 << 63) - 1, mutant[at] + rng.choice((-1, 1))))
            elif kind == 2:
                mutant[at] = rng.choice(words)
            elif kind == 3:
                mutant[at] ^= 1 << rng.randrange(63)
            else:
                del mutant[at]
        yield mutant


class Harmless(RecordingDriver):
    """One that fills no memory, and has little of it."""

    def cuMemsetD8Async(self, *args):
        return 0

    def cuMemAlloc(self, out, size):
        return super().cuMemAlloc(out, size) if size < 1 << 20 else 2


def check_mutants(monkeypatch, seed, count):
    driver = Harmless(device_types=(2,))
    use(driver, monkeypatch)
    driver.recording = False
    a = varied(driver)
    taken = sum(run(a, mutant) for mutant in mutations(a.words(), seed, count))
    assert 0 < taken < count


def test_mutants(monkeypatch):
    check_mutants(monkeypatch, 1, 5000)


@pytest.mark.slow
@pytest.mark.memory
def test_many_mutants(monkeypatch):
    check_mutants(monkeypatch, 2, 200_000)


def rows():
    def simple(**options):
        a = Assembler(**options)
        a.give("none")
        return a.words()

    yield "ends too early", simple()[:-1]
    yield "ends too early", [1]
    yield "version", [3, *simple()[1:]]
    yield "no block", [1, 0, 0, 0, 0]
    yield "words follow", [*simple(), 0]
    yield "registers -1", [1, -1, *simple()[2:]]
    yield "more argument arrays", [*simple(arrays=1)[:3], 0, *simple()[4:]]
    a = Assembler()
    a.op("ADD", 0, 0, text="t")
    a.give("none")
    yield "register 0 does not have the type", a.words()
    a = Assembler()
    a.op("ADD", a.f(1.0), a.f(1.0), text=-1)
    a.give("none")
    yield "does not have the type", a.words()
    a = Assembler()
    a.guard(a.op("CONST_B", 1), 0, -1)
    yield "a guard leads to block 0", a.words()
    a = Assembler()
    a.guard(a.op("CONST_B", 1), 1, 1)
    a.give("none")
    yield "two guards lead", a.words()
    a = Assembler()
    a.give("none")
    a.give("none")
    yield "no guard leads to block 1", a.words()
    a = Assembler()
    a.give("array", 0)
    yield "array 0 is not below 0", a.words()
    a = Assembler()
    a.new_array()
    a.give("array", 0)
    yield "used before it is defined", a.words()
    a = Assembler()
    a.op("DIM", 0, 0)
    a.give("none")
    yield "argument array 0", a.words()
    a = Assembler(arrays=1)
    a.op("DIM", 0, 32)
    a.give("none")
    yield "axis 32", a.words()
    a = Assembler()
    a.op("CONST_B", 2)
    a.give("none")
    yield "out of range", a.words()
    a = Assembler()
    a.check(a.op("CONST_B", 1), -1)
    a.give("none")
    yield "a check has no text", a.words()
    a = Assembler()
    a.give("constant", 0)
    yield "constant 0", a.words()
    nested = ("none",)
    for _ in range(20):
        nested = ("tuple", [nested])
    a = Assembler()
    a.give(*nested)
    yield "nested too deep", a.words()
    yield "too many registers", [1, 1 << 16, 0, 0, 4096, *[0] * 4096]


@pytest.mark.parametrize(("message", "words"), list(rows()), ids=lambda value: str(value)[:20])
def test_what_is_wrong_is_named(message, words):
    data = struct.pack(f"<{len(words)}q", *words)
    with pytest.raises(ValueError, match="^program: .*" + message):
        _core.Program(data, (), ("t",))


def test_words_are_whole():
    with pytest.raises(ValueError, match=r"^program: its size is not a multiple of the word size"):
        _core.Program(b"123", (), ())
    with pytest.raises(ValueError, match=r"^program: a text is not a str"):
        _core.Program(b"", (), (1,))


def test_a_launch_has_its_kernels_parameters(driver):
    kernel = driver.kernel(8, 4)
    for parts, message in [
        ([], "a LAUNCH has 0 parameters, but its kernel 2"),
        ([("null", 0, 8), ("null", 0, 4)], "a LAUNCH puts parameter 1 at a wrong"),
        ([("null", 0, 16), ("null", 8, 4)], "a LAUNCH puts parameter 0 at a wrong"),
    ]:
        a = Assembler()
        one = a.i(1)
        a.launch(kernel, (one,) * 3, (one,) * 3, *parts)
        a.give("none")
        with pytest.raises(ValueError, match=message):
            a.program()
    a = Assembler()
    one = a.i(1)
    a.launch("kernel", (one,) * 3, (one,) * 3)
    a.give("none")
    with pytest.raises(ValueError, match="a LAUNCH has no kernel"):
        a.program()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ((), "the kind of f must have one entry per parameter, 1 in all .got 0"),
        ((("array", 11, 0, False),), "it reads an axis that an array lacks"),
        ((int,), "it has a different number of arrays"),
        ((("array", 99, 1, False),), "an entry of a kind must be None"),
        ((("array", 11, 33, False),), "an entry of a kind must be None"),
        (("array",), "an entry of a kind must be None"),
        ((("tuple", ()),), "an entry of a kind must be None"),
        ((("list", (int,)),), "an entry of a kind must be None"),
        ((object(),), "an entry of a kind must be None"),
    ],
)
def test_a_program_is_of_its_kind(kind, message):
    a = Assembler(arrays=1)
    a.op("DIM", 0, 0)
    a.give("none")
    with pytest.raises(ValueError, match=message):
        Traced("x")._add(kind, a.program(), ())


def test_numbers_are_read_of_numbers():
    for name, kind in [("ARG_I", float), ("ARG_F", int), ("ARG_I", None), ("ARG_I", True)]:
        a = Assembler()
        a.op(name, 0)
        a.give("none")
        with pytest.raises(ValueError, match="from another value"):
            Traced("x")._add((kind,), a.program(), ())
    a = Assembler()
    a.give("element", 0, 1)
    with pytest.raises(ValueError, match="program: it"):
        Traced("x")._add((("list", (("array", 11, 1, False),)),), a.program(), ())
