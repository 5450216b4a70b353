"""Every argument is specialized exactly as in Triton: type and key, on random lists."""

import enum
import random
from collections import namedtuple

import pytest

pytestmark = pytest.mark.needs("triton", "torch")

ROUNDS = 10_000
Pair = namedtuple("Pair", "a b")


class Size(enum.IntEnum):
    ONE = 1
    BIG = 32


class Integer(int):
    pass


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    import numpy as np
    import torch
    import triton.language as tl
    from triton.runtime.jit import MockTensor, TensorWrapper
    from triton.tools.tensor_descriptor import TensorDescriptor

    x = torch.zeros(64)
    types = (torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int16, torch.int32,
             torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool,
             torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz,
             torch.float8_e5m2fnuz)  # fmt: skip
    tensors = [torch.zeros(64, dtype=kind) for kind in types]
    tensors += [x, x[1:], x[4:], torch.empty(0), torch.nn.Parameter(x), torch.tensor(1.0),
                TensorWrapper(torch.zeros(8, dtype=torch.int8), tl.float8e5),
                MockTensor(torch.float32)]  # fmt: skip
    ints = [0, 1, -1, 2, 16, -16, 48, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, 2**63,
            2**64 - 1, 2**64 - 16, -(2**63), 2**64, 2**70, True, False, Size.ONE, Size.BIG,
            Integer(1), Integer(7)]  # fmt: skip
    others = [None, 1.5, float("inf"), np.float64(2.0), tl.constexpr(5), (), "text", [1],
              np.int64(1), np.float32(1), np.bool_(True), tl.float32, object()]  # fmt: skip
    matrix = torch.zeros(64, 64, dtype=torch.float16)
    descriptors = [
        TensorDescriptor.from_tensor(matrix, [16, 32]),
        TensorDescriptor.from_tensor(matrix, [64, 64]),
        TensorDescriptor.from_tensor(torch.zeros(4, 8, 8), [1, 8, 8]),
    ]
    return {"tensor": tensors, "int": ints, "other": others, "descriptor": descriptors}


def draw(rng, values, depth=0):
    kind = rng.choice(["tensor", "int", "int", "other", "descriptor", "tuple"])
    if kind == "tuple":
        if depth > 2:
            return rng.randrange(40)
        items = [draw(rng, values, depth + 1) for _ in range(rng.randrange(4))]
        return Pair(*items) if len(items) == 2 and rng.random() < 0.5 else tuple(items)
    return rng.choice(values[kind])


def compatible(rng, values, annotation):
    """Draw what Triton's launcher takes for an annotated parameter."""
    if annotation.startswith("*"):
        return rng.choice([*values["tensor"], None])
    if annotation in ("fp64", "fp16"):
        return rng.choice([1.5, 2, True, 0.0])
    bits = {"u1": 1, "u16": 16, "i32": 31, "i64": 63}[annotation]
    return rng.choice([0, 1, True, 16, rng.randrange(2**bits), rng.randrange(2**bits) & ~15])


def kernels():
    from kernels_to_bind import KERNELS

    return KERNELS


@pytest.fixture(scope="module")
def cases(recorder_module):
    """Pair each kernel with Triton's binder and our dispatcher."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend
    from triton.runtime import jit

    from culaunch._triton.calls import dispatcher, parameters

    backend = make_backend(GPUTarget("cuda", 90, 32))
    found = []
    for kernel in kernels():
        binder = jit.create_function_from_signature(kernel.signature, kernel.params, backend)
        ours = dispatcher.Dispatcher(kernel.__name__, parameters.parameters_of(kernel, frozenset()))
        ours._set_driver(recorder_module.core, None)
        found.append((kernel, binder, ours))
    return found


def equal(ours, theirs):
    """Compare, with the identity of types that Triton's cache key has."""
    if isinstance(ours, tuple) and isinstance(theirs, tuple):
        return (
            type(ours) is type(theirs)
            and len(ours) == len(theirs)
            and all(map(equal, ours, theirs))
        )
    return (
        ours is theirs
        or (type(ours) is type(theirs) and bool(ours == theirs))
        or (isinstance(ours, int) and isinstance(theirs, int) and ours == theirs)
    )


