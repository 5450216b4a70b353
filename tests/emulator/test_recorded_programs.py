"""Random PTX programs that a GPU ran (tools/record_ptx.py): the emulator gives the same words."""

from __future__ import annotations

import base64
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
import random_ptx
from emulate import launch

FILE = Path(__file__).parent / "programs.json.xz"
RECORDED = json.loads(lzma.decompress(FILE.read_bytes()))


def test_the_recording_is_one() -> None:
    assert len(RECORDED["programs"]) >= 100
    assert RECORDED["arch"].startswith("sm_")
    assert FILE.stat().st_size < 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("program", RECORDED["programs"], ids=lambda program: str(program["seed"]))
def test_a_recorded_program(program: dict[str, str | int]) -> None:
    seed = int(program["seed"])
    shape = (random_ptx.THREADS, random_ptx.OUTPUTS)
    real = np.frombuffer(base64.b64decode(str(program["words"])), "<u4").reshape(shape)
    out = np.zeros(shape, np.uint32)
    given = random_ptx.inputs(seed)
    launch(str(program["text"]), "k", given, out, block=(random_ptx.THREADS,), time_limit=30)
    assert not random_ptx.differences(seed, out, real)
