"""The exported names, held against cuda.h: all are there, each with its own parameters."""

import ctypes
import re

import pytest
from declarations import Declarations, agree

from culaunch._emulator.device import Device
from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.libcuda import names
from culaunch._emulator.libcuda.c_function import words_of
from culaunch._emulator.libcuda.connect import ProgramDriver

# Later forms whose further parameters may be skipped.
LONGER = {
    "cuCtxGetDevice_v2", "cuCtxSynchronize_v2", "cuLaunchHostFunc_v2", "cuLibraryLoadFromFile",
    "cuStreamGetCaptureInfo_v2", "cuStreamGetCaptureInfo_v3",
}  # fmt: skip


@pytest.fixture(scope="module")
def declarations(include):
    return Declarations(include)


@pytest.fixture(scope="module")
def driver():
    return ProgramDriver(Device())


def without_suffix(name):
    return re.sub("_ptsz$|_ptds$", "", name)


def test_every_declared_function_is_exported(declarations, library):
    exported = ctypes.CDLL(str(library))
    assert len(declarations.forms) > 600
    assert [name for name in declarations.forms if not hasattr(exported, name)] == []


def test_a_form_is_answered_only_with_its_own_parameters(declarations, driver):
    emulated = 0
    for name in declarations.forms:
        plain = without_suffix(name)
        bases = (plain, re.sub(r"_v\d$", "", plain))
        method = next((one for one in bases if hasattr(driver, one)), None)
        if method is None:
            continue
        words, declared = words_of(getattr(driver, method)), declarations.words(name)
        fits = not declarations.is_old(name) and agree(words, declared)
        fits = fits and (len(words) == len(declared) or plain in LONGER)
        assert names.method_name(driver, name) == (method if fits else None), name
        emulated += fits
    assert emulated > 230


def test_functions_without_effect_exist(library):
    for name in names.NO_EFFECT:
        file = "libcudart.so.13" if name.startswith("cuda") else "libcuda.so.1"
        assert hasattr(ctypes.CDLL(str(library.with_name(file))), name)


def test_a_form_comes_with_a_version_of_cuda(declarations, driver):
    """The newest versions of a name are those of its forms; the first askers had CUDA 11.3."""
    since = {}
    for base, versions in declarations.versions.items():
        forms = [base, *(f"{base}_v{n}" for n in range(2, 6))]
        forms = [form for form in forms if form in declarations.forms]
        if any(names.method_name(driver, form) for form in forms):
            since.update(zip(forms[::-1], sorted(set(versions), reverse=True), strict=False))
    later = {form: n for form, n in since.items() if n > 11030 and form[-3:-1] == "_v"}
    # An older cuda.h declares fewer forms.
    known = {form: n for form, n in names._SINCE.items() if form in declarations.forms}
    assert later == known


@pytest.mark.parametrize(
    ("symbol", "version", "form"),
    [
        ("cuMemAlloc", 12000, "cuMemAlloc_v2"),
        ("cuCtxCreate", 11030, "cuCtxCreate_v2"),
        ("cuCtxCreate", 12000, "cuCtxCreate_v3"),
        ("cuCtxCreate", 13000, "cuCtxCreate_v4"),
        ("cuGetProcAddress", 11030, "cuGetProcAddress"),
        ("cuGetProcAddress", 13000, "cuGetProcAddress_v2"),
        ("cuLaunchKernel", 13000, "cuLaunchKernel"),
        ("cuTexRefCreate", 13000, "cuTexRefCreate"),
    ],
)
def test_a_name_and_a_version_give_a_form(driver, library, symbol, version, form):
    out, status = (ctypes.c_void_p * 1)(), (ctypes.c_int * 1)(9)
    driver.cuGetProcAddress_v2(symbol.encode(), out, version, 0, status)
    wanted = getattr(ctypes.CDLL(str(library)), form)
    assert (out[0], status[0]) == (ctypes.cast(wanted, ctypes.c_void_p).value, 0)


def test_an_unknown_name_has_no_address(driver):
    out, status = (ctypes.c_void_p * 1)(7), (ctypes.c_int * 1)(9)
    with pytest.raises(Refusal, match="there is no function cuNothing"):
        driver.cuGetProcAddress_v2(b"cuNothing", out, 13000, 0, status)
    assert (out[0], status[0]) == (None, 1)
