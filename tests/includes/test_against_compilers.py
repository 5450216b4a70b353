"""The scan against compilers: all that they read counts, and what changes is noticed."""

import functools
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from header_trees import DIRS, Tree

import culaunch as cl
from culaunch._includes.closure import Search, follow

MARKER = re.compile(r"^culaunch_tree (\d+)$", re.MULTILINE)
LINE = re.compile(r'^# \d+ "(/[^"]*)"', re.MULTILINE)


def preprocess(command, root, count):
    """Return what the compiler makes of each tree, and the files that it reads for it."""
    lines = [f'culaunch_tree {n}\n#include "t{n}.cu"\n' for n in range(count)]
    main = root / "src" / "main.cc"
    main.write_text("".join(lines) + f"culaunch_tree {count}\n")
    dirs = [f"-I{root / folder}" for folder in DIRS]
    done = subprocess.run(
        [*command, "-E", "-w", *dirs, str(main)], capture_output=True, text=True, check=False
    )
    parts = MARKER.split(done.stdout)
    assert len(parts) == 2 * count + 3, done.stderr[-2000:]
    texts, files = [], []
    for part in parts[2 : 2 * count + 2 : 2]:
        read = {os.path.realpath(path) for path in LINE.findall(part)}
        files.append({path for path in read if path.startswith(str(root))})
        texts.append("".join(line for line in part.splitlines() if not line.startswith("#")))
    return texts, [paths - {str(main)} for paths in files]


def scan(tree, root):
    text = tree.source.read_bytes().decode()
    found = follow(text, str(tree.source), Search(dirs=[str(root / folder) for folder in DIRS]))
    assert not found.unknown, found.unknown
    return text, found


def declared_by_nvrtc(root, count):
    """Return what NVRTC makes of each tree; which files it reads it does not say."""
    main = root / "src" / "main.cc"
    main.write_text("".join(f'#include "t{n}.cu"\n' for n in range(count)))
    image = cl.compile(
        main,
        arch="compute_80",
        include_dirs=[root / folder for folder in DIRS],
        device_as_default_execution_space=True,
        cache=False,
    )
    found = [set() for _ in range(count)]
    for number, rest in re.findall(r"\.global\b.* t(\d+)_(\d+_x\b.*);", image.data.decode()):
        found[int(number)].add(rest)
    return [sorted(one) for one in found], [set()] * count


def check_trees(root, command, seeds, edits, *, compiler, old=False, settle=0.0):
    """Hold the scan of each tree against the compiler, before and after each edit.

    A change that the compiler sees must change the digest (or the source itself). The earlier
    queries of the disk must have other answers.
    """
    root = Path(os.path.realpath(root))
    trees = [Tree(root, n, seed, compiler, old=old) for n, seed in enumerate(seeds)]
    time.sleep(settle)
    ask = declared_by_nvrtc if command is None else functools.partial(preprocess, command)
    before, files = ask(root, len(trees))
    scans = [scan(tree, root) for tree in trees]
    changed = 0
    for _ in range(edits + 1):
        for tree, (_, found), read in zip(trees, scans, files, strict=True):
            noted = {os.path.realpath(one.path) for one in found.footprint.found}
            assert read - {str(tree.source)} <= noted, f"seed {seeds[trees.index(tree)]}"
            again = found.footprint.renewed()
            assert again is not None, "nothing has changed"
        for tree in trees:
            tree.edit()
        now, files = ask(root, len(trees))
        scans_now = [scan(tree, root) for tree in trees]
        for index, tree in enumerate(trees):
            (text, found), (text_now, found_now) = scans[index], scans_now[index]
            if before[index] == now[index]:
                continue
            changed += 1
            where = f"seed {seeds[index]} in {tree.root}"
            assert (text, found.digest) != (text_now, found_now.digest), where
            assert text != text_now or found.footprint.renewed() is None, where
        before, scans = now, scans_now
    assert changed > len(trees) / 10, "the edits are of some account"
    return changed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "old"),
    [
        (["g++", "-std=gnu++17", "-x", "c++"], False),
        (["g++", "-std=c++11", "-x", "c++"], True),
        (["clang++", "-std=gnu++17", "-x", "c++"], False),
    ],
    ids=["g++", "g++-c++11", "clang++"],
)
@pytest.mark.parametrize(
    ("settle", "seeds"), [(0.0, range(100)), (2.1, range(100, 200))], ids=["at once", "later"]
)
def test_every_file_that_a_compiler_reads_counts_and_every_change_is_noticed(
    tmp_path, command, old, settle, seeds
):
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    check_trees(tmp_path, command, seeds, 3, compiler=command[0], old=old, settle=settle)


@pytest.mark.slow
def test_every_change_that_nvrtc_sees_is_noticed(tmp_path):
    check_trees(tmp_path, None, range(1000, 1050), 1, compiler="nvrtc")


@pytest.mark.slow
def test_every_file_that_nvcc_reads_counts(tmp_path):
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    root = Path(os.path.realpath(tmp_path))
    trees = [Tree(root, n, 2000 + n, "nvcc") for n in range(50)]
    main = root / "src" / "main.cu"
    main.write_text("".join(f'#include "t{n}.cu"\n' for n in range(len(trees))))
    dirs = [f"-I{root / folder}" for folder in DIRS]
    done = subprocess.run(["nvcc", "-M", *dirs, main], capture_output=True, text=True, check=True)
    words = done.stdout.replace("\\\n", " ").split(" : ", 1)[1].split()
    read = {os.path.realpath(word) for word in words if word.startswith(str(root))}
    assert len(read) > 3 * len(trees)
    noted = {str(tree.source) for tree in trees} | {str(main)}
    for tree in trees:
        noted |= {os.path.realpath(one.path) for one in scan(tree, root)[1].footprint.found}
    assert read <= noted
