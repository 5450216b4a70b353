"""What a C++ program's compiler is given by a broken machine: errors in words, never a crash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("nvrtc")
SOURCE = 'extern "C" __global__ void k(int* x) { *x = 1; }'


@pytest.fixture
def said(jit_tool, tmp_path):
    """Return a function that gives what the program answers, and what it writes to stderr."""

    def run(fields, command="compile", environment=None):
        fields = [("cache", tmp_path / "cache"), ("arch", "sm_80"), ("source", SOURCE), *fields]
        lines = [f"{name} {os.fsencode(str(value)).hex()}" for name, value in fields]
        done = subprocess.run(
            [jit_tool],
            input="\n".join([*lines, command]),
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
            env={**os.environ, "VIRTUAL_ENV": sys.prefix, **(environment or {})},
        )
        kind, *words = done.stdout.split()
        return (bytes.fromhex(words[0]).decode() if kind == "error" else kind), done.stderr

    return run


@pytest.fixture(scope="module")
def old_library(build, gxx, tmp_path_factory):
    """A library that is an NVRTC, or an nvJitLink, of a time before CUDA 12."""
    source = tmp_path_factory.mktemp("old") / "old.cpp"
    source.write_text(
        'extern "C" int nvrtcVersion(int* major, int* minor) {\n'
        "  *major = 10;\n  *minor = 2;\n  return 0;\n}\n"
        'extern "C" int nvJitLinkVersion(unsigned*, unsigned*) { return 0; }\n'
    )
    return build(gxx, "libnvrtc.so.12", "-shared", "-fPIC", source)


@pytest.mark.parametrize(
    ("field", "command", "title"),
    [("nvrtc", "compile", "NVRTC"), ("nvjitlink", "link", "nvJitLink")],
)
def test_a_library_that_is_none_is_an_error(
    said, nvrtc, old_library, tmp_path, field, command, title
):
    extra = [("nvrtc", nvrtc)] if field == "nvjitlink" else []
    junk = tmp_path / "junk.so"
    junk.write_bytes(b"this is no library" * 100)
    ptx = tmp_path / "k.ptx"
    ptx.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n")
    extra.append(("input", ptx))
    for path, words in (
        (old_library, ("has no function", "older than CUDA 12")),
        (junk, ("cannot be loaded", "invalid ELF header")),
        (tmp_path / "nowhere", ("is not at", "give the path of")),
        (tmp_path, ("is not at", "give the path of")),
    ):
        text, stderr = said([*extra, (field, path)], command)
        assert text.startswith(title), text
        assert all(word in text for word in words), text
        assert stderr == ""


def test_without_nvrtc_an_entry_is_an_image_still_and_a_compile_an_error(said, tmp_path):
    # Nothing of the environment leads to NVRTC.
    bare = dict.fromkeys(("VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH"), "")
    bare |= {"PATH": str(tmp_path), "LD_LIBRARY_PATH": str(tmp_path)}
    text, _ = said([], environment=bare)
    if not text.startswith("NVRTC cannot be loaded"):
        pytest.skip("NVRTC is in a place of the system's")
    assert "pip install nvidia-cuda-nvrtc" in text
    assert "environments looked at" in text


@pytest.mark.parametrize("place", ["a file", "below a file", "no room"])
def test_a_cache_that_cannot_be_written_fails_no_compile(said, nvrtc, tmp_path, place):
    (tmp_path / "file").write_text("x")
    path = {
        "a file": tmp_path / "file",
        "below a file": tmp_path / "file" / "cache",
        "no room": "/proc/culaunch",
    }[place]
    text, stderr = said([("nvrtc", nvrtc), ("cache", path)])
    assert text.startswith("7f454c46")  # ELF
    assert stderr.count("culaunch: cache") == 1
    assert "it is not used" in stderr


def test_a_shipped_cache_that_nobody_may_write_to_serves_a_program(said, nvrtc, tmp_path):
    chosen = ("nvrtc", nvrtc)
    first, _ = said([chosen])
    shipped = tmp_path / "shipped"
    shutil.move(tmp_path / "cache", shipped)
    for path in (*shipped.iterdir(), shipped):
        path.chmod(0o500 if path.is_dir() else 0o400)
    before = sorted((path.name, path.stat().st_mtime_ns) for path in shipped.iterdir())
    again, stderr = said([chosen, ("bundles", shipped)])
    assert (again, stderr) == (first, "")
    assert sorted((path.name, path.stat().st_mtime_ns) for path in shipped.iterdir()) == before
    assert list((tmp_path / "cache").glob("*.entry")) == []
    # One that was damaged on its way is not believed.
    (entry,) = shipped.glob("*.entry")
    entry.chmod(0o600)
    data = bytearray(entry.read_bytes())
    data[-1] ^= 1
    entry.write_bytes(data)
    again, stderr = said([chosen, ("bundles", shipped)])
    assert again == first
    assert "does not match its SHA-256; compiling again" in stderr


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([("header", "/abs.h"), ("text", "x")], "must be the relative name that #include uses"),
        ([("header", "a//b.h"), ("text", "x")], "must be the relative name that #include uses"),
        ([("header", "a.h"), ("text", "x\0y")], "is not text: it has a null byte"),
        ([("include_dir", "/nothere")], "is not a directory with headers"),
        ([("arch", "sm_9000")], "is not an architecture"),
        ([("arch", "native_b")], "is not an architecture"),
        ([("maxrregcount", "256")], "maxrregcount must be in 1 to 255"),
        ([("define", "A B=1")], "is not a macro name"),
        ([("extra_option", "--gpu-architecture=sm_80")], "use arch"),
        ([("expression", " ")], "is not a name expression"),
        ([("name", "a\nb")], "must be a file name"),
        ([("source", "\0")], "null byte"),
        ([("source", '#include "deep.h"\n'), ("header", "deep.h"), ("text", '#include "deep.h"\n')],
         "deep.h"),
    ],
    ids=lambda value: str(value)[:40].replace("\0", "0").replace("\n", " "),
)  # fmt: skip
def test_what_is_asked_wrongly_is_an_error(said, nvrtc, fields, words):
    text, _ = said([("nvrtc", nvrtc), *fields])
    assert words in text


def test_an_error_names_the_place_in_a_header(said, nvrtc):
    header = [("header", "mine/lib.cuh"), ("text", "__device__ int f() {\n  return oops;\n}\n")]
    source = ("source", "#include <mine/lib.cuh>\n__global__ void k(int* x) { *x = f(); }")
    text, _ = said([("nvrtc", nvrtc), *header, source])
    assert text.startswith('mine/lib.cuh(2): error: identifier "oops" is undefined')
    assert "\n      2 |   return oops;\n" in text
    # NVRTC's own headers are of other versions than this one: what is missing says where it looked.
    text, _ = said([("nvrtc", nvrtc), ("source", "#include <no/such.h>\nint x;")])
    assert '"no/such.h" was not found: give its text to AddHeader' in text


def test_two_programs_at_once_make_one_image(jit_tool, nvrtc, tmp_path):
    lines = [("cache", tmp_path / "cache"), ("nvrtc", nvrtc), ("arch", "sm_80")]
    lines.append(("source", "#include <cuda_fp16.h>\n" + SOURCE))
    text = "\n".join(f"{name} {os.fsencode(str(value)).hex()}" for name, value in lines)
    programs = [
        subprocess.Popen([jit_tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = []
    for one in programs:
        one.stdin.write(text + "\ncompile\n")
        one.stdin.close()
    for one in programs:
        answers.append(one.stdout.read())
        assert one.wait(120) == 0
        one.stdout.close()
    assert len(set(answers)) == 1
    assert answers[0].startswith("7f454c46")
    assert len(list(Path(tmp_path / "cache").glob("*.entry"))) == 1
