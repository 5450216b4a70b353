"""The prose linter finds dialect, skips code, and is silent on the whole tree."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "check_prose.py"


def lint(*arguments):
    return subprocess.run(
        [sys.executable, TOOL, *arguments], check=False, capture_output=True, text=True
    )


@pytest.fixture
def tool(monkeypatch):
    import importlib

    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("check_prose")


BAD = [
    "An image that is none is refused.",
    "What is no operator breaks the graph once.",
    "It reads the size of a view, and that of its storage.",
    "You may write to it, a group neither.",
    "So it was as ever.",
    "Of a view it shows its elements.",
    "The kernel is optimised.",
    "The handle; null where there is no driver.",
    "Compile it, so that the call is fast.",
    "one; two; three.",
    "The file is read, the key is computed and the entry is cached.",
    " ".join(["word"] * 31) + ".",
]
GOOD = [
    "An invalid image is refused.",
    "What does it cost?",
    "You compile it once; the second process loads it.",
    " ".join(["word"] * 30) + ".",
    "Of course you can.",
]


@pytest.mark.parametrize("sentence", BAD)
def test_a_sentence_in_dialect_is_found(tool, sentence):
    from prose.rules import check

    assert check(sentence)


@pytest.mark.parametrize(
    "message",
    [
        "argument 0 of k, int (4 bytes), takes an int (got str)",
        "a parameter of 4 bytes takes numbers from 0 to 3",
        "writes has an item that is not a parameter",
        "two functions are called scale: rename one",
        "x is no array: pass one",
        "the call has 2 arguments, and it has 3 parameters",
    ],
)
def test_the_dialect_of_messages_is_found_only_in_messages(tool, message):
    from prose.rules import check

    assert check(message, is_message=True)
    assert check(message) == []


@pytest.mark.parametrize("sentence", GOOD)
def test_a_plain_sentence_passes(tool, sentence):
    from prose.rules import check

    assert check(sentence) == []


def test_code_and_tables_are_told_from_prose(tool):
    from prose.texts import markdown, python

    page = (
        "# What a title\n\n```python\nis none\n```\nFirst `is none`. Second\none.\n\n| a cell |\n"
    )
    assert [tuple(text)[:5] for text in markdown(page)] == [
        (1, "What a title", False, True, False),
        (6, "First X.", False, False, False),
        (6, "Second one.", False, False, False),
        (9, "a cell", True, False, False),
    ]
    module = '"""Say it."""\n\n\ndef f():\n    """Do.\n\n    >>> is none\n    """\n'
    module += '    raise E(f"{a} must be one of them")\n'
    found = [(text.words, text.is_message) for text in python(module)]
    assert found == [("Say it.", False), ("Do.", False), ("X must be one of them", True)]


def test_comments_of_python_are_prose(tool):
    from prose.texts import python

    module = "# One is\n# read.\nx = 1  # of two\n# The third.\n"
    module += "y = 2  # noqa: E501 - for a tool\nz = '# no comment'\nf('It is a message.')\n"
    expected = [(1, "One is read.", False), (3, "of two", True), (4, "The third.", False)]
    found = [(text.line, text.words, text.is_note) for text in python(module, with_strings=False)]
    assert found == expected
    assert next(text.words for text in python(module)) == "It is a message."


def test_comments_and_strings_of_cpp_are_prose(tool):
    from prose.texts import cpp

    text = "// One is\n// read.\n//   a  table\nint x;  // of two\n"
    text += 'Fail("see https://a.b: " "it has refused the image");\n// int old;\n'
    text += "char c = '\"'; // Last.\n"
    expected = [(1, "One is read.", False), (4, "of two", True), (7, "Last.", True)]
    found = [(text.line, text.words, text.is_note) for text in cpp(text, with_strings=False)]
    assert found == expected
    assert "see it has refused the image" in [text.words for text in cpp(text)]


def test_a_note_beside_code_continues_it(tool):
    from prose.rules import check

    assert check("of a view, in bytes")
    assert check("of a view, in bytes", is_note=True) == []
    assert check("what a view shows", is_note=True)


def test_literal_blocks_and_tables_of_docstrings_are_no_prose(tool):
    from prose.texts import docstring

    literal = "Words::\n\n    is none\n\nMore words.\n"
    assert [text.words for text in docstring(literal, 1)] == ["More words."]
    table = "Words.\n\n====  ====\nis    none\n====  ====\n"
    assert [text.words for text in docstring(table, 1)] == ["Words."]
    parameters = "first : int\n    One.\n*args\n    Two.\n**common\n    Three.\n"
    assert [text.words for text in docstring(parameters, 1)] == [
        "first : int One.",
        "args Two.",
        "common Three.",
    ]


@pytest.mark.slow
@pytest.mark.needs("git")
def test_the_prose_is_silent():
    done = lint()
    assert done.returncode == 0, done.stdout[-3000:]