def is_representable(value):
    """Triton 3.4 takes ints of any size here, and fails at the launch."""
    if isinstance(value, tuple):
        return all(map(is_representable, value))
    return not isinstance(value, int) or -(2**63) <= value < 2**64


@pytest.mark.slow
@pytest.mark.memory
def test_random_argument_lists(cases, values):
    rng = random.Random(6)
    compared = refused = 0
    for _ in range(ROUNDS):
        kernel, binder, ours = rng.choice(cases)
        args = []
        for parameter in kernel.params:
            if parameter.annotation_type:
                args.append(compatible(rng, values, parameter.annotation_type))
            elif parameter.is_constexpr:
                args.append(rng.choice([1, 1.5, "text", None, True]))
            else:
                args.append(draw(rng, values))
        kwargs = {}
        if rng.random() < 0.3:  # some by name, in any order
            cut = rng.randrange(len(args))
            names = [one.name for one in kernel.params]
            kwargs = dict(zip(names[cut:], args[cut:], strict=True))
            kwargs = dict(rng.sample(sorted(kwargs.items()), len(kwargs)))
            args = args[:cut]
        good = all(map(is_representable, [*args, *kwargs.values()]))
        try:
            expected = binder(*args, **kwargs)[1]
        except (TypeError, OverflowError):
            expected = None
        if expected is None or not good:
            with pytest.raises((TypeError, OverflowError)):
                ours._specialize(tuple(args), kwargs)
            refused += 1
            continue
        found = ours._specialize(tuple(args), kwargs)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=False):
            assert equal(tuple(one), tuple(other)), (args, kwargs, found, expected)
        compared += 1
    assert compared > 2_500
    assert refused > 100


@pytest.mark.parametrize("name", ["int", "tensor", "other", "descriptor"])
def test_each_value_alone(cases, values, name):
    """Values that a random list might hide behind a refused neighbor."""
    _, binder, ours = cases[0]
    for value in values[name]:
        args = (value, 3, 3, 3, 3)
        try:
            expected = binder(*args)[1]
        except (TypeError, OverflowError):
            expected = None
        if expected is None or not is_representable(value):
            with pytest.raises((TypeError, OverflowError), match="argument 'a' of plain"):
                ours._specialize(args, {})
        else:
            assert equal(tuple(ours._specialize(args, {})[0]), tuple(expected[0])), value


def test_defaults_and_mixing(cases):
    _, binder, ours = cases[2]
    for args, kwargs in [
        ((5, 6, 7), {}),
        ((5,), {"BLOCK": 8, "N": 16}),
        ((), {"BLOCK": 8, "N": 16, "a": 1, "b": 32}),
        ((5, 6, 7, 8, 9, 10), {}),
        ((5, 6), {"BLOCK": 4, "FLAG": "x", "num_warps": 8}),
    ]:
        assert ours._specialize(args, kwargs) == list(binder(*args, **kwargs)[1])


def test_binding_errors(cases):
    ours = cases[2][2]
    with pytest.raises(TypeError, match=r"constants\(\) is missing argument 'BLOCK'"):
        ours._specialize((1, 2), {})
    with pytest.raises(TypeError, match=r"is missing argument 'N'"):
        ours._specialize((1,), {"BLOCK": 2})
    with pytest.raises(TypeError, match="two values for argument 'a'"):
        ours._specialize((1, 2, 3), {"a": 4})
    with pytest.raises(TypeError, match=r"takes 6 arguments .* but 7 positional"):
        ours._specialize((1, 2, 3, 4, 5, 6, 7), {})


@pytest.mark.parametrize(
    ("position", "value", "error", "words"),
    [
        (2, 2**63, OverflowError, "'n' of annotated.* does not fit i64"),
        (3, -1, OverflowError, "'m' .* does not fit u16"),
        (3, 2**16, OverflowError, "does not fit u16"),
        (2, 1.5, TypeError, "declared type i64"),
        (4, "x", TypeError, "declared type fp64"),
        (0, (1, 2), TypeError, r"declared type \*fp32"),
        (7, "x", TypeError, "must be a tensor, an int"),
    ],
)
def test_annotated_values_are_checked(cases, position, value, error, words):
    args = [None, None, 1, 1, 1.0, 1.0, True, 1]
    args[position] = value
    with pytest.raises(error, match=words):
        cases[1][2]._specialize(tuple(args), {})
