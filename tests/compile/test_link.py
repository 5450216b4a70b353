"""``link``: LTO and relocatable images, PTX, and what goes wrong."""

import subprocess

import pytest

import culaunch as cl

CALLER = """
extern "C" __device__ float twice(float x);
extern "C" __global__ void k(float* y) { y[threadIdx.x] = twice(y[threadIdx.x]); }
"""
CALLEE = 'extern "C" __device__ float twice(float x) { return 2 * x; }'


@pytest.mark.parametrize("kind", ["lto", "relocatable"])
def test_two_images_make_one(cache, kind):
    parts = [
        cl.compile(source, arch="sm_90", cache=cache, **{kind: True}) for source in (CALLER, CALLEE)
    ]
    image = cl.link(parts, arch="sm_90", cache=cache)
    assert (image.format, image.arch) == ("cubin", ("sm_90",))
    assert [kernel.name for kernel in image.kernels] == ["k"]
    assert cl.link(parts, arch="sm_90", cache=cache) == image
    assert cache.info().entries == 3


def test_lto_inlines_across_images(cache):
    sources = (CALLER, CALLEE)
    sizes = {}
    for kind in ("lto", "relocatable"):
        parts = [cl.compile(text, arch="sm_90", cache=cache, **{kind: True}) for text in sources]
        sizes[kind] = len(cl.link(parts, arch="sm_90", cache=cache).data)
    assert sizes["lto"] < sizes["relocatable"]


def test_ptx_to_cubin_keeps_names_and_signatures(cache, scale, tmp_path):
    source = scale + 'extern "C" __global__ void plain(float* x, int n) {}'
    ptx = cl.compile(source, arch="compute_80", names=["scale<float>"], cache=cache)
    image = cl.link(ptx, arch=["sm_80", "sm_90"], cache=cache)
    assert (image.format, image.arch) == ("fatbin", ("sm_80", "sm_90"))
    assert image.names == ptx.names
    assert image.signatures == {"plain": ("float*", "int")}
    ptx.save(tmp_path / "k.ptx")
    assert cl.link(tmp_path / "k.ptx", arch="sm_80", cache=cache).names == ptx.names


@pytest.mark.slow
@pytest.mark.needs("nvcc")
def test_host_objects_and_archives(cache, tmp_path):
    (tmp_path / "callee.cu").write_text(CALLEE)
    nvcc = ["nvcc", "-arch=sm_90", "-dc", "callee.cu", "-o", "callee.o"]
    subprocess.run(nvcc, cwd=tmp_path, check=True)
    subprocess.run(["ar", "rcs", "libcallee.a", "callee.o"], cwd=tmp_path, check=True)
    caller = cl.compile(CALLER, arch="sm_90", relocatable=True, cache=cache)
    for name in ("callee.o", "libcallee.a"):
        image = cl.link([caller, tmp_path / name], arch="sm_90", cache=cache)
        assert [kernel.name for kernel in image.kernels] == ["k"]


def test_contents_and_options_are_in_the_key(cache):
    caller = cl.compile(CALLER, arch="sm_90", relocatable=True, cache=cache)
    for factor in (2, 3):
        text = CALLEE.replace("2", str(factor))
        callee = cl.compile(text, arch="sm_90", relocatable=True, cache=cache)
        before = cache.info().entries
        cl.link([caller, callee], arch="sm_90", cache=cache)
        cl.link([caller, callee], arch="sm_90", maxrregcount=32, cache=cache)
        assert cache.info().entries == before + 2


def test_options_reach_the_linker_as_they_are(cache):
    caller = cl.compile(CALLER, arch="sm_90", relocatable=True, cache=cache)
    callee = cl.compile(CALLEE, arch="sm_90", relocatable=True, cache=cache)
    before = cache.info().entries
    for option in ("-maxrregcount=24", "-lineinfo"):
        cl.link([caller, callee], arch="sm_90", extra_options=[option], cache=cache)
    assert cache.info().entries == before + 2
    with pytest.raises(cl.CompileError, match=r"refused .*-use_fast_math"):
        cl.link([caller, callee], arch="sm_90", extra_options=["-use_fast_math"], cache=cache)
    with pytest.raises(ValueError, match="use lto for it"):
        cl.link([caller, callee], arch="sm_90", extra_options=["-dlto"], cache=cache)
    with pytest.raises(TypeError, match="debug must be True or False"):
        cl.link([caller, callee], arch="sm_90", debug="no", cache=cache)


