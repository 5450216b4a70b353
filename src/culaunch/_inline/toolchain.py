"""The compilers, their options and where the headers are."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._base.checks import checked_list, checked_path, is_text
from culaunch._base.cuda_places import find_nvcc
from culaunch._base.values import spell
from culaunch._embed.paths import include_dir
from culaunch._errors import CompileError, MissingDependencyError
from culaunch._includes.host import environment
from culaunch._inline.cuda_header import cuda_include_dir

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLACE = "-DCULAUNCH_HEADER_ONLY"
# They let the linker leave out the functions that a library does not use.
_SECTIONS = ("-ffunction-sections", "-fdata-sections")
# As nvcc has them: sm_90a, compute_80, native, all.
_ARCH = re.compile(r"[a-z]+(?:[_-][a-z0-9]+)*")


@dataclass(frozen=True)
class Toolchain:
    """Commands up to their files, as lists of words."""

    cxx: tuple[str, ...]
    implementation: tuple[str, ...] | None
    """The command for the functions that culaunch's headers only declare. None if the flags decide
    where these are compiled."""
    nvcc: tuple[str, ...] | None
    link: tuple[str, ...]

    @classmethod
    def find(
        cls,
        *,
        include_dirs: Sequence[str | os.PathLike[str]],
        flags: Sequence[str],
        cuda_flags: Sequence[str],
        link_flags: Sequence[str],
        arch: str | None,
        with_nvcc: bool,
    ) -> Toolchain:
        """Find the compilers and put the options together."""
        for argument, value in (
            ("flags", flags),
            ("cuda_flags", cuda_flags),
            ("link_flags", link_flags),
            ("include_dirs", include_dirs),
        ):
            for one in checked_list(argument, value, "str"):
                if argument == "include_dirs":
                    checked_path(argument, one)
                elif not isinstance(one, str):
                    raise TypeError(f"{argument} must contain only str (got {spell(one)})")
                elif not one or not is_text(one):
                    raise ValueError(f"{argument} has {one!r}, which is not an option")
        if arch is not None and (not isinstance(arch, str) or not _ARCH.fullmatch(arch)):
            raise ValueError(f"arch must be an architecture such as 'sm_90a' (got {arch!r:.100})")
        headers, library = tvm_ffi_paths()
        users = [f"-I{os.path.abspath(os.fsdecode(path))}" for path in include_dirs]
        # As system headers, because the user cannot fix their warnings.
        own = [f"-I{include_dir()}", "-isystem", headers, "-isystem", cuda_include_dir()]
        compiler = tuple(find_cxx())
        # The macro makes TVM-FFI's exports carry their signatures and docstrings.
        common: tuple[str, ...] = ("-std=c++17", "-O2", "-DTVM_FFI_DLL_EXPORT_INCLUDE_METADATA=1")
        is_split = not any(_PLACE in flag for flag in (*flags, *cuda_flags))
        if is_split:
            common = (*common, f"{_PLACE}=0")
        # Hidden: nothing of the headers, which other libraries have too, is shared with them.
        hidden = (*compiler, *common, "-fPIC", "-fvisibility=hidden")
        cxx = (*hidden, *users, *own, *flags)
        # The flags can change the ABI, so each set of flags has its own object.
        implementation = (*hidden, *_SECTIONS, *own, *flags) if is_split else None
        nvcc: tuple[str, ...] | None = None
        # A symbol that is missing is found now, by its name, and not by the process that loads the
        # library.
        link = (*compiler, "-shared", "-Wl,--no-undefined", "-Wl,--gc-sections")
        if with_nvcc:
            program = needed_nvcc()
            target = ("-arch=" + (arch or native_arch()),)
            host = ("-Xcompiler=-fPIC,-fvisibility=hidden", "-ccbin", compiler[0])
            nvcc = (program, *common, *host, *target, *users, *own, *cuda_flags)
            runtime = cudart_flags(_root_of_nvcc(program))
            if not runtime:
                raise CompileError(f"libcudart_static.a is not in the toolkit of {program}")
        else:
            # C++ may call the runtime too, as TVM-FFI's launcher does. The headers' own version.
            runtime = cudart_flags(os.path.dirname(cuda_include_dir()))
        libraries = (f"-L{os.path.dirname(library)}", "-ltvm_ffi")
        # The runtime last: a library or object in link_flags comes before it, or needs it.
        return cls(cxx, implementation, nvcc, (*link, *libraries, *link_flags, *runtime))

    def identity(self) -> list[str]:
        """Return the identity of this toolchain: options, programs, environment."""
        words = [*self.cxx, "|", *(self.nvcc or ()), "|", *self.link]
        return _identity(words, {self.cxx[0], *(self.nvcc or ())[:1]})

    def identity_of_implementation(self) -> list[str]:
        """Return the same for the object of culaunch's own functions."""
        words = self.implementation or ()
        return _identity(words, set(words[:1]))


