"""Manifests that say something impossible of a Triton kernel: refused, and nothing else happens."""

import copy
import json

import hypothesis
import pytest
from hypothesis import strategies as st

import culaunch as cl
from culaunch._library import library_bytes
from culaunch.triton import KernelSet

MEMBERS = {"images/a.cubin": b"\x7fELF\x02\x01\x01"}
VARIANT = {
    "arch": "sm_90a",
    "types": ["*fp32", "i32", ["i32", "*fp16"]],
    "keys": ["D", "", [None, ""]],
    "constants": {"BLOCK": 64, "T": {"dtype": "fp32"}},
    "options": {"num_warps": 4},
    "launch": {
        "name": "k", "triton_version": "3.6.0", "num_warps": 4, "num_ctas": 1, "shared": 0,
        "global_scratch_size": 0, "global_scratch_align": 1, "profile_scratch_size": 0,
        "profile_scratch_align": 1, "launch_cooperative_grid": False, "launch_pdl": False,
        "descriptors": [{"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [64, 64],
                         "fp4_padded": False}],
    },
    "image": "images/a.cubin",
    "ptx": None,
}  # fmt: skip


def parameter(name, **more):
    plain = {
        "annotation": "",
        "constexpr": False,
        "const": False,
        "specialize": True,
        "align": True,
    }
    return {"name": name, **plain, **more}


FUNCTION = {
    "kind": "triton", "name": "k",
    "parameters": [parameter("x"), parameter("n"), parameter("pair"),
                   parameter("BLOCK", constexpr=True), parameter("T", constexpr=True, default=1)],
    "variants": [VARIANT],
    "tuning": {"key": ["n"], "entries": [{"values": [64], "dtypes": ["fp32"],
                                          "constants": {"BLOCK": 64}, "options": {}}]},
}  # fmt: skip


def load(function):
    return KernelSet.load(library_bytes([function], MEMBERS, "test"))


def test_the_example_is_good():
    assert len(load(FUNCTION)) == 1


def changed(path, value):
    function = copy.deepcopy(FUNCTION)
    target = function
    for step in path[:-1]:
        target = target[step]
    if value is None and path[-1] == "drop":
        return function
    target[path[-1]] = value
    return function


def test_inspect_shows_it(tmp_path):
    from click.testing import CliRunner

    from culaunch.cli.inspect import command

    path = tmp_path / "k.culib"
    path.write_bytes(library_bytes([FUNCTION], MEMBERS, "test"))
    done = CliRunner().invoke(command, [str(path)])
    assert done.exit_code == 0
    assert "k(x, n, pair, BLOCK, T), 1 variants" in done.output
    assert "sm_90a (*fp32:16, i32, (i32, *fp16)) BLOCK=64" in done.output
    done = CliRunner().invoke(command, ["--json", str(path)])
    assert json.loads(done.output)["functions"][0]["variants"][0]["arch"] == "sm_90a"
    path.write_bytes(b"PK")
    assert "this is no library" in CliRunner().invoke(command, [str(path)]).output


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
    ],
)
def test_refused(path, value):
    with pytest.raises(cl.ImageError, match="wrong"):
        load(changed(path, value))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)  # fmt: skip


def paths(value, prefix=()):
    yield prefix
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*prefix, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from paths(item, (*prefix, i))


PATHS = [path for path in paths(FUNCTION) if path and path[0] not in ("kind", "name")]


@hypothesis.given(st.sampled_from(PATHS), JSON)
@hypothesis.settings(max_examples=400)
def test_any_value_anywhere(path, value):
    try:
        loaded = load(changed(path, value))
    except cl.ImageError:
        return
    str(loaded.variants[0])
