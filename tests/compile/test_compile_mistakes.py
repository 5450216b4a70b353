"""``compile``: what each mistake says, and what is refused."""

import re

import pytest
from sources import PLAIN

import culaunch as cl


def test_an_error_shows_the_place_the_line_and_the_options(compiled):
    with pytest.raises(cl.CompileError) as info:
        compiled("__global__ void k(int* x) {\n  *x = oops;\n}", defines=["FAST"], name="my.cu")
    text = str(info.value)
    assert text.startswith(
        'my.cu(2): error: identifier "oops" is undefined\n      2 |   *x = oops;'
    )
    assert "--gpu-architecture=sm_80 --define-macro=FAST=1" in text
    assert "1 error detected" in info.value.log


def test_an_error_in_a_header_shows_its_line(compiled):
    with pytest.raises(cl.CompileError, match=r"my/a.h\(2\): error.*\n +2 \| oops here;"):
        compiled('#include "my/a.h"\n__global__ void k() {}', headers={"my/a.h": "\noops here;"})


@pytest.mark.parametrize(
    ("header", "advice"),
    [
        ("cstdlib.h", "headers=, or its directory in include_dirs="),
        ("cub/nothing.cuh", "pip install nvidia-cuda-cccl"),
        ("stdio.h", "remove it (printf is built in), or compile with backend='nvcc'"),
        ("cstdio", "remove it (printf is built in), or compile with backend='nvcc'"),
        ("assert.h", "remove it (assert is built in), or include <cuda/std/cassert>"),
        ("math.h", "or include <cuda/std/cmath>"),
        ("iostream", "device code has no equivalent"),
        ("cuda/std/cstdio", "the installed CCCL has no <cuda/std/cstdio>: remove it"),
        ("cuda/std/vector", "the installed CCCL has no <cuda/std/vector>: device code has"),
        ("cuda_nothing.h", "pip install 'nvidia-cuda-runtime=="),
        ("curand_nothing.h", "pip install nvidia-curand"),
        ("vector", "header of the host compiler"),
        ("stdint.h", "include <cuda/std/cstdint>"),
    ],
)
def test_a_missing_header_has_advice(compiled, header, advice):
    with pytest.raises(cl.CompileError) as info:
        compiled(f"#include <{header}>\n__global__ void k() {{}}")
    assert header in str(info.value)
    assert advice in str(info.value)


def test_a_header_that_a_hint_names_is_there(compiled):
    hinted = []
    for header in ("assert.h", "cmath", "stdint.h", "cstdlib", "string.h", "limits.h", "array"):
        with pytest.raises(cl.CompileError) as info:
            compiled(f"#include <{header}>\n__global__ void k() {{}}")
        (ours,) = re.findall(r"include <(cuda/std/\w+)>", str(info.value))
        hinted.append(f"#if !__has_include(<{ours}>)\n#error {ours}\n#endif\n")
    compiled("".join(hinted) + "__global__ void k() {}")


def test_a_function_without_annotation_has_advice_in_the_words_of_compile(compiled):
    source = "inline int f() { return 1; }\n__global__ void k(int* x) { *x = f(); }"
    with pytest.raises(cl.CompileError, match="device_as_default_execution_space=True"):
        compiled(source)
    compiled(source, device_as_default_execution_space=True)


@pytest.mark.parametrize(
    "option",
    ["--help", "-h", "--version", "--dryrun", "--output-file=x", "-o", "--keep", "--keep-dir=x"],
)
@pytest.mark.parametrize("backend", ["nvrtc", "nvcc"])
def test_an_option_that_does_something_else_is_refused_with_the_reason(option, backend):
    with pytest.raises(ValueError, match=r"^extra_options has .*: (it|the image) "):
        cl.compile(PLAIN, arch="sm_80", extra_options=[option], backend=backend, cache=False)


