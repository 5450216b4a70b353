"""The C++ that generated kernels call: which files there are, and in which order they are put."""

from __future__ import annotations

import re
from pathlib import Path

import culaunch
from culaunch._elementwise.helper_files import _IN_ORDER, _WITH_SIGNS, helpers_for

FOLDER = Path(culaunch.__file__).parent / "_elementwise" / "helpers"


def test_every_file_is_used() -> None:
    assert {path.stem for path in FOLDER.glob("*.cuh")} == {*_IN_ORDER, "pack"}
    assert {path.stem for path in FOLDER.glob("*/*.cuh")} == set(_WITH_SIGNS)


def test_a_helper_brings_what_it_uses_before_itself() -> None:
    for name in _IN_ORDER:
        text = helpers_for(f"{name}(x)")
        places = [text.find((FOLDER / f"{one}.cuh").read_text()) for one in _IN_ORDER]
        found = [place for place in places if place >= 0]
        assert found == sorted(found)
        for one, place in zip(_IN_ORDER, places, strict=True):
            used = re.search(rf"(?<![\w:]){one}\b", text)
            assert used is None or place <= used.start(), f"{name}: {one}"


def test_the_sign_of_a_nan_is_kept_wsuggestion_asked_for() -> None:
    assert "0x8000" in helpers_for("signbit(load_half(x))")
    assert "0x8000" not in helpers_for("load_half(x)")


def test_nothing_is_put_where_nothing_is_called() -> None:
    assert helpers_for("x + y") == ""
