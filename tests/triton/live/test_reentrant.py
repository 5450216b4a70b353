"""Calls from within the reading of an argument, and from another thread meanwhile.

Reading a tensor whose sizes are Python runs Python, which may call the same kernel, and lets other
threads do so. These run under the sanitizers, too.
"""

import gc
import struct
import sys
import threading

import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("triton", "torch")


@pytest.fixture
def kernel(recorder):
    from quick_kernels import two_numbers

    from culaunch.triton import native

    return native(two_numbers)


@pytest.fixture
def slow_tensor():
    """Make tensors whose sizes are Python, which calls a function first."""
    import torch

    def make(asked=lambda: None, size=16, storage=None):
        class Slow(torch.Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl

            @classmethod
            def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
                asked()
                name = function.__name__
                if name.startswith("dim"):
                    return 1
                return size if "numel" in name else [1] if "stride" in name else [size]

        held = torch.zeros(size) if storage is None else storage
        return torch.Tensor._make_subclass(Slow, held, False, dispatch_sizes_strides_policy="sizes")

    return make


def numbers(launch):
    """Return the kernel's n and m: a 1 is folded into the code, and is not passed."""
    return [struct.unpack("<i", one)[0] for one in launch.arguments if len(one) == 4]


@pytest.mark.parametrize("same_type", [False, True])
def test_a_call_within_a_call_of_the_same_kernel(kernel, recorder, slow_tensor, same_type):
    import torch

    other = torch.zeros(16)
    depth = [0]

    def call():
        if depth[0] == 0:
            depth[0] += 1
            kernel[(1,)](other, 1, 5)
            depth[0] -= 1

    for _ in range(4):
        kernel[(1,)](other, 1, 5)
        kernel[(1,)](other, 7, 5)
    tensor = slow_tensor(call)
    if same_type:
        other = type(tensor)._make_subclass(
            type(tensor), other, False, dispatch_sizes_strides_policy="sizes"
        )
    for _ in range(4):
        for n, m in [(7, 5), (9, 9), (1, 5), (16, 3)]:
            kernel[(1,)](tensor, n, m)
            assert numbers(recorder.last) == [one for one in (n, m) if one != 1]


@pytest.mark.slow
@pytest.mark.memory
@pytest.mark.parametrize("forgets", [False, True])
def test_what_a_call_uses_is_not_freed_from_within(kernel, recorder, slow_tensor, forgets):
    import torch

    other = torch.zeros(16)
    busy = [False]
    count = [0]
    times = 4 if forgets else 50

    def call():
        if busy[0] or count[0] == times:  # Triton's own Python, which compiles, asks often
            return
        busy[0] = True
        for n in (1, 16, 17, 2**40, 3 + count[0]):
            kernel[(1,)](other, n, count[0] % 5)
            kernel[(1,)](other, n, m=1.5 if n == 1 else 2)
        if forgets:
            kernel._clear()
            gc.collect()
        count[0] += 1
        busy[0] = False

    tensor = slow_tensor(call)
    for i in range(12 if forgets else 40):
        n = (1, 2, 16, 2**40)[i % 4]
        kernel[(1,)](tensor, n, 3)
        assert numbers(recorder.last)[-1] == 3
        assert numbers(recorder.last)[:-1] == ([n] if n in (2, 16) else [])


def test_two_threads_with_slow_tensors(kernel, recorder, slow_tensor):
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    wrong = []
    tensors = [slow_tensor(), slow_tensor()]

    def work(tensor, values):
        mine = struct.pack("<Q", tensor.data_ptr())
        try:
            for i in range(1000):
                n, m = values[i % len(values)]
                kernel[(1,)](tensor, n, m)
                launch = next(
                    one for one in reversed(recorder.launches) if one.arguments[0] == mine
                )
                if numbers(launch) != [one for one in (n, m) if one != 1]:
                    wrong.append((n, m, numbers(launch)))
        except Exception as error:  # noqa: BLE001
            wrong.append(error)

    threads = [
        threading.Thread(target=work, args=(tensors[0], [(1, 5), (7, 5), (16, 2)])),
        threading.Thread(target=work, args=(tensors[1], [(9, 9), (1, 3), (32, 16)])),
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_what_changes_while_it_is_read_is_not_learned(kernel, recorder, slow_tensor):
    """A tensor that is aligned at every other look leads to a variant for what it was."""
    import torch

    storage = torch.zeros(64)
    moves = [0]
    tensor = None

    def move():
        moves[0] += 1
        if tensor is not None and moves[0] % 3 == 0:
            with torch.no_grad():
                torch.Tensor.data.__set__(tensor, storage[moves[0] % 2 :])

    tensor = slow_tensor(move)
    for _ in range(12):
        kernel[(1,)](tensor, 7, 5)
        address = struct.unpack("<q", recorder.last.arguments[0])[0]
        assert address % 4 == 0


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("tuned", [False, True])
def test_a_grid_function_may_give_a_tensor_other_storage(recorder, quick, tuned):
    """As in Triton: the launch uses what the tensor says after the grid was asked."""
    import torch
    import triton
    from quick_kernels import two_numbers

    from culaunch.triton import native

    function = two_numbers
    if tuned:
        configs = [triton.Config({}, num_warps=4), triton.Config({}, num_warps=2)]
        function = triton.autotune(configs, key=["n"])(function)
    kernel = native(function)
    x, fresh = torch.zeros(16), torch.zeros(64)
    asked = []

    def still(values):
        asked.append(values["n"])
        return (1,)

    def grid(values):
        values["x"].set_(fresh.untyped_storage(), 0, (64,))
        return still(values)

    for _ in range(3 if quick else 1):
        kernel[still](x, 7, 5)
    if not quick:
        kernel._clear()
    asked.clear()
    assert x.data_ptr() != fresh.data_ptr()
    kernel[grid](x, 7, 5)
    assert struct.unpack("<Q", recorder.last.arguments[0])[0] == fresh.data_ptr()
    assert asked == [7]


def test_a_grid_function_may_change_what_is_specialised(recorder, kernel):
    """The kernel that is launched is the one for the tensor as it is then."""
    import torch

    base = torch.zeros(64)
    aligned, other = base[:16], base[1:17]
    for _ in range(3):
        kernel[(1,)](base[1:17], 7, 5)
    expected = recorder.last.kernel
    x = aligned.clone()

    def grid(values):
        x.set_(base.untyped_storage(), 1, (16,))
        return (1,)

    for _ in range(3):
        x = aligned.clone()
        kernel[grid](x, 7, 5)
        assert struct.unpack("<Q", recorder.last.arguments[0])[0] == other.data_ptr()
        assert recorder.last.kernel == expected


def test_each_launch_knows_its_own_arrays(slow_tensor):
    """They are reported to the emulator right before the launch, in both ways."""
    import torch
    from quick_kernels import add_to

    from culaunch.triton import native

    kernel = native(add_to)
    other = torch.ones(16)
    busy = [False]

    def call():
        if not busy[0]:
            busy[0] = True
            kernel[(1,)](other, other)
            busy[0] = False

    with cl.testing.use_driver("emulator"):
        for _ in range(4):
            x = torch.zeros(16)
            kernel[(1,)](x, slow_tensor(call, storage=torch.ones(16)))
            assert x.tolist() == [1] * 16
