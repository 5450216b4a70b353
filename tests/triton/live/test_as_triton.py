"""Settings that Triton reads at each ``run`` hold for native calls from the first one on."""

import contextlib
import gc
import inspect
import re
import weakref

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="needs no-GPU: with one Triton has a driver of its own"
)

import as_triton_kernels as kernels  # noqa: E402
import triton.language as tl  # noqa: E402
from triton import knobs  # noqa: E402

from culaunch._triton.live import tritons_run, watching_dispatch  # noqa: E402


@pytest.fixture
def fresh(launched):
    """Make a kernel that nobody has called, and what launches it."""

    def make(function, **options):
        kernel = triton.jit(function.fn, **options)
        return kernel, launched(kernel)

    return make


def launch(kernel, *args, grid=(1,), **more):
    out = torch.zeros(1, dtype=torch.int64)
    result = kernel[grid](out, *args, **more)
    return int(out[0]), result


def test_hooks_that_are_there_before_the_first_call(fresh, monkeypatch):
    seen = []
    own, kernel = fresh(kernels.put, launch_metadata=lambda grid, _, args: {"g": (grid, args["v"])})
    own.add_pre_run_hook(lambda *args, **kwargs: seen.append("before"))
    hook = lambda metadata: seen.append(metadata.get()["g"])  # noqa: E731
    chain = knobs.runtime.launch_enter_hook
    if hasattr(chain, "add"):
        chain.add(hook)
    else:
        monkeypatch.setattr(knobs.runtime, "launch_enter_hook", hook)
    try:
        assert launch(kernel, 7)[0] == 7
        assert launch(kernel, 7, grid=lambda meta: [1, 1])[0] == 7
    finally:
        if hasattr(chain, "remove"):
            chain.remove(hook)
    assert seen == ["before", ((1,), 7), "before", ([1, 1], 7)]


def test_a_pre_run_hook_is_given_what_decorators_chose(launched):
    own = triton.jit(kernels.sized.fn)
    configs = [triton.Config({"SIZE": 3}, num_warps=2)]
    above = triton.heuristics({"EVEN": lambda args: args["v"] % 2 == 0})
    kernel = launched(triton.autotune(configs, key=[])(above(own)))
    assert launch(kernel, 8)[0] == 12
    seen = []
    own.add_pre_run_hook(lambda *args, **kwargs: seen.append(kwargs))
    assert launch(kernel, 5)[0] == 8
    (kwargs,) = seen
    known = {"SIZE": 3, "EVEN": False, "num_warps": 2, "debug": False}
    assert {name: kwargs[name] for name in known} == known
    own.pre_run_hooks.clear()
    assert launch(kernel, 5)[0] == 8
    assert len(seen) == 1


def test_what_triton_forgets_is_compiled_again(fresh):
    own, kernel = fresh(kernels.put)
    first = launch(kernel, 7)[1]
    assert launch(kernel, 7)[1] is first
    for forget in (
        own.device_caches.clear,
        lambda: next(iter(own.device_caches.values()))[0].clear(),
        lambda: setattr(own, "device_caches", type(own.device_caches)(own.create_binder)),
    ):
        forget()
        value, second = launch(kernel, 7)
        assert value == 7
        assert second is not first
        assert launch(kernel, 7)[1] is second
        first = second
    launch(kernel, 1)  # another specialization leaves it
    assert launch(kernel, 7)[1] is second
    gone = weakref.ref(second)
    own.device_caches.clear()
    del first, second
    launch(kernel, 1)
    gc.collect()
    assert gone() is None


def test_a_function_that_is_a_constant_and_gets_another_source(fresh):
    if not hasattr(kernels.three, "_unsafe_update_src"):
        pytest.skip("needs triton.JITFunction._unsafe_update_src")
    if not hasattr(triton.runtime.jit, "compute_cache_key"):
        pytest.skip("needs a Triton whose own keys have the sources of constants")
    _, kernel = fresh(kernels.asks)
    three = triton.jit(kernels.three.fn)
    source = three.src
    for number in (3, 4, 3):
        three._unsafe_update_src(source.replace("3", str(number)))
        assert [launch(kernel, three)[0] for _ in range(2)] == [number] * 2


