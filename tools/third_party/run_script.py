"""Run a script that leaves its results in global names, one way, and record the results.

The ways: ``triton`` as it is, ``native`` with culaunch.triton.install(), ``interpreter`` by
Triton's interpreter, which is NumPy on the CPU.
"""

from __future__ import annotations

import json
import os
import random
import re
import runpy
import sys
import traceback
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

WAYS = ("triton", "native", "interpreter")


def run(script: Path, way: str, into: Path, *, on_host: bool, configs: int, fill: bool) -> None:
    """Run a script in this process, which is its own, and write ``into.json`` and ``into.pt``.

    Parameters
    ----------
    script : pathlib.Path
    way : str
        One of :data:`WAYS`.
    into : pathlib.Path
        Without a suffix: ``.json`` has how it ended, ``.pt`` the results, ``.log`` what it said,
        and ``.report`` how it launched.
    on_host : bool
        Whether memory that the script asks of a GPU is the host's: for the emulator.
    configs : int
        How many configurations each autotuner tries; 0: all. Which one is the fastest differs from
        run to run, and results with it.
    fill : bool
        Whether memory is set when it is allocated: to NaN, or the largest integer.
    """
    os.setsid()  # its children end with it
    said = os.open(into.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(said, 1)
    os.dup2(said, 2)
    if way == "interpreter":
        os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
    if fill:
        import torch

        # This run needs only this effect of it:
        # torch.utils.deterministic.fill_uninitialized_memory.
        torch.use_deterministic_algorithms(True, warn_only=True)
    ended: dict[str, Any] = {"ended": "ok"}
    found: dict[str, Any] = {}
    try:
        with _prepared(way, on_host=on_host, configs=configs):
            found = _executed(script)
    except BaseException as error:  # noqa: BLE001 - a script may exit, too
        traceback.print_exc()
        ended = {"ended": "failed", "error": _worded(error)}
    _write(into, ended, found)
    sys.stdout.flush()
    sys.stderr.flush()
    # Nothing of the process that this one was forked from is to end here.
    os._exit(0)


def _prepared(way: str, *, on_host: bool, configs: int) -> Any:
    """Give the script the same surroundings in each way; return a context to run it in."""
    import contextlib

    import torch

    context: Any = contextlib.nullcontext()
    if on_host:
        from cuda_on_host import CudaOnHost

        torch.set_num_threads(1)
        context = CudaOnHost()
    if way == "interpreter":
        _mend_interpreter()
    if configs:
        from few_configurations import few_configurations

        few_configurations(configs)
    if way == "native":
        os.environ["CULAUNCH_TRITON_CHECK"] = "1"
        import culaunch.triton

        culaunch.triton.install()
    random.seed(0)
    torch.manual_seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    return context


def _mend_interpreter() -> None:
    """Let Triton's interpreter take an array of one element for a number, as NumPy 2.4 does not."""
    from triton.runtime import interpreter

    original = interpreter._patch_lang_tensor  # noqa: SLF001

    def patch(tensor: Any, scope: Any) -> None:
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patch  # noqa: SLF001


def _executed(script: Path) -> dict[str, Any]:
    """Return the values of the script's global names that hold tensors."""
    sys.argv = [str(script)]
    sys.path.insert(0, str(script.parent))
    names = runpy.run_path(str(script), run_name="__main__")
    found: dict[str, Any] = {}
    for name, value in names.items():
        if not name.startswith("__"):
            held = dict(_flat(value, name))
            if any(not isinstance(one, str) for one in held.values()):
                found.update(held)
    return found


def _flat(value: Any, path: str) -> Any:
    """Yield the tensors below a value, on the host, and the rest as text."""
    import torch

    if isinstance(value, torch.Tensor):
        yield path, value.detach().cpu().clone()
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _flat(one, f"{path}[{key!r}]")
    elif isinstance(value, list | tuple):
        for i, one in enumerate(value):
            yield from _flat(one, f"{path}[{i}]")
    elif value is None or isinstance(value, bool | int | float | complex | str):
        yield path, repr(value)
    elif not isinstance(value, types.ModuleType):
        yield path, type(value).__name__


def _write(into: Path, ended: dict[str, Any], found: dict[str, Any]) -> None:
    import torch

    torch.save(found, into.with_suffix(".pt"))
    module = sys.modules.get("culaunch.triton")
    if module is not None:
        into.with_suffix(".report").write_text(module.report().to_json())
    into.with_suffix(".json").write_text(json.dumps(ended))


def _worded(error: BaseException) -> str:
    """Return an error's type and first lines, without what differs from process to process."""
    text = "\n".join(str(error).strip().splitlines()[:3])
    return re.sub(r"0x[0-9a-f]+", "0x...", f"{type(error).__name__}: {text}")
