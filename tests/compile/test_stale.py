"""A hit of the cache is what compiling now would give, however a header is named."""

import os
import subprocess
import sys
import time

import pytest

import culaunch as cl
from culaunch._compile import nvrtc, recall, request

KERNEL = '\nextern "C" __global__ void k(int* o) { *o = V; }\n'


def build(source, cache, **options):
    return cl.compile(source, arch="compute_80", cache=cache, **options)


def check(source, cache, change, **options):
    """Compile, change something on the disk, compile: the second image is of the second state."""
    first = build(source, cache, **options)
    assert build(source, cache, **options) == first
    change()
    second = build(source, cache, **options)
    assert second.data == build(source, False, **options).data
    assert second.data != first.data, "the change was to matter"


SPELLINGS = {
    "plain": '#include "x.h"',
    "comment before": '/* c */ #include "x.h"',
    "comment of two lines": '/* c\n*/ #include "x.h"',
    "comment within": '# /* c */ include /* d */ "x.h"',
    "no blank": '#/**/include/**/"x.h"',
    "digraph": '%:include "x.h"',
    "form feed": '\f#include\f"x.h"',
    "vertical tab": '\v#\vinclude\v"x.h"',
    "line feed, carriage return": '\n\r#include "x.h"',
    "CRLF": '#include \\\r\n"x.h"\r\n',
    "spliced word": '#inc\\\nlude "x.h"',
    "spliced after the hash": '#\\\ninclude "x.h"',
    "spliced before the name": '#include \\\n"x.h"',
    "spliced name": '#include "x\\\n.h"',
    "macro": '#define H "x.h"\n#include H',
    "macro of a macro": '#define G "x.h"\n#define H G\n#include H',
    "stringified": "#define S_(x) #x\n#define S(x) S_(x)\n#include S(x.h)",
    "pasted": '#define C(a, b) a##b\n#define HH "x.h"\n#include C(H, H)',
    "raw string before": '__device__ const char s[] = R"(" /* )";\n#include "x.h"\n/* */',
    "digit separator before": "constexpr int n = 1'0, c = '/*';\n#include \"x.h\"\n/* */",
}


@pytest.mark.sweep(8)
@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_a_changed_header_is_noticed_however_it_is_included(tmp_path, cache, spelling):
    header = tmp_path / "x.h"
    header.write_text("#define V 111\n")
    (tmp_path / "k.cu").write_bytes((spelling + KERNEL).encode())
    check(tmp_path / "k.cu", cache, lambda: header.write_text("#define V 222\n"))


@pytest.mark.sweep(8)
@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_a_header_in_memory_is_found_however_it_is_included(spelling):
    for headers in ({"x.h": "#define V 4\n"}, {"sub/x.h": "#define V 4\n"}):
        (name,) = headers
        text = spelling.replace('"x.h"', f'"{name}"').replace("x.h)", f"{name})")
        if name != "x.h" and "\\\n.h" in text:
            text = text.replace("x\\\n.h", "sub/x\\\n.h")
        assert b"4" in build(text + KERNEL, False, headers=headers).data


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "spelling",
    [one for name, one in SPELLINGS.items() if "macro" not in name and name != "stringified"][:14],
)
def test_a_header_in_memory_finds_what_lies_beside_it(spelling):
    headers = {"d/a.h": f"{spelling}\n#define W V\n", "d/x.h": "#define V 4\n"}
    image = build(
        '#include "d/a.h"\nextern "C" __global__ void k(int* o) { *o = W; }', False, headers=headers
    )
    assert b"4" in image.data


