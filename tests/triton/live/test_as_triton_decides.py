"""Decorators and grids pass the same to a kernel as Triton's own, whatever changes."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from two_worlds import TwoWorlds  # noqa: E402

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="needs no-GPU: with one Triton has a driver of its own"
)
CALL = "K[(1,)](T['x'], None, 3)"


@pytest.fixture
def worlds(recorder, monkeypatch):
    return TwoWorlds(recorder, monkeypatch)


@pytest.fixture
def tensors():
    return {"x": torch.zeros(8, 4), "h": torch.zeros(8, 4, dtype=torch.float16)}


def steps(*texts):
    """Repeat calls: the first is learned from, the second may be looked up, the third is quick."""
    return [one for text in texts for one in ([text] * 3 if "K[" in text else [text])]


def on_n(*numbers, text="K[(1,)](T['x'], None, {})"):
    return steps(*map(text.format, numbers))


HEURISTICS = {
    "a function of the user's named isinstance": (
        """
def isinstance(value, kind): return value > 5
K = heuristics({"A": lambda a: isinstance(a["n"], torch.Tensor)})(jit())
""",
        on_n(3, 9, 3),
    ),
    "isinstance as an argument": (
        """
def pick(function, value, kind): return value + 1
K = heuristics({"A": lambda a: pick(isinstance, a["n"], torch.Tensor)})(jit())
""",
        on_n(3, 9, 3),
    ),
    "a class whose instances are what it says": (
        """
class Kind(type):
    def __instancecheck__(cls, value): return value > 5
class Big(metaclass=Kind): pass
K = heuristics({"A": lambda a: isinstance(a["n"], Big)})(jit())
""",
        on_n(3, 9, 3),
    ),
    "a Parameter is one by an attribute": (
        'K = heuristics({"A": lambda a: isinstance(a["x"], torch.nn.Parameter)})(jit())',
        steps(
            "x = T['x'].detach()", "K[(1,)](x, None, 3)", "x._is_param = True",
            "K[(1,)](x, None, 3)",
        ),
    ),
    "an object that changes its class": (
        """
class Odd:
    kind = torch.Tensor
    dtype = torch.float32
    __class__ = property(lambda self: Odd.kind)
    def data_ptr(self): return 64
odd = Odd()
K = heuristics({"A": lambda a: isinstance(a["x"], torch.Tensor)})(jit())
""",
        steps("K[(1,)](odd, None, 3)", "Odd.kind = int", "K[(1,)](odd, None, 3)"),
    ),
    "a tensor that says another element type": (
        """
class Odd(torch.Tensor):
    said = torch.float32
    dtype = property(lambda self: Odd.said)
odd = torch.zeros(4).as_subclass(Odd)
K = heuristics({"A": lambda a: a["x"].dtype == torch.float16})(jit())
""",
        steps("K[(1,)](odd, None, 3)", "Odd.said = torch.float16", "K[(1,)](odd, None, 3)"),
    ),
    "get as an argument": (
        """
def pick(get, name): return get("m")
K = heuristics({"A": lambda a: pick(a.get, "n")})(jit())
""",
        on_n("3, 7", "3, 9"),
    ),
    "get of a name that is worked out": (
        'K = heuristics({"A": lambda a: a.get("n" + a["D"], 7)})(jit())',
        steps(*(f"K[(1,)](T['x'], None, {n}, D='{d}')" for n in (3, 4) for d in ("", "x"))),
    ),
    "get, and get with a default": (
        """
K = heuristics({"A": lambda a: a.get("m"), "B": lambda a: a.get("m", 4),
                "C": lambda a: a.get("y") is None})(jit())
