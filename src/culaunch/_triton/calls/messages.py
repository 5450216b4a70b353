"""Messages for wrong calls of a Triton kernel; the native dispatcher calls this."""

from __future__ import annotations

from typing import Any, NoReturn

from culaunch._base.values import counted, show
from culaunch._launch.formats.dlpack import memory_name
from culaunch._triton.calls.private_members import driver_of, names_of


def raise_binding(dispatcher: Any, what: str, name: str | None, count: int) -> NoReturn:
    """Raise for arguments that do not match the parameters."""
    title = f"{dispatcher.name}()"
    names = names_of(dispatcher)
    if what == "not_by_position":
        raise TypeError(
            f"{title} was compiled already, and takes its {counted(len(names), 'argument')} "
            f"({', '.join(names)}) by position"
        )
    if what == "too_many":
        raise TypeError(
            f"{title} takes {counted(len(names), 'argument')} ({', '.join(names)}), but {count} "
            "positional "
            "ones were given"
        )
    if what == "twice":
        raise TypeError(f"{title} got two values for argument {name!r}: give it once")
    if what == "tuned":
        raise ValueError(
            f"Conflicting meta-parameters: {name}. The autotuner chooses it: leave it out of the "
            f"call of {title}"
        )
    # Comes before the general message: omitting it is right with Triton's own kernel, and this
    # message explains the difference.
    if name in getattr(dispatcher, "heuristics", ()):
        raise TypeError(
            f"{title} is missing argument {name!r}: it comes from @triton.heuristics, whose Python "
            "is not saved. Compute it as the heuristic does, and pass it"
        )
    raise TypeError(f"{title} is missing argument {name!r}, which has no default")


def raise_unknown(dispatcher: Any, unknown: list[str], options: list[str]) -> NoReturn:
    """Raise for keywords that are neither parameters nor options."""
    names = ", ".join(names_of(dispatcher))
    raise TypeError(
        f"{dispatcher.name}() has no parameter {', '.join(unknown)}: it takes {names}, and the "
        f"options {', '.join(options)}"
    )


def raise_argument(
    dispatcher: Any, index: int, value: object, mismatch: str, detail: int, device: int
) -> NoReturn:
    """Raise for one argument; csrc/arguments/convert.h has the list."""
    name = names_of(dispatcher)[index]
    start = f"argument {name!r} of {dispatcher.name}()"
    got = f"(got {show(value)})"
    annotation = dispatcher.annotations.get(name, "")
    if mismatch == "overflow":
        limit = annotation or "64 bits"
        raise OverflowError(f"{start} does not fit {limit} {got}")
    if mismatch == "memory":
        raise ValueError(
            f"{start} must be in the memory of the driver in use, "
            f"{driver_of(dispatcher).name!r} (got {show(value)} in {memory_name(detail)}): "
            "move it to the device"
        )
    if mismatch == "tensor":
        from culaunch._launch.torch.tensor import refusal

        raise TypeError(refusal(start, value))
    if mismatch == "device":
        raise ValueError(
            f"{start} is on device {detail} (got {show(value)}), but earlier arguments are on "
            f"device {device}: all arrays of a call must be on one device"
        )
    if mismatch == "kind" and annotation:
        raise TypeError(f"{start} must be of the declared type {annotation} {got}")
    raise TypeError(
        f"{start} must be a tensor, an int, a float, a bool, None, a tuple of these, a tensor "
        f"descriptor or a constexpr {got}"
    )
