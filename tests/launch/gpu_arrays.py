"""Arrays on a GPU, which its tests launch on."""

import numpy as np

import culaunch as cl

KIB = 1024


def int_array(count=1):
    return cl.to_device(np.zeros(count, "i4"))
