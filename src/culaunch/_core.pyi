"""Types of the native half of the launch path (csrc/)."""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType
from typing import Any, Literal, NoReturn, Protocol, SupportsIndex, TypeAlias, TypeVar, final

from typing_extensions import Buffer, Required, Self, TypedDict, Unpack

__version__: str
NUMBERS: dict[str, dict[str, int]]
"""The numbers that C++ and Python know things by: the name of a list to names and numbers."""

LAUNCH_OPTIONS: tuple[tuple[str, str, int, int, str], ...]
"""The options of a launch: name, kind, flag, attribute, text."""

# A size in threads or blocks: x, or up to (x, y, z).
_Dims: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
# The grid of a Triton kernel, or what gives it for the arguments of a call.
_TritonGrid: TypeAlias = Sequence[SupportsIndex] | Callable[[dict[str, Any]], Sequence[Any]]

@final
class Driver:
    """A table of driver-API functions in use."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def device_count(self) -> int: ...
    @property
    def device_types(self) -> tuple[int, ...]: ...
    @staticmethod
    def open(choice: str, /) -> Driver: ...
    @staticmethod
    def from_functions(
        name: str,
        functions: Mapping[str, int],
        device_types: tuple[int, ...],
        in_python: bool = False,
        /,
    ) -> Driver: ...
    @staticmethod
    def prototypes() -> dict[str, tuple[str, ...]]:
        """Name each function of the table and its parameters (csrc/driver/prototypes.h)."""
    def publish(self) -> str: ...
    def with_memory(self, device_types: tuple[int, ...], /) -> Driver: ...
    def choose_graphs(self, text: str, limit: int, /) -> None: ...
    def graph_status(self) -> tuple[str, bool, str, int, int]: ...
    def attribute(self, attribute: int, ordinal: int, /) -> int: ...
    def device_name(self, ordinal: int, /) -> str: ...
    def current_device(self) -> int: ...
    def stream_device(self, handle: int, /) -> int: ...
    def stream_synchronize(self, ordinal: int, handle: int, /) -> None: ...
    def synchronize(self, ordinal: int, /) -> None: ...
    def push_device(self, ordinal: int, /) -> None: ...
    def pop_device(self) -> None: ...
    def encode_tiled(
        self,
        out: Buffer,
        element: int,
        address: int,
        dims: tuple[int, ...],
        strides: tuple[int, ...],
        box: tuple[int, ...],
        steps: tuple[int, ...],
        interleave: int,
        swizzle: int,
        promotion: int,
        fill: int,
        /,
    ) -> int: ...
    def describe(self, code: int, /) -> str: ...
    def reach(self, ordinal: int, peer: int, /) -> bool: ...

    # csrc/driver/driver_calls.cpp: the driver's functions as they are, after a device's ordinal.
    def memory_info(self, ordinal: int, /) -> tuple[int, int]: ...
    def priority_range(self, ordinal: int, /) -> tuple[int, int]: ...
    def stream_create(self, ordinal: int, flags: int, priority: int, /) -> int: ...
    def stream_destroy(self, ordinal: int, stream: int, /) -> None: ...
    def stream_query(self, ordinal: int, stream: int, /) -> bool: ...
    def stream_wait_event(self, ordinal: int, stream: int, event: int, flags: int, /) -> None: ...
    def event_create(self, ordinal: int, flags: int, /) -> int: ...
    def event_destroy(self, ordinal: int, event: int, /) -> None: ...
    def event_record(self, ordinal: int, event: int, stream: int, /) -> None: ...
    def event_query(self, ordinal: int, event: int, /) -> bool: ...
    def event_synchronize(self, ordinal: int, event: int, /) -> None: ...
    def event_elapsed(self, ordinal: int, start: int, end: int, /) -> float: ...
    def copy(self, ordinal: int, target: int, source: int, size: int, stream: int, /) -> None: ...
    def set_8_bits(
        self, ordinal: int, target: int, value: int, count: int, stream: int, /
    ) -> None: ...
    def set_16_bits(
        self, ordinal: int, target: int, value: int, count: int, stream: int, /
    ) -> None: ...
    def set_32_bits(
        self, ordinal: int, target: int, value: int, count: int, stream: int, /
    ) -> None: ...
    def set_32_bits_apart(
        self,
        ordinal: int,
        target: int,
        pitch: int,
        value: int,
        width: int,
        height: int,
        stream: int,
        /,
    ) -> None: ...
    def host_allocate(self, ordinal: int, size: int, flags: int, /) -> int: ...
    def host_free(self, ordinal: int, address: int, /) -> None: ...
    def managed_allocate(self, ordinal: int, size: int, flags: int, /) -> int: ...
    def free(self, ordinal: int, address: int, /) -> None: ...
    def array_create(self, ordinal: int, descriptor: Buffer, /) -> int: ...
    def array_destroy(self, ordinal: int, array: int, /) -> None: ...
    def copy_3d(self, ordinal: int, copy: Buffer, stream: int, /) -> None: ...
    def texture_create(
        self, ordinal: int, resource: Buffer, texture: Buffer, view: Buffer | None, /
    ) -> int: ...
    def texture_destroy(self, ordinal: int, texture: int, /) -> None: ...
    def surface_create(self, ordinal: int, resource: Buffer, /) -> int: ...
    def surface_destroy(self, ordinal: int, surface: int, /) -> None: ...

class DriverFunction:
    """A function of a driver in Python, as ctypes calls it: it returns a code, always."""

    def __new__(
        cls,
        state: object,
        method: Callable[..., None],
        translate: Callable[[Callable[..., None], BaseException], int | BaseException],
        is_repeated: bool,
        /,
    ) -> Self: ...
    def __call__(self, *args: Any) -> int: ...

@final
class Module:
    """A CUlibrary; never unloaded by the garbage collector."""

    def __new__(cls, driver: Driver, image: Buffer, /) -> Self: ...
    @property
    def driver(self) -> Driver: ...
    @property
    def is_loaded(self) -> bool: ...
    @property
    def handle(self) -> int: ...
    def kernel_names(self) -> tuple[str, ...]: ...
    def layout(self, name: str, /) -> tuple[tuple[int, int], ...] | None: ...
    def get_global(self, name: str, ordinal: int, /) -> tuple[int, int]: ...
    def unload(self) -> None: ...

class LaunchOptions(TypedDict, total=False):
    """The keywords of a launch, for type checkers; include/culaunch/launch_options.h has them."""

    grid: Required[_Dims]
    block: Required[_Dims]
    shared_memory: int
    stream: object
    cluster: _Dims | None
    preferred_cluster: _Dims | None
    spread_clusters: bool
    cooperative: bool
    programmatic: bool
    priority: int | None

class Kernel:
    """A kernel with its parameter slots, and the launchers made of it last."""

    def __new__(
        cls, module: Module, name: str, types: tuple[tuple[int, int, int, bool], ...] | None, /
    ) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def handle(self) -> int: ...
    @property
    def _is_configured(self) -> bool: ...
    def __getitem__(
        self,
        key: tuple[_Dims, _Dims]
        | tuple[_Dims, _Dims, SupportsIndex]
        | tuple[_Dims, _Dims, SupportsIndex, object],
        /,
    ) -> Launcher: ...
    def configure(self, **options: Unpack[LaunchOptions]) -> Launcher: ...
    def _attribute(self, attribute: int, ordinal: int, /) -> int: ...
    def _make_ready(self, ordinal: int, /) -> None: ...
    def _max_dynamic_shared_memory(self, ordinal: int, /) -> int: ...
    def _occupancy(
        self,
        ordinal: int,
        block: _Dims,
        shared_memory: int,
        cluster: _Dims | None,
        /,
    ) -> tuple[int, int, int, int | None, int | None]: ...

@final
class Launcher:
    """A kernel with its launch configuration fixed: call it with the kernel's arguments."""

    @property
    def kernel(self) -> Kernel: ...
    @property
    def grid(self) -> tuple[int, int, int]: ...
    @property
    def block(self) -> tuple[int, int, int]: ...
    @property
    def shared_memory(self) -> int: ...
    @property
    def stream(self) -> object: ...
    @property
    def cluster(self) -> tuple[int, int, int] | None: ...
    @property
    def preferred_cluster(self) -> tuple[int, int, int] | None: ...
    @property
    def spread_clusters(self) -> bool: ...
    @property
    def cooperative(self) -> bool: ...
    @property
    def programmatic(self) -> bool: ...
    @property
    def priority(self) -> int | None: ...
    @property
    def _stream_device(self) -> int: ...
    def __call__(self, *args: Any) -> None: ...

