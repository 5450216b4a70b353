"""``install``: kernels stay Triton's own objects, and are launched natively."""

import copy
import gc
import json
import threading
import weakref
from pathlib import Path

import pytest

from culaunch.triton import NativeKernel, install, native, report, uninstall

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
pytestmark = [
    pytest.mark.usefixtures("counted_anew"),
    pytest.mark.skipif(
        torch.cuda.is_available(), reason="needs no-GPU: with one Triton has a driver of its own"
    ),
]

from installed_calls import ADD, arrays, check, counts  # noqa: E402

FOLDER = Path(__file__).parents[1] / "shared"


def test_every_launch_is_native_and_kernels_stay_tritons_own(kernels):
    jit = triton.runtime.jit
    with install():
        assert type(kernels.add) is jit.JITFunction
        for _ in range(3):
            compiled = check(kernels.add, BLOCK=64)
        check(kernels.add, lambda meta: (triton.cdiv(100, meta["BLOCK"]),), BLOCK=128)
        assert isinstance(compiled, triton.compiler.CompiledKernel)
        assert compiled.n_regs > 0
        assert counts() == {ADD: (4, 0)}
        assert len(next(iter(kernels.add.device_caches.values()))[0]) == 2


def test_kernels_that_were_used_before_and_those_made_later(kernels):
    before = kernels.add
    later = triton.jit(before.fn)
    with install():
        check(before, BLOCK=64)
        check(later, BLOCK=64)
    assert counts() == {ADD: (2, 0)}


def test_run_is_native_too(kernels):
    x, y, out = arrays()
    with install():
        kernels.add.run(x, y, out, 100, grid=(2,), warmup=False, BLOCK=64)
        kernels.add.warmup(x, y, out, 100, grid=(2,), BLOCK=64)
    assert torch.equal(out, x + y)
    assert counts() == {ADD: (1, 0)}


def test_a_kernel_that_calls_another(kernels):
    x, _, out = arrays()
    with install():
        kernels.scaled[(2,)](x, out, 100, BLOCK=64)
    assert torch.equal(out, 2 * x)


def test_decorated_kernels(kernels):
    configs = [triton.Config({"BLOCK": block}) for block in (64, 128)]
    tuned = triton.autotune(configs, key=["n"])(kernels.add)
    chosen = triton.heuristics({"BLOCK": lambda args: 64 if args["n"] < 200 else 128})(kernels.add)
    with install():
        for kernel in (tuned, chosen):
            for _ in range(3):
                check(kernel, lambda meta: (triton.cdiv(100, meta["BLOCK"]),))
    assert counts() == {ADD: (6, 0)}
    assert tuned.best_config in configs
    assert len(tuned.cache) == 1


