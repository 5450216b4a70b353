"""Run a command on a terminal of its own."""

import contextlib
import os
import subprocess
import sys


def on_a_terminal(*arguments, **variables):
    """Run a command on a terminal of its own and return what it shows there."""
    leader, follower = os.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "culaunch", *arguments], stdin=follower, stdout=follower,
        stderr=follower, env={**os.environ, "TERM": "xterm", **variables},
    )  # fmt: skip
    os.close(follower)
    shown = b""
    # Its end is an error here: the other side of the terminal has closed.
    with contextlib.suppress(OSError), open(leader, "rb", buffering=0) as terminal:
        while part := terminal.read(4096):
            shown += part
    done.wait()
    return shown.decode()
