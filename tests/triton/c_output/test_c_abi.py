"""C output as an interface: it stays when variants are added, and does what it says."""

import ctypes
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sets import C_WARNINGS, changed, check_syntax, cuda_include, function, load, parameter, variant

import culaunch as cl
from culaunch import testing

pytestmark = pytest.mark.needs("gcc")


def declarations(header):
    """The functions and types of a header, without the comments."""
    text = re.sub(r"/\*.*?\*/", "", Path(header).read_text(), flags=re.DOTALL)
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    pieces = re.findall(r"typedef struct \{.*?\} \w+;|CUresult [^;]*;|int [^;]*;|const [^;]*;",
                        text, re.DOTALL)  # fmt: skip
    return {" ".join(one.split()) for one in pieces}


def entry_with(**more):
    return function(
        parameters=[parameter("x"), parameter("h"), parameter("n"),
                    parameter("BLOCK", constexpr=True), parameter("ACT", constexpr=True)],
        **more,
    )  # fmt: skip


def one(**more):
    plain = {
        "types": ["*fp32", "constexpr", "constexpr"], "keys": ["D", None, 1],
        "constants": {"BLOCK": 64, "ACT": "relu"},
    }  # fmt: skip
    return variant(**{**plain, **more})


ADDED = [
    one(arch="sm_90a"),
    one(constants={"BLOCK": 128, "ACT": None}),
    one(constants={"BLOCK": None, "ACT": 1.5}),
    one(options={"num_warps": 8, "maxnreg": 128}),
    one(types=["*fp32", "*fp32", "i32"], keys=["", "", "D"]),
    one(types=["*fp32", "*fp32", "i64"], keys=["", "", ""]),
    one(types=["*fp16", "*fp32", "i32"], keys=["", "", ""]),
    one(types=["*fp16", "*fp16", "i32"], keys=["", "", ""]),
]


@pytest.mark.parametrize("grid", [None, [["cdiv", ["value", "n"], 64]]])
def test_variants_that_are_added_leave_the_interface_as_it_is(tmp_path, grid):
    """Every function, with its parameters, and every type is still there."""
    more = {} if grid is None else {"grid": grid}
    before = declarations(load(entry_with(variants=[one()], **more)).write_c(tmp_path / "k")[1])
    assert any("const k_config *config, CUdeviceptr x" in line for line in before)
    for count in range(1, len(ADDED) + 1):
        entry = entry_with(variants=[one(), *ADDED[:count]], **more)
        source, header = load(entry).write_c(tmp_path / "k")
        now = declarations(header)
        assert before <= now, before - now
        before = now
        check_syntax(source, quick=True)
    assert {"k_fp32", "k_fp16_fp32", "k_fp16"} <= set(re.findall(r"k_fp[\w]+", header.read_text()))


@pytest.fixture(scope="module")
def null_driver():
    sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
    from overhead.build import build_null_driver

    return build_null_driver()  # an H100


def run_c(folder, program, sources, driver, flags=()):
    """Compile and run; the driver is the one that is given."""
    (folder / "main.c").write_text(
        '#include <stdio.h>\n#include <stdlib.h>\n#include "k.h"\n'
        "uint64_t fake_driver_launches(void);\n"
        "int fake_driver_declare(const char *name, int count, const size_t *sizes);\n"
        "int main(void) {\n  CUcontext context;\n  cuInit(0);\n"
        "  cuDevicePrimaryCtxRetain(&context, 0);\n  cuCtxSetCurrent(context);\n"
        f"{program}\n  return 0;\n}}\n"
    )
    subprocess.run(
        ["gcc", "-std=c99", *C_WARNINGS, *flags, "-o", folder / "main", folder / "main.c", *sources,
         f"-isystem{cuda_include()}", f"-I{folder}", driver, "-lm", "-lpthread",
         f"-Wl,-rpath,{driver.parent}"], check=True,
    )  # fmt: skip
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver.parent)}
    done = subprocess.run([folder / "main"], capture_output=True, text=True, check=True,
                          env=environment)  # fmt: skip
    return done.stdout.split()


