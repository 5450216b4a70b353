"""Exact counts of what launches execute, against numbers that follow from the kernel's text."""

import json

import numpy as np
import pytest

import culaunch as cl
from culaunch import testing

SOURCE = """
extern "C" __global__ void copy(float* y, const float* x, int stride, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i * stride];
}
extern "C" __global__ void banks(float* y, int stride) {
  extern __shared__ float box[];
  box[threadIdx.x * stride] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = box[threadIdx.x * stride];
}
extern "C" __global__ void wide(double2* y, const double2* x) {
  extern __shared__ double2 room[];
  room[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = room[31 - threadIdx.x];
}
extern "C" __global__ void tally(int* y, int kinds) { atomicAdd(&y[threadIdx.x % kinds], 1); }
extern "C" __global__ void part(int* y, int limit) {
  int i = threadIdx.x;
  if (i < limit) { for (int k = 0; k < i; ++k) y[i] += k; } else y[i] = -1;
}
extern "C" __global__ void saxpy(float* y, const float* x, float a) {
  int i = threadIdx.x;
  y[i] = a * x[i] + y[i];
}
"""


@pytest.fixture(scope="module", autouse=True)
def emulator():
    with testing.use_driver("emulator"):
        yield


@pytest.fixture(scope="module")
def module():
    return cl.load(cl.compile(SOURCE, arch="compute_80", line_info=True))


def total(call, *args):
    profile = testing.profile(call, *args)
    assert len(profile.kernels) == 1
    return profile.kernels[0].total


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (8, 32), (16, 32)])
def test_sectors_of_strided_loads(module, stride, sectors):
    x, y = np.zeros(16 * 64, np.float32), np.zeros(64, np.float32)
    x, y = cl.to_device(x), cl.to_device(y)
    profile = testing.profile(module["copy"][1, 64], y, x, stride, 64)
    kernel = profile.kernels[0]
    loads = [line for line in kernel.ptx if "ld.global" in line.text]
    stores = [line for line in kernel.ptx if "st.global" in line.text]
    # Two warps, each with 32 loads of 4 bytes.
    assert [(line.sectors, line.ideal_sectors) for line in loads] == [(2 * sectors, 8)]
    assert [(line.sectors, line.ideal_sectors) for line in stores] == [(8, 8)]
    assert kernel.total.global_bytes == 2 * 64 * 4
    assert kernel.total.global_requests == 4
    assert kernel.read_bytes == 2 * sectors * 32
    assert kernel.written_bytes == 256


def test_a_guard_that_is_false_moves_nothing(module):
    x, y = cl.to_device(np.ones(64, np.float32)), cl.to_device(np.zeros(64, np.float32))
    kernel = testing.profile(module["copy"][1, 64], y, x, 1, 5).kernels[0]
    assert kernel.total.global_bytes == 2 * 5 * 4
    assert kernel.total.sectors == 2
    assert kernel.total.divergent == 1  # the first warp; the second agrees
    assert kernel.total.branches == 2
    assert y.numpy().tolist() == [1] * 5 + [0] * 59


@pytest.mark.parametrize(
    ("stride", "conflicts"), [(1, 0), (2, 1), (3, 0), (4, 3), (8, 7), (32, 31), (33, 0)]
)
def test_bank_conflicts(module, stride, conflicts):
    y = cl.to_device(np.zeros(32, np.float32))
    launcher = module["banks"].configure(grid=1, block=32, shared_memory=4 * 33 * 32)
    counts = total(launcher, y, stride)
    # A store and a load.
    assert counts.bank_conflicts == 2 * conflicts
    assert (counts.shared_requests, counts.ideal_wavefronts) == (2, 2)
    assert counts.shared_bytes == 2 * 32 * 4


def test_a_word_that_all_threads_read_is_one_wavefront(module):
    y = cl.to_device(np.zeros(32, np.float32))
    with testing.emulator_options(check_uninitialized=False):
        counts = total(module["banks"].configure(grid=1, block=32, shared_memory=128), y, 0)
    assert (counts.wavefronts, counts.bank_conflicts) == (2, 0)


def test_wide_accesses_go_by_quarters_of_a_warp(module):
    x = cl.to_device(np.zeros((32, 2)))
    counts = total(
        module["wide"].configure(grid=1, block=32, shared_memory=512),
        cl.to_device(np.zeros((32, 2))),
        x,
    )
    assert (counts.wavefronts, counts.ideal_wavefronts) == (8, 8)
    assert (counts.sectors, counts.ideal_sectors) == (32, 32)


