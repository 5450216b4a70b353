"""Arrays that misbehave: what keeps them, and what comes out of their errors."""

import ctypes
import gc
import weakref

import pytest
from fake_arrays import Array, DlpackArray, address_of, make_exchange_array

POINTER = "float*"


# ---- what keeps the arrays, and what misbehaves


def test_what_an_export_holds_lives_until_the_launch_is_made(known):
    alive = []

    class Owner(DlpackArray):
        def __dlpack__(self, **keywords):
            capsule = super().__dlpack__(**keywords)
            holder = type("Holder", (), {})()
            self.managed.holder = holder
            alive.append(weakref.ref(holder))
            return capsule

    known.kernel(8, 8)[1, 1](Owner(), Owner())
    gc.collect()
    assert [reference() for reference in alive] == [None, None]


def misbehaving(device=(2, 0), result=None, error=None):
    class Bad(Array):
        def __dlpack_device__(self):
            if isinstance(device, Exception):
                raise device
            return device

        def __dlpack__(self, **keywords):
            if error is not None:
                raise error
            return result

    return Bad()


@pytest.mark.parametrize(
    "device", [None, 1, (1,), (1, 2, 3), ("a", 0), [2, 0], (2**40, 0)], ids=repr
)
def test_a_device_that_is_none(known, device):
    with pytest.raises((TypeError, OverflowError, ValueError)):
        known.bytes_of(misbehaving(device=device), 8)


@pytest.mark.parametrize(
    "result", [None, 1, "capsule", object()], ids=lambda value: type(value).__name__
)
def test_a_capsule_that_is_none(known, result):
    with pytest.raises(TypeError, match="not a DLPack capsule"):
        known.bytes_of(misbehaving(result=result), 8)


def test_a_capsule_that_was_used(known):
    class Used(DlpackArray):
        def __dlpack__(self, **keywords):
            capsule = super().__dlpack__(**keywords)
            rename = ctypes.pythonapi["PyCapsule_SetName"]
            rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
            rename(capsule, b"used_dltensor_versioned")
            return capsule

    with pytest.raises(TypeError, match="not a DLPack capsule"):
        known.bytes_of(Used(), 8)


@pytest.mark.parametrize("device", [(2, 0), (1, 0)])
@pytest.mark.parametrize("error", [RuntimeError("mine"), BufferError("mine"), KeyError("mine")])
def test_an_array_s_own_error_comes_out(install, device, error):
    driver = install(device_types=(device[0],))
    with pytest.raises(type(error), match="mine"):
        driver.bytes_of(misbehaving(device=device, error=error), 8)
    with pytest.raises(type(error), match="mine"):
        driver.bytes_of(misbehaving(device=error), 8)


@pytest.mark.parametrize(
    "interface",
    [
        None, [], {}, {"data": None}, {"data": (1.5, False)}, {"data": ()}, {"data": 5},
        {"data": ("x", False)}, {"data": (0x7000, False), "stream": "x"}, {"data": (2**70, False)},
    ],
    ids=repr,
)  # fmt: skip
def test_an_interface_that_is_none(known, interface):
    bad = type("Bad", (), {"__cuda_array_interface__": property(lambda self: interface)})()
    with pytest.raises((TypeError, ValueError, OverflowError)):
        known.bytes_of(bad, 8)


@pytest.mark.parametrize(
    "typestr", [None, "", "f", "<f", "<", "\ud800", 4, b"<f4", "<z9", "<f999999999999", "|V3"]
)
def test_an_odd_typestr_says_nothing(known, typestr):
    interface = {"data": (0x7000, False), "typestr": typestr}
    odd = type("Odd", (), {"__cuda_array_interface__": property(lambda self: interface)})()
    assert address_of(known.bytes_of(odd, 8, POINTER)) == 0x7000


@pytest.mark.parametrize(
    ("typestr", "spelling"),
    [
        ("<i4", "int*"), ("<u2", "unsigned short*"), ("<f8", "double*"), ("|b1", "bool*"),
        ("|i1", "signed char*"), ("=f4", "float*"),
    ],
)  # fmt: skip
def test_the_typestr_of_an_interface(known, typestr, spelling):
    interface = {"data": (0x7000, False), "typestr": typestr}
    array = type("Typed", (), {"__cuda_array_interface__": property(lambda self: interface)})()
    assert address_of(known.bytes_of(array, 8, spelling)) == 0x7000
    for other in {"int*", "unsigned short*", "double*", "bool*", "float*"} - {spelling}:
        with pytest.raises(TypeError, match="must be an array of"):
            known.bytes_of(array, 8, other)
    interface["typestr"] = "<c8"
    with pytest.raises(TypeError, match=r"of complex64"):
        known.bytes_of(array, 8, spelling)


@pytest.mark.parametrize("which", ["view", "stream"])
def test_an_exchange_api_that_fails_without_a_reason(known, which):
    kind = make_exchange_array()
    fails = ctypes.CFUNCTYPE(ctypes.c_int)(lambda *args: -1)
    ctypes.memmove(
        ctypes.addressof(kind.api) + getattr(type(kind.api), which).offset,
        ctypes.byref(fails),
        ctypes.sizeof(ctypes.c_void_p),
    )
    with pytest.raises(BufferError, match=r"reading argument 0, a .* failed without a reason"):
        known.bytes_of(kind(), 8)


def test_an_exchange_api_of_another_version_is_not_used(known):
    future = make_exchange_array(major=2)
    with pytest.raises(TypeError):
        known.bytes_of(future(), 8)


def test_an_exchange_api_that_is_no_capsule(known):
    kind = type("Odd", (), {"__dlpack_c_exchange_api__": 5})
    with pytest.raises(TypeError, match="must be an array"):
        known.bytes_of(kind(), 8)
