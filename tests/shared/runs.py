"""Work in several threads at once, programs of their own, and what the processes of a run share."""

import contextlib
import fcntl
import io
import os
import subprocess
import sys
import textwrap
import threading
from typing import NamedTuple


def in_threads(work, count):
    """Call ``work(i)`` in threads for each i below `count`; return what was raised."""
    failures = []

    def run(number):
        try:
            work(number)
        except BaseException as failure:  # noqa: BLE001 - all of it is looked at
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return failures


def run_to_the_end(code, **environment):
    """Run a program in a process of its own; it says "done" as the last thing that it does."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def folder_of_the_run(tmp_path_factory):
    """Return the temporary folder that is the same in all processes of this run."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@contextlib.contextmanager
def alone_in(folder):
    """Let one process at a time into a folder, and create it; the next one finds its contents."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


class Said(NamedTuple):
    exit_code: int
    output: str  # of both streams


def run_command(*words):
    """Run ``culaunch words...`` in this process, as a shell would start it."""
    from culaunch.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main(list(words))
        except SystemExit as end:
            code = end.code or 0
    return Said(code, said.getvalue())
