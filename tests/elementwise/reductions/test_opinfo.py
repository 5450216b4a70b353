"""Reductions against PyTorch, on the samples of PyTorch's own tests (OpInfo).

``make suites`` runs them: to import these samples alone takes some ten seconds.
"""

import functools

import pytest

from culaunch import elementwise as ew

pytestmark = [
    pytest.mark.needs("torch", "expecttest", "CULAUNCH_WHOLE_SUITES"),
    pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0:UserWarning"),
]

DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "uint8",
    "bool",
    "complex64",
)
# PyTorch's name of each, and ours.
NAMES = {
    "sum": "sum", "prod": "prod", "amax": "max", "amin": "min", "mean": "mean", "var": "var",
    "std": "std", "any": "any", "all": "all", "argmax": "argmax", "argmin": "argmin",
    "logsumexp": "logsumexp", "linalg.vector_norm": "norm",
}  # fmt: skip


@functools.cache
def operations():
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.name: op for op in op_db if op.name in NAMES and not op.variant_test_name}


@functools.cache
def reducing(name, options):
    return ew.fuse(lambda x: getattr(ew, name)(x, **dict(options)))


def options_of(name, sample):
    """Return the options of a sample in our words; None if it has one that we do not have."""
    given, args = dict(sample.kwargs), list(sample.args)
    options = {}
    if name == "norm":
        options["ord"] = args.pop(0) if args else given.pop("ord", 2)
        if options["ord"] not in (1, 2, float("inf"), -float("inf")):
            return None
    axis = args.pop(0) if args else given.pop("dim", None)
    # An empty tuple means all dimensions in PyTorch.
    options["axis"] = (tuple(axis) or None) if isinstance(axis, (list, tuple)) else axis
    options["keepdims"] = args.pop(0) if args else given.pop("keepdim", False)
    if name in ("var", "std"):
        is_unbiased = given.pop("unbiased", True)
        correction = given.pop("correction", None)
        options["correction"] = int(is_unbiased) if correction is None else float(correction)
    dtype = given.pop("dtype", None)
    if dtype is not None:
        options["dtype"] = dtype
    return None if given or args or (dtype is not None and name not in ("sum", "prod")) else options


def differs_by_design(name, dtype, sample):
    """Whether NumPy's rules, which are ours, differ from PyTorch's."""
    is_scalar = sample.input.ndim == 0  # it has an axis 0 in PyTorch
    return is_scalar or (name == "logsumexp" and (dtype.is_complex or not dtype.is_floating_point))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operation", NAMES)
def test_a_reduction_agrees_with_pytorch_on_its_own_samples(operation, dtype, monkeypatch):
    import torch

    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    dtype, name = getattr(torch, dtype), NAMES[operation]
    op = operations()[operation]
    if dtype not in op.dtypes:
        assert dtype not in (torch.float32, torch.float64)
        return
    compared = 0
    for sample in op.sample_inputs("cpu", dtype):
        options = options_of(name, sample)
        if options is None or differs_by_design(name, dtype, sample):
            continue
        wanted = op.op(sample.input, *sample.args, **sample.kwargs)
        got = reducing(name, tuple(options.items()))(sample.input)
        if dtype is torch.uint8:  # sums are uint64 and any is bool, as in NumPy
            got = got.to(wanted.dtype)
        torch.testing.assert_close(got, wanted, equal_nan=True)
        compared += 1
    assert compared or name == "logsumexp"
