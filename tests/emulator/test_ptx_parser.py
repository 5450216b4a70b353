"""Reading PTX: what is accepted, what is refused and how, and hostile text."""

from __future__ import annotations

import contextlib
import ctypes

import numpy as np
import pytest
from corpus._case import recorded
from emulator_internals import Device, PtxImage
from hypothesis import given, settings
from hypothesis import strategies as st

import culaunch as cl
from culaunch._emulator.ptx import parse_module, tokens

HEAD = ".version 8.7\n.target sm_80, debug\n.address_size 64\n"
PTX = recorded("triton_histogram.ptx")


@pytest.mark.parametrize(
    ("token", "bits", "float_size"),
    [
        ("0", 0, 0),
        ("42U", 42, 0),
        ("0x1F", 31, 0),
        ("0XffU", 255, 0),
        ("0b101", 5, 0),
        ("017", 15, 0),
        ("0f3F800000", 0x3F800000, 4),
        ("0dBFF0000000000000", 0xBFF0000000000000, 8),
        ("1.5", 0x3FF8000000000000, 8),
        ("2e3", 0x409F400000000000, 8),
    ],
)
def test_numbers(token: str, bits: int, float_size: int) -> None:
    assert tokens.parse_number(token) == (bits, float_size)


def test_comments_keep_line_numbers() -> None:
    text = 'a // "b" c\n/* d\n e */ f "g // h"\ni'
    read = tokens.Tokens(text)
    assert read.texts == ["a", "f", '"g // h"', "i"]
    assert read.lines == [1, 3, 3, 4]


def test_module_describes_kernels() -> None:
    module = PtxImage(
        HEAD
        + """
        .file 1 "a.cu"
        .extern .shared .align 16 .b8 dynamic[];
        .visible .entry k(.param .u8 flag, .param .align 8 .b8 pair[24],
            .param .u64 .ptr .global .align 16 place, .param .f32 x)
        .maxntid 64, 2, 2
        .reqnctapercluster 2
        { .shared .align 4 .b8 a[10]; .shared .f64 b; .local .align 8 .b8 own[40];
          st.shared.u8 [a], 1; st.shared.u8 [dynamic], 1; ret; }
        .entry other() .reqntid 32 { ret; }
        .func helper() { ret; }
        """
    )
    assert module.target == "sm_80"
    assert module.kernels == ("k", "other")
    kernel = module.kernel("k")
    assert [(p.offset, p.size, p.align) for p in kernel.params] == [
        (0, 1, 1),
        (8, 24, 8),
        (32, 8, 8),
        (40, 4, 4),
    ]
    assert kernel.param_bytes == 44
    assert kernel.max_threads == 256
    assert kernel.required_threads is None
    assert kernel.static_shared == 24
    assert kernel.local_bytes == 40
    assert kernel.cluster == (2, 1, 1)
    assert module.kernel("other").required_threads == (32, 1, 1)
    with pytest.raises(KeyError):
        module.kernel("helper")


def test_bytes_may_end_in_zero() -> None:
    assert PtxImage((HEAD + ".entry k() { ret; }").encode() + b"\0").kernels == ("k",)


def test_a_kernel_of_another_file_is_only_declared() -> None:
    declared = HEAD + ".extern .entry other(.param .u64 p);\n.entry k() { ret; }\n"
    assert PtxImage(declared).kernels == ("k",)
    both = PtxImage(declared + ".visible .entry other(.param .u64 p) { ret; }")
    assert set(both.kernels) == {"k", "other"}
    use = ".entry l() { .reg .b64 %d; mov.b64 %d, other; ret; }"
    with pytest.raises(cl.ImageError, match="'other' is not defined"):
        PtxImage(declared + use)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a PTX module"),
        ("int main() {}", "unknown directive 'int'"),
        (HEAD + ".entry k() { ret;", "a '{' is not closed"),
        (HEAD + ".entry k(.param .u31 x) { ret; }", r"unknown word '\.u31'"),
        (HEAD + ".global .u32 x = ;", "in: .global .u32 x = ;"),
        (".version 8.7\n.target sm_80\n.address_size 32\n", "64-bit"),
        (HEAD + ".frobnicate 3", "frobnicate"),
        (HEAD + ".entry k();", "the kernel 'k' has no body"),
        (HEAD + ".entry k() { ret; }\n.entry k() { ret; }", "defined twice .*line 4"),
        (HEAD + "/* never closed" * 100_000, "a comment is not closed"),
        (HEAD + ".func f(.param .b8 p[]) { ret; }", "'p' has no size"),
        (HEAD + ".global .u32 x[] = " + "{" * 50_000, "brackets are nested more than 64 deep"),
    ],
)
def test_malformed_modules(text: str, message: str) -> None:
    with pytest.raises(cl.ImageError, match=message):
        PtxImage(text)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("bra NOWHERE;", "no label 'NOWHERE'"),
        (".reg .v4 .f32 %v;", "registers of type 'v4'"),
        ("add.s32 %a, %b, 1", "expected ',', found ''"),
        ("add.s32 %a, %b;", "add has 2 operands"),
        ("xor.b32 %a, %b, ;", "expected an operand, found ';'"),
        ("mov.u32 %a, %nowhere;", "'%nowhere' is not defined"),
        ("mov.u32 %a, nothing;", "'nothing' is not defined"),
        ("ld.global.v4.u32 {%a, %b}, [%a];", r"ld.global.v4.u32 of 2 registers"),
        ("ld.global.u32 {}, [%a];", "expected an operand"),
        ("@%a ret;", "the guard is not a predicate"),
        (
            "mov.b64 %a, " + "{" * 100 + "%a" + "}" * 100 + ";",
            "brackets are nested more than 64 deep",
        ),
        (".shared .b8 d[1099511627776];", "1099511627776 bytes of static shared memory"),
        (".local .b8 d[1073741824];", "1073741824 bytes of local memory"),
        ("mov.u32 %a, ];", "expected an operand"),
        ("ld.u32 %a, [%b;", "expected '\\]'"),
        (".reg .b32{; }", "a '}' without a matching '{'"),
    ],
)
def test_malformed_bodies_name_the_line(body: str, message: str) -> None:
    with pytest.raises(cl.ImageError, match=message) as caught:
        PtxImage(HEAD + ".entry k() {\n.reg .b32 %a, %b;\n" + body + "\n}")
    assert "PTX line" in str(caught.value)


