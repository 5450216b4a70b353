"""A saved set zeroes the same memory before a launch as a ``pre_hook``, mostly without Python."""

import os
import random
import shutil
from pathlib import Path

import pytest

import culaunch as cl
from culaunch._triton.calls import dispatcher

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.needs("triton", "torch")

FLOATS = "*fp32:16, *fp32:16, i32"


def zero(kw):
    kw["out_ptr"].zero_()


def zero_eight(kw):
    for name in ("a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"):
        kw[name].zero_()


def zero_nine(kw):
    for name in ("a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"):
        kw[name].zero_()


@pytest.fixture(scope="module")
def sums(kernels):
    """A set that zeroes what it adds to, and the same without the hook."""
    from culaunch.triton import compile  # noqa: A004

    signature = "*fp32, *fp32, i32"
    return [
        compile(kernels.tuned(hook, (64,)), signature, arch="sm_80", keep_ptx=True)
        for hook in (zero, None)
    ]


@pytest.fixture
def by_python(monkeypatch):
    """Count what is set to zero by Python, as the first call of a process is."""
    from culaunch._launch.torch.versions import open_counters

    open_counters()
    real, calls = dispatcher.set_to_zero, []
    monkeypatch.setattr(dispatcher, "set_to_zero", lambda *a: (calls.append(a[1]), real(*a)))
    return calls


def base_of_eight():
    return torch.arange(1.0, 9.0)


# The outputs of sums, and whether the driver can set each to zero.
TARGETS = {
    "whole": (base_of_eight, True),
    "a part": (lambda: base_of_eight()[4:], True),
    "a matrix": (lambda: base_of_eight().view(2, 4), True),
    "of size 1": (lambda: base_of_eight().as_strided((4, 1), (1, 7)), True),
    "a scalar": (lambda: base_of_eight()[3], True),
    "every second": (lambda: base_of_eight()[::2], False),
    "transposed": (lambda: base_of_eight().view(2, 4).t(), False),
    "with room between rows": (lambda: base_of_eight().view(2, 4)[:, :2], False),
    "one element in several places": (lambda: torch.ones(1).expand(4), False),
    "with a gradient in no_grad": (lambda: torch.nn.Parameter(base_of_eight()), False),
}


@pytest.mark.parametrize("name", TARGETS)
def test_as_zero_does(sums, emulator, by_python, name):
    """Nothing but the elements of the argument is set, however it lies in its memory."""
    make, is_native = TARGETS[name]
    sets, plain = sums
    x = torch.arange(64.0)
    with torch.no_grad():
        for one in (make(), make()):
            found, expected = one, make()
            for n in (64, 32, 64):
                sets[(1,)](x, found, n)
                expected.zero_()
                plain[(1,)](x, expected, n)
                for a, b in ((found, expected), (found._base, expected._base)):
                    assert (a is None and b is None) or torch.equal(a, b)
    assert (not by_python) == is_native


def test_kinds_of_arrays_in_any_order(sums, emulator, by_python):
    """A native call and a call in Python leave the same numbers."""
    sets, plain = sums
    draw = random.Random(3)
    x = torch.arange(64.0)
    for _ in range(60):
        name = draw.choice([*TARGETS])
        found, expected = TARGETS[name][0](), TARGETS[name][0]()
        n = draw.choice([16, 64])
        grid = draw.choice([(1,), (2, 1), lambda meta: (1,), (0,)])
        how = draw.randrange(3)
        with torch.no_grad():
            for one, out in ((sets, found), (plain, expected)):
                if one is plain:
                    out.zero_()
                if how == 0:
                    one[grid](x, out, n)
                elif how == 1:
                    one[grid](x, out, n=n)
                else:
                    one[grid](out_ptr=out, n=n, x_ptr=x)
        assert torch.equal(found, expected), (name, grid)
    assert by_python


