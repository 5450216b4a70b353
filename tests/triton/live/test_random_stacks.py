"""Random decorators, calls and changes between the calls: what is launched is what Triton launches.

`CULAUNCH_TEST_PROGRAMS=5000` in the environment runs so many programs more.
"""

import os

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import random_stacks  # noqa: E402
from two_worlds import TwoWorlds  # noqa: E402

WITHOUT_A_GPU = pytest.mark.skipif(
    torch.cuda.is_available(), reason="needs no-GPU: with one Triton has a driver of its own"
)

# Patterns in the text of random programs.
pytestmark = [pytest.mark.filterwarnings("ignore::SyntaxWarning"), WITHOUT_A_GPU]
PROGRAMS = 30
MORE = int(os.environ.get("CULAUNCH_TEST_PROGRAMS", "0"))


class Subclass(torch.Tensor):
    pass


def tensors():
    return {
        "a": torch.zeros(8, 4), "b": torch.zeros(8, 4, dtype=torch.float16), "c": torch.zeros(3),
        "p": torch.nn.Parameter(torch.zeros(4, 4)), "e": torch.zeros(0, 4), "z": torch.zeros(()),
        "i": torch.zeros(16, dtype=torch.int32), "u": torch.zeros(16, dtype=torch.uint8),
        "s": torch.zeros(4, 4).as_subclass(Subclass),
    }  # fmt: skip


def differences(worlds, first, count, *, installed):
    for seed in range(first, first + count):
        source, steps = random_stacks.program(seed)
        found = worlds.compare(source, steps, tensors(), installed=installed)
        if found is not None:
            yield f"seed {seed}, {found}"


@pytest.mark.parametrize("first", [0, 10000])
@pytest.mark.parametrize("installed", [False, True])
def test_what_is_launched(recorder, monkeypatch, first, installed):
    # The first half is compared at about every other call with what the heuristics say again.
    monkeypatch.setenv("CULAUNCH_TRITON_CHECK", str(int(first == 0)))
    worlds = TwoWorlds(recorder, monkeypatch)
    assert list(differences(worlds, first, PROGRAMS + MORE, installed=installed)) == []
