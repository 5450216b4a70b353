"""Every kind of argument with real kernels; what arrived is compared bit for bit."""

import ctypes
import struct

import ml_dtypes
import numpy as np
import pytest

import culaunch as cl

# Warnings of other frameworks do not matter here.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore", "error:::culaunch")]

SCALARS = struct.Struct("<bBhH2xiIqQf4xd?xeH2xQ")  # struct Scalars of kernels.cu, on x86 and arm
N = 1000


def echo(kernel, *values):
    out = cl.to_device(np.zeros(SCALARS.size, "u1"))
    kernel[1, 1](out.address, *values)
    return out.numpy().tobytes()


def packed(a, b, c, d, e, f, g, h, i, j, k, l, m, n):  # noqa: E741
    bits = ml_dtypes.bfloat16(m).view(np.uint16).item()
    return SCALARS.pack(a, b, c, d, e, f, g, h, i, j, k, l, bits, n)


LOW = (-128, 0, -32768, 0, -(2**31), 0, -(2**63), 0, -1.5, -2.5, False, -0.5, -3.0, 0)
HIGH = (
    127, 255, 32767, 65535, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1, 3.25, 1e300, True, 65504.0,
    256.0, 2**64 - 256,
)  # fmt: skip


@pytest.mark.parametrize("values", [LOW, HIGH])
def test_python_scalars(gpu, values):
    assert echo(gpu["echo"], *values) == packed(*values)


@pytest.mark.parametrize("values", [LOW, HIGH])
def test_numpy_scalars(gpu, values):
    kinds = (
        np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
        np.float32, np.float64, np.bool_, np.float16, ml_dtypes.bfloat16, np.uint64,
    )  # fmt: skip
    typed = [kind(value) for kind, value in zip(kinds, values, strict=True)]
    assert echo(gpu["echo"], *typed) == packed(*values)


def test_ctypes_scalars(gpu):
    typed = (
        ctypes.c_int8(-1), ctypes.c_uint8(2), ctypes.c_int16(-3), ctypes.c_uint16(4),
        ctypes.c_int(-5), ctypes.c_uint(6), ctypes.c_longlong(-7), ctypes.c_ulonglong(8),
        ctypes.c_float(9.5), ctypes.c_double(10.5), ctypes.c_bool(True), np.float16(11.5),
        ml_dtypes.bfloat16(12.5), ctypes.c_void_p(0x1300),
    )  # fmt: skip
    expected = packed(-1, 2, -3, 4, -5, 6, -7, 8, 9.5, 10.5, True, 11.5, 12.5, 0x1300)
    assert echo(gpu["echo"], *typed) == expected


def test_without_types_the_sizes_decide(gpu_image):
    kernel = cl.load(gpu_image.data)["echo"]  # extern "C", and the cubin alone holds no types
    assert {parameter.type for parameter in kernel.signature.parameters} == {None}
    assert kernel.signature.source == "layout"
    values = (*HIGH[:11], np.float16(1.5), ml_dtypes.bfloat16(2.5), None)
    assert echo(kernel, *values) == packed(*HIGH[:11], 1.5, 2.5, 0)
    with pytest.raises(TypeError, match="float16 or bfloat16"):
        echo(kernel, *HIGH[:11], 1.5, 2.5, None)


def test_a_signature_given_by_hand(gpu_image):
    text = (
        "void*, signed char, unsigned char, short, unsigned short, int, unsigned, long long, "
        "unsigned long long, float, double, bool, half, nv_bfloat16, const void*"
    )
    module = cl.load(gpu_image.data)
    assert echo(module.kernel("echo", signature=text), *LOW) == packed(*LOW)
    with pytest.raises(ValueError, match=r"1 byte, as in echo .got 'short' with 2 bytes"):
        module.kernel("echo", signature=text.replace("signed char", "short", 1))
    with pytest.raises(ValueError, match=r"15 parameters, as echo has .*got 'int' with 1"):
        module.kernel("echo", signature="int")


def test_wrong_values_never_reach_the_gpu(gpu):
    kernel = gpu["echo"]
    out = cl.to_device(np.zeros(SCALARS.size, "u1"))
    for index, value, error in (
        (0, 128, OverflowError),
        (1, -1, OverflowError),
        (4, 2**31, OverflowError),
        (4, 1.0, TypeError),
        (8, 1, TypeError),
        (8, np.float64(1), ValueError),
        (10, 1, TypeError),
        (11, ml_dtypes.bfloat16(1), TypeError),
        (13, 1.0, TypeError),
        (13, "x", TypeError),
    ):
        values = list(LOW)
        values[index] = value
        with pytest.raises(error, match=f"argument {index + 1} of echo"):
            kernel[1, 1](out.address, *values)
    with pytest.raises(TypeError, match=r"takes 15 arguments .*\(got 14\)"):
        kernel[1, 1](*LOW)
    assert not out.numpy().any()


