"""Hooks of an autotuner's configurations at compile time, and what a set saves of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from culaunch._triton.compiling.hook_effects import effects_of
from culaunch._triton.tensor_descriptor import descriptor_type, split_descriptor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from culaunch._triton.compiling.signature import Argument


class SavedHooks:
    """The effects of the configurations' hooks before a launch, over all variants.

    Parameters
    ----------
    function : JITFunction
    configs : sequence of triton.Config
        The configurations that are used.
    has_own_configs : bool
        Whether the caller names the configurations. Then it is unknown whose hooks apply, and all
        hooks must do the same.

    Attributes
    ----------
    zeroes : tuple of str
        The arguments that every launch sets to zero.
    blocks : tuple of str
        The tensor descriptors whose blocks follow from the configuration.
    """

    def __init__(self, function: Any, configs: Sequence[Any], *, has_own_configs: bool) -> None:
        self._name = function.__name__
        self._configs = configs
        self._has_own_configs = has_own_configs
        # The arguments that are set to zero, and the descriptors whose blocks are set, which must
        # be the same for all variants. Also one configuration with these effects, for messages.
        self._found: dict[tuple[tuple[str, ...], tuple[str, ...]], Any] = {}

    @property
    def zeroes(self) -> tuple[str, ...]:
        """The arguments that every launch sets to zero."""
        return next(iter(self._found), ((), ()))[0]

    @property
    def blocks(self) -> tuple[str, ...]:
        """The tensor descriptors whose blocks follow from the configuration."""
        return next(iter(self._found), ((), ()))[1]

    def apply(
        self,
        arguments: Mapping[str, Argument],
        config: Mapping[str, Any],
        settings: Mapping[str, Any],
    ) -> dict[str, Argument]:
        """Return a variant's arguments after its configuration's hook.

        Parameters
        ----------
        arguments : mapping
            By name, without the results of heuristics.
        config : mapping
            The settings of the configuration.
        settings : mapping
            All constants and options that are known.

        Raises
        ------
        ValueError
            If a hook may have effects that cannot be saved, or if the configurations have
            different effects.
        """
        made = dict(arguments)
        for one in self._configs:
            if not self._has_own_configs and dict(one.all_kwargs()) != dict(config):
                continue
            for name, block in self._effects(one, arguments, settings).items():
                known = split_descriptor(made[name].type)
                assert known is not None
                element, own = known
                if len(own) != len(block):
                    raise ValueError(
                        f"the pre_hook of the configuration {one} of {self._name} gives {name} a "
                        f"block of {len(block)} sizes, but the signature declares a block of "
                        f"{len(own)}"
                    )
                made[name] = replace(made[name], type=descriptor_type(element, block))
        return made

    def _effects(
        self, config: Any, arguments: Mapping[str, Argument], settings: Mapping[str, Any]
    ) -> dict[str, tuple[int, ...]]:
        zeroes: tuple[str, ...] = ()
        blocks: dict[str, tuple[int, ...]] = {}
        if config.pre_hook is not None:
            kinds = {
                name: "i32" if argument.key == 1 else argument.type
                for name, argument in arguments.items()
                if name not in settings
            }
            found = effects_of(config.pre_hook, settings, kinds)
            if found is None:
                raise ValueError(
                    f"the configuration {config} of {self._name} has a pre_hook, which is Python "
                    "code and cannot be saved. A hook can be saved if it only sets arguments to "
                    'zero, kw["out_ptr"].zero_(), or blocks of descriptors to numbers, '
                    f'kw["desc"].block_shape = [kw["BLOCK_M"], 64]. {self._advice}'
                )
            zeroes, blocks = tuple(sorted(found.zeroes)), found.blocks
        self._found.setdefault((zeroes, tuple(sorted(blocks))), config)
        self._check_alike()
        return blocks

    def _check_alike(self) -> None:
        if len(self._found) == 1:
            return
        (one, first), (other, second), *_ = self._found.items()
        what, index = ("different arguments to zero", 0)
        if one[0] == other[0]:
            what, index = "the blocks of different descriptors", 1
        raise ValueError(
            f"the configurations of {self._name} set {what} before a launch: "
            f"({', '.join(one[index])}) of {first}, ({', '.join(other[index])}) of {second}. "
            f"{self._advice}"
        )

    @property
    def _advice(self) -> str:
        return (
            "Compile the kernel below the autotuner (.fn) with configs=[...], and do what the "
            f"hook does before each launch of {self._name}"
        )
