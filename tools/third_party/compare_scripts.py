"""Run scripts of others by Triton and then with culaunch.triton.install(), and compare the bits.

FOLDER holds the scripts (for example TritonBench's ``data/TritonBench_G_v1``). It is not part of
this repository. Each ``*.py`` launches Triton kernels and leaves the results in global names. Each
runs in its own process. If the results differ, Triton runs the script once more: results that
differ between two runs of Triton say nothing. Results that become equal when PyTorch fills new
memory say nothing either, because no kernel wrote them. With ``--emulator`` no GPU is needed:
scripts run natively on the host, in filled memory, and the results are compared with Triton's
interpreter.

``scripts.json`` in the output folder has the outcome of each; the table is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections import Counter
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from run_script import run
from script_outcome import FILLED, OUTCOMES, Script
from script_results import differences, read


class Comparison:
    """Scripts run in several ways, many at a time, until the time is over.

    Parameters
    ----------
    scripts : list of Script
    output : pathlib.Path
    seconds : float
        For all of it.
    each : float
        Seconds for one process.
    jobs : int
        Processes at a time.
    on_emulator : bool
    configs : int
        How many configurations each autotuner tries; 0: all.
    """

    def __init__(
        self, scripts: list[Script], output: Path, seconds: float, each: float, jobs: int,
        on_emulator: bool, configs: int,
    ) -> None:  # fmt: skip
        self._scripts = scripts
        self._output = output
        self._end = time.monotonic() + seconds
        self._each = each
        self._jobs = jobs
        self._on_emulator = on_emulator
        self._configs = configs
        output.mkdir(parents=True, exist_ok=True)
        # Frameworks are imported once, by a process that the others are forked from.
        self._forked = multiprocessing.get_context("forkserver")
        self._forked.set_forkserver_preload(["torch", "triton", "culaunch.triton"])
        self._fresh = multiprocessing.get_context("spawn")

    def run(self) -> None:
        """Run them all; ``scripts.json`` is rewritten after each script."""
        first = self._forked.Process()  # the frameworks' import is not the first script's time
        first.start()
        first.join()
        running: dict[int, tuple[Any, Script, str, float]] = {}
        try:
            self._run_all(running)
        finally:  # interrupted, too: they are in sessions of their own
            for process, *_ in running.values():
                _end(process)
            self._write()

    def _run_all(self, running: dict[int, tuple[Any, Script, str, float]]) -> None:
        waiting = list(self._scripts)
        while waiting or running:
            while waiting and len(running) < self._jobs and time.monotonic() < self._end:
                script = waiting.pop(0)
                way = script.next_way
                assert way is not None
                process = self._begin(script, way)
                running[process.sentinel] = (process, script, way, time.monotonic())
            if not running:  # no time is left for those that wait
                return
            wait(list(running), timeout=0.2)
            for sentinel, (process, script, way, begun) in list(running.items()):
                taken = time.monotonic() - begun
                late = taken > self._each or time.monotonic() > self._end
                if process.is_alive() and not late:
                    continue
                if process.is_alive():
                    _end(process)
                process.join()
                del running[sentinel]
                script.ended[way] = self._how_it_ended(script, way, taken)
                self._compare(script, way)
                if script.next_way is not None:
                    waiting.insert(0, script)
                    continue
                for done in script.ended:  # which is much, and was compared
                    self._into(script, done).with_suffix(".pt").unlink(missing_ok=True)
                self._write()

    def table(self) -> list[str]:
        """Return lines that say how it went."""
        rows = [self._row(script) for script in self._scripts]
        counts = Counter(row["outcome"] for row in rows)
        reasons: Counter[str] = Counter()
        for row in rows:
            reasons.update(row["reasons"])
        lines = [f"{counts[outcome]:5} {outcome}" for outcome in OUTCOMES if counts[outcome]]
        for row in rows:
            if row["fault"]:
                lines.append(f"  {row['name']}: {row['outcome']}")
                lines += [f"    {way}: {error}" for way, error in row["errors"].items()]
                lines += [f"    {one}" for one in row["differences"][:3]]
        launches = [sum(row[way] for row in rows) for way in ("native", "triton")]
        lines.append(f"launches: {launches[0]} native, {launches[1]} by Triton")
        lines += [f"  by Triton {count} x: {reason}" for reason, count in reasons.most_common(12)]
        results = sum(row["results"] for row in rows if row["outcome"] == "same")
        lines.append(
            f"{len(rows)} scripts, {counts['same']} with the same results ({results} tensors); "
            f"worse than by Triton: {self.faults()}"
        )
        return lines

    def faults(self) -> int:
        """Return how many scripts went worse than by Triton."""
        return sum(OUTCOMES[script.outcome] for script in self._scripts)

    def _begin(self, script: Script, way: str) -> Any:
        into = self._into(script, way)
        for suffix in (".json", ".pt", ".report"):
            into.with_suffix(suffix).unlink(missing_ok=True)
        # The interpreter is chosen when Triton is imported.
        context = self._fresh if way == "interpreter" else self._forked
        process = context.Process(
            target=run,
            args=(script.path, way.split(maxsplit=1)[0], into),
            kwargs={
                "on_host": self._on_emulator,
                "configs": self._configs,
                "fill": self._on_emulator or way in FILLED,
            },
        )
        process.start()
        return process

    def _how_it_ended(self, script: Script, way: str, taken: float) -> dict[str, Any]:
        path = self._into(script, way).with_suffix(".json")
        try:
            found: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError):  # it was ended, or died
            late = taken > self._each or time.monotonic() > self._end
            found = {"ended": "no time"} if late else {"ended": "failed", "error": "it died"}
        return {**found, "seconds": round(taken, 2)}

    def _compare(self, script: Script, way: str) -> None:
        reference = FILLED[0] if way == FILLED[1] else script.reference
        if way in (script.reference, FILLED[0]):
            return
        both = [script.ended[one]["ended"] for one in (reference, way)]
        script.differences[way] = {}
        if both == ["ok", "ok"]:
            try:
                held = [
                    read(self._into(script, one).with_suffix(".pt")) for one in (reference, way)
                ]
            except (OSError, RuntimeError, pickle.UnpicklingError) as error:
                script.differences[way] = {"all": f"results cannot be read: {error}"}
                return
            script.ended[way]["results"] = sum(not isinstance(one, str) for one in held[1].values())
            script.differences[way] = differences(*held, exact=not self._on_emulator)

    def _row(self, script: Script) -> dict[str, Any]:
        """Return all that is known of a script."""
        report: dict[str, Any] = {"native": 0, "triton": 0, "kernels": []}
        with contextlib.suppress(OSError, ValueError):
            report = json.loads(self._into(script, "native").with_suffix(".report").read_text())
        reasons: Counter[str] = Counter()
        for kernel in report["kernels"]:
            reasons.update(kernel["reasons"])
        return {
            "name": script.name,
            "outcome": script.outcome,
            "fault": OUTCOMES[script.outcome],
            "seconds": {way: one["seconds"] for way, one in script.ended.items()},
            "errors": {way: one["error"] for way, one in script.ended.items() if "error" in one},
            "results": script.ended.get("native", {}).get("results", 0),
            "differences": [script.differences["native"][path] for path in script.different],
            "native": report["native"],
            "triton": report["triton"],
            "reasons": dict(reasons),
        }

    def _into(self, script: Script, way: str) -> Path:
        # A name of a script may have dots, which with_suffix() would cut.
        return self._output / f"{script.name}.{way.replace(' ', '_')}.out"

    def _write(self) -> None:
        rows = [self._row(script) for script in self._scripts]
        part = self._output / "scripts.json.part"
        part.write_text(json.dumps(rows, indent=1) + "\n")
        part.replace(self._output / "scripts.json")


def _end(process: Any) -> None:
    """End a process and its children."""
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of the scripts")
    parser.add_argument("--only", action="append", default=[], help="one script; may be repeated")
    parser.add_argument("--output", type=Path, required=True, help="a folder")
    parser.add_argument("--seconds", type=float, default=240, help="for all of it (240)")
    parser.add_argument("--each", type=float, default=45, help="for one process (45)")
    parser.add_argument("--jobs", type=int, default=12, help="processes at a time (12)")
    parser.add_argument(
        "--configs", type=int, default=1, help="that an autotuner tries; 0: all of them (1)"
    )
    parser.add_argument(
        "--emulator", action="store_true", help="natively, compared with Triton's interpreter"
    )
    options = parser.parse_args()
    scripts = [
        Script(path, options.emulator)
        for path in sorted(options.folder.resolve().glob("*.py"))
        if not options.only or path.stem in options.only
    ]
    if options.emulator:
        os.environ["CULAUNCH_DRIVER"] = "emulator"
    comparison = Comparison(
        scripts, options.output.resolve(), options.seconds, options.each, options.jobs,
        options.emulator, options.configs,
    )  # fmt: skip
    comparison.run()
    print("\n".join(comparison.table()), flush=True)
    return 1 if comparison.faults() else 0


if __name__ == "__main__":
    sys.exit(main())
