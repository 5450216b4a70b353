"""The parts of the launch benchmark: kernels, timing, bars."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def test_parameter_counts_are_those_that_are_promised(overhead: Callable[[str], Any]) -> None:
    cases = overhead("cases")
    assert [case.count for case in cases.CASES] == [0, 4, 8, 19, 58]
    assert (cases.MAIN.pointers, cases.MAIN.ints, cases.MAIN.floats) == (3, 1, 0)
    keys = [case.key for case in cases.CASES + cases.SLOPE_CASES]
    assert len(keys) == len(set(keys))


@pytest.mark.needs("c++filt")
def test_mangled_names_say_the_types(overhead: Callable[[str], Any]) -> None:
    cases = overhead("cases")
    types = {"p": "float*", "i": "int", "f": "float"}
    for case in cases.CASES + cases.SLOPE_CASES:
        done = subprocess.run(["c++filt", case.mangled], capture_output=True, text=True, check=True)
        expected = ", ".join(types[name[0]] for name in case.names)
        assert done.stdout.strip() == f"{case.name}({expected})"


@pytest.mark.needs("nvrtc")
def test_kernels_compile_under_those_names(overhead: Callable[[str], Any]) -> None:
    import culaunch as cl

    cases = overhead("cases")
    image = cl.compile(cases.cuda_source(), arch="sm_90")
    found = {kernel.name: [p.size for p in kernel.parameters] for kernel in image.kernels}
    wanted = {c.mangled: list(c.sizes) for c in cases.CASES + cases.SLOPE_CASES}
    assert found == wanted


def test_expected_results_are_exact_in_float32(overhead: Callable[[str], Any]) -> None:
    cases = overhead("cases")
    for case in cases.CASES:
        assert case.expected < 2**23
        assert case.expected * 2 == int(case.expected * 2)


def test_burst_calls_as_often_as_told(overhead: Callable[[str], Any]) -> None:
    calls: list[tuple[int, str]] = []
    burst = overhead("timing").python_burst(
        "call(p0, i1)", call=lambda *args: calls.append(args), p0=1, i1="x"
    )
    assert burst(7) >= 0
    assert calls == [(1, "x")] * 7


def test_run_interleaves_and_drops_what_fails(overhead: Callable[[str], Any]) -> None:
    timing = overhead("timing")
    order: list[str] = []

    def burst(name: str) -> Any:
        def call(count: int) -> int:
            order.append(name)
            return 100 * count

        return call

    def broken(count: int) -> int:
        raise ValueError("no")

    trials = [timing.Trial(name, "4", burst(name)) for name in ("a", "b")]
    trials += [timing.Trial("bad", "4", broken), timing.Trial("code", "4", lambda count: -700)]
    failed = timing.run(trials, timing.Plan(10, 2, 5), lambda: None)
    assert {(trial.contender, reason) for trial, reason in failed} == {
        ("bad", "ValueError: no"),
        ("code", "RuntimeError: the C loop returned -700"),
    }
    assert [trial.contender for trial in trials] == ["a", "b"]
    assert all(trial.samples == [100.0] * 5 for trial in trials)
    rounds = [order[i : i + 4] for i in range(0, 20, 4)]
    assert all(sorted(names) == ["a", "a", "b", "b"] for names in rounds)


def test_median_and_p10(overhead: Callable[[str], Any]) -> None:
    trial = overhead("timing").Trial("a", "4", lambda count: 0, samples=[*map(float, range(100))])
    assert (trial.median, trial.p10) == (49.5, 10.0)


def test_slope_is_the_cost_of_one_more(overhead: Callable[[str], Any]) -> None:
    counts = [1, 2, 4, 8, 16]
    assert overhead("timing").slope(counts, [30 + 7.0 * n for n in counts]) == pytest.approx(7)


def trials(
    overhead: Callable[[str], Any], samples: dict[str, Sequence[float]], case: str = "4"
) -> list[Any]:
    make = overhead("timing").Trial
    return [make(name, case, lambda count: 0, samples=[*found]) for name, found in samples.items()]


def test_bars_are_met_missed_or_not_measured(overhead: Callable[[str], Any]) -> None:
    bars, ours = overhead("bars"), overhead("ours")
    peers, tvm = overhead("peers"), overhead("tvm")
    # A host that becomes slower, and one burst that something disturbed.
    found = trials(overhead, {
        ours.LAUNCHER: (100.0, 200.0, 300.0),
        ours.SUBSCRIPT: (161.0, 900.0, 361.0),
        tvm.EMPTY: (400.0,) * 3,
        tvm.CUBIN_RUNTIME: (1000.0,) * 3,
        tvm.CUBIN_DRIVER: (250.0,) * 3,
    })  # fmt: skip
    host = {bar.name: bar for bar in bars.bars(found, {}, host_only=True)}
    assert host[f"{ours.LAUNCHER} / {tvm.EMPTY}"].met is True
    assert host[f"{ours.LAUNCHER} / {peers.CORE_RAW}"].met is None
    subscript = host["kernel[grid, block](...) over a configured launcher"]
    assert (subscript.measured, subscript.met) == (61.0, False)
    cost = {"tensor": 24.0, "exchange": 50.0}
    for count in (1, 2, 4, 8, 16):  # 14 ns more for each, and a disturbance in one round
        case = f"tensors{count}"
        noise = (0.0, 500.0 * (count == 16), 3000.0)
        found += trials(overhead, {ours.LAUNCHER: [n + 200 + 24.0 * count for n in noise]}, case)
        alone = [10.0 * count + more for more in (0.0, 90.0, 2500.0)]
        found += trials(overhead, {ours.C_LOOP: alone}, case)
    gpu = bars.bars(found, cost, host_only=False)
    faster = next(bar for bar in gpu if "the faster one" in bar.name)
    assert (faster.measured, faster.met) == (0.8, False)
    further = [bars.bars(found, cost, host_only=only)[-1] for only in (True, False)]
    assert [bar.measured for bar in further] == [24.0, 14.0]
    assert [bar.met for bar in further] == [False, True]


def test_breakdown_adds_up_to_the_launch(overhead: Callable[[str], Any]) -> None:
    bars, ours = overhead("bars"), overhead("ours")
    found = {
        (ours.LAUNCHER, "4"): 300.0,
        (ours.STREAM_GIVEN, "4"): 280.0,
        (ours.C_LOOP, "4"): 10.0,
    }
    cost = {"gil": 30.0, "loop": 5.0}
    shares = bars.breakdown(found, cost)
    assert sum(shares.values()) == pytest.approx(300)
    assert shares["the interpreter's call and culaunch"] == 300 - 10 - 20 - 30 - 5
    assert bars.breakdown(found, {"gil": 50.0}) == {}
