"""Native kernels as objects: what keeps them alive, and what is set on them or on Triton's."""

import gc
import importlib
import sys
import textwrap
import weakref

import pytest

pytestmark = pytest.mark.needs("triton", "torch")


@pytest.fixture
def tutorials():
    import tutorials

    return tutorials


@pytest.fixture
def x():
    import torch

    return torch.zeros(4096)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Make modules from a text; each is one of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    count = [0]

    def make(text):
        count[0] += 1
        name = f"made_module_{count[0]}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        try:
            return importlib.import_module(name)
        finally:
            sys.modules.pop(name, None)

    return make


WITH_GLOBAL = """
    import triton
    import triton.language as tl
    from culaunch.triton import native

    class Weight:
        pass

    FACTOR, weight = tl.constexpr(5), Weight()

    @native
    @triton.jit
    def kernel(x):
        tl.store(x, FACTOR)
    """

TUNED_WITH_HOOK = """
    import triton
    import triton.language as tl
    from culaunch.triton import native

    class Weight:
        pass

    weight = Weight()

    def hook(values):
        return kernel

    configs = [triton.Config({"B": 1}, pre_hook=hook), triton.Config({"B": 2}, pre_hook=hook)]

    @native
    @triton.autotune(configs, key=[])
    @triton.jit
    def kernel(x, B: tl.constexpr):
        tl.store(x, B)
    """


@pytest.mark.slow
@pytest.mark.memory
@pytest.mark.usefixtures("frees_kernels")
@pytest.mark.parametrize("text", [WITH_GLOBAL, TUNED_WITH_HOOK], ids=["global", "tuned"])
def test_a_module_dies_with_its_native_kernel(recorder, module, x, text):
    gone = []
    for _ in range(3):
        made = module(text)
        for _ in range(3):
            made.kernel[(1,)](x)
        gone.append(weakref.ref(made.weight))
        del made
    gc.collect()
    assert [one() for one in gone] == [None] * 3


@pytest.mark.slow
@pytest.mark.memory
def test_the_collector_counts_a_choice_once(recorder, tutorials):
    """Several parts share what an autotuner chose; the kernel lives on through collections."""
    import torch

    from culaunch.triton import native

    a = torch.zeros(64 * 64, dtype=torch.half)
    kernel = native(tutorials.autotuned())
    for m in (16, 32, 16, 32, 16):
        kernel[(1,)](a, a, a, m, 16, 16, 16, 1, 16, 1, 16, 1, ACTIVATION="")
        gc.collect()
    assert kernel.best_config.kwargs["BLOCK_M"] in (16, 32)


@pytest.mark.parametrize("through", ["native", "triton"])
def test_replaced_pre_run_hooks_are_noticed(recorder, tutorials, x, monkeypatch, through):
    from culaunch.triton import native

    kernel = native(tutorials.add)
    monkeypatch.setattr(tutorials.add, "pre_run_hooks", [])
    for _ in range(3):
        kernel[(1,)](x, x, x, 64, BLOCK=64)
    seen = []
    target = kernel if through == "native" else tutorials.add
    target.pre_run_hooks = [lambda *_, **__: seen.append(1)]
    kernel[(1,)](x, x, x, 64, BLOCK=64)
    kernel[(1,)](x, x, x, 65, BLOCK=64)
    assert len(seen) == 2
    tutorials.add.pre_run_hooks = []
    kernel[(1,)](x, x, x, 64, BLOCK=64)
    assert len(seen) == 2


def make_tuned(widths=(32, 64), key=("n",)):
    import triton
    from quick_kernels import with_block

    configs = [triton.Config({"B": width}, num_warps=1) for width in widths]
    return triton.autotune(configs, key=list(key))(with_block)


def block_of(kernel, x, n=7):
    kernel[lambda meta: (meta["B"],)](x, n)
    return kernel.best_config.kwargs["B"]


def test_a_choice_that_is_taken_back_is_obeyed(recorder, x):
    from culaunch.triton import native

    tuned = make_tuned()
    kernel = native(tuned)
    for _ in range(3):
        first = block_of(kernel, x)
    other = next(one for one in kernel.configs if one.kwargs["B"] != first)
    (key,) = kernel.cache
    for cache in (kernel.cache, tuned.cache):
        cache[key] = other
        assert [block_of(kernel, x) for _ in range(3)] == [other.kwargs["B"]] * 3
        assert recorder.last.grid == (other.kwargs["B"], 1, 1)
        cache.update({key: next(one for one in kernel.configs if one is not other)})
        assert [block_of(kernel, x) for _ in range(3)] == [first] * 3
    before = len(recorder.launches)
    kernel.cache.clear()
    block_of(kernel, x)
    assert len(recorder.launches) > before + 2  # measured again
    tuned.cache = {key: other}
    assert [block_of(kernel, x) for _ in range(3)] == [other.kwargs["B"]] * 3


@pytest.mark.parametrize("through", ["native", "triton"])
def test_configurations_that_are_replaced_are_used(recorder, x, through):
    import triton

    from culaunch.triton import native

    tuned = make_tuned(widths=(32,))
    kernel = native(tuned)
    target = kernel if through == "native" else tuned
    for _ in range(3):
        assert block_of(kernel, x) == 32
    target.configs = [triton.Config({"B": 64}, num_warps=2)]
    for _ in range(3):
        assert block_of(kernel, x) == 64
    assert recorder.last.block == (64, 1, 1)


