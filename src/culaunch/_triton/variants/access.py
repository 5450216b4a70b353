"""How a compiled Triton kernel accesses the arrays behind its pointers: from its TTIR."""

from __future__ import annotations

import re

_ARGUMENT = re.compile(r"(%[\w$.-]+): (!tt\.ptr<)?")
_BLOCK_ARGUMENT = re.compile(r"\^bb.*(!tt\.ptr<|!tt\.tensordesc<)")
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_OPERATION = re.compile(r'\s*(?:(%[\w$.-]+)(?::(\d+))? = )?"?([a-z_]+\.[a-z_0-9.]+)"?')
_BOUND = re.compile(r"(%[\w$.-]+) = (%[\w$.-]+(?:#\d+)?)")
# Operations that read through their pointers, and return data.
_READS = frozenset(("tt.load", "tt.descriptor_load", "tt.descriptor_gather"))
# Operations that write through their first operand.
_WRITES = ("tt.store", "tt.atomic_", "tt.descriptor_store", "tt.descriptor_reduce",
           "tt.descriptor_scatter")  # fmt: skip
# Operations that return a pointer from a pointer. Any other operation on a pointer ends the
# analysis.
_KEEPS = frozenset((
    "tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans",
    "tt.make_tensor_descriptor", "tt.make_tensor_ptr", "tt.advance", "tt.bitcast",
    "arith.select",
))  # fmt: skip


def pointer_access(ttir: str) -> tuple[str | None, ...]:
    """Determine how a kernel accesses each of its parameters.

    Parameters
    ----------
    ttir : str
        Triton's intermediate representation, as ``kernel.asm["ttir"]`` is.

    Returns
    -------
    tuple of str or None
        ``"read"``, ``"write"`` (perhaps beside reads) or ``"unknown"`` of a pointer; None of
        another parameter. Empty if the text is not understood.

    Notes
    -----
    Values in two regions may have the same name, and count as one value. More arguments may
    therefore be reported as written, but never fewer.
    """
    # The analysis supports only inlined functions. A second function would receive pointers through
    # calls, which are not followed.
    head = re.search(r"tt\.func public @[^(]*\((.*)\)[^()]*\{", ttir)
    if head is None or ttir.count("tt.func") != 1 or _BLOCK_ARGUMENT.search(ttir):
        return ()
    # List every parameter, to give the result the order of the kernel's own parameters.
    arguments = [(match[1], match[2] is not None) for match in _ARGUMENT.finditer(head[1])]
    walk = _Walk([name for name, is_pointer in arguments if is_pointer])
    lines = ttir[head.end() :].splitlines()
    size = -1
    while size != walk.size():  # a loop carries pointers back to its beginning
        size = walk.size()
        for line in lines:
            walk.follow(line.strip())
    return tuple(walk.access(name) if is_pointer else None for name, is_pointer in arguments)


class _Walk:
    """The flow of a kernel's pointers.

    Attributes
    ----------
    roots : dict
        A value -> the parameters that it may point into.
    regions : list
        Of the loops and branches that a line is in: the values that a yield gives, by position.
    """

    def __init__(self, pointers: list[str]) -> None:
        self.roots: dict[str, set[str]] = {name: {name} for name in pointers}
        self.regions: list[list[list[str]]] = []
        self.written: set[str] = set()
        self.unknown: set[str] = set()

    def size(self) -> int:
        return sum(map(len, self.roots.values()))

    def access(self, name: str) -> str:
        if name in self.unknown:
            return "unknown"
        return "write" if name in self.written else "read"

    def follow(self, line: str) -> None:
        """Follow the pointers through one line."""
        # The end of a region. "} else {" ends one and begins another of the same operation, with
        # the same yielded values.
        if line.startswith("}") and not line.endswith("{") and self.regions:
            self.regions.pop()
        match = _OPERATION.match(line)
        if match is None:
            # The operation has an unknown form, so the use of the pointer is unknown.
            self.unknown |= self._of(_VALUE.findall(line))
            return
        result, count, name = match.groups()
        operands = _VALUE.findall(line[match.end() :])
        gives = self._targets(result, count)
        carried = line.partition("iter_args(")[2]
        bound = _BOUND.findall(carried) if name == "scf.for" else []
        # A region's yields become, by position, the operation's results, and in a loop also its
        # carried variables.
        if line.endswith("{"):
            inner = [one for one, _ in bound]
            self.regions.append([[one, *inner[i : i + 1]] for i, one in enumerate(gives)])
        if name == "scf.yield":
            region = self.regions[-1] if self.regions else []
            for targets, operand in zip(region, operands, strict=False):
                self._give(targets, self._of([operand]))
        elif name == "scf.for":
            for i, (one, outer) in enumerate(bound):
                self._give([one, *gives[i : i + 1]], self._of([outer]))
        elif name.startswith(_WRITES):
            self.written |= self._of(operands[:1])
            # The use of a pointer that is stored as data is unknown.
            self.unknown |= self._of(operands[1:])
        elif name in _KEEPS:
            self._give(gives, self._of(operands))
        elif name not in _READS:
            self.unknown |= self._of(operands)

    def _of(self, values: list[str]) -> set[str]:
        return set().union(*(self.roots.get(one, set()) for one in values))

    def _give(self, values: list[str], roots: set[str]) -> None:
        for one in values:
            self.roots.setdefault(one, set()).update(roots)

    def _targets(self, result: str | None, count: str | None) -> list[str]:
        if result is None:
            return []
        return [result] if count is None else [f"{result}#{i}" for i in range(int(count))]
