"""Run culaunch's Python API for the CMake functions, with any Python.

Not the command line, which needs more packages: to embed, the standard library is enough.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HERE = Path(__file__).resolve().parent
PACKAGES = HERE.parents[1] if (HERE.parent / "__init__.py").exists() else HERE.parent / "src"
# Last: a culaunch that this Python has installed is this one, or is there to be used instead.
sys.path.append(str(PACKAGES))

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)


def embed(arguments: argparse.Namespace) -> None:
    """Write an object with an image."""
    import culaunch as cl

    cl.cpp.embed(
        arguments.image,
        arguments.output,
        arguments.name,
        symbol_style=arguments.symbol_style,
        machine=arguments.machine or None,
    )


def embed_source(arguments: argparse.Namespace) -> None:
    """Write a C++ source with a copy of an image, for code that a compiler must have made."""
    import culaunch as cl
    from culaunch._embed.assembler import assembler_source

    data = Path(arguments.image).read_bytes()
    cl.Image.open(data)
    Path(arguments.copy).write_bytes(data)
    text = assembler_source(arguments.copy, len(data), arguments.name, arguments.symbol_style)
    Path(arguments.output).write_text(text)


def embed_headers(arguments: argparse.Namespace) -> None:
    """Write a C++ source with device headers, by the names that #include uses."""
    base = Path(arguments.base).resolve()
    found: dict[str, bytes] = {}
    for file in arguments.file:
        path = Path(file).resolve()
        if base not in path.parents:
            raise ValueError(f"{file} is not below BASE, {base}")
        found[path.relative_to(base).as_posix()] = path.read_bytes()
    for name, data in found.items():
        if b"\0" in data:
            raise ValueError(f"{name} is not text: it has a null byte")
    lines = ["// Device headers for culaunch::Jit. Made by culaunch_add_headers().", 'extern "C" {']
    for what, kind, values in (
        ("names", "const char* const", [literal(name.encode()) for name in found]),
        ("texts", "const char* const", [literal(data) for data in found.values()]),
        ("sizes", "const unsigned long long", [f"{len(data)}ull" for data in found.values()]),
    ):
        symbol = f"culaunch_header_{what}_{arguments.name}"
        lines.append(f'__attribute__((visibility("hidden"))) extern {kind} {symbol}[];')
        lines.append(f"{kind} {symbol}[] = {{")
        lines += [f"  {value}," for value in values]
        lines.append("};")
    symbol = f"culaunch_header_count_{arguments.name}"
    kind = "const unsigned long long"
    lines.append(f'__attribute__((visibility("hidden"))) extern {kind} {symbol};')
    lines += [f"{kind} {symbol} = {len(found)}ull;", "}", ""]
    Path(arguments.output).write_text("\n".join(lines))


def literal(data: bytes) -> str:
    """Return the C literal of bytes, a line of it for each line of theirs."""
    parts = []
    for line in data.splitlines(keepends=True) or [b""]:
        plain = "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}"
            for byte in line
        )
        parts.append(f'"{plain}"')
    return "\n      ".join(parts)


def compile_image(arguments: argparse.Namespace) -> None:
    """Compile with NVRTC, and write what the image depends on as a compiler would."""
    import culaunch as cl

    source = Path(arguments.source)
    directories = [source.parent, *map(Path, arguments.include_dir)]
    image = cl.compile(
        source,
        arch=arguments.arch.split(","),
        names=arguments.name,
        include_dirs=directories,
        extra_options=arguments.option,
    )
    image.save(arguments.output)
    files = sorted(str(path) for path in dependencies(source, directories))
    escaped = [re.sub(r"([\s#\\])", r"\\\1", name).replace("$", "$$") for name in files]
    target = re.sub(r"([\s#\\])", r"\\\1", arguments.output).replace("$", "$$")
    Path(arguments.depfile).write_text(f"{target}: {' '.join(escaped)}\n")


MARK = re.compile(r"\.global[ \t].*?culaunch_mark_(\d+) = (?:generic\()?([\w$]+)")