def test_configurations_of_another_kind(recorder, x):
    """Several in place of one, and others than those that native code was made from."""
    import triton

    from culaunch.triton import native

    kernel = native(make_tuned(widths=(32,)))
    assert block_of(kernel, x) == 32
    kernel.configs.append(triton.Config({"B": 64}))
    for _ in range(3):
        assert block_of(kernel, x) in (32, 64)
    assert len(kernel.cache) == 1
    del kernel.configs[0]
    for _ in range(3):
        assert block_of(kernel, x) == 64
    kernel.configs[0] = triton.Config({"B": 128})
    assert block_of(kernel, x) == 128
    kernel.configs[0].kwargs["B"] = 256
    assert block_of(kernel, x) == 256
    kernel.configs = [triton.Config({}, num_warps=2)]
    kernel[(1,)](x, 64, B=16)
    assert recorder.last.block == (64, 1, 1)


def test_what_cannot_be_set(recorder, tutorials):
    from culaunch.triton import native

    kernel = native(tutorials.add)
    for name in ("params", "signature", "_kernel"):
        with pytest.raises(AttributeError, match=f"'{name}' of a native kernel cannot be set"):
            setattr(kernel, name, None)
    kernel.note = "mine"
    assert kernel.note == tutorials.add.note == "mine"
    del kernel.note
    assert not hasattr(tutorials.add, "note")
    with pytest.raises(AttributeError, match="'_stack' of a native kernel cannot be deleted"):
        del kernel._stack


def test_every_attribute_of_tritons_object_is_there(recorder, tutorials):
    from culaunch.triton import native

    for own in (tutorials.add, tutorials.autotuned()):
        kernel = native(own)
        for name, value in vars(own).items():
            if not name.startswith("__"):
                assert getattr(kernel, name) is value, name
        assert set(dir(own)) <= set(dir(kernel))
    for name in ("_nothing", "__nothing__", "nothing"):
        with pytest.raises(AttributeError, match=name):
            getattr(kernel, name)


def test_a_run_of_somebodys_own(recorder, tutorials, x):
    import triton

    from culaunch.triton import native

    class Mine(triton.JITFunction):
        def run(self, *args, grid, warmup, **kwargs):
            return "mine"

    with pytest.raises(
        TypeError, match=r"native\(\) cannot launch JITFunction.*a run\(\) of its own"
    ):
        native(Mine(tutorials.add.fn))
    own = triton.jit(tutorials.add.fn)
    kernel = native(own)
    kernel[(1,)](x, x, x, 64, BLOCK=64)
    own.run = lambda *args, **kwargs: (len(args), kwargs["grid"])
    for _ in range(2):
        assert kernel[(1,)](x, x, x, 64, BLOCK=64) == (4, (1,))
    del own.run
    assert kernel[(1,)](x, x, x, 64, BLOCK=64) is not None


def test_a_copy_is_a_kernel_of_its_own(recorder, x):
    import copy

    import triton

    from culaunch.triton import native

    kernel = native(make_tuned(widths=(32,)))
    other = copy.copy(kernel)
    other.configs = [triton.Config({"B": 64})]
    assert (block_of(other, x), block_of(kernel, x)) == (64, 32)


def test_what_a_call_returns_says_what_it_uses(recorder, x, tutorials):
    from culaunch.triton import native

    made = native(tutorials.add)[(1,)](x, x, x, 64, BLOCK=64)
    assert made.n_regs > 0
    assert made.n_spills >= 0
    assert made.n_max_threads >= 128


def test_load_hooks_are_called_once_for_each_kernel(recorder, x, tutorials, monkeypatch):
    from triton import knobs

    from culaunch.triton import native

    seen = []
    for name in ("kernel_load_start_hook", "kernel_load_end_hook"):
        monkeypatch.setattr(
            knobs.runtime, name, lambda *args, name=name: seen.append((name, args[2])),
            raising=False,
        )  # fmt: skip
    kernel = native(tutorials.add)
    for n in (64, 64, 65):
        kernel[(1,)](x, x, x, n, BLOCK=64)
    once = [("kernel_load_start_hook", "add"), ("kernel_load_end_hook", "add")]
    assert seen == once * 2


def test_an_autotuner_may_ask_triton_for_its_device(recorder, x):
    import triton
    from quick_kernels import with_block

    from culaunch.triton import native

    asked = []

    def prune(configs, named_args, **kwargs):
        active = triton.runtime.driver.active
        asked.append(active.get_current_target().arch)
        properties = active.utils.get_device_properties(active.get_current_device())
        asked.append(properties["multiprocessor_count"])
        return configs[:1]

    configs = [triton.Config({"B": 32}), triton.Config({"B": 64})]
    tuned = triton.autotune(configs, key=["n"], prune_configs_by={"early_config_prune": prune})
    kernel = native(tuned(with_block))
    assert block_of(kernel, x) == 32
    assert asked[:2] == [90, recorder.devices[0][16]]
