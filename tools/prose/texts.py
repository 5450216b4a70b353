"""Find the prose in a file: pages in Markdown; texts, docstrings and comments in code."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Text(NamedTuple):
    """A sentence or a phrase, and the line that its paragraph begins on."""

    line: int
    words: str
    is_phrase: bool = False
    is_heading: bool = False
    is_note: bool = False  # beside code, and continues it
    is_message: bool = False  # shown to users by the program


_END = re.compile(
    r"(?<!e\.g)(?<!i\.e)(?<!etc)(?<!vs)(?<=[.!?:])[\"')*_]*\s+(?=[\"'(*_]*(?:[A-Z`X\d]|culaunch))"
)
_LITERAL = r'"((?:[^"\\\n]|\\.)*)"'
# Strings are found first, because "//" may stand in one.
_CPP = re.compile(
    rf"(?P<string>{_LITERAL}(?:\s*{_LITERAL})*)"
    r"|^[ \t]*///?<? ?(?P<comment>.*(?:\n[ \t]*///? ?.*)*)|//<? ?(?P<note>.*)"
    r"|'(?:[^'\\\n]|\\.)+'|\"(?:[^\"\\\n]|\\.)*\"",
    re.MULTILINE,
)
# The same in Python, in a fifth of the time that ``tokenize`` takes.
_PYTHON = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'(?:[^\\]|\\.)*?\'\'\''
    r"|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?P<comment>\#[^\n]*)",
    re.DOTALL,
)
_IS_CODE = re.compile(r"#include|template <|__global__|\n *(?:def|if) ")
_IS_FOR_TOOLS = re.compile(r"!|(?:type|mypy|pragma|fmt|ruff|isort|noqa)\b:? ?")
_SENTENCE_LIKE = re.compile(r"[A-Za-z]+(?: [a-z0-9'{},-]+){3}")


def texts(path: Path, *, with_strings: bool = True) -> Iterator[Text]:
    """Find the texts of a file by its suffix; strings only where users see them."""
    content = path.read_text()
    if path.suffix == ".md":
        if path.name == "CHANGELOG.md":  # released versions stay as they were
            head, mark, rest = content.partition("## Unreleased")
            content = head + mark + re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]
        yield from markdown(content)
    elif path.suffix == ".py":
        yield from python(content, with_strings=with_strings)
    else:
        yield from cpp(content, with_strings=with_strings)


def sentences(paragraph: str, line: int) -> Iterator[Text]:
    """Split a paragraph into sentences, with code as one word."""
    words = re.sub(r"(`+)(?:.|\n)+?\1", "X", paragraph)
    words = re.sub(r"\{(?:[\w:]+)\}X", "X", words)
    words = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", words)
    words = re.sub(r"https?://\S+|[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", words)
    for sentence in _END.split(" ".join(words.split())):
        if sentence:
            yield Text(line, sentence)


def markdown(content: str) -> Iterator[Text]:
    """Find the sentences of a page; the cells of its tables are phrases."""
    paragraph: list[str] = []
    start, fence, was_heading = 0, "", False
    for number, raw in enumerate([*re.sub(r"<!--.*?-->", "", content).splitlines(), ""], 1):
        line = raw.strip()
        opening = re.match(r"(`{3,}|:{3,})(\{(?:note|warning|tip)\})?", line)
        if fence:
            fence = "" if line == fence else fence
            continue
        is_new = re.match(r"(?:[-*+] |\d+\. |#|\||: |:::|```|<)", line)
        if paragraph and (not line or is_new):
            whole = "\n".join(paragraph)
            yield from (text._replace(is_heading=was_heading) for text in sentences(whole, start))
            paragraph = []
        if opening:
            # A note is prose; other fences are code.
            fence = "" if opening[2] or line == opening[1] else opening[1]
        elif line.startswith("|"):
            if not re.fullmatch(r"[|: -]+", line):
                for cell in re.split(r"(?<!\\)\|", line)[1:-1]:
                    yield from (text._replace(is_phrase=True) for text in sentences(cell, number))
        elif line and not line.startswith("<"):
            start = start if paragraph else number
            was_heading = line.startswith("#")
            paragraph.append(re.sub(r"^(?:[-*+]|\d+\.|#+|:) ", "", line))


def python(content: str, *, with_strings: bool = True) -> Iterator[Text]:
    """Find docstrings, comments, and strings that read as sentences: messages and help."""
    nodes = list(ast.walk(ast.parse(content)))
    docstrings = set()
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.add(id(first.value))
                if isinstance(first.value.value, str):
                    yield from docstring(first.value.value, first.lineno)
    if with_strings:
        yield from strings(nodes, docstrings)
    for line, comment, is_note in comments(content):
        yield from (text._replace(is_note=is_note) for text in sentences(comment, line))


def strings(nodes: list[ast.AST], docstrings: set[int]) -> Iterator[Text]:
    """Find the strings that read as sentences and are no docstrings."""
    known = {*docstrings}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            known |= {id(part) for part in node.values}
            whole = "".join(
                part.value if isinstance(part, ast.Constant) else "X" for part in node.values
            )
            yield from message(whole, node.lineno)
    for node in nodes:
        if isinstance(node, ast.Constant) and id(node) not in known:
            yield from message(str(node.value), node.lineno)


def comments(content: str) -> Iterator[tuple[int, str, bool]]:
    """Find the comments of a Python file: line, text, and whether it is beside code.

    Comments on lines of their own are joined to paragraphs.
    """
    start, column, last, paragraph = 0, 0, 0, ""
    for match in _PYTHON.finditer(content):
        if not (comment := match["comment"]):
            continue
        words = re.sub(r"^#:? ?", "", comment)
        if _IS_FOR_TOOLS.match(words):
            continue
        line = content.count("\n", 0, match.start()) + 1
        own_column = match.start() - (content.rfind("\n", 0, match.start()) + 1)
        stands_alone = not content[match.start() - own_column : match.start()].strip()
        if paragraph and stands_alone and (line, own_column) == (last + 1, column):
            paragraph += "\n" + words
        else:
            if paragraph:
                yield start, paragraph, last < 0
            start, column, paragraph = line, own_column, words
        last = line if stands_alone else -1
    if paragraph:
        yield start, paragraph, last < 0


def docstring(content: str, line: int) -> Iterator[Text]:
    """Find the paragraphs of a docstring, without its examples and its headings."""
    is_literal = False  # after a paragraph that ends with "::"
    for block in re.split(r"\n\s*\n", content):
        if (is_literal and block.startswith("    ")) or block.lstrip().startswith("==="):
            continue
        is_literal = block.rstrip().endswith("::")
        lines = [
            part
            for part in block.splitlines()
            if not re.match(r"\s*(?:>>>|\.\.\.|-{3,}|={3,})|\s*\.\. ", part)
        ]
        if ">>>" in block or (lines and lines[0].rstrip().endswith("::")):
            continue
        items = re.split(
            r"\n(?=\s*(?:[-*] |\w+(?:, \w+)* : |\*{1,2}\w+(?: : .*)?\n))", "\n".join(lines)
        )
        for item in items:
            yield from sentences(item.replace("``", "`"), line)


def message(content: str, line: int) -> Iterator[Text]:
    """Find the sentences of a string that is shown to a user, if it is one."""
    if _SENTENCE_LIKE.search(content) and not _IS_CODE.search(content):
        for block in content.split("\n"):
            yield from (text._replace(is_message=True) for text in sentences(block, line))


def cpp(content: str, *, with_strings: bool = True) -> Iterator[Text]:
    """Find the comments of C++, and string literals that read as sentences."""
    for match in _CPP.finditer(content):
        line = content.count("\n", 0, match.start()) + 1
        if match["string"] is not None:
            if with_strings:
                whole = "".join(re.findall(_LITERAL, match[0]))
                yield from message(whole.replace("\\n", "\n"), line)
        elif match["note"] is not None:
            yield from (text._replace(is_note=True) for text in sentences(match["note"], line))
        elif match["comment"] and not re.search(r"[;{}]$", match["comment"], re.MULTILINE):
            plain = re.sub(r"^[ \t]*///? ?", "", match["comment"], flags=re.MULTILINE)
            plain = re.sub(r"^ {2,}.*", "", plain, flags=re.MULTILINE)  # tables and code
            for block in re.split(r"\n\s*\n", plain):
                yield from sentences(block, line)
