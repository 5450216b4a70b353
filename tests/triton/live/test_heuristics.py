"""The choices of decorators are looked up natively, and are the same."""

import dis
import random
import sys
import types

import pytest

from culaunch._triton.reads import of_code, purity

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="needs no-GPU: with one Triton has a driver of its own"
)

FACTOR = 3
LIST = [1]


def half(value):
    return value // 2


def impure(value):
    LIST.append(value)
    return value


def swallow(args):
    try:
        return args["n"]
    except KeyError:
        return 0


def over(cell):
    return lambda args: args["n"] % cell


def importing():
    import triton as closed_over

    return lambda args: closed_over.cdiv(args["n"], 2)


def assigned(args):
    n = args["n"]
    if n > 4 and args["x"] is None:
        n = half(n)
    return n * FACTOR


# ---- what is read


@pytest.mark.parametrize(
    ("function", "values", "nones", "others"),
    [
        (lambda args: args["x"] is not None, "", "x", ""),
        (lambda args: args["x"] is None or args["n"] is not None, "", "n x", ""),
        (lambda args: 1 if args["x"] is None else 2, "", "x", ""),
        (lambda args: "x" in args, "", "x", ""),
        (lambda args: args["n"] % args["m"] == 0, "m n", "", ""),
        (lambda args: args.get("n", 3), "n", "", ""),
        (lambda args: triton.cdiv(args["n"], FACTOR), "n", "", ""),
        (lambda args: min(triton.next_power_of_2(args["n"]), 64), "n", "", ""),
        (lambda args: args["x"].dtype == torch.float16, "", "", "x"),
        (lambda args: isinstance(args["x"], torch.Tensor), "", "", "x"),
        (lambda args: args["n"].bit_length(), "n", "", ""),
        (lambda args: half(args["n"]) > 0.0, "n", "", ""),
        (lambda args: True, "", "", ""),
        (over(5), "n", "", ""),
        (importing(), "n", "", ""),
        (assigned, "n", "x", ""),
    ],
)  # fmt: skip
def test_what_a_function_depends_on(function, values, nones, others):
    reads = of_code.reads_of(function)
    assert reads.values == set(values.split())
    assert reads.nones == set(nones.split())
    assert reads.types | reads.dtypes == set(others.split())


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda args: impure(args["n"]), "uses LIST, of type list|reads .append"),
        (lambda args: random.random() < 0.5, "uses random, of type builtin"),
        (lambda args: args["x"].is_cuda, "reads .is_cuda"),
        (lambda args: len(args), "does more with the arguments"),
        (lambda args: args, "does more with the arguments"),
        (lambda args: args[FACTOR], "does more with the arguments"),
        (lambda args: args.setdefault("n", 3), "does more with the arguments"),
        (lambda args: [args["n"]], "BUILD_LIST"),
        (lambda args, more=1: args["n"], "must take only the arguments"),
        (lambda *args: 1, "is not a plain function"),
        (lambda args: (yield), "is not a plain function"),
        (over([1]), "uses cell, of type list"),
        (over(object), "uses cell, of type type"),
        (lambda args: missing, "uses missing, which does not exist"),  # noqa: F821
        (lambda args: triton, "uses the module triton"),
        (lambda args: print(args["n"]), "uses print, of type builtin_function"),
        (swallow, "catches exceptions|SETUP_FINALLY"),
        (print, "is not a function"),
        (types.SimpleNamespace(), "is not a function"),
        (lambda args: args["x"].shape.numel(), "reads .numel"),
        (lambda args: args["x"].size(dim=0), "reads .size"),
        (lambda args: args["x"].is_contiguous(memory_format=ROWS), "reads .is_contiguous"),
        (lambda args: args["x"].strides, "reads .strides"),
        (lambda args: args["x"].data_ptr() % 16, "reads .data_ptr"),
        (lambda args: args["x"].t().shape[0], "reads .t"),
    ],
)
def test_what_has_to_be_called(function, reason):
    with pytest.raises(purity.Unknown, match=reason):
        of_code.reads_of(function)


