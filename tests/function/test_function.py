"""Functions: traced once for each kind, run natively, the same as their bodies as plain Python."""

import copy
import inspect
import pickle
from collections import namedtuple
from typing import Annotated, Any

import numpy as np
import pytest
from bodies import make_scale

import culaunch as cl

pytestmark = pytest.mark.usefixtures("emulated")


@pytest.fixture
def scale(kernels):
    return make_scale(kernels)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
@pytest.mark.parametrize("size", [1, 255, 1000])
def test_a_function_of_any_type(scale, dtype, size):
    x = np.arange(size).astype(dtype)
    for factor in (2.0, 3):
        y = scale(x, factor)
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(y, (x.astype("float32") * factor).astype(dtype))


def test_a_kind_is_traced_once(kernels):
    traced = []

    @cl.function
    def noted(x, n: int, name: str = "a"):
        traced.append(name)
        return n + x.shape[0]

    x = np.zeros(5, np.float32)
    assert [noted(x, n) for n in (1, 2, 3)] == [6, 7, 8]
    assert traced == ["a"]
    noted(x, 1, "b")
    noted(x[None], 1)
    noted(x.astype("int8"), 1)
    assert len(traced) == 4
    assert noted(x, n=9) == 14
    assert len(traced) == 4


def test_keywords_defaults_and_pythons_own_errors():
    @cl.function
    def f(a: int, /, b: int, c: int = 3, *, d: int = 4):
        return (a, b, c, d)

    assert f(1, 2) == (1, 2, 3, 4)
    assert f(1, b=5, d=6) == (1, 5, 3, 6)
    with pytest.raises(TypeError, match="missing"):
        f(1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'e'"):
        f(1, 2, e=1)
    with pytest.raises(TypeError):
        f(1, 2, 3, 4)


def test_star_arguments_are_refused_by_name():
    with pytest.raises(TypeError, match=r"\*rest.*fixed list"):
        cl.function(lambda x, *rest: None)
    with pytest.raises(TypeError, match=r"\*\*options"):
        cl.function(lambda x, **options: None)
    with pytest.raises(TypeError, match="Python function"):
        cl.function(len)


def test_it_looks_like_the_function_that_it_wraps(scale):
    assert scale.__name__ == "scale"
    assert scale.__doc__ == "y = x * factor."
    assert list(inspect.signature(scale).parameters) == ["x", "factor"]
    assert inspect.unwrap(scale) is scale.__wrapped__
    assert str(scale) == "scale(x, factor: float)"
    assert repr(scale) == "<culaunch.Function scale(x, factor: float)>"


@cl.function
def at_top(x):
    return x.shape


def test_it_is_copied_and_pickled_by_its_name(scale):
    assert copy.copy(at_top) is at_top
    assert copy.deepcopy(at_top) is at_top
    if __name__ in __import__("sys").modules:
        assert pickle.loads(pickle.dumps(at_top)) is at_top
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(scale)


def test_a_type_of_a_parameter_that_is_not_there_is_refused():
    @cl.function
    def dense(x: cl.Array("float32", "n"), w: cl.Array(cl.dtype_of("y"), "n")):
        return x

    x = np.zeros(3, np.float32)
    words = r"dense: the annotation of w says dtype_of\('y'\), but there is no parameter 'y'"
    with pytest.raises(ValueError, match=words):
        dense(x, x)


def test_explain_shows_the_program(scale):
    x = np.zeros(8, np.float32)
    text = scale.explain(x, 2.0)
    assert "scale(x: float32[_], factor: float), 1 path" in text
    assert "check x.is_contiguous(), else ValueError: x must be contiguous" in text
    assert "scale<float>[ceildiv(x.shape[0], 256), 256](a1, x, factor, x.shape[0])" in text
    assert "return a1" in text
    assert scale.explain() == text


Pair = namedtuple("Pair", "first second")


def test_what_may_be_returned(kernels):
    @cl.function
    def results(x, y, which: str, n: int = 3, z: float = 0.5):
        return {
            "none": None,
            "argument": x,
            "both": (y, x),
            "list": [x, n, z],
            "nested": ((n, (z,)), None, "text", 5, x.dtype),
            "named": Pair(n, x),
            "dict": {"a": x, "b": {"c": n}},
            "view": x[1:],
            "bool": n > 2,
        }[which]

    x, y = np.arange(4, dtype=np.float32), np.zeros(2)
    assert results(x, y, "none") is None
    assert results(x, y, "argument") is x
    both = results(x, y, "both")
    assert both[0] is y
    assert both[1] is x
    assert results(x, y, "list")[1:] == [3, 0.5]
    assert results(x, y, "nested") == ((3, (0.5,)), None, "text", 5, "float32")
    named = results(x, y, "named", 7)
    assert type(named) is Pair
    assert named.first == 7
    assert results(x, y, "dict")["b"] == {"c": 3}
    view = results(x, y, "view")
    assert view.tolist() == [1, 2, 3]
    view[0] = 9
    assert x[1] == 9
    assert results(x, y, "bool") is True
    assert results(x, y, "bool", 1) is False
    with pytest.raises(TypeError, match="must return"):
        cl.function(lambda x: object())(x)


def test_branches_are_recorded_as_they_come():
    traced = []

    @cl.function
    def branchy(x, n: int):
        traced.append(n)
        total = 0
        for i in range(n):
            total += i * x.shape[0]
        if x.shape[0] % 4 == 0 and n > 1:
            return total + 1000
        return total

    def plain(size, n):
        total = sum(i * size for i in range(n))
        return total + 1000 if size % 4 == 0 and n > 1 else total

    for _ in range(2):
        for size in (3, 4, 8, 9):
            for n in (0, 1, 3):
                assert branchy(np.zeros(size), n) == plain(size, n)
    assert len(traced) == 6


def test_too_many_paths_name_the_branch():
    @cl.function
    def looping(n: int):
        return len(range(n))

    for n in range(64):
        assert looping(n) == n
    with pytest.raises(ValueError, match=r"test_function.py:\d+: `return len.*64 paths.*for 0, 1"):
        looping(100)
    assert looping(63) == 63


def test_mutated_arguments_are_found(kernels):
    @cl.function
    def into(y, x, factor: float):
        kernels["scale<float>"][1, 256](y, x, factor, x.size)

    assert into.mutates == ()
    x, y = np.ones(5, np.float32), np.zeros(5, np.float32)
    assert into(y, x, 2.0) is None
    assert y.tolist() == [2] * 5
    assert into.mutates == ("y",)
    assert into.may_mutate == ()
    assert "writes y" in str(into)
    declared = cl.function(mutates=("x",))(into.__wrapped__)
    assert declared.mutates == ("x",)
    with pytest.raises(ValueError, match=r"parameters of .*, which are y, x, factor"):
        cl.function(mutates=("q",))(into.__wrapped__)


def test_functions_call_functions(kernels, scale):
    @cl.function
    def twice(x, factor: float):
        return scale(scale(x, factor), factor=2)

    x = np.arange(5, dtype=np.float32)
    assert twice(x, 3.0).tolist() == (x * 6).tolist()
    assert twice.explain(x, 3.0).count("scale<float>[") == 2


def helper(n, size=None):
    return max(cl.ceildiv(n, 4), 1) if size is None else min(n, size)


def test_helpers_are_part_of_the_body():
    @cl.function
    def uses(n: int):
        inner = lambda value: helper(value) + 1  # noqa: E731
        return inner(n), helper(n, size=7)

    for n in (0, 1, 5, 100):
        assert uses(n) == (max(-(-n // 4), 1) + 1, min(n, 7))
    assert ", 1 path" in uses.explain(3)


def test_types_of_numbers_are_pythons():
    @cl.function
    def kinds(n: int, z: float):
        values = (n, z, n > 1, 3, 2.5, True, "a", None)
        return (
            [isinstance(value, int) for value in values],
            [isinstance(value, (float, str)) for value in values],
            [type(value) is int for value in values],
            [type(value) is float or type(value) is bool for value in values],
            [{int: "i", float: "f", bool: "b"}.get(type(value), "?") for value in values],
            [int(z), int("7"), float(n), int is int, issubclass(bool, int), isinstance(int, type)],
        )

    expected = kinds.__wrapped__(5, 2.75)
    assert kinds(5, 2.75) == expected
    assert kinds(5, 2.75) == expected


def test_lists_and_tuples_of_arrays(kernels):
    @cl.function
    def stack(arrays, factor: float):
        y = cl.empty((len(arrays), arrays[0].shape[0]), arrays[0].dtype)
        for i, x in enumerate(arrays):
            kernels["scale<float>"][1, 64](y[i], x, factor, x.size)
        return y

    for make in (list, tuple):
        xs = make(np.full(3, i, np.float32) for i in range(4))
        assert stack(xs, 2.0).tolist() == [[2.0 * i] * 3 for i in range(4)]
    assert stack([np.ones(2, np.float32)], 1.0).tolist() == [[1, 1]]


def test_static_arguments_choose_the_program():
    @cl.function
    def static(x, dtype, flag: bool = False, mode: str = "a", spec=(1, 2)):
        return f"{dtype}", flag, mode, spec[0], x is None

    assert static(None, np.dtype("float32")) == ("float", False, "a", 1, True)
    assert static(None, np.float16, True, "b", (5,)) == ("__half", True, "b", 5, True)
    assert static(np.zeros(1), "int8")[0] == "int8"


def test_live_mode_is_the_same(scale):
    x = np.arange(10, dtype=np.float32)
    expected = scale(x, 3.0)
    with cl.function_debugging():
        np.testing.assert_array_equal(scale(x, 3.0), expected)
        with pytest.raises(ValueError, match="x must be contiguous"):
            scale(x[::2], 3.0)
    live = cl.function(debug=True)(scale.__wrapped__)
    np.testing.assert_array_equal(live(x, 3), expected)


def test_live_mode_runs_each_time():
    seen = []

    @cl.function(debug=True)
    def f(x, n: int):
        seen.append((type(n), x.shape))
        return n

    assert [f(np.zeros(2), i) for i in range(3)] == [0, 1, 2]
    assert seen == [(int, (2,))] * 3


def test_annotations_check_and_bind(kernels):
    @cl.function
    def dense(
        x: cl.Array("float32 | float64", "b n"),
        w: cl.Array(cl.dtype_of("x"), "n"),
        bias: cl.Array | None = None,
        n: int = 3,
        out: Annotated[Any, cl.Array(dims="... 4")] = None,
    ):
        return x.shape[0]

    x, w = np.zeros((2, 4), np.float32), np.zeros(4, np.float32)
    assert dense(x, w) == 2
    five, wide = np.zeros(5, np.float32), w.astype(np.float64)
    for arguments, error, message in (
        ((x, five), ValueError, "w has 5 elements along n, but x has 4"),
        ((x[:, :3], five), ValueError, "w has 5 elements along n, but x has 3"),
        ((x, wide), TypeError, "argument w must have the element type of x, float32"),
        (
            (x.astype("i4"), w),
            TypeError,
            "x must be an array of float32 or float64 .got an",
        ),
        ((w, w), ValueError, "argument x must have 2 dimensions, b n .got 1"),
        ((x, w, 3), TypeError, "argument bias must be an array or None .got"),
        ((x, w, None, 2.5), TypeError, "argument n must be an int .got"),
        ((None, w), TypeError, "argument x must be an array .got None"),
        ((x, w, None, 3, np.zeros((2, 5))), ValueError, "out must have 4 elements along 4"),
    ):
        with pytest.raises(error, match=message):
            dense(*arguments)
    assert dense(x, w, out=np.zeros((2, 2, 4))) == 2
    assert str(dense).startswith(
        "dense(x: Array('float32 | float64', 'b n'), w: Array(dtype_of('x'), 'n')"
    )
