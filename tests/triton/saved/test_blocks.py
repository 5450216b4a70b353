"""Tensor descriptors of saved sets: made without Triton, their blocks set as a ``pre_hook`` did."""

import os
import subprocess
import sys

import pytest

import culaunch as cl
from culaunch._triton.compiling.hook_effects import effects_of

pytestmark = pytest.mark.needs("triton", "torch")

TYPES = "tensordesc<fp32[1, 1]>, tensordesc<fp32[1, 1]>, fp32"


def test_a_hook_that_sets_blocks_is_data():
    from descriptor_kernels import set_blocks

    settings = {"ROWS": 128, "COLUMNS": 32}
    kinds = {"a": "tensordesc<fp32[1, 1]>", "b": "tensordesc<fp16[1, 1]>"}
    found = effects_of(set_blocks, settings, kinds)
    assert found.zeroes == ()
    assert found.blocks == {"a": (128, 32), "b": (64, 32)}
    found = effects_of(set_blocks, {**settings, "HALVES": True}, kinds)
    assert found.blocks["b"] == (64, 16)
    # Pointers instead of descriptors.
    assert effects_of(set_blocks, settings, {"a": "*fp32", "b": "*fp16"}).blocks == {}
    assert effects_of(set_blocks, settings, {"a": "constexpr", "b": "*fp16"}).blocks == {}


class Shadowed:
    block_shape = None


SIZE = 64


def reads_a_global(kw):
    kw["a"].block_shape = [SIZE, 64]


def reads_the_block(kw):
    kw["a"].block_shape[0] = 64


def asks_for_another_class(kw):
    if isinstance(kw["a"], Shadowed):
        kw["a"].block_shape = [64, 64]


def of_an_argument(kw):
    kw["a"].block_shape = [kw["n"], 64]


def of_a_pointer(kw):
    kw["n"].block_shape = [64, 64]


def of_what_is_not_there(kw):
    kw["a"].block_shape = [kw["ROWS"], kw["OTHER"]]


def sets_something_else(kw):
    kw["a"].block_shape = [64, 64]
    kw["a"].shape = [64, 64]


def sets_a_global(kw):
    global min
    min = kw["ROWS"]  # noqa: A001
    kw["a"].block_shape = [64, 64]


@pytest.mark.parametrize(
    "hook",
    [
        reads_a_global, reads_the_block, asks_for_another_class, of_an_argument, of_a_pointer,
        of_what_is_not_there, sets_something_else, sets_a_global, lambda kw: kw["a"].zero_(),
        lambda kw: kw.get("a").block_shape, lambda kw: setattr(kw["a"], "block_shape", [1]),
    ],
)  # fmt: skip
def test_any_other_hook_is_not(hook):
    kinds = {"a": "tensordesc<fp32[1, 1]>", "n": "*fp32"}
    assert effects_of(hook, {"ROWS": 128}, kinds) is None


@pytest.fixture(scope="module")
def block_set():
    from descriptor_kernels import tuned

    from culaunch.triton import compile  # noqa: A004

    return compile(tuned(), TYPES, arch=["compute_80", "sm_90a"])


def test_each_configuration_has_its_blocks(block_set):
    assert block_set.blocks == ("a", "b")
    assert [one.types[0] for one in block_set.variants][::2] == [
        "tensordesc<fp32[8, 16]>", "tensordesc<fp32[16, 16]>", "tensordesc<fp32[16, 32]>",
    ]  # fmt: skip


PROGRAM = """
import sys

sys.modules["triton"] = None
import numpy as np
import torch

import culaunch as cl
from culaunch.triton import KernelSet, TensorDescriptor

kernels = KernelSet.load(sys.argv[1])
for given, block in [({}, [8, 16]), ({"ROWS": 16}, [16, 16]), ({"COLUMNS": 32}, [16, 32]),
                     ({}, [8, 16])]:
    x, y = torch.randn(16, 32), torch.zeros(16, 32)
    ends = [TensorDescriptor.from_tensor(one, [1, 1]) for one in (x, y)]
    kernels[(16 // block[0], 32 // block[1])](*ends, 2.0, **given)
    assert torch.equal(y, 2 * x)
    assert ends[0].block_shape == block
x, y = (cl.to_device(np.full((16, 32), value, "f4")) for value in (1, 0))
kernels[(2, 2)](*(TensorDescriptor.from_tensor(one, [1, 1]) for one in (x, y)), 3.0)
assert (y.numpy() == 3).all()
try:
    one = TensorDescriptor(x, [16, 32], [32, 1], [1, 1])
    kernels[(2, 2)](one, one, 3.0, ROWS=4)
except cl.KernelNotFoundError as error:
    assert "ROWS is 4, not 8" in str(error)
else:
    raise AssertionError
"""


