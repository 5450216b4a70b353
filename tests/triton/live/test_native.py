"""Native launches on a recording driver: an H100 whose memory is the CPU's."""

import struct
import threading

import pytest

import culaunch

pytestmark = pytest.mark.needs("triton", "torch")

CLUSTER, COOPERATIVE, PROGRAMMATIC, SPREAD = 4, 2, 6, 5


@pytest.fixture
def tutorials():
    import tutorials

    return tutorials


@pytest.fixture
def x():
    import torch

    return torch.zeros(4096)


def words(launch):
    return [int.from_bytes(one, "little") for one in launch.arguments]


def test_arguments_and_hidden_pointers(recorder, tutorials, x):
    import triton

    from culaunch.triton import native

    result = native(tutorials.add)[(4, 2)](x, x[64:], x, 1000, BLOCK=256)
    assert type(result).__name__ == "CompiledKernel"
    launch = recorder.last
    assert launch.grid == (4, 2, 1)
    assert launch.block == (128, 1, 1)
    hidden = 1 if triton.__version__.startswith("3.4") else 2
    assert words(launch) == [x.data_ptr(), x[64:].data_ptr(), x.data_ptr(), 1000, *[0] * hidden]
    assert [len(one) for one in launch.arguments][:4] == [8, 8, 8, 4]


def test_each_specialisation_is_compiled_once(recorder, tutorials, x):
    from culaunch.triton import native

    kernel = native(tutorials.add)
    for n, tensor, count in [(1000, x, 1), (1001, x, 1), (1008, x, 2), (1, x, 3), (1000, x[1:], 4),
                             (2**40, x, 5), (1000, x.half(), 6)]:  # fmt: skip
        for _ in range(2):
            kernel[(1,)](tensor, tensor, tensor, n, BLOCK=256)
        assert kernel._key_count == count
    kernel[(1,)](x, x, x, 1000, BLOCK=256, num_warps=8)
    assert recorder.last.block == (256, 1, 1)
    kernel[(1,)](x, x, x, 1000, BLOCK=512)
    assert kernel._key_count == 8


def test_folded_arguments_are_not_passed(recorder, x):
    from extra_kernels import every_kind

    from culaunch.triton import native

    native(every_kind)[(1,)](x.double(), (1, x), 1, None, 5, 1, 0.5, True, BLOCK=32)
    launch = recorder.last
    sizes = [len(one) for one in launch.arguments]
    assert sizes[:6] == [8, 8, 4, 8, 8, 1]
    assert words(launch)[2:4] == [5, 1]  # annotated: 1 is passed
    assert struct.unpack("d", launch.arguments[4]) == (0.5,)


def test_numbers_are_passed_in_the_declared_type(recorder):
    from typed_kernels import typed

    from culaunch.triton import native

    kernel = native(typed)
    kernel[(1,)](-1, 65535, 1.0, -2.0, 1.1, True)
    sizes = [1, 2, 2, 2, 8, 1]
    assert [len(one) for one in recorder.last.arguments][:6] == sizes
    given = words(recorder.last)[:6]
    assert given[:4] == [0xFF, 0xFFFF, 0x3C00, 0xC000]
    assert given[5] == 1