def test_defaults_are_part_of_a_function_that_stays():
    """`lambda args, size=size: size` gives each of several functions a value of its own."""
    for function in (
        lambda args, size=64: size,
        lambda args, *, size=64: min(size, args["n"]),
        lambda args, size=(64, "a"): size[0],
    ):
        assert of_code.reads_of(function, stays=True).names <= {"n"}
        with pytest.raises(purity.Unknown, match="must take only the arguments"):
            of_code.reads_of(function)
    for function, reason in (
        (lambda args, more: args["n"], "must take only the arguments"),
        (lambda args, *, more: args["n"], "must take only the arguments"),
        (lambda args, more, *, other=1: args["n"], "must take only the arguments"),
        (lambda args, more=LIST: more[0], "a default of"),
        (lambda args, more=impure: more(args["n"]), "a default of"),
        (lambda: 3, "must take only the arguments"),
    ):
        with pytest.raises(purity.Unknown, match=reason):
            of_code.reads_of(function, stays=True)


# ---- what is launched


@pytest.fixture
def emulator(monkeypatch, on_emulator):
    """Compare, at every call in two, what is looked up with what is said."""
    monkeypatch.setenv("CULAUNCH_TRITON_CHECK", "1")


@pytest.fixture
def launched(emulator, launched):
    return launched


@pytest.fixture
def say():
    import heuristic_kernels

    return triton.jit(heuristic_kernels.say.fn)


@pytest.fixture
def say_more():
    import heuristic_kernels

    return triton.jit(heuristic_kernels.say_more.fn)


def counting(function):
    """Count the calls of a heuristic without a change of it."""
    code = function.__code__
    calls = []

    def profile(frame, event, _):
        if event == "call" and frame.f_code is code:
            calls.append(1)

    class Profiled:
        def __enter__(self):
            sys.setprofile(profile)
            return calls

        def __exit__(self, *_):
            sys.setprofile(None)

    return Profiled()


def said(kernel, *args, grid=(1,), **kwargs):
    out = torch.zeros(5, dtype=torch.int32)
    kernel[grid](out, *args, **kwargs)
    return out.tolist()


HEURISTICS = {
    "A": lambda args: args["x"] is not None,
    "B": lambda args: args["n"] % 3 == 0,
    "C": lambda args: triton.next_power_of_2(args["n"]) if args["scale"] > 0.5 else args["D"],
}


def expected(x, n, scale, d):
    args = {"x": x, "n": n, "scale": scale, "D": d}
    return [n, *(int(call(args)) for call in HEURISTICS.values()), d]


def test_heuristics(launched, say):
    kernel = launched(triton.heuristics(HEURISTICS)(say))
    x = torch.zeros(4)
    cases = [(x, 2, 0.25, 7), (None, 3, 0.75, 7), (x, 17, 1.0, 8), (x, 2, 0.75, 7)] * 4
    for case in cases:
        assert said(kernel, *case[:3], D=case[3]) == expected(*case)
    with counting(HEURISTICS["B"]) as calls:
        for case in [case for case in cases for _ in range(5)]:
            assert said(kernel, *case[:3], D=case[3]) == expected(*case)
    # 80 times by this test, and by the comparing about every other time.
    assert 90 < len(calls) < 150


def test_heuristics_with_defaults(launched, say):
    """Functions of one code, which their defaults tell apart; one of them gives an option."""

    def fixed(sizes):
        return {name: lambda args, size=size: size for name, size in sizes.items()}

    tritons = triton.heuristics(fixed({"A": 5, "B": 6, "C": 7, "num_warps": 2}))(say)
    kernel = launched(tritons)
    for _ in range(10):
        assert said(kernel, None, 3, 0.25, D=7) == [3, 5, 6, 7, 7]
    made = kernel[(1,)](torch.zeros(5, dtype=torch.int32), None, 3, 0.25, D=7)
    assert made.metadata.num_warps == 2
    tritons.values["B"] = fixed({"B": 8})["B"]
    for _ in range(4):
        assert said(kernel, None, 3, 0.25, D=7) == [3, 5, 8, 7, 7]


def test_a_grid_with_a_default_is_asked(launched, say):
    """Each call makes a new one, with the same code and another default."""
    kernel = launched(say)
    for count in (1, 2, 3, 1):
        asked = []
        grid = lambda meta, count=count, asked=asked: asked.append(count) or (count,)  # noqa: E731
        for _ in range(3):
            said(kernel, None, 3, 0.25, A=1, B=2, C=3, D=4, grid=grid)
        assert asked == [count] * 3


def test_heuristics_are_on_the_quick_path(recorder, say):
    from culaunch.triton import native

    kernel = native(triton.heuristics(HEURISTICS)(say))
    out, x = torch.zeros(5, dtype=torch.int32), torch.zeros(4)
    for _ in range(3):
        kernel[(1,)](out, x, 3, 0.5, D=7)
    misses = kernel._misses
    with counting(HEURISTICS["B"]) as calls:
        for _ in range(20):
            kernel[(1,)](out, x, 3, 0.5, D=7)
    assert (kernel._misses, len(calls)) == (misses, 0)