def test_a_null_pointer(gpu):
    out = cl.to_device(np.full(1, 7, "i4"))
    gpu["is_null"][1, 1](out, None)
    assert out.numpy()[0] == 1
    gpu["is_null"][1, 1](out, out.address)
    assert out.numpy()[0] == 0


# ---- structures by value


class Params(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_int),
        ("scale", ctypes.c_float),
        ("offset", ctypes.c_double),
        ("tag", ctypes.c_ubyte * 16),
    )


def test_a_ctypes_structure(gpu):
    given = Params(3, 1.5, -2.5, (ctypes.c_ubyte * 16)(*range(16)))
    out = cl.to_device(np.zeros(32, "u1"))
    gpu["echo_params"][1, 1](out.address, given)
    assert out.numpy().tobytes() == bytes(given)


def test_a_numpy_record(gpu):
    kind = np.dtype([("count", "i4"), ("scale", "f4"), ("offset", "f8"), ("tag", "u1", 16)])
    given = np.zeros(1, kind)
    given["count"], given["scale"], given["tag"] = 7, 0.5, np.arange(16)
    out = cl.to_device(np.zeros(32, "u1"))
    gpu["echo_params"][1, 1](out.address, given[0])
    assert out.numpy().tobytes() == given.tobytes()


@pytest.mark.parametrize(("name", "size"), [("sum_large", 3000), ("sum_largest", 32000)])
def test_large_structures(gpu, name, size):
    content = (np.arange(size) % 251).astype("u1")
    out = cl.to_device(np.zeros(1, "i4"))
    gpu[name][1, 1](out, np.void(content.tobytes()), 5)
    assert out.numpy()[0] == content.sum(dtype="i8") + 5
    with pytest.raises(ValueError, match=f"must have exactly {size} bytes"):
        gpu[name][1, 1](out, np.void(content.tobytes()[1:]), 5)


# ---- arrays of every framework


def run_scale(gpu, x, y, element="float", a=2.5, count=N):
    gpu[f"scale<{element}>"][(count + 255) // 256, 256](y, x, a, count)


def numbers(dtype="f4"):
    return (np.arange(N) % 97).astype(dtype)


@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        ("float", np.float32), ("double", np.float64), ("int", np.int32), ("__half", np.float16),
        ("__nv_bfloat16", ml_dtypes.bfloat16),
    ],
)  # fmt: skip
def test_numpy_by_way_of_to_device(gpu, element, dtype):
    x, y = cl.to_device(numbers(dtype)), cl.empty(N, dtype)
    a = 3 if element == "int" else 2.0
    run_scale(gpu, x, y, element, a)
    np.testing.assert_array_equal(y.numpy(), (numbers(dtype) * dtype(a)).astype(dtype))


def test_a_numpy_array_itself_is_an_error(gpu):
    out = cl.empty(N, "f4")
    with pytest.raises(ValueError, match=r"the CPU's memory.*culaunch\.to_device"):
        run_scale(gpu, numbers(), out)


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        ("float", "float32"), ("double", "float64"), ("int", "int32"), ("__half", "float16"),
        ("__nv_bfloat16", "bfloat16"),
    ],
)  # fmt: skip
def test_torch(gpu, element, dtype):
    import torch

    x = torch.arange(N, device="cuda").remainder(97).to(getattr(torch, dtype))
    y = torch.empty_like(x)
    a = 3 if element == "int" else 2.0
    run_scale(gpu, x, y, element, a)
    assert torch.equal(y, x * a)
    with pytest.raises(TypeError, match="must be an array of"):
        run_scale(gpu, x.to(torch.uint8), y, element, a)


@pytest.mark.needs("torch")
def test_torch_views_and_gradients(gpu):
    import torch

    whole = torch.arange(2.0 * N, device="cuda")
    view = whole[N:]
    y = torch.nn.Parameter(torch.zeros(N, device="cuda"))
    run_scale(gpu, view, y)
    assert torch.equal(y.detach(), view * 2.5)
    run_scale(gpu, torch.ones(N, device="cuda", requires_grad=True), y)
    assert torch.equal(y.detach(), torch.full((N,), 2.5, device="cuda"))
    # Not contiguous: the kernel gets the pointer, and takes what lies there.
    run_scale(gpu, whole.view(2, N).t()[:, 1], y)
    assert torch.equal(y.detach(), whole[N:] * 2.5)
    found = torch.zeros(1, dtype=torch.int32, device="cuda")
    gpu["is_null"][1, 1](found, torch.empty(0, device="cuda"))
    assert found.item() == 1


@pytest.mark.needs("torch")
def test_a_torch_cpu_tensor_is_an_error(gpu):
    import torch

    with pytest.raises(ValueError, match=r"tensor\.cuda\(\)"):
        run_scale(gpu, torch.zeros(N), torch.zeros(N, device="cuda"))