def test_grids(recorder, tutorials, x):
    from culaunch.triton import native

    kernel = native(tutorials.add)

    def call(grid):
        kernel[grid](x, x, x, 4096, BLOCK=256)
        return recorder.last.grid

    assert call((2, 3, 4)) == (2, 3, 4)
    assert call([5]) == (5, 1, 1)
    assert call(lambda meta: (meta["n"] // meta["BLOCK"],)) == (16, 1, 1)
    assert call(lambda meta: [len(meta), 1]) == (5, 1, 1)
    count = len(recorder.launches)
    kernel[(0,)](x, x, x, 4096, BLOCK=256)  # an empty grid launches nothing, as in Triton
    assert len(recorder.launches) == count
    for grid in [(), (1, 2, 3, 4), "x", (-1,), (1.5,), None, lambda meta: "x", b"\x01",
                 bytearray(b"\x01"), {3: 1}, {2}, (True,), lambda meta: {2}]:  # fmt: skip
        with pytest.raises(TypeError, match="a grid must be a tuple of 1 to 3 ints"):
            call(grid)
    with pytest.raises(KeyError, match="missing"):
        call(lambda meta: meta["missing"])


def test_a_grid_too_large_for_cuda_is_refused(recorder, tutorials, x):
    """None wraps around, num_ctas times the first one included."""
    from extra_kernels import clustered

    from culaunch.triton import native

    plain, pairs = native(tutorials.add), native(clustered)
    for grid in [(2**31,), (1, 65536), (1, 1, 65536), (2**32 - 1, 2**32 - 1, 2**32 - 1)]:
        for given in (grid, lambda meta, grid=grid: grid):
            for _ in range(2):
                with pytest.raises(culaunch.LaunchError, match=r"grid of add is too large"):
                    plain[given](x, x, x, 4096, BLOCK=256)
    for width in (2**30, 2**31, 2**31 + 1):
        for _ in range(2):
            with pytest.raises(ValueError, match=r"num_ctas=2 multiplies the first"):
                pairs[(width,)](x, x, 4096, BLOCK=1024, num_ctas=2)
    assert recorder.launches == []
    plain[(2**31 - 1, 65535, 65535)](x, x, x, 4096, BLOCK=256)
    pairs[(2**30 - 1,)](x, x, 4096, BLOCK=1024, num_ctas=2)
    assert recorder.last.grid == (2**31 - 2, 1, 1)


def test_a_grid_function_sees_every_argument(recorder, tutorials, x):
    from culaunch.triton import native

    seen = {}

    def grid(meta):
        seen.update(meta)
        return (1,)

    native(tutorials.autotuned())[grid](
        x.half(), x.half(), x.half(), 16, 16, 16, 16, 1, 16, 1, 16, 1, ACTIVATION=""
    )
    assert seen.keys() == set(tutorials.matmul_body.arg_names)
    assert seen["BLOCK_M"] in (16, 32)


def test_clusters_and_attributes(recorder, x):
    from extra_kernels import clustered

    from culaunch.triton import native

    kernel = native(clustered)
    kernel[(4,)](x, x, 4096, BLOCK=1024, num_ctas=2)
    launch = recorder.last
    assert launch.grid == (8, 1, 1)
    assert struct.unpack("3I", launch.attributes[CLUSTER][:12]) == (2, 1, 1)
    assert launch.attributes[SPREAD][0] == 1
    kernel[(4,)](x, x, 4096, BLOCK=1024, launch_pdl=True, launch_cooperative_grid=True)
    assert {COOPERATIVE, PROGRAMMATIC} <= recorder.last.attributes.keys()


def test_scratch_is_allocated_in_the_stream(recorder, tutorials):
    from culaunch.triton import native

    tutorials.run_copy_tiles(native(tutorials.copy_tiles), "cpu")
    names = [name for name, _ in recorder.calls]
    assert names.count("cuMemAllocAsync") == names.count("cuMemFreeAsync") == 1
    size = next(args[1] for name, args in recorder.calls if name == "cuMemAllocAsync")
    assert size == 6 * 256
    assert names.index("cuMemAllocAsync") < len(names) - 1 - names[::-1].index("cuLaunchKernelEx")
    address = next(args[0] for name, args in recorder.calls if name == "cuMemFreeAsync")
    assert address in words(recorder.last)


def test_the_users_allocator_wins(recorder, tutorials, monkeypatch):
    import contextvars

    import torch
    import triton
    from triton.runtime import _allocation

    from culaunch.triton import native

    if triton.__version__.startswith("3.4"):
        monkeypatch.setattr(_allocation, "_allocator", _allocation._allocator)
    asked = []

    def allocate(size, alignment, stream):
        asked.append((size, alignment, stream))
        return torch.empty(size, dtype=torch.int8)

    def body():
        triton.set_allocator(allocate)
        tutorials.run_copy_tiles(native(tutorials.copy_tiles), "cpu")

    contextvars.copy_context().run(body)
    assert asked == [(6 * 256, 128, 0)]
    assert recorder.count("cuMemAllocAsync") == 0


def test_a_failed_allocation_is_an_error(recorder, tutorials):
    import culaunch as cl
    from culaunch.triton import native

    recorder.fail("cuMemAllocAsync", 2)
    with pytest.raises(cl.DriverError, match=r"1536 bytes of scratch memory.*OUT_OF_MEMORY"):
        tutorials.run_copy_tiles(native(tutorials.copy_tiles), "cpu")
    assert recorder.launches == []


def test_tensor_descriptors(recorder, tutorials):
    from culaunch.triton import native

    tutorials.run_persistent(native(tutorials.persistent), "cpu")
    launch = recorder.last
    assert [len(one) for one in launch.arguments][:6] == [128, 4, 4, 8, 8, 128]
    assert words(launch)[1:5] == [256, 128, 128, 1]
    encoded = [args for name, args in recorder.calls if name == "cuTensorMapEncodeTiled"]
    assert len(encoded) == 3
    # element type float16, rank 2, interleave none, swizzle 128 B, promotion 128 B, fill none
    assert {(args[1], args[2], *args[8:]) for args in encoded} == {(6, 2, 0, 3, 2, 0)}


def test_a_hook_may_set_the_descriptors_blocks(recorder, tutorials):
    from culaunch.triton import native

    kernel = native(tutorials.autotuned_persistent())
    for _ in range(3):
        tutorials.run_persistent(kernel, "cpu", tuned=True)
    assert kernel._key_count == 1
    assert kernel.best_config.kwargs["BLOCK_M"] in (64, 128)


def test_autotune_chooses_once_for_each_key(recorder, tutorials):
    from culaunch.triton import native

    kernel = native(tutorials.autotuned())
    for sizes, configurations in [((64, 64, 64), 1), ((64, 64, 64), 1), ((32, 64, 64), 2)]:
        tutorials.run_matmul(kernel, "cpu", sizes)
        assert len(kernel.cache) == configurations
    before = len(recorder.launches)
    tutorials.run_matmul(kernel, "cpu", (64, 64, 64))
    assert len(recorder.launches) == before + 1
    assert recorder.last.block[0] == 32 * kernel.best_config.num_warps
    with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK_M"):
        kernel[(1,)](*[1] * 12, ACTIVATION="", BLOCK_M=16)


def test_heuristics(recorder, tutorials, x):
    import triton

    from culaunch.triton import native

    asked = []

    def block(values):
        asked.append(values["n"])
        return 128

    kernel = native(triton.heuristics({"BLOCK": block})(tutorials.add))
    kernel[lambda meta: (meta["BLOCK"],)](x, x, x, 1000)
    kernel[lambda meta: (meta["BLOCK"],)](x, x, x, n=1001)
    assert asked == [1000, 1001]
    assert recorder.last.grid == (128, 1, 1)
    config = triton.Config({}, num_warps=8)
    tuned = native(triton.autotune([config], key=["n"])(triton.heuristics({"BLOCK": block})(
        tutorials.add)))  # fmt: skip
    tuned[(1,)](x, x, x, 1000)
    assert recorder.last.block == (256, 1, 1)


def test_a_changed_global_is_refused(recorder, x, monkeypatch):
    import extra_kernels
    import triton.language as tl

    from culaunch.triton import native

    kernel = native(extra_kernels.with_global)
    kernel[(1,)](x, BLOCK=64)
    kernel[(1,)](x, BLOCK=64)
    count = len(recorder.launches)
    with monkeypatch.context() as patch:
        patch.setattr(extra_kernels, "FACTOR", tl.constexpr(3))
        with pytest.raises(RuntimeError, match="FACTOR has changed since we compiled"):
            kernel[(1,)](x, BLOCK=64)
        patch.setattr(extra_kernels, "FACTOR", tl.constexpr(2))  # equal, though another
        kernel[(1,)](x, BLOCK=64)
    kernel[(1,)](x, BLOCK=64)
    assert len(recorder.launches) == count + 2


def test_launch_hooks(recorder, tutorials, x, monkeypatch):
    from triton import knobs

    from culaunch.triton import native

    kernel = native(tutorials.add)
    kernel[(1,)](x, x, x, 64, BLOCK=64)
    seen = []

    def enter(metadata):
        seen.append(("enter", metadata.get()["name"], len(recorder.launches)))

    def leave(metadata):
        seen.append(("leave", metadata.get()["name"], len(recorder.launches)))

    with monkeypatch.context() as patch:
        for name, hook in (("launch_enter_hook", enter), ("launch_exit_hook", leave)):
            chain = getattr(knobs.runtime, name)
            if hasattr(chain, "calls"):
                patch.setattr(chain, "calls", chain.calls)
                chain.calls.append(hook)
            else:
                patch.setattr(knobs.runtime, name, hook)
        try:
            kernel[(1,)](x, x, x, 64, BLOCK=64)
        finally:
            for name in ("launch_enter_hook", "launch_exit_hook"):
                getattr(getattr(knobs.runtime, name), "calls", []).clear()
    kernel[(1,)](x, x, x, 64, BLOCK=64)
    assert seen == [("enter", "add", 1), ("leave", "add", 2)]


def test_pre_run_hooks(recorder, tutorials, x, monkeypatch):
    from culaunch.triton import native

    kernel = native(tutorials.add)
    seen = []
    monkeypatch.setattr(tutorials.add, "pre_run_hooks", [])
    kernel[(1,)](x, x, x, 64, BLOCK=64)
    tutorials.add.add_pre_run_hook(lambda *args, **kwargs: seen.append((len(args), kwargs)))
    kernel[(1,)](x, x, x, 64, BLOCK=64)
    kernel[(1,)](x, x, x, 65, BLOCK=64)
    assert [(count, kwargs["BLOCK"], kwargs["debug"]) for count, kwargs in seen] == [
        (4, 64, False)
    ] * 2


def test_warmup_compiles_and_launches_nothing(recorder, tutorials, x):
    import torch

    from culaunch.triton import native

    kernel = native(tutorials.add)
    made = kernel.warmup(torch.float32, torch.float32, torch.float32, 1000, grid=(1,), BLOCK=256)
    assert type(made).__name__ == "CompiledKernel"
    assert recorder.launches == []
    assert kernel[(1,)](x, x, x, 1000, BLOCK=256) is made


def test_what_native_takes(recorder, tutorials):
    import triton

    from culaunch.triton import native

    kernel = native(tutorials.add)
    assert native(kernel) is kernel
    assert kernel.arg_names == ["x_ptr", "y_ptr", "out_ptr", "n", "BLOCK"]
    assert kernel.fn is tutorials.add.fn
    assert (kernel.__name__, kernel.__module__) == ("add", "tutorials")
    assert kernel.__qualname__ == "add"
    assert kernel.__globals__ is vars(tutorials)
    with pytest.raises(RuntimeError, match="needs a grid: call"):
        kernel(1)
    with pytest.raises(AttributeError):
        _ = kernel.missing
    with pytest.raises(TypeError, match=r"must be a @triton.jit kernel.*builtins.function"):
        native(lambda: None)

    @native
    @triton.jit
    def inner(a):
        pass

    assert "NativeKernel" in repr(inner)


def test_interpreted_functions_stay(tutorials, monkeypatch):
    import triton
    from triton.runtime.interpreter import InterpretedFunction

    from culaunch.triton import native

    function = InterpretedFunction(tutorials.add.fn)
    assert native(function) is function
    tuned = triton.autotune([triton.Config({"BLOCK": 16})], key=[])(function)
    assert native(tuned) is tuned
    heuristics = triton.heuristics({"BLOCK": lambda values: 16})(function)
    assert native(heuristics) is heuristics


def test_unknown_options_are_refused_as_by_triton(recorder, tutorials, x):
    from culaunch.triton import native

    with pytest.raises(KeyError, match="unknown"):
        native(tutorials.add)[(1,)](x, x, x, 64, BLOCK=64, unknown=1)
    with pytest.raises(AssertionError, match="stream option is deprecated"):
        native(tutorials.add)[(1,)](x, x, x, 64, BLOCK=64, stream=1)


def test_too_much_shared_memory_is_out_of_resources(recorder, tutorials, x):
    """The autotuner skips this configuration."""
    from triton.runtime.errors import OutOfResources

    from culaunch.triton import native

    kernel = native(tutorials.add)
    recorder.devices[0][97] = -1
    with pytest.raises(OutOfResources, match="shared memory"):
        kernel[(1,)](x, x, x, 64, BLOCK=64)


def test_many_threads(recorder, tutorials, x):
    from culaunch.triton import native

    kernel = native(tutorials.add)
    kernel[(1,)](x, x, x, 1000, BLOCK=256)
    failures = []

    def work():
        try:
            for i in range(200):
                kernel[(1 + i,)](x, x, x, 1000, BLOCK=256)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(recorder.launches) == 801


@pytest.mark.slow
def test_a_kernel_is_freed_with_its_dispatcher(recorder, tutorials, x):
    import gc
    import weakref

    from culaunch.triton import native

    kernel = native(tutorials.add)
    kernel[(1,)](x, x, x, 1000, BLOCK=256)
    kernel[(2,)](x, x, x, 1000, BLOCK=256)
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None


def test_two_devices(install, tutorials):
    """Arrays decide on the device, whatever device is current."""
    from fake_arrays import DlpackArray

    from culaunch.triton import native

    recorder = install(device_types=(2, 13, 3), devices=2)
    kernel = native(tutorials.add)
    for device in (0, 1, 0):
        arrays = [DlpackArray(device=device) for _ in range(3)]
        kernel[(1,)](*arrays, 64, BLOCK=64)
        assert recorder.last.device == device
    assert kernel._key_count == 1  # the devices are of one architecture


def test_a_kernel_without_arguments(recorder):
    from extra_kernels import nothing

    from culaunch.triton import native

    for _ in range(2):
        native(nothing)[(7,)]()
    assert recorder.last.grid == (7, 1, 1)
    assert recorder.last.device == 0


def test_a_hundred_arguments(recorder, tmp_path, monkeypatch):
    """More than what is kept on the stack."""
    import importlib
    import sys

    from culaunch.triton import native

    names = [f"a{i}" for i in range(150)]
    text = f"import triton\n\n\n@triton.jit\ndef many({', '.join(names)}):\n    pass\n"
    (tmp_path / "many_arguments.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    kernel = native(importlib.import_module("many_arguments").many)
    monkeypatch.delitem(sys.modules, "many_arguments")
    numbers = [3 + 2 * i for i in range(150)]
    for _ in range(2):
        kernel[(1,)](*numbers[:100], **dict(zip(names[100:], numbers[100:], strict=True)))
        assert words(recorder.last)[:150] == numbers
    assert kernel._key_count == 1
