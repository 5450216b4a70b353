"""Run decoded code over many threads at once.

`state` defines a group of threads at the same place, and the code that they run. The `scheduler`
chooses the group that goes on next; `barriers` and `warp_sync` hold those that wait. `spaces` finds
the memory of an address. `races` compares accesses with earlier ones: `records` has them, and
`ordering` knows which of them come first.
"""
