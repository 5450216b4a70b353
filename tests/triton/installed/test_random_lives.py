"""Between calls all sorts of things change: what is launched is what Triton itself launches."""

import os

from own_launcher import MARKS, run_both

pytestmark = MARKS
# `CULAUNCH_TEST_LIVES=0:100` in the environment says which.
LIVES = os.environ.get("CULAUNCH_TEST_LIVES", "0:4").split(":")


def test_random_lives(run_after_torch, tmp_path):
    # Triton caches code that was compiled with a changed global under the old key. With many lives,
    # one would find the code of another.
    apart = "CULAUNCH_TEST_LIVES" in os.environ
    own, installed, _ = run_both(run_after_torch, "random_lives.py", tmp_path, *LIVES, apart=apart)
    assert len(own) == 40 * (int(LIVES[1]) - int(LIVES[0]))
    for line, other in zip(own, installed, strict=True):
        assert line == other
