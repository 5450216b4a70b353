"""The header of a set in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._base.data_files import data_text

if TYPE_CHECKING:
    from culaunch._triton.c_output.c_set import CSet


def header_text(output: CSet) -> str:
    """Return the header with the functions that a program calls."""
    name, configs = output.name, output.configs
    guard = f"CULAUNCH_TRITON_{name}"
    first = output.functions[0]
    parts = [
        f"/* {name}: Triton kernels, compiled by culaunch. Link with -lcuda -lm. */",
        f"#ifndef {guard}\n#define {guard}\n",
        "#include <cuda.h>\n#include <stdint.h>\n",
    ]
    if any(one.is_descriptor for one in first.parameters.all):
        parts.append(data_text(__name__, "c/descriptor.h"))
    parts.append('#ifdef __cplusplus\nextern "C" {\n#endif\n')
    parts += [f"#define {macro} {value}" for macro, value in output.macros.items()]
    parts.append(configs.structure())
    parts.append(_about(output))
    parts += [f"{one.declaration};" for one in output.functions]
    if first.name != name:
        parts.append(f"/* As {first.name}. */\nCUresult {name}({first.parameter_list});")
    if output.defaults:
        parts.append(
            "\n/* The same for any configuration, with the signature of Triton's own tools. */"
        )
        parts += [f"{one.declaration};" for one in output.defaults]
        if first.name != name:
            parts.append(f"CUresult {name}_default({output.defaults[0].parameter_list});")
    parts.append(
        "\n/* Load all variants for the current context's device, or those of one configuration.\n"
        " * Their launches load nothing afterwards, as a capture into a graph requires. */\n"
        f"CUresult {name}_load(void);\n"
        f"CUresult {name}_prepare(const {configs.type} *config);\n"
        "/* Unload all variants on all devices. No launch may run or start meanwhile. */\n"
        f"CUresult {name}_unload(void);\n\n"
        "/* The configurations of the set, for any device; NULL past the last one. */\n"
        f"int {name}_count(void);\n"
        f"const {configs.type} *{name}_config_at(int index);"
    )
    if output.choices:
        parts.append(_about_choices(output))
        parts += [f"{one.declaration};" for one in output.choices]
        if first.name != name:
            chosen = output.choices[0]
            parts.append(f"const {configs.type} *{name}_choose({chosen.parameter_list});")
    parts.append("\n#ifdef __cplusplus\n}\n#endif\n#endif")
    return "\n".join(parts) + "\n"


def _about(output: CSet) -> str:
    """Return the header's comment on a launch."""
    config = "the configuration (NULL: any; the most specialized variant is used)"
    if output.configs.must_say:
        config = f"the configuration, which must set {', '.join(output.configs.must_say)}"
    grid = ""
    if output.kernels.grid is not None:
        sizes = ", ".join(map(str, output.kernels.grid))
        grid = f" The grid is\n * ({_comment(sizes)})."
    return (
        f"/* Launch on the current context's device.{grid} An empty grid launches nothing.\n"
        " * Returns the driver's code: CUDA_ERROR_NO_BINARY_FOR_GPU if no variant is for this\n"
        f" * device, and CUDA_ERROR_INVALID_VALUE if none fits the arguments and\n * {config}. */"
    )


def _about_choices(output: CSet) -> str:
    unsaid = ""
    if output.configs.must_say:
        unsaid = (
            f"\n * It does not set {', '.join(output.configs.must_say)}: copy it, and set that."
        )
    return (
        "\n/* The configuration that was tuned for these values and the function's element\n"
        " * types, or for the nearest ones, on the current device's architecture."
        f"{unsaid} */"
    )


def _comment(text: str) -> str:
    """Return text in a form that is safe in a comment."""
    plain = "".join(one if " " <= one <= "~" else "?" for one in text)
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
