"""From the names that people use to a kernel's name in the image."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import culaunch as cl
from culaunch._launch.modules.names import without_parameters


@pytest.mark.parametrize(
    ("demangled", "bare"),
    [
        ("plain", "plain"),
        ("scale(float*, int)", "scale"),
        ("void scale<float>(float*, int)", "scale<float>"),
        ("void ns::scale<ns::Pair<int, 2> >(ns::Pair<int, 2>*)", "ns::scale<ns::Pair<int, 2> >"),
        ("void apply<void (*)(int)>(void (*)(int))", "apply<void (*)(int)>"),
        ("(anonymous namespace)::fill(int*)", "(anonymous namespace)::fill"),
        ("void k<(bool)1>(int)", "k<(bool)1>"),
        ("void k<(Kind)1, 2>()", "k<(Kind)1, 2>"),
        ("void f<g(int)>(float)", "f<g(int)>"),
        ("", ""),
        (")", ")"),
        ("(", "("),
    ],
)
def test_a_name_without_its_parameters(demangled, bare):
    assert without_parameters(demangled) == bare


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("scale< float >", "scale<float>"),
        ("k<Pair<int> >", "k<Pair<int>>"),
        ("k<const float *>", "k<float const*>"),
        ("k<const unsigned int>", "k<unsigned int const>"),
        ("void k<float>(const float *, int)", "k<float>(float const*,int)"),
        ("k<const Pair<int, 2>::type&>", "k<Pair<int, 2>::type const&>"),
        ("k<const Pair<const int>*>", "k<Pair<int const> const*>"),
        ("void k<const float>(const float*, float*)", "void k<float const>(float const*, float*)"),
        ("k<const long long int>", "k<long long int const>"),
        ("  k ", "k"),
        ("ns :: k", "ns::k"),
    ],
)
def test_spellings_of_one_name(driver, one, other):
    for spelled, name in ((one, other), (other, one)):
        assert driver.kernel(8, name=name).module[spelled].name == name


@pytest.mark.parametrize(
    ("one", "other"),
    [("k<float>", "k<double>"), ("k", "K"), ("k<unsigned int>", "k<unsignedint>"), ("a b", "ab")],
)
def test_names_that_differ(driver, one, other):
    for spelled, name in ((one, other), (other, one)):
        with pytest.raises(cl.KernelNotFoundError):
            driver.kernel(8, name=name).module[spelled]


@pytest.mark.slow
@pytest.mark.memory
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60))
def test_any_text_is_a_name(driver, text):
    module = driver.kernel(8, name=text).module
    assert module[f" {text}\n"].name == text
    assert isinstance(repr(module[text]), str)
    with pytest.raises(cl.KernelNotFoundError):
        module[f"{text}x"]
