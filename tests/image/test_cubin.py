"""Cubins: every fact of a kernel agrees with what NVIDIA's own tools say."""

import re
import struct

import pytest

import culaunch as cl

# The output of `ptxas -v` for the files of data/: registers of both kernels.
STORED = {
    "sm_75-12.8": ("sm_75", "12.8", 8),
    "sm_90a-12.9": ("sm_90a", "12.9", 10),
    "sm_100a-12.8": ("sm_100a", "12.8", 10),
    "sm_100f-12.9": ("sm_100f", "12.9", 10),
    "sm_90-12.9-relocatable": ("sm_90", "12.9", 13),
}
RESERVED = 1024


def only(data):
    (image,) = cl.inspect(data).images
    return image


def kernels_of(data):
    return {kernel.name: kernel for kernel in only(data).kernels}


@pytest.fixture(scope="session", params=range(12))
def arch_and_cubin(request, compiled):
    arch = list(compiled)[request.param]
    return arch, compiled[arch][0]


def test_architecture_and_toolkit(arch_and_cubin):
    arch, cubin = arch_and_cubin
    image = only(cubin)
    assert (image.format, image.arch, image.relocatable) == ("cubin", arch, False)
    assert (image.size, image.compressed) == (len(cubin), False)
    assert re.fullmatch(r"1[34]\.\d", image.toolkit)
    assert {kernel.toolkit for kernel in image.kernels} == {image.toolkit}


def test_resources_agree_with_cuobjdump(arch_and_cubin, cuobjdump, tmp_path):
    arch, cubin = arch_and_cubin
    path = tmp_path / "kernels.cubin"
    path.write_bytes(cubin)
    text = cuobjdump("-res-usage", str(path))
    pattern = r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)"
    expected = {name: tuple(map(int, rest)) for name, *rest in re.findall(pattern, text)}
    reserved = RESERVED if int(re.sub(r"\D", "", arch)) >= 90 else 0
    found = {
        kernel.name: (kernel.registers, kernel.stack, kernel.static_shared + reserved)
        for kernel in only(cubin).kernels
    }
    assert found == expected
    assert len(found) >= 8


def test_attributes_agree_with_cuobjdump(arch_and_cubin, cuobjdump, tmp_path):
    """Parameters, thread limits and clusters, from the dump of each kernel's attributes."""
    _, cubin = arch_and_cubin
    path = tmp_path / "kernels.cubin"
    path.write_bytes(cubin)
    sections = re.split(r"^\.nv\.info\.", cuobjdump("-elf", str(path)), flags=re.MULTILINE)[1:]
    expected = {}
    for section in sections:
        name = section.split()[0]
        section = section.partition("\n\n\n")[0]
        params = re.findall(r"Ordinal : (0x\w+)\s+Offset\s+: (0x\w+)\s+Size\s+: (0x\w+)", section)
        ordered = sorted(tuple(int(number, 16) for number in param) for param in params)
        expected[name] = (
            [param[1:] for param in ordered],
            *(dims(section, title) for title in ("MAX_THREADS", "REQNTID", "CTA_PER_CLUSTER")),
        )
    found = {
        kernel.name: (
            [(param.offset, param.size) for param in kernel.parameters],
            kernel.max_threads,
            kernel.required_threads,
            kernel.cluster,
        )
        for kernel in only(cubin).kernels
    }
    assert found == {name: expected[name] for name in found}


def dims(section, title):
    found = re.search(rf"EIATTR_{title}\s+Format:.*\s+Value:((?:\s+0x\w+)+)", section)
    return tuple(int(number, 16) for number in found[1].split()) if found else None


def test_shared_memory_is_what_the_source_says(arch_and_cubin):
    kernels = kernels_of(arch_and_cubin[1])
    assert kernels["_Z4tileIfLi32EEvPT_PKS0_S0_i"].static_shared == 32 * 4
    assert kernels["_Z4tileIdLi64EEvPT_PKS0_S0_i"].static_shared == 64 * 8
    assert kernels["grows"].static_shared == 0
    assert kernels["empty"].static_shared == 0


def test_limits_are_what_the_source_says(arch_and_cubin):
    arch, cubin = arch_and_cubin
    kernels = kernels_of(cubin)
    assert kernels["_Z4tileIfLi32EEvPT_PKS0_S0_i"].max_threads == (128, 1, 1)
    assert kernels["_Z4tileIfLi32EEvPT_PKS0_S0_i"].barriers == 1
    assert kernels["empty"].barriers == 0
    if arch in ("sm_80", "sm_90", "sm_100"):  # the others keep the array in registers
        assert kernels["frame"].stack == 400
    assert kernels["empty"].max_cluster_rank is None
    if int(re.sub(r"\D", "", arch)) >= 90:
        assert kernels["pair"].cluster == (2, 1, 1)
        assert kernels["ranked"].max_cluster_rank == 4
        assert kernels["ranked"].max_threads == (256, 1, 1)


