"""The nvcc backend, for features that NVRTC lacks, with the same call and result."""

from __future__ import annotations

import errno
import functools
import os
import re
import subprocess
from typing import TYPE_CHECKING

from culaunch._base.compiler_files import little_room, no_room, write_text
from culaunch._base.cuda_places import find_nvcc
from culaunch._base.scratch import Scratch
from culaunch._compile.architectures import arch_number, check_supported
from culaunch._compile.backend import NOWHERE, Backend, Compiled, Job
from culaunch._compile.diagnostics import compile_error
from culaunch._compile.toolkit import Toolkit
from culaunch._core import kernel_signatures
from culaunch._errors import CompileError, MissingDependencyError
from culaunch._includes.closure import Search
from culaunch._includes.host import HostSearch, ask_nvcc, environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from culaunch._compile.options import Options

# A name that is too long, or a header whose path another header needs as a directory.
_NO_SUCH_NAME = {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST}
_MARKER = re.compile(
    rb"\.(?:visible[ \t]+\.)?global[ \t].*?(culaunch_mark_\d+) = (?:generic\()?([\w$]+)"
)


class Nvcc(Backend):
    """NVIDIA's compiler driver, with its host compiler."""

    name = "nvcc"

    def __init__(self) -> None:
        self.toolkit = Toolkit(lambda: (_own_dirs(), []))

    def identity(self) -> str:
        """Return the full version of nvcc and of the host compiler, and their environment."""
        return _identity(needed_nvcc(), environment())

    def flags(self, options: Options) -> list[str]:
        """Spell the options."""
        return options.nvcc_flags()

    def search(
        self,
        options: Options,
        directory: str | None,
        headers: Mapping[str, str],
        include_dirs: Sequence[str],
    ) -> Search:
        """Return where the host compiler looks for headers.

        It is asked once for each set of options.
        """
        named = [directory, *include_dirs] if directory is not None else include_dirs
        flags = [*options.nvcc_flags(), *(f"--include-path={path}" for path in named)]
        question = (needed_nvcc(), tuple(flags), os.getcwd(), environment())
        try:
            # The answer is cached in the process with its inputs, so an updated host compiler is
            # asked again.
            found, identity = _cached_search(*question)
            if not found.is_current():
                _cached_search.cache_clear()
                found, identity = _cached_search(*question)
        except (OSError, ValueError) as error:
            # Probably an option that nvcc refuses, which the compilation will report.
            return Search(headers, named, unknown=str(error))
        return Search(
            headers,
            found.dirs,
            found.quoted_dirs,
            own=found.own,
            identity=identity,
            # In-memory headers are written to their own directory.
            working=os.path.join(NOWHERE, "headers"),
            forced=found.forced,
            defines=found.defines,
        )

    def check_archs(self, archs: Sequence[str]) -> None:
        """Raise for an architecture that nvcc does not know."""
        check_supported(archs, _supported(needed_nvcc()), "nvcc")

    def compile(self, job: Job, arch: str) -> Compiled:
        """Compile for one architecture, in a directory that is removed afterwards."""
        with Scratch() as directory:
            return _Run(self, job, arch, directory).compile()