@pytest.mark.needs("cupy")
def test_cupy(gpu):
    import cupy

    for dtype, element in (("f4", "float"), ("f8", "double"), ("i4", "int"), ("f2", "__half")):
        x = cupy.asarray(numbers(dtype))
        y = cupy.empty_like(x)
        a = 3 if element == "int" else 2.0
        run_scale(gpu, x, y, element, a)
        np.testing.assert_array_equal(y.get(), numbers(dtype) * np.dtype(dtype).type(a))
        with pytest.raises(TypeError, match="must be an array of"):
            run_scale(gpu, cupy.zeros(N, "u1"), y, element, a)
    x = cupy.asarray(numbers())
    y = cupy.zeros(2 * N, "f4")
    run_scale(gpu, x, y[N:])
    np.testing.assert_array_equal(y.get(), np.concatenate([np.zeros(N), numbers() * 2.5]))


@pytest.mark.needs("cupy")
def test_cupy_s_managed_memory(gpu):
    import cupy

    with cupy.cuda.using_allocator(cupy.cuda.malloc_managed):
        x, y = cupy.asarray(numbers()), cupy.zeros(N, "f4")
        run_scale(gpu, x, y)
        np.testing.assert_array_equal(y.get(), numbers() * 2.5)


@pytest.mark.needs("jax")
def test_jax(gpu):
    import jax

    if jax.default_backend() != "gpu":
        pytest.skip("needs jax-cuda13-plugin")
    x = jax.device_put(numbers())
    y = cl.empty(N, "f4")
    run_scale(gpu, x, y)
    np.testing.assert_array_equal(y.numpy(), numbers() * 2.5)
    with pytest.raises(TypeError, match="must be an array of float32"):
        run_scale(gpu, x.astype("int32"), y)


@pytest.mark.needs("numba_cuda")
def test_numba(gpu):
    from numba import cuda

    x, y = cuda.to_device(numbers()), cuda.device_array(N, "f4")
    run_scale(gpu, x, y)
    cl.synchronize()
    np.testing.assert_array_equal(y.copy_to_host(), numbers() * 2.5)


@pytest.mark.needs("torch", "cupy")
def test_frameworks_mix_in_one_call(gpu):
    import cupy
    import torch

    x = cupy.asarray(numbers())
    y = torch.empty(N, device="cuda")
    cupy.cuda.get_current_stream().synchronize()
    run_scale(gpu, x, y)
    np.testing.assert_array_equal(y.cpu().numpy(), numbers() * 2.5)


@pytest.mark.needs("torch")
def test_a_device_array_is_everybody_s(gpu):
    import torch

    array = cl.to_device(numbers())
    tensor = torch.from_dlpack(array)
    assert tensor.is_cuda
    tensor += 1
    torch.cuda.synchronize()
    np.testing.assert_array_equal(array.numpy(), numbers() + 1)
    np.testing.assert_array_equal(torch.as_tensor(array, device="cuda").cpu(), numbers() + 1)


# ---- arrays that are not plain memory, or read-only


@pytest.mark.needs("torch")
def test_a_lazy_view_of_torch_is_refused_until_it_is_resolved(gpu):
    import torch

    z = torch.tensor([1 + 2j] * N, device="cuda").to(torch.complex64)
    y = torch.zeros(N, device="cuda")
    lazy = z.conj().imag  # -2, held as 2
    with pytest.raises(TypeError, match=r"argument 1 of .*resolve_neg\(\)"):
        run_scale(gpu, lazy, y)
    with pytest.raises(TypeError, match=r"argument 0 of .*resolve_neg\(\)"):
        run_scale(gpu, y, torch._neg_view(y))
    assert not y.any()
    run_scale(gpu, lazy.resolve_neg().contiguous(), y)
    np.testing.assert_array_equal(y.cpu().numpy(), np.full(N, -2 * 2.5, "f4"))


@pytest.mark.needs("cupy")
def test_a_read_only_interface_is_not_written(gpu):
    import cupy

    class ReadOnly:
        def __init__(self, array):
            self.array = array
            x, _ = array.__cuda_array_interface__["data"]
            self.__cuda_array_interface__ = {
                **array.__cuda_array_interface__,
                "data": (x, True),
            }

    x, y = cupy.asarray(numbers()), cupy.zeros(N, "f4")
    with pytest.raises(TypeError, match="the array is read-only"):
        run_scale(gpu, x, ReadOnly(y))
    run_scale(gpu, ReadOnly(x), y)
    np.testing.assert_array_equal(y.get(), numbers() * 2.5)


def test_vectors_by_value():
    module = cl.load(
        cl.compile(
            "__global__ void two(float* o, float2 v) { o[0] = v.x; o[1] = v.y; }",
            names=["two"],
            arch="native",
        )
    )
    out = cl.empty(2, "f4")
    module["two"][1, 1](out, np.complex64(1.5 - 2.5j))
    assert out.numpy().tolist() == [1.5, -2.5]
    module["two"][1, 1](out, (ctypes.c_float * 2)(3, 4))
    assert out.numpy().tolist() == [3, 4]
    for wrong in (1.5, 3, out, None):
        with pytest.raises(
            TypeError, match=r"argument 1 of two, float2 \(8 bytes\), must be a ctypes"
        ):
            module["two"][1, 1](out, wrong)
