"""A set as C, where names and values are anything that Python or a file can say."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest
from full_disks import no_file_larger_than
from hypothesis import strategies as st
from sets import changed, check_syntax, cuda_include, function, load, parameter, variant

import culaunch as cl
from culaunch._triton.c_output.names import c_identifier, c_include, c_string

pytestmark = pytest.mark.needs("gcc")

# Names that are valid in Python, and in C invalid or something else.
TAKEN = """
    double struct union enum typedef extern inline restrict goto sizeof _Bool int main register
    default switch asm static_assert template this new class operator delete namespace typename
    concept co_await nullptr wchar_t
    find_device any_fits device_fits VARIANTS CUresult NULL INT32_MIN launch prepare mutex variants
    culaunch_launch culaunch_variants culaunch_code scratch arguments capability device code
    stream stream_ stream_arg grid_x config CUstream CUDA_SUCCESS cuInit int32_t int64_t size_t
    memset exp expf log index y0 time gamma pthread_create errno assert linux unix I M_PI SIZE_MAX
    __FILE__ __LINE__ __attribute__ _Complex k k_config k_choose k_fp32 K_BLOCK BLOCK x_ptr_0
    größe 名前 _u5f_ a_ue4_ ª
"""
NAMES = TAKEN.split()


def named(name, place):
    """A set with a name in one of the places where a file has names."""
    entry = function(
        parameters=[parameter("x"), parameter("n"), parameter("BLOCK", constexpr=True),
                    parameter("W", constexpr=True)],
        variants=[variant(constants={"BLOCK": size, "W": 1}) for size in (64, 128)],
    )  # fmt: skip
    paths = {
        "function": ("name",),
        "launch": ("variants", 0, "launch", "name"),
        "pointer": ("parameters", 0, "name"),
        "number": ("parameters", 1, "name"),
        "type": ("variants", 0, "types", 1),
        "arch": ("variants", 0, "arch"),
        "version": ("variants", 0, "launch", "triton_version"),
        "annotation": ("parameters", 1, "annotation"),
    }
    if place in paths:
        return changed(entry, paths[place], name)
    if place == "option":
        for number, one in enumerate(entry["variants"]):
            one["options"] = {name: number}
        return entry
    old = {"constant": "BLOCK", "macro": "W"}[place]
    return json.loads(json.dumps(entry).replace(f'"{old}"', json.dumps(name)))


PLACES = ("function", "launch", "pointer", "number", "type", "arch", "version", "annotation",
          "option", "constant", "macro")  # fmt: skip
HOSTILE = [
    (
        'k", 80, \'M\', 128, 1, 0, 0, 0, 0, 0, NULL, NULL, 0}};\n'
        '__attribute__((constructor)) static void pwned(void) {system("id");}\n/*'
    ),
    "x; system(0); int pwned", "*/ int pwned; /*", "a\nb", "a\\", 'a"b', "a??/", "", "1a", "a-b",
    "a b", "k(void) {} int pwned", "#define pwned", "a\0b", "*pwned", "pwned<int>", "double",
    "lambda", "\u2028", "\ud800", "%s", "'", "//", "tensordesc<pwned[1]>", "*fp32; int pwned",
    "sm_90; pwned", "x" * 2000,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_a_hostile_name_is_refused_or_harmless(place, tmp_path):
    """The contents of a file never become code: it is refused when it is loaded, or it compiles."""
    written = []
    # Three are enough where a name is a string of C, or no name at all.
    names = NAMES if place in ("function", "pointer", "constant") else NAMES[:3]
    for number, name in enumerate([*HOSTILE, *names]):
        try:
            kernels = load(named(name, place))
        except cl.ImageError:
            continue
        try:
            own = None if place == "function" else f"k{number}"
            source, header = kernels.write_c(tmp_path / f"{place}{number}", name=own)
        except ValueError as error:
            assert place in ("type", "option", "constant"), error  # noqa: PT017
            continue
        for file in (source, header):
            assert not re.search(r"pwned|system\s*\(", file.read_text())
        written.append(source)
    check_syntax(*written, quick=True)
    # All headers together, with the real cuda.h.
    includes = (f'#include "{one.stem}.h"\n' for one in written if "k_con" not in one.read_text())
    (tmp_path / "all.cc").write_text("".join(includes))
    check_syntax(tmp_path / "all.cc", language="c++")
    assert written or place in ("type", "arch", "version", "annotation")


def test_a_manifest_with_code_in_it_is_refused():
    code = HOSTILE[0]
    for path in (("name",), ("variants", 0, "launch", "name"), ("variants", 0, "types", 1)):
        with pytest.raises(cl.ImageError, match=r"is invalid|must be a list of objects"):
            load(changed(function(), path, code))


@pytest.mark.slow
def test_any_pair_of_names_compiles(tmp_path):
    """A name and what it becomes can both be parameters, beside every other."""
    check_syntax(*(_write_pair(name, tmp_path / f"k{i}") for i, name in enumerate(NAMES)),
                 quick=True)  # fmt: skip


def _write_pair(name, path):
    made = c_identifier(name)
    others = [one for one in ("n", made, f"{made}_") if one != name]
    parameters = [parameter(one) for one in (name, *dict.fromkeys(others)) if one != "BLOCK"]
    count = len(parameters)
    entry = function(
        name=name if name.isidentifier() else "k",
        parameters=[*parameters, parameter("BLOCK", constexpr=True)],
        variants=[variant(types=["i32"] * count, keys=[""] * count)],
    )
    source, header = load(entry).write_c(path)
    assert len(set(re.findall(r"int64_t (\w+)[,)]", header.read_text()))) == count
    return source


@hypothesis.given(st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=8), st.booleans())
def test_different_names_stay_different(one, other, is_function):
    alike = [f"{one}_", f"_u5f_{one}", one.replace("_", "_u5f_"), *NAMES]
    first = c_identifier(one, is_function=is_function)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", first)
    for name in (other, *alike):
        assert (c_identifier(name, is_function=is_function) == first) == (name == one)


@pytest.mark.slow
@hypothesis.given(st.text(alphabet=st.characters(codec="utf-8"), max_size=20))
@hypothesis.settings(max_examples=30, deadline=None)
def test_a_string_of_c_is_what_it_was(text):
    text = text.replace("\0", "")
    literal = c_string(text)
    assert literal.isascii()
    assert literal.isprintable()
    numbers = ", ".join(str(byte) for byte in text.encode()) or "0"
    program = f"""
