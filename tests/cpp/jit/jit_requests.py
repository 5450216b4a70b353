"""Requests to the program of ``culaunch/jit.h``, and the same requests in Python."""

from __future__ import annotations

import os
import random

import pytest

import culaunch as cl


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
    """Ends a compile that only needs its key."""


class KeyCache(cl.cache.Cache):
    def lookup(self, key):
        raise AskedKey(key)

    def get_or_make(self, key, make):
        raise AskedKey(key)


def key_here(request, folder):
    with pytest.raises(AskedKey) as asked:
        compile_here(request, KeyCache(folder))
    return asked.value.args[0]


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


def saved(image, folder):
    """Return the bytes of an image in hexadecimal digits."""
    image.save(folder / "image")
    return (folder / "image").read_bytes().hex()


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
