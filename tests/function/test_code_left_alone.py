"""Following the calls of a body changes nothing for code that handles no stand-in."""

from __future__ import annotations

import builtins
import gc
import importlib
import operator
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import culaunch as cl

# Each function compares by `is`, so a body runs other code in its place.
OTHER = """
import builtins
import sys
import warnings
from operator import is_, is_not


def metaclass():
    class Meta(type):
        def __call__(cls, *args):
            return type.__call__(cls, *args), cls is Made

    class Made(metaclass=Meta):
        pass

    return Meta, Made()


def created():
    kind = type("Created", (), {})
    facts = isinstance(kind, type), type[int], {type: 1}[type], type is type(kind)
    return kind, kind is None, *facts


def matched(value):
    match value:
        case type():
            return True
    return type is value


def executed():
    space = {"seen": executed is None}
    exec("def later(x): return isinstance(x, int), type(x), ascii(x), x is None", space)
    return space["later"]


def late():
    def read():
        return culaunch_late_name, read is None
    builtins.culaunch_late_name = 5
    return read()


class Noisy(type):
    def __instancecheck__(cls, value):
        warnings.warn("this class is old", DeprecationWarning, stacklevel=2)
        return value is not None


class Old(metaclass=Noisy):
    pass


def is_old(value):
    return isinstance(value, Old), value is None


def imported(name):
    if name is None:
        return None
    import culaunch_old_module
    return culaunch_old_module


def operators(a, b):
    return is_(a, b), is_not(a, b), list(map(is_, [a], [b]))


def one_operand(a):
    return is_(a), a is None


def codes(values):
    for one in values:
        yield sys._getframe().f_code, isinstance(one, int), one is None


def catching(seen):
    try:
        yield 1
    except ValueError as error:
        seen.append(error.args[0] is error.args[1])
    yield 2
"""
NAMES = 300


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A package that is not the body's."""
    folder = tmp_path_factory.mktemp("left_alone")
    (folder / "culaunch_left_alone.py").write_text(OTHER)
    (folder / "culaunch_old_module.py").write_text(
        "import warnings\nwarnings.warn('this module is old', DeprecationWarning, stacklevel=2)\n"
    )
    many = "".join(f"        x.name{i}\n" for i in range(NAMES))
    (folder / "culaunch_many_names.py").write_text(
        f"def compared(a, b, x=None):\n    if x:\n{many}"
        "    import math\n    return a is b, a is not b, math.inf, x is not None\n"
    )
    sys.path.insert(0, str(folder))
    yield importlib.import_module("culaunch_left_alone")
    sys.path.remove(str(folder))
    for name in ("culaunch_left_alone", "culaunch_old_module", "culaunch_many_names"):
        sys.modules.pop(name, None)


def in_body(function, *args):
    """Call a function in a body, and return what it gave there."""
    seen = []

    def body(n: int):
        seen.append(function(*args))
        return n

    assert cl.function(body)(3) == 3
    return seen[0]


def test_classes_are_made_as_ever(emulated, other):
    meta, (made, is_made) = in_body(other.metaclass)
    assert meta.__mro__ == (meta, type, object)
    assert (type(type(made)), is_made) == (meta, True)
    kind, *facts = in_body(other.created)
    assert kind.__module__ == "culaunch_left_alone"
    assert facts == [False, True, type[int], 1, True]


def test_a_class_pattern_of_type(emulated, other):
    assert [in_body(other.matched, one) for one in (int, type, 3)] == [True, True, False]


def test_functions_that_are_made_in_a_body_work_after_it(emulated, other, monkeypatch):
    later = in_body(other.executed)
    assert later(3) == (True, int, "3", False)
    monkeypatch.setattr(builtins, "ascii", lambda _: "replaced")
    assert later(3) == (True, int, "replaced", False)
    assert "ascii" in later.__globals__["__builtins__"]


def test_builtins_may_change(emulated, other, monkeypatch):
    monkeypatch.setattr(builtins, "culaunch_late_name", 1, raising=False)
    assert in_body(other.late) == (5, False)
    assert cl.function(lambda n: culaunch_late_name + n)(3) == 8  # noqa: F821


