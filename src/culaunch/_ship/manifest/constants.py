"""The constants of a program: their form in a manifest, and the objects made from it."""

from __future__ import annotations

import keyword
import re
from collections import namedtuple
from typing import TYPE_CHECKING, Any

from culaunch._function.tracing.results import dict_maker
from culaunch._ship.manifest.json_lists import texts_of
from culaunch._ship.manifest.values import read_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from culaunch._launch import Kernel

    class Images(Protocol):
        """The images of a program's kernels."""

        source: str

        def kernel(self, member: str, name: str) -> Kernel:
            """Return a kernel of an image."""


MOST_PARAMETERS = 255

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SYMBOL = re.compile(r"[A-Za-z_$%.][A-Za-z0-9_$%.]*")


def checked_constant(data: Any, members: Mapping[str, Any]) -> Any:
    """Return a program's constant unchanged, after checking that it is in the closed set."""
    if type(data) is dict and len(data) == 1:
        ((word, inside),) = data.items()
        if word == "kernel":
            if type(inside) is not dict:
                raise ValueError("kernel must be an object with an image and a name")
            image, name = inside.get("image"), inside.get("name")
            if not isinstance(image, str) or image not in members:
                raise ValueError(f"the image of a kernel must be a member (got {image!r:.60})")
            if not is_symbol(name):
                raise ValueError(
                    f"the name of a kernel must be a symbol of its image (got {name!r:.60})"
                )
            return data
        if word == "namedtuple":
            if type(inside) is not dict:
                raise ValueError("namedtuple must be an object with a name and fields")
            fields = texts_of(inside, "fields", MOST_PARAMETERS)
            words = [inside.get("name"), *fields]
            if len(set(fields)) != len(fields) or not all(
                isinstance(one, str) and _NAME.fullmatch(one) and not keyword.iskeyword(one)
                for one in words
            ):
                raise ValueError(
                    "a namedtuple and its fields must have different names that are Python "
                    "identifiers"
                )
            return data
        if word == "keys":
            keys = read_value({"tuple": inside})
            if len(set(keys)) != len(keys):
                raise ValueError("keys must not contain a key twice")
            return data
    read_value(data)
    return data


def is_symbol(name: object) -> bool:
    """Whether a kernel of an image may have this name."""
    return isinstance(name, str) and _SYMBOL.fullmatch(name) is not None


def make_constant(data: Any, images: Images) -> Any:
    """Return the object that a checked constant becomes in a program."""
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
