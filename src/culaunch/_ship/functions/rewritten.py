"""Programs with an added beginning: conversions of arguments, or a guard."""

from __future__ import annotations

from culaunch._base.cuda import DeviceAttribute
from culaunch._base.places import Place
from culaunch._core import Program
from culaunch._function.programs.decode import DecodedTree
from culaunch._function.programs.encode import encode
from culaunch._function.programs.opcodes import OPS
from culaunch._function.programs.program import Node
from culaunch._function.programs.record import Guard, Instruction, Register

_MAJOR = DeviceAttribute.COMPUTE_CAPABILITY_MAJOR
_MINOR = DeviceAttribute.COMPUTE_CAPABILITY_MINOR


def program_of(tree: DecodedTree) -> Program:
    """Return the program of a tree."""
    encoded = encode(tree)
    return Program(encoded.words, encoded.constants, encoded.texts)


def take_ints(tree: DecodedTree, parameters: frozenset[int]) -> None:
    """Change a program to accept ints for some of its float parameters.

    Parameters
    ----------
    tree : DecodedTree
    parameters : frozenset[int]
        Whose arguments are ints.
    """
    for node in tree.blocks:
        made = []
        for step in node.steps:
            if step.op.name == "ARG_F" and step.operands[0] in parameters:
                # The int goes into a new register, and the float into the register that the program
                # reads.
                given = tree.new_register()
                made += [
                    Instruction(OPS["ARG_I"], given, step.operands),
                    Instruction(OPS["I2F"], step.result, (given,)),
                ]
            else:
                made.append(step)
        node.steps = made


def with_capability(tree: DecodedTree, capability: int) -> DecodedTree:
    """Return a program that runs only on devices of one compute capability (10 major + minor).

    On other devices it reports an unknown path, as if this one had not been traced.
    """
    first = Node()

    def add(name: str, *operands: int) -> Register:
        first.steps.append(Instruction(OPS[name], tree.new_register(), operands))
        return Register(tree.registers - 1)

    conditions = [
        add("EQ", add("DEVICE_ATTRIBUTE", int(attribute)), add("CONST_I", value))
        for attribute, value in zip((_MAJOR, _MINOR), divmod(capability, 10), strict=True)
    ]
    first.guard = Guard(add("AND_B", *conditions), True, Place("a library", 0), None)
    first.branches[True] = tree.root
    return DecodedTree(tree.name, tree.array_arguments, [first, *tree.blocks])
