"""Junk for the arguments of Triton kernels and of the sets that are saved of them."""

import functools
import os

import pytest
from junk import Odd, wrong_answers

from culaunch import testing

pytestmark = pytest.mark.needs("triton", "torch")

SIGNATURE = "*fp32, *fp32, fp32, i32"


@pytest.fixture(autouse=True)
def emulator(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    # A null pointer is a fault, of all later launches too: it ends with the driver's choice.
    with testing.use_driver("emulator"):
        yield


def face():
    import culaunch.triton

    return culaunch.triton


@functools.cache
def jit():
    import kernels_of_triton

    return kernels_of_triton.scale


@functools.cache
def native():
    return face().native(jit())


@functools.cache
def saved():
    made = face().compile(jit(), SIGNATURE, arch="sm_80", constants={"BLOCK": 64}, keep_ptx=True)
    assert made.variants
    return made


@functools.cache
def given():
    import torch

    x = torch.ones(64)
    return {"y_ptr": torch.zeros(64), "x_ptr": x, "factor": 2.0, "n": 64, "BLOCK": 64}


def installed(**keywords):
    with face().install(**keywords):
        pass


@functools.cache
def with_grid():
    return face().compile(
        jit(),
        SIGNATURE,
        arch="sm_80",
        constants={"BLOCK": 64},
        keep_ptx=True,
        grid="cdiv(n, BLOCK)",
    )


@functools.cache
def of_descriptors():
    import kernels_of_triton

    kind = "tensordesc<fp32[8, 8]>"
    return face().compile(kernels_of_triton.copy_block, f"{kind}, {kind}", arch="compute_80")


def described(**call):
    of_descriptors()[(1,)](face().TensorDescriptor(**call), face().TensorDescriptor(**call))


def block():
    import torch

    return {"base": torch.ones(64, 64), "shape": [64, 64], "strides": [64, 1],
            "block_shape": [8, 8], "padding": "zero"}  # fmt: skip


def from_tensor(tensor, **call):
    made = face().TensorDescriptor.from_tensor(tensor, **call)
    of_descriptors()[(1,)](made, made)


COMPILED = {"signature": SIGNATURE, "arch": "sm_80", "constants": {"BLOCK": 64}, "grid": "n"}
CALLS = {
    "compile": lambda: (face().compile, {**COMPILED, "kernel": jit()}),
    "from_cache": lambda: (face().from_cache, {"directory": ".", "signature": SIGNATURE}),
    "from_compiled": lambda: (face().from_compiled, {"kernel": Odd(), "signature": None}),
    "install": lambda: (installed, {"include": "junk*", "exclude": ()}),
    "report": lambda: (face().report, {"clear": False}),
    "native": lambda: (face().native, {"kernel": Odd()}),
    "KernelSet.load": lambda: (face().KernelSet.load, {"source": b"junk"}),
    "KernelSet.merge": lambda: (lambda other: saved().merge(other), {"other": saved()}),
    "KernelSet.read": lambda: (saved().read, {"member": "junk"}),
    "KernelSet.save": lambda: (saved().save, {"path": "k.culib"}),
    "KernelSet.write_c": lambda: (
        saved().write_c, {"path": "k.c", "name": "k", "prefix": "my_", "as_object": True,
                           "machine": "aarch64"}
    ),
    "KernelSet.__getitem__": lambda: (lambda grid: saved()[grid](**given()), {"grid": (1,)}),
    "KernelSet.__call__": lambda: (lambda **call: with_grid()(**call), given()),
    "TensorDescriptor": lambda: (described, block()),
    "TensorDescriptor.from_tensor": lambda: (
        from_tensor, {"tensor": block()["base"], "block_shape": [8, 8], "padding": "zero"}
    ),
    "KernelSet()": lambda: (lambda **call: saved()[(1,)](**call), given()),
    "NativeKernel": lambda: (face().NativeKernel, {"function": Odd(), "tuner": None}),
    "NativeKernel.__getitem__": lambda: (lambda grid: native()[grid](**given()), {"grid": (1,)}),
    # Junk for a constant is for Triton's compiler to refuse, which it does in its own words.
    "NativeKernel()": lambda: (
        lambda **call: native()[(1,)](**call, BLOCK=64),
        {name: value for name, value in given().items() if name != "BLOCK"},
    ),
    "NativeKernel.run": lambda: (
        lambda **call: native().run(**given(), **call), {"grid": (1,), "warmup": False}
    ),
    "NativeKernel.warmup": lambda: (
        lambda **call: native().warmup(**given(), **call), {"grid": (1,)}
    ),
}  # fmt: skip


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", CALLS)
def test_junk_is_refused_by_name(name):
    from triton.compiler.errors import CompilationError

    function, call = CALLS[name]()
    assert wrong_answers(function, call, CompilationError) == []
    assert os.environ["CULAUNCH_DRIVER"] == "emulator"
