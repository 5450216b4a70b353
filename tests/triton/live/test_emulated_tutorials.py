"""Without a GPU: the tutorials' kernels, compiled for sm_80, on the emulated driver."""

import os

import pytest

pytestmark = pytest.mark.needs("triton", "torch")

NAMES = ["add", "softmax", "dropout", "layer_norm", "attention", "asin", "grouped"]
TOLERANCE = {"add": 0, "asin": 1e-5, "layer_norm": 1e-4, "softmax": 1e-5}


@pytest.fixture(autouse=True)
def emulator(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")


@pytest.fixture
def tutorials():
    import tutorials

    return tutorials


def close(found, expected, tolerance):
    import torch

    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_native(tutorials, name, monkeypatch):
    import torch

    import culaunch as cl
    from culaunch.triton import native

    # The emulator lets kernels reach the arrays of a call, and what it has allocated itself.
    monkeypatch.setattr(
        tutorials, "place", lambda tensor: torch.from_dlpack(cl.to_device(tensor.numpy()))
    )

    kernel = native(tutorials.SIMPLE[name])
    found = getattr(tutorials, f"run_{name}")(kernel, "cpu")
    expected = getattr(tutorials, f"expected_{name}")("cpu")
    if name == "dropout":
        x = tutorials.random(300, device="cpu")
        kept = found[0] != 0
        assert 100 < int(kept.sum()) < 200
        expected = [(x * 2).where(kept, 0)]
    close(found, expected, TOLERANCE.get(name, 2e-2))
    assert kernel._key_count == 1


@pytest.mark.slow
def test_matmul_with_autotune(tutorials):
    from culaunch.triton import native

    kernel = native(tutorials.autotuned())
    sizes = (32, 64, 32)
    for _ in range(2):
        found = tutorials.run_matmul(kernel, "cpu", sizes)
        close(found, tutorials.expected_matmul("cpu", sizes), 2e-2)
    assert list(kernel.cache) == [(*sizes, *["torch.float16"] * 3)]
    assert kernel.best_config is next(iter(kernel.cache.values()))
    assert kernel._key_count == 1


def test_arguments_of_every_kind():
    import torch
    from extra_kernels import every_kind

    from culaunch.triton import native

    x = torch.arange(64, dtype=torch.float32)
    out = torch.zeros(64, dtype=torch.float64)
    kernel = native(every_kind)
    kernel[(1,)](out, (3, x), 7, None, 1, 2**40, 0.5, True, BLOCK=32)
    assert torch.equal(out[:32], -(x[:32].double() * 3 + 7 + 1 + 2**40 + 0.5))
    kernel[(1,)](out, (1, x[1:]), 16, x, 5, 1, 2, False, BLOCK=32)
    assert torch.equal(out[:32], x[1:33].double() + 16 + x[:32] + 5 + 1 + 2)
    assert kernel._key_count == 2


def test_a_tensor_descriptor_taken_apart():
    import torch
    from descriptor_kernels import move
    from triton.tools.tensor_descriptor import TensorDescriptor

    from culaunch.triton import native

    x = torch.arange(64 * 64, dtype=torch.float32).reshape(64, 64)
    y = torch.zeros_like(x)
    a, b = (TensorDescriptor.from_tensor(one, [16, 32]) for one in (x, y))
    native(move)[(4, 2)](a, b, 3.0)
    assert torch.equal(y, x * 3)


MADE_ON_THE_DEVICE = """
import torch
import tutorials
from culaunch.triton import native

(found,) = tutorials.run_copy_tiles(native(tutorials.copy_tiles), "cpu")
print(torch.equal(found, tutorials.expected_copy_tiles("cpu")[0]))
"""


@pytest.mark.slow
def test_a_descriptor_made_on_the_device(run_after_torch, tutorials):
    folder = os.path.dirname(tutorials.__file__)
    environment = {"CULAUNCH_EMULATOR_ARCH": "sm_90", "PYTHONPATH": folder}
    done = run_after_torch(["-c", MADE_ON_THE_DEVICE], env={**os.environ, **environment})
    assert done.stdout == "True\n", done.stderr


FAILING = """
import culaunch as cl
import tutorials
from culaunch import testing
from culaunch.triton import native

try:
    with testing.emulator_options(time_limit=1e-9):
        tutorials.run_copy_tiles(native(tutorials.copy_tiles), "cpu")
except cl.DriverError as error:
    print(type(error).__name__, "copy_tiles" in str(error))
"""


@pytest.mark.slow
def test_a_failed_launch_with_scratch_memory_keeps_its_error(run_after_torch, tutorials):
    folder = os.path.dirname(tutorials.__file__)
    environment = {"CULAUNCH_EMULATOR_ARCH": "sm_90", "PYTHONPATH": folder}
    done = run_after_torch(["-c", FAILING], env={**os.environ, **environment})
    assert done.stdout == "DriverError True\n", done.stderr