_GraphT = TypeVar("_GraphT", bound="Graph")

class Graph:
    """A CUDA graph, and its executable graph."""

    def __new__(cls, driver: Driver, handle: int = 0, is_own: bool = False, /) -> Self: ...
    @property
    def nodes(self) -> tuple[GraphNode, ...]: ...
    @property
    def handle(self) -> int: ...
    @property
    def executable(self) -> int: ...
    @property
    def device(self) -> int: ...
    @property
    def _size(self) -> int: ...
    @property
    def _driver(self) -> Driver: ...
    def _begin(self) -> None: ...
    def _end(self) -> None: ...
    def _call(
        self,
        function: Callable[..., object],
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        after: tuple[int, ...] | None,
        name: str | None,
        /,
    ) -> tuple[GraphNode, Any]: ...
    @property
    def _owner(self) -> Graph | None: ...
    def _create_condition(self, default: int | None, /) -> int: ...
    def _body(self, kind: type[_GraphT], node: int, number: int, /) -> _GraphT: ...
    def _set_enabled(self, number: int, is_enabled: bool, /) -> None: ...
    def _describe(
        self, number: int, /
    ) -> tuple[int, str, tuple[int, int, int], tuple[int, int, int], tuple[int, ...]]: ...
    def launch(self, stream: object = None) -> None: ...
    def upload(self, stream: object = None) -> None: ...
    def update_all(self, rows: Iterable[tuple[Any, ...]], /) -> None: ...
    def instantiate(self) -> None: ...

