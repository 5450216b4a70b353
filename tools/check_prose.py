"""Check the prose of pages, docstrings, comments, help and messages against docs/dev/style.md.

Usage: check_prose.py [--count] [PATH ...]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from check_words import ROOT, tracked
from prose.rules import check
from prose.texts import texts

# Licenses and data tables are not checked.
FOLDERS = (
    "docs", "src", "csrc", "include", "cmake", "drivers", "examples", "benchmarks", "tests", "tools"
)  # fmt: skip
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
SUFFIXES = {".md", ".py", ".h", ".hpp", ".c", ".cpp", ".cu", ".cuh"}
# Strings in these are inputs and patterns, not texts for users.
NO_STRINGS = ("tests", "tools", "drivers")


def main() -> int:
    """Print the findings; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", action="store_true", help="print one number per file")
    parser.add_argument("paths", nargs="*", type=Path, help="check only these files")
    asked = parser.parse_args()
    total = 0
    for path in [path.resolve() for path in asked.paths] or checked_files():
        found = findings(path)
        name = str(path.relative_to(ROOT))
        total += len(found)
        if asked.count:
            if found:
                print(f"{len(found):5} {name}")
        else:
            for line, problem, sentence in found:
                print(f"{name}:{line}: {problem}\n    {sentence[:150]}")
    print(f"prose: {total} found" if total else "prose: none found")
    return 1 if total else 0


def checked_files() -> list[Path]:
    """List the tracked files whose prose is checked."""
    return [
        path
        for path in tracked()
        if path.suffix in SUFFIXES
        and (path.relative_to(ROOT).parts[0] in FOLDERS or str(path.relative_to(ROOT)) in PAGES)
    ]


def findings(path: Path) -> list[tuple[int, str, str]]:
    """Return line, problem and sentence of each finding in a file."""
    return [
        (text.line, problem, text.words)
        for text in texts(path, with_strings=path.relative_to(ROOT).parts[0] not in NO_STRINGS)
        for problem in check(
            text.words,
            is_phrase=text.is_phrase,
            is_heading=text.is_heading,
            is_note=text.is_note,
            is_message=text.is_message,
        )
    ]


if __name__ == "__main__":
    sys.exit(main())
