"""A library's function as an entry of another library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._image import Image
from culaunch._ship.manifest.annotation import write_parameters
from culaunch._ship.manifest.kinds import write_kind
from culaunch._ship.manifest.values import write_value

if TYPE_CHECKING:
    from culaunch._ship.functions.loaded_function import LoadedFunction
    from culaunch._ship.manifest.entry import SavedKind
    from culaunch._ship.saving.members import Members


def entry_of(function: LoadedFunction, members: Members) -> dict[str, Any]:
    """Return a function's entry in a manifest; its programs and images become members.

    Raise ImageError if a member of the library is damaged, or an image is invalid.
    """
    saved = function.entry
    return {
        "doc": saved.doc,
        "parameters": write_parameters(function.declaration, lambda value, _: write_value(value)),
        "mutates": list(saved.mutates),
        "may_mutate": list(saved.may_mutate),
        "kinds": [_kind(function, one, members) for one in saved.kinds],
    }


def _kind(function: LoadedFunction, saved: SavedKind, members: Members) -> dict[str, Any]:
    library = function.programs.library
    # Members are named by their digests, so an image that was renamed by hand gets its digest name
    # again.
    renamed: dict[str, str] = {}

    def image(member: str) -> str:
        if member not in renamed:
            data = library.read(member)
            renamed[member] = members.add_image(Image(data, path=f"{library.source}:{member}"))
        return renamed[member]

    return {
        "arguments": write_kind(saved.kind),
        "program": members.program(library.read(saved.program)),
        "constants": [with_images(one, image) for one in saved.constants],
        "texts": list(saved.texts),
        "writes": sorted(saved.writes),
        "guards": [[block, *said] for block, said in saved.guards.items()],
        "explanation": saved.explanation,
    }


def with_images(constant: Any, image: Any) -> Any:
    """Return a constant with its images renamed."""
    if type(constant) is dict and "kernel" in constant:
        one = constant["kernel"]
        return {"kernel": {"image": image(one["image"]), "name": one["name"]}}
    return constant
