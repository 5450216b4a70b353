"""The NVRTC backend: one source, one architecture, one program."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from culaunch._base.scratch import Scratch
from culaunch._compile.architectures import check_supported
from culaunch._compile.backend import Backend, Compiled, Job
from culaunch._compile.diagnostics import compile_error
from culaunch._compile.nvrtc_build import (
    expected_library,
    library_identity,
    library_version,
    missing,
)
from culaunch._compile.pch import pch_session, raise_heap, remove_left_once
from culaunch._compile.toolkit import Toolkit, find_nvrtc_headers
from culaunch._core import keep_signal_handlers, kernel_signatures, with_line
from culaunch._errors import CompileError, InternalError
from culaunch._includes.closure import Search

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from culaunch._compile.options import Options


class Nvrtc(Backend):
    """NVIDIA's runtime compiler, a library."""

    name = "nvrtc"

    def __init__(self) -> None:
        self._identity: str | None = None
        self._loaded = False
        self.toolkit = Toolkit(self._find_headers)

    def identity(self) -> str:
        """Return the identity of the library's build, without loading it if possible."""
        if self._identity is None:
            # Loading the library takes a tenth of a second, which a cache hit must not pay.
            path = expected_library() or loaded_library()
            self._identity = library_identity(path)
        return self._identity

    def confirm(self) -> bool:
        """Load the library; return False unless it is the one that :meth:`identity` expected."""
        actual = library_identity(loaded_library())
        self._loaded = True
        if actual == self.identity():
            return True
        self._identity = actual
        self.toolkit = Toolkit(self._find_headers)
        return False

    def flags(self, options: Options) -> list[str]:
        """Spell the options."""
        return options.nvrtc_flags()

    def search(
        self,
        options: Options,
        directory: str | None,  # noqa: ARG002 - the source's name contains it
        headers: Mapping[str, str],
        include_dirs: Sequence[str],
    ) -> Search:
        """Return where it looks for headers."""
        return Search(
            headers,
            include_dirs,
            system=lambda: self.toolkit.dirs,
            working=os.getcwd(),
            forced=options.forced_includes,
            defines=options.define_lines,
        )

    def check_archs(self, archs: Sequence[str]) -> None:
        """Raise for an architecture that the library does not know."""
        check_supported(archs, supported_archs(), f"NVRTC {version()}")

    def compile(self, job: Job, arch: str) -> Compiled:
        """Compile for one architecture. Other Python threads continue meanwhile."""
        remove_left_once()
        dirs = [*job.include_dirs, *(self.toolkit.dirs if job.uses_toolkit else ())]
        flags = [
            f"--gpu-architecture={arch}",
            *job.flags,
            *(f"--include-path={directory}" for directory in dirs),
        ]
        if job.pch:
            # A precompiled header is valid for one preamble. NVRTC compares the preamble's text and
            # the times of files, but not the contents of in-memory headers.
            with pch_session(nvrtc(), [arch, *flags, job.includes_digest]) as pch_flags:
                return self._compile(job, arch, [*flags, *pch_flags], flags)
        return self._compile(job, arch, flags, flags)

    def _compile(
        self, job: Job, arch: str, flags: Sequence[str], plain_flags: Sequence[str]
    ) -> Compiled:
        program = _Program(job, job.text, job.names)
        try:
            log = program.compile(flags, self._notes(job), self.toolkit.find)
            if job.pch:
                raise_heap(nvrtc(), program.handle)
            lowered = {name: program.lowered(name) for name in job.names}
            if job.lto:
                return Compiled(arch, "ltoir", program.get("LTOIR"), lowered, {}, log)
            ptx = program.get("PTX").rstrip(b"\0")
            signatures = kernel_signatures(
                ptx,
                job.text,
                None if job.heavy else functools.partial(self._probe, job, plain_flags),
            )
            if arch.startswith("compute_"):
                return Compiled(arch, "ptx", ptx, lowered, signatures, log)
            return Compiled(arch, "cubin", program.get("CUBIN"), lowered, signatures, log)
        finally:
            program.close()

    def _probe(
        self, job: Job, flags: Sequence[str], text: str, names: Mapping[str, str]
    ) -> dict[str, str]:
        """Run only the front end, to get a mangled name that contains each kernel's type."""
        program = _Program(job, job.text + text, tuple(names.values()))
        try:
            program.compile([*flags, "--fdevice-syntax-only"])
            return {kernel: program.lowered(name) for kernel, name in names.items()}
        except CompileError:
            # A kernel that has no name outside its scope. The PTX must be enough.
            return {}
        finally:
            program.close()

    def _notes(self, job: Job) -> Sequence[str]:
        return self.toolkit.notes if job.missing else ()

    def _find_headers(self) -> tuple[list[str], list[str]]:
        path = None if self._loaded else expected_library()
        found = None if path is None else library_version(path)
        if path is None or found is None:
            path, found = loaded_library(), version()
        return find_nvrtc_headers(
            found, path, install_bundled_headers, self._bundled_root, _spare_root
        )

    def _bundled_root(self) -> str:
        from culaunch._cache.default import default_cache

        identity = library_identity(loaded_library())
        return default_cache().private_directory("headers", f"{version()}-{identity[:16]}")