_Static_assert(sizeof {literal} == {len(text.encode()) + 1}, "length");
const unsigned char made[] = {literal}, known[] = {{{numbers}}};
"""
    done = subprocess.run(["gcc", "-std=c11", "-fsyntax-only", "-xc", "-"], input=program,
                          text=True, capture_output=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ['a"b.h', "a\nb.h", "a\\b.h", "a??/b.h", "a/*b.h"])
def test_a_header_that_no_source_could_include(name):
    with pytest.raises(ValueError, match="cannot be the name of a header"):
        c_include(name)


def test_the_path_is_taken_as_it_is(tmp_path):
    kernels = load(function())
    source, header = kernels.write_c(tmp_path / "scale.v2")
    assert (source.name, header.name) == ("scale.v2.c", "scale.v2.h")
    assert kernels.write_c(str(tmp_path / "scale.c"))[0].name == "scale.c"
    check_syntax(source)
    with pytest.raises(ValueError, match="takes the path of the source"):
        kernels.write_c(tmp_path / "scale.h")


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_two_sets_of_one_name_are_in_one_program(tmp_path):
    """Their symbols, types, macros and headers differ when they are named."""
    sets = [
        load(function(
            name="kernel",
            variants=[variant(constants={"BLOCK": size}), variant(constants={"BLOCK": 2 * size})],
            tuning={"key": ["n"], "entries": [
                {"values": [1], "dtypes": ["fp32"], "constants": {"BLOCK": size}, "options": {}}]},
        ))
        for size in (16, 64)
    ]  # fmt: skip
    sets.append(load(function(name="kernel")))
    names = ["first", "second", "third"]
    for one, name in zip(sets, names, strict=True):
        (tmp_path / name).mkdir()
        one.write_c(tmp_path / name / "kernel.c", name=name)
    (tmp_path / "main.c").write_text(
        "".join(f'#include "{name}/kernel.h"\n' for name in names)
        + "int main(void) {\n  const first_config *a = first_choose(1);\n"
        "  const second_config *b = second_choose(1);\n"
        "  int code = (int)first(NULL, 0, 1, 1, a, 16, 1) + (int)second(NULL, 0, 1, 1, b, 16, 1);\n"
        "  return code - 402 + (int)(b->BLOCK - a->BLOCK) + THIRD_BLOCK - 112;\n}\n"
    )
    sources = [tmp_path / "main.c", *(tmp_path / name / "kernel.c" for name in names)]
    check_syntax(*sources)
    sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
    from overhead.build import build_null_driver

    driver = build_null_driver()
    subprocess.run(
        ["gcc", "-std=c99", "-o", tmp_path / "main", *sources, f"-I{cuda_include()}", driver,
         "-lm", "-lpthread", f"-Wl,-rpath,{driver.parent}"], check=True,
    )  # fmt: skip
    environment = {"LD_LIBRARY_PATH": str(driver.parent)}
    assert subprocess.run([tmp_path / "main"], check=False, env=environment).returncode == 0


@pytest.mark.parametrize("name", ["double", "a b", "cuInit", "1a", "", "größe", "exp"])
def test_a_name_that_c_has_taken(name, tmp_path):
    with pytest.raises(ValueError, match="name must be a C identifier"):
        load(function()).write_c(tmp_path / "k", name=name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((None, -1), "None in one variant and -1 in another"),
        ((True, 1), "True in one variant and 1 in another"),
    ],
)
def test_constants_that_c_cannot_choose_by(values, words, tmp_path):
    kernels = load(function(variants=[variant(constants={"BLOCK": one}) for one in values]))
    with pytest.raises(ValueError, match=words):
        kernels.write_c(tmp_path / "k")


def test_numbers_of_every_size(tmp_path):
    values = [-(2**63), 2**63 - 1, -1, 0, 2**31]
    kernels = load(function(variants=[variant(constants={"BLOCK": one}) for one in values]))
    check_syntax(kernels.write_c(tmp_path / "k")[0])
    for value in (-3, 2**40, 10**1000, -(2**63), True):
        source, header = load(function(variants=[variant(constants={"BLOCK": value})])).write_c(
            tmp_path / "one"
        )
        check_syntax(source)
        assert ("K_BLOCK" in header.read_text()) == (value != 10**1000)


@pytest.mark.parametrize(("machine", "number"), [("aarch64", 183), ("x86_64", 62), ("arm64", 183)])
def test_an_object_for_another_processor(machine, number, tmp_path):
    from click.testing import CliRunner

    from culaunch.cli.triton import command

    ptx = b".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"
    entry = function(variants=[variant(arch="compute_80", image=None, ptx="images/a.ptx")])
    kernels = load(entry, members={"images/a.ptx": ptx})
    for call in ("api", "command"):
        if call == "api":
            written = kernels.write_c(tmp_path / "k", as_object=True, machine=machine)
        else:
            kernels.save(tmp_path / "k.culib")
            words = [f"{tmp_path}/k.culib", "--c-output", f"{tmp_path}/k.c", "--object"]
            assert CliRunner().invoke(command, [*words, "--machine", machine]).exit_code == 0
        header = written[2].read_bytes()[:20]
        assert (header[:4], int.from_bytes(header[18:20], "little")) == (b"\x7fELF", number)
    other = tmp_path / "other"
    for options, words in [
        ({"as_object": True, "machine": "riscv"}, "aarch64"),
        ({"machine": machine}, "set as_object=True"),
    ]:
        with pytest.raises(ValueError, match=words):
            kernels.write_c(other, **options)
    with pytest.raises(cl.ImageError):  # an invalid image
        load(function()).write_c(other, as_object=True)
    assert not [*tmp_path.glob("other*")]
    words = [f"{tmp_path}/k.culib", "--c-output", "k.c", "--machine", machine]
    done = CliRunner().invoke(command, words)
    assert "--machine applies to the object" in done.output


def test_a_table_that_c_cannot_choose_by(tmp_path):
    tuning = {"key": ["n"], "entries": [{"values": ["relu"], "dtypes": ["fp32"],
                                         "constants": {"BLOCK": 64}, "options": {}}]}  # fmt: skip
    with pytest.raises(ValueError, match="cannot choose by n of the tuned table, which is 'relu'"):
        load(function(tuning=tuning)).write_c(tmp_path / "k")


def test_tuples_of_different_lengths(tmp_path):
    variants = [
        variant(types=["*fp32", kinds], keys=["", [""] * len(kinds)])
        for kinds in (["i32"], ["i32", "i32"])
    ]
    with pytest.raises(ValueError, match="a tuple of a different length"):
        load(function(variants=variants)).write_c(tmp_path / "k")
    source, header = load(function(variants=variants[1:])).write_c(tmp_path / "k")
    assert "CUdeviceptr x, int64_t n_0, int64_t n_1)" in header.read_text()
    check_syntax(source)


CHOICES = {
    "key": ["n"],
    "entries": [
        {"values": [1000], "dtypes": [kind], "constants": {"BLOCK": size}, "options": {}, **more}
        for kind, size, more in [
            ("fp32", 64, {"arch": "sm_80"}), ("fp16", 128, {"arch": "sm_80"}),
            ("fp32", 512, {"arch": "sm_90", "device": "NVIDIA H200"}),
            *((kind, size, {"arch": "sm_90", "device": "fake device 0 (sm_90)"})
              for kind, size in (("fp32", 256), ("fp16", 512))),
        ]
    ],
}  # fmt: skip


def tuned():
    return load(function(
        variants=[
            variant(types=[kind, "i32"], constants={"BLOCK": size}, arch=arch)
            for kind in ("*fp32", "*fp16")
            for arch, sizes in (("sm_80", (64, 128)), ("sm_90a", (256, 512)))
            for size in sizes
        ],
        tuning=CHOICES,
    ))  # fmt: skip


@pytest.mark.needs("g++")
def test_the_choice_in_c_knows_types_and_architectures(tmp_path):
    """As in Python: the types of the function, and the device of the current context."""
    sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
    from overhead.build import build_null_driver

    source, _ = tuned().write_c(tmp_path / "k")
    check_syntax(source)
    (tmp_path / "main.c").write_text(
        '#include "k.h"\n#include <stdio.h>\nint main(void) {\n'
        '  printf("%d %d ", (int)k_fp32_choose(900)->BLOCK, (int)k_fp16_choose(900)->BLOCK);\n'
        "  CUcontext context;\n  cuInit(0);\n  cuDevicePrimaryCtxRetain(&context, 0);\n"
        "  cuCtxSetCurrent(context);\n"
        '  printf("%d %d\\n", (int)k_fp32_choose(900)->BLOCK, (int)k_fp16_choose(900)->BLOCK);\n'
        "  return 0;\n}\n"
    )
    driver = build_null_driver()  # an H100
    subprocess.run(
        ["gcc", "-std=c99", "-o", tmp_path / "main", tmp_path / "main.c", source,
         f"-I{cuda_include()}", driver, "-lm", "-lpthread", f"-Wl,-rpath,{driver.parent}"],
        check=True,
    )  # fmt: skip
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True,
                          env={"LD_LIBRARY_PATH": str(driver.parent)})  # fmt: skip
    assert done.stdout.split() == ["64", "128", "256", "512"]


@pytest.mark.needs("g++")
def test_a_grid_that_clusters_make_too_large(tmp_path):
    """2^31 blocks wrap in the driver's 32 bits: they are refused, as in Python."""
    sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
    from overhead.build import build_null_driver

    entry = function(variants=[variant(arch="sm_90a")])
    entry["variants"][0]["launch"]["num_ctas"] = 2
    source, _ = load(entry).write_c(tmp_path / "k")
    (tmp_path / "main.c").write_text(
        '#include "k.h"\n#include <stdio.h>\nint main(void) {\n'
        "  CUcontext context;\n  cuInit(0);\n  cuDevicePrimaryCtxRetain(&context, 0);\n"
        "  cuCtxSetCurrent(context);\n"
        '  printf("%d %d ", k(NULL, 1u << 30, 1, 1, NULL, 16, 5),\n'
        "         k(NULL, 1u << 31, 1, 1, NULL, 16, 5));\n"
        '  printf("%d %d\\n", k(NULL, 1, 65536, 1, NULL, 16, 5),\n'
        "         k(NULL, 1, 1, 65536, NULL, 16, 5));\n"
        "  return 0;\n}\n"
    )
    driver = build_null_driver()
    subprocess.run(
        ["gcc", "-std=c99", "-o", tmp_path / "main", tmp_path / "main.c", source,
         f"-I{cuda_include()}", driver, "-lpthread", f"-Wl,-rpath,{driver.parent}"], check=True,
    )  # fmt: skip
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True,
                          env={"LD_LIBRARY_PATH": str(driver.parent)})  # fmt: skip
    assert done.stdout.split() == ["1"] * 4


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_header_is_cpp(tmp_path):
    _, header = tuned().write_c(tmp_path / "k")
    (tmp_path / "use.cc").write_text(f'#include "{header.name}"\nint main() {{}}\n')
    check_syntax(tmp_path / "use.cc", language="c++")