def test_configurations_that_change_in_place(kernels):
    """Those of a list that was replaced, too."""
    import triton

    tuner = triton.autotune([triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"])
    kernel = tuner(kernels.add)

    def chosen():
        x, y, out = arrays()
        for _ in range(2):
            kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, out, 100)
        assert out[:100].tolist() == (x + y)[:100].tolist()
        return kernel.best_config.kwargs["BLOCK"]

    with install():
        assert chosen() in (16, 32)
        kernel.configs = [triton.Config({"BLOCK": 64})]
        assert chosen() == 64
        kernel.configs[0] = triton.Config({"BLOCK": 128})
        assert chosen() == 128
        kernel.configs[0].kwargs["BLOCK"] = 64
        assert chosen() == 64
        kernel.configs.append(triton.Config({"BLOCK": 8}))
        kernel.cache.clear()
        assert chosen() in (64, 8)
        assert list(kernel.cache.values()) == [kernel.best_config]
        kernel.cache[next(iter(kernel.cache))] = kernel.configs[1]
        assert chosen() == 8


def test_a_module_that_is_loaded_again(kernels):
    import importlib

    with install():
        before = kernels.add
        x, y, out = arrays()
        before[(16,)](x, y, out, 100, BLOCK=64)
        again = importlib.reload(kernels)
        assert again.add is not before
        for kernel in (before, again.add):
            kernel[(16,)](x, y, out, 100, BLOCK=64)
    assert counts() == {ADD: (3, 0)}


def test_what_cannot_go_natively_is_left_to_triton_with_its_own_error(kernels):
    x, y, out = arrays()
    with install():
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'BLOCK'"):
            kernels.add[(1,)](x, y, out, 100)
        with pytest.raises(TypeError, match=r"failed to specialize argument|Unsupported type"):
            kernels.add[(1,)]("x", y, out, 100, BLOCK=64)
        with pytest.raises(TypeError):
            kernels.add[1.5](x, y, out, 100, BLOCK=64)
    (found,) = report().kernels
    assert (found.native, found.triton) == (0, 3)
    assert any("is missing argument 'BLOCK'" in reason for reason in found.reasons)
    assert any("got str 'x'" in reason for reason in found.reasons)


def test_a_kernel_whose_image_does_not_load_falls_back(kernels, monkeypatch):
    def fail(self, *args):
        raise RuntimeError("no such layout")

    monkeypatch.setattr(NativeKernel, "_load", fail)
    with install(), pytest.raises(Exception):  # noqa: B017, PT011 - Triton has no device here
        check(kernels.add, BLOCK=64)
    (found,) = report().kernels
    assert found.reasons == {"RuntimeError: no such layout": 1}


def test_include_and_exclude(kernels):
    x, _, out = arrays()
    with install(include="installed_*", exclude=["*.scaled"]):
        check(kernels.add, BLOCK=64)
        with pytest.raises(Exception):  # noqa: B017, PT011 - Triton has no device here
            kernels.scaled[(2,)](x, out, 100, BLOCK=64)
    (add, scaled) = report().kernels
    assert (add.native, add.triton) == (1, 0)
    assert scaled.reasons == {"exclude='*.scaled'": 1}
    with pytest.raises(TypeError, match="include must contain only str, patterns of kernel names"):
        install(include=[1])


def test_uninstall_leaves_nothing(kernels):
    jit, autotuner = triton.runtime.jit, triton.runtime.autotuner
    classes = (jit.KernelInterface, jit.JITFunction, autotuner.Autotuner, autotuner.Heuristics)
    before = [dict(vars(kind)) for kind in classes]
    install()
    install()
    check(kernels.add, BLOCK=64)
    attributes = set(vars(kernels.add))
    assert [dict(vars(kind)) for kind in classes] != before
    uninstall()
    uninstall()
    assert [dict(vars(kind)) for kind in classes] == before
    assert attributes - set(vars(kernels.add)) == {"_culaunch_native"}


def test_blocks_nest(kernels):
    with install(include="nothing"):
        with install():
            check(kernels.add, BLOCK=64)
        with pytest.raises(Exception):  # noqa: B017, PT011 - Triton has no device here
            check(kernels.add, BLOCK=64)
    assert counts() == {ADD: (1, 1)}


@pytest.mark.parametrize("is_used", [True, False])
def test_a_launcher_that_was_kept_is_tritons_again(kernels, is_used):
    x, y, out = arrays()
    with install():
        launcher = kernels.add[(2,)]
        if is_used:
            launcher(x, y, out, 100, BLOCK=64)
    with pytest.raises(RuntimeError, match="Triton cannot launch"):
        launcher(x, y, out, 100, BLOCK=64)
    assert counts() == ({ADD: (1, 0)} if is_used else {})


def test_a_copy_is_a_kernel_of_its_own(kernels):
    with install():
        tuned = triton.autotune([triton.Config({"BLOCK": 64})], key=[])(kernels.add)
        check(tuned)
        other = copy.copy(tuned)
        other.configs = [triton.Config({"BLOCK": 128})]
        check(other)
        assert other.best_config.kwargs == {"BLOCK": 128}
        assert tuned.best_config.kwargs == {"BLOCK": 64}


def test_native_works_while_installed(kernels):
    made = native(triton.autotune([triton.Config({"BLOCK": 64})], key=[])(kernels.add))
    with install():
        check(made)
        check(native(kernels.add), BLOCK=64)
    assert counts() == {}


@pytest.mark.slow
@pytest.mark.usefixtures("frees_kernels")
def test_kernels_are_freed(kernels):
    def make():
        kernel = triton.jit(kernels.add.fn)
        check(kernel, BLOCK=64)
        return weakref.ref(kernel)

    with install():
        gone = make()
        gc.collect()
        assert gone() is None


def made_where_one_was(function, addresses):
    """Returns a kernel, at one of ``addresses`` if Python's allocator can give it one of them.

    Other objects may be there by now. So this fills the free places of this size up to a known one,
    which the kernel then gets: the allocator reuses the last place first.
    """
    cls = triton.runtime.jit.JITFunction
    places = []
    for _ in range(2000):
        places.append(object.__new__(cls))
        if id(places[-1]) in addresses:
            del places[-1]
            break
    return cls(function)


def test_a_kernel_where_another_was(kernels):
    """A kernel at a reused address does not get what was remembered for the old one."""
    addresses = set()
    reused = 0
    with install():
        for i in range(40):
            kernel = made_where_one_was(kernels.add.fn, addresses)
            for block in (64, 128, 64):
                check(kernel, BLOCK=block)
            reused += id(kernel) in addresses
            addresses.add(id(kernel))
            if i % 10 == 0:
                with install(include="installed_*"):  # every half is made again
                    check(kernel, BLOCK=64)
            del kernel
            gc.collect()
    assert reused > 20
    assert counts()[ADD] == (40 * 3 + 4, 0)


@pytest.mark.slow
def test_many_threads(kernels):
    failures = []

    def work():
        try:
            for _ in range(20):
                check(kernels.add, BLOCK=64)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    with install():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            install()
        for thread in threads:
            thread.join()
    assert not failures
    assert counts() == {ADD: (80, 0)}


def test_the_report_is_a_table_and_json(kernels):
    assert str(report()) == "no Triton kernel was launched"
    with install():
        check(kernels.add, BLOCK=64)
    table = str(report()).splitlines()
    assert table[0].split() == ["kernel", "native", "Triton"]
    assert table[1].split() == [ADD, "1", "0"]
    assert json.loads(report().to_json())["kernels"][0]["native"] == 1
    report(clear=True)
    assert report().kernels == ()


def test_a_global_that_is_compared_at_every_launch_is_named(kernels, monkeypatch):
    import as_triton_kernels

    monkeypatch.setenv("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", "1")
    monkeypatch.setattr(as_triton_kernels, "FACTOR", [5])
    slow, quick = (
        triton.jit(getattr(as_triton_kernels, name).fn)
        for name in ("times_first", "times_by_function")
    )
    out = torch.zeros(1, dtype=torch.int64)
    with install():
        for _ in range(2):
            slow[1,](out, 7)
            quick[1,](out, 7, 2)
    notes = {one.name: one.notes for one in report().kernels}
    assert notes == {
        "as_triton_kernels.times_first": (
            "the global FACTOR is compared at every launch: it may change in place",
        ),
        "as_triton_kernels.times_by_function": (),
    }
    assert "in Python: the global FACTOR is compared" in str(report())


def test_hooks_of_the_compiler_are_told_of_a_launch(kernels, monkeypatch):
    runtime = triton.knobs.runtime
    told = []
    monkeypatch.setattr(
        runtime, "jit_post_compile_hook", lambda **more: told.append(more["is_manual_warmup"])
    )
    with install():
        kernel = triton.jit(kernels.add.fn)
        check(kernel, BLOCK=64)
        kernel.warmup(*arrays(), 100, BLOCK=32, grid=(1,))
    assert told == [False, True]
    assert "_call_hook" not in vars(kernel)