@pytest.mark.needs("g++")
def test_configurations_are_enumerated_loaded_and_unloaded(tmp_path, null_driver):
    values = [
        {"BLOCK": 64, "ACT": "relu"}, {"BLOCK": 64, "ACT": "silu"}, {"BLOCK": 128, "ACT": "relu"},
        {"BLOCK": None, "ACT": "relu"},
    ]  # fmt: skip
    entry = entry_with(
        variants=[
            one(arch="sm_90a", types=["*fp32", "*fp32", "i32"], keys=["", "", ""], constants=value)
            for value in values
        ]
    )
    source, _ = load(entry).write_c(tmp_path / "k")
    said = run_c(
        tmp_path,
        """
  const size_t sizes[] = {8, 8, 4, 8, 8};
  fake_driver_declare("k", 5, sizes);
  printf("%d ", k_count());
  for (int i = 0; i < k_count(); ++i) {
    const k_config *one = k_config_at(i);
    printf("%d %d %d ", (int)one->BLOCK, (int)one->other, one->ACT == K_ANY);
    if (k(NULL, 2, 1, 1, one, 16, 32, 5) != CUDA_SUCCESS) return 1;
  }
  printf("%d %d ", k_config_at(-1) == NULL, k_config_at(4) == NULL);
  k_config own = {K_ANY, K_ANY, 0, 0, 0, 0}, none = {256, K_ANY, 0, 0, 0, 0};
  printf("%d %d ", k(NULL, 2, 1, 1, &own, 16, 32, 5), k(NULL, 2, 1, 1, &none, 16, 32, 5));
  printf("%d %d ", k_prepare(&own), k_prepare(&none));
  printf("%d %d %d ", k_load(), k_unload(), k_unload());
  own.num_warps = 8;
  printf("%d ", k(NULL, 2, 1, 1, &own, 16, 32, 5));
  own.num_warps = 4;
  printf("%d ", k(NULL, 2, 1, 1, &own, 16, 32, 5));
  printf("%d ", k(NULL, 2, 1, 1, NULL, 16, 32, INT64_C(1) << 31));
  printf("%d ", k(NULL, 0, 1, 1, NULL, 1, 1, 1));
  printf("%d\\n", (int)fake_driver_launches());""",
        [source],
        null_driver,
    )
    assert said[:13] == ["4", "64", "1", "1", "64", "2", "1", "128", "1", "1", "-1", "1", "1"]
    assert said[13:] == [*"11", *"01", *"01", *"000", "1", "0", "1", "0", "6"]


@pytest.mark.needs("g++")
@pytest.mark.parametrize("types", [["*fp32"], ["*fp32", "*fp16"]])
def test_the_default_takes_no_configuration(tmp_path, null_driver, types):
    """A kernel may have a parameter of its own name, which hides no function that is called."""
    entry = function(
        name="k",
        parameters=[parameter("k"), parameter("k_fp32"), parameter("k_fp32_default"),
                    parameter("BLOCK", constexpr=True)],
        grid=[["cdiv", ["value", "k_fp32"], 64]],
        variants=[
            variant(arch="sm_90a", types=[one, "i32", "i32"], keys=["", "", ""],
                    constants={"BLOCK": 64})
            for one in types
        ],
    )  # fmt: skip
    source, header = load(entry).write_c(tmp_path / "k")
    names = re.findall(r"CUresult (\w+_default)\(CUstream stream, CUdeviceptr", header.read_text())
    assert names == ["k_default"] if len(types) == 1 else ["k_fp32_default", "k_fp16_default",
                                                           "k_default"]  # fmt: skip
    said = run_c(
        tmp_path,
        """
  const size_t sizes[] = {8, 4, 4, 8, 8};
  fake_driver_declare("k", 5, sizes);
  printf("%d %d ", k_default(NULL, 16, 100, 1), k_default(NULL, 16, INT64_C(1) << 31, 1));
  printf("%d", (int)fake_driver_launches());""",
        [source],
        null_driver,
    )
    assert said == ["0", "1", "1"]


def test_a_configuration_that_must_say_a_value_has_no_default(tmp_path):
    entry = function(
        parameters=[parameter("x"), parameter("n"),
                    parameter("BLOCK", constexpr=True, heuristic=True)],
    )  # fmt: skip
    source, header = load(entry).write_c(tmp_path / "k")
    assert "must set BLOCK" in header.read_text()
    assert "k_default" not in header.read_text() + source.read_text()
    check_syntax(source, quick=True)


