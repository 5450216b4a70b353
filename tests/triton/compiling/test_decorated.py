"""A saved set stores the work of decorators and hooks, requires it from its calls, or refuses it.
It never drops it."""

import functools

import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("triton", "torch")

FLOATS = "*fp32:16, *fp32:16, i32"


def zero(kw):
    kw["out_ptr"].zero_()


def zero_twice(kw):
    for name in ("out_ptr", "x_ptr"):
        kw[name].zero_()


def init_to_zero(name):
    return lambda nargs: nargs[name].zero_()


COUNT = 0


def counts(kw):
    global COUNT
    COUNT += 1
    kw["out_ptr"].zero_()


def looks(kw):
    if kw["n"] > 3:
        kw["out_ptr"].zero_()


def catches(kw):
    try:
        kw["out_ptr"].fill_(0)
    except:  # noqa: E722
        kw["out_ptr"].zero_()


def zero_(_):
    """A global of the method's name."""


def calls_a_global(kw):
    zero_(kw["out_ptr"])


def uses_the_result(kw):
    kw["x_ptr"] = kw["out_ptr"].zero_()


def sets_a_block(kw):
    kw["out_ptr"].block_shape = [1]


def has_a_default(kw, name="out_ptr"):
    kw[name].zero_()


def asks_with_a_number(kw):
    kw[0].zero_()


def makes_a_generator(kw):
    yield kw["out_ptr"].zero_()


def zeroes_an_argument(kw):
    kw["out_ptr"].zero_(1)


def hook_over(cell):
    return lambda kw: kw[cell[0]].zero_()


def zeroes_those_given(names):
    return lambda kw: [kw[name].zero_() for name in names if kw[name] is not None]


def changes_its_list(names):
    def hook(kw):
        names[0] = "b"

    return hook


def adds_to_its_names(names):
    def hook(kw):
        nonlocal names
        names += ("b",)
        kw[names[-1]].zero_()

    return hook


def effects(hook):
    from culaunch._triton.compiling.hook_effects import effects_of

    return effects_of(
        hook,
        {"BLOCK": 64},
        {**dict.fromkeys(["out_ptr", "x_ptr", "n", *"Cab"], "*fp32"), "left_out": "constexpr"},
    )


@pytest.mark.parametrize(
    ("hook", "names"),
    [
        (zero, ("out_ptr",)),
        (zero_twice, ("out_ptr", "x_ptr")),
        (init_to_zero("C"), ("C",)),
        (lambda kw: [kw["a"].zero_(), kw["b"].zero_()], ("a", "b")),
        (hook_over(("a",)), ("a",)),
        (hook_over(["a"]), ("a",)),
        (zeroes_those_given(["a", "left_out", "b"]), ("a", "b")),
        (has_a_default, ("out_ptr",)),
        (lambda kw, names=("a", "b"): [kw[name].zero_() for name in names], ("a", "b")),
        (lambda kw: None, ()),
    ],
)
def test_a_hook_that_can_only_set_to_zero_is_data(hook, names):
    assert effects(hook).zeroes == names
    assert effects(hook).blocks == {}


@pytest.mark.parametrize(
    "hook",
    [
        counts, looks, catches, calls_a_global, uses_the_result, sets_a_block,
        asks_with_a_number, makes_a_generator, zeroes_an_argument, hook_over([0]), print,
        changes_its_list(["a"]), adds_to_its_names(["a"]), adds_to_its_names(("a",)),
        lambda kw, other: kw["a"].zero_(), lambda kw, names=FLOATS: [print(one) for one in names],
        functools.partial(zero), type("Hook", (), {"__call__": lambda self, kw: None})(),
        lambda *args: None, lambda **kw: None, lambda: None, lambda kw: [0 for one in kw],
        lambda kw: kw.zero_(), lambda kw: kw["a"] == kw["b"], lambda kw: f"{kw['a']}",
        lambda kw: kw["a"].zero_().zero_(), lambda kw: [*kw["a"]], lambda kw: not kw["a"],
        lambda kw: kw["a"] + 1, lambda kw: {kw["a"]: 1}, lambda kw: "a" in kw,
        lambda kw: lambda: kw["a"].zero_(),
    ],
)  # fmt: skip
def test_a_hook_that_may_do_anything_else_is_not(hook):
    assert effects(hook) is None


