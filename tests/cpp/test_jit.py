"""``culaunch/jit.h``: what it compiles on the fake driver, and that its cache is Python's."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import culaunch as cl
from culaunch._cache.entry import pack_entry, unpack_entry
from culaunch._compile.nvrtc import loaded_library

HERE = Path(__file__).parent
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")

pytestmark = pytest.mark.needs("cuda.bindings")


@pytest.fixture
def cache(tmp_path):
    return cl.Cache(tmp_path / "cache")


@pytest.fixture
def ask(jit_tool, cache):
    """Ask the program: each request is a dict of fields, with lists for those that repeat."""

    def run(command, *requests, store=cache):
        lines = []
        for request in requests:
            defaults = {"cache": store.path, "nvrtc": loaded_library()}
            if not command.startswith("link") and "arch" not in request:
                defaults["arch"] = "sm_80"
            request = {**defaults, **request}
            lines += [f"{field} {hexed(one)}" for field, one in fields_of(request)]
            lines.append(command)
        done = subprocess.run(
            [jit_tool],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        assert done.stderr == ""
        answers = [line.split() for line in done.stdout.splitlines()]
        assert len(answers) == len(requests), done.stdout
        for answer in answers:
            assert answer[0] != "error", bytes.fromhex(answer[1]).decode()
        return [answer[0] for answer in answers]

    return run


def fields_of(request):
    for field, value in request.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, tuple):  # a header
                yield from zip(("header", "text"), one, strict=True)
            elif one is not False and one is not None:
                yield field, "1" if one is True else str(one)


def hexed(text):
    return os.fsencode(text).hex() or "00"


def compile_here(request, store):
    """Ask Python what the program is asked."""
    request = dict(request)
    return cl.compile(
        request.pop("source"),
        arch=request.pop("arch", "sm_80"),
        names=request.pop("expression", ()),
        headers=dict(request.pop("headers", ())),
        include_dirs=request.pop("include_dir", ()),
        defines=dict(one.split("=", 1) for one in request.pop("define", ())),
        extra_options=request.pop("extra_option", ()),
        cache=store,
        **request,
    )


class AskedKey(Exception):
    """Ends a compile that is asked for its key alone."""


class KeyCache(cl.Cache):
    def lookup(self, key):
        raise AskedKey(key)

    def get_or_make(self, key, make):
        raise AskedKey(key)


def key_here(request, folder):
    with pytest.raises(AskedKey) as asked:
        compile_here(request, KeyCache(folder))
    return asked.value.args[0]


SANITIZERS = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.mark.parametrize(
    ("compiler", "flags"), [("gxx", ("-Wuseless-cast", *SANITIZERS)), ("clang", ())]
)
def test_a_program_compiles_keeps_loads_and_launches(
    request, build, jit_part, run_cpp, compiler, flags, tmp_path, monkeypatch
):
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", "cache")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    # NVRTC keeps what it allocates for the life of the process.
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    program = request.getfixturevalue(compiler)
    part = jit_part(program, *WARNINGS, *flags)
    words = (*WARNINGS, *flags, HERE / "test_jit.cpp", part, "-ldl")
    program = build(program, f"jit_{compiler}", *words)
    assert run_cpp(program) == ""
    assert list(tmp_path.glob("culaunch-pch-*")) == []  # precompiled headers go with the process


WORDS = {
    "std": ["c++14", "c++17", "c++20"],
    "maxrregcount": [32, 64],
    "name": ["a.cu", "dir/b.cu", 'quoted"\\.cu', "héader.cu"],
    "fast_math": [True],
    "line_info": [True],
    "debug": [True],
    "extra_device_vectorization": [True],
    "device_as_default_execution_space": [True],
    "relocatable": [True],
    "lto": [True],
}
EXTRA = [
    "-DX=1", "-DX", "-D", "Y=2", "-UX", "-use_fast_math", "--use_fast_math", "-lineinfo", "-G",
    "--std=c++17", "-std=c++20", "--std", "c++14", "-maxrregcount=40", "--maxrregcount=0x10",
    "-maxrregcount=007", "--define-macro=Z=a,b", "--define-macro=W=1", "-DF(x)=x", "-D1=2",
    "--pre-include=forced.h", "-include", "forced.h", "-w", "-diag-suppress", "177", "--fmad=false",
    "-Dé=1", "--ftz=true", "-D=", "-DQ=a=b",
]  # fmt: skip
DEFINES = ["N=4", "A=", 'T="x"', "B=\\n", "C=é", "F(x)=x"]
ARCHS = ["sm_80", "sm_90", "sm_90a", "compute_80", "compute_90a", "sm_100f", "sm_120"]
SOURCES = [
    'extern "C" __global__ void k(int* x) { *x = 1; }',
    "#include <one.h>\n__global__ void k() {}\r\n",
    '#include "sub/two.h"\n#include <three.h>\n#if __has_include(NAME)\n#endif\n',
    '#define NAME <sub/two.h>\n#include NAME\nR"(#include "one.h")";\n??=include "one.h"\n',
    "// ünïcode\n#include <missing.h>\nconst char* f = __FILE__;\n\tint x = 1'000;\n",
    "#include <cuda_fp16.h>\n__global__ void k(__half* x) { *x = __half(1); }\n",
]
HEADERS = [
    ("one.h", '#include "sub/two.h"\nint one;\n'),
    ("sub/two.h", '#include "two_b.h"\n#include "../one.h"\n'),
    ("sub/two_b.h", "#define NAME <three.h>\n#line 3\n"),
    ("three.h", "const char* where = __FILE__;\n"),
]


def random_request(number, folder):
    choose = random.Random(number)
    some = lambda items, most: choose.sample(items, choose.randrange(most + 1))  # noqa: E731
    request = {
        "source": choose.choice(SOURCES),
        "arch": some(ARCHS, 3) or ["sm_80"],
        "expression": some(["k<float>", "ns::k<4, half>", "k<'a'>", "k<é>"], 3),
        "headers": some(HEADERS, 4),
        "include_dir": [str(one) for one in some(folder, 2)],
        "define": some(DEFINES, 3),
        "extra_option": some(EXTRA, 5),
    }
    for field in some(sorted(WORDS), 4):
        request[field] = choose.choice(WORDS[field])
    return request


@pytest.fixture
def folders(tmp_path):
    for name, files in {
        "first": ["one.h", "sub/two.h"],
        "second": ["three.h", "one.h", "forced.h"],
    }.items():
        for file in files:
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'#include "{name}.h"\nint x_{name};\n')
    return [tmp_path / "first", tmp_path / "second"]


def test_both_languages_come_to_the_same_keys(ask, folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    requests = []
    expected = []
    for number in range(400):
        request = random_request(number, folders)
        try:
            expected.append(key_here(request, tmp_path / "keys"))
        except ValueError:
            continue  # two that contradict each other, such as an option that a keyword is for
        requests.append(request)
    assert len(requests) > 300
    assert ask("key", *requests) == expected
    assert len(set(expected)) > 300


def test_an_entry_that_one_wrote_serves_the_other(ask, cache, tmp_path):
    requests = [
        {"source": SIGNATURES, "expression": ["scale<float>", "scale<__half>"]},
        {"source": SIGNATURES, "arch": ["sm_80", "compute_80"], "name": "é.cu"},
        {"source": SIGNATURES, "arch": ["compute_80"]},
        {"source": SIGNATURES, "lto": True},
        {"source": "__global__ void k(int* x) { int unused; *x = 1; }", "headers": HEADERS},
    ]
    for number, request in enumerate(requests):
        theirs, ours = cl.Cache(tmp_path / f"cpp{number}"), cl.Cache(tmp_path / f"python{number}")
        (written,) = ask("compile", request, store=theirs)
        image = compile_here(request, ours)
        (entry,) = Path(theirs.path).glob("*.entry")
        (same,) = Path(ours.path).glob("*.entry")
        assert entry.name == same.name
        # Byte for byte what Python makes of it; NVRTC itself need not give the same image twice.
        key = entry.stem
        metadata, data = unpack_entry(key, entry.read_bytes())
        assert pack_entry(key, metadata, data) == entry.read_bytes()
        assert unpack_entry(key, same.read_bytes())[0] == metadata
        # Each finds what the other wrote, and makes nothing.
        before = entry.stat().st_ino, same.stat().st_ino
        assert saved(compile_here(request, theirs), tmp_path) == written
        assert ask("compile", request, store=ours) == [saved(image, tmp_path)]
        assert (entry.stat().st_ino, same.stat().st_ino) == before


def saved(image, folder):
    """Return the bytes of an image in hexadecimal digits."""
    image.save(folder / "image")
    return (folder / "image").read_bytes().hex()


SIGNATURES = """
#include <cuda_fp16.h>
template <class T> __global__ void scale(T* y, const T* x, T a, int n) { *y = *x * a; }
struct Pair { float first; int second; };
namespace deep { template <class T, int N> struct Box { T items[N]; }; }
typedef const float* Rows;
extern "C" __global__ void __launch_bounds__(128, 2) plain(
    float* __restrict__ y, const unsigned long long int n, /* , */ half h, size_t s, void* p) {}
