"""``culaunch inspect`` shows what ``culaunch.inspect`` returns, for reading and as JSON."""

import dataclasses
import json
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner
from terminals import on_a_terminal

import culaunch as cl
from culaunch.cli.inspect import command

PTX = b"""//
// Cuda compilation tools, release 13.0, V13.0.88
.version 9.0
.target sm_90a
.address_size 64
.visible .entry _Z5scaleIfEvPT_PKS0_S0_i(
  .param .u64 y, .param .u64 x, .param .f32 factor, .param .u32 n)
.maxntid 256, 1, 1
{ ret; }
.visible .entry plain(.param .u64 .ptr .global .align 4 p, .param .b8 s[1]) .reqntid 16, 16 { ret; }
.visible .entry pair() .reqnctapercluster 2, 1, 1 { ret; }
"""


@pytest.fixture
def ptx(tmp_path):
    path = tmp_path / "scale.ptx"
    path.write_bytes(PTX)
    return path


def run(*arguments, width=120):
    result = CliRunner(env={"COLUMNS": str(width)}).invoke(
        command, [str(argument) for argument in arguments], standalone_mode=False
    )
    assert result.exception is None
    return result.return_value, result.stdout, result.stderr


def test_one_file_is_one_object(ptx):
    code, out, err = run("--json", ptx)
    assert (code, err) == (0, "")
    assert json.loads(out) == cl.inspect(ptx).to_dict()


def test_several_files_are_an_array(ptx):
    code, out, _ = run(ptx, ptx, "--json")
    assert code == 0
    assert json.loads(out) == [cl.inspect(ptx).to_dict()] * 2


