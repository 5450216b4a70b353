"""Run a program on a terminal of its own."""

import contextlib
import os
import subprocess
import sys


def shown_on_a_terminal(command, **variables):
    """Run a command, and return what the terminal shows."""
    leader, follower = os.openpty()
    done = subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower,
        env={**os.environ, "TERM": "xterm", **variables},
    )  # fmt: skip
    os.close(follower)
    shown = b""
    # Its end is an error here: the other side of the terminal has closed.
    with contextlib.suppress(OSError), open(leader, "rb", buffering=0) as terminal:
        while part := terminal.read(4096):
            shown += part
    done.wait()
    return shown.decode()


def on_a_terminal(*arguments, **variables):
    """Run a culaunch command, and return what the terminal shows."""
    return shown_on_a_terminal([sys.executable, "-m", "culaunch", *arguments], **variables)