@pytest.mark.parametrize("hook", [counts, looks, sets_a_block])
def test_any_other_hook_is_refused(kernels, hook, tmp_path):
    from click.testing import CliRunner

    from culaunch.cli.triton import command
    from culaunch.triton import compile  # noqa: A004

    with pytest.raises(ValueError, match=r"BLOCK: 64.* has a pre_hook, .* cannot be saved"):
        compile(kernels.tuned(hook), FLOATS, arch="sm_80")
    # Configurations of one's own do not say which hooks they need.
    with pytest.raises(ValueError, match="has a pre_hook"):
        compile(kernels.tuned(hook), FLOATS, arch="sm_80", configs=[{"BLOCK": 64}])
    (tmp_path / "k1.py").write_text(
        "import triton\nfrom decorated_kernels import accumulate as plain\n"
        "def hook(kw):\n    print(kw)\n"
        "configs = [triton.Config({'BLOCK': 64}, pre_hook=hook)]\n"
        "accumulate = triton.autotune(configs, key=[])(plain)\n"
    )
    words = [f"{tmp_path}/k1.py:accumulate", "--signature", FLOATS, "--arch", "sm_80"]
    done = CliRunner().invoke(command, [*words, "-o", str(tmp_path / "k.culib")])
    assert "has a pre_hook" in str(done.exception)
    done = CliRunner().invoke(command, [*words, "--c-output", str(tmp_path / "k.c")])
    assert "has a pre_hook" in str(done.exception)
    assert [one.name for one in tmp_path.iterdir()] == ["k1.py"]


def test_hooks_that_differ_or_zero_a_constant(kernels):
    import triton

    from culaunch.triton import compile  # noqa: A004

    configs = [triton.Config({"BLOCK": 64}, pre_hook=zero), triton.Config({"BLOCK": 128})]
    tuner = triton.autotune(configs, key=["n"])(kernels.accumulate)
    with pytest.raises(ValueError, match=r"different arguments to zero .* \(\) of .*BLOCK: 128"):
        compile(tuner, FLOATS, arch="sm_80")
    with pytest.raises(ValueError, match="has a pre_hook, which is Python"):
        compile(kernels.tuned(init_to_zero("BLOCK")), FLOATS, arch="sm_80")


def test_what_concerns_measuring_alone_is_no_hook(kernels):
    """reset_to_zero and restore_value are for the measurements, not for the calls after them."""
    import triton

    from culaunch.triton import compile  # noqa: A004

    tuner = triton.autotune(
        [triton.Config({"BLOCK": 64})], key=[], reset_to_zero=["out_ptr"], restore_value=["x_ptr"]
    )(kernels.accumulate)
    assert compile(tuner, FLOATS, arch="sm_80").zeroes == ()


def test_an_autotuner_of_a_class_of_its_own(kernels):
    """As fla's: its configurations are compiled, and its hooks are not dropped."""
    import triton
    from triton.runtime.autotuner import Autotuner

    from culaunch.triton import compile  # noqa: A004

    class Cached(Autotuner):
        def run(self, *args, **kwargs):
            return super().run(*args, **kwargs)

    def tuner(hook):
        kernel = kernels.accumulate
        configs = [triton.Config({"BLOCK": size}, pre_hook=hook) for size in (64, 128)]
        return Cached(kernel, kernel.arg_names, configs, ["n"], None, None)

    made = compile(tuner(zero), FLOATS, arch="sm_80")
    assert [one.constants["BLOCK"] for one in made.variants] == [64, 128]
    assert made.zeroes == ("out_ptr",)
    with pytest.raises(ValueError, match=r"BLOCK: 64.* has a pre_hook"):
        compile(tuner(counts), FLOATS, arch="sm_80")


def test_a_configuration_that_sets_an_argument_of_the_launch(kernels):
    import triton

    from culaunch.triton import compile  # noqa: A004

    configs = [triton.Config({"BLOCK": 64, "n": 32})]
    with pytest.raises(ValueError, match=r"of accumulate sets n, .* Declare it tl\.constexpr"):
        compile(triton.autotune(configs, key=[])(kernels.accumulate), "*fp32, *fp32", arch="sm_80")


