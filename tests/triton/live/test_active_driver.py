"""Queries of Triton's active driver get an answer on the emulator, too."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

from culaunch.triton import install, native  # noqa: E402

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="needs no-GPU: with one Triton has a driver of its own"
)


@pytest.fixture(autouse=True)
def emulator(monkeypatch, tmp_path, on_emulator):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def fill(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, i, mask=i < n)


asked = []


def prune(configs, _arguments, **_more):
    asked.append(triton.runtime.driver.active.get_current_target().backend)
    return configs[:1]


CONFIGS = [triton.Config({"BLOCK": size}) for size in (64, 128)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{"cache_results": True}, {"prune_configs_by": {"early_config_prune": prune}}],
    ids=["cache_results", "early_config_prune"],
)
def test_an_autotuner_that_asks(options):
    asked.clear()
    kernel = native(triton.autotune(CONFIGS, key=["n"], **options)(triton.jit(fill)))
    x = torch.zeros(100, dtype=torch.int32)
    kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, 100)
    assert torch.equal(x, torch.arange(100, dtype=torch.int32))
    assert asked == (["cuda"] if "prune_configs_by" in options else [])


@pytest.mark.filterwarnings("ignore:warmup, rep, and use_cuda_graph")
def test_an_autotuner_that_measures_for_a_while():
    """Triton's own measuring asks it for events."""
    tuned = triton.autotune(CONFIGS, key=["n"], warmup=1, rep=1)(triton.jit(fill))
    with install():
        x = torch.zeros(100, dtype=torch.int32)
        tuned[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, 100)
    assert torch.equal(x, torch.arange(100, dtype=torch.int32))
    assert set(tuned.configs_timings) == set(CONFIGS)
    assert all(time > 0 for times in tuned.configs_timings.values() for time in times)


def test_an_autotuner_under_heuristics_that_asks():
    tuned = triton.autotune(CONFIGS, key=["n"], prune_configs_by={"early_config_prune": prune})
    with_even = triton.heuristics({"n": lambda arguments: arguments["n"]})(triton.jit(fill))
    asked.clear()
    x = torch.zeros(64, dtype=torch.int32)
    native(tuned(with_even))[(1,)](x, n=64)
    assert asked == ["cuda"]
    assert torch.equal(x, torch.arange(64, dtype=torch.int32))


def test_a_wrapper_that_asks():
    native(triton.jit(fill))
    active = triton.runtime.driver.active
    assert active.get_current_target().arch == 80
    properties = active.utils.get_device_properties(active.get_current_device())
    assert properties["multiprocessor_count"] == 16
    assert properties["max_shared_mem"] == 163 * 1024


class Buffer:
    """What FlagGems passes: an address and a type, and PyTorch's methods for the rest."""

    def __init__(self, tensor, **methods):
        self.dtype, self.tensor = tensor.dtype, tensor
        self.__dict__.update(methods)

    def data_ptr(self):
        return self.tensor.data_ptr()


@pytest.mark.parametrize("how", ["storage", "nbytes", "methods"])
def test_an_address_with_a_type_is_known_by_what_tells_its_size(how):
    x = torch.zeros(1 << 17, dtype=torch.int32)
    methods = {
        "storage": {"untyped_storage": x.untyped_storage},
        "nbytes": {"nbytes": x.nbytes},
        "methods": {"numel": x.numel, "element_size": x.element_size},
    }
    native(triton.jit(fill))[(1,)](Buffer(x, **methods[how]), 64, BLOCK=64)
    assert torch.equal(x[:65], torch.tensor([*range(64), 0], dtype=torch.int32))
