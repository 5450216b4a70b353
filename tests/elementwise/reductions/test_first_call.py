"""The first kernel of a process is one of a function that reduces."""

from __future__ import annotations

import os
import subprocess
import sys

FIRST = """
import numpy as np
from culaunch import elementwise as ew
print(ew.fuse(lambda x: ew.sum(x, axis=1))(np.ones((4, 5), np.float32)).tolist())
"""


def test_the_compiler_is_loaded_while_a_body_is_recorded(tmp_path):
    """Code of other packages that loads it runs as always."""
    environment = os.environ | {"CULAUNCH_CACHE_DIR": str(tmp_path), "CULAUNCH_DRIVER": "emulator"}
    run = subprocess.run(
        [sys.executable, "-c", FIRST], env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout == "[5.0, 5.0, 5.0, 5.0]\n", run.stderr