def test_a_decorator_of_somebody_elses_is_not_dropped(kernels):
    from culaunch.triton import compile  # noqa: A004

    class Logged:
        def __init__(self, fn):
            self.fn = fn

    with pytest.raises(TypeError, match=r"Logged\): compile the kernel below it \(.fn\)"):
        compile(Logged(kernels.accumulate), FLOATS, arch="sm_80", constants={"BLOCK": 64})


def test_pre_run_hooks_are_refused(kernels):
    import triton

    from culaunch.triton import compile  # noqa: A004

    kernel = triton.jit(kernels.accumulate.fn)
    kernel.add_pre_run_hook(lambda *args, **kwargs: None)
    with pytest.raises(ValueError, match="has pre-run hooks"):
        compile(kernel, FLOATS, arch="sm_80", constants={"BLOCK": 64})


# ---- heuristics


def divides(args):
    """A heuristic that no expression can say: it is called, and may do anything."""
    print(end="")
    return args["n"] % args["BLOCK"] == 0


@pytest.fixture(scope="module")
def heuristic_set(kernels):
    import triton

    from culaunch.triton import compile  # noqa: A004

    kernel = triton.heuristics({"EVEN": divides})(kernels.guarded)
    return compile(
        kernel, FLOATS, arch=["sm_80", "sm_90a"], keep_ptx=True,
        configs=[{"BLOCK": 64, "EVEN": True}, {"BLOCK": 64, "EVEN": False}],
    )  # fmt: skip


def test_a_heuristics_constant_cannot_be_left_out(heuristic_set, emulator, tmp_path):
    import torch

    from culaunch.triton import KernelSet

    heuristic_set.save(tmp_path / "k.culib")
    for one in (heuristic_set.merge(), KernelSet.load(tmp_path / "k.culib")):
        x, out = torch.ones(64), torch.zeros(64)
        with pytest.raises(TypeError, match=r"is missing argument 'EVEN': it comes from"):
            one[(1,)](x, out, 63)
        one[(1,)](x, out, 63, EVEN=False)
        assert out.tolist() == [1] * 63 + [0]
        one[(1,)](x, out, 64, EVEN=True)
        assert out.tolist() == [1] * 64


def test_a_native_kernel_gives_the_same_set(kernels, emulator):
    import triton

    from culaunch.triton import compile, native  # noqa: A004

    kernel = native(
        triton.autotune([triton.Config({"BLOCK": 64}, pre_hook=zero)], key=[])(
            triton.heuristics({"EVEN": divides})(kernels.guarded)
        )
    )
    made = compile(kernel, FLOATS, arch="sm_80", constants={"EVEN": True})
    assert (made.heuristics, made.zeroes) == (("EVEN",), ("out_ptr",))
    twice = triton.autotune([triton.Config({})], key=[])(kernels.tuned(zero))
    with pytest.raises(ValueError, match="one autotuner"):
        compile(twice, FLOATS, arch="sm_80")


def test_a_set_of_one_form_still_asks_for_the_heuristics_constant(kernels, recorder):
    """That all variants have one value does not make it the caller's."""
    import torch
    import triton

    from culaunch.triton import compile  # noqa: A004

    kernel = triton.heuristics({"EVEN": divides})(kernels.guarded)
    made = compile(kernel, FLOATS, arch="sm_90a", constants={"BLOCK": 64, "EVEN": True})
    x = torch.ones(64)
    with pytest.raises(TypeError, match="is missing argument 'EVEN'"):
        made[(1,)](x, x, 64)
    with pytest.raises(cl.KernelNotFoundError, match="EVEN is False, not True"):
        made[(1,)](x, x, 63, EVEN=False)
    made[(1,)](x, x, 64, EVEN=True)


@pytest.mark.needs("gcc")
def test_c_asks_for_the_heuristics_constant(kernels, tmp_path):
    import triton
    from sets import check_syntax

    from culaunch.triton import compile  # noqa: A004

    kernel = triton.heuristics({"EVEN": divides})(kernels.guarded)
    made = compile(kernel, FLOATS, arch="sm_90a", constants={"BLOCK": 64, "EVEN": True})
    source, header = made.write_c(tmp_path / "k")
    assert "must set EVEN" in header.read_text()
    assert "int64_t EVEN;" in header.read_text()
    assert "if (!config || config->EVEN == GUARDED_ANY) return CUDA" in source.read_text()
    check_syntax(source, quick=True)
