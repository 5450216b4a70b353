"""A lock that one thread holds is free in a process that another thread forks."""

import os
import re
from pathlib import Path

import pytest
from forks import is_free_in_a_fork

import culaunch
from culaunch._base.fork_lock import ForkLock

PACKAGE = Path(culaunch.__file__).parent


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of CPython 3.12 and newer
@pytest.mark.filterwarnings("ignore:os.fork.* was called:RuntimeWarning")  # of JAX
def test_a_lock_of_another_thread_is_free_in_a_forked_process():
    assert is_free_in_a_fork(ForkLock())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork.* was called:RuntimeWarning")
def test_a_lock_of_the_thread_that_forks_stays_its_own():
    lock = ForkLock()
    with lock:
        before = lock.current
        child = os.fork()
        if child == 0:
            with lock:
                os._exit(0 if lock.current is before else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_package_has_no_other_locks():
    """A plain lock stays held in the child, and waiting for it never ends."""
    plain = re.compile(
        r"threading\.R?Lock\(|_thread\.allocate_lock\(|import (R?Lock\b|allocate_lock)"
    )
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if plain.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"_base/fork_lock.py"}