def describe_kernels(arguments: argparse.Namespace) -> None:
    """Write into an image of nvcc what cl.compile records: names and the types of parameters."""
    source = Path(arguments.source)
    try:
        import culaunch as cl
        from culaunch._core import kernel_signatures

        ptx = ptx_of(arguments, "", arguments.name)
    except (ImportError, RuntimeError) as error:
        if arguments.name:
            raise
        # A culaunch that is not built, or an option that is not for PTX. The image is complete.
        print(f"culaunch: the types of parameters are not recorded: {error}", file=sys.stderr)  # noqa: T201
        return
    names = lowered(ptx, arguments.name)
    missing = [name for name in arguments.name if name not in names]
    if missing:
        raise ValueError(f"NAMES has {missing[0]!r}, for which nvcc gives no lowered name")

    def probe(text: str, expressions: Mapping[str, str]) -> dict[str, str]:
        try:
            found = lowered(ptx_of(arguments, text, expressions.values()), expressions.values())
        except RuntimeError:
            return {}
        return {kernel: found[name] for kernel, name in expressions.items() if name in found}

    texts = [Path(one).read_text(errors="replace") for one in arguments.text or [source]]
    signatures = kernel_signatures(ptx.encode(), "\n".join(texts), probe)
    data = Path(arguments.output).read_bytes()
    cl.Image(data, names=names, signatures=signatures).save(arguments.output)


def ptx_of(arguments: argparse.Namespace, text: str, names: Iterable[str]) -> str:
    """Compile the source with a text behind it to PTX, where `lowered` finds the names."""
    # The lowered name of an expression is in the PTX, as the initial value of a variable.
    marks = "".join(
        f'extern "C" __device__ const void* culaunch_mark_{index} = (const void*)({name});\n'
        for index, name in enumerate(names)
    )
    number = arguments.arch.partition("_")[2]
    with tempfile.TemporaryDirectory() as folder:
        source, ptx = Path(folder, "marks.cu"), Path(folder, "marks.ptx")
        source.write_text(f'#include "{Path(arguments.source).resolve()}"\n{text}\n{marks}')
        command = [arguments.nvcc, *arguments.option, f"-arch=compute_{number}", "-ptx"]
        command += [f"-I{directory}" for directory in arguments.include_dir]
        done = subprocess.run(  # noqa: S603
            [*command, "-o", str(ptx), str(source)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"nvcc cannot name the kernels of NAMES:\n{done.stderr}{done.stdout}"
            )
        return ptx.read_text()


def lowered(ptx: str, names: Iterable[str]) -> dict[str, str]:
    """Return the lowered names of those that PTX has."""
    found = {int(index): symbol for index, symbol in MARK.findall(ptx)}
    return {name: found[index] for index, name in enumerate(names) if index in found}


def dependencies(source: Path, directories: list[Path]) -> set[Path]:
    """Return a source and the headers that it can reach: all that are named, used or not."""
    found: set[Path] = set()
    left = [source]
    while left:
        path = left.pop().resolve()
        if path in found:
            continue
        found.add(path)
        for name in INCLUDE.findall(path.read_text(errors="replace")):
            places = [path.parent, *directories]
            left += [p / name for p in places if (p / name).is_file()][:1]
    return found


def cuda_include_dir(arguments: argparse.Namespace) -> None:  # noqa: ARG001
    """Print where this Python's packages have cuda.h."""
    for entry in sys.path:
        for folder in sorted(Path(entry or ".").glob("nvidia/cu*/include"), reverse=True):
            if (folder / "cuda.h").is_file():
                print(folder)  # noqa: T201
                return


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser(prog="culaunch_tool.py")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("embed")
    command.set_defaults(run=embed)
    for word in ("image", "output", "name"):
        command.add_argument(word)
    command.add_argument("--machine", default="")
    command.add_argument("--symbol-style", default="culaunch")
    command = commands.add_parser("embed-source")
    command.set_defaults(run=embed_source)
    for word in ("copy", "image", "output", "name"):
        command.add_argument(word)
    command.add_argument("--symbol-style", default="culaunch")
    command = commands.add_parser("embed-headers")
    command.set_defaults(run=embed_headers)
    for word in ("output", "name", "base"):
        command.add_argument(word)
    command.add_argument("file", nargs="+")
    command = commands.add_parser("compile")
    command.set_defaults(run=compile_image)
    for word in ("source", "output"):
        command.add_argument(word)
    for option in ("--arch", "--depfile"):
        command.add_argument(option, required=True)
    for option in ("--include-dir", "--option"):
        command.add_argument(option, action="append", default=[])
    command.add_argument("--name", action="append", default=[])
    command = commands.add_parser("describe")
    command.set_defaults(run=describe_kernels)
    for word in ("source", "output"):
        command.add_argument(word)
    for option in ("--arch", "--nvcc"):
        command.add_argument(option, required=True)
    for option in ("--include-dir", "--option", "--name", "--text"):
        command.add_argument(option, action="append", default=[])
    commands.add_parser("cuda-include-dir").set_defaults(run=cuda_include_dir)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except (ImportError, OSError, ValueError, RuntimeError) as error:
        sys.exit(f"{os.path.basename(__file__)}: {error}")
    except Exception as error:
        if type(error).__module__.startswith("culaunch"):
            sys.exit(f"culaunch: {error}")
        raise


if __name__ == "__main__":
    main()
