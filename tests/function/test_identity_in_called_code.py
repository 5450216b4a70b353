"""`is` in code that a body calls: methods, functions of other packages, generators and the rest."""

from __future__ import annotations

import functools
import importlib
import logging
import re
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import culaunch as cl
from culaunch._function.tracing import followed

OTHER = '''
import contextlib
import functools

MISSING = object()


def same(a, b):
    return a is b


def true(flag):
    return flag is True


def kinds(n):
    return type(n) is int, type(n) == int, type(n) in (float, int), {int: "i"}[type(n)]


def framework(x):
    import numpy
    return isinstance(x, numpy.ndarray)


def number_of(x):
    return id(x)


def chosen(x, y, n):
    return x is (y if n else None)


def positions(many, wanted):
    for i, one in enumerate(many):
        if one is wanted:
            yield i


def matched(flag):
    match flag:
        case True:
            return "yes"
        case False:
            return "no"


@contextlib.contextmanager
def noting(into, flag):
    into.append(flag is True)
    yield into


def make():
    return lambda a, b: a is b


def default(x=None, y=MISSING):
    return x is None, y is MISSING, x is not MISSING, y is not None


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.is_one = args[0] is args[-1]
        return made


class Made(metaclass=Meta):
    def __init__(self, *args):
        self.args = args


class Sized:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __len__(self):
        return int(self.a is self.b)

    def key(self, _):
        return len(self)


class Box:
    """Each method compares by identity."""

    kind = int

    def __init__(self, a, b=None):
        self.a, self.b = a, b
        self.at_once = a is b

    def method(self, b):
        return self.a is b

    @classmethod
    def of_class(cls, a, b):
        return a is b

    @staticmethod
    def of_none(a, b):
        return a is b

    @property
    def found(self):
        return self.a is self.b

    def __call__(self, b):
        return self.a is b

    def __eq__(self, other):
        return self.a is other.a

    __hash__ = None

    def __getitem__(self, b):
        return self.a is b

    def __contains__(self, b):
        return self.a is b

    def __getattr__(self, name):
        return self.a is self.b

    def of_kind(self):
        return type(self.a) is self.kind

    class Inner:
        def __init__(self, a):
            self.a = a

        def method(self, b):
            return self.a is b
'''


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A package that is not the body's."""
    folder = tmp_path_factory.mktemp("other")
    (folder / "culaunch_other_package.py").write_text(OTHER)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("culaunch_other_package")
    sys.path.remove(str(folder))
    del sys.modules["culaunch_other_package"]


# Each compares two values by `is`, in code that no body's copy holds.
WAYS = {
    "function": lambda o, a, b: o.same(a, b),
    "method": lambda o, a, b: o.Box(a).method(b),
    "constructor": lambda o, a, b: o.Box(a, b).at_once,
    "class method": lambda o, a, b: o.Box.of_class(a, b),
    "static method": lambda o, a, b: o.Box.of_none(a, b),
    "property": lambda o, a, b: o.Box(a, b).found,
    "callable": lambda o, a, b: o.Box(a)(b),
    "equality": lambda o, a, b: o.Box(a) == o.Box(b),
    "index": lambda o, a, b: o.Box(a)[b],
    "membership": lambda o, a, b: b in o.Box(a),
    "attribute": lambda o, a, b: o.Box(a, b).anything,
    "nested class": lambda o, a, b: o.Box.Inner(a).method(b),
    "metaclass": lambda o, a, b: o.Made(a, b).is_one,
    "partial": lambda o, a, b: functools.partial(o.same, a)(b),
    "bound partial": lambda o, a, b: functools.partial(o.Box(a).method, b)(),
    "generator": lambda o, a, b: list(o.positions([a], b)) == [0],
    "lambda": lambda o, a, b: o.make()(a, b),
    "sorting": lambda o, a, b: [sorted([0], key=lambda _: o.same(a, b)), o.same(a, b)][1],
    "map": lambda o, a, b: next(iter(map(o.same, [a], [b]))),
    # Through a function of culaunch, which takes the place of Python's in a body.
    "length": lambda o, a, b: len(o.Sized(a, b)) == 1,
    "key": lambda o, a, b: min([o.Sized(a, b)], key=o.Sized(a, b).key).key(0) == 1,
    "reduce": lambda o, a, b: functools.reduce(o.same, [a, b]),
}


@pytest.mark.parametrize("name", WAYS)
def test_arrays_are_refused_with_the_line(emulated, other, name):
    way = WAYS[name]

    @cl.function
    def compared(x, y):
        return way(other, x, y)

    x = np.zeros(3, np.float32)
    for given in ((x, x.copy()), (x, x)):
        with pytest.raises(TypeError, match=r"at .*other_package.py:\d+: `.*is.*x and y cannot"):
            compared(*given)
        with cl.function_debugging(), pytest.raises(TypeError, match=r"other_package.py:\d+: "):
            compared(*given)


@pytest.mark.parametrize("name", WAYS)
def test_comparisons_of_numbers_are_bools(emulated, other, name):
    way = WAYS[name]

    @cl.function
    def compared(n: int):
        return way(other, n > 3, True), way(other, n > 3, n != 4), bool(way(other, n > 3, None))

    for order in ((1, 4, 7), (7, 4, 1)):
        for n in order * 2:
            wanted = (n > 3) is True, (n > 3) is (n != 4), False
            assert compared(n) == wanted
            with cl.function_debugging():
                assert compared(n) == wanted


