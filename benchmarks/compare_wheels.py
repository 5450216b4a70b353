"""Compare what calls cost with two wheels of culaunch: bursts that alternate, in fresh processes.

    python benchmarks/compare_wheels.py old.whl new.whl                # on a machine with a GPU
    python benchmarks/compare_wheels.py old.whl new.whl --host-only    # anywhere

The tool unpacks each wheel into its own folder at the start of ``sys.path``. It uses the torch,
Triton and CuPy that are installed, and downloads nothing. A file may have any name. A pair is one
process for each wheel, both alive. They take turns burst by burst, so a machine that becomes slower
slows both. Differences between processes (memory layout, the core they run on) vary between pairs.

A row's ratio is new over old, the median over the pairs, with the smallest and the largest. The C
loop contains nothing of culaunch. Its distance from 1 is the resolution of this run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WORKER = HERE / "overhead" / "wheel_worker.py"
SIDES = ("old", "new")


class Worker:
    """A process with one of the wheels, which runs a burst when it is asked to."""

    def __init__(self, site: Path, *, host_only: bool, quick: bool) -> None:
        paths = [str(site), str(HERE), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "CULAUNCH_CACHE_DIR": str(site / "cache"),
        }
        flags = ["--host-only"] * host_only + ["--quick"] * quick
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), str(site), *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        first = json.loads(self._answer())
        self.rows: list[str] = first["rows"]
        self.missing: dict[str, str] = first["missing"]
        self.machine: dict[str, Any] = first["machine"]

    def burst(self, row: str) -> float:
        """Run a burst, and return nanoseconds per call."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{row}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"a worker exited with status {self._process.wait()}: see the output above"
            )
        return line


@dataclass
class Row:
    """The measurement of one way to call: for each pair, the medians of both sides."""

    name: str
    medians: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})

    @property
    def ratios(self) -> list[float]:
        """New over old, of each pair."""
        return [new / old for old, new in zip(*(self.medians[s] for s in SIDES), strict=True)]

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {
            "row": self.name,
            **{f"{side}_ns": statistics.median(self.medians[side]) for side in SIDES},
            "ratio": statistics.median(self.ratios),
            "ratios": self.ratios,
        }


def main(argv: list[str] | None = None) -> int:
    """Compare, and print the table."""
    options = parse(argv)
    rows: dict[str, Row] = {}
    missing: dict[str, str] = {}
    machine: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="culaunch-wheels-") as folder:
        sites = {side: Path(folder, side) for side in SIDES}
        for side in SIDES:
            with zipfile.ZipFile(getattr(options, side)) as wheel:
                wheel.extractall(sites[side])
        for pair in range(options.pairs):
            workers: dict[str, Worker] = {}
            for side in SIDES if pair % 2 else SIDES[::-1]:
                workers[side] = Worker(
                    sites[side], host_only=options.host_only, quick=options.quick
                )
            machine = workers["new"].machine
            for side in SIDES:
                for row, reason in workers[side].missing.items():
                    missing[f"{row} ({side})"] = reason
            for name, medians in measure(workers, options.rounds, pair).items():
                row = rows.setdefault(name, Row(name))
                for side in SIDES:
                    row.medians[side].append(medians[side])
            for worker in workers.values():
                worker.close()
            print(f"pair {pair + 1} of {options.pairs} done", file=sys.stderr, flush=True)
    report(rows, missing, machine)
    if options.json:
        found = {
            "machine": machine,
            "pairs": options.pairs,
            "rounds": options.rounds,
            "rows": [row.to_json() for row in rows.values()],
            "missing": missing,
        }
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if rows else 1


def measure(workers: dict[str, Worker], rounds: int, seed: int) -> dict[str, dict[str, float]]:
    """Return the medians of a pair: of each row that both have, and each side."""
    names = [name for name in workers["old"].rows if name in workers["new"].rows]
    samples = {name: {side: [] for side in SIDES} for name in names}  # type: ignore[var-annotated]
    order = random.Random(seed)
    for number in range(rounds):
        for name in order.sample(names, len(names)):
            for side in SIDES if number % 2 else SIDES[::-1]:
                samples[name][side].append(workers[side].burst(name))
    return {
        name: {side: statistics.median(samples[name][side]) for side in SIDES} for name in names
    }


def report(rows: dict[str, Row], missing: dict[str, str], machine: dict[str, Any]) -> None:
    """Print the table."""
    packages = ", ".join(f"{k} {v}" for k, v in machine.get("packages", {}).items())
    print(f"{machine.get('device')}; {machine.get('cpus')} x {machine.get('cpu')}")
    print(f"{machine.get('python')}; {packages}")
    width = max((len(name) for name in rows), default=10)
    print(
        f"{'nanoseconds per call':<{width}}{'old':>10}{'new':>10}   new / old  "
        "[range over the pairs]"
    )
    for row in rows.values():
        old, new = (statistics.median(row.medians[side]) for side in SIDES)
        spread = f"[{min(row.ratios):.3f}, {max(row.ratios):.3f}]"
        print(
            f"{row.name:<{width}}{old:10.0f}{new:10.0f}   "
            f"{statistics.median(row.ratios):9.3f}  {spread}"
        )
    for name, reason in missing.items():
        print(f"not measured: {name}: {reason}")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, help="the old wheel; any file name")
    parser.add_argument("new", type=Path, help="the new wheel")
    parser.add_argument(
        "--host-only", action="store_true", help="use the null driver; needs no GPU"
    )
    parser.add_argument("--quick", action="store_true", help="run only a few rows, in short bursts")
    parser.add_argument(
        "--pairs", type=int, default=5, help="number of pairs of processes (default: 5)"
    )
    parser.add_argument("--rounds", type=int, default=60, help="bursts per row and process")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write all measurements to this file"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
