"""Whether products and sums become one operation: what Triton's own launch decides, and no other.

Triton 3.9 fuses if nothing is set and warns that 3.10 will not.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.needs("triton", "torch"), pytest.mark.usefixtures("on_emulator")]

DEFAULT, FORCED_OFF = "TRITON_DEFAULT_FP_FUSION", "TRITON_FORCE_DISABLE_FP_FUSION"
SIGNATURE, BLOCK = "*fp32:16, *fp32:16, fp32", 16
# 1 + 2 ** -12, whose square has a last bit that float32 does not; less the others.
VALUE, SUBTRACTED, LAST = 1 + 2**-12, 1 + 2**-11, 2**-24


@pytest.fixture(params=["unset", "as 3.10", "0", "1", "knob off", "forced off"])
def setting(request, monkeypatch):
    """What decides: the environment, the program, or the default of a Triton to come."""
    import triton

    language = triton.knobs.language
    with language.scope():  # a knob that is set sets the environment, too
        for name in (DEFAULT, FORCED_OFF):
            monkeypatch.delenv(name, raising=False)
        if request.param in "01":
            monkeypatch.setenv(DEFAULT, request.param)
        elif request.param == "forced off":
            monkeypatch.setenv(FORCED_OFF, "1")
        elif request.param == "as 3.10":
            monkeypatch.setattr(vars(type(language))["default_fp_fusion"], "default", False)
        elif request.param == "knob off":
            language.default_fp_fusion = False
        yield request.param


@pytest.fixture
def kernel():
    import triton
    from fused_kernels import squared_less

    return triton.jit(squared_less)


def tritons(kernel, **options):
    """Compile as Triton does by itself."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = {"x": "*fp32", "o": "*fp32", "y": "fp32", "B": "constexpr"}
    attributes = {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}
    source = ASTSource(kernel, types, {(3,): BLOCK}, attributes)
    return triton.compile(source, target=GPUTarget("cuda", 80, 32), options=options)


@pytest.mark.parametrize("given", [{}, {"enable_fp_fusion": True}, {"enable_fp_fusion": False}])
def test_ahead_of_time_and_native_as_tritons_own(setting, given, kernel):
    import torch

    import culaunch.triton as ct

    theirs = tritons(kernel, **given)
    fuses = "fma.rn.f32" in theirs.asm["ptx"]
    assert fuses == theirs.metadata.enable_fp_fusion
    if given and setting != "forced off":
        assert fuses is given["enable_fp_fusion"]
    elif setting in ("as 3.10", "0", "knob off"):
        assert not fuses
    elif setting == "1":
        assert fuses

    saved = ct.compile(
        kernel, SIGNATURE, arch="sm_80", constants={"B": BLOCK}, keep_ptx=True, **given
    )
    (variant,) = saved.variants
    assert variant.facts.num_warps == 4
    out = torch.full((BLOCK,), -1.0)
    x = torch.full((BLOCK,), VALUE)
    for launched in (saved, ct.native(kernel)):
        out.fill_(-1)
        launched[(1,)](x, out, SUBTRACTED, B=BLOCK, **(given if launched is not saved else {}))
        assert out.tolist() == [LAST if fuses else 0.0] * BLOCK


def test_only_tritons_own_warning():
    """Once if nothing is said, by the compilation; none if the call says."""
    program = f"""
    import warnings
    import triton, fused_kernels
    import culaunch.triton as ct
    kernel = triton.jit(fused_kernels.squared_less)
    def compiled(**options):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ct.compile(kernel, {SIGNATURE!r}, arch="sm_80", constants={{"B": {BLOCK}}}, **options)
        return [str(one.message) for one in caught if "FP_FUSION" in str(one.message)]
    assert compiled(enable_fp_fusion=True) == []
    with_none = compiled() + compiled()
    warns = hasattr(triton.knobs.language, "fp_fusion_enabled")
    assert len(with_none) == warns, with_none
    """
    shared = str(Path(__file__).parents[1] / "shared")
    environment = {name: text for name, text in os.environ.items() if name != DEFAULT}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(line[4:] for line in program.splitlines())],
        env={**environment, "PYTHONPATH": shared}, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