def test_what_a_call_gives_is_replaced_as_by_triton(launched, say):
    kernel = launched(triton.heuristics(HEURISTICS)(say))
    for a in (5, 6, 5):
        assert said(kernel, None, 3, 0.25, A=a, D=7) == [3, 0, 1, 7, 7]
    with pytest.raises(TypeError):
        kernel[(1,)](torch.zeros(5, dtype=torch.int32), None, 3, 0.25, 1, 2, 3, 4)


def test_a_missing_argument_is_the_heuristics_own_error(launched, say):
    kernel = launched(triton.heuristics(HEURISTICS)(say))
    for _ in range(2):
        with pytest.raises(KeyError, match="D"):
            kernel[(1,)](torch.zeros(5, dtype=torch.int32), None, 3, 0.25)


def test_globals_and_cells_that_change(launched, say):
    scale = 2

    def set_scale(value):
        nonlocal scale
        scale = value

    namespace = {"STEP": 1, "__builtins__": __builtins__}
    step = eval("lambda args: args['n'] + STEP", namespace)
    kernel = launched(
        triton.heuristics(
            {"A": step, "B": lambda args: args["n"] * scale, "C": lambda args: 0, "D": lambda a: 0}
        )(say)
    )
    assert said(kernel, None, 3, 1.0)[1:3] == [4, 6]
    assert said(kernel, None, 3, 1.0)[1:3] == [4, 6]
    namespace["STEP"] = 5
    assert said(kernel, None, 3, 1.0)[1:3] == [8, 6]
    set_scale(4)
    assert said(kernel, None, 3, 1.0)[1:3] == [8, 12]
    del namespace["STEP"]
    with pytest.raises(NameError):
        said(kernel, None, 3, 1.0)


def test_heuristics_that_change(launched, say):
    heuristics = triton.heuristics(dict(HEURISTICS))(say)
    kernel = launched(heuristics)
    assert said(kernel, None, 3, 0.25, D=7)[1] == 0
    heuristics.values["A"] = lambda args: 9
    assert said(kernel, None, 3, 0.25, D=7)[1] == 9
    heuristics.values["D"] = lambda args: args["C"]
    heuristics.values["C"] = lambda args: 11
    assert said(kernel, None, 3, 0.25) == [3, 9, 1, 11, 11]


def test_an_impure_heuristic_is_called(launched, say):
    LIST[:] = []
    values = {**HEURISTICS, "A": lambda args: LIST.append(1) or len(LIST)}
    kernel = launched(triton.heuristics(values)(say))
    assert [said(kernel, None, 3, 0.25, D=7)[1] for _ in range(3)] == [1, 2, 3]


def test_a_tensor_whose_value_is_read_is_asked_every_time(launched, say):
    values = {**HEURISTICS, "A": lambda args: (args["x"] == 1 and 5) or 6}
    kernel = launched(triton.heuristics(values)(say))
    x = torch.ones(())
    assert said(kernel, x, 3, 0.25, D=7)[1] == 5
    x.zero_()
    assert said(kernel, x, 3, 0.25, D=7)[1] == 6


@pytest.mark.parametrize("order", ["tuner above", "heuristics above"])
def test_autotuners_and_heuristics(launched, say, order):
    configs = [triton.Config({"D": d}, num_warps=w) for d, w in ((8, 4), (16, 2))]

    def choose(call, quantiles):
        return [1.0] * 3

    below = {**HEURISTICS, "C": lambda args: args["D"] + 1}
    if order == "tuner above":
        tuned = triton.autotune(configs, key=["n"], do_bench=choose)(triton.heuristics(below)(say))
        outer = tuned
    else:
        above = {**HEURISTICS, "C": lambda args: 4}
        tuned = triton.autotune(configs, key=["n", "A"], do_bench=choose)(say)
        outer = triton.heuristics(above)(tuned)
    kernel = launched(outer)
    for n in (3, 4, 3, 4) * 3:
        for x in (None, torch.zeros(2)):
            found = said(kernel, x, n, 0.25)
            c = found[4] + 1 if order == "tuner above" else 4
            assert found == [n, int(x is not None), int(n % 3 == 0), c, found[4]]
            assert tuned.best_config.kwargs == {"D": found[4]}
    assert len(tuned.cache) == (2 if order == "tuner above" else 4) + (order == "tuner above") * 2


