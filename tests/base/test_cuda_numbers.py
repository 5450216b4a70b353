"""Python's copies of numbers of cuda.h are equal to cuda.h."""

import re
from pathlib import Path

import pytest
from cuda_headers import cuda_include

from culaunch._base import cuda

PREFIXES = {
    cuda.DeviceAttribute: "CU_DEVICE_ATTRIBUTE_",
    cuda.FunctionAttribute: "CU_FUNC_ATTRIBUTE_",
    cuda.LaunchAttribute: "CU_LAUNCH_ATTRIBUTE_",
    cuda.GraphNodeType: "CU_GRAPH_NODE_TYPE_",
    cuda.PointerAttribute: "CU_POINTER_ATTRIBUTE_",
    cuda.TensorMapType: "CU_TENSOR_MAP_DATA_TYPE_",
}


@pytest.fixture(scope="module")
def header():
    return Path(cuda_include(), "cuda.h").read_text()


def numbers_of(header, prefix, first=r"\w+"):
    """Read the enumerators of an enumeration, which may count on from the one before."""
    start = re.search(rf"^[ ,]*{prefix}{first}\b", header, re.MULTILINE).start()
    begin, end = header.rindex("{", 0, start), header.index("}", start)
    body = re.sub(r"/\*.*?\*/", "", header[begin + 1 : end], flags=re.DOTALL)
    found, last = {}, -1
    for name, value in re.findall(rf"({prefix}\w+)\s*(?:=\s*(\w+))?", body):
        last = last + 1 if not value else found[value] if value in found else int(value, 0)
        found[name] = last
    return found


@pytest.mark.parametrize("kind", PREFIXES, ids=lambda kind: kind.__name__)
def test_attributes_are_those_of_the_header(header, kind):
    known = numbers_of(header, PREFIXES[kind])
    for one in kind:
        name = PREFIXES[kind] + one.name
        # A header of an older CUDA lacks the newest ones.
        assert known.get(name, one.value) == one.value, name
    assert len([one for one in kind if PREFIXES[kind] + one.name in known]) > len(kind) / 2


def test_results_are_those_of_the_header(header):
    known = numbers_of(header, "CUDA_", "SUCCESS")
    assert {one.full_name: one.value for one in cuda.Result}.items() <= known.items()


def test_numbers_are_written_as_numbers_in_every_python():
    number = cuda.Result.NOT_READY
    assert (str(number), f"{number}", f"{number:d}") == ("600", "600", "600")
    assert f"{number:#x}" == "0x258"