@pytest.mark.parametrize(
    ("error", "keywords"),
    [
        (ValueError, {"extra_options": ["\0"]}),
        (ValueError, {"extra_options": [""]}),
        (ValueError, {"extra_options": ["-D\ud800"]}),
        (TypeError, {"extra_options": None}),
        (TypeError, {"extra_options": [3]}),
        (TypeError, {"names": None}),
        (ValueError, {"names": ["k\ud800"]}),
        (TypeError, {"include_dirs": None}),
        (TypeError, {"include_dirs": [3]}),
        (ValueError, {"include_dirs": ["a\0b"]}),
        (TypeError, {"defines": None}),
        (TypeError, {"defines": 3}),
        (ValueError, {"headers": {"\ud800.h": ""}}),
        (ValueError, {"headers": {"a.h": "\ud800"}}),
        (TypeError, {"headers": {"a.h": None}}),
        (ValueError, {"name": "k\ud800.cu"}),
        (ValueError, {"name": "k\n.cu"}),
        (TypeError, {"name": 3}),
        (TypeError, {"pch": "no"}),
        (TypeError, {"warnings_as_errors": "no"}),
        (TypeError, {"fast_math": "no"}),
        (TypeError, {"lto": 1}),
        (TypeError, {"cache": "no"}),
        (ValueError, {"pch": True, "backend": "nvcc"}),
        (ValueError, {"device_as_default_execution_space": True, "backend": "nvcc"}),
        (ValueError, {"source": "__global__ void k() {} // \ud800"}),
        (ValueError, {"source": "a\0b"}),
    ],
)
def test_a_mistake_in_an_argument_is_named(error, keywords):
    argument = next(iter(keywords))
    call = {"source": PLAIN, "arch": "sm_80", "cache": False, **keywords}
    with pytest.raises(error, match=f"^{argument}"):
        cl.compile(**call)


@pytest.mark.parametrize(
    "option", ["-time=x", "--fdevice-time-trace=x", "--save-temps", "-E", "-c"]
)
def test_an_option_that_writes_or_makes_something_else_is_refused(option):
    with pytest.raises(
        ValueError,
        match=r"^extra_options has .*: (it |arch, relocatable and lto select)",
    ):
        cl.compile(PLAIN, arch="sm_80", extra_options=[option], cache=False)


def test_a_name_that_names_nothing(compiled, scale):
    with pytest.raises(cl.CompileError, match="names has 'scale<nope>', which names no kernel"):
        compiled(scale, names=["scale<nope>"])


def test_an_option_that_the_compiler_rejects(compiled):
    with pytest.raises(cl.CompileError, match=r"unrecognized option --bogus.*\noptions: .*--bogus"):
        compiled(PLAIN, extra_options=["--bogus"])


def test_one_error_is_said_once_and_the_rest_of_several_is_there():
    with pytest.raises(cl.CompileError) as info:
        cl.compile("__global__ void k() { one(); }", arch="sm_80")
    message = str(info.value)
    assert message.count("one") == 2  # the error, and the line
    assert message.splitlines()[2] == "        |                       ^"
    assert "1 error detected" in info.value.log
    assert "1 error detected" not in message
    with pytest.raises(cl.CompileError) as info:
        cl.compile("__global__ void k() {\n one(); \n two(); }", arch="sm_80")
    message = str(info.value)
    assert (message.count('"one" is'), message.count('"two" is')) == (1, 1)
    assert "2 errors detected" in message
    assert info.value.log.count('"one" is') == 1


