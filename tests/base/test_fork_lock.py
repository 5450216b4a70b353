"""What one thread holds is free in the process that another thread forks."""

import os
import re
import threading
from pathlib import Path

import pytest

import culaunch
from culaunch._base.fork_lock import ForkLock

PACKAGE = Path(culaunch.__file__).parent


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of CPython 3.12 and newer
@pytest.mark.filterwarnings("ignore:os.fork.* was called:RuntimeWarning")  # of JAX
def test_a_lock_of_another_thread_is_free_in_a_forked_process():
    mine, others = ForkLock(), ForkLock()
    taken, done = threading.Event(), threading.Event()

    def hold():
        with others:
            taken.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(60)
    with mine:
        child = os.fork()
        if child == 0:
            is_free = others.current.acquire(timeout=5)
            with mine:  # this thread has it, here too
                os._exit(0 if is_free else 1)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_the_package_has_no_other_locks():
    """A plain lock stays held in the child, and whoever asks for it waits for ever."""
    plain = re.compile(
        r"threading\.R?Lock\(|_thread\.allocate_lock\(|import (R?Lock\b|allocate_lock)"
    )
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if plain.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"_base/fork_lock.py"}