@final
class GraphNode:
    """The part of a graph that one call added.

    Attributes
    ----------
    graph : Graph
    callable : object
        The callable of the call; None for a node of another library's graph.
    args : tuple
        The arguments of the last call; keyword arguments come last.
    name : str or None
    """

    @property
    def graph(self) -> Graph: ...
    @property
    def callable(self) -> Any: ...
    @property
    def args(self) -> tuple[Any, ...]: ...
    @property
    def name(self) -> str | None: ...
    @property
    def _names(self) -> tuple[str, ...] | None: ...
    @property
    def _range(self) -> tuple[int, int]: ...
    def update(self, *args: Any, **keywords: Any) -> Any: ...

def begin_capture(driver: Driver, stream: int, /) -> None: ...
def end_capture(driver: Driver, stream: int, /) -> int: ...
def take_copy(
    driver: Driver,
    ordinal: int,
    target: tuple[int, bool],
    source: tuple[int, bool],
    size: int,
    /,
) -> None: ...
def take_host(driver: Driver, function: Callable[[], object], /) -> None: ...
def take_child(driver: Driver, child: Graph, /) -> None: ...
def take_empty(driver: Driver, /) -> None: ...
def take_conditional(driver: Driver, condition: int, kind: int, bodies: int, /) -> None: ...

