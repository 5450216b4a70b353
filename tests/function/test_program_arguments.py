"""How the arguments of a call bind, choose its program and are watched."""

from __future__ import annotations

import types
import weakref

import pytest
from assembler import Assembler, Traced, identity, nothing
from fake_arrays import ExchangeArray, make_exchange_array

import culaunch as cl


def outcome(function, args, keywords):
    try:
        return function(*args, **keywords)
    except TypeError as error:
        return str(error).partition("given")[0]


def test_binding_is_pythons(driver):
    a = Assembler()
    a.give("tuple", [("argument", 0), ("argument", 1), ("argument", 2)])
    f = Traced("x y z", a.program(), defaults=(None, "no"), keyword_only=("z",))

    def twin(x, y=None, *, z="no"):
        return (x, y, z)

    twin.__qualname__ = "f"
    calls = [
        ((1,), {}), ((1, None), {}), ((), {"x": 1}), ((1,), {"z": "no"}), ((1, None), {"z": "no"}),
        ((), {}), ((), {"y": None}), ((1, None, 3), {}), ((1,), {"x": 2}), ((1,), {"w": 2}),
        ((1, 2, 3, 4), {}),
    ]  # fmt: skip
    for args, keywords in calls:
        expected = outcome(twin, args, keywords)
        assert outcome(f, args, keywords) == expected
        if isinstance(expected, tuple):
            assert f._bind(args, keywords) == expected


@pytest.mark.parametrize("value", [True, False, "text", None, cl.LaunchError, (), ("a", None, 1)])
def test_static_values_choose_the_program(driver, value):
    f = Traced("x", nothing(), nothing())
    f(value)
    f(value)
    f("another")
    f(value)
    assert len(f.traces) == 2


def test_a_static_value_is_of_its_type():
    f = Traced("x", nothing(), nothing(), nothing())
    kinds = [f._kind((value,)) for value in (1, 1.0, True)]
    assert kinds == [(int,), (float,), (True,)]


def test_values_in_tuples_are_of_their_types(driver):
    f = Traced("x", *[nothing() for _ in range(3)])
    for value in [(1,), (True,), (1.0,), (1,), (True,), (1.0,)]:
        f(value)
    assert [kind[0][1] for kind in f.traces] == [(1,), (True,), (1.0,)]


@pytest.mark.parametrize("form", [list, tuple])
def test_lists_and_tuples_of_arrays(driver, form):
    a = Assembler(arrays=3)
    a.give("dict", {"x": ("element", 0, 1), "y": ("argument", 1), "n": ("int", a.op("ARG_I", 2))})
    f = Traced("xs y n", a.program(), nothing(2))
    x, y = ExchangeArray(), ExchangeArray(dtype=(2, 64))
    for _ in range(2):
        assert f(form([x, y]), x, 7) == {"x": y, "y": x, "n": 7}
    items = (("array", 11, 1, False), ("array", 12, 1, False))
    assert f.traces == [((form.__name__, items), items[0], int)]
    f(form([x]), x, 7)
    assert len(f.traces) == 2
    with pytest.raises(
        TypeError, match=r"f: argument xs\[1\] must be an array, because the first item"
    ):
        f(form([x, None]), x, 7)


def test_what_a_function_gives(driver):
    a = Assembler()
    n, x, yes = a.i(-1), a.f(0.5), a.op("CONST_B", 1)
    pair = ("called", complex, [("float", x), ("float", x)])
    a.give("tuple", [("int", n), ("list", [("float", x), ("bool", yes), ("none",)]), pair,
                     ("constant", a.constant("c")), ("dict", {}), ("tuple", [])])  # fmt: skip
    assert Traced("", a.program())() == (-1, [0.5, True, None], 0.5 + 0.5j, "c", {}, ())


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ({}, TypeError, "f: argument n must be an array, a number, None, a list or tuple of"),
        (1j, TypeError, "f: argument n must be an array"),
        ([1, 2], TypeError, "f: argument n must be an array"),
        (1 << 63, OverflowError, r"f: argument n must fit 64 bits \(got 9223372036854775808\)"),
        (-(1 << 63) - 1, OverflowError, "f: argument n must fit 64 bits"),
    ],
)
def test_arguments_that_a_function_does_not_take(driver, value, error, message):
    f = Traced("n", identity())
    with pytest.raises(error, match=message):
        f(value)
    assert f(5) == 5
    with pytest.raises(error, match=message):
        f(value)


def test_numpys_numbers_count_as_pythons(host_driver):
    np = pytest.importorskip("numpy")
    a = Assembler()
    n, x = a.op("ARG_I", 0), a.op("ARG_F", 1)
    a.give("tuple", [("int", n), ("float", x)])
    f = Traced("n x", a.program())
    assert f(np.int32(-3), np.float32(0.1)) == (-3, float(np.float32(0.1)))
    assert f(np.uint8(3), np.float64(2)) == (3, 2.0)
    assert len(f.traces) == 1
    assert f._kind((np.bool_(True), 1)) == (True, int)


def test_arrays_are_on_one_device(driver):
    f = Traced("x y", nothing(2))
    f(ExchangeArray(), ExchangeArray())
    with pytest.raises(ValueError, match="f: argument y is on device 1"):
        f(ExchangeArray(), ExchangeArray(device=1))
    other = make_exchange_array()
    with pytest.raises(
        TypeError, match=r"f: argument y is a .* all arrays of a call must be of one"
    ):
        f(ExchangeArray(), other())
    with pytest.raises(TypeError, match="f: argument x is in memory of DLPack type 1"):
        f(ExchangeArray(kind=1), ExchangeArray(kind=1))


def test_what_is_watched(driver):
    names = {"kernels": 1}
    f = Traced("n", *[identity() for _ in range(4)])
    f.reads = ((names, "kernels", names["kernels"]),)
    f(1)
    names["other"] = 3
    f(1)
    assert len(f.traces) == 1
    names["kernels"] = 2
    f.reads = ((names, "kernels", names["kernels"]),)
    f(1)
    f(1)
    assert len(f.traces) == 2
    del names["kernels"]
    f.reads = ()
    f(1)
    f(1)
    assert len(f.traces) == 3


def test_cells_are_watched(driver):
    held = []
    cell = types.CellType(held)
    f = Traced("n", *[identity() for _ in range(4)])
    f.reads = ((cell, None, held),)
    f(1)
    f("a")
    f(1)
    assert len(f.traces) == 2
    cell.cell_contents = held = [1]
    f.reads = ((cell, None, held),)
    f(1)
    f("a")
    assert len(f.traces) == 4
    del cell.cell_contents
    with pytest.raises(cl.InternalError):
        f(1)


@pytest.mark.parametrize("read", [(1, None, 1), ({}, 1, 1), ({}, None, 1), ({}, "a"), 3])
def test_reads_of_another_form(read):
    with pytest.raises(TypeError, match="each value read must be"):
        Traced("n")._add((int,), identity(), (read,))


def test_what_was_watched_goes(driver):
    class Value:
        pass

    names = {"value": Value()}
    alive = weakref.ref(names["value"])
    f = Traced("n", identity(), identity())
    f.reads = ((names, "value", names["value"]),)
    f(1)
    names["value"] = 2
    f.reads = ()
    f(1)
    assert alive() is None
