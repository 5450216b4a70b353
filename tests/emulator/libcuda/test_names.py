"""The exported names, held against cuda.h: all are there, each with its own parameters."""

import re
import sys

import pytest
from declarations import Declarations, agree

from culaunch._emulator.libcuda import c_function, names, passed_on

# Later forms whose further parameters may be skipped.
LONGER = {
    "cuCtxGetDevice_v2", "cuCtxSynchronize_v2", "cuLaunchHostFunc_v2", "cuLibraryLoadFromFile",
    "cuStreamGetCaptureInfo_v2", "cuStreamGetCaptureInfo_v3",
}  # fmt: skip


@pytest.fixture(scope="module")
def declarations(include):
    return Declarations(include)


def without_suffix(name):
    return re.sub("_ptsz$|_ptds$", "", name)


def test_every_declared_function_is_exported(declarations, exported, library):
    assert len(declarations.forms) > 600
    assert exported(library, declarations.forms) == set(declarations.forms)


def test_a_form_is_answered_only_with_its_own_parameters(declarations, driver):
    emulated = 0
    for name in declarations.forms:
        plain = without_suffix(name)
        bases = (plain, re.sub(r"_v\d$", "", plain))
        method = next((one for one in bases if hasattr(driver, one)), None)
        if method is None:
            continue
        words, declared = c_function.words_of(getattr(driver, method)), declarations.words(name)
        fits = not declarations.is_old(name) and agree(words, declared)
        fits = fits and (len(words) == len(declared) or plain in LONGER)
        assert names.method_name(driver, name) == (method if fits else None), name
        emulated += fits
    assert emulated > 230


def test_functions_without_effect_exist(exported, library):
    runtime = library.with_name("libcudart.so.13")
    both = exported(library, names.NO_EFFECT) | exported(runtime, names.NO_EFFECT)
    assert both == names.NO_EFFECT


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


FORMS = (
    ("cuMemAlloc", 12000, "cuMemAlloc_v2"),
    ("cuCtxCreate", 11030, "cuCtxCreate_v2"),
    ("cuCtxCreate", 12000, "cuCtxCreate_v3"),
    ("cuCtxCreate", 13000, "cuCtxCreate_v4"),
    ("cuGetProcAddress", 11030, "cuGetProcAddress"),
    ("cuGetProcAddress", 13000, "cuGetProcAddress_v2"),
    ("cuLaunchKernel", 13000, "cuLaunchKernel"),
    ("cuTexRefCreate", 13000, "cuTexRefCreate"),
)
ASKED = """
cuda = ctypes.CDLL("libcuda.so.1")
for symbol, version, form in FORMS:
    out, status = ctypes.c_void_p(7), ctypes.c_int(9)
    found = ctypes.byref(out), version, ctypes.c_uint64(0), ctypes.byref(status)
    code = cuda.cuGetProcAddress_v2(symbol.encode(), *found)
    address = form and ctypes.cast(getattr(cuda, form), ctypes.c_void_p).value
    print(symbol, version, code, status.value, out.value == address)
"""


@pytest.mark.needs("click")
def test_a_name_and_a_version_give_a_form(emulate):
    forms = (*FORMS, ("cuNothing", 13000, None))
    done = emulate(sys.executable, "-c", f"import ctypes\nFORMS = {forms}\n{ASKED}")
    answers = [f"{symbol} {version} 0 0 True" for symbol, version, _ in FORMS]
    # CUDA_ERROR_NOT_FOUND, and CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND.
    assert done.stdout.splitlines() == [*answers, "cuNothing 13000 500 1 True"]
    assert done.stderr == ""


def test_a_function_of_the_runtime_has_the_parameters_that_are_declared(include, driver):
    declarations, checked = Declarations(include, "cuda_runtime_api.h"), set()
    for name in declarations.forms:
        method = names.method_name(driver, name)
        if method is None or method in names.NO_EFFECT:
            continue
        words, declared = c_function.words_of(getattr(driver, method)), declarations.words(name)
        if name == "cudaCreateChannelDesc":  # it returns a structure, whose place comes first
            declared = ("p", *declared)
        assert agree(words, declared), (name, words, declared)
        assert len(words) == len(declared) or name == "cudaStreamGetCaptureInfo", name
        checked.add(re.sub("_pt[sd][sz]$", "", name))
    assert {f"cuda{name}" for name in passed_on.PASSED_ON} <= checked
    assert len(checked) > 70
