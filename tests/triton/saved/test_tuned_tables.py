"""The tuned tables of saved sets: merged, chosen by architecture, written and read."""

import pytest

from culaunch._triton.saved.tuned_table import TunedEntry, TunedTable

pytestmark = pytest.mark.needs("triton", "torch")

FLOATS = "*fp32:16, *fp32:16, i32"


def table_set(kernels, arch, sizes, tuned_on=""):
    """A set that was tuned for n = 1, 2, ... with one size of block each."""
    from culaunch.triton import compile  # noqa: A004

    made = compile(
        kernels.accumulate, FLOATS, arch=arch, configs=[{"BLOCK": size} for size in sizes]
    )
    entries = tuple(
        TunedEntry((n + 1,), ("fp32", "fp32"), {"BLOCK": size}, {}, tuned_on)
        for n, size in enumerate(sizes)
    )
    table = TunedTable(("n",), entries)
    return made._with(table)


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
    device(install, (8, 0))
    again = both._with(both.table)
    assert chosen(again, 1) == 16


def test_two_devices_of_one_process_choose_by_their_own_architecture(kernels, install):
    """A choice for one device is not used for another."""
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

    one = table_set(kernels, "sm_80", (16,))
    table = replace(one.table, key=("x_ptr",))
    other = one._with(table)
    with pytest.raises(ValueError, match=r"tuned by \(n\) and another by \(x_ptr\)"):
        one.merge(other)


def test_what_is_tuned_here_says_where(kernels, emulator):
    """compile() notes the current device's architecture, which the autotuner measured on."""
    from culaunch.triton import compile  # noqa: A004

    tuner = kernels.tuned(None)
    tuner.cache[(64, "torch.float32", "torch.float32")] = tuner.configs[0]
    made = compile(tuner, FLOATS, arch="sm_80")
    assert made.table.entries[0].arch == "sm_80"
    assert made.table.entries[0].device == "culaunch emulator (sm_80)"


def test_two_devices_of_one_architecture_have_entries_of_their_own(kernels, install, tmp_path):
    """By the device's name first; one of another name takes what is of its architecture."""
    from dataclasses import replace

    from culaunch.triton import KernelSet

    def on(name, sizes):
        made = table_set(kernels, "sm_90a", sizes, tuned_on="sm_90")
        entries = tuple(replace(one, device=name) for one in made.table.entries)
        table = replace(made.table, entries=entries)
        return made._with(table)

    both = on("NVIDIA H100", (16, 32)).merge(on("NVIDIA H200", (64, 128)))
    both.save(tmp_path / "k.culib")
    assert len(both.table.entries) == 4
    for name, blocks in (
        ("NVIDIA H200", (64, 128)),
        ("NVIDIA H100", (16, 32)),
        ("other", (16, 32)),
    ):
        recorder = device(install, (9, 0))
        recorder.device_name = name.encode()
        loaded = KernelSet.load(tmp_path / "k.culib")
        assert tuple(chosen(loaded, n) for n in (1, 2)) == blocks


def test_what_tune_kept_becomes_a_table(kernels, emulator):
    import torch

    import culaunch as cl
    from culaunch.triton import compile  # noqa: A004

    made = compile(
        kernels.accumulate, FLOATS, arch="compute_80", configs=[{"BLOCK": 16}, {"BLOCK": 64}]
    )
    kept = cl.tuning.TunedConfigs()
    x, out = torch.ones(64), torch.zeros(1)
    for n in (16, 64):
        cl.tuning.tune(made, arguments=(x, out, n), grid=(1,), key=("n",), table=kept)
    cl.tuning.tune(lambda n, a: None, [{"a": 1}], (3,), key=(1, 2), table=kept)
    table = made.with_table(["n"], kept).table
    assert [(one.values, one.device) for one in table.entries] == [
        ((n,), "culaunch emulator (sm_80)") for n in (16, 64)
    ]
    assert chosen(made.with_table(["n"], kept), 16) == kept[16]["BLOCK"]
    with pytest.raises(ValueError, match="no configuration for a key of 0 values"):
        made.with_table([], kept)
    with pytest.raises(ValueError, match="key must have parameters of accumulate"):
        made.with_table(["m"], kept)
    cl.tuning.tune(lambda n, a: None, [{"a": 1}], (3,), key=(8,), table=kept)
    with pytest.raises(ValueError, match="no variant of accumulate has the configuration"):
        made.with_table(["n"], kept)


