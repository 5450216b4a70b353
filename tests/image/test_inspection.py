"""``culaunch.inspect``: every source, every container, the layout of the JSON."""

import json
import subprocess

import pytest

import culaunch as cl


def test_sources_agree(tmp_path, compiled):
    cubin = compiled["sm_90"][0]
    path = tmp_path / "kernel.cubin"
    path.write_bytes(cubin)
    by_path = cl.inspect(path)
    assert by_path.path == str(path)
    assert by_path.format == "cubin"
    image = cl.Image.open(path)
    assert cl.inspect(image) == cl.inspect(str(path)) == by_path
    by_bytes = cl.inspect(cubin)
    assert by_bytes.path is None
    assert by_bytes.images == by_path.images == cl.inspect(memoryview(cubin)).images
    assert image.kernels == by_path.images[0].kernels


def test_json_layout(compiled):
    """The layout is public: a change of it is a change of what users parse."""
    inspection = cl.inspect(compiled["sm_90"][0])
    plain = json.loads(json.dumps(inspection.to_dict()))
    assert list(plain) == ["path", "format", "images"]
    (image,) = plain["images"]
    assert list(image) == ["format", "arch", "size", "compressed", "kernels", "variables"]
    kernel = next(k for k in image["kernels"] if k["name"] == "_Z4tileIfLi32EEvPT_PKS0_S0_i")
    assert kernel == {
        "name": "_Z4tileIfLi32EEvPT_PKS0_S0_i",
        "demangled": "void tile<float, 32>(float*, float const*, float, int)",
        "parameters": [
            {"offset": 0, "size": 8, "type": "float*"},
            {"offset": 8, "size": 8, "type": "const float*"},
            {"offset": 16, "size": 4, "type": "float"},
            {"offset": 20, "size": 4, "type": "int"},
        ],
        "registers": kernel["registers"],
        "static_shared": 128,
        "stack": 0,
        "barriers": 1,
        "max_threads": [128, 1, 1],
        "required_threads": None,
        "cluster": None,
        "toolkit": image["kernels"][0]["toolkit"],
    }
    assert kernel["registers"] > 0


def test_ptx_says_null_where_it_does_not_know(compiled):
    (image,) = cl.inspect(compiled["sm_90"][1]).to_dict()["images"]
    assert (image["format"], image["arch"]) == ("ptx", "compute_90")
    for kernel in image["kernels"]:
        assert kernel["registers"] is kernel["static_shared"] is kernel["stack"] is None


def test_signatures_that_an_image_carries_are_shown(compiled, tmp_path):
    cubin = compiled["sm_80"][0]
    image = cl.Image(cubin, signatures={"grows": ("float*",), "frame": ("int*", None)})
    path = tmp_path / "kernels.cubin"
    image.save(path)
    for source in (image, path, path.read_bytes()):
        kernels = {kernel.name: kernel for kernel in cl.inspect(source).images[0].kernels}
        assert [param.type for param in kernels["grows"].parameters] == ["float*"]
        assert [param.type for param in kernels["frame"].parameters] == ["int*", None]
    # One that does not agree with the image is not believed.
    wrong = cl.Image(cubin, signatures={"grows": ("int",), "frame": ("int*",)})
    kernels = {kernel.name: kernel for kernel in wrong.kernels}
    assert kernels["grows"].parameters[0].type is None
    assert kernels["frame"].parameters[0].type is None


@pytest.mark.needs("gcc")
def test_objects_and_libraries_of_the_host(tmp_path, make_fatbin):
    """Objects of nvcc: fatbins in a section of their own, several in a library."""
    fatbin = make_fatbin()
    (tmp_path / "one.fatbin").write_bytes(fatbin)
    (tmp_path / "one.s").write_text(
        '.section .nv_fatbin, "a"\n.balign 8\n.incbin "one.fatbin"\n.balign 64\n'
        '.incbin "one.fatbin"\n.section __nv_relfatbin, "a"\n.incbin "one.fatbin"\n'
        '.section .note.GNU-stack,"",%progbits\n'
    )
    subprocess.run(["gcc", "-c", "one.s", "-o", "one.o"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "-shared", "one.o", "-o", "one.so"], cwd=tmp_path, check=True)
    expected = cl.inspect(fatbin).images * 3
    for name in ("one.o", "one.so"):
        inspection = cl.inspect(tmp_path / name)
        assert (inspection.format, inspection.images) == ("elf", expected)
    with pytest.raises(cl.ImageError, match="a host object or library, which the driver cannot"):
        cl.Image.open(tmp_path / "one.so")


@pytest.mark.needs("gcc")
def test_a_host_object_without_cuda_code(tmp_path):
    (tmp_path / "none.c").write_text("int answer(void) { return 42; }\n")
    subprocess.run(["gcc", "-c", "none.c", "-o", "none.o"], cwd=tmp_path, check=True)
    with pytest.raises(cl.ImageError, match=r"none\.o: is a host object .* without CUDA code"):
        cl.inspect(tmp_path / "none.o")


@pytest.mark.slow
def test_a_large_library(libcurand, cuobjdump):
    """Real code of another team, with every architecture: the counts are those of cuobjdump."""
    inspection = cl.inspect(libcurand)
    cubins = [image for image in inspection.images if image.format == "cubin"]
    ptx = [image for image in inspection.images if image.format == "ptx"]
    assert len(cubins) == cuobjdump("-lelf", str(libcurand)).count("ELF file") > 50
    assert len(ptx) == cuobjdump("-lptx", str(libcurand)).count("PTX file") > 0
    assert all(image.compressed for image in ptx)
    assert all(image.toolkit for image in cubins)
    names = {kernel.name for image in cubins for kernel in image.kernels}
    assert names == {kernel.name for image in ptx for kernel in image.kernels}
    by_name = {}
    for image in inspection.images:
        for kernel in image.kernels:
            layout = [(param.offset, param.size) for param in kernel.parameters]
            assert by_name.setdefault(kernel.name, layout) == layout


@pytest.mark.slow
def test_a_large_library_agrees_with_cuobjdump(libcurand, cuobjdump):
    import re

    text = cuobjdump("-res-usage", str(libcurand))
    pattern = r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)|^arch = (sm_\w+)$"
    expected = []
    arch = ""
    for name, registers, stack, shared, found in re.findall(pattern, text, re.MULTILINE):
        arch = found or arch
        if name:
            reserved = 1024 if int(arch[3:]) >= 90 else 0
            shared = max(0, int(shared) - reserved)
            expected.append((arch, name, int(registers), int(stack), shared))
    found = [
        (image.arch, kernel.name, kernel.registers, kernel.stack, kernel.static_shared)
        for image in cl.inspect(libcurand).images
        if image.format == "cubin"
        for kernel in image.kernels
    ]
    assert sorted(found) == sorted(expected)
    assert len(found) > 200
