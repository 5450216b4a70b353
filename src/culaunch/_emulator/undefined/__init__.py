"""Values that a kernel never set: their origins, how they spread, where they are used.

As in Valgrind's memcheck, reading unwritten shared memory is not an error. It marks the destination
registers, bit by bit, and values computed from them. An error is a use: a branch, an address, a
store to global memory. Nothing of this runs for a group of threads in which every register is
defined.
"""
