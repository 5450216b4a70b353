"""``print`` and notebooks show the tables that the command prints."""

import dataclasses
from html.parser import HTMLParser

import pytest

import culaunch as cl
from culaunch._base.html import html_table

SOURCE = """
namespace ns { __constant__ float table[4]; }
template <class T> __global__ void scale(T* y, T a, int n) { y[n] *= a * ns::table[n]; }
extern "C" __global__ void plain(float* y) { *y = 1; }
"""
NAMES = ("scale<float>", "scale<int>")


@pytest.fixture
def module(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    return cl.load(cl.compile(SOURCE, names=NAMES))


def test_an_inspection_is_its_table(module):
    found = cl.inspect(module.image)
    assert str(module) == str(found)
    assert "\n  ns::table     16" in str(found)
    assert str(found.images[0]) in str(found)
    assert str(found.images[0].kernels[0]).startswith("kernel")
    for one in (module, found, found.images[0], found.images[0].kernels[0]):
        assert one._repr_html_().startswith("<pre>")
    assert "scale&lt;float&gt;" in found._repr_html_()
    assert "KernelInfo(" not in str(found)


def test_a_kernel_is_what_it_takes(module):
    text = str(module["scale<float>"])
    assert text.splitlines()[:2] == [
        "void scale<float>(float*, float, int)",
        "(float*, float, int)",
    ]
    assert text.splitlines()[2].startswith("kernel")
    assert module["plain"]._repr_html_().startswith("<pre>plain")


def test_numbers_are_a_column(module):
    attributes = module["plain"].attributes()
    lines = str(attributes).splitlines()
    assert lines[0] == f"max_threads_per_block  {attributes.max_threads_per_block}"
    assert len(lines) == 8
    occupancy = module["plain"].occupancy(64)
    assert str(occupancy).splitlines()[0] == f"active_blocks    {occupancy.active_blocks}"
    assert occupancy._repr_html_().startswith("<pre>active_blocks")


def test_a_module_is_a_collection_of_its_kernels(module):
    assert len(module) == len(module.kernels) == len(list(module)) == 3
    assert all(kernel in module for kernel in module)
    assert all(kernel.name in module for kernel in module)
    other = cl.load(module.image)
    assert module["plain"] not in other
    assert 3 not in module
    assert module["scale<float>"] is module[module.image.names["scale<float>"]]
    keys = module._ipython_key_completions_()
    assert sorted(keys) == ["plain", "scale<float>", "scale<int>"]
    assert [module[key] for key in keys] == list(module)
    assert module["plain"]._ipython_key_completions_() == []


def test_a_key_that_would_be_several_kernels_is_the_name_in_the_image(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    text = "__global__ void f(int* x) { *x = 1; }\n__global__ void f(float* x) { *x = 1; }\n"
    module = cl.load(cl.compile(text))
    assert sorted(module._ipython_key_completions_()) == ["_Z1fPf", "_Z1fPi"]


class Cells(HTMLParser):
    """The cells of an HTML table, row by row."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open = [], []
        self.feed(text)
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag, _):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_a_table_in_html_escapes_and_aligns():
    text = html_table(("a<b>", "n"), [("<i>", 1234567), (None, 2.5)], "x & y", "1 < 2")
    assert Cells(text).rows == [["a<b>", "n"], ["<i>", "1,234,567"], ["", "2.5"]]
    assert "<caption>x &amp; y</caption>" in text
    assert text.endswith("<pre>1 &lt; 2</pre>")
    assert 'right">1,234,567' in text


def test_a_signature_is_a_table(module):
    assert Cells(module["scale<float>"].signature._repr_html_()).rows == [
        ["parameter", "offset", "bytes", "type"],
        ["0", "0", "8", "float*"], ["1", "8", "4", "float"], ["2", "12", "4", "int"],
    ]  # fmt: skip


def test_a_timing_is_a_table():
    timing = cl.profile.Timing("k<1>", "H200", (1.0, 2.0, 3.0), is_flushed=True, bytes=4e9,
                                flops=2e9, peak_bandwidth=4e12)  # fmt: skip
    assert Cells(timing._repr_html_()).rows[1:] == [
        ["median", "2 ms"], ["quartiles", "1.5 ms and 2.5 ms"], ["minimum", "1 ms"],
        ["runs", "3 runs, L2 flushed"],
        ["bandwidth", "2 TB/s, 50.0% of the memory's peak"], ["throughput", "1 TFLOP/s"],
    ]  # fmt: skip
    assert "k&lt;1&gt; on H200" in timing._repr_html_()
    assert "2 TB/s, 50.0% of the memory's peak" in str(timing)
    emulated = dataclasses.replace(timing, is_emulated=True)
    assert "wall clock of the emulation" in emulated._repr_html_()


def test_a_tuning_is_a_table():
    trials = [
        cl.tuning.Trial({"block": 64}, error=ValueError("too\nlarge")),
        cl.tuning.Trial({"block": 32}, [2.0] * 3),
        cl.tuning.Trial({"block": 16}, [1.0] * 3),
    ]
    rows = Cells(cl.tuning.Tuning("k", "H200", (7,), "0", trials)._repr_html_()).rows
    assert rows == [
        ["configuration", "ms", "95 % of medians", "runs"],
        ["{'block': 16}", "1.00000", "1.00000 to 1.00000", "3"],
        ["{'block': 32}", "2.00000", "2.00000 to 2.00000", "3"],
        ["{'block': 64}", "failed", "too", ""],
    ]
    counted = cl.tuning.Tuning(
        "k", "e", (), "0", [cl.tuning.Trial({}, instructions=1200)], is_emulated=True
    )
    assert Cells(counted._repr_html_()).rows[1][:2] == ["{}", "1,200"]


def test_a_load_report_is_a_table(module):
    report = cl.profile.load_report()
    rows = Cells(report._repr_html_()).rows
    assert rows[0] == ["at", "took", "bytes", "format", "loaded", "source"]
    assert len(rows) == len(report) + 1 > 1
    last = report.images[-1]
    assert rows[-1][2:] == [f"{last.size:,}", last.format, "on use", last.source]


@pytest.mark.needs("triton")
def test_a_report_of_triton_s_launches_is_a_table():
    from culaunch.triton import KernelReport, Report

    one = KernelReport("m.k", 3, 2, {"a hook": 2}, ("a heuristic",))
    rows = Cells(Report((one,), "off")._repr_html_()).rows
    assert rows == [
        ["kernel", "native", "Triton", "why"],
        ["m.k", "3", "2", "by Triton 2 x: a hook; in Python: a heuristic"], ["all", "3", "2", ""],
    ]  # fmt: skip
    assert "<pre>graphs off</pre>" in Report((one,), "off")._repr_html_()
