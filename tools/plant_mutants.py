"""Plant mutants in a copy of the installed package, and list the ones that the tests do not find.

    python tools/plant_mutants.py [--count 60] [--seed 1] [--rooms _launch,_function]

Run it with the Python that culaunch is installed for, once ``make check`` or ``make test`` has
installed it. A mutant is one small edit of a module: see mutants/mutations.py. It is tried with the
quick tests of the folders that cover its room. Only those run that call the function with the
edit, the fastest first; if there are none, all of them run. If they pass, the slow tests of these
folders run for ten minutes at most, up to the first that fails. The tests that call each function
are found once, and kept in build/mutants until a file of the package or of these tests changes.

It prints a line for each mutant, and a summary. A survivor is a test that is missing, unless the
edit changes nothing that a caller can observe.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
from typing import TYPE_CHECKING

from mutants.mutations import Mutation, mutations_of
from mutants.runs import Bench, Verdict

if TYPE_CHECKING:
    from pathlib import Path


def main() -> int:
    """Plant, run, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="another one makes others")
    parser.add_argument("--rooms", help="of these rooms alone, with commas: _launch,_function")
    arguments = parser.parse_args()
    bench = Bench()
    chosen = choose(bench.package, arguments.count, arguments.seed, arguments.rooms)
    found: collections.Counter[str] = collections.Counter()
    for mutation in chosen:
        verdict = bench.try_out(mutation)
        found["killed" if verdict.by else "survived"] += 1
        print(report(bench.package, mutation, verdict), flush=True)
    print(f"{found['killed']} of {found.total()} mutants killed, {found['survived']} survived")
    return 0


def choose(package: Path, count: int, seed: int, rooms: str | None) -> list[Mutation]:
    """Choose mutants: as many of each room, of each file and each kind the same chance."""
    dice = random.Random(seed)
    wanted = None if rooms is None else set(rooms.split(","))
    files = collections.defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).parts[0]
        if path.name != "__init__.py" and (wanted is None or room in wanted):
            files[room].append(path)
    chosen: set[Mutation] = set()
    for room in deal(sorted(files), count, dice):
        for _ in range(100):  # until there is one that is Python, and new
            kinds = collections.defaultdict(list)
            for mutation in mutations_of(dice.choice(files[room])):
                kinds[mutation.kind].append(mutation)
            mutation = dice.choice(kinds[dice.choice(sorted(kinds))]) if kinds else None
            if mutation is not None and mutation not in chosen and mutation.is_python():
                chosen.add(mutation)
                break
    return sorted(chosen)


def deal(rooms: list[str], count: int, dice: random.Random) -> list[str]:
    """Name a room for each mutant: all in turn, those of the last round by chance."""
    rounds, rest = divmod(count, len(rooms))
    return rooms * rounds + dice.sample(rooms, rest)


def report(package: Path, mutation: Mutation, verdict: Verdict) -> str:
    """Write a line: what became of a mutant, where it is, and the edit."""
    place = f"{mutation.path.relative_to(package)}:{mutation.line}"
    fate = f"killed    {place}" if verdict.by else f"SURVIVED  {place}"
    old, new = (" ".join(text.split()) for text in (mutation.old, mutation.new))
    return f"{fate}  {mutation.kind}: {old:.90} -> {new:.90}  ({verdict.by or verdict.tests})"


if __name__ == "__main__":
    sys.exit(main())
