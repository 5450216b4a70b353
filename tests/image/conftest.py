"""Images that the tests share: compiled once per session, by NVRTC and nvFatbin."""

import subprocess
from pathlib import Path

import pytest

ARCHES = (
    "sm_75",
    "sm_80",
    "sm_86",
    "sm_89",
    "sm_90",
    "sm_90a",
    "sm_100",
    "sm_100a",
    "sm_100f",
    "sm_103a",
    "sm_120",
    "sm_121",
)

SOURCE = r"""
struct Big { char bytes[4100]; };
struct Mixed { double a; int b; float c; char d; };
struct Holder { float* p; };
enum Mode { OFF, ON };

extern "C" __global__ void many(float* p, const int* q, long long ll, unsigned u, int i, short s,
                                char c, bool b, float f, double d, Holder h, Mixed m, Mode e,
                                unsigned long long ull, float4 v, float2 w) {
  p[0] = q[0] + ll + u + i + s + c + b + f + d + h.p[0] + m.a + e + ull + v.x + w.y;
}

template <class T, int N>
__global__ void __launch_bounds__(128, 2) tile(T* p, const T* __restrict__ q, T x, int n) {
  __shared__ T s[N];
  s[threadIdx.x] = q[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = s[threadIdx.x ^ 1] * x + n;
}

extern "C" __global__ void frame(int* p, int n) {
  int a[100];
  for (int i = 0; i < 100; i++) a[i] = p[i];
  p[n] = a[p[n] & 63];
}

extern "C" __global__ void empty() {}
namespace { __global__ void hidden(float* p) { p[0] = 1; } }
extern "C" __global__ void large(Big b, float* p, Big c) { p[0] = b.bytes[7] + c.bytes[9]; }
extern __shared__ float dynamic[];
extern "C" __global__ void grows(float* p) {
  dynamic[threadIdx.x] = p[0];
  __syncthreads();
  p[1] = dynamic[threadIdx.x ^ 1];
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) pair(float* p) { p[blockIdx.x] = 1; }
extern "C" __global__ void __launch_bounds__(256, 1, 4) ranked(float* p) { p[blockIdx.x] = 1; }
#endif
"""
NAMES = ("tile<float, 32>", "tile<double, 64>", "hidden")


def nvrtc_compile(source, arch, *options, names=()):
    """Compile with NVRTC: (cubin, PTX without its trailing zero, lowered names)."""
    from cuda.bindings import nvrtc

    def call(function, *arguments):
        status, *results = function(*arguments)
        assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, f"{function.__name__}: {status}"
        return results[0] if results else None

    program = call(nvrtc.nvrtcCreateProgram, source.encode(), b"kernels.cu", 0, [], [])
    for name in names:
        call(nvrtc.nvrtcAddNameExpression, program, name.encode())
    flags = [f"-arch={arch}".encode(), *(option.encode() for option in options)]
    call(nvrtc.nvrtcCompileProgram, program, len(flags), flags)
    cubin = bytearray(call(nvrtc.nvrtcGetCUBINSize, program))
    ptx = bytearray(call(nvrtc.nvrtcGetPTXSize, program))
    for size, get, out in (
        (len(cubin), nvrtc.nvrtcGetCUBIN, cubin),
        (len(ptx), nvrtc.nvrtcGetPTX, ptx),
    ):
        buffer = b" " * size
        call(get, program, buffer)
        out[:] = buffer
    lowered = [call(nvrtc.nvrtcGetLoweredName, program, n.encode()).decode() for n in names]
    return bytes(cubin), bytes(ptx).rstrip(b"\0"), dict(zip(names, lowered, strict=True))


@pytest.fixture(scope="session")
def compiled():
    """Every architecture's cubin and PTX: {arch: (cubin, ptx)}."""
    return {arch: nvrtc_compile(SOURCE, arch, names=NAMES)[:2] for arch in ARCHES}


@pytest.fixture(scope="session")
def relocatable():
    """Relocatable cubins: {arch: cubin}."""
    return {
        arch: nvrtc_compile(SOURCE, arch, "-rdc=true", names=NAMES)[0]
        for arch in ("sm_80", "sm_90", "sm_100")
    }


@pytest.fixture(scope="session")
def nvrtc():
    """The function that compiles: ``nvrtc(source, arch, *options, names=())``."""
    return nvrtc_compile


@pytest.fixture(scope="session")
def make_fatbin(compiled):
    """A function that makes a fatbin with nvFatbin: ``make_fatbin(*options)``."""
    from cuda.bindings import nvfatbin

    def make(*options):
        flags = ["-64", *options]
        handle = nvfatbin.create(flags, len(flags))
        for arch in ("sm_80", "sm_90a", "sm_100f"):
            cubin = compiled[arch][0]
            nvfatbin.add_cubin(handle, cubin, len(cubin), arch[3:], "kernels.cu")
        ptx = compiled["sm_90"][1] + b"\0"
        nvfatbin.add_ptx(handle, ptx, len(ptx), "90", "kernels.cu", "")
        data = bytearray(nvfatbin.size(handle))
        nvfatbin.get(handle, data)
        nvfatbin.destroy(handle)
        return bytes(data)

    return make


@pytest.fixture(scope="session")
def cuobjdump():
    """A function that runs pip's cuobjdump and returns what it prints."""
    from cuda.pathfinder import find_nvidia_binary_utility

    program = find_nvidia_binary_utility("cuobjdump")
    assert program, "the test extra has nvidia-cuda-cuobjdump"

    def run(*arguments):
        return subprocess.run(
            [program, *arguments], check=True, capture_output=True, text=True
        ).stdout

    return run


@pytest.fixture(scope="session")
def data():
    """The folder of images of older toolkits."""
    return Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def libcurand():
    """The largest library with CUDA code among the test extra's packages."""
    import nvidia

    found = [p for root in nvidia.__path__ for p in Path(root).glob("**/libcurand.so.10")]
    assert found, "the test extra has nvidia-curand"
    return found[0]
