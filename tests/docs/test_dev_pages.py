"""The pages for contributors list the rooms, files and names of the code."""

import re
import subprocess
from pathlib import Path

import pytest

import culaunch.triton

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "dev").glob("*.md"))
# The page of functions is older than their room, and is compared as soon as that is there.
if not (ROOT / "src" / "culaunch" / "_function").exists():
    PAGES.remove(ROOT / "docs" / "dev" / "functions.md")
ARCHITECTURE = (ROOT / "docs" / "dev" / "architecture.md").read_text()
PLACES = ("benchmarks", "csrc", "docs", "drivers", "include", "src", "tests", "tools")


def picture(first):
    """Return the lines of the picture that has a line which begins with `first`."""
    (found,) = (
        block.splitlines()
        for block in re.findall(r"```rooms\n(.*?)```", ARCHITECTURE, re.DOTALL)
        if re.search(rf"^{first}\b", block, re.MULTILINE)
    )
    return found


def test_the_picture_of_the_package_is_what_import_linter_holds():
    pyproject = (ROOT / "pyproject.toml").read_text()
    layers = re.search(r'name = "One way down".*?layers = \[(.*?)\]', pyproject, re.DOTALL)[1]
    held = [set(re.split(r" \| ", floor)) for floor in re.findall(r'"(.+)"', layers)]
    held.remove({"__main__"})
    drawn = []
    for line in picture("commands"):
        # A name for the floor, the rooms, and after two blanks what they are.
        rooms = re.split(r" {2,}", line[13:].strip())[0]
        drawn.append(re.split(r" \| |, ", rooms))
    flat = [room for floor in drawn for room in floor]
    assert set(flat) == set().union(*held)
    floors = {room: number for number, floor in enumerate(held) for room in floor}
    assert [floors[room] for room in flat] == sorted(floors[room] for room in flat)


def test_the_picture_of_triton_kernels_is_what_import_linter_holds():
    pyproject = (ROOT / "pyproject.toml").read_text()
    floors = r'name = "The floors of Triton kernels".*?layers = \[(.*?)\]'
    held = re.findall(r'"(.+)"', re.search(floors, pyproject, re.DOTALL)[1])
    assert [re.split(r" {2,}", line)[0] for line in picture("program")] == held
    rooms = {path.parent.name for path in (ROOT / "src/culaunch/_triton").glob("*/__init__.py")}
    table = ARCHITECTURE.partition("| room of `_triton` |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == rooms


@pytest.mark.parametrize("name", culaunch.triton.__all__)
def test_what_users_get_of_triton_kernels_is_in_no_room(name):
    """Pickles and messages name these modules."""
    home = getattr(culaunch.triton, name).__module__
    assert re.fullmatch(r"culaunch\._triton\.\w+", home)
    assert (ROOT / "src" / home.replace(".", "/")).with_suffix(".py").exists()


def test_the_picture_of_the_extension_is_its_folders():
    drawn = [re.split(r" \| ", re.split(r" {2,}", line)[0]) for line in picture("extension")]
    csrc = ROOT / "csrc"
    there = {path.name for path in csrc.iterdir() if path.is_dir()} | {"extension"}
    assert {room for floor in drawn for room in floor} == there


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_that_a_page_names_exist(page):
    named = re.findall(rf"`((?:{'|'.join(PLACES)})/[\w./]+)`", page.read_text())
    assert [name for name in named if not (ROOT / name.replace("NAME.py", "")).exists()] == []


@pytest.mark.slow
@pytest.mark.needs("git")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_names_of_code_that_a_page_has_are_in_the_code(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    quoted = re.findall(r"`([A-Za-z_][\w.:]*)`", text)
    # Names with a capital or an underscore: words in small letters are too often only words.
    names = {re.split(r"::|\.", one)[-1] for one in quoted if re.search(r"[A-Z_]", one)}
    missing = []
    for name in sorted(names):
        found = subprocess.run(
            ["git", "grep", "-qwF", name, "--", ":!docs", ":!CONTRIBUTING.md", ":!CHANGELOG.md"],
            cwd=ROOT, check=False,
        )  # fmt: skip
        if found.returncode != 0:
            missing.append(name)
    assert missing == []
