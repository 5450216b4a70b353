"""Work in several threads at once, and programs in a process of their own."""

import os
import subprocess
import sys
import textwrap
import threading


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
