"""Calls of saved sets: constants of every kind, and names that go with the kernel or do not."""

import dataclasses

import pytest
from runs import run_command

import culaunch as cl
from culaunch._triton.variants.constants import same_constant

pytestmark = pytest.mark.needs("triton", "torch")

FLOATS = "*fp32:16, *fp32:16, *fp32:16, i32"


@pytest.fixture(scope="module")
def tutorials():
    import tutorials

    return tutorials


def saved(made, tmp_path):
    """The set itself, and the one that its file gives: they are to be the same."""
    from culaunch.triton import KernelSet

    made.save(tmp_path / "k.culib")
    loaded = KernelSet.load(tmp_path / "k.culib")
    assert loaded.variants == made.variants
    return made, loaded


def compile_(*args, **options):
    from culaunch.triton import compile  # noqa: A004

    return compile(*args, keep_ptx=True, arch="sm_80", **options)


# ---- constants


def test_tuples_are_constants_of_their_own(kernels, emulator, tmp_path):
    import torch

    tuples = [(), (3,), (3, 4), (4, 3)]
    made = compile_(kernels.of_tuple, "*i32", configs=[{"V": one} for one in tuples])
    for one in saved(made, tmp_path):
        out = torch.zeros(1, dtype=torch.int32)
        for value, result in [((3, 4), 34), ((4, 3), 43), ((), -1), ((3,), 103), ((3, 4), 34)]:
            one[(1,)](out, value)
            assert out.item() == result
            one[(1,)](out, V=value)
            assert out.item() == result
        for value in (3, (5,), (3, 4, 5), ((3,),), "(3,)"):
            with pytest.raises(cl.KernelNotFoundError, match="V is"):
                one[(1,)](out, value)


def test_an_element_is_not_its_tuple(kernels, emulator, tmp_path):
    """Neither in the table of variants nor in the table of calls."""
    import torch
    import triton
    import triton.language as tl

    made = compile_(
        kernels.constants, "*fp32", configs=[{"V": one} for one in (3, tl.float16, None, True, 1)]
    )
    for one in saved(made, tmp_path):
        out = torch.zeros(1)
        for value, result in [
            (3, 10), (tl.float16, 23), (torch.float16, 23), (None, 1007), (True, 8), (1, 8),
            (triton.language.constexpr(3), 10),
        ]:  # fmt: skip
            one[(1,)](out, value)
            assert out.item() == result
            with pytest.raises(cl.KernelNotFoundError):
                one[(1,)](out, (value,))
        for value in (2, 3.0, 1.0, torch.float32, "3", torch.tensor(3), [3]):
            with pytest.raises(cl.KernelNotFoundError):
                one[(1,)](out, value)


def test_an_element_type_in_the_signature(kernels, emulator):
    import torch

    made = compile_(kernels.of_type, ["*fp32, tl.float16", "*fp32, triton.language.int32"])
    assert [str(one.constants["V"]) for one in made.variants] == ["fp16", "i32"]
    out = torch.zeros(1)
    made[(1,)](out, torch.int32)
    assert out.item() == 3
    with pytest.raises(ValueError, match=r"'tl\.load' in the signature: Triton has no element"):
        compile_(kernels.of_type, "*fp32, tl.load")


def test_a_default_that_is_a_constexpr(kernels, emulator, tmp_path):
    import torch

    made = compile_(kernels.constants, "*fp32", configs=[{"V": 3}, {"V": 3, "W": 9}])
    for one in saved(made, tmp_path):
        out = torch.zeros(1)
        for call, result in [({}, 10), ({"W": 9}, 12), ({"W": 7}, 10), ({}, 10)]:
            one[(1,)](out, 3, **call)
            assert out.item() == result


@pytest.mark.parametrize(
    ("saved_value", "given", "same"),
    [
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        (1, True, False),
        (1, 1.0, False),
        ((1, 2), [1, 2], True),
        ((1,), 1, False),
        (None, 0, False),
        ("a", "a", True),
        (64, 10**1000, False),
    ],
)
def test_constants_are_the_same_by_type_and_value(saved_value, given, same):
    assert same_constant(saved_value, given) is same


