"""A profile as a table, HTML, JSON and a timeline."""

import html.parser
import json

import pytest

import culaunch as cl

HOSTILE = "k<script>\x1b[2J\n&\"'"


class Cells(html.parser.HTMLParser):
    """The texts of a table's cells, row by row, and the names of all tags."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.rows = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


@pytest.fixture
def profile(driver):
    """A profile of two launches of one kernel and one of another, whose name is hostile."""
    driver.elapsed = [0.5, 0.0, 1.5, 1.0, 0.001, 3.0]
    usual, other = driver.kernel(4, name="_Z3addi"), driver.kernel(4, name=HOSTILE)
    with cl.profile.launches() as profile:
        usual[8, 256](1)
        usual[8, 256](1)
        other[(2, 2), (8, 4)](1)
    return profile


def test_the_table(profile):
    lines = str(profile).splitlines()
    assert lines[0] == "3 launches on Recorder"
    assert lines[1].split() == [
        "calls", "device", "total", "host", "bytes", "bandwidth", "kernel",
    ]  # fmt: skip
    assert lines[2].startswith("    2    1 ms   2 ms")
    assert lines[2].endswith("add(int)")
    assert "grid 8, block 256, " in lines[3]
    assert "\x1b" not in str(profile)
    assert "k<script>\\x1b[2J\\n&" in str(profile)


def test_html_is_escaped(profile):
    cells = Cells(profile._repr_html_())
    assert "script" not in cells.tags
    heads = dict(zip(cells.rows[0], zip(*cells.rows[1:], strict=True), strict=True))
    assert heads["kernel"] == ("add(int)", HOSTILE)
    assert heads["calls"] == ("2", "1")
    assert heads["grid"] == ("8", "2x2")
    assert heads["block"] == ("256", "8x4")
    assert heads["device (median)"] == ("1 ms", "1 us")


def test_json(profile):
    read = json.loads(profile.to_json(indent=1))
    assert [one["name"] for one in read["kernels"]] == ["add(int)", HOSTILE]
    assert read["kernels"][0]["device_time"] == 1.0
    assert read["kernels"][0]["total_time"] == 2.0
    assert [one["device_time"] for one in read["launches"]] == [0.5, 1.5, pytest.approx(0.001)]
    assert read["is_emulated"] is False


def test_the_timeline(profile, tmp_path):
    path = tmp_path / "trace.json"
    profile.save(path)
    events = json.loads(path.read_text())["traceEvents"]
    assert {one["ph"] for one in events} == {"X", "M"}
    named = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["ph"] == "M"}
    for category, count in (("launch", 3), ("kernel", 3)):
        found = [one for one in events if one.get("cat") == category]
        assert len(found) == count
        assert all(one["dur"] >= 0 and (one["pid"], one["tid"]) in named for one in found)
        assert found[-1]["name"] == HOSTILE
    device = cl.driver.Device().ordinal
    assert {named[one["pid"], 0] for one in events if one.get("cat") == "launch"} == {"host"}
    (process,) = {one["pid"] for one in events if one.get("cat") == "kernel"}
    assert (process, named[process, 0]) == (device + 1, f"device {device}")
    calls, kernels = ([one for one in events if one.get("cat") == c] for c in ("launch", "kernel"))
    assert all(k["ts"] >= c["ts"] for c, k in zip(calls, kernels, strict=True))
    assert [one["dur"] for one in kernels] == [500, 1500, pytest.approx(1)]
    assert kernels[1]["ts"] - kernels[0]["ts"] == pytest.approx(1000)
    assert {named[one["pid"], 0] for one in kernels} == {"device 0"}
    with pytest.raises(OSError, match="nowhere"):
        profile.save(tmp_path / "nowhere" / "trace.json")