QUESTIONS = {
    "plain": '#if __has_include("z.h")',
    "comment": '#if __has_include(/**/"z.h")',
    "spliced": '#if __has_include\\\n("z.h")',
    "macro": '#define H "z.h"\n#if __has_include(H)',
    "macro with an argument": '#define H(x) __has_include(x)\n#if H("z.h")',
    "pasted": '#define C_(a, b) a##b\n#define C(a, b) C_(a, b)\n#if C(__has_, include)("z.h")',
    "elif": '#if 0\n#elif __has_include("z.h")',
    "digraph": '%:if __has_include("z.h")',
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_header_that_appears_is_noticed(tmp_path, cache, question):
    text = f"{question}\n#define V 1\n#else\n#define V 2\n#endif{KERNEL}"
    (tmp_path / "k.cu").write_text(text)
    check(tmp_path / "k.cu", cache, lambda: (tmp_path / "z.h").write_text("\n"))


def test_a_header_that_now_wins_is_noticed(tmp_path, cache):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "b" / "v.h").write_text("#define V 1\n")
    check(
        f"#include <v.h>{KERNEL}",
        cache,
        lambda: (tmp_path / "a" / "v.h").write_text("#define V 2\n"),
        include_dirs=[tmp_path / "a", tmp_path / "b"],
    )


