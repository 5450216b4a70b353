"""The page's table of functions is the code's."""

from __future__ import annotations

import table


def test_the_table_of_functions_is_up_to_date():
    assert table.on_page() == table.table(), "run python tests/elementwise/table.py"
