"""Bodies by chance: statements, views, texts and numbers, as the source of a Python function.

A body has the parameters ``x`` (an array of two or three dimensions), ``n`` (an int) and ``f`` (a
float). It uses only what means the same for an array of a call and for :class:`Real`, which is an
array of NumPy or torch in plain Python.
"""

from __future__ import annotations

import random

INTS = ("n", "a", "b")
TEXTS = ("t", "u")
VIEWS = ("v", "w")
ERRORS = ("ZeroDivisionError", "ValueError", "IndexError", "ArithmeticError", "LookupError")

RESULT = "t, u, v, w.shape, steps(w), tuple(seen)"

PREAMBLE = '''\
import contextlib
import math
import types

import culaunch as cl


def safely(compute, error, otherwise):
    try:
        return compute()
    except error:
        return otherwise


@contextlib.contextmanager
def noting(into, *errors):
    try:
        yield
    except errors as error:
        into.append(type(error).__name__)


def same(x, y):
    return x is y


def steps(array):
    """Return its strides, where all of them mean something."""
    return array.strides if all(size > 1 for size in array.shape) else None


class Window:
    def __init__(self, array):
        self.array = array

    def __getitem__(self, i):
        return self.array[i].shape[0]

    def holds(self, x, y=None):
        return x is y


# As in another package, of which a body has no copy.
elsewhere = types.FunctionType(same.__code__, {"__name__": "another"})


NAMES = {"0": "zero", "1": "one", "(2, 3)": "pair", 1: "int", 2.0: "two", True: "yes"}
'''