def test_include_next_leads_to_the_next(tmp_path, cache):
    for name, text in (("a", "#include_next <w.h>\n"), ("b", "#define V 1\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "w.h").write_text(text)
    check(
        f"#include <w.h>{KERNEL}",
        cache,
        lambda: (tmp_path / "b" / "w.h").write_text("#define V 2\n"),
        include_dirs=[tmp_path / "a", tmp_path / "b"],
    )


@pytest.mark.sweep(4)
@pytest.mark.parametrize("how", ["text", "pre-include", "include", "two words", "define", "macro"])
def test_an_absolute_path_is_noticed(tmp_path, cache, how):
    header = tmp_path / "v.h"
    header.write_text("#define V 1\n")
    source, options = KERNEL, {}
    if how == "text":
        source = f'#include "{header}"{KERNEL}'
    elif how == "macro":
        source = f'#define H "{header}"\n#include H{KERNEL}'
    elif how == "define":
        source, options = f"#include H{KERNEL}", {"defines": {"H": f'"{header}"'}}
    else:
        given = {
            "pre-include": [f"--pre-include={header}"],
            "include": [f"-include={header}"],
            "two words": ["-include", str(header)],
        }
        options = {"extra_options": given[how]}
    check(source, cache, lambda: header.write_text("#define V 2\n"), **options)


def test_a_forced_header_in_the_current_directory_is_noticed(tmp_path, cache, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.h").write_text("#define V 1\n")
    check(
        KERNEL,
        cache,
        lambda: (tmp_path / "v.h").write_text("#define V 2\n"),
        extra_options=["--pre-include=v.h"],
    )


def test_what_nvrtc_finds_beside_a_header_in_memory_is_noticed(tmp_path, cache, monkeypatch):
    # NVRTC looks for this header in the current directory.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.h").write_text("#define V 1\n")
    check(
        f'#include "m.h"{KERNEL}',
        cache,
        lambda: (tmp_path / "x.h").write_text("#define V 2\n"),
        headers={"m.h": '#include "x.h"\n'},
    )


def test_what_cannot_be_told_from_the_text_is_never_reused(tmp_path, cache):
    text = "#define S_(x) #x\n#define S(x) S_(x)\n#define N __LINE__\n#include S(N)" + KERNEL
    (tmp_path / "k.cu").write_text(text)
    (tmp_path / "4").write_text("#define V 1\n")
    check(tmp_path / "k.cu", cache, lambda: (tmp_path / "4").write_text("#define V 2\n"))
    assert cache.info().entries == 0


def test_a_header_that_is_edited_while_it_is_compiled_leaves_no_entry(tmp_path, cache, monkeypatch):
    header = tmp_path / "x.h"
    header.write_text("#define V 1\n")
    (tmp_path / "k.cu").write_text(f'#include "x.h"{KERNEL}')
    original = nvrtc.Nvrtc.compile

    def edited(self, job, arch):
        header.write_text("#define V 2\n")
        return original(self, job, arch)

    with monkeypatch.context() as patch:
        patch.setattr(nvrtc.Nvrtc, "compile", edited)
        build(tmp_path / "k.cu", cache)
    assert cache.info().entries == 0
    header.write_text("#define V 1\n")
    assert build(tmp_path / "k.cu", cache) == build(tmp_path / "k.cu", False)


@pytest.mark.slow
def test_a_change_is_noticed_when_the_time_and_the_size_are_as_before(tmp_path, cache):
    header = tmp_path / "x.h"
    header.write_text("#define V 111\n")
    os.utime(header, ns=(10**18, 10**18))
    (tmp_path / "k.cu").write_text(f'#include "x.h"{KERNEL}')
    time.sleep(2.1)  # until the file's times are those of a file that was left alone

    def change():
        header.write_text("#define V 222\n")
        os.utime(header, ns=(10**18, 10**18))

    check(tmp_path / "k.cu", cache, change)


@pytest.mark.slow
def test_a_note_of_another_process_is_used_and_checked(tmp_path, cache, monkeypatch):
    text = "".join(f'#include "h{number}.h"\n' for number in range(10))
    for number in range(10):
        (tmp_path / f"h{number}.h").write_text(f"#define V{number} {number}\n")
    (tmp_path / "k.cu").write_text(f"{text}#define V V1{KERNEL}")
    program = (
        "import sys, culaunch as cl; "
        "cl.compile(sys.argv[1], arch='compute_80', cache=cl.cache.Cache(sys.argv[2]))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "k.cu"), cache.path]
    subprocess.run(command, check=True)
    assert cache.info().entries == 1
    with monkeypatch.context() as patch:
        patch.setattr(request, "follow", lambda *a: pytest.fail("it is known"))
        first = build(tmp_path / "k.cu", cache)
    (tmp_path / "h1.h").write_text("#define V1 2\n")
    subprocess.run(command, check=True)
    assert cache.info().entries == 2
    assert build(tmp_path / "k.cu", cache).data != first.data


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "damage", [b"", b"{}", b"[1, 2, 3]", b'["x", [[["a"]], [], []]]', b"[" * 9999]
)
def test_a_damaged_note_is_as_none(tmp_path, cache, damage, monkeypatch):
    text = "".join(f'#include "h{number}.h"\n' for number in range(10))
    for number in range(10):
        (tmp_path / f"h{number}.h").write_text(f"#define V{number} {number}\n")
    (tmp_path / "k.cu").write_text(f"{text}#define V V1{KERNEL}")
    first = build(tmp_path / "k.cu", cache)
    notes = [name for name in os.listdir(cache.path) if name.endswith(".note")]
    assert len(notes) == 1
    with open(os.path.join(cache.path, notes[0]), "wb") as file:
        file.write(damage)
    recall.remembered.clear()
    assert build(tmp_path / "k.cu", cache) == first
    assert cache.info().entries == 1
    cache.clear()
    assert not any(name.endswith(".note") for name in os.listdir(cache.path))


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "header",
    [
        "__device__ inline const char* where() { return __FILE__; }\n",
        "__device__ inline const char* where(const char* f = __builtin_FILE()) { return f; }\n",
        '#include "m.h"\n__device__ inline const char* where() { return PLACE(); }\n',
        "__device__ inline const char* where(int x = 0) { assert(x); return nullptr; }\n",
    ],
    ids=["__FILE__", "__builtin_FILE", "macro", "assert"],
)
def test_an_image_that_names_a_header_is_not_that_of_another_checkout(tmp_path, cache, header):
    images = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ff.h").write_text(header)
        (tmp_path / name / "m.h").write_text("#define PLACE_() __FILE__\n#define PLACE() PLACE_()")
        source = tmp_path / name / "k.cu"
        source.write_text('#include "ff.h"\n__global__ void k(const char** o) { *o = where(); }')
        images.append(build(source, cache))
        assert images[-1] == build(source, False)


def test_a_checkout_in_another_place_is_the_same_where_no_header_names_itself(tmp_path, cache):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.h").write_text("#define V 1\n// an assertion, __FILE\n")
        (tmp_path / name / "k.cu").write_text(f'#include "x.h"{KERNEL}')
        build(tmp_path / name / "k.cu", cache)
    assert cache.info().entries == 1


@pytest.mark.slow
def test_dates_are_those_of_the_first_compile(tmp_path, cache):
    source = '__global__ void k(const char** o) { *o = __DATE__ " " __TIME__; }\n'
    first = build(source, cache)
    time.sleep(1.1)
    assert build(source, cache) == first
    assert build(source, False) != first