""",
        steps(*(f"K[(1,)](T['x'], {y}, {n})" for n in ("3", "3, 8") for y in ("None", "T['h']"))),
    ),
    "one of two names": (
        'K = heuristics({"A": lambda a: ("m" if a["n"] > 4 else "s") in a})(jit())',
        steps(*(f"K[(1,)](T['x'], None, 9{more})" for more in ("", ", m=1", ", s=1.0", ", 2"))),
    ),
    "a method that is not called": (
        'K = heuristics({"A": lambda a: a["x"].element_size == a["y"].element_size})(jit())',
        steps("K[(1,)](T['x'], T['x'], 3)", "K[(1,)](T['x'], T['x'].view(-1), 3)"),
    ),
    "a module with attributes of its class": (
        """
class Module(types.ModuleType):
    value = 1
    flag = property(lambda self: Module.value)
module = Module("module")
vars(module)["flag"] = 10
K = heuristics({"A": lambda a: module.flag})(jit())
""",
        steps(CALL, "Module.value = 5", CALL),
    ),
    "builtins of its own": (
        """
own = {"__builtins__": {"min": lambda *values: LOG.append(1) or 42}}
K = heuristics({"A": eval("lambda a: min(a['n'], 2)", own)})(jit())
""",
        steps(CALL),
    ),
    "a run-time argument that the call gives, too": (
        'K = heuristics({"m": lambda a: 2 * a["n"] + 1})(jit())',
        steps("K[(1,)](T['x'], None, 12, m=7)", "K[(1,)](T['x'], None, 13, m=9)"),
    ),
    "heuristics in another order": (
        """
V = {"A": lambda a: 5, "B": lambda a: a["A"] + 1}
K = heuristics(V)(jit())
""",
        [*on_n("3, A=1"), "V['A'] = V.pop('A')", *on_n("3, A=1")],
    ),
    "heuristics that change before the first call": (
        """
V = {"A": lambda a: 5}
K = heuristics(V)(jit())
""",
        ["V['B'] = lambda a: a['n']", *on_n(3, 4, 3)],
    ),
    "an option that a heuristic sets, and one reads": (
        """
K = heuristics({"num_warps": lambda a: 4 if a["n"] < 5 else 8,
                "B": lambda a: a["num_warps"]})(jit())
""",
        on_n(3, 9, "9, num_warps=2"),
    ),
    "a helper that is given the arguments": (
        """
def rows(a): return a["n"] + 1
def blocks(a): return rows(a) * G
G = 2
K = heuristics({"A": lambda a: blocks(a), "B": rows})(jit())
""",
        [*on_n(3, 9, 3), "G = 4", *on_n(3), "rows = lambda a: a['m']", *on_n("3, 7", "3, 9")],
    ),
    "an argument that cannot be passed and is replaced": (
        'K = heuristics({"m": lambda a: 4})(jit())',
        steps("K[(1,)](T['x'], None, 3, m='four')", "K[(1,)](T['x'], None, 3, m=2**70)"),
    ),
    "two results at once": (
        """
def split(a):
    first, second = divmod(a["n"], 4)
    return first + second
K = heuristics({"A": split})(jit())
""",
        on_n(3, 9, 3),
    ),
}  # fmt: skip

TUNERS = {
    "configurations of other names": (
        """
F = heuristics({"B": lambda a: a["D"] + 1})(jit())
K = autotune([Config({"A": 1}), Config({"A": 2, "D": 5})], key=["n"], do_bench=measure,
             prune_configs_by={"early_config_prune": lambda configs, nargs, **_: configs[:1]})(F)
""",
        on_n("3, D=1", "3, D=2"),
    ),
    "pruning that changes configurations": (
        """
def prune(configs, nargs, **_):
    for one in configs: one.kwargs["A"] = nargs["n"]
    return configs
K = autotune([Config({"A": 1}), Config({"A": 2}, num_warps=8)], key=["n"], do_bench=measure,
             prune_configs_by={"early_config_prune": prune})(jit())
""",
        on_n(3, 4, 3),
    ),
    "configurations that are replaced": (
        'K = autotune([Config({"A": 1}), Config({"A": 2})], key=["n"], do_bench=measure)(jit())',
        [*on_n(3), "TRITONS.configs[:] = [Config({'B': 7}), Config({'C': 7})]", *on_n(4, 3)],
    ),
    "a key that has become one": (
        """
