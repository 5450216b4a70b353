"""Generic addresses: which state space an address belongs to.

Host addresses are device addresses of the global space. The other spaces have windows above
every host address, as a GPU has windows of its own; a function's address is in one too.
"""

from __future__ import annotations

# Addresses of user space have at most 47 bits on x86-64 and 48 on AArch64. The host has no pointers
# from 1 << 48 on, unless a program asks the system for more.
WINDOW_SHIFT = 48
SHARED = 1 << 48
LOCAL = 2 << 48
PARAM = 3 << 48
FUNCTION = 4 << 48

# The offset that cvta adds to an address of the space to make it generic.
BASES = {"global": 0, "const": 0, "shared": SHARED, "local": LOCAL, "param": PARAM}