@pytest.mark.needs("g++")
def test_c_works_the_grid_and_the_heuristics_out(tmp_path, null_driver):
    entry = function(
        parameters=[parameter("x"), parameter("n"), parameter("BLOCK", constexpr=True),
                    parameter("EVEN", constexpr=True, heuristic=True)],
        variants=[
            variant(arch="sm_90a", constants={"BLOCK": block, "EVEN": even})
            for block, even in itertools.product((64, 128), (True, False))
        ],
        heuristics=[{"name": "EVEN", "early": False,
                     "value": ["==", ["%", ["value", "n"], ["value", "BLOCK"]], 0]}],
        grid=[["cdiv", ["value", "n"], ["value", "BLOCK"]], ["if", ["value", "EVEN"], 2, 3]],
    )  # fmt: skip
    source, header = load(entry).write_c(tmp_path / "k", prefix="")
    assert "CUresult k(CUstream stream, const k_config *config, CUdeviceptr x, int64_t n);" in (
        " ".join(header.read_text().split())
    )
    assert "EVEN" not in re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    text = source.read_text().replace(
        "static CUresult culaunch_launch(",
        "#include <stdio.h>\n#define culaunch_launch(v, d, s, x, y, z, a, c) "
        '(printf("%d %u %u %u ", (int)((v) - culaunch_variants), x, y, z), '
        "culaunch_do_launch(v, d, s, x, y, z, a, c))\n"
        "static CUresult culaunch_do_launch(",
    )  # fmt: skip
    source.write_text(text)
    said = run_c(
        tmp_path,
        """
  const size_t sizes[] = {8, 4, 8, 8};
  fake_driver_declare("k", 4, sizes);
  k_config small = {64, 0, 0, 0, 0}, large = {128, 0, 0, 0, 0};
  printf("%d ", k(NULL, &small, 16, 128));
  printf("%d ", k(NULL, &small, 16, 129));
  printf("%d ", k(NULL, &large, 16, 128));
  printf("%d ", k(NULL, &large, 16, 192));
  printf("%d ", k(NULL, NULL, 16, 0));
  printf("%d\\n", k(NULL, NULL, 16, -1000));""",
        [source],
        null_driver,
    )
    assert said == [*"02210", *"13310", *"21210", *"32310", *"00210", "1"]


def test_what_c_cannot_work_out(tmp_path):
    base = function(
        parameters=[parameter("x"), parameter("n"), parameter("BLOCK", constexpr=True)],
        grid=[["value", "n"]],
    )
    for expression, words in [
        (["/", ["value", "n"], 2], "cannot evaluate the grid"),
        (["constant", "text"], "cannot evaluate the grid"),
        (["value", "x"], "cannot evaluate the grid"),
        (["//", ["float", ["value", "n"]], 2], "cannot evaluate the grid"),
        (["min", ["value", "n"], 2.5], "cannot evaluate the grid"),
        (None, "cannot evaluate the grid"),
    ]:
        with pytest.raises(ValueError, match=words):
            load(changed(base, ("grid",), [expression])).write_c(tmp_path / "k")
    # A number that is None in another variant cannot be told from 0.
    entry = function(variants=[variant(), variant(types=["*fp32", "constexpr"], keys=["D", None])])
    with pytest.raises(ValueError, match="C cannot express argument n of type None or 1, i32"):
        load(entry).write_c(tmp_path / "k")


# ---- on the emulated driver


@pytest.fixture(scope="module")
def link(tmp_path_factory):
    """Compile C into a shared library of the driver in use."""
    folder = tmp_path_factory.mktemp("c_driver")
    driver = testing.c_driver(folder)

    def build(source, *more):
        library = Path(source).with_suffix(".so")
        subprocess.run(
            ["gcc", "-std=c99", *C_WARNINGS, "-shared", "-fPIC", f"-isystem{cuda_include()}", "-o",
             library, source, *more, driver, "-lm", f"-Wl,-rpath,{folder}"], check=True,
        )  # fmt: skip
        return ctypes.CDLL(library)

    build.path, build.driver = driver, None
    return build


@pytest.fixture
def emulator(link):
    """The emulated driver, with its device's context current, as a C program has it."""
    with testing.use_driver("emulator"):
        driver = link.driver = link.driver or ctypes.CDLL(link.path)
        context = ctypes.c_void_p()
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert driver.cuCtxPushCurrent_v2(context) == 0
        yield
        assert driver.cuCtxPopCurrent_v2(ctypes.byref(context)) == 0


needs_triton = pytest.mark.needs("triton", "torch", "g++", "numpy")


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("as_object", [False, True])
def test_c_on_the_emulated_driver(tmp_path, link, emulator, as_object):
    """Heuristics, a grid and two element types: results as through Python."""
    import decorated_kernels
    import numpy as np
    import triton

    from culaunch.triton import compile  # noqa: A004

    even = {"EVEN": lambda args: args["n"] % args["BLOCK"] == 0}
    made = compile(
        triton.heuristics(even)(decorated_kernels.guarded),
        ["*fp32:16, *fp32:16, i32", "*fp16:16, *fp16:16, i32"], arch="compute_80",
        constants={"BLOCK": 64}, grid="cdiv(n, BLOCK)",
    )  # fmt: skip
    written = made.write_c(tmp_path / "guard.c", name="guard", prefix="my_", as_object=as_object)
    assert [one.name for one in written] == ["guard.c", "guard.h", "guard_images.o"][: len(written)]
    assert len(written) == 2 + as_object
    assert as_object == (written[0].stat().st_size < 25_000)
    library = link(written[0], *written[2:])
    for dtype, call in ((np.float32, library.my_guard_fp32), (np.float16, library.my_guard_fp16),
                        (np.float32, library.my_guard)):  # fmt: skip
        call.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_uint64] * 2, ctypes.c_int64]
        for n in (64, 63, 5):
            x, out = (cl.to_device(np.full(64, value, dtype)) for value in (3, 0))
            assert call(None, None, x.address, out.address, n) == 0
            assert out.numpy().tolist() == [3] * n + [0] * (64 - n)
    assert library.my_guard_load() == 0
    assert library.my_guard_unload() == 0
    assert library.my_guard_count() == 1


