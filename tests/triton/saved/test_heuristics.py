"""Heuristics that a set brings with it: saved, loaded without Triton, launched."""

import json
import os
import subprocess
import sys

import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("triton", "torch")

FLOATS = "*fp32:16, *fp32:16, i32"


def even(kernels):
    import triton

    return triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})(kernels.guarded)


@pytest.fixture(scope="module")
def even_set(kernels):
    from culaunch.triton import compile  # noqa: A004

    return compile(
        even(kernels), FLOATS, arch=["sm_80", "sm_90a"], keep_ptx=True, constants={"BLOCK": 64},
        grid="cdiv(n, BLOCK)",
    )  # fmt: skip


def test_a_heuristic_that_a_call_decides_is_compiled_either_way(even_set):
    assert [(one.arch, one.constants["EVEN"]) for one in even_set.variants] == [
        (arch, choice) for arch in ("sm_80", "sm_90a") for choice in (True, False)
    ]
    assert even_set.heuristics == ()
    assert even_set.computed == {"EVEN": "((n % BLOCK) == 0)"}
    assert str(even_set.grid) == "(cdiv(n, BLOCK))"


def test_it_is_worked_out_from_the_file(even_set, emulator, tmp_path):
    import torch

    from culaunch.triton import KernelSet

    even_set.save(tmp_path / "k.culib")
    for one in (even_set.merge(), KernelSet.load(tmp_path / "k.culib")):
        x, out = torch.ones(64), torch.zeros(64)
        for n in (63, 64, 63, 20, 64):
            out.zero_()
            one[(1,)](x, out, n)
            assert out.tolist() == [1] * n + [0] * (64 - n)
            out.zero_()
            one(x, out, n)
            assert out.tolist() == [1] * n + [0] * (64 - n)
        out.zero_()
        one(x, out, n=40, EVEN=True)  # as with Triton, the heuristic has the last word
        assert out.sum() == 40
        one[one.grid](x_ptr=x, out_ptr=out, n=64)
        assert out.sum() == 64