def _spare_root() -> str:
    return Scratch().remove_at_exit().path


class _Program:
    """An nvrtcProgram.

    NVRTC looks for quoted includes in the directory of the program's name, or in the current one if
    the name has no directory. Therefore the name has a directory, and ``#line`` sets the plain name
    for messages, ``__FILE__`` and line tables.
    """

    def __init__(self, job: Job, text: str, names: Sequence[str]) -> None:
        self._api = nvrtc()
        self._sources = {**job.memory, job.shown_name: text}
        self._name = job.shown_name
        self._place = job.place
        self._names = names
        self.handle = _check(
            self._api.nvrtcCreateProgram(
                with_line(text, job.shown_name, job.pch).encode(),
                os.fsencode(self._place),
                len(job.memory),
                [content.encode() for content in job.memory.values()],
                [name.encode() for name in job.memory],
            )
        )

    def compile(
        self,
        flags: Sequence[str],
        notes: Sequence[str] = (),
        find: Callable[[str], str | None] = lambda _: None,
    ) -> str:
        for name in self._names:
            _check(self._api.nvrtcAddNameExpression(self.handle, name.encode()))
        encoded = [os.fsencode(flag) for flag in flags]
        (status,) = self._api.nvrtcCompileProgram(self.handle, len(encoded), encoded)
        log = self.get("ProgramLog").rstrip(b"\0\n ").decode(errors="replace")
        log = log.replace(self._place, self._name)
        if int(status) != 0:
            raise compile_error(
                log or status.name,
                compiler=f"NVRTC {version()}",
                flags=flags,
                sources=self._sources,
                notes=notes,
                find=find,
            )
        return log

    def lowered(self, name: str) -> str:
        status, *rest = self._api.nvrtcGetLoweredName(self.handle, name.encode())
        if int(status) != 0:
            raise CompileError(f"names has {name!r}, but NVRTC has no lowered name for it")
        lowered: bytes = rest[0]
        return lowered.decode()

    def get(self, what: str) -> bytes:
        size = _check(getattr(self._api, f"nvrtcGet{what}Size")(self.handle))
        # The bindings write into it, which is safe because no other code has it yet.
        buffer = bytes(size)
        if size:
            _check(getattr(self._api, f"nvrtcGet{what}")(self.handle, buffer))
        return buffer

    def close(self) -> None:
        self._api.nvrtcDestroyProgram(self.handle)


@functools.cache
def nvrtc() -> Any:
    """Import the bindings and load the library."""
    try:
        from cuda.bindings import nvrtc as api  # type: ignore[import-untyped]
    except ImportError as error:
        raise missing("compiling", "NVRTC", error) from error
    try:
        api.nvrtcVersion()
    except Exception as error:  # pathfinder raises several kinds of its own
        raise missing("compiling", "NVRTC", error) from error
    # NVRTC up to 13.0 would silently end the process at a Ctrl-C.
    keep_signal_handlers(_library_path())
    return api


@functools.cache
def loaded_library() -> str:
    """Return the path of the libnvrtc that is in use."""
    nvrtc()
    return _library_path()


def _library_path() -> str:
    from cuda.pathfinder import load_nvidia_dynamic_lib  # type: ignore[import-untyped]

    path = load_nvidia_dynamic_lib("nvrtc").abs_path
    if path is None:
        raise InternalError("cuda-pathfinder does not say where it loaded NVRTC from")
    return str(os.path.realpath(path))


@functools.cache
def version() -> str:
    """Return NVRTC's own version, ``"13.5"``."""
    major, minor = _check(nvrtc().nvrtcVersion())
    return f"{major}.{minor}"


@functools.cache
def supported_archs() -> tuple[int, ...]:
    """Return the numbers of the architectures that NVRTC knows."""
    return tuple(_check(nvrtc().nvrtcGetSupportedArchs()))


def install_bundled_headers(directory: str) -> str | None:
    """Unpack NVRTC's own headers. This is safe among processes, and fast if they exist."""
    install = getattr(nvrtc(), "nvrtcInstallBundledHeaders", None)
    if install is None:
        return "cuda-bindings is older than 13.3"
    try:
        status, log = install(os.fsencode(directory), 0)  # existing files are kept
    except RuntimeError as error:
        return f"NVRTC {version()} has none ({error})"
    if int(status) != 0:
        return str((log or status.name.encode()).decode())
    return None


def _check(result: Any) -> Any:
    """Unpack (status, *values), the result of every call of the bindings."""
    status, *values = result
    if int(status) != 0:
        raise InternalError(f"NVRTC failed with {status.name}")
    return values[0] if len(values) == 1 else values
