"""Simulate farms and shared caches at sizes that were not measured: what breaks first, and where.

Two questions, each a simulation of events with a queue where the machines meet:

- a farm: one program hands requests to workers (``compile_many``), and spends a time on each;
- a storm: the processes of many machines start at once behind one remote cache, empty or full.

The inputs are measured (benchmarks/compile_many.py) or published (the rates of an object store),
and you can set them. The output is a plan, not a measurement.

    python benchmarks/scale_model.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Facts:
    """The measured properties of one request and of a server."""

    compile_s: float = 0.1
    """For a kernel of a few lines. CUB takes 2 s, and a CUTLASS kernel 30 s."""
    spread: float = 0.5
    """Standard deviation of the logarithm of the compile time."""
    coordinator_s: float = 0.001
    """The time that the requesting program spends on a message and its answer."""
    together_s: float = 0.25
    """Quick requests share a message: as many as a worker finishes in this time,"""
    together: int = 32
    """and at most this many."""
    request_bytes: int = 1_500
    answer_bytes: int = 12_000
    entry_bytes: int = 12_000
    latency_s: float = 0.02
    """Latency of one read or write on an idle server."""
    reads_per_s: float = 5_500.0
    """Amazon's limit for one prefix of S3. A bucket with many prefixes allows more."""
    writes_per_s: float = 3_500.0
    timeout_s: float = 5.0
    """A process stops asking after this time (CULAUNCH_CACHE_REMOTE_TIMEOUT)."""
    spread_of_starts_s: float = 5.0
    """The time that a scheduler needs to start all machines."""


def farm(workers: int, requests: int, facts: Facts, seed: int = 1) -> dict[str, float]:
    """Hand requests to workers through one program; return the time, and its parts."""
    rng = random.Random(seed)
    # Half of the program's time for a message is before the work, half after it.
    half = facts.coordinator_s / 2
    quick = facts.together_s / facts.compile_s
    ends: list[tuple[float, int]] = []  # of the workers' operations, and their number of requests
    free, sent, done, now, busy = workers, 0, 0, 0.0, 0.0
    while done < requests:
        if ends and ends[0][0] <= now:
            done, free = done + heapq.heappop(ends)[1], free + 1
        elif sent < requests and free:
            fair = (requests - sent) / (2 * workers)
            size = max(1, min(int(min(quick, fair)), facts.together))
            sent, free = sent + size, free - 1
            work = facts.compile_s * sum(
                rng.lognormvariate(-(facts.spread**2) / 2, facts.spread) for _ in range(size)
            )
            heapq.heappush(ends, (now + half + work, size))
        else:
            now = max(now, ends[0][0])
            continue
        now += half
        busy += half
    return {
        "workers": workers,
        "requests": requests,
        "seconds": now,
        "requests_per_s": requests / now,
        "program_is_busy": busy / now,
        "of_perfect": requests * facts.compile_s / min(workers, requests) / now,
        "megabytes": requests * (facts.request_bytes + facts.answer_bytes) / 1e6,
    }


class Server:
    """A server that takes so many requests a second, one after the other."""

    def __init__(self, rate: float, latency: float) -> None:
        self._each = 1 / rate
        self._latency = latency
        self._free = 0.0
        self.count = 0

    def ask(self, now: float) -> float:
        """Return when the answer is there."""
        self.count += 1
        self._free = max(self._free, now) + self._each
        return self._free + self._latency


def storm(
    machines: int, processes: int, keys: int, facts: Facts, *, full: bool, seed: int = 1
) -> dict[str, float]:
    """Start machines behind one remote cache; each needs all keys. Return the outcome.

    On each machine, one process asks for a key or compiles it. The others that want it do something
    else or wait: `processes` keys at a time.
    """
    rng = random.Random(seed)
    reads = Server(facts.reads_per_s, facts.latency_s)
    writes = Server(facts.writes_per_s, facts.latency_s)
    there = [0.0 if full else float("inf")] * keys  # since when the server has a key
    order = [deque(rng.sample(range(keys), keys)) for _ in range(machines)]
    gave_up = [0] * machines  # processes that ask no more
    compiled, last, by_key = 0, 0.0, [0] * keys
    events = [
        (rng.uniform(0, facts.spread_of_starts_s), machine, process)
        for machine in range(machines)
        for process in range(processes)
    ]
    heapq.heapify(events)
    while events:
        now, machine, process = heapq.heappop(events)
        last = max(last, now)
        if not order[machine]:
            continue
        key = order[machine].popleft()
        answered = now
        has_it = False
        if process >= gave_up[machine]:
            answered = reads.ask(now)
            if answered - now > facts.timeout_s:
                gave_up[machine] += 1
                answered = now + facts.timeout_s
            else:
                has_it = there[key] <= answered
        if not has_it:
            compiled, by_key[key] = compiled + 1, by_key[key] + 1
            answered += facts.compile_s * rng.lognormvariate(-(facts.spread**2) / 2, facts.spread)
            if process >= gave_up[machine]:
                there[key] = min(there[key], writes.ask(answered))
        heapq.heappush(events, (answered, machine, process))
    return {
        "machines": machines,
        "workers": machines * processes,
        "seconds": last,
        "reads": reads.count,
        "reads_per_s": reads.count / last,
        "writes": writes.count,
        "compiled": compiled,
        "compiled_per_key": compiled / keys,
        "gave_up": sum(gave_up),
        "gigabytes": (reads.count - compiled + writes.count) * facts.entry_bytes / 1e9,
    }


def show(title: str, rows: list[dict[str, float]]) -> None:
    print(f"\n{title}")
    names = list(rows[0])
    print("  ".join(f"{name:>16}" for name in names))
    for row in rows:
        print("  ".join(f"{row[name]:16,.{2 if row[name] % 1 else 0}f}" for name in names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="simulate small sizes, to see that it runs"
    )
    parser.add_argument("--keys", type=int, default=200, help="keys that one program needs")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    facts = Facts()
    slow = Facts(compile_s=30.0)
    sizes = [10, 100] if options.quick else [10, 100, 1_000, 10_000]
    keys = 20 if options.quick else options.keys
    results = {
        "facts": asdict(facts),
        "farm of kernels of 0.1 s": [farm(w, max(10 * w, 1_000), facts) for w in sizes],
        "farm of kernels of 30 s": [farm(w, 10 * w, slow) for w in sizes],
        "storm, the cache is full": [
            storm(max(1, w // 8), 8, keys, facts, full=True) for w in sizes
        ],
        "storm, the cache is empty": [
            storm(max(1, w // 8), 8, keys, facts, full=False) for w in sizes
        ],
        "storm, the cache is empty, kernels of 30 s": [
            storm(max(1, w // 8), 8, keys, slow, full=False) for w in sizes
        ],
    }
    for title, rows in results.items():
        if isinstance(rows, list):
            show(title, rows)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