def test_table(ptx):
    code, out, err = run(ptx)
    assert (code, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines == [
        f"{ptx}: ptx, 1 image",
        "",
        f"compute_90a  ptx, {len(PTX)} bytes, toolkit 13.0",
        "  kernel                                               threads  cluster",
        "  void scale<float>(float*, float const*, float, int)   <= 256",
        "  plain(void*, 1 byte)                                 = 16x16",
        "  pair()                                                            = 2",
    ]


def test_a_table_survives_a_pipe(ptx):
    """No row is folded, whatever the width, and none ends with blanks."""
    _, out, _ = run(ptx, width=20)
    assert out == run(ptx)[1] == f"{cl.inspect(ptx)}\n"
    assert not any(line.endswith(" ") for line in out.splitlines())


def test_standard_input(ptx):
    result = CliRunner().invoke(command, ["-"], input=PTX, standalone_mode=False)
    assert result.stdout == f"{cl.inspect(PTX)}\n"
    assert result.stdout.startswith("ptx, 1 image\n")


def test_variables(tmp_path):
    path = tmp_path / "table.ptx"
    path.write_bytes(
        PTX + b".visible .const .align 4 .f32 _ZN2ns5tableE[4];\n.visible .global .u32 n;\n"
        b".global .align 16 .v4 .f32 wide[2][3];\n"
    )
    lines = run(path)[1].splitlines()
    assert lines[-4:] == ["  variable   bytes", "  ns::table     16", "  n              4",
                          "  wide          96"]  # fmt: skip
    found = json.loads(run("--json", path)[1])["images"][0]["variables"]
    assert found[0] == {
        "name": "_ZN2ns5tableE", "demangled": "ns::table", "size": 16, "constant": True,
    }  # fmt: skip


def test_without_kernels(ptx):
    _, out, _ = run("--no-kernels", ptx)
    assert "compute_90a" in out
    assert "scale" not in out.partition("\n")[2]
    _, out, _ = run("--no-kernels", "--json", ptx)
    assert json.loads(out)["images"][0]["kernels"] == []


def test_a_bad_file_is_one_line_and_the_others_are_shown(ptx, tmp_path):
    bad = tmp_path / "bad.cubin"
    bad.write_bytes(b"\x7fELF")
    missing = tmp_path / "missing.cubin"
    code, out, err = run(bad, ptx, missing, tmp_path)
    assert code == 1
    assert out.startswith(f"{ptx}: ptx, 1 image")
    short = "an ELF header needs 64 bytes, but there are only 4"
    assert err.splitlines() == [
        f"error: {bad}: is truncated: {short} (at offset 0x4)",
        f"error: {missing}: No such file or directory",
        f"error: {tmp_path}: is a directory, not an image file",
    ]
    code, out, _ = run("--json", bad, ptx)
    assert (code, json.loads(out)) == (1, [cl.inspect(ptx).to_dict()])
    assert run("--json", bad)[:2] == (1, "")


def test_as_a_program(ptx):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-m", "culaunch", "inspect", "--json", ptx, "none"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert result.stderr == "error: none: No such file or directory\n"
    assert json.loads(result.stdout)[0]["format"] == "ptx"


def test_a_file_must_be_named():
    result = subprocess.run(
        [sys.executable, "-m", "culaunch", "inspect"], check=False, capture_output=True, text=True
    )
    assert result.returncode == 2
    assert "Missing argument 'FILE...'" in result.stderr


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Return a fatbin with two kernels and a variable for each of three architectures."""
    path = tmp_path_factory.mktemp("library") / "two.fatbin"
    cl.compile(
        "__constant__ float table[4];\n"
        "template <typename T> __global__ void scale(T* y) { *y *= table[0]; }\n"
        'extern "C" __global__ void plain(int* x) { *x = 1; }\n',
        arch=["sm_80", "sm_90", "compute_90"], names=["scale<float>", "scale<double>"],
    ).save(path)  # fmt: skip
    return path


def test_a_filter_keeps_what_it_names(library):
    assert str(cl.inspect(library).filter("no such name")) == f"{library}: fatbin, 0 images"
    for pattern, wanted in (
        ("plain", {"plain"}),
        ("scale<*double", {"void scale<double>(double*)"}),
        ("table[", set()),
        ("_Z5scaleIf", {"void scale<float>(float*)"}),
    ):
        code, out, _ = run("--json", "--filter", pattern, library)
        assert code == 0
        images = json.loads(out)["images"]
        assert {one["demangled"] for image in images for one in image["kernels"]} == wanted
        assert len(images) == (3 if wanted else 0)
    out = run("--filter", "table", library)[1]
    assert out.count("table        16\n") == 3
    assert "plain" not in out
    with pytest.raises(TypeError, match="pattern must be a str"):
        cl.inspect(library).filter(3)


def test_images_are_extracted(library, tmp_path):
    _, _, err = run("--extract", tmp_path / "all", library)
    assert err == f"{library}: wrote 3 of 3 images to {tmp_path / 'all'}\n"
    written = {path.name: cl.inspect(path) for path in (tmp_path / "all").iterdir()}
    names = {"two.fatbin.1.sm_80.cubin", "two.fatbin.2.sm_90.cubin", "two.fatbin.3.compute_90.ptx"}
    assert set(written) == names
    for name, inspection in written.items():
        (image,) = inspection.images
        assert name.endswith(f"{image.arch}.{image.format}")
        assert {one.demangled for one in image.kernels} == {
            one.demangled for one in cl.inspect(library).images[0].kernels
        }
    _, _, err = run("--extract", tmp_path / "none", "--filter", "lunch", library)
    assert err == f"{library}: wrote 0 of 3 images to {tmp_path / 'none'}\n"
    assert list((tmp_path / "none").iterdir()) == []


def test_a_visitor_gets_each_image(library):
    seen = []
    inspection = cl.inspect(library, visit=lambda image, data: seen.append((image, data)))
    assert tuple(image for image, _ in seen) == inspection.images
    for image, data in seen:
        assert cl.inspect(data).images[0].arch == image.arch
    with pytest.raises(TypeError, match=r"visit must be callable \(got 3\)"):
        cl.inspect(library, visit=3)


def test_a_summary_counts_by_architecture(library):
    inspection = cl.inspect(library)
    twice = dataclasses.replace(inspection, images=inspection.images * 2)
    assert not str(inspection).startswith(inspection.summary())  # each has a heading anyway
    lines = [line.split() for line in twice.summary().splitlines()[2:]]
    assert lines[0] == ["architecture", "images", "kernels", "variables", "size"]
    assert [line[:5] for line in lines[1:]] == [
        ["sm_80", "cubin", "2", "3", "1"], ["sm_90", "cubin", "2", "3", "1"],
        ["compute_90", "ptx", "2", "3", "1"],
    ]  # fmt: skip
    assert str(twice).startswith(twice.summary())


def test_names_fit_the_width(ptx):
    wide = PTX.replace(b"plain", b"a" * 40 + b"_" + b"b" * 40)
    lines = cl.inspect(wide).table(60).splitlines()
    assert max(map(len, lines)) == 60
    (row,) = [line for line in lines if "aaa" in line]
    assert re.fullmatch(r"  a+\.\.\.id\*, 1 byte\) +=? ?16x16", row)
    assert "a" * 40 + "_" + "b" * 40 in str(cl.inspect(wide))


@pytest.mark.slow
def test_a_long_listing_is_summarized_on_a_terminal(ptx, tmp_path):
    entries = b"".join(b".visible .entry kernel_%d() { ret; }\n" % i for i in range(300))
    path = tmp_path / "many.ptx"
    path.write_bytes(b".version 8.0\n.target sm_80\n.address_size 64\n" + entries)
    shown = on_a_terminal("inspect", str(path), TERM="xterm", NO_COLOR="1").splitlines()
    assert shown[0].endswith("many.ptx: ptx, 1 image")
    assert shown[-1] == "--filter NAME shows some kernels, --all shows all 303 rows"
    assert shown[3].split()[:4] == ["compute_80", "ptx", "1", "300"]
    assert len(shown) == 6
    for words in (("--all",), ("--filter", "kernel")):
        assert "kernel_299()" in on_a_terminal("inspect", str(path), *words)
    assert run(path)[1].count("kernel_") == 300  # a pipe gets every row


def test_markup_in_a_path_or_a_name_is_text(tmp_path):
    path = tmp_path / "[bold]x.ptx"
    path.write_bytes(PTX)
    assert run(path)[1].startswith(f"{path}: ")


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_a_standard_output_that_is_full_is_an_error(ptx, tmp_path, json_too):
    small = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"
    with cl.testing.use_driver("emulator"):
        cl.ship.save([], tmp_path / "k.culib", kernels=[cl.load(small)["k"]])
    for path in (ptx, tmp_path / "k.culib"):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "culaunch", "inspect", path, *json_too],
                check=False, stdout=full, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")
