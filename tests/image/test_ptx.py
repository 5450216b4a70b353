"""PTX: headers, entries, parameters, past comments, strings and what people write by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import culaunch as cl
from culaunch._image import ptx_param_types

HEADER = ".version 8.5\n.target sm_80\n.address_size 64\n"
BODY = "{\n\tret;\n}\n"


def inspect(text):
    """Inspect PTX; text that has no header of its own gets one."""
    whole = text if ".version" in text else HEADER + text
    (image,) = cl.inspect(whole.encode()).images
    return image


def one(text):
    (kernel,) = inspect(text).kernels
    return kernel


def params(text):
    return [(p.offset, p.size, p.type) for p in one(f".entry k({text})\n{BODY}").parameters]


@pytest.mark.slow
def test_every_architecture(compiled):
    for arch, (cubin, ptx) in compiled.items():
        image = inspect(ptx.decode())
        assert image.arch == arch.replace("sm_", "compute_")
        compiled_kernels = {kernel.name: kernel for kernel in cl.Image(cubin).kernels}
        assert {kernel.name for kernel in image.kernels} == compiled_kernels.keys()
        for kernel in image.kernels:
            other = compiled_kernels[kernel.name]
            assert [(p.offset, p.size) for p in kernel.parameters] == [
                (p.offset, p.size) for p in other.parameters
            ]
            assert kernel.max_threads == other.max_threads
            assert kernel.cluster == other.cluster
            assert kernel.max_cluster_rank == other.max_cluster_rank
            assert kernel.toolkit == other.toolkit == image.toolkit


@pytest.mark.parametrize(
    ("target", "arch"),
    [
        ("sm_75", "compute_75"),
        ("sm_90a", "compute_90a"),
        ("sm_100f", "compute_100f"),
        ("sm_80, debug", "compute_80"),
        ("sm_80, texmode_independent", "compute_80"),
    ],
)
def test_targets(target, arch):
    assert inspect(f".version 8.5 .target {target}\n.address_size 64\n").arch == arch


@pytest.mark.parametrize("text", [".version 8.5", ".version 8.5\n.target gpu_80\n.entry k() {}"])
def test_a_header_without_a_target(text):
    with pytest.raises(cl.ImageError, match=r"PTX without `\.target sm_NN`"):
        inspect(text)


TYPES = {
    ".param .u64 .ptr .global .align 16 p": (8, "void*"),
    ".param .u64 .ptr .align 1 p": (8, "void*"),
    ".param .b64 .ptr .shared .align 4 p": (8, "void*"),
    ".param .u32 .ptr .global p": (4, None),
    ".param .u64 p": (8, None),
    ".param .u32 p": (4, None),
    ".param .u16 p": (2, None),
    ".param .u8 p": (1, None),
    ".param .b16 p": (2, None),
    ".param .b128 p": (16, None),
    ".param .s8 p": (1, "signed char"),
    ".param .s16 p": (2, "short"),
    ".param .s32 p": (4, "int"),
    ".param .s64 p": (8, "long long"),
    ".param .f16 p": (2, "__half"),
    ".param .f16x2 p": (4, "__half2"),
    ".param .bf16 p": (2, "__nv_bfloat16"),
    ".param .f32 p": (4, "float"),
    ".param .f64 p": (8, "double"),
    ".param .align 8 .b8 p[24]": (24, None),
    ".param .align 128 .b8 p[0x80]": (128, None),
    ".param .b8 p[3]": (3, None),
    ".param .v4 .f32 p": (16, None),
    ".param .f32 p[4]": (16, None),
    ".param .texref p": (8, None),
}


@pytest.mark.parametrize("text", TYPES)
def test_parameter_types(text):
    size, spelled = TYPES[text]
    assert params(text) == [(0, size, spelled)]
    assert ptx_param_types(HEADER + f".entry k({text}) {BODY}", "k") == (spelled,)


@pytest.mark.parametrize("text", TYPES)
def test_directives_need_no_blanks_between_them(text):
    """As `ptxas` reads them: `.param.u64.ptr.global.align 16 p`."""
    assert params(text.replace(" .", ".").replace("6.", "6 .").replace("8.", "8 .")) == params(text)
    assert one(f".visible.entry k({text}) .maxnreg 64 {BODY}").name == "k"


def test_offsets_follow_alignment():
    text = (
        ".param .u8 a, .param .u64 b, .param .f32 c, .param .align 16 .b8 d[17],"
        ".param .u16 e, .param .align 4 .b8 f[6], .param .u8 g"
    )
    offsets = [offset for offset, _, _ in params(text)]
    assert offsets == [0, 8, 16, 32, 50, 52, 58]


def test_mangled_names_tell_more():
    kernel = one(".visible .entry _Z1kPfjx(.param .u64 a, .param .u32 b, .param .u64 c) {}")
    assert [p.type for p in kernel.parameters] == ["float*", "unsigned int", "long long"]
    assert kernel.demangled == "k(float*, unsigned int, long long)"
    # A name that does not agree with the parameters is not believed.
    kernel = one(".entry _Z1kPfi(.param .u32 a, .param .f64 b) {}")
    assert [p.type for p in kernel.parameters] == [None, "double"]


def test_limits():
    kernel = one(
        ".entry k()\n.maxntid 128, 2\n.minnctapersm 2\n.maxnreg 64\n.explicitcluster\n"
        ".reqnctapercluster 4, 2, 1\n.maxclusterrank 8\n{}"
    )
    assert kernel.max_threads == (128, 2, 1)
    assert kernel.cluster == (4, 2, 1)
    assert kernel.max_cluster_rank == 8
    assert one(".entry k .reqntid 64, 1, 1 {}").required_threads == (64, 1, 1)


def test_comments_and_strings_hide_entries():
    text = (
        "// .entry a() {}\n"
        '.file 1 "/home/.entry b() {}"\n'
        '.visible .entry real() { .pragma "nounroll .entry c() {}"; ret; } // .entry d() {}\n'
        ".entry // why\n other // not\n ( .param // x\n .u32 p ) { ret; }\n"
    )
    assert [kernel.name for kernel in inspect(text).kernels] == ["real", "other"]
    block = text + "/* .entry e() {}\n .entry f() {} */ .entry /* x */ last/**/() {}\n"
    assert [kernel.name for kernel in inspect(block).kernels] == ["real", "other", "last"]


def test_all_on_one_line():
    """Nobody writes it, but a minifier may: more than a search by lines can look at."""
    text = " ".join(f".visible .entry k{i}(.param .f32 p) {{ ret; }}" for i in range(2000))
    assert [kernel.name for kernel in inspect(text).kernels] == [f"k{i}" for i in range(2000)]


def test_declarations_and_similar_words():
    text = (
        ".extern .entry later(.param .u32 p);\n.visible .entry later(.param .u32 p) {}\n"
        ".func .entrypoint() {}\n.global .u32 .entryway;\n"
    )
    assert [kernel.name for kernel in inspect(text).kernels] == ["later"]


def test_names_of_every_form():
    for name in ("k", "_k", "$k1", "%k", "_ZN1aE$x", "k$_0"):
        assert one(f".entry {name}() {{}}").name == name


def test_param_types_of_what_is_not_there():
    assert ptx_param_types(HEADER + ".entry k() {}", "other") is None
    assert ptx_param_types((HEADER + ".entry k() {}").encode(), "k") == ()


BROKEN = {
    ".entry ": "does not end",
    ".entry 3k() {}": "'3k' in place of a kernel's name",
    ".entry k(": "does not end",
    ".entry k() .maxntid": "does not end",
    ".entry k() .maxntid x {}": "has 'x' in place of the number of .maxntid",
    ".entry k() .maxntid 99999999999 {}": "in place of the number of .maxntid",
    ".entry k(.param .u32 a .param .u32 b) {}": r"`,` or `\)` is missing",
    ".entry k(.u32 a) {}": "`.param` is missing",
    ".entry k(.param a) {}": "'a' has no type",
    ".entry k(.param .x32 a) {}": "a parameter contains '.x32'",
    ".entry k(.param .b8 a[) {}": "in place of the number of \\[\\]",
    ".entry k(.param .b8 a[3) {}": "`\\]` is missing",
    ".entry k(.param .b8 a[]) {}": "in place of the number of \\[\\]",
    ".entry k(.param .b8 a[0]) {}": "a parameter has no bytes",
    ".entry k(.param .align 3 .b8 a[3]) {}": "the alignment 3",
    ".entry k(.param .b8 a[4000000000]) {}": "more than 65536 bytes",
    ".entry k() {}\n.entry k() {}": "kernel 'k' appears twice",
}


@pytest.mark.parametrize("text", BROKEN)
def test_broken(text):
    with pytest.raises(cl.ImageError, match=BROKEN[text]) as caught:
        inspect(text)
    assert caught.value.offset is not None


WORDS = st.lists(
    st.sampled_from(
        [
            ".entry ",
            "k",
            "(",
            ")",
            "{",
            "}",
            ".param ",
            ".u32 ",
            ".align ",
            "8",
            "[",
            "]",
            ",",
            "/*",
            "*/",
            "//",
            "\n",
            '"',
            ".maxntid ",
            ";",
            "\0",
            "\\",
            "é",
        ]
    ),
    max_size=60,
).map("".join)


@given(WORDS)
def test_anything_is_an_image_or_an_image_error(text):
    try:
        kernels = inspect(HEADER + text).kernels
    except cl.ImageError:
        return
    for kernel in kernels:
        assert ptx_param_types(HEADER + text, kernel.name) == tuple(
            p.type for p in kernel.parameters
        )
