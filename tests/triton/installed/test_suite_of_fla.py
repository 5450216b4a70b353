"""flash-linear-attention's operators, natively on the emulator, against its own references.

Its source distribution has no tests; what its tests compare with is in the package.
"""

import os
import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.needs("triton", "torch", "fla"), pytest.mark.slow]

PROGRAM = Path(__file__).parents[1] / "shared" / "fla_checks_program.py"
TOOLS = Path(__file__).parents[3] / "tools" / "third_party"
WHOLE = os.environ.get("CULAUNCH_WHOLE_SUITES") == "1"
# With their gradients, about 25 kernels: scans, chunks and attention.
SAMPLE = (
    "chunk_simple_gla", "fused_recurrent_gla", "fused_recurrent_delta_rule", "chunk_hgrn",
    "fused_recurrent_gsa", "parallel_forgetting_attn",
)  # fmt: skip


def test_operators_are_what_its_references_say_and_every_launch_is_native(run_after_torch):
    environment = {
        **os.environ, "CULAUNCH_DRIVER": "emulator", "CULAUNCH_TRITON_CHECK": "1",
        "PYTHONPATH": os.pathsep.join([str(TOOLS), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    words = [PROGRAM, *(() if WHOLE else SAMPLE)]
    done = run_after_torch(words, env=environment, timeout=2400 if WHOLE else 400)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    checked = re.findall(r"^(\w+): [\d.]+ s$", done.stdout, re.MULTILINE)
    assert len(checked) >= 35 if WHOLE else set(checked) == set(SAMPLE)
    kernels = re.search(r"(\d+) kernels, ", done.stdout)
    assert kernels
    assert int(kernels[1]) >= (110 if WHOLE else 20)
