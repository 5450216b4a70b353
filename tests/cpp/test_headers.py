"""Each public header includes all that it needs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import culaunch as cl

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")


def test_no_header_depends_on_another_one_being_included_first(build, gxx, tmp_path):
    own = headers(of_tvm_ffi=False)
    # Header-only, those that declare end with those that define.
    split = [
        header
        for header in own
        if header.parent.name == "impl" or (header.parent / "impl" / header.name).exists()
    ]
    for way, among in (("0", own), ("1", split)):
        check_alone(build, gxx, tmp_path / way, among, f"-DCULAUNCH_HEADER_ONLY={way}")


@pytest.mark.needs("tvm_ffi")
def test_no_header_over_tvm_ffi_depends_on_another_one(build, gxx, tmp_path):
    from tvm_ffi import libinfo

    include = ("-isystem", libinfo.find_include_path())
    check_alone(build, gxx, tmp_path, headers(of_tvm_ffi=True), *include)


def headers(*, of_tvm_ffi):
    """Return the public headers that need TVM-FFI's, or those that do not."""
    found = sorted((Path(cl.cpp.include_dir()) / "culaunch").rglob("*.h"))
    # function.h and its kin are what exported functions are written with.
    return [one for one in found if one.stem.startswith(("tvm_ffi", "function")) == of_tvm_ffi]


def check_alone(build, compiler, folder, among, *flags):
    folder.mkdir(exist_ok=True)
    chains = chains_of(compiler, among, *(flag for flag in flags if flag.startswith("-D")))
    assert sorted(header for chain in chains for header in chain) == among
    for number, chain in enumerate(chains):
        source = folder / f"{number}.cpp"
        names = [header.relative_to(cl.cpp.include_dir()).as_posix() for header in chain]
        source.write_text("".join(f"#include <{name}>\n" * 2 for name in names))
        build(compiler, "alone.o", "-fsyntax-only", *flags, *WARNINGS, source)


def chains_of(compiler, among, *flags):
    """Sort headers into lists: each header includes those before it, and none that follow.

    So one file per list is enough: before each header, the compiler has read only what that
    header includes itself.
    """
    included = included_by(compiler, among, *flags)
    chains: list[list[Path]] = []
    for header in sorted(among, key=lambda one: (len(included[one]), one)):
        for chain in chains:
            if chain[-1] in included[header] and header not in included[chain[-1]]:
                chain.append(header)
                break
        else:
            chains.append([header])
    return chains


def included_by(compiler, among, *flags):
    """Return the headers of culaunch that each of these includes, directly or not."""
    # Other headers count as generated: the compiler need not find them, and reads none.
    command = [compiler, "-std=c++17", "-MM", "-MG", "-nostdinc", *flags]
    command += [f"-I{cl.cpp.include_dir()}", "-xc++", *among]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rules = done.stdout.replace("\\\n", " ").splitlines()
    included = {}
    for header, rule in zip(among, rules, strict=True):
        _, _, names = rule.partition(": ")
        found = {Path(os.path.normpath(name)) for name in names.split()}
        assert header in found
        included[header] = found - {header}
    return included