@pytest.mark.slow
def test_the_blocks_are_set_without_triton(block_set, tmp_path):
    block_set.save(tmp_path / "move.culib")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "move.culib"],
        env={**os.environ, "CULAUNCH_DRIVER": "emulator"}, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_tuned_table_says_which_blocks(recorder):
    """The configuration comes from the table, and has its own blocks."""
    import torch
    from descriptor_kernels import tuned

    from culaunch.triton import TensorDescriptor, compile  # noqa: A004

    tuner = tuned()
    for factor, config in ((1.0, tuner.configs[2]), (64.0, tuner.configs[1])):
        tuner.cache[(factor,)] = config
    made = compile(tuner, TYPES, arch="sm_90a")
    assert len(made) == 2
    x = torch.zeros(64, 64)
    for factor, block in ((1.0, [16, 32]), (64.0, [16, 16]), (50.0, [16, 16]), (1.0, [16, 32])):
        ends = [TensorDescriptor.from_tensor(x, [1, 1]) for _ in range(2)]
        made[(1,)](*ends, factor)
        assert [one.block_shape for one in ends] == [block, block]


def test_calls_that_are_alike_find_their_blocks_natively(block_set, recorder, monkeypatch):
    """By the constants, the options, the element types and the ranks, which the blocks follow
    from. Other objects instead of descriptors are not changed."""
    import torch

    from culaunch._triton.saved import blocks
    from culaunch.triton import TensorDescriptor

    real, found = blocks.SetBlocks.find, []
    monkeypatch.setattr(blocks.SetBlocks, "find", lambda *a: (found.append(1), real(*a))[1])
    x = torch.zeros(64, 64)

    def call(block, tensor=x, **settings):
        ends = [TensorDescriptor.from_tensor(tensor, [1] * tensor.ndim) for _ in range(2)]
        block_set[(1,)](*ends, 1.0, **settings)
        assert [one.block_shape for one in ends] == [block, block]

    kinds = [
        ([8, 16], {}), ([16, 16], {"ROWS": 16}), ([16, 32], {"COLUMNS": 32}),
        ([8, 16], {"num_warps": 4}), ([16, 16], {"ROWS": 16, "num_warps": 4}),
    ]  # fmt: skip
    for block, settings in kinds:
        call(block, **settings)
    assert len(found) == len(kinds)
    for block, settings in 3 * [*reversed(kinds), *kinds]:
        call(block, **settings)
    assert len(found) == len(kinds)
    # Calls without a variant are detected each time, and keep their block.
    for _ in range(2):
        for more in ({"num_warps": 8}, {"ROWS": 4}, {"tensor": x.half()}, {"tensor": x[None]}):
            with pytest.raises(cl.KernelNotFoundError):
                call(None, **more)
    call([8, 16])


def test_a_descriptor_that_cannot_be_set(block_set, recorder):
    import torch

    from culaunch.triton import TensorDescriptor

    class Fixed(TensorDescriptor):
        def __setattr__(self, name, value):
            if name == "block_shape" and hasattr(self, name):
                raise AttributeError("fixed")
            super().__setattr__(name, value)

    ends = [Fixed.from_tensor(torch.zeros(64, 64), [1, 1]) for _ in range(2)]
    for _ in range(3):
        with pytest.raises(AttributeError, match="fixed"):
            block_set[(1,)](*ends, 1.0)


@pytest.mark.gpu
def test_blocks_on_a_gpu(tmp_path):
    """Tensor maps are encoded with the blocks that are set, for descriptors of either class."""
    import torch
    from descriptor_kernels import tuned
    from triton.tools import tensor_descriptor

    from culaunch.triton import KernelSet, TensorDescriptor, compile  # noqa: A004

    major, minor = torch.cuda.get_device_capability()
    arch = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
    compile(tuned(), TYPES, arch=arch, grid="32 // ROWS, 64 // COLUMNS").save(tmp_path / "k.culib")
    kernels = KernelSet.load(tmp_path / "k.culib")
    for kind in (TensorDescriptor, tensor_descriptor.TensorDescriptor):
        for given in ({}, {"ROWS": 16}, {"COLUMNS": 32}, {}):
            x, y = torch.randn(32, 64, device="cuda"), torch.zeros(32, 64, device="cuda")
            ends = [kind.from_tensor(one, [1, 4]) for one in (x, y)]
            kernels(*ends, 2.0, **given)
            assert torch.equal(y, 2 * x)
            assert ends[0].block_shape == [given.get("ROWS", 8 if "COLUMNS" not in given else 16),
                                           given.get("COLUMNS", 16)]  # fmt: skip


