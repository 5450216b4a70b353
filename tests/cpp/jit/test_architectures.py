"""Both languages read the same names of architectures, and sort them in the same order."""

from __future__ import annotations

import itertools
import subprocess

from jit_requests import hexed

from culaunch._compile.architectures import resolve_arch

NAMES = [
    "".join(parts)
    for parts in itertools.product(
        ("sm_", "compute_", "sm", "SM_", "lto_", ""),
        ("", "9", "09", "80", "90", "103", "121", "090", "1000", "8 0", "٨0"),
        ("", "a", "f", "b", "af", "A", " "),
    )
]
LISTS = [
    ["sm_90", "sm_80"],
    ["compute_80", "sm_120f", "sm_120a", "sm_120", "sm_90a", "sm_103", "compute_120a", "sm_90"],
    ["compute_90", "compute_90", "sm_90", "sm_90"],
    ["sm_80", "hello"],
]


def read_here(names):
    try:
        return list(resolve_arch(names))
    except ValueError as error:
        return ["error", "is not an architecture" in str(error)]


def test_both_languages_read_the_same_architectures(jit_tool):
    requests = [*([name] for name in NAMES if name), *LISTS]
    lines = [
        line for names in requests for line in (*(f"arch {hexed(one)}" for one in names), "archs")
    ]
    done = subprocess.run(
        [jit_tool], input="\n".join(lines), capture_output=True, text=True, check=True, timeout=60
    )
    answers = [line.split() for line in done.stdout.splitlines()]
    for answer in answers:
        if answer[0] == "error":
            answer[1] = "is not an architecture" in bytes.fromhex(answer[1]).decode()
    assert answers == [read_here(names) for names in requests]
    good = {name for (name,), answer in zip(requests[: -len(LISTS)], answers, strict=False)
            if answer == [name]}  # fmt: skip
    numbers, suffixes = ("80", "90", "103", "121"), ("", "a", "f")
    assert good == {
        "".join(parts) for parts in itertools.product(("sm_", "compute_"), numbers, suffixes)
    }
