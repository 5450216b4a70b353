"""What ``culaunch triton`` takes, and the sets that it writes."""

import pytest

pytestmark = pytest.mark.needs("triton", "torch")

FLOATS = "*fp32:16, *fp32:16, i32"


def test_the_command(tmp_path, recorder):
    import torch
    from click.testing import CliRunner

    from culaunch.cli.triton import command
    from culaunch.triton import KernelSet

    (tmp_path / "k.py").write_text(
        "import triton\nimport triton.language as tl\n"
        "from decorated_kernels import guarded as plain, of_pair, constants\n"
        "even = {'EVEN': lambda args: args['n'] % args['BLOCK'] == 0}\n"
        "guarded = triton.heuristics(even)(plain)\n"
        "def blocks(meta):\n    return (triton.cdiv(meta['n'], meta['BLOCK']),)\n"
    )
    x = torch.ones(256)
    for grid in ("cdiv(n, BLOCK)", "blocks"):
        done = CliRunner().invoke(
            command,
            [f"{tmp_path}/k.py:guarded", "--signature", FLOATS, "--arch", "sm_90a", "--constant",
             "BLOCK=64", "--grid", grid, "-o", f"{tmp_path}/k.culib"],
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        KernelSet.load(tmp_path / "k.culib")(x, x, 200)
        assert recorder.last.grid == (4, 1, 1)
    done = CliRunner().invoke(
        command,
        [f"{tmp_path}/k.py:constants", "--signature", "*i32", "--arch", "sm_90a", "--constant",
         "V=tl.float16", "-o", f"{tmp_path}/c.culib"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    loaded = KernelSet.load(tmp_path / "c.culib")
    assert str(loaded.variants[0].constants["V"]) == "fp16"
    done = CliRunner().invoke(
        command,
        [f"{tmp_path}/k.py:of_pair", "--signature", "*i32, (a=i32, b=i32)", "--arch", "sm_90a",
         "-o", f"{tmp_path}/p.culib"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3), ("relu", "relu"), ("'3'", "3"), ("(1, 2)", (1, 2)), ("None", None),
        ("'(1'", "(1"), ("fp16", "fp16"), ("print(1)", "print(1)"), ("f(a=1)", "f(a=1)"),
        ("a.b", "a.b"), ("it's", "it's"), ("[1, (2, 3)]", [1, (2, 3)]), ("()", ()),
    ],
)  # fmt: skip
def test_values_on_the_command_line(text, value):
    from culaunch.cli._settings import read_settings

    assert read_settings([f"A={text}"]) == {"A": value}


def test_types_and_named_tuples_on_the_command_line():
    import click
    import triton.language as tl

    from culaunch.cli._settings import read_settings, split_settings

    assert split_settings("A=(1, 2),B=3") == ["A=(1, 2)", "B=3"]
    assert read_settings(["A=(tl.float16, 2)"]) == {"A": (tl.float16, 2)}
    named = read_settings(["A=(a=1, b=tl.int8)"])["A"]
    assert (named._fields, tuple(named)) == (("a", "b"), (1, tl.int8))
    with pytest.raises(click.UsageError, match="not an element type"):
        read_settings(["A=tl.load"])
    # Tuples in tuples, with names and without.
    text = "A=(1,(b=(2,tl.int8),c='x,(')),B=((a=1),()),C=','"
    assert split_settings(text) == ["A=(1,(b=(2,tl.int8),c='x,('))", "B=((a=1),())", "C=','"]
    found = read_settings(split_settings(text))
    assert found == {"A": (1, ((2, tl.int8), "x,(")), "B": ((1,), ()), "C": ","}
    assert found["A"][1]._fields == ("b", "c")
    assert found["B"][0]._fields == ("a",)


@pytest.mark.parametrize("text", ["(1, (2, x))", "(a=1, 2)", "(1 2)", "(a=1, a=2)", "(" * 400])
def test_a_tuple_that_is_none_is_not_text(text):
    import click

    from culaunch.cli._settings import read_settings, split_settings

    with pytest.raises(click.UsageError, match="is not a tuple"):
        read_settings([f"A={text}"])
    with pytest.raises(click.UsageError, match="unbalanced brackets"):
        split_settings("A=(1,(2,3),B=4")
