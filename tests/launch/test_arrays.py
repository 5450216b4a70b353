"""Arrays of every protocol: what is passed, from where, in which stream.

The code is csrc/arguments/protocols/arrays.cpp, and a file for each protocol beside it.
"""

import ctypes
import sys
import types

import ml_dtypes
import numpy as np
import pytest
from fake_arrays import (
    CudaInterfaceArray,
    DlpackArray,
    ExchangeArray,
    OldDlpackArray,
    address_of,
    make_exchange_array,
)

import culaunch as cl
from culaunch._core import NUMBERS

FAKES = [ExchangeArray, DlpackArray, OldDlpackArray, CudaInterfaceArray]
POINTER = "float*"


# ---- what is passed


@pytest.mark.parametrize("kind", FAKES)
@pytest.mark.parametrize("spelling", [None, POINTER, "const float*", "void*", "Item*", "float&"])
def test_an_array_passes_its_address(known, kind, spelling):
    assert address_of(known.bytes_of(kind(), 8, spelling)) == 0x7000


@pytest.mark.parametrize("kind", [ExchangeArray, DlpackArray, OldDlpackArray])
def test_the_byte_offset_counts(known, kind):
    assert address_of(known.bytes_of(kind(offset=0x10), 8)) == 0x7010


@pytest.mark.parametrize("kind", [ExchangeArray, DlpackArray, OldDlpackArray, CudaInterfaceArray])
def test_a_null_array_passes_null(known, kind):
    assert address_of(known.bytes_of(kind(address=None), 8)) == 0


@pytest.mark.parametrize("kind", FAKES)
@pytest.mark.parametrize(
    ("size", "spelling"), [(8, "size_t"), (8, "double"), (4, None), (16, None)]
)
def test_an_array_needs_a_pointer(known, kind, size, spelling):
    with pytest.raises(TypeError, match=f"got fake_arrays.*{kind.__name__}"):
        known.bytes_of(kind(), size, spelling)


ELEMENTS = {
    "bool*": (6, 8), "signed char*": (0, 8), "unsigned char*": (1, 8), "short*": (0, 16),
    "unsigned short*": (1, 16), "int*": (0, 32), "unsigned*": (1, 32), "long*": (0, 64),
    "long long*": (0, 64), "size_t*": (1, 64), "float*": (2, 32), "double*": (2, 64),
    "half*": (2, 16), "__nv_bfloat16*": (4, 16), "__nv_fp8_e4m3*": (10, 8),
    "__nv_fp8_e5m2*": (12, 8),
}  # fmt: skip


@pytest.mark.parametrize("spelling", ELEMENTS)
def test_the_element_type_must_be_the_pointer_s(known, spelling):
    own = ELEMENTS[spelling]
    for dtype in {*ELEMENTS.values()}:
        for kind in (ExchangeArray, DlpackArray):
            if dtype == own:
                assert address_of(known.bytes_of(kind(dtype=dtype), 8, spelling)) == 0x7000
            else:
                with pytest.raises(TypeError, match=r"must be an array of .*\(got fake_arrays"):
                    known.bytes_of(kind(dtype=dtype), 8, spelling)


def test_the_error_of_an_element_type(known):
    with pytest.raises(TypeError) as caught:
        known.bytes_of(DlpackArray(dtype=(2, 16)), 8, POINTER)
    assert str(caught.value) == (
        "argument 0 of k, float* (8 bytes), must be an array of float32 (got "
        "fake_arrays.DlpackArray of float16): convert the array, or use a kernel for its type"
    )
    with pytest.raises(TypeError, match="must be an array of int32"):
        known.bytes_of(CudaInterfaceArray(), 8, "int*")


def test_a_char_pointer_takes_any_element(known):
    # char has no sign of its own; void and structures have no elements.
    for spelling in ("char*", "void*", "Pair*"):
        assert address_of(known.bytes_of(ExchangeArray(dtype=(1, 8)), 8, spelling)) == 0x7000
        assert address_of(known.bytes_of(ExchangeArray(dtype=(0, 64)), 8, spelling)) == 0x7000


# ---- whose memory


@pytest.mark.parametrize("kind", [ExchangeArray, DlpackArray])
def test_memory_of_another_kind_is_refused(known, kind):
    for device_type, text in ((1, "the CPU's memory"), (10, "a ROCm device"), (99, "type 99")):
        with pytest.raises(ValueError, match=f"{text}.*culaunch.to_device") as caught:
            known.bytes_of(kind(kind=device_type), 8)
        assert "the driver in use, 'recorder'" in str(caught.value)