class Writer:
    """Writes one body; the same seed gives the same one.

    ``numbers``: it returns only numbers, as exported functions can.
    """

    def __init__(self, seed: int, *, numbers: bool = False) -> None:
        self.numbers = numbers
        self.random = random.Random(seed)
        self.lines: list[str] = []

    def source(self) -> str:
        """Return the body, as the text of a module."""
        self.put(0, "def body(x, n: int, f: float):")
        self.put(1, "a, b, t, u, v, w, seen = 3, 1, '', '-', x, x, []")
        for _ in range(self.random.randint(2, 4)):
            self.statement(1, 3)
        rest = "len(t), v.shape[0], w.size" if self.numbers else RESULT
        self.put(1, f"return a, b, n, f, {rest}")
        return PREAMBLE + "\n\n" + "\n".join(self.lines) + "\n"

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    # ---- expressions

    def int(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.25:
            return self.one(*INTS, "x.shape[0]", "v.shape[-1]", "w.ndim", "len(seen)",
                            str(self.random.randint(-3, 7)))  # fmt: skip
        x, y = self.int(depth - 1), self.int(depth - 1)
        return self.one(
            f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"({x} // {y})", f"({x} % {y})",
            f"(1 << {x})", f"({x} >> {y})", f"min({x}, {y})", f"max({x}, {y}, 2)", f"abs({x})",
            f"(-{x})", f"({x} & 7)", f"int({self.float(depth - 1)})", f"round({self.float(0)})",
            f"math.floor({self.float(depth - 1)})", f"cl.ceildiv({x}, {y})", f"(~{x})",
            f"({x} if {self.condition(0)} else {y})", f"[4, 5, 6][{x}]", f"sum(({x}, {y}, 1))",
            f"divmod({x}, {y})[1]", f"cl.next_power_of_2({x})", f"(7, {y})[{x} > 1]",
            f"safely(lambda: {x}, {self.one(*ERRORS)}, {y})", f"bool({x})", f"len(str({x}))",
            f"{{1: 10, 2: 20}}[{x}]", f"v[int({x})].shape[0]", f"list(range(3))[{x}]", f"hash({x})",
            f"sum(i * {x} for i in range(3))", f"Window(w)[int({x})]", f"({x} ^ {y})",
            f"({x}).bit_length()",
        )  # fmt: skip

    def float(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.3:
            return self.one("f", "f", str(self.random.choice([0.0, 1.5, -2.0, 0.25])), "float(n)")
        x, y = self.float(depth - 1), self.float(depth - 1)
        return self.one(
            f"({x} + {y})", f"({x} * {y})", f"({x} / {y})", f"({self.int(0)} / {self.int(0)})",
            f"math.sqrt({x})", f"math.log({x})", f"math.exp({x})", f"({x} // {y})", f"({x} % {y})",
            f"abs({x})", f"min({x}, {y})", f"math.ldexp({x}, n)", f"math.fmod({x}, {y})",
            f"math.cosh({x})", f"math.atan2({x}, {y})", f"({x} ** -0.5 if {x} > 0 else {y})",
        )  # fmt: skip

    def condition(self, depth: int = 1) -> str:
        x, y = self.int(0), self.int(0)
        simple = self.one(
            f"{x} < {y}", f"{x} == {y}", f"{x} != 2", f"{x}", f"f > {self.int(0)}", "f == f",
            "v.is_contiguous()", f"{x} in (1, 2)", "v.shape == w.shape", "math.isfinite(f)",
            f"isinstance({x}, int)", f"v.shape[0] == {x}", "t == '1'", f"not {x}",
            f"({x} > {y}) is {self.one('True', 'False')}", f"same({x} == {y}, f > {y})",
            "v is w", "same(v, x)", f"same({x} < 2, None)", f"{self.one(*INTS)} is not True",
            f"Window(w).holds({x} > {y}, {self.one('True', 'False')})",
            f"elsewhere({x} < 1, f < {y})",
        )  # fmt: skip
        if depth == 0:
            return simple
        joined = self.one("and", "or")
        return self.one(simple, f"{simple} {joined} {self.condition(0)}", f"not ({simple})")

    def text(self) -> str:
        x, y = self.int(1), self.one(*INTS)
        return self.one(
            f"f'{{{y}}}'", f"f'{{{y}!r}}'", f"str({x})", f"repr({x})", "f'{v.shape}'",
            f"str(({x}, {y}))", f"'%d|%s' % ({x}, {y})", f"'{{0}}-{{1!r}}'.format({x}, f)",
            f"f'{{{y}:>4}}'", "', '.join(str(s) for s in w.shape)", f"repr([{y}, f])",
            "t + u[:2]", f"type({x}).__name__", "f'{f:.3f}'", f"str({y} > 1)",
            f"f'{{{{{y}: 1}}}}'",
        )  # fmt: skip

    def view(self) -> str:
        v, x = self.one(*VIEWS, "x"), self.int(0)
        # A bool would be a mask.
        i, j = f"int({self.int(0)})", f"int({self.int(0)})"
        return self.one(
            f"{v}.T", f"{v}.mT", f"{v}.swapaxes(0, -1)", f"{v}.permute(*reversed(range({v}.ndim)))",
            f"{v}[{i}]", f"{v}[{i}:]", f"{v}[:{i}]", f"{v}[..., {i}]", f"{v}[::2]", f"{v}[None]",
            f"{v}.reshape(-1)", f"{v}.reshape({x}, -1)", f"{v}.reshape({v}.shape[0], -1)",
            f"{v}[{i}:{j}]", f"{v}.transpose({v}.ndim - 1, 0)", f"{v}[1:, {i}]",
            f"{v}.transpose(tuple(range({v}.ndim)))",
        )  # fmt: skip

    # ---- statements

    def statement(self, depth: int, more: int) -> None:
        kinds = ["assign", "assign", "view", "text", "check", "note"]
        if more:
            kinds += ["try"] * 4 + ["if"] * 2 + ["with", "match", "loop", "raise", "leave", "inner"]
        getattr(self, f"write_{self.random.choice(kinds)}")(depth, more - 1)

    def block(self, depth: int, more: int) -> None:
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth, max(more, 0))

    def write_assign(self, depth: int, _: int) -> None:
        if self.random.random() < 0.25:
            self.put(depth, f"f = {self.float()}")
        else:
            self.put(depth, f"{self.one(*INTS)} {self.one('=', '=', '+=')} {self.int()}")

    def write_view(self, depth: int, _: int) -> None:
        self.put(depth, f"{self.one(*VIEWS)} = {self.view()}")

    def write_text(self, depth: int, _: int) -> None:
        self.put(depth, f"{self.one(*TEXTS)} = {self.text()}")

    def write_note(self, depth: int, _: int) -> None:
        found = self.one(self.int(1), self.text(), f"NAMES.get({self.text()})", "len(v.shape)",
                         f"NAMES[{self.int(1)}]", f"{self.condition()}", "f")  # fmt: skip
        self.put(depth, f"seen.append({found})")

    def write_check(self, depth: int, _: int) -> None:
        message = self.one("t", "f'bad {n} {v.shape}'", f"'n is ' + {self.text()}", "f'{a!r}'")
        error = self.one("", ", IndexError", ", exception=ZeroDivisionError")
        self.put(depth, f"cl.check({self.condition()}, {message}{error})")

    def write_raise(self, depth: int, more: int) -> None:
        self.put(depth, f"if {self.condition()}:")
        self.put(depth + 1, f"raise {self.one(*ERRORS)}({self.text()})")

    def write_leave(self, depth: int, more: int) -> None:
        self.put(depth, f"if {self.condition()}:")
        found = f"{self.one(*INTS)}, {self.text()}, v.shape"
        self.put(depth + 1, f"return {'len(str((' + found + ')))' if self.numbers else found}")

    def write_if(self, depth: int, more: int) -> None:
        self.put(depth, f"if {self.condition()}:")
        self.block(depth + 1, more)
        if self.random.random() < 0.5:
            self.put(depth, "else:")
            self.block(depth + 1, more)

    def write_try(self, depth: int, more: int) -> None:
        self.put(depth, "try:")
        self.block(depth + 1, more)
        has_finally = self.random.random() < 0.3
        count = self.random.randint(0 if has_finally else 1, 2)
        for _ in range(count):
            caught = self.one(*ERRORS, "(ZeroDivisionError, IndexError)", "Exception")
            kind = self.random.random()
            self.put(depth, f"except {caught}{' as error' if kind < 0.6 else ''}:")
            if kind < 0.2:
                self.put(
                    depth + 1,
                    f"u = str(error) if type(error) is {self.one('KeyError', 'LookupError')} "
                    "else 'caught'",
                )
            elif kind < 0.6:
                self.put(depth + 1, "u = type(error).__name__")
            elif kind < 0.7:
                self.put(depth + 1, f"raise {self.one(*ERRORS)}('again') from None")
            else:
                self.block(depth + 1, more - 1)
        if count and self.random.random() < 0.3:
            self.put(depth, "else:")
            self.block(depth + 1, more - 1)
        if has_finally:
            self.put(depth, "finally:")
            self.put(depth + 1, self.one("b += 1", "seen.append('end')", "t = u",
                                         "b = a if n else 2"))  # fmt: skip

    def write_with(self, depth: int, more: int) -> None:
        errors = ", ".join({self.one(*ERRORS), self.one(*ERRORS)})
        manager = self.one(f"contextlib.suppress({errors})", f"noting(seen, {errors})",
                           "contextlib.nullcontext()")  # fmt: skip
        self.put(depth, f"with {manager}:")
        self.block(depth + 1, more)

    def write_match(self, depth: int, more: int) -> None:
        subject = self.one(self.int(1), "(n, a)", "v.shape", "t", "[a, f]", "n > a")
        self.put(depth, f"match {subject}:")
        patterns = ["case 0 | 1:", "case int(b) if b > 1:", "case (1, a):", "case (2, *_):",
                    "case '1':", "case [a, float()]:", "case bool():", "case True:",
                    "case False | (_, True):"]  # fmt: skip
        for pattern in self.random.sample(patterns, 2):
            self.put(depth + 1, pattern)
            self.block(depth + 2, more - 1)
        self.put(depth + 1, "case _:")
        self.block(depth + 2, more - 1)

    def write_loop(self, depth: int, more: int) -> None:
        over = ("range(2)", "(n, 0, 1)", "range(n % 3)", "v.shape", "w.shape")
        self.put(depth, f"for {self.one('i', 'a', 'b')} in {self.one(*over)}:")
        self.block(depth + 1, more)
        if self.random.random() < 0.3:
            self.put(depth + 1, f"if {self.condition()}:")
            self.put(depth + 2, self.one("break", "continue"))

    def write_inner(self, depth: int, more: int) -> None:
        self.put(depth, f"def inner(k, step={self.int(0)}):")
        computed = ("k // step", "v[int(k)].shape[0] + step", "int(math.sqrt(k - step))", "10 % k")
        self.put(depth + 1, f"return {self.one(*computed)}")
        self.put(depth, f"a = inner({self.int(1)})")