def test_what_goes_wrong(cache, scale, tmp_path):
    caller = cl.compile(CALLER, arch="sm_90", relocatable=True, cache=cache)
    with pytest.raises(cl.CompileError, match="Undefined reference to 'twice'") as info:
        cl.link(caller, arch="sm_90", cache=cache)
    assert "options: -arch=sm_90" in str(info.value)
    with pytest.raises(cl.CompileError, match="refused -arch=sm_999"):
        cl.link(caller, arch="sm_999", cache=cache)
    with pytest.raises(ValueError, match="name an architecture sm_"):
        cl.link(caller, arch="compute_90", cache=cache)
    with pytest.raises(ValueError, match="images is empty"):
        cl.link([], arch="sm_90", cache=cache)
    with pytest.raises(cl.ImageError):
        cl.link(b"not an image", arch="sm_90", cache=cache)
    with pytest.raises(FileNotFoundError):
        cl.link(tmp_path / "nothing.o", arch="sm_90", cache=cache)
    ptx = cl.Image(b".version 99.0\n.target sm_80\n")
    with pytest.raises(cl.CompileError, match=r"Unsupported .version 99\.0"):
        cl.link(ptx, arch="sm_90", cache=cache)


DEFINE_TWICE = [
    ('extern "C" __global__ void same(int* x) {{ *x = {0}; x[{0}] = 7; }}', "same"),
    (
        """__device__ __noinline__ int same(int x) {{ return x % {0}3; }}
        __global__ void k{0}(int* x) {{ *x = same(*x); }}""",
        "_Z4samei",
    ),
    ("__device__ int same = {0}; __global__ void k{0}(int* x) {{ *x = same; }}", "same"),
    ("__constant__ int same = {0}; __global__ void k{0}(int* x) {{ *x = same; }}", "same"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("source", "symbol"), DEFINE_TWICE)
def test_what_two_images_define_is_an_error_and_is_not_kept(cache, source, symbol):
    parts = [
        cl.compile(source.format(n), relocatable=True, arch="sm_80", cache=cache) for n in (1, 2)
    ]
    before = cache.info().entries
    with pytest.raises(cl.CompileError, match=f"'{symbol}' is defined in input 0 and in input 1"):
        cl.link(parts, arch="sm_80", cache=cache)
    assert cache.info().entries == before


def test_a_kernel_that_two_ptx_images_define_is_an_error(cache, tmp_path):
    source = 'extern "C" __global__ void same(int* x) { *x = 1; }'
    part = cl.compile(source, relocatable=True, arch="compute_80", cache=cache)
    part.save(tmp_path / "first.ptx")
    with pytest.raises(
        cl.CompileError, match=r"'same' is defined in .*first.ptx and in input 1"
    ) as e:
        cl.link([tmp_path / "first.ptx", part], arch="sm_80", cache=False)
    assert e.value.log == f"'same' is defined in {tmp_path}/first.ptx and in input 1"


def test_what_may_be_there_twice_links(cache):
    # Instances of templates, inline and static functions, constants, dynamic shared memory.
    source = """
        extern __shared__ int s[];
        template <class T> __global__ void instance(T* x) { *x = 1; }
        template __global__ void instance<int>(int*);
        inline __device__ __noinline__ int inlined(int x) { return x * 3; }
        static __device__ __noinline__ int mine(int x) { return x * 5; }
        static __device__ int variable = 3;
        static __constant__ int constant = 4;
        struct Base { __device__ virtual int f() { return 1; } };
        __device__ int shared_by_all(int);
        extern "C" __global__ void k%d(int* x) {
          Base b; Base* p = &b; asm volatile("" : "+l"(p));
          s[threadIdx.x] = inlined(*x) + mine(*x) + variable + constant + p->f();
          __syncthreads();
          printf("%%d %%s", s[0], __func__);
          *x = shared_by_all(s[1]);
        }
        %s
    """
    define = "__device__ int shared_by_all(int x) { return x; }"
    parts = [
        cl.compile(source % (n, "" if n else define), relocatable=True, arch="sm_80", cache=cache)
        for n in (0, 1)
    ]
    image = cl.link(parts, arch="sm_80", cache=cache)
    assert {kernel.name for kernel in image.kernels} == {"k0", "k1", "_Z8instanceIiEvPT_"}


@pytest.mark.parametrize(
    ("error", "keywords"),
    [
        (TypeError, {"images": None}),
        (TypeError, {"images": 3}),
        (ValueError, {"images": []}),
        (TypeError, {"debug": "no"}),
        (TypeError, {"line_info": "no"}),
        (TypeError, {"maxrregcount": "32"}),
        (ValueError, {"maxrregcount": 0}),
        (TypeError, {"extra_options": "-lto"}),
        (TypeError, {"extra_options": None}),
        (ValueError, {"extra_options": ["-arch=sm_90"]}),
    ],
)
def test_a_mistake_in_an_argument_of_link_is_named(error, keywords):
    call = {"images": b".version 8.0\n.target sm_80\n.address_size 64\n", **keywords}
    with pytest.raises(error, match=f"^{next(iter(keywords))}"):
        cl.link(**call, arch="sm_80", cache=False)


@pytest.mark.parametrize("images", [None, 3, b".version 8.0", "k.cubin"])
def test_a_fatbin_is_made_of_a_list(images):
    with pytest.raises(TypeError, match="images must be a list of images"):
        cl.compiling.fatbin(images)