def test_what_goes_wrong(block_set):
    from descriptor_kernels import move_blocks, set_blocks, tuned

    from culaunch.triton import compile  # noqa: A004

    with pytest.raises(
        ValueError, match="gives a a block of 2 sizes, but the signature declares a block of 1"
    ):
        compile(tuned(), TYPES.replace("[1, 1]", "[1]"), arch="sm_90a")
    kernel = tuned()
    kernel.configs[1].pre_hook = lambda kw: None
    with pytest.raises(ValueError, match=r"blocks of different descriptors .*: \(a, b\) of "):
        compile(kernel, TYPES, arch="sm_90a")
    own = compile(
        move_blocks, TYPES.replace("[1, 1]", "[8, 16]"), arch="sm_90a",
        constants={"ROWS": 8, "COLUMNS": 16},
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"sets the blocks of \(a, b\) before each launch, and "):
        block_set.merge(own)
    # Configurations of one's own have their blocks by the same hook.
    made = compile(tuned(set_blocks), TYPES, arch="sm_90a", configs=[{"ROWS": 4, "COLUMNS": 64}])
    assert made.variants[0].types[1] == "tensordesc<fp32[4, 64]>"


def test_a_body_has_no_hooks(block_set, culaunch_driver):
    import torch

    import culaunch as cl
    from culaunch.triton import TensorDescriptor

    @cl.function
    def move(x, y):
        ends = [TensorDescriptor(one, one.shape, one.strides, [8, 16]) for one in (x, y)]
        block_set[(2, 2)](*ends, 2.0)

    with pytest.raises(TypeError, match="sets the blocks of a, b in Python before each launch"):
        move(torch.zeros(16, 32), torch.zeros(16, 32))


# ---- descriptors


def test_a_descriptor_is_tritons(on_emulator):
    """Where Triton is, its compiler takes one of culaunch as its own; bodies take it, too."""
    import numpy as np
    import torch
    from descriptor_kernels import move

    import culaunch as cl
    from culaunch.triton import TensorDescriptor, native

    kernel = native(move)
    x, y = torch.randn(16, 32), torch.zeros(16, 32)
    kernel[(1, 1)](*(TensorDescriptor.from_tensor(one, [16, 32]) for one in (x, y)), 2.0)
    assert torch.equal(y, 2 * x)
    a, b = (cl.to_device(np.full((16, 32), value, "f4")) for value in (1, 0))
    kernel[(1, 1)](*(TensorDescriptor.from_tensor(one, [16, 32]) for one in (a, b)), 5.0)
    assert (b.numpy() == 5).all()

    @cl.function
    def move_both(x, y):
        ends = [TensorDescriptor(one, one.shape, one.strides, [16, 32]) for one in (x, y)]
        kernel[(1, 1)](*ends, 3.0)

    move_both(x, y)
    assert torch.equal(y, 3 * x)


def test_the_strides_of_any_array(on_emulator):
    import numpy as np
    import torch

    import culaunch as cl
    from culaunch.triton import TensorDescriptor

    zeros = np.zeros((4, 6, 8), "f4")
    for array in (zeros, torch.from_numpy(zeros), cl.to_device(zeros)):
        made = TensorDescriptor.from_tensor(array, [1, 2, 8], padding="nan")
        assert list(made.strides) == [48, 8, 1]
        assert (list(made.shape), made.padding) == ([4, 6, 8], "nan")
    made = TensorDescriptor.from_tensor(np.zeros((4, 16), "f2")[:, 8:], [1, 8])
    assert list(made.strides) == [16, 1]
    # A field of a structure: its elements do not follow each other in whole elements.
    field = np.zeros((4, 6), [("a", "i4"), ("b", "f8")])["b"]
    with pytest.raises(
        ValueError,
        match=r"strides \(72, 12\) in bytes, which are not multiples of its element size, 8",
    ):
        TensorDescriptor.from_tensor(field, [1, 6])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([4, 4], [4, 1], [4]), ValueError, "1 to 5 .got 2, 2 and 1"),
        (([], [], []), ValueError, "1 to 5"),
        ((4, [4, 1], [4]), TypeError, "shape must be a sequence of ints"),
        (([4], "4", [4]), TypeError, "strides must be a sequence of ints"),
        (([4], [4], [4], "one"), ValueError, 'padding must be "zero" or "nan"'),
    ],
)
def test_what_is_no_descriptor(arguments, error, words):
    from culaunch.triton import TensorDescriptor

    with pytest.raises(error, match=words):
        TensorDescriptor(None, *arguments)
    with pytest.raises(TypeError, match="tensor must be an array with shape and strides"):
        TensorDescriptor.from_tensor(3, [1])