def test_a_global_that_changes_in_place(fresh, monkeypatch):
    monkeypatch.setattr(kernels, "FACTOR", tl.constexpr(2))
    _, kernel = fresh(kernels.times)
    assert [launch(kernel, 7)[0] for _ in range(2)] == [14] * 2
    kernels.FACTOR.value = 3
    with pytest.raises(RuntimeError, match="FACTOR has changed since we compiled this kernel"):
        launch(kernel, 7)
    kernels.FACTOR.value = 2
    assert launch(kernel, 7)[0] == 14


def test_a_global_that_only_triton_can_compare(fresh, monkeypatch):
    monkeypatch.setenv("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", "1")
    monkeypatch.setattr(kernels, "FACTOR", [5])
    _, kernel = fresh(kernels.times_first)
    assert [launch(kernel, 7)[0] for _ in range(2)] == [35] * 2
    kernels.FACTOR[0] = 6
    with pytest.raises(RuntimeError, match="FACTOR has changed since we compiled this kernel"):
        launch(kernel, 7)


def test_a_global_that_is_a_function_costs_nothing(fresh, monkeypatch):
    """A function is equal only to itself, so its presence is enough."""
    _, kernel = fresh(kernels.times_by_function)
    assert [launch(kernel, 7, 2)[0] for _ in range(2)] == [42] * 2
    python = []
    with monkeypatch.context() as context:
        context.setattr(watching_dispatch, "run_as_triton", lambda *_: python.append(1))
        assert [launch(kernel, 5, 2)[0] for _ in range(2)] == [30] * 2
    assert python == []
    monkeypatch.setattr(kernels, "thrice", tl.constexpr(lambda value: 4 * value))
    with pytest.raises(RuntimeError, match="thrice has changed since we compiled this kernel"):
        launch(kernel, 7, 2)


@pytest.mark.parametrize("why", ["a global that may change in place", "a hook"])
def test_where_python_looks_at_each_call_it_looks_at_no_more_than_that(fresh, monkeypatch, why):
    monkeypatch.setenv("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", "1")
    monkeypatch.setattr(kernels, "FACTOR", [5])
    own, kernel = fresh(kernels.put if why == "a hook" else kernels.times_first)
    seen = []
    if why == "a hook":
        own.add_pre_run_hook(lambda *_, **__: seen.append("hook"))
    expected = launch(kernel, 7)[0]
    looks, runs = [], []
    kind = watching_dispatch.WatchingDispatcher
    watch, run = kind._watch, watching_dispatch.run_as_triton
    monkeypatch.setattr(kind, "_watch", lambda self: [looks.append(1), watch(self)])
    monkeypatch.setattr(
        watching_dispatch, "run_as_triton", lambda *given: [runs.append(1), run(*given)][1]
    )
    assert [launch(kernel, 7)[0] for _ in range(3)] == [expected] * 3
    assert (looks, len(runs), len(seen)) == ([], 3, 4 if why == "a hook" else 0)


def test_a_view_with_other_strides_than_the_kernel_reads_by(fresh):
    """As libraries gather: the emulator knows the storage behind a stride of 0."""
    _, kernel = fresh(kernels.put_element)
    x = torch.arange(64).as_strided((8, 8), (8, 0))
    for i in (63, 62, 61):
        assert launch(kernel, x, i)[0] == i


def test_debug_that_is_set_later(fresh):
    own, kernel = fresh(kernels.put)
    assert launch(kernel, 7)[1].metadata.debug is False
    own.debug = True
    assert launch(kernel, 7)[1].metadata.debug is True
    own.debug = False
    assert launch(kernel, 7)[1].metadata.debug is False


def test_a_number_that_is_too_large_for_fp16(fresh):
    _, kernel = fresh(kernels.put_half)
    with pytest.raises((OverflowError, RuntimeError), match=r"fit fp16|Triton cannot launch"):
        launch(kernel, 65520.0)
    assert launch(kernel, 65519.0)[0] == 65504
    launch(kernel, float("inf"))


def test_globals_are_compared_in_tritons_order(fresh, monkeypatch):
    """After the hooks, which run first."""
    run = inspect.getsource(inspect.unwrap(triton.runtime.JITFunction.run))
    assert run.index("pre_run_hooks") < run.index("has changed")
    monkeypatch.setattr(kernels, "FACTOR", tl.constexpr(2))
    own, kernel = fresh(kernels.times)
    launch(kernel, 7)
    seen = []
    own.add_pre_run_hook(lambda *_, **__: seen.append("hook"))
    monkeypatch.setattr(kernels, "FACTOR", tl.constexpr(3))
    with pytest.raises(RuntimeError, match="FACTOR has changed"):
        launch(kernel, 7)
    assert seen == ["hook"]
    # And after the lookup, which refuses an option that nobody knows.
    with pytest.raises(KeyError, match="nothing was specified but unrecognised"):
        launch(kernel, 7, nothing=1)


