"""A kernel as C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from culaunch._emulator.compiled.group_text import GroupText
from culaunch._emulator.compiled.lane import Untraceable
from culaunch._emulator.compiled.recorder import Recorder
from culaunch._emulator.compiled.thread_order import ordered_access, reads_textures
from culaunch._emulator.compiled.thread_text import ThreadText
from culaunch._emulator.outside import comes_from_outside

if TYPE_CHECKING:
    from culaunch._emulator.kernel_code import KernelCode

# Every kernel has the text of these files, in this order.
_FILES = ("types.c", "values.c", "memory.c", "textures.c", "warp.c", "runtime.c")


def kernel_text(kernel: KernelCode) -> str:
    """Return the C of a kernel; raise Untraceable if the compiled engine does not support it."""
    try:
        return _text(kernel)
    except Untraceable:
        raise
    except Exception as error:
        if comes_from_outside(error):
            raise
        # Over which form a decoder stumbles is not known; the other engine says it.
        raise Untraceable(f"{type(error).__name__}: {error}") from error


def _text(kernel: KernelCode) -> str:
    recorder = Recorder(kernel)
    threads = ThreadText(recorder)
    groups = GroupText(recorder, threads)
    fields = "".join(f"{recorder.type(slot)} r{slot}; " for slot in sorted(recorder.kept))
    texts = (groups.text, threads.text())
    # The module's variables whose addresses it needs. Their names contain no spaces.
    symbols = " ".join(recorder.decoder.symbols_used)
    return "\n".join(
        (
            f"#define STOPS {int(threads.stops)}",
            f"#define TEXTURES {int(reads_textures(recorder.code))}",
            f"#define SITES {recorder.sites.count}",
            f"#define LOCAL {recorder.code.local_bytes}",
            f"#define GROUP {groups.width}",
            f"#define ORDERED {int(bool(ordered_access(recorder.code)))}",
            f"#define STORED {groups.stored or 'char none;'}".replace("\n", " "),
            f"#define REGISTERS {fields or 'char none;'}",
            *(Path(__file__).with_name(name).read_text("utf-8") for name in _FILES),
            *texts,
            f'const char culaunch_symbols[] = "{symbols}";\n',
        )
    )
