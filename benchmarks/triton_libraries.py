"""Measure the effect of culaunch.triton.install() on libraries that are written in Triton.

It uses operators of liger-kernel and flash-linear-attention. First it compares their outputs and
gradients bit by bit. Then it repeats each of their launches, forward and backward, in both ways,
interleaved as in launch_overhead.py. It does the same with whole forward passes, and measures first
calls in fresh processes. On a GPU, with both packages installed:

    python benchmarks/triton_libraries.py --output results

Each part has its own processes and time limit, so a failure or a hang costs only that part. The
JSON is written after each. Without a GPU, ``--host-only`` measures on a driver that does nothing,
beside a Triton that launches nothing. ``--smoke`` runs on the emulator, all in one process.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libraries.modes import GPU, HOST_ONLY, SMOKE
from libraries.operators import FLA_OPERATORS, LIGER_OPERATORS
from libraries.results import Results, first_name
from libraries.table import draw, lines
from libraries.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Sequence

SMOKE_OPERATORS = ("liger.swiglu", "fla.l2norm", "liger.softmax")
_PACKAGES = {"liger": "liger_kernel", "fla": "fla"}
# The share of the remaining time that a part may take.
SHARES = {"equal": 0.4, "replay": 0.38, "forwards": 0.22, "first": 1.0}


class Libraries:
    """The run: its parts, one after another.

    Parameters
    ----------
    options : argparse.Namespace
    names : list of str
        Of the operators.
    folder : pathlib.Path
        Caches and findings, gone afterwards.
    """

    def __init__(self, options: argparse.Namespace, names: list[str], folder: Path) -> None:
        self._options = options
        self._names = names
        self._folder = folder
        self._start = time.monotonic()
        self._numbers = itertools.count()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_over = False  # interrupted
        self.results = Results(options.mode)

    def run(self) -> None:
        """Run the selected parts; a part that fails is listed as missing."""
        try:
            smoke = self._options.mode == SMOKE
            for part in self._options.part or (["smoke"] if smoke else SHARES):
                if part == "first" and smoke:
                    continue
                start = time.monotonic()
                self._say(f"{part}: at most {self._time_of(part):.0f} s")
                try:
                    getattr(self, f"_{part}")(self._time_of(part))
                except Exception as error:  # noqa: BLE001 - the other parts go on
                    self.results.missing.append(f"{part}: {type(error).__name__}: {error}"[:300])
                self.results.took[part] = time.monotonic() - start
                self.save()
        finally:
            for process in self._running:
                process.kill()
            self.save()

    def save(self) -> None:
        """Write the results so far."""
        if output := self._options.output:
            output.mkdir(parents=True, exist_ok=True)
            path = output / "triton_libraries.json"
            path.write_text(json.dumps(self.results.to_json(), indent=1) + "\n")

    # ---- the parts

    def _equal(self, seconds: float) -> None:
        """Compare all operators, many at a time; that also fills the caches on disk."""
        until = time.monotonic() + seconds
        count = self._options.workers
        # Those of fla compile longest, and are spread over the processes.
        names = self._names[::-1]
        with ThreadPoolExecutor(count) as pool:
            try:
                list(pool.map(lambda i: self._compare(names[i::count], until), range(count)))
            except BaseException:
                self._is_over = True
                raise
        order = {name: i for i, name in enumerate(self._names)}
        found = sorted(self.results.equal.items(), key=lambda item: order[item[0]])
        self.results.equal = dict(found)

    def _compare(self, names: list[str], until: float) -> None:
        """Compare some in one process, and those after one that ended it in another."""
        found = self.results.equal
        while names and not self._is_over:
            left = until - time.monotonic()
            why = self._work("equal", names, left) if left > 5 else "not measured, no time left"
            names = [name for name in names if name not in found]
            if names:
                found[names[0]] = {"said": f"failed: {why}"}
                self._say(f"{names[0]}: failed: {why}")
                del names[0]

    def _replay(self, seconds: float) -> None:
        self._alone("replay", seconds)

    def _forwards(self, seconds: float) -> None:
        self._alone("forwards", seconds)

    def _smoke(self, seconds: float) -> None:
        """Run the parts in one process: most of their time goes into imports."""
        self._alone("equal,replay,forwards", seconds)

    def _alone(self, part: str, seconds: float) -> None:
        # Without a comparison, all; otherwise what ran.
        ran = [
            name
            for name in self._names
            if not self.results.equal.get(name, {"said": ""})["said"].startswith("failed")
        ]
        if not ran:
            raise RuntimeError("no operator ran")
        if why := self._work(part, ran, seconds):
            self.results.missing.append(f"{part}: {why}")

    def _first(self, seconds: float) -> None:
        """Make first calls in fresh processes, with a cold and then a warm cache on disk.

        Once with as many configurations of each autotuner as elsewhere, and once with all of them:
        then measuring these is nearly all that takes time.
        """
        until = time.monotonic() + seconds
        plan = [("triton", "cold"), ("native", "cold")]
        plan += [("native", "warm"), ("triton", "warm")] * 2 + [("profile", "warm")]
        full = [("native", "cold"), ("native", "warm"), ("triton", "cold"), ("triton", "warm")]
        for configs, runs in ((self._options.configs, plan), (0, full)):
            caches = {way: tempfile.mkdtemp(dir=self._folder) for way in ("triton", "native")}
            for way, cache in runs:
                folder = caches["triton" if way == "triton" else "native"]
                self._first_run(way, cache, configs, folder, until)

    def _first_run(self, way: str, cache: str, configs: int, folder: str, until: float) -> None:
        left = until - time.monotonic()
        name = {"triton": "Triton", "native": "native", "profile": "native, profiled"}[way]
        key = first_name(name, cache, all_configurations=not configs)
        if left < 3:
            self.results.missing.append(f"first calls, {key}: not measured, no time left")
            return
        environment = {"TRITON_CACHE_DIR": folder, "CULAUNCH_CACHE_DIR": folder}
        found: list[dict[str, Any]] = []
        why = self._work(f"first_{way}", [], min(left, 60), environment, found, configs)
        if not found:
            self.results.missing.append(f"first calls, {key}: {why}")
            return
        best = found[0]
        self._say(f"first calls, {key}: {best['seconds']:.2f} s")
        if best["seconds"] < self.results.first.get(key, best)["seconds"] + 1e-9:
            self.results.first[key] = best

    # ---- processes

    def _work(
        self, part: str, names: list[str], seconds: float,
        environment: dict[str, str] | None = None, first: list[dict[str, Any]] | None = None,
        configs: int | None = None,
    ) -> str | None:  # fmt: skip
        """Run a part in another process and take its findings; say what went wrong, if anything."""
        into = self._folder / f"{next(self._numbers)}.jsonl"
        options = self._options
        command = [sys.executable, str(Path(__file__).resolve()), "--mode", options.mode]
        command += ["--worker", part, "--into", str(into), "--seconds", str(seconds - 2)]
        configs = options.configs if configs is None else configs
        command += ["--configs", str(configs), *(["--quick"] if options.quick else [])]
        command += [word for name in names for word in ("--only", name)]
        cache = {"TRITON_CACHE_DIR": str(self._folder / "triton")}
        words = into.with_suffix(".txt")
        with words.open("w") as said:
            process = subprocess.Popen(
                command, stdout=said, stderr=subprocess.STDOUT,
                env={**os.environ, **cache, **(environment or {})},
            )  # fmt: skip
        self._running.add(process)
        until, taken, why = time.monotonic() + seconds + 3, 0, None
        while why is None:
            is_over = process.poll() is not None
            if not is_over and (self._is_over or time.monotonic() > until):
                process.kill()
                process.wait()
                why = f"took more than {seconds:.0f} s: {_last_words(words)}"
            found = _lines(into)
            for line in found[taken:]:
                if line["kind"] == "first" and first is not None:
                    first.append(line)
                else:
                    self._show(line)
                    self.results.take(line)
            taken = len(found)
            if is_over:
                break
            time.sleep(0.2)
        self._running.discard(process)
        if process.returncode and why is None:
            why = f"exit status {process.returncode}: {_last_words(words)}"
        return why

    def _show(self, line: dict[str, Any]) -> None:
        if line["kind"] == "equal":
            self._say(f"{line['name']}: {line['said']} ({line['took']:.1f} s)")
        elif line["kind"] == "recorded":
            self._say(f"{len(line['launches'])} launches recorded ({line['took']:.1f} s)")
        else:
            self._say(line.get("why") or line["kind"])

    def _time_of(self, part: str) -> float:
        left: float = self._options.seconds - (time.monotonic() - self._start)
        return max(10.0, left * SHARES.get(part, 1.0))

    def _say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._start:5.0f} s] {text}", flush=True)


def _lines(path: Path) -> list[dict[str, Any]]:
    found = path.read_text().splitlines(keepends=True) if path.exists() else []
    # The process may have been ended while it wrote the last one.
    return [json.loads(line) for line in found if line.endswith("\n")]


def _last_words(path: Path) -> str:
    said = path.read_text(errors="replace").splitlines()
    return " | ".join(line.strip() for line in said[-4:])[-300:]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--smoke", dest="mode", action="store_const", const=SMOKE, help="emulator")
    mode.add_argument(
        "--host-only",
        dest="mode",
        action="store_const",
        const=HOST_ONLY,
        help="use the null driver; needs no GPU",
    )
    mode.add_argument("--mode", help=argparse.SUPPRESS)
    parser.add_argument(
        "--quick", action="store_true", help="measure few rounds, to see that it runs"
    )
    parser.add_argument("--output", type=Path, help="write the JSON and the chart to this folder")
    parser.add_argument("--only", action="append", help="run only this operator; may be repeated")
    parser.add_argument("--part", action="append", choices=SHARES, help="run only these parts")
    parser.add_argument("--seconds", type=float, help="time limit for the whole run (420 on a GPU)")
    parser.add_argument(
        "--workers", type=int, default=_workers(), help="number of comparing processes at a time"
    )
    parser.add_argument(
        "--configs", type=int, default=2, help="configurations per autotuner; 0 means all (2)"
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    options.mode = options.mode or GPU
    options.seconds = options.seconds or (420 if options.mode == GPU else 3600)
    default = SMOKE_OPERATORS if options.mode == SMOKE else None
    all_names = [one.name for one in (*LIGER_OPERATORS, *FLA_OPERATORS)]
    names = options.only or list(default or all_names)
    if unknown := set(names) - set(all_names):
        parser.error(f"--only: no such operator: {', '.join(sorted(unknown))}")
    packages = {"torch", "triton", *(_PACKAGES[name.split(".")[0]] for name in names)}
    if missing := sorted(one for one in packages if importlib.util.find_spec(one) is None):
        print(f"cannot start: {', '.join(missing)}: not installed", file=sys.stderr)
        return 1
    if options.worker:
        worker = Worker(
            options.into, options.mode, names, options.seconds,
            quick=options.quick, configs=options.configs,
        )  # fmt: skip
        for part in options.worker.split(","):
            worker.run(part)
        return 0
    with tempfile.TemporaryDirectory(
        prefix="culaunch-benchmark-", ignore_cleanup_errors=True
    ) as folder:
        run = Libraries(options, names, Path(folder))
        try:
            run.run()
        finally:
            print("\n".join(lines(run.results)), flush=True)
    if options.output and run.results.launches:
        try:
            draw(run.results, options.output / "triton_libraries.svg")
        except ImportError as error:
            print(f"no chart: {error}")
    return 0 if run.results.has_any else 1


def _workers() -> int:
    return max(1, min(12, len(os.sched_getaffinity(0)) * 3 // 4))


if __name__ == "__main__":
    sys.exit(main())
