"""A library of load_inline is found again only where a compiler would read the same."""

import os
import shutil
import subprocess

import pytest

from culaunch._cache.libraries import Libraries
from culaunch._inline.reads import Reads, host_search, unit_reads

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


class Project:
    """A unit and two directories of headers, compiled as load_inline does."""

    def __init__(self, root, text, options=()):
        self.root = root
        self.text = text
        for name in ("i1", "i2"):
            (root / name).mkdir()
        self.command = ["g++", "-shared", "-fPIC", f"-I{root / 'i1'}", f"-I{root / 'i2'}", *options]
        self.cache = Libraries.at(root / "cache", "unit", "0" * 64, Reads.from_json)
        self.builds = 0

    def build(self, place):
        self.builds += 1
        unit, depfile = os.path.join(place, "unit.cpp"), os.path.join(place, "unit.d")
        with open(unit, "w") as file:
            file.write(self.text)
        search = host_search(self.command, place, is_nvcc=False)
        reads = unit_reads(unit, search, place)
        library = os.path.join(place, "unit.so")
        command = [*self.command, "-MD", "-MF", depfile, "-o", library, unit]
        subprocess.run(command, cwd=place, check=True)
        with open(depfile) as file:
            words = file.read().replace("\\\n", " ").split(": ", 1)[1].split()
        files = [path for path in words if not path.startswith(place)]
        return library, reads.with_files(files, search)

    def load(self):
        """Build or find; give the entry that every later process finds."""
        found = self.cache.find() or self.cache.build(self.build)
        found.loaded()
        return found


@pytest.mark.needs("g++")
@pytest.mark.parametrize("option", [("-I{}",), ("-isystem{}",), ("-isystem", "{}"), ("-iquote{}",)])
def test_directories_of_options_are_not_the_compilers_own(tmp_path, option):
    """The compiler's own are known by its version, and not looked through."""
    words = [word.format(tmp_path) for word in option]
    search = host_search(["g++", *words, "-std=c++17", "-c"], str(tmp_path), is_nvcc=False)
    assert str(tmp_path) in (*search.dirs, *search.quoted_dirs)
    assert str(tmp_path) not in search.own
    assert search.own
    assert search.own <= set(search.dirs)


@pytest.mark.parametrize("is_nvcc", [False, True])
def test_a_compiler_that_does_not_answer_is_taken_to_look_where_its_options_say(tmp_path, is_nvcc):
    words = ["true", "-I", "a", "-isystemb", "-O2", "-iquote", "/c", "-idirafterd", "-Ia"]
    search = host_search(words, str(tmp_path), is_nvcc=is_nvcc)
    assert search.dirs == (str(tmp_path / "a"), str(tmp_path / "b"), "/c", str(tmp_path / "d"))
    assert search.own == frozenset()


CASES = {
    "a header that wins": ("#include <v.h>\n", "i1/v.h"),
    "a header that is asked for": ("#if __has_include(<z.h>)\n#endif\n#include <v.h>\n", "i1/z.h"),
    "one that a macro asks for": (
        "#define H <z.h>\n#if __has_include(H)\n#endif\n#include <v.h>\n",
        "i2/z.h",
    ),
    "one that only macros name": (
        "#define S_(x) #x\n#define S(x) S_(x)\n#define N __GNUC__\n#include S(v.h)\n",
        "i1/v.h",
    ),
    "a system header that is replaced": ("#include <v.h>\n#include <climits>\n", "i2/climits"),
    "what every compilation begins with": ("#include <v.h>\n", "i1/stdc-predef.h"),
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize(("text", "appears"), CASES.values(), ids=CASES)
def test_a_header_that_appears_is_noticed(tmp_path, text, appears):
    project = Project(tmp_path, text)
    (tmp_path / "i2" / "v.h").write_text("#define V 1\n")
    project.load()
    project.load()
    assert project.builds == 1
    (tmp_path / appears).write_text("#define V 2\n")
    project.load()
    assert project.builds == 2
    (tmp_path / appears).unlink()
    project.load()
    assert project.builds == 2, "what was built for this state is still there"


def test_a_header_that_is_edited_is_noticed_and_one_that_is_touched_is_not(tmp_path):
    project = Project(tmp_path, '/* c */ #include "v.h"\n')
    header = tmp_path / "i2" / "v.h"
    header.write_text("#define V 1\n")
    project.load()
    os.utime(header)
    project.load()
    assert project.builds == 1
    header.write_text("#define V 2\n")
    project.load()
    assert project.builds == 2


def test_a_name_that_a_question_makes_of_what_the_text_does_not_say_is_never_reused(tmp_path):
    text = "#define S_(x) #x\n#define S(x) S_(x)\n#if __has_include(S(__COUNTER__))\n#endif\n"
    project = Project(tmp_path, text)
    project.load()
    project.load()
    assert project.builds == 2


def test_directories_of_the_environment_count(tmp_path, monkeypatch):
    monkeypatch.setenv("CPATH", f"{tmp_path / 'i3'}:{tmp_path / 'i4'}")
    (tmp_path / "i4").mkdir()
    (tmp_path / "i4" / "v.h").write_text("#define V 1\n")
    project = Project(tmp_path, "#include <v.h>\n")
    project.load()
    # A directory that was not there is no directory that was not looked through.
    (tmp_path / "i3").mkdir()
    (tmp_path / "i3" / "v.h").write_text("#define V 2\n")
    project.load()
    assert project.builds == 2


def test_a_header_that_is_edited_while_it_is_compiled_leaves_no_entry(tmp_path):
    project = Project(tmp_path, "#include <v.h>\n")
    header = tmp_path / "i2" / "v.h"
    header.write_text("#define V 1\n")
    original = project.build

    def build(place):
        built = original(place)
        header.write_text("#define V 2\n")
        return built

    project.build = build
    project.load().loaded()
    assert project.cache.find() is None