@pytest.mark.parametrize("kind", [ExchangeArray, DlpackArray])
def test_pinned_and_managed_memory_is_every_device_s(known, kind):
    kernel = known.kernel(8, 8, 8)
    kernel[1, 1](kind(kind=3), kind(device=1), kind(kind=13))
    assert known.last.device == 1
    with cl.driver.Device(1):
        kernel[1, 1](kind(kind=3), None, kind(kind=13))
    assert known.last.device == 1


def test_an_address_that_the_driver_does_not_know(known):
    with pytest.raises(ValueError, match=r"does not know the address 0x1234 .*CUDA_ERROR_INVALID"):
        known.bytes_of(CudaInterfaceArray(address=0x1234), 8)


# ---- streams of slower arrays


@pytest.mark.parametrize("kind", [DlpackArray, OldDlpackArray])
def test_dlpack_is_told_the_stream(known, kind):
    stream = known.make_stream()
    kernel = known.kernel(8)
    for given, told in ((None, 1), (0, 1), (1, 1), (2, 2), (stream, stream)):
        array = kind()
        kernel.launch(array, grid=1, block=1, stream=given)
        assert array.asked == [(told, (1, 0) if kind is DlpackArray else None)]


def test_host_memory_has_no_stream(host_driver):
    array = DlpackArray(kind=1)
    host_driver.bytes_of(array, 8)
    assert array.asked == [(None, (1, 0))]


def test_the_interface_s_stream_is_waited_for(known):
    made, launched = known.make_stream(), known.make_stream()
    kernel = known.kernel(8)

    def waits(array_stream, stream):
        known.calls.clear()
        kernel.launch(CudaInterfaceArray(stream=array_stream), grid=1, block=1, stream=stream)
        return [args[0] for name, args in known.calls if name == "cuStreamSynchronize"]

    assert waits(0, launched) == []
    assert waits(made, launched) == [made]
    assert waits(made, None) == [made]
    assert waits(made, made) == []  # in order already; and a wait would break a capture
    assert waits(1, None) == []
    assert waits(2, None) == [2]
    assert waits(1, launched) == [1]


def test_an_interface_s_stream_that_fails_is_an_error(known):
    stream = known.make_stream()
    known.fail("cuStreamSynchronize", 400)
    with pytest.raises((cl.DriverError, ValueError), match="CUDA_ERROR_INVALID_HANDLE"):
        known.bytes_of(CudaInterfaceArray(stream=stream), 8)
    assert not known.launches


# ---- the framework's stream


def test_the_exchange_api_s_current_stream_is_used(known):
    kind = make_exchange_array()
    kind.current = known.make_stream(1)
    kernel = known.kernel(8, 8)
    kernel[1, 1](kind(device=1), kind(device=1))
    assert (known.last.stream, known.last.device) == (kind.current, 1)
    assert kind.asked_streams == [(2, 1)]  # once, for the first array


def test_the_first_array_s_framework_wins(known):
    first, second = make_exchange_array(), make_exchange_array()
    first.current, second.current = known.make_stream(), known.make_stream()
    kernel = known.kernel(8, 8, 4)
    kernel[1, 1](first(), second(), 1)
    kernel[1, 1](second(), first(), 1)
    kernel[1, 1](None, first(), 1)
    kernel[1, 1](DlpackArray(), first(), 1)
    kernel[1, 1](first(kind=3), second(), 1)  # pinned memory has no stream
    used = [launch.stream for launch in known.launches]
    assert used == [first.current, second.current, first.current, 0, second.current]


def test_a_given_stream_wins(known):
    kind = make_exchange_array()
    kind.current, given = known.make_stream(), known.make_stream()
    known.kernel(8).launch(kind(), grid=1, block=1, stream=given)
    assert known.last.stream == given
    assert kind.asked_streams == []
    known.kernel(8).launch(kind(), grid=1, block=1, stream=0)
    assert known.last.stream == 0