@pytest.mark.slow
@hypothesis.given(st.data())
@hypothesis.settings(max_examples=300, suppress_health_check=[hypothesis.HealthCheck.too_slow])
def test_any_file_becomes_c_or_a_value_error(tmp_path_factory, data):
    """Any file is an ImageError when it is loaded, a ValueError for C, or C."""
    entry = function(
        variants=[variant(constants={"BLOCK": size}) for size in (64, 128)], tuning=CHOICES
    )
    leaves = [path for path in _paths(entry) if path and path != ("kind",)]
    values = st.sampled_from([
        None, True, -1, 0, 1, 2**31, 2**63, 10**1000, 1.5, "", "D", "i32", "i64", "*fp16", "fp64",
        "constexpr", "sm_90a", "compute_80", "k", "x", [], ["i32"], {}, {"dtype": "fp16"},
        {"float": "inf"}, {"fields": ["a"], "types": ["i32"]},
    ])  # fmt: skip
    for _ in range(data.draw(st.integers(1, 3))):
        entry = changed(entry, data.draw(st.sampled_from(leaves)), data.draw(values))
        leaves = [path for path in _paths(entry) if path and path != ("kind",)]
    try:
        load(entry).write_c(tmp_path_factory.getbasetemp() / "any")
    except cl.ImageError:
        pass
    except ValueError as error:
        assert re.search("C cannot|set to zero|one configuration", str(error))  # noqa: PT017


def _paths(value, prefix=()):
    yield prefix
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for step, item in items if isinstance(value, (dict, list)) else ():
        yield from (
            _paths(item, (*prefix, step)) if isinstance(item, (dict, list)) else [(*prefix, step)]
        )


def test_a_disk_without_room_leaves_all_outputs_as_they_were(tmp_path):
    """A header of one set beside the source of another compiles, and launches nonsense."""
    kernels = load(named("k", "function"))
    for name in ("k.c", "k.h"):
        (tmp_path / name).write_text("old")
    before = sorted(os.listdir(tmp_path))
    with no_file_larger_than(1000), pytest.raises(OSError, match="File too large") as caught:
        kernels.write_c(tmp_path / "k.c")
    assert caught.value.filename == str(tmp_path / "k.c")
    assert sorted(os.listdir(tmp_path)) == before
    assert {(tmp_path / name).read_text() for name in ("k.c", "k.h")} == {"old"}
