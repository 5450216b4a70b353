"""Each language uses the other's cached images, links and notes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from entry_bytes import entry_of, split
from jit_requests import HEADERS, compile_here, key_here, link_here, saved

import culaunch as cl
from culaunch._compile.recall import remembered

pytestmark = pytest.mark.needs("nvrtc")

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


def test_an_entry_that_one_wrote_serves_the_other(ask, cache, tmp_path):
    requests = [
        {"source": SIGNATURES, "expression": ["scale<float>", "scale<__half>"]},
        {"source": SIGNATURES, "arch": ["sm_80", "compute_80"], "name": "é.cu"},
        {"source": SIGNATURES, "arch": ["compute_80"]},
        {"source": SIGNATURES, "lto": True},
        {"source": "__global__ void k(int* x) { int unused; *x = 1; }", "headers": HEADERS},
    ]
    for number, request in enumerate(requests):
        theirs, ours = (
            cl.cache.Cache(tmp_path / f"cpp{number}"),
            cl.cache.Cache(tmp_path / f"python{number}"),
        )
        (written,) = ask("compile", request, store=theirs)
        image = compile_here(request, ours)
        (entry,) = Path(theirs.path).glob("*.entry")
        (same,) = Path(ours.path).glob("*.entry")
        assert entry.name == same.name
        # NVRTC itself need not give the same image twice; the bytes around it are the same.
        assert split(entry.read_bytes())[0] == split(same.read_bytes())[0]
        for one in (entry, same):
            metadata, data = split(one.read_bytes())
            assert one.read_bytes() == entry_of(one.stem, json.loads(metadata), data)
        # Each finds what the other wrote, and makes nothing.
        before = entry.stat().st_ino, same.stat().st_ino
        assert saved(compile_here(request, theirs), tmp_path) == written
        assert ask("compile", request, store=ours) == [saved(image, tmp_path)]
        assert (entry.stat().st_ino, same.stat().st_ino) == before


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


@pytest.mark.parametrize(
    "change",
    [
        lambda note: {"result": "0" * 64},
        lambda note: {"reads": note["reads"]},
        lambda note: {"result": 1, "reads": note["reads"]},
        lambda note: {"result": "0" * 64, "reads": []},
        lambda note: {"result": "0" * 64, "reads": note["reads"][:2]},
        lambda note: {"result": "0" * 64, "reads": [note["reads"][0], [], [1]]},
        lambda note: {"result": "0" * 64, "reads": {}},
    ],
)
def test_a_note_of_another_form_is_believed_by_neither(ask, cache, change):
    request = {"source": "#include <cuda_fp16.h>\n__global__ void k() {}", "arch": ["sm_80"]}
    (key,) = ask("key", request)
    (note,) = Path(cache.path).glob("*.note")
    good = note.read_bytes()
    wrong = entry_of(note.stem, change(json.loads(split(good)[0])))
    for compute in (lambda: ask("key", request), lambda: [key_here(request, cache.path)]):
        note.write_bytes(wrong)
        remembered.clear()
        assert compute() == [key]
        assert note.read_bytes() == good


def test_what_one_language_linked_serves_the_other(ask, parts, tmp_path):
    requests = [
        {"image": parts(lto=True), "arch": ["sm_90"]},
        {"input": parts(lto=True), "arch": ["compute_90", "sm_90"]},
        {"input": parts(relocatable=True), "arch": ["sm_90"]},
    ]
    for number, request in enumerate(requests):
        theirs, ours = (
            cl.cache.Cache(tmp_path / f"cpp{number}"),
            cl.cache.Cache(tmp_path / f"python{number}"),
        )
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