@pytest.mark.parametrize("again", [False, True])
def test_cupy_s_current_stream_is_used(known, monkeypatch, again):
    """The choice follows the module of the array's type, whatever came before."""
    stream = known.make_stream()
    if again:
        stream = known.make_stream()
    data = types.SimpleNamespace(ptr=0x7000, device_id=0)

    class ndarray(DlpackArray):
        def __init__(self):
            self.dtype, self.data = np.dtype("f4"), data

    ndarray.__module__ = "cupy"
    cuda = types.ModuleType("cupy.cuda")
    cuda.get_current_stream = lambda: types.SimpleNamespace(ptr=stream)
    monkeypatch.setitem(sys.modules, "cupy", types.ModuleType("cupy"))
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
    known.bytes_of(ndarray(), 8, POINTER)
    assert known.last.stream == stream
    with pytest.raises(TypeError, match="must be an array of int32"):
        known.bytes_of(ndarray(), 8, "int*")


# ---- devices


@pytest.mark.parametrize("kind", FAKES)
def test_the_launch_goes_to_the_arrays_device(known, kind):
    kernel = known.kernel(8, 4)
    for address, device in ((0x7000, 0), (0x8000, 1)):
        kernel[1, 1](kind(address=address, device=device), 1)
        assert (known.last.device, known.last.context) == (device, 0xC0000 + device)
        assert known.stack == []


def test_arrays_on_two_devices_are_an_error(known):
    kernel = known.kernel(8, 8, 8)
    with pytest.raises(ValueError, match="all arrays of a call must be on one device") as caught:
        kernel[1, 1](ExchangeArray(device=1), 0x9000, DlpackArray(device=0))
    assert str(caught.value).startswith(
        "argument 2 of k, a parameter of 8 bytes, is on device 0 (got fake_arrays.DlpackArray), "
        "but earlier arguments are on device 1"
    )
    assert not known.launches


def test_a_device_that_is_not_there(known):
    with pytest.raises(cl.LaunchError, match="There is no such device"):
        known.bytes_of(ExchangeArray(device=7), 8)
    with pytest.raises(cl.LaunchError, match="There is no such device"):
        known.bytes_of(ExchangeArray(device=-1), 8)


# ---- a driver that checks addresses is told what arrays span


@pytest.fixture
def noted(install):
    """A host driver, and the (address, bytes) that it was told, (0, 0) where a call begins."""
    told, storages = [], []
    notes = NUMBERS["Note"]
    behind = (notes["STORAGE"], notes["READ_ONLY_STORAGE"])

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint)
    def note(begin, size, what):
        (storages if what in behind else told).append((begin or 0, size))

    address = ctypes.cast(note, ctypes.c_void_p).value
    driver = install(device_types=(1,), devices=1, instead={"note_array": address})
    driver.told, driver.storages, driver.note = told, storages, note
    return driver


def views():
    array = np.zeros((4, 6), "f4")
    return [
        array, array[1:], array[:, ::2], array[::-1], array[::-1, ::-1], array.T, array[2, 3:4],
        np.broadcast_to(array[0], (5, 6)), array[:0], array.view(ml_dtypes.float8_e5m2)[1:, ::3],
        np.zeros((), "f8"),
    ]  # fmt: skip


@pytest.mark.parametrize("array", views(), ids=range(11))
@pytest.mark.parametrize("kind", ["numpy", "interface", "torch"])
def test_the_bytes_that_an_array_spans(noted, has, array, kind):
    given = array
    if kind == "interface":
        given = type("Holder", (), {"__array_interface__": array.__array_interface__})()
    elif kind == "torch" and array.flags.writeable and array.dtype.itemsize > 1:
        if not has("torch"):
            pytest.skip("needs torch")
        import torch

        if all(stride >= 0 for stride in array.strides):  # torch has no others
            given = torch.from_numpy(array)
    noted.bytes_of(given, 8)
    if array.size == 0:
        assert [size for _, size in noted.told] == [0, 0]
        return
    bounds = getattr(np.lib, "array_utils", np).byte_bounds
    low, high = bounds(array)
    assert noted.told == [(0, 0), (low, high - low)]
    base = array.base
    while base is not None and base.base is not None:
        base = base.base
    whole = bounds(base) if given is array and base is not None else (low, high)
    is_more = whole != (low, high)
    assert noted.storages == ([(whole[0], whole[1] - whole[0])] if is_more else [])


def test_each_call_begins_once(noted):
    kernel = noted.kernel(8, 8, 4)
    array = np.zeros(4, "f4")
    kernel[1, 1](array, None, 1)
    kernel[1, 1](None, None, 1)
    kernel[1, 1](array, array, 1)
    own = (array.ctypes.data, 16)
    assert noted.told == [(0, 0), own, (0, 0), (0, 0), own, own]