def test_a_file_needs_neither_triton_nor_the_source(even_set, tmp_path):
    even_set.save(tmp_path / "k.culib")
    program = """
import sys
for name in ("triton", "torch"):
    sys.modules[name] = None
import numpy as np
from culaunch.triton import KernelSet
kernels = KernelSet.load(sys.argv[1])
x = np.ones(128, np.float32)[-64:]
out = np.zeros(64, np.float32)
kernels(x, out, 63)
print(out.sum(), kernels.grid)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "k.culib")], capture_output=True, text=True,
        check=False, env={**os.environ, "CULAUNCH_DRIVER": "emulator"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["63.0", "(cdiv(n,", "BLOCK))"]


def test_calls_of_one_kind_need_no_python(even_set, recorder, monkeypatch):
    import torch

    one = even_set.merge()
    x = torch.ones(4096)
    for n, blocks in ((64, 1), (640, 10), (1000, 16)):
        for _ in range(3):
            one(x, x, n)
            assert recorder.last.grid == (blocks, 1, 1)
    asked = []
    monkeypatch.setattr(one._choice, "choose", asked.append)
    monkeypatch.setattr(type(one.grid), "__call__", lambda *args: asked.append(args))
    one(x, x, 640)
    assert recorder.last.grid == (10, 1, 1)
    assert asked == []


def test_what_the_signature_decides_is_compiled_once(kernels):
    """Whether an argument is None, and its element type, need no call."""
    import torch
    import triton

    from culaunch.triton import compile  # noqa: A004

    kernel = triton.heuristics(
        {
            "USE": lambda args: args["h"] is not None,
            "HALF": lambda args: args["out"].dtype == torch.float16,
            "SIZE": lambda args: 16 if args["USE"] else 32,
        }
    )(kernels.maybe)
    made = compile(kernel, ["*fp16, *fp32, i32", "*fp32, None, i32"], arch="sm_80")
    assert [one.constants for one in made.variants] == [
        {"USE": True, "HALF": True, "SIZE": 16}, {"USE": False, "HALF": False, "SIZE": 32},
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"USE = .* is True for .*, and never False: leave it out"):
        compile(kernel, "*fp16, *fp32, i32", arch="sm_80", constants={"USE": False})


def test_values_that_only_a_call_decides_are_to_be_named(kernels, recorder):
    import torch
    import triton

    from culaunch.triton import compile  # noqa: A004

    kernel = triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})(
        kernels.accumulate
    )
    with pytest.raises(
        ValueError, match=r"BLOCK = next_power_of_2\(n\) .* list the values to compile"
    ):
        compile(kernel, FLOATS, arch="sm_90a")
    made = compile(kernel, FLOATS, arch="sm_90a", configs=[{"BLOCK": 64}, {"BLOCK": 128}])
    x = torch.ones(128)
    for n, block in ((64, 64), (33, 64), (65, 128)):
        made[lambda meta: (meta["BLOCK"],)](x, x, n)
        assert recorder.last.grid == (block, 1, 1)
    with pytest.raises(cl.KernelNotFoundError, match="BLOCK is 256, not 64"):
        made[(1,)](x, x, 129)


def test_values_that_a_choice_names_are_compiled(kernels, recorder):
    import torch
    import triton

    from culaunch.triton import compile  # noqa: A004

    def sizes(args):
        if args["n"] < 64:
            return 32
        return 64 if args["n"] < 100 else 32 if args["n"] == 100 else 128

    made = compile(
        triton.heuristics({"BLOCK": sizes})(kernels.accumulate), FLOATS, arch="sm_90a", grid="BLOCK"
    )
    assert [one.constants["BLOCK"] for one in made.variants] == [32, 64, 128]
    x = torch.ones(128)
    for n, block in ((63, 32), (64, 64), (100, 32), (101, 128), (64, 64)):
        made(x, x, n)
        assert recorder.last.grid == (block, 1, 1)


def test_a_heuristic_that_asks_for_a_tensor(kernels, emulator, tmp_path):
    """Like fla's kernels, with an argument that is a tensor or a number."""
    import torch
    import triton

    from culaunch.triton import KernelSet, compile  # noqa: A004

    kernel = triton.heuristics({"IS_TENSOR": lambda args: isinstance(args["x"], torch.Tensor)})(
        kernels.of_tensor_or_number
    )
    made = compile(kernel, ["*fp32, *fp32", "*fp32, fp32"], arch="compute_80", grid=[1])
    assert [one.constants for one in made.variants] == [{"IS_TENSOR": True}, {"IS_TENSOR": False}]
    made.save(tmp_path / "k.culib")
    for one in (made, KernelSet.load(tmp_path / "k.culib")):
        assert one.computed == {"IS_TENSOR": "(False if (x is None) else (x is an array))"}
        out = torch.zeros(1)
        for x, result in ((torch.full([1], 5.0), 6), (7.0, 7), (torch.full([1], 2.0), 3)):
            one(out, x)
            assert out.item() == result
        ends = [cl.to_device(array.numpy()) for array in (out, torch.full([1], 9.0))]
        one(*ends)
        assert ends[0].numpy() == 10
    kernel = triton.heuristics({"IS_TENSOR": lambda args: not isinstance(args["x"], int)})(
        kernels.of_tensor_or_number
    )
    with pytest.raises(ValueError, match="IS_TENSOR of of_tensor_or_number cannot be saved"):
        compile(kernel, "*fp32, fp32", arch="compute_80")


def test_a_heuristic_that_no_expression_can_say_is_refused_by_name(kernels):
    import triton

    from culaunch.triton import compile  # noqa: A004

    kernel = triton.heuristics({"EVEN": lambda args: print(args["n"])})(kernels.guarded)
    with pytest.raises(ValueError, match="the heuristic EVEN of guarded cannot be saved: it uses "):
        compile(kernel, FLOATS, arch="sm_80", constants={"BLOCK": 64})