def test_an_unknown_architecture_lists_those_that_are_known(compiled):
    with pytest.raises(ValueError, match=r"'sm_99' is unknown to NVRTC .* supports .*sm_90, "):
        compiled(PLAIN, arch="sm_99")


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"arch": "90"}, ValueError, "arch '90' is not an architecture"),
        ({"arch": "sm_90x"}, ValueError, "is not an architecture"),
        ({"arch": []}, ValueError, "arch is empty"),
        ({"arch": 90}, TypeError, "arch must be a str"),
        ({"arch": [90]}, TypeError, "arch must be a str"),
        ({"names": "k"}, TypeError, "names must be a list"),
        ({"names": [1]}, TypeError, "names must contain only str"),
        ({"names": [" "]}, ValueError, "not a name expression"),
        ({"headers": ["a.h"]}, TypeError, "headers must map names to text"),
        ({"headers": {"../a.h": ""}}, ValueError, "relative name that #include uses"),
        ({"headers": {"a.h": b""}}, TypeError, "must be its text"),
        ({"headers": {"a.h": "a\0b"}}, ValueError, "null byte"),
        ({"include_dirs": "/tmp"}, TypeError, "include_dirs must be a list"),
        ({"include_dirs": ["/no/such"]}, NotADirectoryError, "/no/such"),
        ({"std": 17}, TypeError, "std must be a str"),
        ({"defines": "A"}, TypeError, "defines must be a mapping"),
        ({"defines": {"1A": 1}}, ValueError, "not a macro name"),
        ({"defines": {"A": []}}, TypeError, r"defines\['A'\]"),
        ({"fast_math": 1}, TypeError, "fast_math must be True or False"),
        ({"maxrregcount": 0}, ValueError, "1 to 255"),
        ({"maxrregcount": "32"}, TypeError, "maxrregcount must be an int"),
        ({"extra_options": "-G"}, TypeError, "extra_options must be a list"),
        ({"extra_options": ["-I/x"]}, ValueError, "use include_dirs for it"),
        ({"extra_options": ["-arch=sm_90"]}, ValueError, "use arch for it"),
        ({"extra_options": ["-isystem", "/x"]}, ValueError, "use include_dirs for it"),
        ({"extra_options": ["--options-file=x"]}, ValueError, "use extra_options, one by one"),
        ({"backend": "clang"}, ValueError, "backend must be"),
        ({"cache": "/tmp"}, TypeError, "cache must be"),
        ({"name": ""}, ValueError, "name must be"),
    ],
)
def test_a_mistake_in_an_argument(compiled, keywords, error, message):
    with pytest.raises(error, match=message):
        compiled(PLAIN, **keywords)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("", ValueError, "source is empty"),
        (" \n", ValueError, "source is empty"),
        (b"__global__ void k() {}", TypeError, "decode bytes first"),
        (None, TypeError, "source must be text"),
        ("void\0;", ValueError, "null byte at 4"),
        ("kernel.cu", FileNotFoundError, "neither CUDA source text nor an existing file"),
    ],
)
def test_a_source_that_is_none(compiled, source, error, message):
    with pytest.raises(error, match=message):
        compiled(source)


def test_a_source_file_that_is_not_text(compiled, tmp_path):
    (tmp_path / "kernel.cu").write_bytes(b"__global__ void k() {} // \xff\xfe")
    with pytest.raises(ValueError, match="is not text: invalid start byte at byte 26"):
        compiled(tmp_path / "kernel.cu")


@pytest.mark.parametrize(
    ("arch", "meant"),
    [("90", "sm_90"), ("sm90", "sm_90"), (90, "sm_90"), ("9.0", "sm_90"), ("SM_90A", "sm_90a"),
     ("sm_90 ", ""), ("hopper", ""), (["120f"], "sm_120f"), (12.0, "sm_120")],
)  # fmt: skip
def test_an_architecture_that_was_nearly_right(compiled, arch, meant):
    with pytest.raises((TypeError, ValueError), match="arch") as caught:
        compiled(PLAIN, arch=arch)
    assert (f": did you mean {meant!r}?" in str(caught.value)) == bool(meant)


@pytest.mark.parametrize("arch", [None, "sm_80", "native"])
def test_a_driver_that_was_nearly_chosen(compiled, monkeypatch, arch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulater")
    with pytest.raises(ValueError, match=r"CULAUNCH_DRIVER must be .*\(got 'emulater'\): did you"):
        compiled(PLAIN, arch=arch)
