"""Check the prose of pages, docstrings, help and messages against docs/dev/style.md.

Files in ``tools/prose/pending.txt`` are not rewritten yet and are left out. That list may only
shrink: a file in it that has no findings is an error, and the message asks for its removal.

Usage: check_prose.py [--count] [--all] [PATH ...]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from check_words import ROOT, tracked
from prose.rules import check
from prose.texts import texts

PENDING = Path(__file__).parent / "prose" / "pending.txt"
# Licenses and tables of data are not ours to rewrite.
FOLDERS = ("docs", "src", "csrc", "include")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
SUFFIXES = {".md", ".py", ".h", ".hpp", ".cpp"}


def main() -> int:
    """Print the findings; return 1 if a file that is held has one, or a pending file has none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", action="store_true", help="print one number per file")
    parser.add_argument("--all", action="store_true", help="check pending files as well")
    parser.add_argument("paths", nargs="*", type=Path, help="check these files instead")
    asked = parser.parse_args()
    pending = set() if asked.all or asked.paths else pending_files()
    total = 0
    for path in [path.resolve() for path in asked.paths] or checked_files():
        found = findings(path)
        name = str(path.relative_to(ROOT))
        if name in pending:
            if not found:
                print(f"{name}: has no findings; remove it from {PENDING.relative_to(ROOT)}")
                total += 1
            continue
        total += len(found)
        if asked.count:
            if found:
                print(f"{len(found):5} {name}")
        else:
            for line, problem, sentence in found:
                print(f"{name}:{line}: {problem}\n    {sentence[:150]}")
    print(f"prose: {total} found" if total else "prose: none found")
    return 1 if total else 0


def pending_files() -> set[str]:
    """Return the files that are not rewritten yet."""
    lines = PENDING.read_text().splitlines() if PENDING.exists() else []
    return {line for line in lines if line and not line.startswith("#")}


def checked_files() -> list[Path]:
    """List the tracked files whose prose is held."""
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
        for text in texts(path)
        for problem in check(text.words, is_phrase=text.is_phrase, is_heading=text.is_heading)
    ]


if __name__ == "__main__":
    sys.exit(main())
