"""Manifests that say something impossible of a Triton kernel: refused, and nothing else happens."""

import copy
import json

import hypothesis
import pytest
from hypothesis import strategies as st
from sets import changed, function, load, parameter, variant

import culaunch as cl

VARIANT = variant(
    arch="sm_90a",
    types=["*fp32", "i32", ["i32", "*fp16"]],
    keys=["D", "", [None, ""]],
    constants={"BLOCK": 64, "T": {"dtype": "fp32"}},
    options={"num_warps": 4},
)
VARIANT["launch"]["descriptors"] = [
    {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [64, 64], "fp4_padded": False}
]
FUNCTION = function(
    parameters=[parameter("x"), parameter("n"), parameter("pair"),
                parameter("BLOCK", constexpr=True),
                parameter("T", constexpr=True, default=1, heuristic=True)],
    variants=[VARIANT],
    tuning={"key": ["n"], "entries": [{"values": [64], "dtypes": ["fp32"], "arch": "sm_90",
                                       "device": "NVIDIA H200",
                                       "constants": {"BLOCK": 64}, "options": {}}]},
    zeroes=["x"],
    blocks=["pair"],
    heuristics=[{"name": "T", "value": ["if", ["is_none", "x"], 1, ["//", ["value", "n"], 64]],
                 "early": False}],
    grid=[["cdiv", ["value", "n"], ["value", "BLOCK"]], 1],
)  # fmt: skip


def test_the_example_is_good():
    assert len(load(FUNCTION)) == 1


def test_inspect_shows_it(tmp_path):
    from click.testing import CliRunner

    from culaunch.cli.inspect import command

    path = tmp_path / "k.culib"
    load(FUNCTION).save(path)
    done = CliRunner().invoke(command, [str(path)])
    assert done.exit_code == 0
    assert "k(x, n, pair, BLOCK, T), 1 variant" in done.output
    assert "  x set to zero before each launch" in done.output
    assert "  blocks of pair set before each launch" in done.output
    assert "  T = (1 if (x is None) else (n // 64))" in done.output
    assert "  grid (cdiv(n, BLOCK), 1)" in done.output
    assert "sm_90a (*fp32:16, i32, (i32, *fp16)) BLOCK=64" in done.output
    done = CliRunner().invoke(command, ["--json", str(path)])
    assert json.loads(done.output)["functions"][0]["variants"][0]["arch"] == "sm_90a"
    path.write_bytes(b"PK")
    assert "this is not a valid library" in CliRunner().invoke(command, [str(path)]).output


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("variants",), []),
        (("variants",), {}),
        (("variants", 0), 3),
        (("variants", 0, "arch"), 90),
        (("variants", 0, "image"), "images/none.cubin"),
        (("variants", 0, "image"), None),
        (("variants", 0, "types"), ["*fp32"]),
        (("variants", 0, "types"), ["*fp32", "i32", "i32"]),
        (("variants", 0, "types", 1), 7),
        (("variants", 0, "keys"), ["D", ""]),
        (("variants", 0, "keys", 0), 2),
        (("variants", 0, "launch", "num_warps"), -1),
        (("variants", 0, "launch", "num_warps"), "4"),
        (("variants", 0, "launch", "shared"), 2**40),
        (("variants", 0, "launch", "triton_version"), None),
        (("variants", 0, "launch", "descriptors", 0, "block_size"), [1] * 6),
        (("variants", 0, "constants"), [1]),
        (("variants", 0, "constants", "T"), {"code": "evil()"}),
        (("parameters", 0, "name"), "x y"),
        (("parameters", 1, "name"), "x"),
        (("parameters", 0, "annotation"), "fp99"),
        (("parameters", 0), None),
        (("parameters",), None),
        (("tuning", "key"), ["missing"]),
        (("tuning", "entries"), []),
        (("tuning", "entries", 0, "values"), 3),
        (("name",), "a b"),
        (("name",), "k()"),
        (("parameters", 0, "constexpr"), [3]),
        (("parameters", 0, "const"), 1),
        (("parameters", 0, "specialize"), None),
        (("parameters", 0, "align"), "yes"),
        (("parameters", 0, "heuristic"), 1),
        (("parameters", 0, "annotation"), "*fp99"),
        (("parameters", 4, "default"), {"float": "1.5"}),
        (("variants", 0, "arch"), "hello"),
        (("variants", 0, "arch"), "compute_90a"),
        (("variants", 0, "types", 0), "foo"),
        (("variants", 0, "types", 0), "*foo"),
        (("variants", 0, "types", 0), "tensordesc<foo[1]>"),
        (("variants", 0, "types", 2), {"fields": ["a"], "types": ["i32", "*fp16"]}),
        (("variants", 0, "types", 2), {"fields": ["a", "a"], "types": ["i32", "*fp16"]}),
        (("variants", 0, "types", 2), {"fields": ["a", "class"], "types": ["i32", "*fp16"]}),
        (("variants", 0, "keys", 0), "X"),
        (("variants", 0, "keys", 0), True),
        (("variants", 0, "keys", 0), 1.0),
        (("variants", 0, "keys", 0), 1),
        (("variants", 0, "keys", 2), [1, ""]),
        (("variants", 0, "types", 1), "fp32"),
        (("variants", 0, "keys", 2), [None, "", ""]),
        (("variants", 0, "constants"), {"T": 1}),
        (("variants", 0, "constants"), {"BLOCK": 64, "T": 1, "OTHER": 1}),
        (("variants", 0, "constants"), {"BLOCK": 64, "n": 1}),
        (("variants", 0, "constants", "T"), {"dtype": "fp99"}),
        (("variants", 0, "constants", "T"), {"float": "code"}),
        (("variants", 0, "constants", "T"), {"fields": ["a"], "values": []}),
        (("variants", 0, "options"), {"n": 1}),
        (("variants", 0, "options"), {"num warps": 1}),
        (("variants", 0, "launch", "name"), "k(); system"),
        (("variants", 0, "launch", "name"), ""),
        (("variants", 0, "launch", "num_warps"), 0),
        (("variants", 0, "launch", "num_warps"), 33),
        (("variants", 0, "launch", "num_ctas"), 0),
        (("variants", 0, "launch", "global_scratch_align"), 3),
        (("variants", 0, "launch", "triton_version"), "three"),
        (("variants", 0, "launch", "triton_version"), "3.6" + "." * 1000),
        (("variants", 0, "launch", "num_stages"), "3"),
        (("variants", 0, "launch", "launch_pdl"), 0),
        (("tuning",), 3),
        (("tuning", "key"), ["n", "n"]),
        (("tuning", "entries", 0, "values"), []),
        (("tuning", "entries", 0, "values"), [1, 2]),
        (("tuning", "entries", 0, "dtypes"), ["code"]),
        (("tuning", "entries", 0, "arch"), "sm_90a"),
        (("tuning", "entries", 0, "device"), 3),
        (("tuning", "entries", 0, "device"), "a\nb"),
        (("tuning", "entries", 0, "device"), "H" * 201),
        (("tuning", "entries", 0, "constants"), {"OTHER": 1}),
        (("tuning", "entries", 0, "options"), {"n": 1}),
        (("zeroes",), "x"),
        (("zeroes",), ["missing"]),
        (("zeroes",), ["BLOCK"]),
        (("zeroes",), ["x", "x"]),
        (("blocks",), "pair"),
        (("blocks",), ["missing"]),
        (("blocks",), ["BLOCK"]),
        (("blocks",), ["x", "x"]),
        (("heuristics",), {}),
        (("heuristics", 0), []),
        (("heuristics", 0, "name"), "missing"),
        (("heuristics", 0, "name"), "BLOCK"),
        (("heuristics", 0, "early"), 1),
        (("heuristics", 0, "value"), "n"),
        (("heuristics", 0, "value"), ["value", "T"]),
        (("heuristics", 0, "value"), ["value", "missing"]),
        (("heuristics", 0, "value"), ["is_none", "x", "n"]),
        (("heuristics", 0, "value"), ["is_array", "missing"]),
        (("heuristics", 0, "value"), ["__import__", "os"]),
        (("heuristics", 0, "value"), ["constant", {"code": "evil()"}]),
        (("grid",), []),
        (("grid",), 3),
        (("grid",), [1, 1, 1, 1]),
        (("grid",), ["n"]),
        (("grid",), [["value", "missing"]]),
        (("grid",), [["cdiv", 1]]),
    ],
)
def test_refused(path, value):
    with pytest.raises(cl.ImageError, match="invalid"):
        load(changed(FUNCTION, path, value))


