"""Values that fit no argument, and calls with them: every exception must be documented.

A mistake in a call is a TypeError, a ValueError or an OverflowError. An unusable file is an
OSError, and everything else one of culaunch's own errors. The message is about the argument, not
Python's own message from three frames below.
"""

import inspect
import os
import re
import warnings

import culaunch as cl

DOCUMENTED = (TypeError, ValueError, OverflowError, OSError, cl.CulaunchError)
# Python's own messages for values of a wrong type.
BARE = re.compile(
    r"object is not (iterable|callable|subscriptable|a mapping)|has no attribute|has no len"
    r"|unhashable type|not supported between|unsupported operand|object cannot be interpreted"
    r"|embedded null|surrogates not allowed|invalid literal for int|must be real number"
    r"|expected str, bytes or os.PathLike object|cannot unpack|not all arguments converted"
    r"|Exceeds the limit|bytes-like object|string pattern|unsupported format string"
    r"|argument \d must be|too large to convert|Cannot interpret|truth value of an array"
    r"|not understood|string index|Python int too large|codec can't"
)


class Odd:
    """An object that is nothing."""

    def __repr__(self):
        return "Odd()"


JUNK = [
    None, True, 3, -1, 10**5000, 2.5, float("nan"), 1j, "", "junk", "a\0b", "\ud800", b"", b"junk",
    [], [3], ["junk"], [None], (), {}, {"a": 3}, {3: "a"}, {"\ud800": "a"}, {"a\0": "b"}, {"k"},
    Odd(), Odd, object, lambda: None, iter(()), range(3), memoryview(b"junk"), os.environ,
]  # fmt: skip


def parameters(function, call):
    """Return the names to try: the function's own, and those of the call."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return list(call)
    named = [
        one.name
        for one in signature.parameters.values()
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    return list(dict.fromkeys([*named, *call]))


def wrong_answers(function, call, also=()):
    """Replace each argument of a call by each junk value; return what should not have been raised.

    Parameters
    ----------
    function : callable
    call : dict
        Arguments with which all is well.
    also : tuple of exceptions
        What this function's documentation names besides.
    """
    wrong = []
    for parameter in parameters(function, call):
        for value in JUNK:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    function(**{**call, parameter: value})
                except also:
                    pass
                except cl.InternalError as error:
                    wrong.append(f"{parameter}={short(value)}: {error!r}")
                except DOCUMENTED as error:
                    if BARE.search(str(error)) or "a defect" in str(error):
                        wrong.append(f"{parameter}={short(value)}: {error!r}")
                except Exception as error:  # noqa: BLE001 - the point of the test
                    wrong.append(f"{parameter}={short(value)}: {error!r}")
    return wrong


def short(value):
    """Write a value that Python may refuse to write."""
    return "10**5000" if isinstance(value, int) and value > 10**50 else repr(value)
