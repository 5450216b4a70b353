"""The kernels of a module: by which names they are found, and with which signatures."""

import numpy as np
import pytest

import culaunch as cl

SCALE = "_Z5scaleIfEvPT_PKS0_S0_i"  # void scale<float>(float*, float const*, float, int)


SCALE_LAYOUT = ((0, 8), (8, 8), (16, 4), (20, 4))


# ---- finding kernels


@pytest.fixture
def module(driver):
    return cl.load(
        driver.image(
            {
                SCALE: SCALE_LAYOUT,
                "_Z5scaleIdEvPT_PKS0_S0_i": ((0, 8), (8, 8), (16, 8), (24, 4)),
                "_ZN2ns4fillEPii": ((0, 8), (8, 4)),
                "_Z4bothf": ((0, 4),),
                "_Z4bothi": ((0, 4),),
                "plain": (),
            }
        )
    )


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (SCALE, SCALE),
        ("scale<float>", SCALE),
        (" scale < float > ", SCALE),
        ("scale<float>(float*, float const*, float, int)", SCALE),
        ("void scale<float>(float*, float const*, float, int)", SCALE),
        ("scale<float>(float *,float const *,float,int)", SCALE),
        ("scale<double>", "_Z5scaleIdEvPT_PKS0_S0_i"),
        ("ns::fill", "_ZN2ns4fillEPii"),
        ("ns::fill(int*, int)", "_ZN2ns4fillEPii"),
        ("both(int)", "_Z4bothi"),
        ("plain", "plain"),
    ],
)
def test_the_names_of_a_kernel(module, name, found):
    kernel = module[name]
    assert kernel.name == found
    assert module[name] is kernel
    assert name in module


def test_the_spelling_of_the_source_is_found_too(module):
    assert module["scale<float>(float*, const float*, float, int)"].name == SCALE


@pytest.mark.parametrize(
    "name",
    [
        "void k<float const>(float const*, float const*)",
        "k<const float>(const float*, const float*)",
        "k<const float>",
    ],
)
def test_a_const_template_argument_is_found_however_it_is_spelled(driver, name):
    module = cl.load(driver.image({"_Z1kIKfEvPKT_PT_": ((0, 8), (8, 8))}))
    assert str(module[name].signature) == "(const float*, const float*)"


def test_names_that_an_image_was_compiled_with(driver):
    text = driver.image({SCALE: SCALE_LAYOUT})
    module = cl.load(cl.Image(text, names={"scale<T>": SCALE, "gone": "not_there"}))
    assert module["scale<T>"].name == SCALE
    assert module["scale< T >"].name == SCALE
    with pytest.raises(cl.KernelNotFoundError):
        module["gone"]


def test_a_name_of_two_kernels_is_ambiguous(module):
    with pytest.raises(cl.KernelNotFoundError) as caught:
        module["both"]
    assert str(caught.value) == (
        "2 kernels have the name 'both': add the parameters, or give the name in the image:\n"
        "  both(float)  (_Z4bothf)\n  both(int)  (_Z4bothi)"
    )


def test_a_kernel_that_is_not_there(module):
    with pytest.raises(cl.KernelNotFoundError) as caught:
        module["missing"]
    assert str(caught.value) == (
        "the image has no kernel 'missing'; it has\n"
        f"  void scale<float>(float*, float const*, float, int)  ({SCALE})\n"
        "  void scale<double>(double*, double const*, double, int)  (_Z5scaleIdEvPT_PKS0_S0_i)\n"
        "  ns::fill(int*, int)  (_ZN2ns4fillEPii)\n"
        "  both(float)  (_Z4bothf)\n  both(int)  (_Z4bothi)\n  plain"
    )
    assert isinstance(caught.value, KeyError)
    assert "missing" not in module
    assert 5 not in module
    for name in (5, None, b"plain"):
        with pytest.raises(TypeError, match="name must be a str"):
            module[name]
    for name in ("", "plain\0", "\ud800", "x" * 10_000):
        with pytest.raises((cl.KernelNotFoundError, ValueError)):
            module[name]


def test_a_long_list_of_kernels_is_cut(driver):
    module = cl.load(driver.image({f"k{i}": () for i in range(50)}))
    with pytest.raises(cl.KernelNotFoundError, match=r"k29\n  and 20 more"):
        module["missing"]
    with pytest.raises(cl.KernelNotFoundError, match="no kernels at all"):
        cl.load(driver.image({}))["missing"]


def test_all_kernels(module):
    assert module.kernels[0].name == SCALE
    assert len(module.kernels) == len(list(module)) == 6
    assert module.kernels[0] is module[SCALE]


def test_a_kernel_whose_parameters_cannot_be_read(driver):
    module = cl.load(driver.image({"k": ((0, 8),)}))
    driver.fail("cuKernelGetParamInfo", 209)
    with pytest.raises(cl.DriverError, match="NO_BINARY_FOR_GPU") as caught:
        module["k"]
    assert "Device 0 is sm_90" in str(caught.value)
    module["k"][1, 1](None)


# ---- signatures


def test_a_signature_by_hand(driver):
    module = cl.load(driver.image({"k": ((0, 8), (8, 2), (10, 4), (16, 24))}))
    kernel = module.kernel("k", signature="float* x, const half h, int, struct Pair<int, 2> pair")
    assert str(kernel.signature) == "(float*, const half, int, struct Pair<int, 2>)"
    assert kernel.signature.source == "user"
    kernel[1, 1](None, 1.5, 7, np.void(bytes(24)))
    assert driver.last.arguments[1] == b"\x00\x3e"
    assert module["k"].signature.source == "layout"
    for wrong, message in (
        ("float*", r"must have 4 parameters, as k has \(sizes in bytes: 8, 2, 4, 24;"),
        ("", r"must have 4 parameters, as k has"),
        (
            "float*, int, int, S",
            r"must have 2 bytes, as in k .got 'int' with 4 bytes",
        ),
        ("int, half, int, S", r"must have 8 bytes, as in k .got 'int' with 4 bytes"),
        ("float*, half, int, S, int", r"must have 4 parameters, .* with 5"),
        ("float*,, int, S", "empty parameter"),
    ):
        with pytest.raises(ValueError, match=message):
            module.kernel("k", signature=wrong)
    for wrong in (5, ["int"], b"int"):
        with pytest.raises(TypeError, match="signature must be a str"):
            module.kernel("k", signature=wrong)
    with pytest.raises(cl.KernelNotFoundError):
        module.kernel("missing", signature="int")
