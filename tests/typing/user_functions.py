"""A user's code with functions. Type checkers refuse only the marked lines."""

from typing import Annotated, Any

import culaunch as cl


@cl.function
def scale(x: Any, factor: float, *, n: int = 3) -> tuple[int, str]:
    return n, "a"


@cl.function(debug=True, mutates=("x",))
def other(x: Annotated[Any, cl.Array("float32", "n")]) -> None: ...


class Tensor:
    """A framework's array."""


@cl.function
def annotated(
    x: Annotated[Tensor, cl.Array], y: Annotated[Tensor, cl.Array("float32", "n")] | None = None
) -> Tensor:
    z: Tensor = cl.empty_like(x)
    z = cl.zeros_like(x, dtype="float16")
    z = cl.empty(3, like=x)
    n: int = cl.zeros(3, "float32").shape[0]  # of the call's framework: any type
    return cl.empty(n, like=z)


result: Tensor = annotated(Tensor())
annotated(Tensor(), Tensor())
annotated(3)  # refused
array: cl.DeviceArray = cl.empty((3, 4), device=0)
host: list[int] = cl.empty_like(Tensor())  # refused
wrong: int = cl.zeros(3, device=0)  # refused
array.copy_from(array + array)  # refused


good: tuple[int, str] = scale(1, 2.0, n=3)
scale(1, "a")  # refused
scale(1)  # refused
other(3, 4)  # refused
