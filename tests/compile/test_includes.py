"""The include scan: whatever the text, it ends and does not fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culaunch._compile._includes import collect_includes, scan
from culaunch._compile._toolkit import Toolkit

NO_TOOLKIT = Toolkit(lambda: ([], []))
NAMES = ["a.h", "d/b.h", "d/e/c.h", "../a.h", "./b.h", "missing.h", "c"]
LINES = st.sampled_from(
    [f"#include {q[0]}{name}{q[1]}" for name in NAMES for q in ('""', "<>")]
    + ["# include\tMACRO", "#include", '#if __has_include("a.h")', "int x;", '"', "#", "/*", "*/"]
)
TEXTS = st.lists(LINES, max_size=6).map("\n".join) | st.text(max_size=80)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('#include "a.h"', ['"a.h']),
        (" \t# \tinclude\t<a/b.h> // why", ["<a/b.h"]),
        ("#include_next <a.h>", ["<a.h"]),
        ('#if __has_include( "a.h" ) && __has_include(<b.h>)', ['"a.h', "<b.h"]),
        ("x #include <a.h>", []),
        ("#includes <a.h>", []),
        ('#include "a\n.h"', []),
    ],
)
def test_what_counts(text, found):
    assert [spelled for spelled, computed, _ in scan(text) if not computed] == found


@given(
    text=TEXTS, headers=st.dictionaries(st.sampled_from(["a.h", "d/b.h", "d/e/c.h", "c"]), TEXTS)
)
def test_any_text_ends(text, headers):
    rewritten, found = collect_includes(text, headers, [], NO_TOOLKIT)
    assert rewritten.count("\n") == text.count("\n"), "line numbers stay as they were"
    assert set(found.memory) <= set(headers)
    again = collect_includes(text, headers, [], NO_TOOLKIT)
    assert (again[0], again[1].digest) == (rewritten, found.digest)


@given(headers=st.dictionaries(st.sampled_from(["a.h", "d/b.h"]), TEXTS, min_size=1))
def test_a_change_in_a_header_that_is_reached_changes_the_digest(headers):
    source = "".join(f'#include "{name}"\n' for name in headers)
    before = collect_includes(source, headers, [], NO_TOOLKIT)[1].digest
    for name in headers:
        changed = {**headers, name: headers[name] + "\n// changed"}
        assert collect_includes(source, changed, [], NO_TOOLKIT)[1].digest != before


def test_a_cycle_ends():
    headers = {"a.h": '#include "b.h"\n', "b.h": '#include "a.h"\n'}
    _, found = collect_includes('#include "a.h"', headers, [], NO_TOOLKIT)
    assert sorted(found.memory) == ["a.h", "b.h"]
