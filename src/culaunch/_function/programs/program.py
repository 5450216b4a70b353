"""The tree of a body's runs: paths, from the first guard to the effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._function.programs.effects import Return, renumbered
from culaunch._function.programs.opcodes import V_NONE
from culaunch._function.programs.record import Guard, Instruction, Record, Register

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_PATHS = 64


class UnstableBodyError(TypeError):
    """The body did something else than before, although its arguments were equivalent."""


class Leaf:
    """The end of a path, with its effects."""

    def __init__(self, effects: tuple[Any, ...]) -> None:
        self.effects = effects

    @property
    def is_error(self) -> bool:
        """Whether the path ends in an error, or does nothing.

        It then says nothing about results.
        """
        return self.effects == (Return((V_NONE,)),)


class Node:
    """A straight sequence of instructions, followed by a guard or a leaf."""

    def __init__(self) -> None:
        self.steps: list[Instruction] = []
        self.guard: Guard | None = None
        self.branches: dict[bool, Node] = {}
        self.leaf: Leaf | None = None


class Tree:
    """The program of one kind of arguments, as recorded so far.

    Attributes
    ----------
    root : Node
    registers : int
        How many there are.
    paths : int
        How many leaves there are.
    names : dict
        Register -> its contents, in words.
    array_arguments : int
        How many of the arguments are arrays.
    version : int
        How many times a path was added.
    learned : int
        The version of the notes on the body when the first path was recorded.
    """

    def __init__(self, name: str, array_arguments: int, learned: int = 0) -> None:
        self.name = name
        self.learned = learned
        self.version = 0
        self.root = Node()
        self.registers = 0
        self.paths = 0
        self.names: dict[int, str] = {}
        self.array_arguments = array_arguments
        self.uses: dict[int, set[str]] = {}
        self.array_names: dict[int, str] = {}

    def add(self, record: Record) -> None:
        """Add the path that a run took.

        Raises
        ------
        UnstableBodyError
            If the run differs from an earlier one with the same decisions.
        ValueError
            If there are too many paths.
        """
        # A run numbers its registers in the order of their first use. In the tree, a register has
        # one number for all paths. This maps the run's numbers to the tree's.
        numbers: dict[int, Register] = {}
        node, at = self.root, 0
        steps = record.steps
        # While the run makes the decisions of earlier runs, it must record the same instructions,
        # so it is only compared with them. After the first new decision, everything is added.
        is_new = self.paths == 0
        while True:
            known = iter(node.steps)
            while at < len(steps) and isinstance(steps[at], Instruction):
                step = self._numbered(steps[at], numbers)  # type: ignore[arg-type]
                if is_new:
                    node.steps.append(self._defined(step, steps[at], numbers, record))  # type: ignore[arg-type]
                else:
                    other = next(known, None)
                    # The same instruction with the same registers. Its text may differ, because a
                    # body may get there from another line.
                    if other is None or other[0] is not step[0] or other[2:3] != step[2:3]:
                        raise self._unstable(step)
                    if other.result is not None:
                        numbers[steps[at].result] = other.result  # type: ignore[union-attr,index]
                at += 1
            if not is_new and next(known, None) is not None:
                raise self._unstable(None)
            if at == len(steps):
                break
            guard = steps[at]
            assert isinstance(guard, Guard)
            at += 1
            guard = guard._replace(condition=numbers[guard.condition])
            if is_new:
                node.guard = guard
            elif node.guard is None or node.guard.condition != guard.condition:
                raise self._unstable(guard)
            following = node.branches.get(guard.outcome)
            if following is None:
                # Each run adds at most one path, which begins at its first new decision.
                if not is_new:
                    self._require_room()
                following = node.branches[guard.outcome] = Node()
                is_new = True
            node = following
        if not is_new and node.guard is not None:
            raise self._unstable(None)
        effects = tuple(renumbered(one, lambda r: numbers[r]) for one in record.effects)
        self.version += 1
        # A known path is recorded again if an equal global replaced another. The newer effects are
        # used.
        if node.leaf is None:
            self.paths += 1
        node.leaf = Leaf(effects)

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes; each guard comes before its branches."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.branches[side] for side in (False, True) if side in node.branches)

    def _numbered(self, step: Instruction, numbers: dict[int, Register]) -> Instruction:
        operands = tuple(numbers[one] if type(one) is Register else one for one in step.operands)
        return step._replace(operands=operands)

    def _defined(
        self, step: Instruction, original: Instruction, numbers: dict[int, Register], record: Record
    ) -> Instruction:
        if original.result is None:
            return step
        number = numbers[original.result] = Register(self.registers)
        self.registers += 1
        name = record.names.get(original.result)
        if name is not None:
            self.names[number] = name
        return step._replace(result=number)

    def _unstable(self, step: Any) -> UnstableBodyError:
        place = getattr(step, "text", None) or getattr(step, "place", None)
        where = f"at {place}: " if place is not None else ""
        return UnstableBodyError(
            f"{where}{self.name} ran differently although its arguments led to the same "
            "decisions: its body depends on more than its arguments and the names that it reads"
        )

    def _require_room(self) -> None:
        if self.paths < MOST_PATHS:
            return
        places: dict[Any, list[str]] = {}
        for node in self.nodes():
            if node.guard is not None:
                pinned = node.guard.pinned
                text = "" if pinned is None else repr(pinned)
                places.setdefault(node.guard.place, []).append(text)
        # The place that makes the most paths is the one to change.
        place = max(places, key=lambda one: len(places[one]))
        seen = ", ".join(text for text in places[place] if text)[:200]
        raise ValueError(
            f"at {place.text()}: {self.name} has {self.paths} paths for one kind of arguments, "
            f"and at most {MOST_PATHS} are allowed: this branch makes {len(places[place])} of them"
            + (f" (for {seen})" if seen else "")
            + (
                ". A number that becomes a loop's count, a key or part of a str makes a path for "
                "each value"
            )
        )