def test_an_array_is_no_constant():
    import numpy as np
    import torch

    assert same_constant(3, np.int32(3))
    assert not same_constant(3, np.array([3, 3]))
    assert not same_constant(3, torch.zeros(3))
    assert not same_constant(None, torch.zeros(3))


# ---- tuples of arguments


def test_a_named_tuple_is_written_with_its_fields(kernels, emulator, tmp_path):
    """Fields in another order are another kernel's; without names there is nothing to read."""
    import torch

    made = compile_(kernels.of_pair, "*i32, (a=i32, b=i32)")
    assert str(made.variants[0]) == "sm_80 (*i32, (a=i32, b=i32))"
    for one in saved(made, tmp_path):
        out = torch.zeros(1, dtype=torch.int32)
        one[(1,)](out, kernels.Pair(3, 4))
        assert out.item() == 34
        for wrong in (kernels.Swapped(3, 4), (3, 4)):
            with pytest.raises(cl.KernelNotFoundError, match=r"not a tuple of 2 \(a, b\)"):
                one[(1,)](out, wrong)
    with pytest.raises(ValueError, match="'1a' in the signature is not the name of a field"):
        compile_(kernels.of_pair, "*i32, (1a=i32, b=i32)")
    with pytest.raises(ValueError, match=r"some items .* have names"):
        compile_(kernels.of_pair, "*i32, (a=i32, i32)")


def test_a_constant_in_a_tuple_is_refused(kernels):
    """Triton folds only 1 and None; other values would never be compared."""
    with pytest.raises(ValueError, match="only the values 1 and None can be folded"):
        compile_(kernels.of_pair, "*i32, (a=i32, b=64)")
    made = compile_(kernels.of_pair, "*i32, (a=i32, b=i32:1)")
    assert made.variants[0].keys == ("", ("", 1))


# ---- names that go with the kernel


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"configs": [{"BLOCK": 256, "num_warp": 8}]}, "num_warp of the configuration .*num_warps"),
        (
            {"configs": [{"BLOCK": 256, "BLOK": 3}]},
            r"BLOK of the configuration .*did you mean BLOCK",
        ),
        (
            {"constants": {"BLOCK": 256}, "nonsense": 3},
            "nonsense of the call is neither a parameter",
        ),
        ({"constants": {"BLOCK": 256, "BLOK": 3}}, "no parameter BLOK .did you mean BLOCK"),
        ({"constants": {"BLOCK": 256}, "num_warps": 3}, "num_warps must be a power of 2"),
        ({"constants": {"BLOCK": 256}, "num_ctas": "two", "num_warp": 2}, "num_warp of the call"),
    ],
)
def test_misspelt_settings_are_refused(tutorials, options, words):
    with pytest.raises(ValueError, match=words):
        compile_(tutorials.add, FLOATS, **options)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--config", "BLOCK=256,num_wraps=8"], "num_wraps of the configuration"),
        (["--constant", "BLOCK=256", "--option", "nonsense=1"], "nonsense of the call"),
        (["--constant", "BLOCK=256", "--constant", "BLOK=1"], "no parameter BLOK"),
        (["--constant", "BLOCK=256", "--name", "a b"], "name must be a C identifier"),
    ],
)
def test_the_command_refuses_them_too(tmp_path, words, message):
    from pathlib import Path

    file = Path(__file__).parents[1] / "shared" / "tutorials.py"
    words = [f"{file}:add", "--signature", FLOATS, "--arch", "sm_80", *words]
    outputs = ["-o", f"{tmp_path}/k.culib", "--c-output", f"{tmp_path}/k.c"]
    done = run_command("triton", *words, *outputs)
    assert done.exit_code != 0
    assert message in done.output
    assert not list(tmp_path.iterdir())


def test_the_architecture_is_the_one_that_was_asked_for(tutorials):
    from culaunch.triton import compile  # noqa: A004

    for arch, own in [("sm_90", "sm_90a"), ("sm_100f", "sm_100a"), ("compute_90", "compute_90a"),
                      ("sm_80a", "sm_80")]:  # fmt: skip
        with pytest.raises(ValueError, match=f'pass arch="{own}"'):
            compile(tutorials.add, FLOATS, arch=arch, constants={"BLOCK": 64})


