"""Random decorators, grids, calls and changes between the calls: a source and the steps."""

from __future__ import annotations

from random_expressions import EVERY, NUMBERS, TENSORS, Expressions

PREAMBLE = """
G0, G1, GS = 3, 5, "n"
GLIST, GDICT, GT = [1, 2], {"n": 4}, (2, 3, tl.float16)
MODULE = types.ModuleType("module"); MODULE.value = 6; MODULE.list = [1]
class Object:
    value = 7
    def __init__(self): self.own = 2
    def method(self, a): return a["n"]
    def __call__(self, a): return (a["n"] or 0, self.own)
OBJECT = Object()
def double(v): return v * 2
def with_default(v, k=3): return v + k
def with_keyword(v, *, k=3): return v - k
def with_global(v): return v + G0 if v > G1 else v
def deep(v): return double(with_global(v))
def impure(v): LOG.append(v); return v
def raising(v):
    if v > 8: raise ValueError(f"too large: {v}")
    return v
def loops(v):
    found = 0
    for i in range(min(v, 5)):
        if i == 3: continue
        found += i
    while found > 7: found -= 3
    return found
def catches(v):
    try: return 10 // v
    except ZeroDivisionError: return -1
def unpacks(v):
    first, second = divmod(v, 4)
    return first, second
@functools.lru_cache
def cached(v): return v + 1
@functools.wraps(double)
def wrapped(*v, **k): return double(*v, **k)
def closing(k):
    def inner(v): return v + k
    def change(value):
        nonlocal k
        k = value
    return inner, change
CLOSED, CHANGE = closing(4)
PARTIAL = functools.partial(with_default, k=9)
def use_closed(v): return CLOSED(v) * 2
def over(k): return lambda a: (a["n"], k)
def hook(a): LOG.append([(k, str(v)[:20]) for k, v in a.items() if not hasattr(v, "dtype")])
def prune(configs, nargs, **k): LOG.append(sorted(nargs)); return configs[:2]
"""

INTS = (
    "0", "1", "2", "3", "7", "8", "15", "16", "17", "32", "-1", "-16", "2**31 - 1", "2**31",
    "-2**31", "2**32", "2**63 - 1", "2**63", "-2**63", "True", "False", "1.0", "3.0", "0.0", "-0.0",
    "0.5", "None",
)  # fmt: skip
CONSTANTS = (
    "0", "1", "2", "16", "True", "False", "1.0", "-0.0", "None", "'n'", "'x'", "''", "tl.float16",
    "torch.float16", "(1, 2)", "(1, True)", "64", "2**40", "np.int32(4)",
)  # fmt: skip
ARRAYS = (
    "T['a']", "T['b']", "T['c']", "T['a'][1:]", "T['a'].view(-1)[1:]", "T['a'].t()", "None",
    "T['a'][:, ::2]", "T['p']", "T['e']", "T['z']", "T['i']", "T['u']", "T['s']", "1", "16",
)  # fmt: skip


