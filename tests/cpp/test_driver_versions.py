"""Each function of the driver table has the ABI of the version that the driver is asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import culaunch as cl


def test_versions_are_those_of_the_declarations(build, gxx, cuda_headers, tmp_path):
    if not (Path(cuda_headers) / "cudaTypedefs.h").exists():
        pytest.skip("needs cuda.h")
    table = (Path(cl.cpp.include_dir()) / "culaunch" / "driver_table.h").read_text()
    functions = re.findall(r"X\((\w+), (\d+), \w+\)", table)
    assert len(functions) > 100
    lines = [
        f"static_assert(std::is_same_v<decltype(&::{name}), "
        f'PFN_{re.sub(r"_v[0-9]$", "", name)}_v{version}>, "{name}");'
        for name, version in functions
    ]
    source = tmp_path / "versions.cpp"
    source.write_text(
        "#include <cuda.h>\n#include <cudaTypedefs.h>\n#include <type_traits>\n"
        + "\n".join(lines)
        + "\nint main() {}\n"
    )
    build(gxx, "versions", source)
