"""On a GPU: with ``install`` kernels give, bit for bit, what they give through Triton."""

import contextlib

import pytest

from culaunch.triton import install, report, uninstall

pytestmark = [pytest.mark.gpu, pytest.mark.needs("triton", "torch")]


@pytest.fixture(autouse=True)
def clean():
    report(clear=True)
    yield
    uninstall()


def arrays(n=1000):
    import torch

    x = torch.arange(float(n), device="cuda")
    return x, torch.ones_like(x), torch.zeros_like(x)


def counts():
    found = report()
    return found.native, found.triton


def test_kernels_under_decorators(kernels):
    import torch
    import triton

    configs = [triton.Config({"BLOCK": block}, num_warps=w) for block, w in ((64, 1), (128, 4))]
    tuned = triton.autotune(configs, key=["n"])(kernels.add)
    chosen = triton.heuristics({"BLOCK": lambda args: 64 if args["n"] < 200 else 128})(kernels.add)
    both = triton.heuristics({"n": lambda args: args["n"]})(tuned)
    grid = lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)  # noqa: E731
    with install():
        for n in (1000, 100, 1000):
            for kernel, more in ((kernels.add, {"BLOCK": 64}), (tuned, {}), (chosen, {})):
                x, y, out = arrays(n)
                kernel[grid](x, y, out, n, **more)
                assert torch.equal(out, x + y)
            x, y, out = arrays(n)
            both[grid](x, y, out, n=n)
            assert torch.equal(out, x + y)
    native, by_triton = counts()
    assert native >= 12
    assert by_triton == 0


def test_what_was_kept_of_a_call(kernels):
    """As libraries with a cache of their own launch it: natively, and by Triton's launcher."""
    import torch

    x, y, out = arrays()
    kernels.add[(16,)](x, y, out, 1000, BLOCK=64)
    stream = torch.cuda.Stream()
    with install():
        compiled = kernels.add[(16,)](x, y, out, 1000, BLOCK=64)
        for other in (x + 1, x + 2):
            compiled[16, 1, 1](other, y, out.zero_(), 1000, 64)
            assert torch.equal(out, other + y)
        assert counts() == (3, 0)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            compiled[16, 1, 1](x + 3, y, out.zero_(), 1000, 64)
            expected = x + 3 + y
            assert torch.equal(out, expected)
        torch.cuda.synchronize()
        current = torch.cuda.current_stream().cuda_stream
        compiled[16, 1, 1](x + 4, y, out.zero_(), 1000, 64, stream=current)  # Triton's way
        assert torch.equal(out, x + 4 + y)
        compiled.run(
            16, 1, 1, current, compiled.function, compiled.packed_metadata, None, None, None,
            x + 5, y, out, 1000, 64,
        )  # fmt: skip
        assert torch.equal(out, x + 5 + y)
    native, others = counts()
    assert (native, others) == (4, 1)
    compiled[16, 1, 1](x + 6, y, out, 1000, 64)
    assert torch.equal(out, x + 6 + y)


def test_what_triton_takes_and_native_code_does_not(kernels):
    """Pinned memory, and arrays of two lazy views: Triton reads their addresses."""
    import torch

    x, y, out = arrays()
    pinned = torch.ones(1000, pin_memory=True)
    with install():
        kernels.add[(16,)](x, pinned, out, 1000, BLOCK=64)
        torch.cuda.synchronize()
        assert torch.equal(out, x + 1)
        with pytest.raises(ValueError, match="cannot be accessed from Triton"):
            kernels.add[(16,)](x, y.cpu(), out, 1000, BLOCK=64)
    assert counts() == (0, 2)


def test_streams_and_graphs(kernels):
    import torch

    x, y, out = arrays()
    with install():
        kernels.add[(16,)](x, y, out, 1000, BLOCK=64)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            out.zero_()
            kernels.add[(16,)](x, y, out, 1000, BLOCK=64)
        stream.synchronize()
        assert torch.equal(out, x + y)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kernels.add[(16,)](x, y, out, 1000, BLOCK=64)
        out.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out, x + y)
    assert counts() == (3, 0)


def test_heuristics_that_read_shapes(kernels):
    import torch
    import triton

    sizes = {
        "BLOCK": lambda args: 64 if args["x"].shape[0] < 500 else 128 * args["x"].stride(-1),
    }
    kernel = triton.heuristics(sizes)(kernels.add)
    grid = lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)  # noqa: E731
    with install():
        for n in (1000, 100, 1000, 100, 1000):
            x, y, out = arrays(n)
            kernel[grid](x=x, y=y, out=out, n=n)
            assert torch.equal(out, x + y)
    assert counts() == (5, 0)
    assert report().kernels[0].notes == ()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # PyTorch's own
def test_inductor(kernels):
    """User-defined kernels in a compiled region, and the kernels that Inductor writes."""
    import torch
    import triton

    configs = [triton.Config({"BLOCK": block}) for block in (64, 128)]
    tuned = triton.autotune(configs, key=["n"])(kernels.add)

    def region(x, y):
        out = torch.zeros_like(x)
        kernels.add[(16,)](x * 2, y, out, 1000, BLOCK=64)
        more = torch.zeros_like(x)
        tuned[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](out, y, more, 1000)
        return more.sin() + 1

    x, y, _ = arrays()
    wanted = torch.compile(region, fullgraph=True)(x, y)
    torch._dynamo.reset()
    with install():
        assert torch.equal(torch.compile(region, fullgraph=True)(x, y), wanted)


def test_it_is_proton_that_profiles(kernels, tmp_path):
    """Proton hooks the launches: a scope has the kernels that are launched natively in it."""
    import json

    import torch

    try:
        import triton.profiler as proton

        session = proton.start(str(tmp_path / "found"), hook="triton")
    except Exception as error:  # noqa: BLE001
        pytest.skip(f"needs triton's profiler: {error}")
    x, y, out = arrays()
    with install():
        with proton.scope("here") if hasattr(proton, "scope") else contextlib.nullcontext():
            for _ in range(3):
                kernels.add[(16,)](x, y, out, 1000, BLOCK=64)
        torch.cuda.synchronize()
    proton.finalize(session)
    assert "add" in json.dumps(json.loads((tmp_path / "found.hatchet").read_text()))
    assert counts() == (3, 0)


@pytest.mark.slow
def test_the_operators_of_a_library_are_bitwise_equal():
    import torch

    pytest.importorskip("liger_kernel", reason="needs liger_kernel")
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    def run():
        torch.manual_seed(0)
        x = torch.randn(64, 512, device="cuda", requires_grad=True)
        weight = torch.randn(512, device="cuda", requires_grad=True)
        y = LigerRMSNormFunction.apply(x, weight, 1e-6, 0.0, "llama", False)
        target = torch.arange(64, device="cuda")
        loss = LigerCrossEntropyFunction.apply(y, target, None)[0]
        loss.backward()
        return y, loss, x.grad, weight.grad

    wanted = run()
    with install():
        found = run()
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)
    assert counts()[0] >= 3
    assert counts()[1] == 0