def test_run_time_arguments_that_decorators_set(launched, say_more):
    kernel = launched(
        triton.heuristics({"twice": lambda args: 2 * args["n"], "A": lambda args: 1})(say_more)
    )
    for n in (3, 4, 3, 4, 16, 1):
        assert said(kernel, n)[:3] == [n, 2 * n, 1]
    configs = [triton.Config({"twice": 5, "A": 6})]
    kernel = launched(triton.autotune(configs, key=[])(say_more))
    for n in (3, 4):
        assert said(kernel, n)[:3] == [n, 5, 6]


def test_a_subclass_of_the_autotuner_decides(launched, say):
    Autotuner = triton.runtime.Autotuner
    runs = []

    class Cached(Autotuner):
        always = False

        def run(self, *args, **kwargs):
            runs.append(1)
            key = (kwargs["n"], "torch.int32")
            if self.always or key not in self.cache:
                self.cache[key] = triton.Config({"D": kwargs["n"] + len(runs)})
            return super().run(*args, **kwargs)

    values = {"A": lambda args: 1, "B": lambda args: 2, "C": lambda args: 3}
    configs = [triton.Config({"D": d}) for d in (1, 2)]
    tuner = Cached(say, say.arg_names, configs, ["n"], None, None)
    kernel = launched(triton.heuristics(values)(tuner))
    for _ in range(6):
        assert said(kernel, None, n=3, scale=0.5)[4] == 4
    assert len(runs) == 2  # when it decided, and once more to see that it had
    tuner.cache.clear()
    assert said(kernel, None, n=3, scale=0.5)[4] == 6
    Cached.always = True
    tuner.cache.clear()
    seen = {said(kernel, None, n=3, scale=0.5)[4] for _ in range(4)}
    assert len(seen) == 4  # it decides again every time


def test_hooks_of_configurations(launched, say):
    hooked = []
    configs = [triton.Config({"D": 8}, pre_hook=lambda args: hooked.append(args["A"]))]
    tuned = triton.autotune(configs, key=[])(say)
    values = {"A": lambda args: args["n"], "B": lambda args: 2, "C": lambda args: 3}
    kernel = launched(triton.heuristics(values)(tuned))
    for n in (3, 4, 3):
        assert said(kernel, None, n, 0.5) == [n, n, 2, 3, 8]
    assert hooked == [3, 4, 3]


def test_what_a_new_version_of_python_has_is_not_guessed(monkeypatch):
    every = dis.get_instructions

    def with_another(code):
        first, *rest = every(code)
        return [first, first._replace(opname="DO_SOMETHING_NEW"), *rest]

    assert of_code.reads_of(assigned).values == {"n"}
    monkeypatch.setattr(dis, "get_instructions", with_another)
    with pytest.raises(purity.Unknown, match="DO_SOMETHING_NEW in assigned"):
        of_code.reads_of(assigned)


ROWS = 1
WHOLE = {"RANK 0", *(f"SIZE {i}" for i in range(8))}


@pytest.mark.parametrize(
    ("function", "parts"),
    [
        (lambda args: args["x"].shape[0], {"SIZE 0"}),
        (lambda args: args["x"].shape[-1] % 2 == 0, {"SIZE -1"}),
        (lambda args: args["x"].size(1), {"SIZE 1"}),
        (lambda args: args["x"].stride(-2) == args["x"].shape[1], {"STRIDE -2", "SIZE 1"}),
        (lambda args: args["x"].ndim + args["x"].dim(), {"RANK 0"}),
        (lambda args: triton.cdiv(args["x"].numel(), 4), {"COUNT 0"}),
        (lambda args: args["x"].nelement(), {"COUNT 0"}),
        (lambda args: len(args["x"].shape), WHOLE),
        (lambda args: args["x"].shape[ROWS], WHOLE),
        (lambda args: args["x"].shape == args["x"].size(), WHOLE),
        (lambda args: args["x"].is_contiguous(), WHOLE | {f"STRIDE {i}" for i in range(8)}),
    ],
)
def test_what_is_read_of_a_shape(function, parts):
    reads = of_code.reads_of(function)
    assert {f"{part.kind.name} {part.dimension}" for _, part in reads.shapes} == parts
    assert reads.names == {"x"}
    assert not reads.values


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda args: args["x"].element_size(), {"x"}),
        (lambda args: args["x"].dtype.itemsize, {"x"}),
        (lambda args: args["x"].dtype.is_floating_point, {"x"}),
    ],
)
def test_what_an_element_type_says(function, names):
    reads = of_code.reads_of(function)
    assert reads.dtypes == reads.names == names