def test_warnings_name_the_line_that_caused_them(emulated, other):
    for function, args, line in (
        (other.is_old, (3,), "isinstance(value, Old)"),
        (other.imported, ("x",), "import culaunch_old_module"),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            in_body(function, *args)
        (warning,) = caught
        assert warning.filename == other.__file__
        assert line in OTHER.splitlines()[warning.lineno - 1]


def test_code_with_builtins_of_its_own_keeps_them(emulated):
    space = {"__builtins__": {"Exception": Exception, "isinstance": isinstance, "str": str}}
    text = (
        "def boxed(a, b):\n"
        "    try:\n        found = len\n"
        "    except Exception:\n        found = 'no len'\n"
        "    try:\n        import math\n"
        "    except Exception as error:\n"
        "        return a is b, isinstance(a, b), found, str(error)\n"
    )
    exec(text, space)
    assert in_body(space["boxed"], int, type) == (False, True, "no len", "__import__ not found")


@pytest.mark.parametrize("flag", [True, False])
def test_code_with_many_names_compares(emulated, other, flag):
    many = importlib.import_module("culaunch_many_names")
    assert len(many.compared.__code__.co_names) > NAMES

    class Caller:
        call = staticmethod(many.compared)

    @cl.function
    def asked(n: int):
        return Caller.call(n > 3, flag)

    for n in (1, 5, 1):
        same = (n > 3) is flag
        assert asked(n) == (same, not same, float("inf"), False)


def test_operators_of_other_packages_answer(emulated, other):
    held, plain = operator.is_, (operator.is_(3, 3), operator.is_not([], []))

    @cl.function
    def asked(n: int):
        return other.operators(n > 3, True)

    for n in (5, 1, 5):
        assert asked(n) == (n > 3, n <= 3, [n > 3])
    x = np.zeros(3, np.float32)
    with pytest.raises(TypeError, match=r"alone.py:\d+: `.*is_.*x and y cannot be compared"):
        cl.function(lambda x, y: other.operators(x, y))(x, x)
    with pytest.raises(TypeError, match=r"is_ expected 2 arguments, got 1"):
        in_body(other.one_operand, 1)
    assert held is operator.is_
    assert plain == (operator.is_(3, 3), operator.is_not([], [])) == (True, True)


def test_an_error_that_is_thrown_into_a_generator(emulated, other):
    for n in (5, 1):
        seen = []
        generator = other.catching(seen)
        next(generator)

        @cl.function
        def throwing(n: int):
            generator.throw(ValueError(n > 3, True))  # noqa: B023 - it runs at once
            return seen.pop()  # noqa: B023

        assert throwing(n) is (n > 3)


def test_a_generator_goes_on_in_one_code(emulated, other):
    found = in_body(lambda: list(other.codes([1, "a", None])))
    assert [facts for _, *facts in found] == [[True, False], [False, False], [False, True]]
    assert len({id(code) for code, *_ in found}) == 1
    assert found[0][0] is not other.codes.__code__


def test_finalizers_do_not_belong_to_the_body(emulated, kernels):
    y = cl.zeros(4, "int32")
    fill, ran = kernels["fill<int>"], []

    class Launching:
        def __init__(self):
            self.me = self

        def __del__(self):
            ran.append(threading.get_ident())
            fill[1, 4](y, len(ran), 4)

    @cl.function
    def collecting(x, n: int):
        gc.collect()
        fill[1, 4](x, n, 4)
        return n

    x = cl.zeros(4, "int32")
    gc.disable()
    try:
        Launching()
        assert [collecting(x, n) for n in (7, 8, 9)] == [7, 8, 9]
    finally:
        gc.enable()
    assert (len(ran), y.numpy().tolist(), x.numpy().tolist()) == (1, [1] * 4, [9] * 4)
    assert "fill" in collecting.explain(x, 7)
    assert collecting.explain(x, 7).count("fill") == 1


@pytest.mark.parametrize("catches", [False, True])
def test_another_thread_is_refused_with_the_line(emulated, catches):
    @cl.function
    def threaded(n: int):
        with ThreadPoolExecutor(1) as pool:
            try:
                return pool.submit(lambda: n + 1).result()
            except TypeError:
                if not catches:
                    raise
                return 0

    with pytest.raises(TypeError, match=r"at .*test_code_left_alone.py:\d+: .*in another thread"):
        threaded(3)


def test_what_culaunch_runs_on_its_own_is_not_followed(emulated, image, tmp_path):
    codes, marker = [], object()
    (tmp_path / "image").write_bytes(image.data)

    class Path:
        def __fspath__(self):
            codes.append(sys._getframe().f_code)
            return str(tmp_path / "image") if marker is not None else ""

        def asked(self, flag):
            codes.append(sys._getframe().f_code)
            return flag is True

    @cl.function
    def loading(x, n: int):
        path = Path()
        cl.load(path)["fill<int>"][1, 4](x, n, 4)
        return path.asked(n > 1)

    x = cl.zeros(4, "int32")
    assert loading(x, 2) is True
    assert x.numpy().tolist() == [2] * 4
    assert codes[0] is Path.__fspath__.__code__
    assert codes[-1] is not Path.asked.__code__