def test_undefined_symbols() -> None:

    with pytest.raises(cl.ImageError, match="'nothing', which is not in the module"):
        Device().load(PtxImage(HEAD + ".global .u64 x = nothing;"))
    with pytest.raises(cl.ImageError, match=r"\.extern but not defined"):
        Device().load(PtxImage(HEAD + ".extern .global .u32 x;"))


@pytest.mark.slow
@settings(max_examples=150)
@given(st.text(alphabet='.%{}[]();:,@!<>=+-|"/*_ \n0123456789abcdefx$', max_size=200))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(cl.ImageError):
        parse_module(HEAD + text)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data())
def test_damaged_modules_are_parsed_or_refused(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(PTX)))
    cut = data.draw(st.integers(0, 40))
    extra = data.draw(st.text(alphabet='.%{}[]();:,@!<="/* 019xf', max_size=6))
    with contextlib.suppress(cl.ImageError):
        parse_module(PTX[:at] + extra + PTX[at + cut :])


@pytest.mark.slow
def test_a_long_chain_of_functions_is_no_recursion_of_python() -> None:
    chain = [f".func f{i}() {{ call.uni f{i + 1}; ret; }}" for i in range(3000)]
    declared = [f".func f{i}();" for i in range(3001)]
    last = ".func f3000() { .shared .b32 box; mov.u64 %rd, box; ret; }"
    text = "\n".join([*declared, *chain, last.replace("%rd", "r").replace("{", "{ .reg .b64 r;")])
    module = PtxImage(HEAD + text + ".entry k() { call.uni f0; ret; }")
    assert module.kernel("k").static_shared == 4


def test_initialisers_of_many_numbers() -> None:
    rng = np.random.default_rng(3)
    numbers = rng.integers(0, 2**32, 200_000).tolist()
    rows = [f"{{{numbers[0]}, {numbers[1]}}}", f"{{-1, 017}}, {{{numbers[2]},0}}"]
    text = HEAD + f".global .u32 a[200000] = {{{', '.join(map(str, numbers))}}};"
    text += f".const .u32 b[4][2] = {{{', '.join(rows)}}};"
    module = Device().load(PtxImage(text))
    for name, wanted in (
        ("a", numbers),
        ("b", [*numbers[:2], 2**32 - 1, 15, numbers[2], 0, 0, 0]),
    ):
        size = module.size(name)
        raw = ctypes.string_at(module.address(name), size)
        assert np.frombuffer(raw, np.uint32).tolist() == wanted


def test_import_of_culaunch_loads_no_emulator() -> None:
    import subprocess
    import sys

    code = (
        "import culaunch, sys; print([m for m in sys.modules if '_emulator' in m or m == 'numpy'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_parsing_is_fast() -> None:
    import time

    line = "add.s32 %r1, %r2, %r3; ld.global.f32 %f1, [%rd1+16];\n"
    body = ".reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;\n" + line * 5000
    start = time.process_time()
    parse_module(HEAD + ".entry k() {" + body + "}")
    assert time.process_time() - start < 5


def function_f(linkage: str, value: int) -> str:
    return f"{linkage} .func (.param .b32 r) f() {{ st.param.b32 [r], {value}; ret; }}\n"


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [(".weak", ".weak", "17"), (".weak", ".visible", "23"), (".visible", ".weak", "17")],
)
def test_a_definition_replaces_a_weak_one(first, second, kept):
    text = HEAD + function_f(first, 17) + function_f(second, 23)
    functions = PtxImage(text).syntax.functions
    assert [*functions] == ["f"]
    stored = str(functions["f"].instructions[0].operands)
    assert [number for number in ("17", "23") if number in stored] == [kept]


def test_a_function_is_defined_once():
    text = HEAD + function_f(".weak", 17) + function_f(".visible", 23) + function_f("", 29)
    with pytest.raises(cl.ImageError, match="'f' is defined twice"):
        PtxImage(text)


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [(".weak", ".weak", 17), (".common", ".visible", 23), (".visible", ".weak", 17)],
)
def test_a_variable_replaces_a_weak_one(first, second, kept):
    text = f"{HEAD}{first} .global .u32 v = 17;\n{second} .global .u32 v = 23;\n"
    assert PtxImage(text).syntax.variables["v"].values == (kept,)
