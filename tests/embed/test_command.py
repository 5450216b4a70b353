"""The command ``culaunch embed``: the same words and results as culaunch.cpp.embed."""

from __future__ import annotations

import pytest

import culaunch as cl
from culaunch.cli import main

pytestmark = pytest.mark.needs("click")


def run(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main(["embed", *map(str, words)])
    output = capsys.readouterr()
    return stopped.value.code or 0, output.out, output.err


def test_an_object_alone(tmp_path, cubin, capsys):
    code, out, err = run(capsys, "--cubin", cubin, "--name", "k", "-o", tmp_path / "k.o")
    assert (code, out, err) == (0, "", "")
    cl.cpp.embed(cubin, tmp_path / "same.o", "k")
    assert (tmp_path / "k.o").read_bytes() == (tmp_path / "same.o").read_bytes()


def test_merged_and_alone_at_once(tmp_path, cubin, capsys, cxx, compile_object):
    source = (
        'extern "C" __attribute__((visibility("hidden"))) const char culaunch_image_k[];'
        'extern "C" const char* f() { return culaunch_image_k; }'
    )
    compiled = compile_object(cxx, source, tmp_path / "code.o")
    merged = tmp_path / "merged.o"
    words = ("--cubin", cubin, "--name", "k", "--input-obj", compiled)
    code, out, err = run(capsys, *words, "-o", tmp_path / "k.o", "--output-obj", merged, "-v")
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        f"{tmp_path / 'k.o'}: k, 1000 bytes from {cubin}, as hidden symbols",
        f"{merged}: {compiled} with k, 1000 bytes from {cubin}, as local symbols",
    ]
    again = tmp_path / "again.o"
    assert run(capsys, *words, "-o", again) == (0, "", "")
    assert again.read_bytes() == merged.read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--name", "k", "-o", "k.o"), "Missing option '--cubin'"),
        (("--cubin", "CUBIN", "-o", "k.o"), "Missing option '--name'"),
        (("--cubin", "CUBIN", "--name", "k"), "name an output"),
        (
            ("--cubin", "CUBIN", "--name", "k", "--output-obj", "m.o"),
            "--output-obj needs --input-obj",
        ),
        (("--cubin", "CUBIN", "--name", "1k", "-o", "k.o"), "name must be a C identifier"),
        (("--cubin", "no.cubin", "--name", "k", "-o", "k.o"), "no.cubin"),
    ],
)
def test_mistakes(tmp_path, cubin, capsys, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *(str(cubin) if word == "CUBIN" else word for word in words))
    assert code in (1, 2)
    assert out == ""
    assert message in err
    assert "Traceback" not in err
    assert [p.name for p in tmp_path.iterdir()] == ["kernel.cubin"]
