"""Two kernels, and the fake driver of this process: what it was asked."""

import ctypes

PTX = """
.version 8.4
.target sm_90
.address_size 64
.visible .entry one(.param .u64 one_0, .param .u32 one_1) { ret; }
.visible .entry two(.param .u64 two_0, .param .u32 two_1) { ret; }
"""
USUAL = 8  # calls before a graph is made


class Fake:
    """The fake driver of this process."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.fake_driver_log.restype = ctypes.c_char_p
        self.library.fake_driver_calls.restype = ctypes.c_uint64
        self.library.fake_driver_clear()

    def lines(self):
        text = self.library.fake_driver_log().decode()
        return [line for line in text.splitlines() if line.startswith("launch ")]

    def calls(self, name):
        return self.library.fake_driver_calls(name.encode())

    def fail(self, name, code):
        self.library.fake_driver_fail(name.encode(), code)

    def clear(self):
        self.library.fake_driver_clear()

    def values(self):
        """The second argument of each launch, an int of 32 bits."""
        return [int.from_bytes(bytes.fromhex(line.split()[-1]), "little") for line in self.lines()]