@pytest.mark.parametrize(("kinds", "passes"), [(1, 32), (4, 8), (32, 1), (5, 7)])
def test_contention_of_atomics(module, kinds, passes):
    y = cl.to_device(np.zeros(32, np.int32))
    counts = total(module["tally"][1, 64], y, kinds)
    assert counts.atomic_requests == 2
    assert counts.atomic_passes == 2 * passes
    assert y.numpy().sum() == 64


def test_active_lanes_and_divergence(module):
    y = cl.to_device(np.zeros(64, np.int32))
    kernel = testing.profile(module["part"][1, 64], y, 2).kernels[0]
    assert kernel.total.divergent >= 1
    (negative,) = [
        line for line in kernel.ptx if line.text.startswith("st.global") and line.active == 62
    ]
    assert negative.warps == 2
    assert negative.active_lanes == 31


def test_flops(module):
    x, y = cl.to_device(np.ones(32, np.float32)), cl.to_device(np.ones(32, np.float32))
    assert total(module["saxpy"][1, 32], y, x, 2.0).flops == 64
    assert y.numpy().tolist() == [3] * 32


MMA = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry products(.param .u64 out) {
.reg .b64 %at; .reg .b32 %a, %b; .reg .f32 %c, %d, %e, %f; .reg .pred %p;
ld.param.u64 %at, [out]; mov.b32 %a, 0; mov.b32 %b, 0;
mov.f32 %c, 0f00000000; mov.f32 %d, %c; mov.f32 %e, %c; mov.f32 %f, %c;
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%c, %d, %e, %f}, {%a, %b}, {%a}, {%c, %d, %e, %f};
setp.lt.u32 %p, %a, 0;
@%p add.f32 %c, %d, %e;
@!%p mul.f32 %c, %d, %e;
st.global.f32 [%at], %c; ret;
}
"""


def test_matrix_products_and_predicates():
    y = cl.to_device(np.zeros(1, np.float32))
    kernel = testing.profile(cl.load(MMA)["products"][1, 64], y).kernels[0]
    # Two warps: a product each, no addition, a multiplication for each thread.
    assert kernel.total.flops == 2 * (2 * 16 * 8 * 8) + 64
    active = {line.text.split()[1]: line.active for line in kernel.ptx if line.text.startswith("@")}
    assert active == {"add.f32": 0, "mul.f32": 64}


def test_lines_of_the_source(module, tmp_path):
    source = tmp_path / "twice.cu"
    source.write_text(
        'extern "C" __global__ void twice(float* x) {\n'
        "  int i = threadIdx.x;\n"
        "  x[i] = 2 * x[i];\n"
        "}\n"
    )
    image = cl.compile(source, arch="compute_80", line_info=True)
    x = cl.to_device(np.ones(32, np.float32))
    profile = testing.profile(cl.load(image)["twice"][1, 32], x)
    by_line = {line.line: line for line in profile.kernels[0].source}
    assert by_line[3].text == "x[i] = 2 * x[i];"
    assert by_line[3].sectors == 8
    assert sum(line.warps for line in by_line.values()) <= profile.kernels[0].total.warps
    assert "x[i] = 2 * x[i];" in str(profile)
    page = tmp_path / "page.html"
    profile.save(page)
    assert "<td" in page.read_text()
    assert "x[i] = 2 * x[i];" in page.read_text()
    json.dumps(profile.to_dict())


def test_the_text_of_a_source_in_memory(module):
    x, y = cl.to_device(np.ones(32, np.float32)), cl.to_device(np.ones(32, np.float32))
    line = SOURCE.splitlines().index("  y[i] = a * x[i] + y[i];") + 1
    profile = testing.profile(module["saxpy"][1, 32], y, x, 2.0)
    assert {row.line: row.text for row in profile.kernels[0].source}[line] == (
        "y[i] = a * x[i] + y[i];"
    )
    # Nobody has compiled this image here.
    image = cl.Image(module.image.data.rstrip(b"\0") + b"\n// other bytes\n")
    profile = testing.profile(cl.load(image)["saxpy"][1, 32], y, x, 2.0)
    assert all(row.text == "" for row in profile.kernels[0].source)
    assert "kernel.cu" in str(profile)
    texts = {row.line: row for row in profile.annotate(SOURCE).kernels[0].source}
    assert texts[line].text == "y[i] = a * x[i] + y[i];"
    assert texts[line].flops == 64
    with pytest.raises(ValueError, match=r"file must be .*'other.cu'\): kernel.cu"):
        profile.annotate(SOURCE, "other.cu")


def test_a_text_replaces_that_of_a_file_of_the_same_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.cu").write_text("another file\n" * 99)
    image = cl.compile(SOURCE, arch="compute_80", line_info=True, cache=False)
    x, y = cl.to_device(np.ones(32, np.float32)), cl.to_device(np.ones(32, np.float32))
    profile = testing.profile(cl.load(image)["saxpy"][1, 32], y, x, 2.0)
    assert {row.text for row in profile.kernels[0].source} <= set(
        map(str.strip, SOURCE.splitlines())
    )


def test_it_agrees_with_the_count_of_instructions(module):
    y = cl.to_device(np.zeros(64, np.int32))
    with testing.count_instructions() as count:
        module["part"][1, 64](y, 9)
    assert total(module["part"][1, 64], y, 9).threads == count.total


def test_several_kernels_and_launches(module):
    x, y = cl.to_device(np.ones(64, np.float32)), cl.to_device(np.zeros(64, np.float32))

    def work():
        for _ in range(3):
            module["copy"][1, 64](y, x, 1, 64)
        module["saxpy"][1, 32](y, x, 1.0)

    kernels = {kernel.name: kernel for kernel in testing.profile(work).kernels}
    assert {name: kernel.launches for name, kernel in kernels.items()} == {"copy": 3, "saxpy": 1}
    # The same memory each time.
    assert kernels["copy"].read_bytes == 256
    assert kernels["copy"].total.sectors == 3 * 16


def test_nothing_is_counted_afterwards(module):
    x, y = cl.to_device(np.ones(64, np.float32)), cl.to_device(np.zeros(64, np.float32))
    profile = testing.profile(lambda: None)
    module["copy"][1, 64](y, x, 1, 64)
    assert profile.kernels == ()
    assert str(profile) == "no launch"


@pytest.mark.parametrize("call", [None, 3, "kernel"])
def test_what_cannot_be_called_is_refused(call):
    with pytest.raises(TypeError, match=r"call must be a launcher, .*\(got "):
        testing.profile(call)


def test_other_drivers_cannot(monkeypatch):
    monkeypatch.setattr("culaunch._testing.emulator.driver_name", lambda: "cuda")
    with pytest.raises(RuntimeError, match="only on the emulator"):
        testing.profile(lambda: None)


@pytest.mark.parametrize("launches", [1, 2])
def test_bytes_of_arguments(module, launches):
    y, x = cl.zeros(64), cl.to_device(np.ones(64 * 3, np.float32))
    launcher = module["copy"][1, 64]
    # A byte counts once, however often it is accessed.
    profile = testing.profile(lambda: [launcher(y, x[:150], 3, 50) for _ in range(launches)])
    first, second = profile.kernels[0].arguments
    assert (first.index, first.size, first.read_bytes, first.written_bytes) == (0, 256, 0, 200)
    assert (second.index, second.size, second.read_bytes) == (1, 600, 200)
    assert second.written_bytes == 0


def test_bytes_of_several_arrays_of_one_argument_add_up(module):
    arrays = [np.zeros(kinds, np.int32) for kinds in (4, 8)]
    profile = testing.profile(lambda: [module["tally"][1, 4](one, 4) for one in arrays])
    (argument,) = profile.kernels[0].arguments
    assert (argument.size, argument.read_bytes, argument.written_bytes) == (48, 32, 32)
    assert "\nargument 0: of 48 bytes, 32 read, 32 written\n" in str(profile)
    assert "<br>argument 0: of 48 bytes, 32 read, 32 written</caption>" in profile._repr_html_()
    assert profile.to_dict()["kernels"][0]["arguments"][0]["written_bytes"] == 32


def test_instructions_by_kind(module):
    y = np.zeros(32, np.int32)
    counts = total(module["tally"][1, 32], y, 7)
    assert sum(counts.kinds.values()) == counts.warps
    assert (counts.kinds["atomic"], counts.kinds["control"]) == (1, 1)
    x, y = cl.to_device(np.ones(64, np.float32)), cl.to_device(np.ones(64, np.float32))
    profile = testing.profile(module["saxpy"][1, 64], y, x, 2.0)
    line = SOURCE.splitlines().index("  y[i] = a * x[i] + y[i];") + 1
    (found,) = [row for row in profile.kernels[0].source if row.line == line]
    # Two warps, each with an fma, and two loads and a store of global memory.
    assert (found.kinds["float"], found.kinds["memory"]) == (2, 6)
    assert "\ninstructions: " in str(profile)
    json.dumps(profile.to_dict())