def _identity(words: Sequence[str], programs: set[str]) -> list[str]:
    return [
        *words,
        *(_program_identity(program) for program in sorted(programs)),
        f"apache-tvm-ffi={tvm_ffi_version()}",
        *environment(),
    ]


def find_cxx() -> list[str]:
    """Return the C++ compiler: the words of ``CXX``, else the first that there is."""
    chosen = os.environ.get("CXX")
    for words in [shlex.split(chosen)] if chosen else [["c++"], ["g++"], ["clang++"]]:
        if words and (program := shutil.which(words[0])):
            return [program, *words[1:]]
    raise CompileError(
        f"the C++ compiler {chosen!r} that CXX names does not exist"
        if chosen
        else "no C++ compiler (c++, g++, clang++) on PATH: install g++ 12 or clang 14 or newer, "
        "or name one in CXX"
    )


def needed_nvcc() -> str:
    found = find_nvcc()
    if found is not None:
        return found
    raise MissingDependencyError(
        "cuda_sources need nvcc, which is neither in $CUDA_HOME/bin, nor on PATH, nor installed. "
        "Install the CUDA toolkit, or python -m pip install nvidia-cuda-nvcc nvidia-cuda-crt "
        "nvidia-cuda-cccl nvidia-cuda-runtime. Or compile the kernels with culaunch.compile and "
        "embed them (embed_cubin), which needs no nvcc"
    )


def native_arch() -> str:
    """Return nvcc's word for the GPU here, after a look whether there is one."""
    if not os.path.exists("/dev/nvidiactl"):
        raise ValueError("there is no GPU to compile cuda_sources for: pass arch='sm_90'")
    return "native"


@functools.cache
def cudart_flags(root: str) -> tuple[str, ...]:
    """Return the options that link a toolkit's CUDA runtime if it is called; none without one.

    The runtime is the static one: libraries that were built by different toolkits can be in one
    process. The linker takes nothing of it into a library that calls none of it.
    """
    machine = os.uname().machine
    for folder in ("lib64", "lib", f"targets/{machine}-linux/lib", f"lib/{machine}-linux-gnu"):
        library = os.path.join(root, folder, "libcudart_static.a")
        if os.path.exists(library):
            # If libc contains them, these libraries are empty. Elsewhere they are not always
            # needed.
            system = ("-Wl,--as-needed", "-lrt", "-ldl", "-lpthread")
            return (library, *system)
    return ()


def _root_of_nvcc(nvcc: str) -> str:
    return os.path.dirname(os.path.dirname(_resolve_script(nvcc)))


def _resolve_script(nvcc: str) -> str:
    """Follow links, and the one-line wrapper script that some installations put on PATH."""
    path = os.path.realpath(nvcc)
    with open(path, "rb") as file:
        head = file.read(512)
    for word in head.decode("ascii", "ignore").split() if head.startswith(b"#!") else ():
        if word.endswith("/nvcc") and os.path.exists(word):
            return os.path.realpath(word)
    return path


@functools.cache
def tvm_ffi_paths() -> tuple[str, str]:
    """Return the directory of TVM-FFI's headers and the path of its library."""
    from tvm_ffi import libinfo

    return str(libinfo.find_include_path()), str(libinfo.find_libtvm_ffi())


@functools.cache
def tvm_ffi_version() -> str:
    """Return the version of the installed apache-tvm-ffi."""
    return importlib.metadata.version("apache-tvm-ffi")


def _program_identity(program: str) -> str:
    # Asking it for its version would start a process, on every warm call too.
    path = os.path.realpath(program)
    facts = os.stat(path)
    return f"{path}:{facts.st_size}:{facts.st_mtime_ns}"