def test_a_warm_function_that_calls_one_that_compares(emulated, other):
    # The interpreter has made quick forms of its calls by now, which enter functions on their own.
    def outer(a, b):
        box = other.Box(a, b)
        return box.at_once, box.found, box[b], box.method(b), other.same(a, b), a in other.Box(b)

    outer.__module__ = "another"
    for _ in range(10_000):
        outer(1, 1)

    class Outer:
        call = staticmethod(outer)

    @cl.function
    def compared(n: int):
        return Outer.call(n > 3, True)

    for n in (7, 1, 7):
        assert compared(n) == (n > 3,) * 6


def test_types_match_and_defaults(emulated, other):
    @cl.function
    def asked(x, n: int):
        noted = []
        with other.noting(noted, n > 3) as into:
            into.append(other.matched(n > 3))
        return (
            other.kinds(n), other.default(), other.default(x, n), other.Box(n).of_kind(), *noted,
            other.chosen(3.5, x, n), list(other.positions([x, None, n > 3], None)),
        )  # fmt: skip

    x = np.zeros(3)
    for n in (1, 5, 1):
        wanted = (
            (True, True, True, "i"), (True, True, True, True), (False, False, True, True), True,
            n > 3, "yes" if n > 3 else "no", False, [1],
        )  # fmt: skip
        assert asked(x, n) == wanted
        with cl.function_debugging():
            assert asked(x, n) == wanted


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda o, x, y, n: o.framework(x), r"share one recording"),
        (lambda o, x, y, n: o.number_of(x), r"id\(\) of x"),
        (lambda o, x, y, n: o.number_of(n), r"id\(\) of a number"),
        (
            lambda o, x, y, n: o.same(n, n + 1),
            r"numbers of a call cannot be compared with `is`: use ==",
        ),
        (
            lambda o, x, y, n: o.same(x.dtype, np.float32),
            r"element types cannot be compared with `is`",
        ),
        (lambda o, x, y, n: o.chosen(x, y, n), r"x and y cannot be compared with `is`"),
    ],
)
def test_refusals_name_the_line(emulated, other, call, message):
    @cl.function
    def refused(x, y, n: int):
        return call(other, x, y, n)

    x = np.zeros(3, np.float32)
    with pytest.raises(TypeError, match=rf"at .*other_package.py:\d+: .*{message}"):
        refused(x, x, 3)


def test_a_refusal_that_is_caught_stays_one(emulated, other):
    @cl.function
    def caught(x, y):
        try:
            return other.same(x, y)
        except TypeError:
            return False

    x = np.zeros(3)
    with pytest.raises(TypeError, match="compared with `is`"):
        caught(x, x)


def test_code_that_touches_no_stand_in_runs_as_it_is(emulated, other):
    sentinel = object()

    @cl.function
    def plain(n: int):
        logging.getLogger("culaunch-test").debug("n is %s", 3)
        found = re.compile(r"a(b|c)+").match("abc").group(1)
        return found, other.same(sentinel, sentinel), other.same(int, int), other.same("a", 3)

    assert plain(3) == ("c", True, True, False)


def test_what_a_body_leaves_behind_works_after_it(emulated, other):
    kept = []

    @cl.function
    def keeping(n: int):
        generator = other.positions([1, None, 2], None)
        assert next(generator) == 1
        kept.extend([other.make(), other.positions(["a", "b", "a"], "a")])
        next(kept[1])
        return n

    assert keeping(2) == 2
    same, generator = kept
    assert [same(3, 3), same([], [])] == [True, False]
    assert list(generator) == [2]
    before = other.same.__code__
    assert before.co_names == ()
    assert other.same.__code__ is before


def test_other_threads_are_left_alone(emulated, other):
    codes, stop = set(), threading.Event()

    def run():
        while not stop.is_set():
            codes.add(sys._getframe().f_code)
            assert other.same(codes, codes)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for n in range(40):
            assert cl.function(lambda n: other.true(n > 3))(n) is (n > 3)
    finally:
        stop.set()
        thread.join()
    assert codes == {run.__code__}


def test_a_body_with_too_many_names_is_refused(emulated):
    names = "\n".join(f"        x.name{i}" for i in range(256))
    text = f"def long(a, b, x=None):\n    if x:\n{names}\n    return a is b\n"
    space = {"__name__": __name__}
    exec(compile(text, "many_names.py", "exec"), space)
    long = space["long"]
    with pytest.raises(TypeError, match=r"long \(many_names.py:1\) must have at most 250 names"):
        cl.function(lambda n: long(n, n))(3)
    assert long(codes := [], codes)


def test_a_python_with_other_frames_is_warned_about(monkeypatch):
    monkeypatch.setattr(followed, "open_frames", lambda *_: False)
    with pytest.warns(RuntimeWarning, match=r"does not know the frames .*use =="):
        followed._open()
    monkeypatch.setattr(followed.sys, "hexversion", 0x30D00F0)
    tools = SimpleNamespace(get_tool=lambda _: "taken")
    monkeypatch.setattr(followed, "_monitoring", tools)
    with pytest.warns(RuntimeWarning, match=r"no free number of a tool.*in __init__"):
        assert followed._free_tool() is None


def test_a_module_that_is_imported_runs_as_it_is(emulated, tmp_path, monkeypatch):
    name = "culaunch_imported_in_a_body"
    (tmp_path / f"{name}.py").write_text(
        "def meta():\n"
        "    class Meta(type):\n"
        "        pass\n"
        "    return Meta, isinstance(Meta, type), type is type(Meta), isinstance\n"
        "META = meta()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    seen = []

    @cl.function
    def body(x):
        module = importlib.import_module(name)
        seen.append(module.META[1:])
        return x.shape[0] if module.META[0] is not None else 0

    assert body(np.zeros(3, np.float32)) == 3
    assert seen[0] == (True, True, isinstance)
