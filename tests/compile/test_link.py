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
