"""What decorators and hooks do in Python is carried by a saved set, demanded of its calls, or
refused: never dropped."""

import functools

import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("triton", "torch")

FLOATS = "*fp32:16, *fp32:16, i32"


@pytest.fixture
def emulator(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")


@pytest.fixture(scope="module")
def kernels():
    import decorated_kernels

    return decorated_kernels


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


@pytest.mark.parametrize(
    ("hook", "names"),
    [
        (zero, ("out_ptr",)),
        (zero_twice, ("out_ptr", "x_ptr")),
        (init_to_zero("C"), ("C",)),
        (lambda kw: [kw["a"].zero_(), kw["b"].zero_()], ("a", "b")),
        (hook_over(("a",)), ("a",)),
        (lambda kw: None, ()),
    ],
)
def test_a_hook_that_can_only_set_to_zero_is_data(hook, names):
    from culaunch._triton.zeroing import zeroed_by

    assert zeroed_by(hook) == names


@pytest.mark.parametrize(
    "hook",
    [
        counts, looks, catches, calls_a_global, uses_the_result, sets_a_block, has_a_default,
        asks_with_a_number, makes_a_generator, zeroes_an_argument, hook_over(["a"]), print,
        functools.partial(zero), type("Hook", (), {"__call__": lambda self, kw: None})(),
        lambda *args: None, lambda **kw: None, lambda: None, lambda kw: [0 for one in kw],
        lambda kw: kw.zero_(), lambda kw: kw["a"] == kw["b"], lambda kw: f"{kw['a']}",
        lambda kw: kw["a"].zero_().zero_(), lambda kw: [*kw["a"]], lambda kw: not kw["a"],
        lambda kw: kw["a"] + 1, lambda kw: {kw["a"]: 1}, lambda kw: "a" in kw,
        lambda kw: lambda: kw["a"].zero_(),
    ],
)  # fmt: skip
def test_a_hook_that_may_do_anything_else_is_not(hook):
    from culaunch._triton.zeroing import zeroed_by

    assert zeroed_by(hook) is None


def tuned(kernels, hook, sizes=(64, 128)):
    import triton

    configs = [triton.Config({"BLOCK": size}, pre_hook=hook) for size in sizes]
    return triton.autotune(configs, key=["n"])(kernels.accumulate)


@pytest.mark.slow
@pytest.mark.parametrize("is_tuned", [False, True])
def test_a_hook_that_sets_to_zero_is_carried(kernels, emulator, tmp_path, is_tuned):
    """As through Triton, a second call gives what the first one gave."""
    import torch

    from culaunch.triton import KernelSet, compile  # noqa: A004

    tuner = tuned(kernels, zero)
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
    with pytest.raises(TypeError, match=r"'out_ptr' .* is set to zero .* must be a PyTorch tensor"):
        loaded[(1,)](x, out.numpy(), 64)
    with pytest.raises(ValueError, match="out_ptr to zero before each launch, and C"):
        loaded.write_c(tmp_path / "k")


@pytest.mark.gpu
def test_what_is_set_to_zero_on_a_gpu_is_so_in_the_order_of_the_stream(kernels, tmp_path):
    import torch

    from culaunch.triton import KernelSet, compile  # noqa: A004

    major, minor = torch.cuda.get_device_capability()
    arch = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
    compile(tuned(kernels, zero), FLOATS, arch=arch).save(tmp_path / "k.culib")
    loaded = KernelSet.load(tmp_path / "k.culib")
    x, out = torch.arange(64.0, device="cuda"), torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(100):
            torch.cuda._sleep(10_000)
            loaded[(1,)](x, out, 64)
            assert out.item() == 2016


@pytest.mark.parametrize("hook", [counts, looks, sets_a_block])
def test_any_other_hook_is_refused(kernels, hook, tmp_path):
    from click.testing import CliRunner

    from culaunch.cli.triton import command
    from culaunch.triton import compile  # noqa: A004

    with pytest.raises(ValueError, match=r"BLOCK: 64.* has a pre_hook, .* cannot be saved"):
        compile(tuned(kernels, hook), FLOATS, arch="sm_80")
    # Configurations of one's own do not say which hooks they need.
    with pytest.raises(ValueError, match="has a pre_hook"):
        compile(tuned(kernels, hook), FLOATS, arch="sm_80", configs=[{"BLOCK": 64}])
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
    with pytest.raises(ValueError, match="BLOCK to zero, which is no run-time argument"):
        compile(tuned(kernels, init_to_zero("BLOCK")), FLOATS, arch="sm_80")


def test_what_concerns_measuring_alone_is_no_hook(kernels):
    """reset_to_zero and restore_value are for the measurements, not for the calls after them."""
    import triton

    from culaunch.triton import compile  # noqa: A004

    tuner = triton.autotune(
        [triton.Config({"BLOCK": 64})], key=[], reset_to_zero=["out_ptr"], restore_value=["x_ptr"]
    )(kernels.accumulate)
    assert compile(tuner, FLOATS, arch="sm_80").zeroes == ()


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
        with pytest.raises(TypeError, match=r"misses argument 'EVEN': @triton\.heuristics gives"):
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
    twice = triton.autotune([triton.Config({})], key=[])(tuned(kernels, zero))
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
    with pytest.raises(TypeError, match="misses argument 'EVEN'"):
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
    assert "must say EVEN" in header.read_text()
    assert "int64_t EVEN;" in header.read_text()
    assert "if (!config || config->EVEN == GUARDED_ANY) return CUDA" in source.read_text()
    check_syntax(source, quick=True)


# ---- tuned tables


def table_set(kernels, arch, sizes, tuned_on=""):
    """A set that was tuned for n = 1, 2, ... with one size of block each."""
    from culaunch._triton.tuned_table import TunedEntry, TunedTable
    from culaunch.triton import KernelSet, compile  # noqa: A004

    made = compile(
        kernels.accumulate, FLOATS, arch=arch, configs=[{"BLOCK": size} for size in sizes]
    )
    entries = tuple(
        TunedEntry((n + 1,), ("fp32", "fp32"), {"BLOCK": size}, {}, tuned_on)
        for n, size in enumerate(sizes)
    )
    table = TunedTable(("n",), entries)
    return KernelSet(made.name, made.parameters, made.variants, made.read, table)


def device(install, capability):
    """A driver with one device of a compute capability."""
    recorder = install()
    recorder.devices[0][75], recorder.devices[0][76] = capability
    return recorder


def chosen(kernels, n):
    """The block that a call takes, by what a grid function is given."""
    import torch

    blocks = []

    def grid(meta):
        blocks.append(meta["BLOCK"])
        return (1,)

    x = torch.zeros(16)
    for _ in range(2):
        kernels[grid](x, x, n)
    assert blocks[0] == blocks[1]
    return blocks[0]


def test_merged_sets_keep_every_tuned_table(kernels, install, tmp_path):
    """Each device takes what was tuned on it, and nothing that does not run on it."""
    from culaunch.triton import KernelSet

    old = table_set(kernels, "sm_80", (16, 32), tuned_on="sm_80")
    new = table_set(kernels, "sm_90a", (64, 128), tuned_on="sm_90")
    for both in (old.merge(new), new.merge(old)):
        both.save(tmp_path / "k.culib")
        assert len(both.table.entries) == 4
        for capability, blocks in [((9, 0), (64, 128)), ((8, 0), (16, 32)), ((8, 6), (16, 32))]:
            device(install, capability)
            loaded = KernelSet.load(tmp_path / "k.culib")
            assert (chosen(loaded, 1), chosen(loaded, 2)) == blocks


def test_tables_of_unknown_architecture_choose_what_runs(kernels, install):
    """As files of version 1 have them: only variants of the device count."""
    both = table_set(kernels, "sm_80", (16,)).merge(table_set(kernels, "sm_90a", (64,)))
    install()
    assert chosen(both, 1) == 64
    from culaunch.triton import KernelSet

    device(install, (8, 0))
    again = KernelSet(both.name, both.parameters, both.variants, both.read, both.table)
    assert chosen(again, 1) == 16


def test_two_devices_of_one_process_choose_by_their_own_architecture(kernels, install):
    """A choice that was made for one device is not taken for the other."""
    from fake_arrays import DlpackArray

    both = table_set(kernels, "sm_80", (16,), tuned_on="sm_80").merge(
        table_set(kernels, "sm_90a", (64,), tuned_on="sm_90")
    )
    recorder = install(device_types=(2, 13, 3), devices=2)
    recorder.devices[1][75], recorder.devices[1][76] = 8, 0
    blocks = []

    def grid(meta):
        blocks.append(meta["BLOCK"])
        return (1,)

    for number in (0, 1, 0, 1, 0):
        arrays = [DlpackArray(device=number) for _ in range(2)]
        both[grid](*arrays, 1)
        assert recorder.last.device == number
    assert blocks == [64, 16, 64, 16, 64]


def test_an_own_table_wins_where_both_have_a_key(kernels, install):
    first = table_set(kernels, "sm_90a", (16,), tuned_on="sm_90")
    second = table_set(kernels, "sm_90a", (64, 128), tuned_on="sm_90")
    both = first.merge(second)
    assert [one.constants["BLOCK"] for one in both.table.entries] == [16, 128]
    install()
    assert (chosen(both, 1), chosen(both, 2)) == (16, 128)


def test_a_set_without_a_table_joins_one_with(kernels, install):
    from culaunch.triton import compile  # noqa: A004

    plain = compile(kernels.accumulate, FLOATS, arch="sm_90a", constants={"BLOCK": 256})
    both = plain.merge(table_set(kernels, "sm_80", (16,), tuned_on="sm_80"))
    install()
    assert chosen(both, 1) == 256  # no tuned variant runs here


def test_tables_by_different_keys_do_not_merge(kernels):
    from dataclasses import replace

    from culaunch.triton import KernelSet

    one = table_set(kernels, "sm_80", (16,))
    table = replace(one.table, key=("x_ptr",))
    other = KernelSet(one.name, one.parameters, one.variants, one.read, table)
    with pytest.raises(ValueError, match=r"tuned by \(n\) and another by \(x_ptr\)"):
        one.merge(other)


def test_what_is_tuned_here_says_where(kernels, emulator):
    """compile() notes the current device's architecture, which the autotuner measured on."""
    from culaunch.triton import compile  # noqa: A004

    tuner = tuned(kernels, None)
    tuner.cache[(64, "torch.float32", "torch.float32")] = tuner.configs[0]
    made = compile(tuner, FLOATS, arch="sm_80")
    assert made.table.entries[0].arch == "sm_80"


def test_versions_of_the_file(kernels, tmp_path):
    """The lowest that has what is said, so that older readers go on where they can."""
    import json
    import zipfile

    def version(made):
        made.save(tmp_path / "k.culib")
        with zipfile.ZipFile(tmp_path / "k.culib") as archive:
            return json.loads(archive.read("manifest.json"))["version"]

    assert version(table_set(kernels, "sm_80", (16,))) == 1
    assert version(table_set(kernels, "sm_80", (16,), tuned_on="sm_80")) == 2


def test_a_tensor_for_the_tuning_key_is_a_type_error(kernels, recorder):
    import torch

    made = table_set(kernels, "sm_90a", (16,))
    x = torch.zeros(16)
    with pytest.raises(TypeError, match=r"argument 'n' .* must be a number, a bool, a str or None"):
        made[(1,)](x, x, torch.zeros(3))


def test_what_is_tuned_cannot_be_given(kernels, recorder):
    """A second call says the same as the first one."""
    from dataclasses import replace

    import torch

    from culaunch.triton import KernelSet

    made = table_set(kernels, "sm_90a", (16,))
    x = torch.zeros(16)
    for _ in range(2):
        with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
            made[(1,)](x, x, 1, BLOCK=16)
        made[(1,)](x, x, 1)
    entry = replace(made.table.entries[0], options={"num_warps": 4})
    table = replace(made.table, entries=(entry,))
    made = KernelSet(made.name, made.parameters, made.variants, made.read, table)
    for _ in range(2):
        with pytest.raises(ValueError, match="Conflicting meta-parameters: num_warps"):
            made[(1,)](x, x, 1, num_warps=4)
        made[(1,)](x, x, 1)
