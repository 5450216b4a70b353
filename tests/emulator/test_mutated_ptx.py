"""PTX that is damaged, token by token: refused by name, or run; never a defect of the emulator."""

from __future__ import annotations

import copy
import dataclasses
import random
import re

import numpy as np
import pytest
from corpus import CASES
from emulate import pack
from emulator_internals import INSTRUCTIONS, Device, Fault, Options, PtxImage

import culaunch as cl
from culaunch import testing

_TOKEN = re.compile(
    r"""\s+|[%$_A-Za-z][\w$]*|\.\w+(?:::\w+)*|\d\w*|"[^"]*"|.""", re.DOTALL | re.VERBOSE
)
_SMALL = [case for case in CASES if "triton" in case.name or case.name in ("votes", "structs")]


def mutated(text: str, words: list[str], rng: random.Random) -> str:
    """Drop, replace, insert, swap or double one to three tokens."""
    tokens = _TOKEN.findall(text)
    places = [i for i, token in enumerate(tokens) if not token.isspace()]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at, other, how = rng.choice(places), rng.choice(places), rng.random()
        if how < 0.25:
            tokens[at] = ""
        elif how < 0.55:
            tokens[at] = rng.choice(words)
        elif how < 0.7:
            tokens[at] += " " + rng.choice(words)
        elif how < 0.85:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            tokens[at] += " " + tokens[at]
    return "".join(tokens)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_damaged_ptx_is_refused_or_runs(seed: int) -> None:
    rng = random.Random(seed)
    texts = [case.ptx() for case in _SMALL]
    words = sorted({word for text in texts for word in _TOKEN.findall(text) if word.strip()})
    outcomes = {"refused": 0, "fault": 0, "ran": 0}
    for _ in range(250):
        which = rng.randrange(len(_SMALL))
        case, text = _SMALL[which], mutated(texts[which], words, rng)
        try:
            module = PtxImage(text)
        except cl.ImageError:
            outcomes["refused"] += 1
            continue
        if case.kernel not in module.kernels:
            continue
        arguments = copy.deepcopy(case.make())
        kernel = module.kernel(case.kernel)
        same = len(kernel.params) == len(arguments)
        try:
            given = pack(module, case.kernel, arguments) if same else bytes(kernel.param_bytes)
        except AssertionError:
            given = bytes(kernel.param_bytes)
        device = Device(options=Options(time_limit=5))
        try:
            device.launch(
                device.load(module),
                case.kernel,
                given,
                case.grid,
                case.block,
                case.shared,
                cooperative=case.cooperative,
                ranges=[(a.ctypes.data, a.nbytes) for a in arguments if isinstance(a, np.ndarray)],
            )
        except Fault:
            outcomes["fault"] += 1
        except cl.ImageError:
            outcomes["refused"] += 1
        else:
            outcomes["ran"] += 1
    assert all(outcomes.values()), outcomes


@pytest.mark.parametrize(
    ("line", "said"),
    [("mov.u32 %a, 1", "expected ','"), ("bra nowhere;", "nowhere"), ("add.s32 %a;", "1 operands")],
)
def test_a_syntax_error_in_a_body_is_invalid_ptx_at_load(line: str, said: str) -> None:
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {\n.reg .b32 %a;\n"
    with testing.use_driver("emulator"):
        with pytest.raises(cl.DriverError, match=r"PTX line \d") as caught:
            cl.load((text + line + "\n}").encode())
        assert caught.value.name == "CUDA_ERROR_INVALID_PTX"
        assert said in str(caught.value)
        assert "defect" not in str(caught.value)


def test_a_decoder_that_stumbles_is_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    from culaunch._emulator.decode import operation

    def stumble(*_: object) -> None:
        raise KeyError("b24")

    # A part of the emulator, which passes on exceptions of other code.
    stumble.__code__ = stumble.__code__.replace(co_filename=operation.__file__)
    known = dataclasses.replace(INSTRUCTIONS["popc"], decode=stumble)
    monkeypatch.setitem(INSTRUCTIONS, "popc", known)
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {\n.reg .b32 %a;\n"
    device = Device()
    with pytest.raises(Fault, match=r"popc\.b32 is not emulated .*KeyError.*b24") as caught:
        device.launch(device.load(PtxImage(text + "popc.b32 %a, %a;\n}")), "k", b"", (1,), (1,))
    assert isinstance(caught.value.__cause__, KeyError)