keys = []
K = autotune([Config({"A": 1}), Config({"A": 2})], key=keys, do_bench=measure)(jit())
""",
        [*on_n("3, 4"), "keys.append('m')", *on_n("3, 5", "3, 4")],
    ),
    "an argument that a class of its own sets": (
        """
class Own(Autotuner):
    def run(self, *args, **kwargs): return super().run(*args, **{**kwargs, "m": 4})
F = jit("plain")
K = Own(F, F.arg_names, [Config({}), Config({}, num_warps=8)], ["n"], None, None, do_bench=measure)
""",
        on_n("3, s=1, A=1, B=1, C=1, D=1", "n=4, s=1, A=1, B=1, C=1, D=1"),
    ),
    "what an autotuner that is called knows": (
        """
K = TUNER = autotune([Config({"A": a}) for a in (1, 2)], key=["n"], do_bench=measure)(
    heuristics({"B": lambda a: LOG.append(1) or 1})(jit()))
K = heuristics({"C": lambda a: 5})(K)
""",
        steps(
            CALL, "LOG.append((str(TUNER.best_config), TUNER.nargs))",
            "TUNER.configs = TUNER.configs[:1]", CALL,
        ),
    ),
    "what an autotuner knows after a launch that failed": (
        """
K = TUNER = autotune([Config({"A": a}) for a in (1, 2)], key=["n"], do_bench=measure)(jit())
K.cache.update({(n, "torch.float32"): K.configs[n - 3] for n in (3, 4)})
""",
        steps(
            CALL, "K[(1,)](T['x'], None, 4, A=1)", CALL, "LOG.append(str(TUNER.best_config))",
            "K[(1,)](None, None, 4)",
        ),
    ),
    "a key that becomes longer": (
        """
keys = ["n"]
K = autotune([Config({"A": 1}), Config({"A": 2})], key=keys, do_bench=measure)(jit())
""",
        [*on_n("3, 4"), "keys.append('m')", *on_n("3, 5", "3, 4")],
    ),
    "keywords in another order": (
        """
K = autotune([Config({"A": 1}), Config({"A": 2})], key=["n"], do_bench=measure)(jit())
""",
        steps(
            "K[(1,)](x=T['x'], y=T['h'], n=3)", "K[(1,)](y=T['h'], x=T['x'], n=3)",
            "K[(1,)](y=T['x'], x=T['h'], n=3)", "LOG.append(sorted(map(str, TRITONS.cache)))",
        ),
    ),
    "a constant of NumPy has an element type": (
        'K = autotune([Config({"A": 1}), Config({"A": 2})], key=["n"], do_bench=measure)(jit())',
        steps(
            "K[(1,)](T['x'], None, 3, B=np.int64(3))",
            "TRITONS.cache[3, 'torch.float32'] = Config({'A': 77})",
            "K[(1,)](T['x'], None, 3, B=3)", "K[(1,)](T['x'], None, 3, B=np.int64(3))",
        ),
    ),
    "keys that are equal and not the same": (
        'K = autotune([Config({"A": 1}), Config({"A": 2})], key=["n"], do_bench=measure)(jit())',
        on_n(1, 1.0, True, 0, 0.0, -0.0, False, "float('inf')"),
    ),
    "what a hook is given": (
        """
def hook(given): LOG.append({name: str(one)[:9] for name, one in given.items()})
K = autotune([Config({"A": 1}, pre_hook=hook)], key=[])(
    heuristics({"B": lambda a: a["A"] + 1})(jit()))
K = heuristics({"C": lambda a: a["n"]})(K)
""",
        on_n(3, "n=4, debug=True", "3, B=5"),
    ),
    "the grid that a hook is given": (
        """
def hook(given): LOG.append(given["grid"])
K = autotune([Config({"A": 1}, pre_hook=hook)], key=[])(jit())
""",
        steps(*(f"K[{grid}](T['x'], None, 3)" for grid in ("(4,)", "(4, 1)", "(4,)", "[4]"))),
    ),
    "what a hook finds in the autotuner": (
        """
