"""Functions that no operator can be."""

from typing import Any

import pytest

import culaunch as cl

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch")]


def whole(x):
    return x


def view(x):
    return x[1:]


def on_one_path(x):
    return x if x.shape[0] == 17 else cl.empty_like(x)


def twice(x):
    y = cl.empty_like(x)
    return y, y.reshape(-1)


def nested(x):
    return cl.empty_like(x), (cl.empty_like(x), 1)


def in_dict(x):
    return {"y": cl.empty_like(x)}


def in_tuple(x):
    return (cl.empty_like(x),)


def with_none(x):
    return cl.empty_like(x), None


def without_arrays(n: int):
    return n


def complex_number(x, factor: complex = 1j):
    return cl.empty_like(x)


def infinite(x, factor: float = float("inf")):
    return cl.empty_like(x)


def different(x):
    return cl.empty_like(x) if x.shape[0] > 3 else (cl.empty_like(x), 1)


def counted(x, n: int):
    for _ in range(n):
        x.is_contiguous()
    return cl.empty_like(x)


def far(x, n: int):
    cl.check(n > 5000, "n must be large")
    for _ in range(n - 4990):
        x.is_contiguous()
    return cl.empty_like(x)


REFUSED = {
    whole: "whole returns its argument x, but torch forbids",
    view: "view returns a view of an argument, but torch forbids",
    on_one_path: "returns its argument x, but torch forbids",
    twice: "two arrays in the same memory",
    nested: "a nested tuple",
    in_dict: "a dict",
    in_tuple: "without the tuple",
    with_none: "that contains None",
    without_arrays: "must have an array parameter",
    complex_number: "parameter factor is",
    infinite: "a default that torch's schemas support .got inf",
    different: "on one path and .* on another",
    far: "pass schema=",
}


@pytest.mark.parametrize("body", REFUSED, ids=lambda body: body.__name__)
def test_a_function_that_no_operator_can_be(body, name, torch):
    with pytest.raises(TypeError, match=REFUSED[body]):
        cl.frameworks.torch_op(name, cl.function(body))
    assert not hasattr(torch.ops.culaunch_test, name.partition("::")[2])


def test_what_a_later_path_does_is_held_against_the_schema(kernels, name, torch):
    @cl.function
    def late(x, word: str = "new"):
        if word == "same":
            return x
        if word == "write":
            kernels["scale<float>"][1, 32](x, x, 2.0, x.size)
        return cl.empty_like(x)

    op = cl.frameworks.torch_op(name, late)
    x = torch.ones(3)
    assert op(x).shape == (3,)
    for call in (op, late):
        with pytest.raises(TypeError, match="returns its argument x"):
            call(x, "same")
        with pytest.raises(TypeError, match=r"writes x for these arguments, .*mutates="):
            call(x, "write")
    assert torch.equal(x, torch.ones(3))


def test_a_schema_may_be_given(name, torch):
    op = cl.frameworks.torch_op(
        name, cl.function(counted), schema="(Tensor x, SymInt n=2) -> Tensor"
    )
    assert op(torch.ones(3)).shape == (3,)
    with pytest.raises(
        ValueError, match=r"schema must have the parameters of the function, x, n .got y"
    ):
        cl.frameworks.torch_op(f"{name}b", cl.function(counted), schema="(Tensor y) -> Tensor")


def test_a_schema_says_what_the_declaration_leaves_open(name, torch):
    """A number where a tensor was read for it ended the process."""

    def filled(x, n, w, flag, dtype):
        return cl.empty((n,), dtype), n + (w is None), flag

    schema = (
        "(Tensor x, SymInt n, Tensor? w, bool flag, ScalarType dtype) -> (Tensor, SymInt, bool)"
    )
    op = cl.frameworks.torch_op(name, cl.function(filled), schema=schema)
    x = torch.ones(3)
    for call in (op, op.overload):
        made, number, flag = call(x, 5, None, True, torch.float64)
        assert (made.shape, made.dtype, number, flag) == ((5,), torch.float64, 6, True)
        assert call(x, 5, x, False, torch.int32)[1:] == (5, False)
    for types, word in (
        (schema.replace("SymInt n", "Scalar n"), r"parameter n in schema .* .got number"),
        (
            schema.replace("Tensor, SymInt, bool)", "Tensor[], int)"),
            r"result in schema .* .got Tensor\[\]",
        ),
    ):
        with pytest.raises(ValueError, match=word):
            cl.frameworks.torch_op(f"{name}b", cl.function(filled), schema=types)


def test_an_annotation_may_say_nothing(name):
    @cl.function
    def anything(x: Any, y: object, n: int):
        return cl.empty_like(x)

    assert (
        cl.frameworks.torch_op(name, anything).schema
        == f"{name}(Tensor x, Tensor y, SymInt n) -> Tensor"
    )


def test_a_body_that_needs_a_number_is_called_before(name, torch):
    function = cl.function(far)
    assert function(torch.ones(3), 5001).shape == (3,)
    op = cl.frameworks.torch_op(name, function, schema="(Tensor x, SymInt n) -> Tensor")
    assert op(torch.ones(3), 5001).shape == (3,)
    called = cl.frameworks.torch_op(f"{name}b", function)
    assert called.schema.endswith("(Tensor x, int n) -> Tensor".replace("int", "SymInt"))
