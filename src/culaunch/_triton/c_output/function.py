"""One C function: the variants of a set with the same element types, and the choice of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._base.architectures import architecture
from culaunch._triton.c_output.parameters import CParameters, leaf_keys
from culaunch._triton.c_output.variant import CVariant
from culaunch._triton.variants.parameter_sources import leaves_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from culaunch._triton.c_output.configs import CConfigs
    from culaunch._triton.saved.set import SavedSet
    from culaunch._triton.saved.variant import SavedVariant


class CFunction:
    """The C function for the variants of one list of element types.

    Parameters
    ----------
    name : str
        Its name in C.
    kernels : SavedSet
    configs : CConfigs
    variants : sequence of (int, SavedVariant)
        With their places in the table of variants.
    taken : iterable of str
        Names that the header has as macros.

    Raises
    ------
    ValueError
        If C cannot say the type of an argument, a heuristic or the grid.
    """

    def __init__(
        self,
        name: str,
        kernels: SavedSet,
        configs: CConfigs,
        variants: Sequence[tuple[int, SavedVariant]],
        taken: Iterable[str],
    ) -> None:
        self.name = name
        self.variants = variants
        self.parameters = CParameters(
            kernels.parameters, [one for _, one in variants], taken, kernels.zeroes
        )
        self._kernels = kernels
        self._configs = configs

    @property
    def parameter_list(self) -> str:
        """The text between the parentheses of its declaration."""
        return self.parameters_with(f"const {self._configs.type} *config")

    def parameters_with(self, *config: str) -> str:
        """Return its parameters, with this text instead of the configuration, or without it."""
        grid = ["unsigned grid_x", "unsigned grid_y", "unsigned grid_z"]
        return ", ".join(
            [
                "CUstream stream",
                *([] if self._kernels.grid is not None else grid),
                *config,
                *(text for one in self.parameters.all for text in one.declarations),
            ]
        )

    @property
    def declaration(self) -> str:
        """Its declaration, without the semicolon."""
        return f"CUresult {self.name}({self.parameter_list})"

    @property
    def arguments(self) -> str:
        """The arguments that another function with the same parameters passes on to it."""
        return self.arguments_with("config")

    def arguments_with(self, *config: str) -> str:
        """Return its arguments, with this text instead of the configuration, or without it."""
        grid = ["grid_x", "grid_y", "grid_z"] if self._kernels.grid is None else []
        names = (name for one in self.parameters.all for name in one.names)
        return ", ".join(["stream", *grid, *config, *names])

    @property
    def body(self) -> str:
        """Its definition."""
        # The most specialized variant comes first, as in the Python dispatch.
        blocks = [
            CVariant(index, variant, self._kernels, self.parameters).text
            for index, variant in sorted(self.variants, key=lambda pair: -_score(pair[1]))
        ]
        # Refuse arguments that no variant accepts before trying any variant.
        checks = "".join(
            f"  if (!config || config->{field} == {self._configs.any}) "
            "return CUDA_ERROR_INVALID_VALUE;\n"
            for field in self._configs.must_say
        )
        checks += "".join(
            f"  if (!culaunch_is_tensor({one.name}, {one.rank})) return CUDA_ERROR_INVALID_VALUE;\n"
            for one in self.parameters.all
            if one.is_descriptor
        )
        empty = ""
        # A launch without blocks also sets arguments to zero, as in Python.
        if self._kernels.grid is None and not self._kernels.zeroes:
            empty = "  if (grid_x == 0 || grid_y == 0 || grid_z == 0) return CUDA_SUCCESS;\n"
        unused = "".join(f"  (void){name};\n" for one in self.parameters.all for name in one.names)
        return (
            f"{self.declaration} {{\n"
            "  int culaunch_device = 0, culaunch_capability = 0;\n"
            "  const CUresult culaunch_code = culaunch_find_device(&culaunch_device, "
            "&culaunch_capability);\n"
            "  if (culaunch_code != CUDA_SUCCESS) return culaunch_code;\n"
            f"{empty}{unused}{checks}{''.join(blocks)}"
            "  return culaunch_any_fits(culaunch_capability) ? CUDA_ERROR_INVALID_VALUE\n"
            "                                                : CUDA_ERROR_NO_BINARY_FOR_GPU;\n}\n"
        )


def _score(variant: SavedVariant) -> int:
    keys = list(leaf_keys(variant.types, variant.keys))
    kinds = list(leaves_of(variant.types))
    score = sum(
        2 if kind == "constexpr" else key == "D" for kind, key in zip(kinds, keys, strict=True)
    )
    arch = architecture(variant.arch)
    assert arch is not None
    # A cubin comes before PTX, which the driver would have to compile first.
    nearness = arch.number + (0 if arch.is_virtual else 1000)
    return score * 10_000 + nearness
