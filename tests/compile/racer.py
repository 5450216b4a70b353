"""Ask one cache for many keys at once, and record the compilations, for test_reliability."""

import os
import random
import sys
import time

import culaunch as cl


def image(number):
    return cl.Image(f".version 8.0\n// {number}\n".encode(), names={"k": str(number)})


def main(path, log, start, keys):
    cache = cl.cache.Cache(path)
    order = list(range(keys))
    random.seed(os.getpid())
    random.shuffle(order)
    while not os.path.exists(start):
        time.sleep(0.001)
    for number in order:

        def make(number=number):
            descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(descriptor, f"{number}\n".encode())
            os.close(descriptor)
            time.sleep(0.003)
            return image(number)

        found = cache.get_or_make(f"{number:064x}", make)
        assert found == image(number), number
        assert found.names == {"k": str(number)}


main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
