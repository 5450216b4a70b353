"""Values that a kernel never set: where they come from, how they spread, where they are used.

As in Valgrind's memcheck, reading shared memory that nobody wrote is no error: the registers that
it goes to are marked, bit by bit, and so is what is computed from them. An error is a use: a
branch, an address, a store to global memory. Nothing of this runs for a group of threads in which
every register is defined.
"""
