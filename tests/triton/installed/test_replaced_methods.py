"""``install`` with others that replace or wrap Triton's methods."""

import functools
import sys

import pytest

from culaunch.triton import install, report

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
pytestmark = [
    pytest.mark.usefixtures("counted_anew"),
    pytest.mark.skipif(
        torch.cuda.is_available(), reason="needs no-GPU: with one Triton has a driver of its own"
    ),
]

from installed_calls import ADD, arrays, check, counts  # noqa: E402


def test_a_method_that_somebody_replaced_is_called(kernels):
    jit = triton.runtime.jit.JITFunction
    calls = []
    with install():
        check(kernels.add, BLOCK=64)
        kernels.add.run = lambda *args, **kwargs: calls.append("of the kernel")
        kernels.add[(2,)](1)
        del kernels.add.run
        check(kernels.add, BLOCK=64)
        ours = jit.run

        def theirs(self, *args, **kwargs):
            calls.append("of the class")
            return ours(self, *args, **kwargs)

        jit.run = theirs
        try:
            check(kernels.add, BLOCK=64)
        finally:
            jit.run = ours
        check(kernels.add, BLOCK=64)
    assert calls == ["of the kernel", "of the class"]
    assert counts() == {ADD: (4, 0)}


def test_a_method_that_somebody_replaced_below_a_decorator_is_called(kernels):
    jit = triton.runtime.jit.JITFunction
    tuned = triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=[])(
        kernels.add
    )
    chosen = triton.heuristics({"BLOCK": lambda args: 64})(kernels.add)
    calls = []
    with install():
        for kernel in (tuned, chosen):
            check(kernel)
        ours = jit.run

        def theirs(self, *args, **kwargs):
            calls.append(kwargs["warmup"])
            return ours(self, *args, **kwargs)

        jit.run = theirs
        try:
            for kernel in (tuned, chosen):
                check(kernel)
            check(triton.jit(kernels.add.fn), BLOCK=64)  # compiling it is no call
        finally:
            jit.run = ours
        for kernel in (tuned, chosen):
            check(kernel)
    assert calls == [False] * 3
    assert counts()[ADD][1] == 0


def test_a_method_that_somebody_had_replaced_before_is_called(kernels, monkeypatch):
    jit = triton.runtime.jit
    calls = []

    def counted(kind, name):
        before = getattr(kind, name)

        @functools.wraps(before)
        def method(self, *args, **kwargs):
            calls.append(name)
            return before(self, *args, **kwargs)

        monkeypatch.setattr(kind, name, method)

    with monkeypatch.context() as patch:
        monkeypatch = patch
        counted(jit.KernelInterface, "__getitem__")
        with install():
            check(kernels.add, BLOCK=64)
            assert calls == ["__getitem__"]
            assert counts() == {ADD: (1, 0)}
        counted(jit.JITFunction, "run")
        with install(), pytest.raises(RuntimeError, match="Triton cannot launch"):
            check(kernels.add, BLOCK=64)
        assert calls == ["__getitem__", "__getitem__", "run"]
    (found,) = report().kernels
    assert found.reasons == {
        "other code replaced JITFunction.run before install(): it is called": 1
    }


def test_a_method_that_stands_in_tritons_place_says_that_it_is_tritons():
    jit = triton.runtime.jit
    before = vars(jit.KernelInterface)["__getitem__"]
    with install():
        now = jit.JITFunction.__getitem__
        assert now is not before
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            assert getattr(now, name) == getattr(before, name)
        assert functools.wraps(now)(lambda: None).__name__ == "__getitem__"


@pytest.mark.slow
def test_a_wrapper_of_somebodys_own_is_subscripted_as_ever(kernels):
    """A subclass of Triton's interface, as libraries with a cache of their own have one."""

    class Entry(triton.KernelInterface):
        def run(self, *args, grid, warmup, **kwargs):
            return kernels.add.run(*args, grid=grid, warmup=warmup, **kwargs)

    entry = Entry()
    x, y, out = arrays()
    with install():
        entry[2,](x, y, out, 100, BLOCK=64)
        assert torch.equal(out, x + y)
        assert counts() == {ADD: (1, 0)}
        called = []
        sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_filename))
        try:
            entry[2,]
        finally:
            sys.setprofile(None)
    assert [one for one in called if "culaunch" in one and one != __file__] == []