def test_types_come_from_the_mangled_name(arch_and_cubin):
    kernels = kernels_of(arch_and_cubin[1])
    types = [param.type for param in kernels["_Z4tileIfLi32EEvPT_PKS0_S0_i"].parameters]
    assert types == ["float*", "const float*", "float", "int"]
    hidden = next(kernel for name, kernel in kernels.items() if "hidden" in name)
    assert hidden.demangled == "(anonymous namespace)::hidden(float*)"
    assert [param.type for param in hidden.parameters] == ["float*"]
    assert kernels["empty"].parameters == ()


@pytest.mark.parametrize(
    ("ordinal", "offset", "moved"),
    [(1, 8, 4), (1, 8, 0), (2, 16, 15), (3, 20, 19), (3, 20, 21), (3, 20, 4000)],
)
def test_parameters_that_overlap_or_leave_their_memory_are_refused(
    compiled, ordinal, offset, moved
):
    record = re.compile(
        rb"\x04\x17\x0c\0.{4}" + re.escape(struct.pack("<HH", ordinal, offset)), re.DOTALL
    )
    whole = bytearray(compiled["sm_80"][0])
    places = [found.end() for found in record.finditer(whole)]
    assert places
    for place in places:
        changed = whole.copy()
        changed[place - 2 : place] = struct.pack("<H", moved)
        with pytest.raises(cl.ImageError, match=rf"parameter {ordinal} at {moved} with \d+ bytes"):
            cl.inspect(bytes(changed))


def test_an_unmangled_name_tells_no_types_but_new_compilers_mark_pointers(arch_and_cubin):
    arch, cubin = arch_and_cubin
    kernels = kernels_of(cubin)
    pointer = "void*" if int(re.sub(r"\D", "", arch)) >= 100 else None
    types = [param.type for param in kernels["many"].parameters]
    # The struct that holds a pointer is no pointer, nor are the 64-bit integers.
    assert types == [pointer, pointer] + [None] * 14
    # More than 4352 bytes of parameters are in another form of record.
    assert [(p.offset, p.size, p.type) for p in kernels["large"].parameters] == [
        (0, 4100, None),
        (4104, 8, pointer),
        (4112, 4100, None),
    ]


def test_relocatable(relocatable):
    for arch, cubin in relocatable.items():
        image = only(cubin)
        assert (image.arch, image.relocatable) == (arch, True)
        kernels = kernels_of(cubin)
        # The linker decides; only a number that is certain is shown.
        assert kernels["_Z4tileIfLi32EEvPT_PKS0_S0_i"].static_shared is None
        assert len(kernels["many"].parameters) == 16


@pytest.mark.parametrize("name", STORED)
def test_older_toolkits(name, data):
    arch, toolkit, registers = STORED[name]
    image = only(data / f"{name}.cubin")
    assert (image.arch, image.toolkit) == (arch, toolkit)
    assert image.relocatable == name.endswith("relocatable")
    fixed, tile = image.kernels
    assert (fixed.name, fixed.registers, fixed.required_threads) == ("fixed", 4, (32, 4, 2))
    assert (fixed.parameters, fixed.static_shared or 0, fixed.barriers) == ((), 0, 0)
    assert (tile.registers, tile.max_threads, tile.barriers) == (registers, (128, 2, 1), 1)
    assert tile.static_shared == (None if image.relocatable else 512)
    assert tile.stack == (64 if image.relocatable else 0)
    assert tile.toolkit == toolkit
    assert [(p.offset, p.size, p.type) for p in tile.parameters] == [
        (0, 8, "float*"),
        (8, 8, "const float*"),
        (16, 4, "unsigned int"),
        (20, 4, "float"),
        (24, 2, "unsigned short"),
    ]


def test_many_sections_use_extended_numbers(compiled):
    """A file of more than 65279 sections keeps their number in the first section header."""
    cubin = bytearray(compiled["sm_80"][0])
    count = int.from_bytes(cubin[60:62], "little")
    names = int.from_bytes(cubin[62:64], "little")
    table = int.from_bytes(cubin[40:48], "little")
    cubin[60:62] = b"\0\0"
    cubin[62:64] = b"\xff\xff"
    cubin[table + 32 : table + 40] = count.to_bytes(8, "little")
    cubin[table + 40 : table + 44] = names.to_bytes(4, "little")
    assert cl.inspect(cubin).images[0].kernels == only(compiled["sm_80"][0]).kernels