def test_what_a_heuristic_gives_is_no_configuration(kernels, emulator):
    """It follows from the call: what is tried, and kept, are the blocks."""
    import torch
    import triton

    import culaunch as cl
    from culaunch.triton import compile  # noqa: A004

    even = {"EVEN": lambda args: args["n"] % args["BLOCK"] == 0}
    made = compile(
        triton.heuristics(even)(kernels.guarded), FLOATS, arch="compute_80",
        configs=[{"BLOCK": 16}, {"BLOCK": 32}],
    )  # fmt: skip
    assert len(made) == 4
    assert made.configs == [{"BLOCK": 16}, {"BLOCK": 32}]
    x, out = torch.ones(32), torch.zeros(32)
    tuning = cl.tuning.tune(made, arguments=(x, out, 20), grid=(1,), key=("n",))
    assert [trial.config for trial in tuning.trials] == made.configs
    table = made.with_table(["n"], [((x, out, 20), {"BLOCK": 32})])
    out.zero_()
    table[(1,)](x, out, 20)
    assert out.tolist() == [1] * 20 + [0] * 12


def test_a_key_that_the_tuned_call_left_to_its_default(kernels):
    """Triton's key has the values of only the passed arguments."""
    from culaunch.triton import compile  # noqa: A004

    def table(names, key):
        import triton

        configs = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})]
        odd = triton.heuristics({"ODD": lambda args: args["n"] % 2 == 1})(kernels.of_default)
        tuner = triton.autotune(configs, key=names)(odd)
        tuner.cache[key] = configs[1]
        (entry,) = compile(tuner, "*fp32, *fp16, i32, i32, i32", arch="sm_80").table.entries
        return entry.values, entry.dtypes

    types = ("torch.float32", "torch.float16")
    assert table(["n", "m"], (64, *types)) == ((64, 2), ("fp32", "fp16"))
    assert table(["m", "n"], (64, *types)) == ((2, 64), ("fp32", "fp16"))
    assert table(["n", "m"], (64, 7, *types)) == ((64, 7), ("fp32", "fp16"))
    assert table(["m"], types) == ((2,), ("fp32", "fp16"))
    # Values from a configuration, or a heuristic below, are unknown during the look-up.
    assert table(["n", "BLOCK", "m", "ODD"], (64, 7, *types)) == ((64, 7), ("fp32", "fp16"))
    with pytest.raises(ValueError, match="does not show which: pass all of them when you tune"):
        table(["n", "m", "k"], (64, 3, *types))


def test_element_types_in_the_order_of_another_call():
    """A call by keywords was tuned in its own order: it is nearer than other types."""
    entries = [
        TunedEntry((64,), types, {"BLOCK": size}, {})
        for size, types in ((16, ("fp32", "fp32")), (32, ("fp16", "fp32")))
    ]
    table = TunedTable(("n",), tuple(entries))
    assert table.look_up([64], ["fp32", "fp16"]).constants == {"BLOCK": 32}
    assert table.look_up([64], ["fp32", "fp32"]).constants == {"BLOCK": 16}


def test_versions_of_the_file(kernels, tmp_path):
    """The lowest version with these fields, so older readers continue if they can."""
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

    made = table_set(kernels, "sm_90a", (16,))
    x = torch.zeros(16)
    for _ in range(2):
        with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
            made[(1,)](x, x, 1, BLOCK=16)
        made[(1,)](x, x, 1)
    entry = replace(made.table.entries[0], options={"num_warps": 4})
    table = replace(made.table, entries=(entry,))
    made = made._with(table)
    for _ in range(2):
        with pytest.raises(ValueError, match="Conflicting meta-parameters: num_warps"):
            made[(1,)](x, x, 1, num_warps=4)
        made[(1,)](x, x, 1)


def test_choices_that_nobody_can_list_make_no_table(kernels):
    """As of an autotuner that keeps them in a database: all configurations are compiled."""
    from culaunch.triton import compile  # noqa: A004

    class Database:
        def __contains__(self, key):
            return True

        def __getitem__(self, key):
            return tuner.configs[0]

    tuner = kernels.tuned(None)
    tuner.cache = Database()
    made = compile(tuner, FLOATS, arch="sm_80")
    assert made.table is None
    assert [one.constants for one in made.variants] == [{"BLOCK": 64}, {"BLOCK": 128}]
