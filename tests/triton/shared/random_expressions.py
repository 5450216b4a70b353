"""Random functions of a kernel's arguments, as heuristics and grids are."""

from __future__ import annotations

import random

HELPERS = (
    "double", "with_default", "with_keyword", "with_global", "deep", "impure", "raising", "loops",
    "catches", "unpacks", "cached", "wrapped", "CLOSED", "PARTIAL", "use_closed", "abs", "str",
    "math.ceil", "math.sqrt", "triton.next_power_of_2", "bool", "float", "int", "round", "hash",
    "np.abs", "np.int64", "repr", "(lambda v: v + 1)", "(lambda v, k=2: v * k)",
)  # fmt: skip
NUMBERS = ("n", "m", "s", "A", "B", "C", "D")
TENSORS = ("x", "y")
EVERY = NUMBERS + TENSORS
ODD = (
    "device.type", "is_cuda", "data_ptr() % 32", "element_size()", "dtype.itemsize",
    "requires_grad", "layout",
)  # fmt: skip


class Expressions:
    """Writes expressions over the dict of arguments, which is ``a``."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.set = []  # names that decorators below or above set
        self.is_tame = self.chance(0.6)  # few calls fail

    def pick(self, items):
        return self.rng.choice(items)

    def chance(self, share):
        return self.rng.random() < share

    def name(self):
        return self.pick(EVERY) if self.chance(0.3) else self.pick(NUMBERS)

    def condition(self, depth=0):
        p, n, c, d = self.pick, self.number, self.condition, depth + 1
        kinds = [
            lambda: f"a['{p(EVERY)}'] is {p(('', 'not '))}None",
            lambda: f"a.get('{p(EVERY)}') is {p(('', 'not '))}None",
            lambda: f"'{p((*EVERY, 'grid', 'num_warps'))}' {p(('', 'not '))}in a",
            lambda: f"isinstance(a['{p(EVERY)}'], {self.kind()})",
            lambda: f"{n(d)} {self.compare()} {n(d)}",
            lambda: f"{n(2)} {self.compare()} {n(2)} {self.compare()} 9",
            lambda: f"a['{p(TENSORS)}'].dtype == {p(('torch.float16', 'torch.int32'))}",
            lambda: f"a['{p(TENSORS)}'].is_contiguous()",
            lambda: f"({c(d)} {p(('and', 'or'))} {c(d)})",
            lambda: f"not {c(d)}",
            lambda: f"a['{p(TENSORS)}'] is a['{p(TENSORS)}']",
            lambda: f"('{self.name()}' if {c(3)} else '{self.name()}') in a",
            lambda: f"(a['{self.name()}'] if {c(3)} else a['{self.name()}']) is None",
            lambda: f"a['{self.name()}'] in {p(('(1, 2, 16)', 'GT', 'GLIST', 'GDICT'))}",
        ]  # fmt: skip
        return p(kinds[:6] if depth > 2 else kinds)()

    def kind(self):
        return self.pick(("int", "float", "torch.Tensor", "torch.nn.Parameter", "(int, float)",
                          "bool", "str", "Object", "type(None)"))  # fmt: skip

    def compare(self):
        return self.pick(("<", "<=", "==", "!=", ">", ">=", "is"))

    def number(self, depth=0):
        p, n, c, d = self.pick, self.number, self.condition, depth + 1
        small = [
            lambda: f"a['{p(NUMBERS)}']",
            lambda: f"a['{p(NUMBERS)}']",
            lambda: f"a['{p(NUMBERS)}']",
            lambda: p(("1", "2", "4", "0.5", "3", "16")),
            lambda: p(("G0", "G1", "MODULE.value", "GT[0]", "OBJECT.value", "len(GLIST)")),
            lambda: f"a.get('{p(NUMBERS)}', {p(('1', '7', 'G0', 'None'))})",
            lambda: f"a['{p(TENSORS)}'].{self.shape()}",
        ]  # fmt: skip
        large = [
            lambda: f"({n(d)} {self.operator()} {n(d)})",
            lambda: f"({n(d)} if {c(d)} else {n(d)})",
            lambda: f"{p(HELPERS)}({n(d)})",
            lambda: f"{p(('min', 'max', 'divmod', 'triton.cdiv'))}({n(d)}, {n(2)})",
            lambda: f"(v := {n(d)}) * v",
            lambda: f"-{n(d)}",
            lambda: f"({n(d)} {p(('and', 'or'))} {n(d)})",
        ]  # fmt: skip
        odd = [
            lambda: "len(a)",
            lambda: f"a[{p(('GS', repr('n') + ' if G0 > 2 else ' + repr('m')))}]",
            lambda: f"sum([u for u in (1, a['{p(NUMBERS)}'])])",
            lambda: f"sum(u for u in (1, a['{p(NUMBERS)}']))",
            lambda: f'len(f"{{{n(2)}}}")',
            lambda: f"dict(a)['{p(NUMBERS)}']",
            lambda: "{**a}['n']",
            lambda: f"a.setdefault('{p(NUMBERS)}', 4)",
            lambda: "a.__class__.__name__",
            lambda: "(a.update(n=1) or 2)",
            lambda: f"list(a.values()).count({n(2)})",
            lambda: f"OBJECT({{'n': {n(2)}}})",
            lambda: f"OBJECT.method({{'n': {n(2)}}})",
            lambda: f"a['{p(TENSORS)}'].{p(ODD)}",
            lambda: f"impure({n(2)})",
            lambda: f"a.get('{p(NUMBERS)}' + '', {n(2)})",
            lambda: f"(b := a)['{p(NUMBERS)}']",
            lambda: f"(lambda d: d['{p(NUMBERS)}'])(a)",
            lambda: "a['grid'][0]",
        ]  # fmt: skip
        if self.chance(0.02 if self.is_tame else 0.06):
            return p(odd)()
        return p(small if depth > 2 or self.chance(0.45) else large)()

    def shape(self):
        return self.pick(("shape[0]", "shape[-1]", "size(0)", "stride(-1)", "stride(0)", "ndim",
                          "dim()", "numel()", "shape[G0 - 3]", "nelement()", "size(-2)",
                          "shape.numel()", "size()[0]", "stride()[0]"))  # fmt: skip

    def operator(self):
        return self.pick(("+", "-", "*", "//", "%", "<< 2 +", ">>", "&", "|", "^", "/", "** 2 +"))

    def value(self):
        kinds = (self.number, self.number, self.condition)
        if self.chance(0.1):
            return f"({self.number(2)}, {self.condition(2)})"
        return self.pick(kinds)()

    def function(self, name):
        """Write a function of `a`: give its text, with definitions before it."""
        style = self.rng.random()
        if style < 0.6:
            return "", f"lambda a: {self.value()}"
        if style < 0.9:
            body = self.body()
            return f"def {name}(a):\n{body}", name
        return "", self.pick(("OBJECT", "OBJECT.method", "over(G0)", "functools.partial(over(2))",
                              "functools.lru_cache(maxsize=1)(lambda a: 3)", "lambda *a: 1",
                              "lambda a, k=2: a['n']", "lambda a, *, k=2: k",
                              "eval(\"lambda a: a['n']\", {})"))  # fmt: skip

    def body(self):
        p, n, c = self.pick, self.number, self.condition
        lines = []
        for _ in range(self.rng.randrange(4)):
            lines.append(p((
                lambda: f"    w = {n(1)}",
                lambda: f"    if {c(1)}: return {self.value()}",
                lambda: f"    assert {c(2)} or True",
                lambda: f"    for v in range(3):\n        if {c(2)}: break",
                lambda: f"    try: return {n(1)}\n    except Exception: return 0",
                lambda: f"    w, v = {n(2)}, {n(2)}",
                lambda: "    globals()['COUNT'] = globals().get('COUNT', 0) + 1",
                lambda: f"    with_default.k = {n(2)}",
                lambda: "    a['n'] = 2",
                lambda: "    a = dict(a)",
            )[: 10 if self.chance(0.1) else 4])())  # fmt: skip
        return "\n".join([*lines, f"    return {self.value()}"])