class Program(Expressions):
    """Writes one program."""

    # ---- decorators

    def program(self):
        """Give the source and the steps."""
        kernel = self.pick(("plain", "defaults", "defaults", "typed"))
        lines = [PREAMBLE, f"K = jit('{kernel}')"]
        free = list(NUMBERS)
        self.rng.shuffle(free)
        layers = self.rng.choices((1, 2, 3), (5, 4, 2))[0]
        self.tuners = self.heuristics = 0
        for _ in range(layers):
            if (self.chance(0.4) and self.tuners < 2) or not free:
                lines += self.autotuner(free)
            else:
                lines += self.heuristic(free)
        return "\n".join(lines), self.steps()

    def heuristic(self, free):
        names = [free.pop() for _ in range(self.rng.randrange(1, 3)) if free]
        if self.chance(0.15):
            names.append("num_warps")
        self.set += names
        own, entries = [], []
        for name in names:
            text, value = self.function(f"heuristic_{name}_{self.heuristics}")
            own.append(text)
            if name == "num_warps":
                value = f"lambda a: 4 if {self.condition(1)} else 8"
            entries.append(f"'{name}': {value}")
        which = f"H{self.heuristics}"
        self.heuristics += 1
        return [*own, f"{which} = {{{', '.join(entries)}}}", f"K = heuristics({which})(K)"]

    def autotuner(self, free):
        names = [free.pop() for _ in range(self.rng.randrange(3)) if free]
        self.set += names
        count = self.pick((1, 2, 2, 3))
        configs = []
        for _ in range(count):
            kept = names if self.chance(0.9) else names[:1]
            settings = ", ".join(
                f"'{name}': {self.pick(('1', '2', '16', '64', 'None'))}" for name in kept
            )
            # Two autotuners would set the same option.
            options = "num_warps=None, num_stages=None, num_ctas=None" if self.tuners else (
                f"num_warps={self.pick((1, 4, 8))}")  # fmt: skip
            hook = ", pre_hook=hook" if self.chance(0.1) else ""
            configs.append(f"Config({{{settings}}}, {options}{hook})")
        keys = self.rng.sample(EVERY, self.rng.randrange(3))
        which = f"A{self.tuners}"
        self.tuners += 1
        more = self.pick(("", "", "", ", prune_configs_by={'early_config_prune': prune}",
                          ", pre_hook=lambda a, reset_only=False: LOG.append(reset_only)",
                          ", prune_configs_by={'perf_model': lambda **k: len(k), 'top_k': 1}",
                          ))  # fmt: skip
        lines = [
            f"{which}_configs, {which}_keys = [{', '.join(configs)}], {keys}",
        ]  # fmt: skip
        if self.chance(0.2):
            body = self.pick((
                "return super().run(*args, **kwargs)",
                "self.configs = self.configs[:1 + G0 % 2]; return super().run(*args, **kwargs)",
                "return super().run(*args, **{**kwargs, 'm': 4})",
                "self.c = getattr(self, 'c', 0) + 1; return super().run(*args, **kwargs)",
            ))  # fmt: skip
            lines.append(
                f"class Own{which}(Autotuner):\n"
                f"    def run(self, *args, **kwargs):\n        {body}\n"
                f"K = {which} = Own{which}(K, K.arg_names, {which}_configs, {which}_keys, None,"
                " None, do_bench=measure)"
            )
        else:
            lines.append(
                f"K = {which} = autotune({which}_configs, key={which}_keys, do_bench=measure"
                f"{more})(K)"
            )
        return lines

    # ---- calls, and what changes between them

    def steps(self):
        found = []
        calls = [self.call() for _ in range(self.rng.randrange(2, 6))]
        for _ in range(self.rng.randrange(4, 14)):
            if self.chance(0.3):
                found.append(self.change())
            if self.chance(0.3):
                calls[self.rng.randrange(len(calls))] = self.call()
            found += [self.pick(calls)] * self.pick((1, 2, 3))
        return found

    def call(self):
        tame = self.is_tame
        values = {name: self.pick(ARRAYS[:4] if tame else ARRAYS) for name in TENSORS}
        for name in "nms":
            values[name] = self.pick(INTS[1:10] if tame or self.chance(0.3) else INTS)
        for name in "ABCD":
            values[name] = self.pick(INTS[1:10] if tame else CONSTANTS)
        left_out = {name for name in self.set if self.chance(0.97)}
        if not tame:
            left_out |= {name for name in values if self.chance(0.04)}
        positional = []
        for name, value in values.items():
            if name in left_out or self.chance(0.25):
                break
            positional.append(value)
        rest = [
            f"{name}={value}"
            for name, value in list(values.items())[len(positional) :]
            if name not in left_out
        ]
        if self.chance(0.2):
            self.rng.shuffle(rest)
        if self.chance(0.03):
            rest.append(self.pick(("num_warps=2", "debug=True", "Z=1", "num_stages=2")))
        if rest and self.chance(0.15):
            pairs = ", ".join(f"'{one.partition('=')[0]}': {one.partition('=')[2]}" for one in rest)
            rest = [f"**{{{pairs}}}"]
        return f"K[{self.grid()}]({', '.join([*positional, *rest])})"

    def grid(self):
        if self.chance(0.4):
            return self.pick(("(1,)", "(2, 3)", "(1, 2, 3)", "(4,)", "[2]", "(np.int64(2),)",
                              "(G0, 1)"))  # fmt: skip
        number = self.number(1).replace("a[", "meta[").replace("a.get", "meta.get")
        size = f"abs(int({number} or 1)) % 50 + 1"
        return self.pick((
            lambda: f"lambda meta: ({size},)",
            lambda: "lambda meta: (triton.cdiv(int(meta['m'] or 3), 4) % 99 + 1, G1)",
            lambda: "(lambda k: lambda meta: (k, MODULE.value))(G1)",
            lambda: f"(lambda meta, k=2: ({size}, k))",
            lambda: "(lambda k: lambda meta: (loops(k), use_closed(k)))(7)",
            lambda: "lambda meta: [abs(hash(str(meta['n']))) % 7 + 1, 2]",
            lambda: "lambda meta: (len(GLIST),)",
            lambda: "functools.partial(lambda k, meta: (k,), 3)",
            lambda: "lambda meta: (meta['x'].shape[0] + 1,)",
            lambda: "lambda meta: (2 if meta['y'] is None else 3,)",
        ))()  # fmt: skip

    def change(self):
        changes = [
            "G0 = 4", "G0 = 3", "G1 = 6", "GS = 'm'", "GLIST.append(3)",
            "given = lambda a: 8",
            "GDICT['m'] = 1", "MODULE.value = 9", "GT = (7, 3, tl.float16)", "OBJECT.value = 8",
            "OBJECT.own += 1", "CHANGE(5)", "CHANGE(4)", "def double(v): return v * 3",
            "cached = lambda v: v + 2", "min = lambda *v: 5", "globals().pop('min', None)",
            "cached.cache_clear() if hasattr(cached, 'cache_clear') else None", "del G1",
            "G1 = 5", "T['a'].resize_(4, 6)", "T['a'].resize_(8, 4)", "T['p']._is_param = False",
        ]  # fmt: skip
        for i in range(self.heuristics):
            changes += [
                f"H{i}[next(iter(H{i}))] = lambda a: 11",
                f"H{i}['m'] = lambda a: 12",
                f"first = next(iter(H{i})); H{i}[first] = H{i}.pop(first)",
                f"H{i}.pop(next(iter(H{i}))) if len(H{i}) > 1 else None",
            ]
        for i in range(self.tuners):
            changes += [
                f"A{i}.cache.clear()", f"A{i}.configs = A{i}_configs[:1]",
                f"A{i}_configs.append(Config({{}}, num_warps=2))", f"A{i}.keys = ['n']",
                f"A{i}.keys = []", f"A{i}_keys.append('s')", f"A{i}_configs[0].num_warps = 16",
                f"A{i}_configs[0].kwargs.update(A=5)", f"A{i}.cache.popitem() if A{i}.cache else 0",
                f"A{i}.cache.update({{k: A{i}_configs[0] for k in A{i}.cache}})",
                f"LOG.append((str(getattr(A{i}, 'best_config', 0)), len(A{i}.cache)))",
                f"A{i}_configs[-1].pre_hook = hook", f"A{i}.configs = [*A{i}_configs]",
                f"A{i}_configs.pop() if len(A{i}_configs) > 1 else None",
            ]  # fmt: skip
        return self.pick(changes)


def program(seed):
    """Write the program of a seed: its source, and the steps."""
    return Program(seed).program()