@needs_triton
@pytest.mark.slow
def test_descriptors_in_c_on_the_emulated_driver(tmp_path, link, emulator):
    import numpy as np
    from descriptor_kernels import move

    from culaunch.triton import compile  # noqa: A004

    made = compile(
        move, "tensordesc<fp32[16, 32]>, tensordesc<fp32[16, 32]>, fp32",
        arch=["compute_80", "sm_90a"],
    )  # fmt: skip
    source, header = made.write_c(tmp_path / "move.c")
    check_syntax(source)
    assert "const culaunch_tensor_descriptor *" in header.read_text()
    assert "cuTensorMapEncodeTiled" in source.read_text()
    (tmp_path / "two.cc").write_text('#include "move.h"\n#include "move.h"\nint main() {}\n')
    check_syntax(tmp_path / "two.cc", language="c++")

    class Descriptor(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_uint64), ("shape", ctypes.c_int64 * 5),
            ("strides", ctypes.c_int64 * 5), ("fills_nan", ctypes.c_int),
            ("rounds_to_tf32", ctypes.c_int),
        ]  # fmt: skip

    library = link(source)
    x = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    a, b = cl.to_device(x), cl.to_device(np.zeros_like(x))
    ends = [Descriptor(one.address, (16, 32), (32, 1), 0, 0) for one in (a, b)]
    call = library.move
    call.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 3, ctypes.c_void_p,
                     *[ctypes.POINTER(Descriptor)] * 2, ctypes.c_float]  # fmt: skip
    assert call(None, 1, 1, 1, None, *map(ctypes.byref, ends), 2.0) == 0
    expected = {tuple((x * 2.0).flat), tuple((x + 2.0).flat)}
    assert tuple(b.numpy().flat) in expected or tuple(a.numpy().flat) in expected
    ends[0].shape[0] = -1
    assert call(None, 1, 1, 1, None, *map(ctypes.byref, ends), 2.0) == 1
    assert call(None, 1, 1, 1, None, None, ctypes.byref(ends[1]), 2.0) == 1


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("grid", [None, "blocks"])
def test_an_array_that_is_set_to_zero_before_each_launch(tmp_path, link, emulator, grid):
    """Its size stands behind it; a second launch gives what the first one gave."""
    import decorated_kernels
    import numpy as np
    import triton

    from culaunch.triton import compile  # noqa: A004

    tuner = triton.autotune(
        [triton.Config({"BLOCK": n}, pre_hook=lambda kw: kw["out_ptr"].zero_()) for n in (32, 64)],
        key=["n"],
    )(decorated_kernels.accumulate)
    grid = grid and "cdiv(n, 1024)"
    made = compile(tuner, "*fp32, *fp32, i32", arch="compute_80", grid=grid)
    source, header = made.write_c(tmp_path / "accumulate.c")
    check_syntax(source)
    assert "CUdeviceptr out_ptr, uint64_t out_ptr_bytes, int64_t n" in header.read_text()
    library = link(source)
    x, out = cl.to_device(np.arange(64, dtype="f4")), cl.to_device(np.ones(4, "f4"))
    call = library.accumulate
    dims = [] if grid else [ctypes.c_uint] * 3
    call.argtypes = [ctypes.c_void_p, *dims, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64,
                     ctypes.c_uint64, ctypes.c_int64]  # fmt: skip

    def launch(blocks, size, n):
        dims = [] if grid else [blocks, 1, 1]
        return call(None, *dims, None, x.address, out.address, size, n)

    for _ in range(2):
        assert launch(1, 4, 64) == 0
        assert out.numpy().tolist() == [2016, 1, 1, 1]
    assert launch(1, 16, 32) == 0
    assert out.numpy().tolist() == [496, 0, 0, 0]
    assert launch(0, 4, 0) == 0  # no block: what is to be zero is zero all the same
    assert out.numpy().tolist() == [0, 0, 0, 0]
    assert launch(1, 0, 64) == 0  # the caller has cleared it
    assert launch(1, 0, 64) == 0
    assert out.numpy()[0] == 2 * 2016
    if grid is None:
        assert call(None, 1, 65536, 1, None, x.address, out.address, 4, 64) == 1
        assert out.numpy()[0] == 2 * 2016  # refused before anything is done
