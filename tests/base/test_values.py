"""Numbers with their nouns, as messages write them."""

import pytest

import culaunch as cl
from culaunch._base.values import counted


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "byte", "0 bytes"), (1, "byte", "1 byte"), (2, "byte", "2 bytes"),
        (1, "entry", "1 entry"), (3, "entry", "3 entries"), (2, "axis", "2 axes"),
        (4, "launch", "4 launches"),
    ],
)  # fmt: skip
def test_a_noun_agrees_with_its_number(number, noun, text):
    assert counted(number, noun) == text


def test_messages_of_a_launch_count_one(culaunch_driver):
    image = cl.compile(
        'extern "C" __global__ void store(char* out) { *out = 1; }\n'
        'extern "C" __global__ void flag(bool x) {}'
    )
    module = cl.load(image)
    with pytest.raises(TypeError, match=r"^store takes 1 argument \(char\*\) \(got 2\)"):
        module["store"][1, 1](None, None)
    with pytest.raises(TypeError, match=r"bool \(1 byte\)"):
        module["flag"][1, 1]("text")