def hook(_): LOG.append(sorted(map(str, TUNER.nargs)))
K = TUNER = autotune([Config({"A": a}, pre_hook=hook) for a in (1, 2)], key=["n"],
                     do_bench=measure)(jit())
""",
        [*on_n(3, "n=4"), "LOG.append(TUNER.nargs)"],
    ),
    "what an autotuner knows after an error": (
        'K = autotune([Config({"A": a}) for a in (1, 2)], key=["n"], do_bench=measure)(jit())',
        [
            "TUNER = TRITONS", "K[(1,)](T['x'], None, n=3, Z=1)", "LOG.append(TUNER.nargs)",
            "K[(1,)](T['x'], None, 3)", "LOG.append((TUNER.nargs, str(TUNER.best_config)))",
            "K[lambda meta: 1 / 0](T['x'], None, 4)",
            "LOG.append((len(TUNER.cache), TUNER.configs_timings.values()))",
        ],
    ),
    "a class of its own that changes arguments": (
        """
class Own(Autotuner):
    def run(self, *args, **kwargs):
        return super().run(*args, **{**kwargs, "n": 2 * kwargs["n"]})
F = jit()
K = Own(F, F.arg_names, [Config({"A": 1}), Config({"A": 2})], ["n"], None, None, do_bench=measure)
""",
        on_n("n=3", "n=4"),
    ),
    "a class of its own that changes the grid": (
        """
class Own(Autotuner):
    def run(self, *args, grid, **kwargs): return super().run(*args, grid=(7,), **kwargs)
F = jit()
K = Own(F, F.arg_names, [Config({"A": 1}), Config({"A": 2})], ["n"], None, None, do_bench=measure)
""",
        on_n(3, 4),
    ),
    "a class of its own that launches twice": (
        """
class Own(Autotuner):
    def run(self, *args, **kwargs): return [super(Own, self).run(*args, **kwargs) for _ in "12"]
F = jit()
K = Own(F, F.arg_names, [Config({"A": 1}), Config({"A": 2})], ["n"], None, None, do_bench=measure)
""",
        on_n(3, 4),
    ),
    "a class of its own that reads an attribute, and a global": (
        """
def best(configs): return configs[INDEX]
class Own(Autotuner):
    def run(self, *args, **kwargs):
        self.cache[3, "torch.float32"] = self.preferred or best(self.configs)
        return super().run(*args, **kwargs)
F = jit()
K = Own(F, F.arg_names, [Config({"A": 1}), Config({"A": 2})], ["n"], None, None, do_bench=measure)
K.preferred = None
INDEX = 0
""",
        steps(
            CALL, "TRITONS.preferred = TRITONS.configs[1]", CALL, "TRITONS.preferred = None", CALL,
            "best = lambda configs: configs[1]", CALL,
        ),
    ),
}  # fmt: skip

GRIDS = {
    "a helper with variables of its own": (
        """
def make():
    k = 2
    def blocks(n): return n // k
    def set_k(value):
        nonlocal k
        k = value
    return blocks, set_k
blocks, set_k = make()
K = jit()
""",
        steps("K[lambda meta: (blocks(meta['n']),)](T['x'], None, 12)", "set_k(3)",
              "K[lambda meta: (blocks(meta['n']),)](T['x'], None, 12)"),
    ),
    "a grid that changes the heuristics": (
        """
V = {"B": lambda a: a["n"]}
K = heuristics(V)(jit())
def grid(meta):
    V["B"] = lambda a: a["n"] + 10
    return (meta["n"],)
""",
        steps(CALL, "K[grid](T['x'], None, 3)", CALL),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*HEURISTICS, *TUNERS, *GRIDS])
def test_what_is_launched(worlds, tensors, name):
    source, calls = {**HEURISTICS, **TUNERS, **GRIDS}[name]
    assert worlds.compare(source, calls, tensors) is None
