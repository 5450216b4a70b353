"""The constants of a program, in a manifest: what they are there, and what becomes of them."""

from __future__ import annotations

import keyword
import re
from collections import namedtuple
from typing import TYPE_CHECKING, Any

from culaunch._function.tracing.results import dict_maker
from culaunch._ship.json_lists import texts_of
from culaunch._ship.values import read_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from culaunch._launch import Kernel

    class Images(Protocol):
        """Where the kernels of a program are."""

        source: str

        def kernel(self, member: str, name: str) -> Kernel:
            """Return a kernel of an image."""


MOST_PARAMETERS = 255

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SYMBOL = re.compile(r"[A-Za-z_$%.][A-Za-z0-9_$%.]*")


def checked_constant(data: Any, members: Mapping[str, Any]) -> Any:
    """Return a constant of a program, which is of a closed set, as it came."""
    if type(data) is dict and len(data) == 1:
        ((word, inside),) = data.items()
        if word == "kernel":
            if type(inside) is not dict:
                raise ValueError("a kernel is an image and a name")
            image, name = inside.get("image"), inside.get("name")
            if not isinstance(image, str) or image not in members:
                raise ValueError(f"there is no member {image!r:.60} for an image")
            if not is_symbol(name):
                raise ValueError(f"{name!r:.60} is not the name of a kernel")
            return data
        if word == "namedtuple":
            if type(inside) is not dict:
                raise ValueError("a named tuple has a name and fields")
            fields = texts_of(inside, "fields", MOST_PARAMETERS)
            words = [inside.get("name"), *fields]
            if len(set(fields)) != len(fields) or not all(
                isinstance(one, str) and _NAME.fullmatch(one) and not keyword.iskeyword(one)
                for one in words
            ):
                raise ValueError("a named tuple has a name, and fields with names of their own")
            return data
        if word == "keys":
            keys = read_value({"tuple": inside})
            if len(set(keys)) != len(keys):
                raise ValueError("a key comes twice")
            return data
    read_value(data)
    return data


def is_symbol(name: object) -> bool:
    """Whether a kernel of an image may have this name."""
    return isinstance(name, str) and _SYMBOL.fullmatch(name) is not None


def make_constant(data: Any, images: Images) -> Any:
    """Return the object that a checked constant is in a program."""
    if type(data) is dict:
        if "kernel" in data:
            return images.kernel(data["kernel"]["image"], data["kernel"]["name"])
        if "namedtuple" in data:
            one = data["namedtuple"]
            module = f"culaunch library {images.source}"
            return namedtuple(one["name"], one["fields"], module=module)
        if "keys" in data:
            return dict_maker(read_value({"tuple": data["keys"]}))
    return read_value(data)