@pytest.mark.parametrize(
    "path",
    [("parameters",), ("variants",), ("tuning",), *((("variants", 0, name)) for name in VARIANT),
     *((("parameters", 0, name)) for name in parameter("x")),
     *((("variants", 0, "launch", name)) for name in VARIANT["launch"])],
)  # fmt: skip
def test_a_missing_entry_is_refused(path):
    entry = copy.deepcopy(FUNCTION)
    target = entry
    for step in path[:-1]:
        target = target[step]
    del target[path[-1]]
    with pytest.raises(cl.ImageError, match="is missing"):
        load(entry)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)  # fmt: skip


@pytest.mark.needs("torch")
def test_an_image_of_another_kernel(monkeypatch):
    """Its digest is right: only loading it tells."""
    import torch

    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    ptx = b".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry other() { ret; }\n"
    entry = function(variants=[variant(arch="compute_80", image=None, ptx="images/a.ptx")])
    kernels = load(entry, members={"images/a.ptx": ptx})
    for _ in range(2):
        with pytest.raises(cl.ImageError, match="the image has no kernel 'k'"):
            kernels[(1,)](torch.ones(64), 64)


def paths(value, prefix=()):
    yield prefix
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*prefix, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from paths(item, (*prefix, i))


PATHS = [path for path in paths(FUNCTION) if path and path[0] not in ("kind", "name")]


@pytest.mark.slow
@hypothesis.given(st.sampled_from(PATHS), JSON)
@hypothesis.settings(max_examples=400)
def test_any_value_anywhere(path, value):
    try:
        loaded = load(changed(FUNCTION, path, value))
    except cl.ImageError:
        return
    str(loaded.variants[0])
    assert load(loaded.to_manifest()).variants == loaded.variants