extern "C" __global__ void asked(
    Pair pair, Rows rows, deep::Box<double, 3> box, const Pair* pointer, Pair const* const twice,
    const float* const* rows_of, unsigned char c, __half2 h, float4 v, bool b) {}
extern "C" __global__ void nothing() {}
"""


@pytest.mark.parametrize("options", [{}, {"line_info": True}, {"name": "other.cu"}], ids=str)
def test_the_source_may_be_a_file(ask, cache, folders, monkeypatch, options):
    path = folders[0] / "source é.cu"
    path.write_text('#include "neighbour.h"\n__global__ void k(int* x) { *x = N + __LINE__; }\n')
    (folders[0] / "neighbour.h").write_text("#define N 3\n")
    monkeypatch.chdir(folders[0].parent)
    (written,) = ask("compile", {"file": "first/source é.cu", **options})
    (entry,) = Path(cache.path).glob("*.entry")
    made = entry.stat().st_ino
    image = cl.compile(path, arch="sm_80", cache=cache, **options)
    assert [one.stat().st_ino for one in Path(cache.path).glob("*.entry")] == [made]
    image.save(folders[0] / "image")
    assert (folders[0] / "image").read_bytes().hex() == written


def test_a_note_that_one_wrote_serves_the_other(ask, cache):
    source = "#include <cuda_fp16.h>\n#include <cub/block/block_reduce.cuh>\n__global__ void k() {}"
    request = {"source": source, "arch": ["sm_80"]}
    (key,) = ask("key", request)
    (note,) = Path(cache.path).glob("*.note")
    written = note.stat().st_ino
    key_of_python = key_here(request, cache.path)
    assert key_of_python == key
    assert [one.stat().st_ino for one in Path(cache.path).glob("*.note")] == [written]
    assert ask("key", request) == [key]
    assert note.stat().st_ino == written


def test_half_of_each_language_make_each_key_once(build, gxx, tmp_path):
    program = build(gxx, "jit_racer", *WARNINGS, HERE / "jit_racer.cpp", "-ldl")
    racer = HERE.parent / "compile" / "racer.py"
    words = [str(tmp_path / name) for name in ("cache", "log", "start")]
    keys = 60
    racers = [
        subprocess.Popen(
            [*command, *words, str(keys)], stderr=subprocess.PIPE, text=True, env=os.environ
        )
        for command in ([program], [sys.executable, "-W", "error", racer])
        for _ in range(4)
    ]
    (tmp_path / "start").touch()
    for one in racers:
        _, errors = one.communicate(timeout=120)
        assert one.returncode == 0, errors
    made = (tmp_path / "log").read_text().split()
    assert sorted(map(int, made)) == list(range(keys))
    assert len(list((tmp_path / "cache").glob("*.entry"))) == keys
    assert cl.Cache(tmp_path / "cache").verify() == []


def test_a_cache_that_is_too_full_is_emptied_by_both(ask, tmp_path):
    store = cl.Cache(tmp_path / "small", max_bytes=40_000)
    requests = [
        {"source": f"__global__ void k{n}(int* x) {{ *x = {n}; }}", "max_bytes": store.max_bytes}
        for n in range(16)
    ]
    folder = tmp_path / "small" / "inline" / ("f-" + "0" * 64)
    folder.mkdir(parents=True, mode=0o700)
    for directory in (tmp_path / "small", folder.parent, folder):
        directory.chmod(0o700)
    for name in ("a.so", "a.note", "f.cpp"):
        (folder / name).write_bytes(b"x" * 5000)
        (folder / name).chmod(0o600)
        os.utime(folder / name, (1, 1))
    ask("compile", *requests, store=store)
    assert store.info().size <= 40_000
    assert store.info().entries > 3
    assert not folder.exists()


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_a_bad_entry_is_dropped_by_both(ask, jit_tool, cache, damage):
    request = {"source": "__global__ void k(int* x) { *x = 1; }", "arch": ["sm_80"]}
    (good,) = ask("compile", request)
    (entry,) = Path(cache.path).glob("*.entry")
    data = bytearray(entry.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 4
    damaged = bytes(data) if damage == "flip" else bytes(data[: len(data) // 2]) * (damage == "cut")
    entry.write_bytes(damaged)
    lines = [f"{field} {hexed(one)}" for field, one in fields_of({**request, "cache": cache.path})]
    lines += [f"nvrtc {hexed(loaded_library())}", "compile"]
    done = subprocess.run(
        [jit_tool], input="\n".join(lines), capture_output=True, text=True, check=True, timeout=60
    )
    assert "compiling again" in done.stderr
    assert done.stdout.split()[0] == good
    assert cache.verify() == []


def test_python_and_programs_use_one_default_cache(jit_tool, tmp_path, monkeypatch):
    for name, value in (("CULAUNCH_CACHE_DIR", ""), ("XDG_CACHE_HOME", str(tmp_path))):
        monkeypatch.setenv(name, value)
    lines = [f"{field} {hexed(one)}" for field, one in fields_of({"source": SOURCES[0]})]
    lines += ["arch " + hexed("sm_80"), f"nvrtc {hexed(loaded_library())}", "compile"]
    subprocess.run([jit_tool], input="\n".join(lines), text=True, check=True, timeout=60)
    (entry,) = (tmp_path / "culaunch").glob("*.entry")
    before = entry.stat().st_ino
    compile_here({"source": SOURCES[0]}, True)
    assert list((tmp_path / "culaunch").glob("*.entry")) == [entry]
    assert entry.stat().st_ino == before


CALLER = """
extern "C" __device__ float twice(float x);
template <class T> __global__ void k(T* y) { y[threadIdx.x] = twice(y[threadIdx.x]); }
extern "C" __global__ void plain(float* y, int n) { *y = twice(n); }
"""
CALLEE = 'extern "C" __device__ float twice(float x) { return 2 * x; }'


@pytest.fixture
def parts(tmp_path, cache):
    """Return a function that gives the files of a caller and of what it calls."""

    def make(**kind):
        kind = {"arch": "sm_90", **kind}
        paths = []
        for source, names in ((CALLER, ["k<float>"]), (CALLEE, ())):
            name = "_".join([*kind, *kind["arch"], str(len(names))])
            paths.append(tmp_path / f"{name}.image")
            cl.compile(source, names=names, cache=cache, **kind).save(paths[-1])
        return list(map(str, paths))

    return make


def link_here(request, store):
    """Ask Python what the program is asked."""
    request = dict(request)
    images = [cl.Image.open(path) for path in request.pop("image", ())]
    return cl.link(
        [*images, *request.pop("input", ())],
        arch=request.pop("arch", None),
        extra_options=request.pop("extra_option", ()),
        cache=store,
        **request,
    )


def test_both_languages_link_under_the_same_keys(ask, parts, tmp_path):
    lto, plain = parts(lto=True), parts(relocatable=True)
    several = parts(lto=True, arch=["sm_80", "sm_90"])
    ptx = tmp_path / "k.ptx"
    cl.compile(SOURCES[0], arch="compute_80", cache=False).save(ptx)
    requests = [
        {"image": lto, "arch": ["sm_90"]},
        {"input": lto, "arch": ["sm_90"]},
        {"input": several, "arch": ["sm_80", "sm_90"], "line_info": True},
        {"input": lto, "arch": ["compute_90"]},
        {"input": plain, "arch": ["sm_90"], "maxrregcount": 32},
        {"input": plain, "arch": ["sm_90"], "extra_option": ["-maxrregcount=32"]},
        {"image": plain[:1], "input": plain[1:], "arch": ["sm_90"], "debug": True},
        {"input": [str(ptx)], "arch": ["sm_90a", "sm_80"], "extra_option": ["-verbose", "-O1"]},
    ]
    expected = []
    for request in requests:
        with pytest.raises(AskedKey) as asked:
            link_here(request, KeyCache(tmp_path / "keys"))
        expected.append(asked.value.args[0])
    assert ask("link_key", *requests) == expected
    # An image and its file are one, a field and its option too; what else differs has its own key.
    assert len(set(expected)) == len(requests) - 2


def test_what_one_language_linked_serves_the_other(ask, parts, tmp_path):
    requests = [
        {"image": parts(lto=True), "arch": ["sm_90"]},
        {"input": parts(lto=True), "arch": ["compute_90", "sm_90"]},
        {"input": parts(relocatable=True), "arch": ["sm_90"]},
    ]
    for number, request in enumerate(requests):
        theirs, ours = cl.Cache(tmp_path / f"cpp{number}"), cl.Cache(tmp_path / f"python{number}")
        (written,) = ask("link", request, store=theirs)
        image = link_here(request, ours)
        assert image.names == {"k<float>": "_Z1kIfEvPT_"}
        assert number < 2 or image.signatures == {"plain": ("float*", "int")}
        (entry,) = Path(theirs.path).glob("*.entry")
        (same,) = Path(ours.path).glob("*.entry")
        assert entry.name == same.name
        before = entry.stat().st_ino, same.stat().st_ino
        assert saved(link_here(request, theirs), tmp_path) == written
        assert ask("link", request, store=ours) == [saved(image, tmp_path)]
        assert (entry.stat().st_ino, same.stat().st_ino) == before


EMULATED = """
import ctypes, os, sys
import numpy
import culaunch as cl

