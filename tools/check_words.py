"""Check that no tracked text file names a machine's own paths or leaves a mark without an issue.

It looks for absolute paths of one machine, registry addresses, names of credentials, conflict
marks, and notes to oneself that name no issue.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# In this spelling the file does not match itself.
RULES = {
    "a machine's own path": r"(?<![\w.])/(?:roo[t]|wor[k]|opt/de[v])/",
    "a package index": r"--(?:extra-)?index-ur[l]|pypi\.or[g]/simple",
    "a conflict mark": r"^(?:<{7}|>{7}) ",
    "a note without an issue": r"\b(?:TOD[O]|FIXM[E]|XX[X])\b(?!\(#\d+\))",
}
BINARY = {".cubin", ".fatbin", ".png", ".bin", ".culib", ".gz", ".zst"}


def main() -> int:
    """Print every place that breaks a rule; return 1 if there is one."""
    found = 0
    for path in tracked():
        if path.suffix in BINARY:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for name, pattern in RULES.items():
                if match := re.search(pattern, line):
                    print(f"{path.relative_to(ROOT)}:{number}: {name}: {match[0]}")
                    found += 1
    print(f"words: {found} found" if found else "words: none found")
    return 1 if found else 0


def tracked() -> list[Path]:
    """List the files that git tracks."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return [path for name in names.split("\0") if (path := ROOT / name).is_file()]


if __name__ == "__main__":
    sys.exit(main())