def test_the_quick_way_sets_to_zero(sums, emulator, by_python):
    sets, _ = sums
    x, out = torch.arange(64.0), torch.ones(4)
    sets[(1,)](x, out, 64)
    misses = sets._misses
    for n in (64, 32, 16, 64):
        out.fill_(5)
        sets[(1,)](x, out, n)
        assert out.tolist() == [n * (n - 1) / 2, 0, 0, 0]
    assert (sets._misses, by_python) == (misses, [])
    # From there to what the driver cannot set, and back.
    strided = torch.ones(8)[::2]
    sets[(1,)](x, strided, 64)
    assert strided.tolist() == [2016, 0, 0, 0]
    assert strided._base[1::2].tolist() == [1, 1, 1, 1]
    sets[(1,)](x, out, 64)
    assert by_python == ["out_ptr"]


@pytest.mark.parametrize("grid", [(1,), lambda meta: (1,)], ids=["quick", "general"])
def test_autograd_notices_what_was_set_to_zero(sums, emulator, by_python, grid):
    kept, weight = base_of_eight(), torch.ones(8, requires_grad=True)
    made = (kept * weight).sum()
    for turn in (1, 2):
        sums[0][grid](torch.ones(64), kept, 64)
        assert kept._version == turn
    assert by_python == []
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.backward()


