"""Run by test_reliability: kill a writer at random moments; print what was wrong afterwards."""

import json
import os
import random
import signal
import sys
import time
import warnings

import culaunch as cl


def make(number):
    body = f"// {number}\n" * 3000
    return cl.Image(f".version 8.0\n.target sm_80\n{body}".encode(), names={"k": str(number)})


def write_forever(cache, first):
    for number in range(first, first + 100_000):
        cache.get_or_make(f"{number:064x}", lambda number=number: make(number))


def main(path, kills):
    warnings.simplefilter("error")
    random.seed(1)
    cache = cl.cache.Cache(path)
    cache.store("f" * 64, make(-1))
    wrong, seen = [], 0
    for kill in range(kills):
        # Every writer begins at the entry at which the one before died: its lock must be free.
        first = max((int(name[:64], 16) for name in entries(path) if name[0] != "f"), default=0)
        child = os.fork()
        if child == 0:
            write_forever(cl.cache.Cache(path), first)
            os._exit(0)
        time.sleep(random.uniform(0.0005, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        wrong += cache.verify()
        for name in entries(path):
            number = int(name[:64], 16)
            if name[0] != "f" and cache.lookup(name[:64]) != make(number):
                wrong.append(f"{kill}: {name}")
            seen += 1
        # Checking all of them again each time would take longer each time.
        for name in entries(path)[:-4]:
            os.unlink(os.path.join(path, name))
    left = [name for name in os.listdir(path) if name.startswith(".tmp-")]
    print(json.dumps({"wrong": wrong, "seen": seen, "temporaries": len(left)}))


def entries(path):
    return sorted(name for name in os.listdir(path) if name.endswith(".entry"))


main(sys.argv[1], int(sys.argv[2]))
