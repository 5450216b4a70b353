"""The numbers of programs: the extension's, which Python and the page of programs have, too."""

import itertools
import re
from pathlib import Path

import pytest
import test_arithmetic as arithmetic

from culaunch import _core
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs import semantics
from culaunch._launch.launches.launch_options import OPTIONS

FORMAT = _core.program_format()
PAGE = Path(__file__).parents[2] / "docs" / "dev" / "functions.md"


def test_each_number_of_the_extension_has_its_name_in_python():
    assert FORMAT["version"] == oc.VERSION
    assert FORMAT["opcodes"].keys() == oc.OPS.keys() | {"GUARD", "EFFECTS"}
    for name, (number, operands) in FORMAT["opcodes"].items():
        if name in oc.OPS:
            assert (oc.OPS[name].number, oc.OPS[name].operands) == (number, operands)
        else:
            assert getattr(oc, name) == number
    for key, prefix in (("effects", ""), ("sources", "P_"), ("values", "V_")):
        for name, number in FORMAT[key].items():
            shown = {"V_CALLED": "V_MADE"}.get(prefix + name.upper(), prefix + name.upper())
            assert getattr(oc, shown) == number
    assert [kind.__name__ for kind in oc.EXCEPTIONS] == list(FORMAT["exceptions"])
    assert list(FORMAT["exceptions"].values()) == list(range(len(oc.EXCEPTIONS)))


def test_flags_of_launches_are_bits_and_those_of_saved_programs_stay():
    flags = {name: option.flag for name, option in OPTIONS.items() if option.flag}
    assert sum(flags.values()) == 2 ** len(flags) - 1
    assert [name for name, flag in flags.items() if flag & oc.FIRST_FLAGS] == [
        "shared_memory", "cluster", "preferred_cluster", "cooperative", "programmatic", "priority",
    ]  # fmt: skip
    assert [flags[name] for name in ("cooperative", "programmatic", "priority")] == [1, 2, 4]
    assert [flags[name] for name in ("cluster", "preferred_cluster", "shared_memory")] == [
        8,
        16,
        32,
    ]


def test_what_python_adds_is_of_instructions_that_there_are():
    assert oc.OPS.keys() >= semantics.SEMANTICS.keys()
    # An operation that raises has its place in the body.
    raising = {name for name, row in semantics.SEMANTICS.items() if row.error}
    assert all("t" in oc.OPS[name].operands for name in raising)
    assert all("{at}" in semantics.SEMANTICS[name].cpp for name in raising)
    assert not any(oc.OPS[name].can_be_left_out for name in raising)
    # All other instructions read arguments, constants and the device, or check.
    assert oc.OPS.keys() - semantics.SEMANTICS.keys() == {
        "ADDRESS", "ARG_F", "ARG_I", "CHECK", "CONST_B", "CONST_F", "CONST_I", "CONTIGUOUS",
        "DEVICE", "DEVICE_ATTRIBUTE", "DIM", "DIMENSION", "FLOAT_RANGE", "MATH", "PLACE", "RAISES",
        "RANGE", "STRIDE",
    }  # fmt: skip
    assert oc.MATH_NUMBER.keys() >= oc.TWO_OPERANDS


# Where the results and errors of instructions are compared that are in no table of arithmetic.
ELSEWHERE = {
    "test_arithmetic.py": {
        "AND_B", "ARG_F", "ARG_I", "B2I", "MATH", "NOT", "OR_B", "RAISES", "SELECT_B", "SELECT_F",
        "SELECT_I", "XOR_B",
    },
    "test_memory.py": {
        "ADDRESS", "CONTIGUOUS", "DEVICE", "DEVICE_ATTRIBUTE", "DIM", "PLACE", "STRIDE",
    },
    "test_program.py": {"CONST_B", "DIMENSION", "FLOAT_RANGE", "RANGE"},
    "assembler.py": {"CHECK", "CONST_F", "CONST_I", "EFFECTS", "GUARD"},  # every test has these
}  # fmt: skip


def test_every_instruction_has_a_test_of_its_value():
    tables = (
        arithmetic.INTS, arithmetic.ONE_INT, arithmetic.REALS, arithmetic.ONE_REAL,
        arithmetic.MIXED,
    )  # fmt: skip
    tested = set().union(*tables, *ELSEWHERE.values())
    assert sorted(FORMAT["opcodes"].keys() - tested) == []


@pytest.mark.parametrize("file", ELSEWHERE)
def test_what_is_compared_elsewhere_is_there(file):
    text = Path(__file__).with_name(file).read_text()
    assert sorted(name for name in ELSEWHERE[file] if f'"{name}"' not in text) == []


def rows(page):
    """Yield the numbers and the names of the tables of instructions, ends and effects."""
    row = re.compile(r"^\| ([\d, to]+) \| ([A-Z][A-Z0-9_, ]+) \|", re.MULTILINE)
    for numbers, names in row.findall(page):
        ends = [int(number) for number in re.findall(r"\d+", numbers)]
        every = range(ends[0], ends[-1] + 1) if " to " in numbers else ends
        yield from zip(every, re.findall(r"\w+", names), strict=True)


def test_the_page_of_programs_has_these_numbers():
    page = PAGE.read_text(encoding="utf-8")
    known = {name: number for name, (number, _) in FORMAT["opcodes"].items()}
    effects = {name.upper(): number for name, number in FORMAT["effects"].items()}
    assert sorted(rows(page), key=str) == sorted(
        ((number, name) for name, number in itertools.chain(known.items(), effects.items())),
        key=str,
    )
    sources = re.findall(r"^\| (\d+) ([A-Z_]+) \|", page, re.MULTILINE)
    assert {name.lower(): int(number) for number, name in sources} == FORMAT["sources"]
    for heading, key in (("function of MATH", "math"), ("exception of CHECK", "exceptions")):
        table = re.search(rf"\| number \| {heading} \|\n\|---\|---\|\n((?:\|.*\n)+)", page)[1]
        listed = {}
        for first, last, names in re.findall(r"\| (\d+) to (\d+) \| (.+) \|\n", table):
            numbers = range(int(first), int(last) + 1)
            listed.update(zip(names.split(", "), numbers, strict=True))
        assert listed == FORMAT[key]
    assert f"words  = [version = {FORMAT['version']}," in page