def test_a_call_with_a_name_that_nothing_has(tutorials, recorder):
    import torch

    from culaunch.triton import compile  # noqa: A004

    made = compile(tutorials.add, FLOATS, arch="sm_90a", constants={"BLOCK": 64})
    x = torch.zeros(64)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"add\(\) has no parameter FOO: it takes x_ptr, y_ptr"):
            made[(1,)](x, x, x, 64, FOO=1)
    made[(1,)](x, x, x, 64, num_stages=3, num_warps=4, num_ctas=1, maxnreg=None)
    for name, value in [("num_stages", 4), ("num_warps", 8), ("maxnreg", 32), ("hidden", 2)]:
        with pytest.raises((TypeError, cl.KernelNotFoundError), match=name):
            made[(1,)](x, x, x, 64, **{name: value})


def test_a_grid_that_clusters_make_too_large(recorder):
    """2^31 blocks wrap in the driver's 32 bits: they are refused."""
    import torch
    from extra_kernels import clustered

    from culaunch.triton import compile  # noqa: A004

    made = compile(clustered, "*fp32, *fp32, i32", arch="sm_90a", constants={"BLOCK": 64},
                   num_ctas=2)  # fmt: skip
    x = torch.zeros(64)
    made[(2,)](x, x, 64)
    assert recorder.last.grid == (4, 1, 1)
    for width in (2**30, 2**31, 2**31 + 1):
        with pytest.raises(ValueError, match="too large"):
            made[(width,)](x, x, 64)


def test_the_log_lists_every_variant(tutorials, recorder):
    import torch

    from culaunch.triton import KernelSet, compile  # noqa: A004

    one = compile(tutorials.add, FLOATS, arch="sm_90a", constants={"BLOCK": 64})
    many = KernelSet(dataclasses.replace(one._saved, variants=one.variants * 1000))
    x = torch.zeros(64, dtype=torch.float64)
    with pytest.raises(cl.KernelNotFoundError, match=r"960 more: error.log lists all") as caught:
        many[(1,)](x, x, x, 64)
    assert str(caught.value).count("argument 0 is *fp64, not *fp32") == 40
    assert caught.value.log.count("argument 0 is *fp64, not *fp32") == 1000


def test_the_log_has_what_triton_says(tutorials):
    with pytest.raises(cl.CompileError) as caught:
        compile_(tutorials.add, FLOATS, constants={"BLOCK": 3})
    assert "power of 2" in caught.value.log


def test_constants_that_no_file_can_hold(kernels):
    for value in (object(), kernels.constants, {"a": 1}):
        with pytest.raises(TypeError, match="cannot be saved"):
            compile_(kernels.constants, "*fp32", constants={"V": value})


# ---- Gluon


def test_gluon(kernels, recorder):
    import torch

    from culaunch.triton import compile  # noqa: A004

    made = compile(kernels.of_gluon, "*fp32:16, *fp32:16", arch="sm_90a", constants={"BLOCK": 128})
    x = torch.zeros(128)
    made[(1,)](x, x)
    assert recorder.last.block == (128, 1, 1)


def test_gluon_computes(kernels, emulator):
    import torch

    made = compile_(kernels.of_gluon, "*fp32:16, *fp32:16", constants={"BLOCK": 128})
    x, out = torch.arange(128.0), torch.zeros(128)
    made[(1,)](x, out)
    assert torch.equal(out, 2 * x)


# ---- junk


@pytest.mark.parametrize("junk", [None, 3, 1.5, b"x", object(), [None], {"a": 1}, float("nan")])
@pytest.mark.parametrize("what", ["kernel", "signature", "arch", "constants", "configs"])
def test_junk_is_a_type_error_that_names_the_argument(tutorials, what, junk):
    from culaunch.triton import compile  # noqa: A004

    if (what, junk) in [("constants", None), ("configs", None)]:
        return
    given = {"kernel": tutorials.add, "signature": FLOATS, "arch": "sm_80", what: junk}
    with pytest.raises((TypeError, ValueError), match=f"{what}|no parameter a|must be a @triton"):
        compile(given.pop("kernel"), given.pop("signature"), **given)


@pytest.mark.parametrize("junk", [None, 3, "add", object()])
def test_only_sets_merge(tutorials, junk):
    made = compile_(tutorials.add, FLOATS, constants={"BLOCK": 64})
    with pytest.raises(TypeError, match="takes KernelSets"):
        made.merge(junk)
