"""What a user of functions writes. Type checkers refuse the lines marked so, and no other."""

from typing import Annotated, Any

import culaunch as cl


@cl.function
def scale(x: Any, factor: float, *, n: int = 3) -> tuple[int, str]:
    return n, "a"


@cl.function(debug=True, mutates=("x",))
def other(x: Annotated[Any, cl.Array("float32", "n")]) -> None: ...


good: tuple[int, str] = scale(1, 2.0, n=3)
scale(1, "a")  # refused
scale(1)  # refused
other(3, 4)  # refused