def test_every_knob_that_tritons_run_reads_is_watched():
    """A knob of a newer version that affects compiled code must be known."""
    run = inspect.getsource(inspect.unwrap(triton.runtime.JITFunction.run))
    read = set(re.findall(r"knobs\.(\w+\.\w+)", run))
    # Triton calls these to compile, for every specialization.
    read -= {"runtime.jit_cache_hook", "runtime.jit_post_compile_hook"}
    known = {".".join(one) for one in tritons_run.COMPILED_IN}
    assert read <= known | {f"runtime.{one}" for one in (*tritons_run.AROUND, tritons_run.ASKED)}


def test_a_hook_runs_once_where_the_call_is_left_to_triton(on_emulator):
    """A custom `run` does the same."""
    from culaunch.triton import install

    seen = []
    with install():
        plain = triton.jit(kernels.sized.fn)
        tuned = triton.autotune([triton.Config({"SIZE": 3})], key=[])(plain)
        assert launch(plain, 1, SIZE=3, EVEN=0)[0] == launch(tuned, 1, EVEN=0)[0] == 4
        plain.add_pre_run_hook(lambda *_, **__: seen.append("hook"))
        for kernel, more in ((plain, {"SIZE": 3}), (tuned, {})):
            with pytest.raises(TypeError, match=r"specialize|Unsupported"):
                launch(kernel, "x", EVEN=0, **more)
        assert seen == ["hook"] * 2
        plain.pre_run_hooks.clear()
        run = plain.run
        plain.run = lambda *args, **kwargs: (seen.append("run"), run(*args, **kwargs))[1]
        for value in (1, "x"):
            plain.device_caches.clear()
            seen.clear()
            with contextlib.suppress(TypeError, RuntimeError):  # Triton has no device here
                launch(plain, value, SIZE=3, EVEN=0)
            assert seen == ["run"]


def test_a_changed_global_is_refused_by_what_a_decorator_calls(launched, monkeypatch):
    monkeypatch.setattr(kernels, "FACTOR", tl.constexpr(2))
    seen = []
    tuned = triton.autotune(
        [triton.Config({}), triton.Config({}, num_warps=2)], key=["v"],
        pre_hook=lambda *_, **__: seen.append("before"),
        post_hook=lambda *_, **__: seen.append("after"),
    )(triton.jit(kernels.times.fn))  # fmt: skip
    kernel = launched(tuned)
    assert launch(kernel, 7)[0] == 14
    seen.clear()
    monkeypatch.setattr(kernels, "FACTOR", tl.constexpr(3))
    with pytest.raises(RuntimeError, match="FACTOR has changed"):
        launch(kernel, 8)
    assert seen == ["before", "after"]


def test_arguments_are_looked_at_before_a_grid_is_asked(fresh):
    _, kernel = fresh(kernels.put)
    grid = lambda meta: (meta["v"] // 7,)  # noqa: E731
    for _ in range(3):
        assert launch(kernel, 7, grid=grid)[0] == 7
    with pytest.raises(
        TypeError, match=r"missing 1 required positional argument|is missing argument"
    ):
        launch(kernel, grid=grid)
    with pytest.raises(TypeError, match=r"specialize|Unsupported|must be a tensor"):
        launch(kernel, "text", grid=grid)
    with pytest.raises(ZeroDivisionError):
        launch(kernel, 7, grid=lambda meta: (meta["v"] // 0,))


def test_what_triton_refuses_is_refused_wsuggestion_installed(on_emulator):
    from culaunch.triton import install, native, report

    report(clear=True)
    with install():
        kernel = triton.jit(kernels.put.fn)
        out = torch.zeros(1, dtype=torch.int64)
        for grid in (1, lambda meta: 1):
            with pytest.raises(TypeError, match="has no len"):
                kernel[grid](out, 7)
        with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'warmup'"):
            kernel.run(out, 7, grid=(1,))
        assert out[0] == 0
        assert report().native == 0
        # A launch that is too large is refused by the driver, as with Triton.
        with pytest.raises(RuntimeError, match="is too large"):
            kernel[(1, 70_000)](out, 7)
    native(kernel)[1](out, 7)
    assert out[0] == 7