def test_a_constant_that_a_heuristic_reads_cannot_be_left_open(kernels, recorder):
    import torch

    from culaunch.triton import compile  # noqa: A004

    made = compile(
        even(kernels), FLOATS, arch="sm_90a", configs=[{"BLOCK": 64}, {"BLOCK": 128}],
        grid="cdiv(n, BLOCK)",
    )  # fmt: skip
    x = torch.ones(128)
    with pytest.raises(
        TypeError, match=r"is missing argument 'BLOCK': the heuristic EVEN .* 64, 128"
    ):
        made(x, x, 64)
    for n, block in ((128, 64), (128, 128), (100, 64), (128, 128), (128, 64)):
        made(x, x, n, BLOCK=block)
        assert recorder.last.grid == (-(-n // block), 1, 1)


def test_heuristics_around_an_autotuner(kernels, recorder):
    """Above it they are part of its key; below it they read what it chose."""
    import torch
    import triton

    from culaunch.triton import KernelSet, compile  # noqa: A004

    configs = [triton.Config({"BLOCK": size}) for size in (64, 128)]
    kernel = triton.autotune(configs, key=["n"])(even(kernels))
    kernel.cache[(64, "torch.float32", "torch.float32")] = configs[0]
    kernel.cache[(1000, "torch.float32", "torch.float32")] = configs[1]
    made = compile(kernel, FLOATS, arch="sm_90a", grid="cdiv(n, BLOCK)")
    assert [one.is_early for one in made._saved.computed] == [False]
    x = torch.ones(1024)
    for n, blocks in ((64, 1), (1000, 8), (1024, 8), (65, 2), (64, 1)):
        made(x, x, n)
        assert recorder.last.grid == (blocks, 1, 1)
    early = triton.heuristics({"EVEN": lambda args: args["n"] % 2 == 0})(
        triton.autotune(configs, key=["EVEN"])(kernels.guarded)
    )
    tuner = early.fn
    for key, config in ((True, configs[0]), (False, configs[1])):
        tuner.cache[(key, "torch.float32", "torch.float32")] = config
    made = compile(early, FLOATS, arch="sm_90a", grid="cdiv(n, BLOCK)")
    assert [one.is_early for one in made._saved.computed] == [True]
    entry = json.loads(json.dumps(made.to_manifest()))
    assert entry["heuristics"][0]["early"] is True
    for n, blocks in ((1000, 16), (1001, 8), (1000, 16)):
        made(x, x, n)
        assert recorder.last.grid == (blocks, 1, 1)
    with pytest.raises(ValueError, match="the heuristics of one set of guarded differ"):
        made.merge(compile(kernel, FLOATS, arch="sm_90a", grid="cdiv(n, BLOCK)"))
    with pytest.raises(ValueError, match="the grid of one set of guarded differ"):
        made.merge(compile(early, FLOATS, arch="sm_90a"))
    assert isinstance(made.merge(), KernelSet)


def test_c_from_a_library_that_was_compiled_before(even_set, tmp_path):
    from click.testing import CliRunner

    from culaunch.cli.triton import command

    even_set.save(tmp_path / "k.culib")
    for name in (f"{tmp_path}/k.culib", f"{tmp_path}/k.culib:guarded"):
        done = CliRunner().invoke(
            command, [name, "--c-output", f"{tmp_path}/k.c", "--prefix", "my_"]
        )
        assert done.exit_code == 0, done.output
        assert "CUresult my_guarded(CUstream stream, const" in (tmp_path / "k.h").read_text()
    for words, message in [
        ([f"{tmp_path}/k.culib", "-o", "x.culib"], "accepts only --c-output"),
        (
            [f"{tmp_path}/k.culib", "--c-output", "k.c", "--arch", "sm_80"],
            "accepts only --c-output",
        ),
        ([f"{tmp_path}/k.py:k", "-o", "x.culib"], "--signature and --arch are needed"),
        ([f"{tmp_path}/k.culib"], "name an output"),
    ]:
        done = CliRunner().invoke(command, words)
        assert done.exit_code == 2
        assert message in done.output
    done = CliRunner().invoke(command, [f"{tmp_path}/k.culib:other", "--c-output", "k.c"])
    assert isinstance(done.exception, cl.KernelNotFoundError)


def test_an_element_type_that_a_heuristic_gives(kernels, recorder):
    import torch
    import triton

    from culaunch.triton import compile  # noqa: A004

    kernel = triton.heuristics({"V": lambda args: args["out_ptr"].dtype})(kernels.of_type)
    made = compile(kernel, ["*fp16", "*i32"], arch="sm_90a")
    assert [str(one.constants["V"]) for one in made.variants] == ["fp16", "i32"]
    made[(1,)](torch.ones(4, dtype=torch.float16))
    made[(1,)](torch.ones(4, dtype=torch.int32))
    with pytest.raises(cl.KernelNotFoundError):
        made[(1,)](torch.ones(4))


def test_an_option_that_a_heuristic_gives_is_compiled(kernels, emulator, tmp_path):
    """As a dict of functions over one configuration, and by what the signature decides."""
    import torch
    import triton

    from culaunch.triton import KernelSet, compile  # noqa: A004

    config = {"BLOCK": 64, "num_warps": 2, "num_stages": 2}
    fixed = {name: lambda args, value=value: value for name, value in config.items()}
    made = compile(
        triton.heuristics(fixed)(kernels.accumulate), FLOATS, arch="sm_80", keep_ptx=True
    )
    made.save(tmp_path / "k.culib")
    for one in (made, KernelSet.load(tmp_path / "k.culib")):
        (variant,) = one.variants
        assert (variant.constants, variant.options) == (
            {"BLOCK": 64}, {"num_warps": 2, "num_stages": 2}
        )  # fmt: skip
        assert one.computed == {"BLOCK": "64"}
        x, out = torch.arange(64.0), torch.zeros(4)
        for _ in range(2):
            one[(1,)](x, out, 64)
        assert out[0] == 2 * 2016
    assert made.write_c(tmp_path / "k.c")
    by_type = {
        "BLOCK": lambda args: 64 if args["x_ptr"].dtype == torch.float16 else 32,
        "num_warps": lambda args: 8 if args["BLOCK"] > 32 else 4,
    }
    made = compile(
        triton.heuristics(by_type)(kernels.accumulate), [FLOATS, "*fp16, *fp32, i32"],
        arch="sm_80", keep_ptx=True,
    )  # fmt: skip
    assert [one.facts.num_warps for one in made.variants] == [4, 8]


def test_an_option_that_only_a_call_decides_is_to_be_named(kernels):
    import triton

    from culaunch.triton import compile  # noqa: A004

    def heuristics(**functions):
        return triton.heuristics(functions)(kernels.accumulate)

    def make(kernel, **keywords):
        return compile(kernel, FLOATS, arch="sm_80", constants={"BLOCK": 64}, **keywords)

    by_size = heuristics(num_warps=lambda args: 8 if args["n"] > 64 else 4)
    with pytest.raises(
        ValueError, match=r"num_warps = .* calls of a set cannot choose by it: list"
    ):
        make(by_size)
    assert make(by_size, num_warps=8).variants[0].facts.num_warps == 8
    with pytest.raises(
        ValueError, match=r"num_warps = 2 .* is 2 for .*, and never 8: leave it out"
    ):
        make(heuristics(num_warps=lambda args: 2), num_warps=8)
    with pytest.raises(ValueError, match="the heuristic num_warps of accumulate cannot be saved"):
        make(heuristics(num_warps=lambda args: print(args["n"])))
    with pytest.raises(ValueError, match="num_wraps"):
        make(heuristics(num_wraps=lambda args: 2))


def test_an_option_below_an_autotuner_has_the_last_word(kernels, recorder):
    import torch
    import triton

    from culaunch.triton import compile  # noqa: A004

    kernel = triton.autotune([triton.Config({"BLOCK": b}) for b in (64, 128)], key=["n"])(
        triton.heuristics({"num_warps": lambda args: 2})(kernels.accumulate)
    )
    made = compile(kernel, FLOATS, arch="sm_90a")
    assert {one.facts.num_warps for one in made.variants} == {2}
    kernel.cache[(64, "torch.float32", "torch.float32")] = kernel.configs[1]
    kernel.cache[(8, "torch.float32", "torch.float32")] = kernel.configs[0]
    made = compile(kernel, FLOATS, arch="sm_90a", grid="BLOCK")
    x = torch.ones(128)
    for n, block in ((64, 128), (8, 64)):
        made(x, x, n)
        assert recorder.last.grid == (block, 1, 1)
        assert recorder.last.block == (64, 1, 1)
