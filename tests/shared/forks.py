"""Locks in a forked process."""

import os
import threading


def is_free_in_a_fork(lock):
    """Fork while another thread holds a ForkLock; say whether the child could take it."""
    taken, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            taken.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if lock.current.acquire(timeout=5) else 1)
    done.set()
    thread.join()
    return os.waitpid(child, 0)[1] == 0
