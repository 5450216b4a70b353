"""The files that a text can pull in: which paths a walk has for them, and how many."""

from __future__ import annotations

import pytest

import culaunch as cl
from culaunch._includes.closure import Search, follow


@pytest.fixture
def tree(tmp_path):
    """Return a function that writes headers and gives the paths that a source reads, in order."""

    def walk(source, **headers):
        for name, text in headers.items():
            path = tmp_path / name.replace("__", "/").replace("_h", ".h")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        search = Search(dirs=[str(tmp_path)])
        found = follow(source, str(tmp_path / "source.cpp"), search).footprint.found
        return [one.path.removeprefix(f"{tmp_path}/") for one in found]

    return walk


def test_headers_that_include_each_other_upwards_are_each_read_once(tree):
    """Else each is a new file under a longer path, a/../b/../a/x.h, up to the longest there is."""
    found = tree(
        "#include <a/x.h>\n",
        a__x_h='#pragma once\n#include "../b/y.h"\n',
        b__y_h='#pragma once\n#include "../a/x.h"\n#include "deep/z.h"\n',
        b__deep__z_h='#pragma once\n#include "../../a/x.h"\n#include "../y.h"\n',
    )
    assert found == ["a/x.h", "b/y.h", "b/deep/z.h"]


def test_up_from_a_link_is_where_the_link_leads(tree, tmp_path):
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "inner")
    found = tree(
        "#include <link/x.h>\n",
        real__inner__x_h='#include "../beside.h"\n',
        real__beside_h="// this one\n",
        beside_h="// the other one\n",
    )
    assert found == ["link/x.h", "link/../beside.h"]


def test_the_headers_of_culaunch_are_few_files():
    found = follow(
        "#include <culaunch/jit.h>\n", "/source.cpp", Search(dirs=[cl.cpp.include_dir()])
    )
    ours = [one for one in found.footprint.found if "/culaunch/" in one.path]
    assert 40 < len(ours) < 150
