"""What a type's spelling says, and signatures that people write."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import culaunch as cl
from culaunch._launch.signatures import parameter_type, signature, type_sources

TypeClass = parameter_type.TypeClass
SIGNED, UNSIGNED, FLOAT = TypeClass.SIGNED, TypeClass.UNSIGNED, TypeClass.FLOAT
POINTER, BOOL, UNKNOWN = TypeClass.POINTER, TypeClass.BOOL, TypeClass.UNKNOWN


@pytest.mark.parametrize(
    ("spelling", "type_class", "size"),
    [
        ("int", SIGNED, 4),
        ("const int", SIGNED, 4),
        ("int const", SIGNED, 4),
        ("signed", SIGNED, 4),
        ("signed int", SIGNED, 4),
        ("unsigned", UNSIGNED, 4),
        ("unsigned int", UNSIGNED, 4),
        ("volatile unsigned", UNSIGNED, 4),
        ("short", SIGNED, 2),
        ("short int", SIGNED, 2),
        ("unsigned short int", UNSIGNED, 2),
        ("long", SIGNED, 8),
        ("long int", SIGNED, 8),
        ("unsigned long", UNSIGNED, 8),
        ("long unsigned int", UNSIGNED, 8),
        ("long long", SIGNED, 8),
        ("unsigned long long", UNSIGNED, 8),
        ("long long unsigned int", UNSIGNED, 8),
        ("signed char", SIGNED, 1),
        ("unsigned char", UNSIGNED, 1),
        ("bool", BOOL, 1),
        ("size_t", UNSIGNED, 8),
        ("int8_t", SIGNED, 1),
        ("uint16_t", UNSIGNED, 2),
        ("std::int32_t", SIGNED, 4),
        ("std::size_t", UNSIGNED, 8),
        ("float", FLOAT, 4),
        ("double", FLOAT, 8),
        ("half", FLOAT, 2),
        ("__half", FLOAT, 2),
        ("nv_bfloat16", FLOAT, 2),
        ("__nv_bfloat16 const", FLOAT, 2),
        ("float*", POINTER, 8),
        ("const float *", POINTER, 8),
        ("float const* __restrict__", POINTER, 8),
        ("float* const", POINTER, 8),
        ("float&", POINTER, 8),
        ("float&&", POINTER, 8),
        ("float**", POINTER, 8),
        ("void*", POINTER, 8),
        ("Pair<int, 2>*", POINTER, 8),
        ("void (*)(int)", POINTER, 8),
        ("float [4]", POINTER, 8),
        ("Pair", UNKNOWN, None),
        ("ns::Pair<float*>", TypeClass.STRUCTURE, None),
        ("float4", TypeClass.STRUCTURE, 16),
        ("const uint3", TypeClass.STRUCTURE, 12),
        ("__half2", TypeClass.STRUCTURE, 4),
        ("struct Pair", TypeClass.STRUCTURE, None),
        ("int Pair::*", TypeClass.STRUCTURE, None),
        ("enum Color", TypeClass.ENUMERATION, None),
        ("enum ns::Color", TypeClass.ENUMERATION, None),
        ("enum Color : unsigned char", UNSIGNED, 1),
        ("__nv_fp8_e4m3", TypeClass.FLOAT8, 1),
        ("decltype(nullptr)", POINTER, 8),
        ("", UNKNOWN, None),
        (None, UNKNOWN, None),
    ],
)
def test_the_class_of_a_type(spelling, type_class, size):
    found = parameter_type.classify(spelling)
    assert (found.type_class, found.size) == (type_class, size)


@pytest.mark.parametrize(
    ("spelling", "element"),
    [
        ("float*", (2, 32)), ("const double*", (2, 64)), ("half*", (2, 16)), ("bool*", (6, 8)),
        ("__nv_bfloat16 const*", (4, 16)), ("int*", (0, 32)), ("unsigned*", (1, 32)),
        ("long unsigned int*", (1, 64)), ("uint8_t*", (1, 8)), ("size_t* __restrict__", (1, 64)),
        ("char*", (0, 0)), ("void*", (0, 0)), ("float**", (0, 0)), ("float4*", (0, 0)),
        ("__nv_fp8_e4m3*", (10, 8)), ("Pair*", (0, 0)),
    ],
)  # fmt: skip
def test_the_element_of_a_pointer(spelling, element):
    found = parameter_type.classify(spelling)
    assert (found.code, found.bits) == element


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("", []),
        ("void", []),
        ("  ", []),
        ("float*", ["float*"]),
        ("float* x", ["float*"]),
        ("float *x", ["float *"]),
        ("const float* __restrict__ x, int n", ["const float* __restrict__", "int"]),
        ("unsigned", ["unsigned"]),
        ("unsigned n", ["unsigned"]),
        ("unsigned long long n", ["unsigned long long"]),
        ("const half", ["const half"]),
        ("const half h", ["const half"]),
        ("Pair", ["Pair"]),
        ("const Pair", ["const Pair"]),
        ("struct Pair", ["struct Pair"]),
        ("struct Pair p", ["struct Pair"]),
        ("Pair p", ["Pair"]),
        ("Pair<int, 2> p, int", ["Pair<int, 2>", "int"]),
        (
            "Pair<int, Other<1, 2>>, void (*)(int, int)",
            ["Pair<int, Other<1, 2>>", "void (*)(int, int)"],
        ),
        ("ns::Pair &p", ["ns::Pair &"]),
    ],
)
def test_signatures_that_people_write(text, types):
    sizes = [parameter_type.classify(one).size or 8 for one in types]
    layout = [(8 * i, size) for i, size in enumerate(sizes)]
    found = signature.parse_signature(text, layout, "k")
    assert [one.type for one in found.parameters] == types
    assert [(one.offset, one.size) for one in found.parameters] == layout
    assert found.source == ("user" if types else found.source)


@pytest.mark.slow
@pytest.mark.memory
@given(st.text(max_size=40))
def test_any_text_is_a_signature_or_an_error(text):
    for layout in ((), ((0, 4),), ((0, 8), (8, 4))):
        try:
            found = signature.parse_signature(text, layout, "k")
        except ValueError as error:
            assert "signature" in str(error)  # noqa: PT017
        else:
            assert len(found) == len(layout)
            str(found)


def test_types_that_do_not_fit_are_left_out():
    layout = ((0, 8), (8, 4), (12, 4))
    found = signature.make_signature(layout, ["float*", "double", "int"], "name")
    assert [one.type for one in found.parameters] == ["float*", None, "int"]
    assert found.source == "name"
    assert signature.make_signature(layout, ["float*"], "name").source == "layout"
    assert signature.make_signature(layout, [None] * 3, "ptx").source == "layout"
    assert signature.make_signature(layout, None, "layout").parameters[0] == cl.kernel.Parameter(
        0, 8, None
    )


def test_a_signature_is_made_for_reading():
    found = signature.make_signature(((0, 8), (8, 12)), ["float*", None], "name")
    assert str(found) == "(float*, 12 bytes)"
    assert len(found) == 2
    assert str(signature.make_signature((), (), "name")) == "()"
    with pytest.raises(AttributeError):
        found.source = "user"


@pytest.mark.parametrize(
    "text",
    ["float*, float*, float*, int n m k", "int n m", "float x y", "float* x y", "unsigned n m",
     "const Pair<int, 2> x y", "struct Pair x y", "char a b c", "float (*f)(int) g h"],
)  # fmt: skip
def test_a_comma_that_is_missing_is_noticed(text):
    count = len(text.replace("<int, 2>", "").split(","))
    with pytest.raises(ValueError, match="put a comma between parameters"):
        signature.parse_signature(text, ((0, 8), (8, 8), (16, 8), (24, 4))[:count], "k")


@pytest.mark.parametrize(
    "text",
    ["unsigned long long int n", "const float* __restrict__ x", "struct Pair x", "enum Color c",
     "Pair<int, 2> x", "long", "unsigned char c", "signed char", "float* const x",
     "Pair<int> const& x", "float (*f)(int)", "unsigned __int128 x",
     "enum Color : unsigned char c"],
)  # fmt: skip
def test_a_type_and_a_name_are_two_things(text):
    size = 1 if "char" in text else 16 if "128" in text else 8
    if text.startswith(("struct", "Pair<int, 2>")):
        size = 24
    assert len(signature.parse_signature(text, ((0, size),), "k")) == 1


def test_without_a_decompressor_types_stay_unknown(monkeypatch):
    """The kernel is launched anyway: the driver needs none."""
    from culaunch import _image

    def missing(image):
        raise cl.MissingDependencyError("zstd is missing")

    monkeypatch.setattr(_image, "embedded_ptx", missing)
    fatbin = SimpleNamespace(format="fatbin", signatures={})
    assert type_sources.recorded_types(fatbin, "k") == (None, "layout")
    assert type_sources.recorded_types(fatbin, "_Z1kPf") == (("float*",), "name")