library, nvrtc = sys.argv[1:]
scale = ctypes.CDLL(library).Scale
linked = ctypes.CDLL(library).ScaleLinked
scale.restype = linked.restype = ctypes.c_char_p
source = b'''
template <class T> __global__ void scale(T* y, const T* x, T a, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = a * x[threadIdx.x];
}'''
x = numpy.arange(48, dtype=numpy.float32)
y = numpy.zeros_like(x)
for factor in (3.0, 5.0):
    said = scale(source, b"scale<float>", ctypes.c_void_p(y.ctypes.data),
                 ctypes.c_void_p(x.ctypes.data), ctypes.c_float(factor), len(x), nvrtc.encode())
    assert said == b"", said.decode()
    cl.synchronize()
    assert (y == factor * x).all()
said = linked(ctypes.c_void_p(y.ctypes.data), ctypes.c_void_p(x.ctypes.data), ctypes.c_float(7.0),
              len(x), nvrtc.encode())
assert said == b"", said.decode()
cl.synchronize()
assert (y == 7.0 * x).all()
# Python compiles the same: it finds the image that the library made.
def entries():
    return {one for one in os.listdir(cl.Cache().path) if one.endswith(".entry")}
made = entries()
image = cl.compile(source.decode(), names=["scale<float>"])
assert image.format == "ptx"
assert entries() == made
"""


@pytest.mark.needs("numpy")
def test_a_library_compiles_for_the_emulator(build, jit_part, gxx, tmp_path):
    part = jit_part(gxx, "-fno-gnu-unique")
    words = ("-shared", "-fPIC", "-fno-gnu-unique", *WARNINGS, HERE / "jit_library.cpp", part)
    library = build(gxx, "libjit.so", *words, "-ldl")
    words = ["readelf", "-sW", library]
    symbols = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "UNIQUE" not in symbols  # such a library would never be unloaded
    environment = {
        **os.environ,
        "CULAUNCH_DRIVER": "emulator",
        "CULAUNCH_CACHE_DIR": str(tmp_path / "emulated"),
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", EMULATED, library, loaded_library()],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.gpu
def test_a_library_compiles_for_the_gpu(build, jit_part, gxx, tmp_path):
    part = jit_part(gxx, "-fno-gnu-unique")
    words = ("-shared", "-fPIC", HERE / "jit_library.cpp", part, "-ldl")
    library = build(gxx, "libjit_gpu.so", *words)
    code = EMULATED.replace(
        "x = numpy.arange(48, dtype=numpy.float32)\ny = numpy.zeros_like(x)",
        (
            "x = cl.to_device(numpy.arange(48, dtype=numpy.float32))\n"
            "y = cl.to_device(numpy.zeros(48, numpy.float32))"
        ),
    )
    code = code.replace("y.ctypes.data", "y.address").replace("x.ctypes.data", "x.address")
    code = code.replace("(y == factor * x).all()", "(y.numpy() == factor * x.numpy()).all()")
    code = code.replace("(y == 7.0 * x).all()", "(y.numpy() == 7.0 * x.numpy()).all()")
    code = code.replace('"ptx"', '"cubin"')
    environment = {**os.environ, "CULAUNCH_CACHE_DIR": str(tmp_path / "on-gpu")}
    done = subprocess.run(
        [sys.executable, "-c", code, library, loaded_library()],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