class _Run:
    """The files and commands of one compile."""

    def __init__(self, backend: Nvcc, job: Job, arch: str, directory: str) -> None:
        self.backend = backend
        self.job = job
        self.arch = arch
        self.directory = directory
        self.headers = os.path.join(directory, "headers")
        for name, text in job.memory.items():
            path = os.path.join(self.headers, name)
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                write_text(path, text)
            except OSError as error:
                if error.errno not in _NO_SUCH_NAME:
                    raise
                raise ValueError(
                    f"headers: {name!r} cannot be a file, which nvcc needs ({error.strerror}); "
                    "give it another name, or use backend='nvrtc'"
                ) from None
        # In-memory headers come first, and hide files of the same name.
        dirs = [self.headers] if job.memory else []
        dirs += [job.directory] if job.directory is not None else []
        self.includes = [f"--include-path={path}" for path in (*dirs, *job.include_dirs)]

    def compile(self) -> Compiled:
        job, arch = self.job, self.arch
        # A function that is never called instantiates each template. It is host code, and is
        # discarded.
        uses = "".join(
            f"\n#line 1 {_literal(f'names: {name}')}\n__attribute__((unused)) static const void* "
            f"culaunch_use_{index}() {{ return (const void*)({name}); }}\n"
            for index, name in enumerate(job.names)
        )
        if job.lto:
            number = arch_number(arch)
            data, log = self.run(job.text + uses, ["-ltoir", "-dlto", f"-arch=sm_{number}"])
            return Compiled(arch, "ltoir", data, self.lowered(), {}, log)
        if arch.startswith("compute_"):
            data, log = self.run(job.text + uses, ["-ptx", f"-arch={arch}"])
            ptx, kind = data, "ptx"
        else:
            keep = os.path.join(self.directory, "keep")
            os.mkdir(keep)
            data, log = self.run(
                job.text + uses, ["-cubin", f"-arch={arch}", "--keep", "--keep-dir", keep]
            )
            # A cubin contains little about parameter types. The intermediate PTX contains a little
            # more.
            ptx, kind = _read(os.path.join(keep, "kernel.ptx")), "cubin"
        signatures = kernel_signatures(ptx, job.text, None if job.is_heavy else self.probe)
        return Compiled(arch, kind, data, self.lowered(), signatures, log)

    def lowered(self) -> dict[str, str]:
        """Request the lowered names: as initializers of a variable, they appear in the PTX."""
        if not self.job.names:
            return {}
        found = self.marked(self.job.text, self.job.names)
        for name in self.job.names:
            if name not in found:
                raise CompileError(f"names has {name!r}, but nvcc has no lowered name for it")
        return found

    def probe(self, text: str, names: Mapping[str, str]) -> dict[str, str]:
        try:
            found = self.marked(self.job.text + text, tuple(names.values()))
        except CompileError:
            return {}
        return {kernel: found[name] for kernel, name in names.items() if name in found}

    def marked(self, text: str, names: Sequence[str]) -> dict[str, str]:
        marks = "".join(
            f'\nextern "C" __device__ const void* culaunch_mark_{index} = (const void*)({name});\n'
            for index, name in enumerate(names)
        )
        ptx, _ = self.run(text + marks, ["-ptx", f"-arch=compute_{arch_number(self.arch)}"])
        matches = (_MARKER.match(line) for line in ptx.splitlines())
        found = {match[1]: match[2] for match in matches if match is not None}
        return {
            name: found[mark].decode()
            for index, name in enumerate(names)
            if (mark := f"culaunch_mark_{index}".encode()) in found
        }

    def run(self, text: str, mode: Sequence[str]) -> tuple[bytes, str]:
        source = os.path.join(self.directory, "kernel.cu")
        output = os.path.join(self.directory, "output")
        write_text(source, f"#line 1 {_literal(self.job.shown_name)}\n{text}")
        flags = [*mode, *self.job.flags, *self.includes]
        command = [needed_nvcc(), *flags, "-o", output, source]
        result = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, errors="replace", check=False,
            # Temporary files of nvcc and the host compiler are removed with the directory.
            env={**os.environ, "TMPDIR": self.directory},
        )  # fmt: skip
        log = f"{result.stdout}{result.stderr}".strip()
        # Messages use the user's names of files, not the removed directory.
        log = log.replace(f"{self.headers}{os.sep}", "").replace(source, self.job.shown_name)
        if result.returncode != 0:
            full = no_room("nvcc", log, self.directory)
            if full is not None:
                raise full
            raise compile_error(
                log or f"nvcc exited with code {result.returncode}",
                compiler="nvcc",
                flags=command,
                sources={**self.job.memory, self.job.shown_name: self.job.text},
                notes=[
                    *filter(None, [little_room(self.directory)]),
                    f"nvcc exited with code {result.returncode}",
                ],
                find=self.backend.toolkit.find,
            )
        return _read(output), log


def _own_dirs() -> list[str]:
    """Return the directories that nvcc and the host compiler search by default."""
    return list(_cached_search(needed_nvcc(), (), os.getcwd(), environment())[0].dirs)


@functools.lru_cache(maxsize=64)
def _cached_search(
    nvcc: str,
    flags: tuple[str, ...],
    working: str,
    variables: tuple[str, ...],  # noqa: ARG001 - nvcc reads the environment itself
) -> tuple[HostSearch, str]:
    return ask_nvcc([nvcc, *flags, "-ptx"], working)


def needed_nvcc() -> str:
    found = find_nvcc()
    if found is not None:
        return found
    raise MissingDependencyError(
        "backend='nvcc' needs nvcc, which is neither in $CUDA_HOME/bin, nor on PATH, nor "
        "installed: python -m pip install nvidia-cuda-nvcc nvidia-cuda-crt nvidia-cuda-cccl "
        "nvidia-cuda-runtime"
    )


@functools.cache
def _identity(nvcc: str, environment: tuple[str, ...]) -> str:
    try:
        host_version = _output([_host_compiler(), "--version"])
    except OSError:
        host_version = "none"
    return "\n".join([_output([nvcc, "--version"]), host_version, *environment])


def _host_compiler() -> str:
    host = os.environ.get("NVCC_CCBIN") or "c++"
    return os.path.join(host, "c++") if os.path.isdir(host) else host


@functools.cache
def _supported(nvcc: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"sm_(\d+)", _output([nvcc, "-code-ls"])))


def _output(command: Sequence[str]) -> str:
    result = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, errors="replace", check=False
    )
    return result.stdout + result.stderr


def _literal(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
