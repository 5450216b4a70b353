"""The images of a set in C: arrays in the source, or symbols of an object file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._base.architectures import architecture
from culaunch._triton.c_output.names import c_string

if TYPE_CHECKING:
    from culaunch._triton.saved.set import SavedSet
    from culaunch._triton.saved.variant import SavedVariant

# The prefix of the symbols of embedded images.
_PREFIX = "culaunch_image_"


class CImages:
    """The images, and the table of variants that names them.

    Parameters
    ----------
    kernels : SavedSet
    name : str
        Of the set in C.
    as_object : bool
        Whether they are in an object of their own.
    """

    def __init__(self, kernels: SavedSet, name: str, as_object: bool) -> None:
        self._kernels = kernels
        self._as_object = as_object
        prefix = f"{_PREFIX}{name}_" if as_object else _PREFIX
        # In the order of the variants, without duplicates, because two variants may share an image.
        members = dict.fromkeys(_member(one) for one in kernels.variants)
        self._names = {member: f"{prefix}{i}" for i, member in enumerate(members)}

    @property
    def text(self) -> str:
        """The images, or their declarations, and the table."""
        if self._as_object:
            arrays = [
                # Hidden symbols, invisible to other libraries.
                f'extern const unsigned char {name}[] __attribute__((visibility("hidden")));'
                for name in self._names.values()
            ]
        else:
            arrays = [
                _array(name, self._kernels.read(member)) for member, name in self._names.items()
            ]
        rows = [_row(one, self._names[_member(one)]) for one in self._kernels.variants]
        return "\n".join(
            [
                *arrays,
                f"#define CULAUNCH_VARIANTS {len(rows)}\n"
                "static culaunch_variant culaunch_variants[] = {\n" + "\n".join(rows) + "\n};\n",
            ]
        )

    def object_file(self, machine: str | None) -> bytes:
        """Return the object file, for a processor: this machine's by default."""
        from culaunch._embed.named_images import embed_named_images

        images = {
            name.removeprefix(_PREFIX): self._kernels.read(member)
            for member, name in self._names.items()
        }
        return embed_named_images(images, machine)


def _member(variant: SavedVariant) -> str:
    member = variant.image or variant.ptx
    assert member is not None
    return member


def _row(variant: SavedVariant, image: str) -> str:
    arch = architecture(variant.arch)
    if arch is None:
        raise ValueError(f"the architecture {variant.arch!r:.60} is not known")
    facts = variant.facts
    return (
        f"    {{{image}, {c_string(facts.name)}, {arch.number}, "
        f"'{arch.rule}', {32 * facts.num_warps}, {facts.num_ctas}, {facts.shared}, "
        f"{facts.global_scratch_size}, {facts.profile_scratch_size}, "
        f"{int(facts.launch_cooperative_grid)}, {int(facts.launch_pdl)}, NULL, NULL, 0}},"
    )


def _array(name: str, data: bytes) -> str:
    # A terminating zero: PTX is a string to the driver.
    numbers = [str(byte) for byte in (*data, 0)]
    lines = [",".join(numbers[i : i + 40]) for i in range(0, len(numbers), 40)]
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(lines) + "};\n"