def test_a_subclass_zeroes_itself(sums, emulator, by_python):
    class Own(torch.Tensor):
        def zero_(self):
            return self.fill_(100)

    class All(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if function is torch.Tensor.zero_:
                function, args = torch.Tensor.fill_, (*args, 100)
            return super().__torch_function__(function, types, args, kwargs or {})

    for kind in (Own, All):
        for _ in range(3):
            out = torch.ones(8)
            sums[0][(1,)](torch.ones(64), out.as_subclass(kind), 64)
            assert out.tolist() == [164] + [100] * 7
    out = torch.ones(8)
    sums[0][(1,)](torch.ones(64), torch.nn.Parameter(out, requires_grad=False), 64)
    assert out.tolist() == [64] + [0] * 7
    assert by_python == ["out_ptr"] * 6


def test_tensors_of_inference_mode(sums, emulator, by_python):
    """They have no counter, and no gradient can have kept them."""
    with torch.inference_mode():
        out = torch.ones(8)
        sums[0][(1,)](torch.ones(64), out, 64)
        assert out[0].item() == 64
    sums[0][(1,)](torch.ones(64), out, 64)
    assert out[0].item() == 64
    assert by_python == []


def test_a_grid_is_asked_once(sums, emulator):
    """Whichever way the arrays are set to zero."""
    sets, _ = sums
    asked = []

    def grid(meta):
        asked.append(meta["n"])
        return (1,)

    x, out, strided = torch.arange(64.0), torch.ones(4), torch.ones(8)[::2]
    for i in range(8):
        sets[grid](x, strided if i % 2 else out, 64)
    assert asked == [64] * 8
    assert out.tolist() == strided.tolist() == [2016, 0, 0, 0]


def test_what_zero_refuses_is_refused(sums, emulator):
    """As through Triton: nothing is launched."""
    sets, _ = sums
    x = torch.arange(64.0)
    for out, error in (
        (torch.nn.Parameter(torch.ones(4)), RuntimeError),  # a leaf that requires grad
        (None, TypeError),
        (3, TypeError),
    ):
        for _ in range(2):
            with pytest.raises((error, cl.KernelNotFoundError)):
                sets[(1,)](x, out, 64)
        if isinstance(out, torch.Tensor):
            assert out.detach().tolist() == [1, 1, 1, 1]
    sets[(1,)](x, torch.ones(4), 64)


def test_empty_arrays_and_empty_grids(sums, emulator):
    """The hook ran whatever the grid was."""
    sets, _ = sums
    x, out = torch.arange(64.0), torch.ones(4)
    for _ in range(3):
        out.fill_(1)
        sets[(0,)](x, out, 64)
        assert out.tolist() == [0, 0, 0, 0]
        sets[(0,)](x, torch.empty(0), 64)
        sets[(0,)](x, torch.empty(0, 3).t(), 64)


@pytest.mark.slow
def test_as_tritons_own_autotuner_does(run_after_torch, tmp_path):
    """The same memory afterwards, and the same errors, of whatever kind the array is."""
    triton = pytest.importorskip("triton")
    if torch.cuda.is_available():
        pytest.skip("needs no-GPU: with one Triton has a driver of its own")
    if shutil.which("gcc") is None or triton.__version__[:3] != "3.6":
        pytest.skip("needs gcc and Triton 3.6, whose launcher the driver of the test is for")
    program = Path(__file__).parents[1] / "shared" / "zeroes_program.py"
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = run_after_torch([program, tmp_path, "150"], env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["150 True"]


DTYPES = {
    "i8": "int8", "u1": "bool", "fp16": "float16", "bf16": "bfloat16", "fp8e5": "float8_e5m2",
    "fp64": "float64", "i64": "int64", "u8": "uint8", "i32": "int32",
}  # fmt: skip


@pytest.mark.parametrize("count", [8, 9])
def test_elements_of_any_size_in_many_arrays(kernels, emulator, by_python, count):
    """Each byte of each array, and none beside; more than the driver's way takes are set, too."""
    import triton

    from culaunch.triton import compile  # noqa: A004

    names = [f"a{i}" for i in range(9)]

    hook = {8: zero_eight, 9: zero_nine}[count]
    tuner = triton.autotune([triton.Config({}, pre_hook=hook)], key=[])(kernels.nine)
    sets = compile(tuner, ", ".join(f"*{one}" for one in DTYPES), arch="sm_80", keep_ptx=True)
    assert sets.zeroes == tuple(names[:count])
    whole = [torch.full((7 * 8,), 17, dtype=torch.uint8) for _ in names]
    arrays = [
        one.view(getattr(torch, dtype)) if dtype != "bool" else torch.ones(56, dtype=torch.bool)
        for one, dtype in zip(whole, DTYPES.values(), strict=True)
    ]
    for _ in range(3):
        for one in arrays:
            one.view(torch.uint8).fill_(1)
        sets[(1,)](*(one[1:-1] for one in arrays))
        for i, one in enumerate(arrays):
            read = one.view(torch.uint8).view(len(one), -1)
            is_set = i < count
            assert read[0].all()
            assert read[-1].all()
            assert bool(read[1:-1].any()) != is_set
    assert bool(by_python) == (count > 8)


@pytest.mark.slow
@pytest.mark.parametrize("is_tuned", [False, True])
def test_a_hook_that_sets_to_zero_is_carried(kernels, emulator, tmp_path, is_tuned):
    """As through Triton, a second call gives what the first one gave."""
    from culaunch.triton import KernelSet, compile  # noqa: A004

    tuner = kernels.tuned(zero)
    if is_tuned:
        tuner.cache[(64, "torch.float32", "torch.float32")] = tuner.configs[1]
    made = compile(tuner, FLOATS, arch="sm_80", keep_ptx=True)
    made.save(tmp_path / "k.culib")
    loaded = KernelSet.load(tmp_path / "k.culib")
    assert loaded.zeroes == ("out_ptr",)
    assert (loaded.table is not None) == is_tuned
    for one in (made, loaded):
        x, out = torch.arange(64.0), torch.zeros(4)
        for n, total in [(64, 2016), (64, 2016), (32, 496), (64, 2016)]:
            one[(1,)](x, out, n)
            assert out.tolist() == [total, 0, 0, 0]
        one[lambda meta: (1,)](x_ptr=x, out_ptr=out, n=64)
        assert out[0] == 2016
    if not is_tuned:
        loaded[(1,)](x, out, 64, BLOCK=128)
        assert out[0] == 2016
    # NumPy's would be filled without a word of torch's streams.
    with pytest.raises(TypeError, match=r"'out_ptr' .* is set to zero .* beside a torch"):
        loaded[(1,)](x, out.numpy(), 64)


@pytest.mark.slow
def test_what_is_set_to_zero_need_not_be_torchs(kernels, emulator):
    import numpy as np

    import culaunch as cl
    from culaunch.triton import compile  # noqa: A004

    made = compile(kernels.tuned(zero), FLOATS, arch="sm_80", keep_ptx=True)
    host = np.arange(64, dtype="f4")
    for x, out in (
        (host, np.ones(4, "f4")),
        (host, np.ones(8, "f4")[::2]),  # of a view, what lies between its elements stays
        (cl.to_device(host), cl.to_device(np.ones(4, "f4"))),
    ):
        for n, total in ((64, 2016), (32, 496), (64, 2016)):
            made[(1,)](x, out, n)
            found = out if isinstance(out, np.ndarray) else out.on_host()
            assert found.tolist()[0] == total
    assert isinstance(out, cl.DeviceArray)


def test_an_array_is_filled_on_its_device():
    seen = []

    class Device:
        def __enter__(self):
            seen.append("enter")

        def __exit__(self, *_):
            seen.append("exit")

    class Array:
        device = Device()
        __cuda_array_interface__ = None

        def fill(self, value):
            seen.append(value)

    dispatcher.set_to_zero("k", "x", {"x": Array(), "n": 3})
    assert seen == ["enter", 0, "exit"]
    with pytest.raises(TypeError, match="beside"):
        dispatcher.set_to_zero("k", "x", {"x": Array(), "y": type("Other", (Array,), {})()})
    with pytest.raises(TypeError, match="got 3"):
        dispatcher.set_to_zero("k", "x", {"x": 3})
    # As JAX's, which cannot be written in its place.
    fixed = type("Fixed", (), {"__dlpack__": None})()
    with pytest.raises(TypeError, match=r"must be an array .* fill.* \(got a .*Fixed\)"):
        dispatcher.set_to_zero("k", "x", {"x": fixed})


@pytest.mark.gpu
def test_what_is_set_to_zero_on_a_gpu_is_so_in_the_order_of_the_stream(kernels, tmp_path):
    from culaunch.triton import KernelSet, compile  # noqa: A004

    major, minor = torch.cuda.get_device_capability()
    arch = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
    compile(kernels.tuned(zero), FLOATS, arch=arch).save(tmp_path / "k.culib")
    loaded = KernelSet.load(tmp_path / "k.culib")
    x, out = torch.arange(64.0, device="cuda"), torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(100):
            torch.cuda._sleep(10_000)
            loaded[(1,)](x, out, 64)
            assert out.item() == 2016


@pytest.mark.gpu
def test_what_is_set_to_zero_is_part_of_a_graph(kernels, by_python):
    """The zeroing is captured on the stream of the launch, and each replay does it."""
    from culaunch.triton import compile  # noqa: A004

    major, minor = torch.cuda.get_device_capability()
    arch = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
    made = compile(kernels.tuned(zero, (64,)), FLOATS, arch=arch)
    x, out = torch.arange(64.0, device="cuda"), torch.full((4,), 5.0, device="cuda")
    made[(1,)](x, out, 64)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made[(1,)](x, out, 64)
        made[(1,)](x, out, 32)
    for _ in range(3):
        out.fill_(7)
        graph.replay()
        assert out.tolist() == [496, 0, 0, 0]
    strided = torch.full((8,), 5.0, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(3):
            made[(1,)](x, out, 64)
            made[(1,)](x, strided[::2], 64)
            assert out.tolist() == [2016, 0, 0, 0]
    assert strided.tolist() == [2016, 5, 0, 5, 0, 5, 0, 5]
    assert by_python == ["out_ptr"] * 3