class DeviceArray:
    """A contiguous array in the memory of a device."""

    def __new__(
        cls,
        driver: Driver,
        ordinal: int,
        shape: tuple[int, ...],
        code: int,
        bits: int,
        lanes: int,
        stream: int | None = None,
        /,
    ) -> Self: ...
    @property
    def address(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def _driver(self) -> Driver: ...
    @property
    def _dlpack_device(self) -> tuple[int, int]: ...
    @classmethod
    def _adopt(cls, driver: Driver, tensor: object, /) -> Self: ...
    @classmethod
    def _over(
        cls,
        driver: Driver,
        device_type: int,
        ordinal: int,
        address: int,
        shape: tuple[int, ...],
        code: int,
        bits: int,
        lanes: int,
        keeper: object,
        /,
    ) -> Self: ...
    def _copy_from(self, buffer: Buffer, stream: int, waits: bool = True, /) -> None: ...
    def _copy_to(self, buffer: Buffer, stream: int, waits: bool = True, /) -> None: ...
    def _dlpack(self, versioned: bool, /) -> object: ...

@final
class TritonVariant:
    """One compiled form of a Triton kernel, with what its launch needs besides the arguments."""

    def __new__(
        cls,
        kernel: Kernel,
        sources: tuple[tuple[int, int, int], ...],
        layouts: tuple[tuple[int, int, int, tuple[int, ...], bool], ...],
        threads: int,
        ctas: int,
        shared: int,
        cooperative: bool,
        programmatic: bool,
        global_scratch: int,
        global_alignment: int,
        profile_scratch: int,
        profile_alignment: int,
        constants: dict[str, Any],
        result: object,
        /,
    ) -> Self: ...
    @property
    def kernel(self) -> Kernel: ...
    @property
    def result(self) -> Any: ...
    @property
    def _description(self) -> tuple[Any, ...]: ...

class TritonDispatcher:
    """The native half of a Triton kernel's call."""

    def __new__(
        cls,
        parameters: tuple[tuple[str, object, int, str], ...],
        tuning_key: Sequence[tuple[int, ...]] | None,
        /,
    ) -> Self: ...
    def __getitem__(self, grid: _TritonGrid, /) -> TritonLauncher: ...
    @property
    def _driver(self) -> Driver | None: ...
    @property
    def _key_count(self) -> int: ...
    @property
    def _misses(self) -> int: ...  # calls that the quick path did not serve
    @property
    def _is_watched(self) -> bool: ...  # changes of what a call depends on are noticed
    @property
    def _parameter_names(self) -> tuple[str, ...]: ...
    def _set_driver(self, driver: Driver, array_type: type | None, /) -> None: ...
    def _set_guards(
        self,
        guards: tuple[tuple[dict[Any, Any], Any, bool, object], ...],
        hooks: tuple[list[Any], ...],
        lists: tuple[tuple[list[Any], int, object], ...],
        cells: tuple[tuple[Any, object], ...],
        /,
    ) -> None: ...
    def _call(self, grid: object, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> Any: ...
    def _call_plain(
        self, grid: object, args: tuple[Any, ...], kwargs: dict[str, Any], /
    ) -> Any: ...
    def _resolve(self, grid: object, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> Any: ...
    def _specialize(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], /
    ) -> list[tuple[Any, Any]]: ...
    def _clear(self) -> None: ...
    def _serve(self, kernel: object, count: array[int], is_compiled: bool = ..., /) -> None: ...
    def _tell_choices(self, checks: bool, /) -> None: ...
    def _guards_hold(self) -> bool: ...

class TritonFallback(RuntimeError):  # noqa: N818 - a signal
    """A call that Triton takes over; the text says why."""

@final
class TritonSubscript:
    """The ``__getitem__`` of Triton's classes while kernels are launched natively."""

    __wrapped__: Callable[[Any, Any], Any]

    def __new__(
        cls,
        attribute: str,
        original: Callable[[Any, Any], Any],
        find: Callable[[Any, Any], Any],
        bound: type,
        kinds: tuple[type, ...],
        /,
    ) -> Self: ...
    def __call__(self, kernel: Any, grid: Any, /) -> Any: ...

@final
class TritonLauncher:
    """A Triton kernel with its grid: call it with the kernel's arguments."""

    @property
    def _dispatcher(self) -> TritonDispatcher: ...
    @property
    def grid(self) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class Elementwise:
    """A fused function: a call finds the kernel for its arguments and launches it."""

    def __new__(cls, name: str, parameters: tuple[str, ...], /) -> Self: ...
    def __call__(self, *args: Any, out: Any = None, **keywords: Any) -> Any: ...
    def _delegate(self, function: Any, value_type: type, /) -> None: ...
    def _describe(
        self, arguments: tuple[Any, ...], out: object, /
    ) -> tuple[Any, int, str, int, int, int, bytes]: ...
    @staticmethod
    def _set_busy_threads(threads: int, /) -> None: ...

@final
class Program:
    """A program that was decoded and checked: docs/dev/functions.md has the format."""

    def __new__(
        cls, words: bytes, constants: tuple[object, ...], texts: tuple[str, ...], /
    ) -> Self: ...
    @property
    def words(self) -> bytes: ...
    @property
    def constants(self) -> tuple[object, ...]: ...
    @property
    def texts(self) -> tuple[str, ...]: ...

class Function:
    """The native half of a function: a call finds the program of its kind, and runs it."""

    def __new__(
        cls,
        name: str,
        parameters: tuple[tuple[str, int], ...],
        defaults: tuple[Any, ...],
        /,
    ) -> Self: ...
    missing: object
    def __call__(self, *args: Any, **keywords: Any) -> Any: ...
    def _add(
        self,
        kind: tuple[Any, ...],
        program: Program,
        reads: tuple[tuple[Any, str | None, Any], ...],
        /,
    ) -> None: ...
    def _kind(self, arguments: tuple[Any, ...], /) -> tuple[Any, ...]: ...
    def _bind(self, args: tuple[Any, ...], keywords: dict[str, Any], /) -> tuple[Any, ...]: ...
    def _programs(self) -> tuple[tuple[tuple[Any, ...], Program], ...]: ...
    def _clear(self) -> None: ...

def program_format() -> dict[str, Any]: ...
def count_bodies(change: int, /) -> None: ...
def open_frames(get: int, change: int, run: int, number: int, read: int, write: int, /) -> bool: ...
def follow_calls(on: bool, /) -> bool: ...
def asking(
    name: str,
    builtins: dict[str, Any],
    answer: Callable[..., Any],
    kinds: tuple[type, ...],
    /,
) -> Callable[..., Any]: ...
def asking_import(
    builtins: dict[str, Any], same: str, other: str, modules: Mapping[Any, Any], /
) -> Callable[..., Any]: ...
def around_collection(phase: str, info: dict[str, Any], /) -> None: ...
def open_torch(
    libraries: tuple[str, ...], tensor: Any, dtypes: tuple[tuple[str, Any], ...], /
) -> str | None: ...
def bind_operator(
    target: Callable[..., Any],
    namespace: str,
    name: str,
    arguments: str,
    keyword_names: tuple[str, ...],
    results: str,
    keys: tuple[str, ...],
    /,
) -> int | None: ...
def rebind_operator(number: int, target: Callable[..., Any], /) -> None: ...
def open_versions(
    libraries: tuple[str, ...], tensor: Any, keys: int, count: Callable[[Any], Any], /
) -> None: ...
def open_plain_calls(
    libraries: tuple[str, ...], tensor: Any, types: tuple[type, ...], keys: int,
    inference: tuple[int, int] | None, /,
) -> str | None: ...  # fmt: skip
def thread_keys() -> tuple[int, int] | None: ...
def watch_modes(library: str, keys: int, /) -> None: ...

class TorchOperator:
    """The native half of an operator of torch: past the dispatcher where that would do nothing."""

    def __call__(self, *args: Any, **keywords: Any) -> Any: ...
    def _set_way(
        self, function: Callable[..., Any] | None, dispatcher: Callable[..., Any],
        arguments: str, required: int, has_gradients: bool, results: int,
        written: tuple[int, ...], is_kernel: bool, /,
    ) -> None: ...  # fmt: skip

class XlaArray:
    """Memory of XLA during a call; made in Python it has none, and stands in for tracing."""

    def __new__(cls, shape: tuple[int, ...], code: int, bits: int, device_type: int, /) -> Self: ...

def xla_handler(platform: Literal["cpu", "CUDA"], minor: int, /) -> object: ...
def end_xla_calls() -> None: ...

reads_numbers_in_place: int
"""Whether ints and floats are read without the C API: 1, where their layout is known."""

def start_device_kernels() -> tuple[int, int, int]:
    """Let CUPTI record kernels; return where it begins, with CUPTI's time in nanoseconds."""

def stop_device_kernels(
    mark: tuple[int, int, int], /
) -> tuple[
    list[
        tuple[
            str, tuple[int, int, int], tuple[int, int, int], int, int, int, int, int, int, int, int
        ]
    ],
    int,
]:
    """Return the kernels since then, and the number of those that CUPTI dropped."""

def start_profile(driver: Driver, limit: int, /) -> tuple[int, int]: ...
def stop_profile(
    driver: Driver, mark: tuple[int, int], /
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], int]: ...
def use_shortcut(
    name: Literal["numbers", "dicts", "torch", "places", "forms", "functions"],
    use: bool,
    /,
) -> None: ...
def try_numbers(version: int, /) -> bool:
    """Try again whether numbers can be read in place, as on a version of Python; 0: this one."""

def demangle(name: str, /) -> str:
    """Return the C++ spelling of a mangled name, or the name itself where it has none."""

def mangled_param_types(name: str, /) -> tuple[str, ...] | None:
    """Return the parameter types that the mangled name of a function spells."""

Identity = tuple[int, int, int, int, int]
SearchFields = tuple[
    Sequence[str],
    Sequence[str],
    frozenset[str],
    str,
    str,
    Sequence[str],
    str,
    str,
]

FootprintFields: TypeAlias = tuple[
    tuple[tuple[str, str, int, Identity | None], ...],
    tuple[tuple[str, Identity | None, tuple[str, ...]], ...],
    tuple[str, ...],
]

def follow(
    text: str,
    path: str,
    headers: dict[str, str],
    search: SearchFields,
    system: Callable[[], Sequence[str]],
    /,
) -> tuple[
    str,
    str,
    tuple[tuple[str, str], ...],
    tuple[str, ...],
    int,
    bool,
    FootprintFields,
    str,
]:
    """Follow the includes of a source: the fields of ``Includes``."""

def look_at(paths: Sequence[str], /) -> FootprintFields:
    """Read files; return which were read, which were not there, and which cannot be read."""

def source_facts(text: str, /) -> tuple[str, bool]:
    """Return the SHA-256 of a text, and whether it names no file, nor can."""

def keep_signal_handlers(path: str, /) -> bool:
    """Let a loaded library leave the handlers of SIGINT and SIGTERM alone; False: it does so."""

def cache_contents(
    path: str, /
) -> tuple[tuple[tuple[str, tuple[str, ...], int, int], ...], int, int]:
    """Return the entries of a cache's directory, the least recently used first.

    Of each its directory in ``inline`` or "", its files, its bytes and the time of its last use in
    nanoseconds. Then the number and the bytes of temporary files.
    """

def evict(path: str, max_bytes: int, keep: str, /) -> int:
    """Evict the least recently used entries but one; return the bytes of the rest."""

def clear_cache(path: str, /) -> int:
    """Remove all entries and temporary files; return the number of images and libraries."""

def remove_library(path: str, folder: str, names: Sequence[str], /) -> bool:
    """Remove the files of a library, and the directory of its key if no other needs it."""

def normal_options(
    std: str,
    defines: dict[str, str],
    maxrregcount: int,
    switches: tuple[bool, bool, bool, bool, bool, bool, bool],
    extra_options: Sequence[str],
    /,
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str]:
    """Return the flags that keywords say, the others, the forced includes and the lines of macros.

    The switches are `fast_math`, `line_info`, `debug`, `extra_device_vectorization`,
    `device_as_default_execution_space`, `relocatable` and `lto`.
    """

def why_refused(option: str, /) -> str:
    """Return why a compile refuses one of its extra options, or ""."""

def kernel_signatures(
    ptx: bytes,
    source: str,
    probe: Callable[[str, Mapping[str, str]], Mapping[str, str]] | None,
    /,
) -> dict[str, tuple[str | None, ...]]:
    """Return the parameter types of a compile's kernels that are not mangled.

    `probe` compiles the source with a text behind it, and gives for kernels the lowered names of
    expressions; None if that is too dear.
    """

def open_nvrtc(
    path: str, private_directory: Callable[[str, str], str], warn: Callable[[str], None], /
) -> object:
    """Find NVRTC: at a path, or anywhere if it is empty.

    `private_directory` returns a directory in the cache for headers, and `warn` takes the text of
    a warning.
    """

def nvrtc_place(nvrtc: object, /) -> tuple[str, str]:
    """Return its path, and what pins this build: two patch releases share a version."""

def nvrtc_version(nvrtc: object, /) -> tuple[str, tuple[int, ...]]:
    """Load it; return its version and the architectures."""

def nvrtc_headers(nvrtc: object, /) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the directories of CUDA's own headers, and why others were rejected."""

def nvrtc_compile(
    nvrtc: object,
    job: tuple[
        str,
        str,
        str | None,
        Sequence[str],
        Sequence[str],
        Sequence[str],
        dict[str, str],
        str,
        int,
        str,
        Sequence[str],
        bool,
        bool,
        bool,
    ],
    arch: str,
    /,
) -> tuple[str, bytes, dict[str, str], dict[str, tuple[str | None, ...]], str]:
    """Compile for one architecture: the fields of ``Compiled`` after `arch`."""

def explain_failure(
    log: str,
    compiler: str,
    flags: Sequence[str],
    sources: dict[str, str],
    notes: Sequence[str],
    find: Callable[[str], str | None],
    /,
) -> str:
    """Return the message of a failed compilation."""

def set_pip_folders(folders: Sequence[str], /) -> None:
    """Set the folders of NVIDIA's pip packages, which are searched first."""

def open_nvjitlink() -> tuple[object, str]:
    """Find and load nvJitLink; return it and its identity."""

def link_images(
    nvjitlink: object,
    inputs: Sequence[tuple[str, bytes, str]],
    arch: str,
    options: Sequence[str],
    /,
) -> tuple[bytes, str]:
    """Link inputs (kind, contents, name); return the image and the log."""

def library_place(name: str, /) -> tuple[str, str]:
    """Load nvJitLink or nvFatbin; return its version and its path."""

def combine_images(parts: Sequence[tuple[str, str, bytes]], identifier: str, /) -> bytes:
    """Return a fatbin of parts (kind, architecture, contents), with nvFatbin."""

def cache_key(
    texts: tuple[str, str, str, str, str],
    archs: Sequence[str],
    flags: Sequence[str],
    names: Sequence[str],
    lto: bool,
    dirs: Sequence[str | None] | None,
    /,
) -> str:
    """Return the key of an image.

    `texts` are the backend, its identity, the source's digest and name, and the headers' digest.
    """

def includes_key(
    source_digest: str,
    path: str,
    headers_digest: str,
    search: SearchFields,
    system: Sequence[str],
    /,
) -> str:
    """Return the key of the note of what a source's headers came to."""

def argument_rules() -> dict[str, dict[str, tuple[int, ...]]]: ...
def reads_in_place(array: object, /) -> bool: ...
def array_info(
    driver: Driver, array: object, /
) -> tuple[int, tuple[int, ...], tuple[int, ...], int, int, tuple[int, int]]: ...

# The functions that the extension calls in the packages above it. It imports none of them: each
# registers a module with these functions when it is imported. csrc/python/upcalls.h has the same
# list.

class LaunchUpcalls(Protocol):
    """The functions that the extension calls in ``culaunch._launch``."""

    def raise_argument(
        self,
        launcher: Launcher,
        index: int,
        value: object,
        mismatch: str,
        detail: int,
        device: int,
        /,
    ) -> NoReturn: ...
    def raise_count(
        self, launcher: Launcher, count: int, keywords: tuple[str, ...] | None, /
    ) -> NoReturn: ...
    def spell(self, value: object, /) -> str: ...
    def stream_handle(self, stream: object, /) -> int: ...
    def choose_driver(self) -> Driver: ...
    def allocate_array(
        self,
        shape: tuple[int, ...],
        code: int,
        bits: int,
        lanes: int,
        device_type: int,
        device: int,
        /,
    ) -> DeviceArray: ...
    def adopt_array(self, tensor: object, code: int, bits: int, lanes: int, /) -> DeviceArray: ...
    def find_bits(self) -> tuple[int, int, int, int, dict[str, Any]] | None: ...
    def find_layout(self) -> tuple[Any, ...] | None: ...
    def is_lazy(self, tensor: object, /) -> bool: ...
    def refusal(self, what: str, tensor: object, /) -> str: ...
    def check_gradient(self, what: str, tensor: Any, /) -> None: ...
    def allocate_like(
        self,
        like: object,
        shape: tuple[int, ...],
        order: tuple[int, ...],
        dtype: str,
        ordinal: int,
        /,
    ) -> object: ...
    def finish_allocation(self, like: object, made: Any, stream: int, /) -> object: ...
    def view_of(
        self,
        owner: object,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: str,
        /,
    ) -> object: ...

class TritonUpcalls(Protocol):
    """The functions that the extension calls in ``culaunch._triton``."""

    def raise_binding(
        self, dispatcher: TritonDispatcher, what: str, name: str | None, count: int, /
    ) -> NoReturn: ...
    def raise_argument(
        self,
        dispatcher: TritonDispatcher,
        index: int,
        value: object,
        mismatch: str,
        detail: int,
        device: int,
        /,
    ) -> NoReturn: ...
    def classify(self, kind: type, /) -> int: ...
    def constant(self, value: object, /) -> tuple[object, bool]: ...
    def describe_constant(self, value: object, /) -> tuple[str, object]: ...
    def read_tensor(self, value: object, /) -> tuple[int, str, object]: ...
    def memory_of(self, value: object, /) -> tuple[int, int]: ...

class FunctionUpcalls(Protocol):
    """The functions that the extension calls in ``culaunch._function``."""

    def record(
        self, target: object, how: str, args: tuple[Any, ...], keywords: dict[str, Any], /
    ) -> object: ...
    def followed_code(
        self, code: CodeType, /
    ) -> tuple[CodeType, object, dict[str, Any], dict[str, Any]] | bool | None: ...
    def followed_builtins(self, builtins: dict[str, Any], key: Any, /) -> dict[str, Any]: ...
    def is_same(self, left: object, right: object, /) -> bool: ...
    def around_collection(self, phase: str, /) -> None: ...

class JaxUpcalls(Protocol):
    """The functions that the extension calls in ``culaunch._jax``."""

    def resolve(
        self, text: str, /
    ) -> tuple[
        Callable[..., Any], tuple[Any, ...], tuple[str, ...], tuple[int, ...], tuple[int, ...]
    ]: ...

def current_driver() -> Driver:
    """Return the driver in use, opened at the first call.

    Raises
    ------
    DriverNotFoundError
        If there is none.
    """

def note_driver(
    driver: Driver, conditions: tuple[tuple[dict[Any, Any], str | bytes, object], ...], /
) -> None:
    """Say that a driver is the one in use while each dict has for its key this very object.

    None stands for a key that the dict does not have.
    """

def array_stream(driver: Driver, array: object, /) -> tuple[int, int] | None: ...
def current_stream(ordinal: int, /) -> int: ...
def set_current_stream(ordinal: int, handle: int, /) -> None: ...
def set_upcalls(
    *,
    launch: LaunchUpcalls = ...,
    triton: TritonUpcalls = ...,
    function: FunctionUpcalls = ...,
    jax: JaxUpcalls = ...,
) -> None:
    """Say which functions the extension calls of a package: it keeps them."""

class DispatcherMethods(Protocol):
    """What a subclass of ``TritonDispatcher`` adds: a call comes to these methods."""

    def _prepare(self) -> None: ...
    def _guarded(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> object: ...
    def _miss(
        self,
        values: dict[str, Any],
        options: dict[str, Any],
        description: list[tuple[Any, Any]],
        device: int,
        /,
    ) -> TritonVariant | None: ...
    def _tune(
        self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], device: int, /
    ) -> tuple[
        dict[str, Any], dict[str, Any], Any, bool, Any, frozenset[str], bool, dict[str, Any]
    ]: ...
    def _run_hook(
        self,
        config: Any,
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        settings: dict[str, Any],
        /,
    ) -> None: ...
    def _set_to_zero(self, values: dict[str, Any], /) -> None: ...
    def _chose(self, config: Any, /) -> None: ...
    def _read_grid(
        self, grid: Any, /
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[object, ...], bool] | None: ...
    def _compare(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], chosen: dict[str, Any], /
    ) -> None: ...
    def _fall_back(
        self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], reason: Any, /
    ) -> object: ...
    def _allocate(
        self, which: str, size: int, alignment: int, stream: int, device: int, /
    ) -> object: ...

class ElementwiseMethods(Protocol):
    """What a subclass of ``Elementwise`` adds: a call comes to these methods."""

    def _specialize(self, numbers: bytes, /) -> tuple[bytes, bytes, bytes, bool, object] | None: ...
    def _make_kernel(
        self,
        program: Any,
        ordinal: int,
        kind: str,
        vector: int,
        rank: int,
        flags: int,
        classes: bytes,
        /,
    ) -> tuple[Kernel, int]: ...
    def _call_slowly(self, args: tuple[Any, ...], keywords: dict[str, Any], /) -> Any: ...
    def _runs_in_place(self, args: tuple[Any, ...], /) -> bool: ...

class FunctionMethods(Protocol):
    """What a subclass of ``Function`` adds: a call comes to these methods."""

    def _trace(self, arguments: tuple[Any, ...], /) -> None: ...
    def _fail(
        self, number: int, detail: int, text: str | None, values: tuple[Any, ...], /
    ) -> None: ...
    def _refused(self, arguments: tuple[Any, ...], error: TypeError | None, /) -> Any: ...
