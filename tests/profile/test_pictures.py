"""Pictures of profiles, timings and tunings: what is drawn, and where."""

import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import culaunch as cl

pytest.importorskip("matplotlib", reason="needs matplotlib")

HOSTILE = "k<b>$\\foo{$\x1b\n&\"'"


def texts(svg):
    """Return the texts of a picture, which has no tags but its own."""
    root = ET.fromstring(svg)
    assert {one.tag.partition("}")[0] for one in root.iter()} >= {"{http://www.w3.org/2000/svg"}
    assert not [one for one in root.iter() if one.tag.endswith("}b")]
    return [one.text for one in root.iter() if one.tag.endswith("}text")]


@pytest.fixture
def profile(driver):
    driver.elapsed = [0.5, 0.0, 1.5, 1.0, 0.25, 3.0]
    usual, other = driver.kernel(4, name="_Z3addi"), driver.kernel(4, name=HOSTILE)
    with cl.profile.launches() as profile:
        usual[8, 256](1)
        usual[8, 256](1)
        other[2, 32](1)
    return profile


def test_a_timeline_has_a_bar_for_each_call_and_each_kernel(profile):
    axes = profile.plot()
    assert [one.get_text() for one in axes.get_yticklabels()] == [
        "thread MainThread",
        "device 0, stream 0x0",
    ]
    paths = [path.vertices for bars in axes.collections for path in bars.get_paths()]
    assert len(paths) == 6
    on_device = sorted(np.ptp(one[:, 0]) for one in paths if one[0, 1] > 0.5)
    assert on_device == pytest.approx([0.25, 0.5, 1.5])
    legend = [one.get_text() for one in axes.get_legend().get_texts()]
    assert legend == ["add(int)", "k<b>" + r"\$\foo{\$" + "  &\"'"]


def test_a_notebook_shows_the_table_and_the_picture(profile):
    shown = profile._repr_html_()
    assert shown.startswith("<table>")
    found = texts(shown[shown.index("<svg") :])
    assert "add(int)" in found
    assert "milliseconds" in found
    assert any(text.startswith("k<b>$\\foo{$") for text in found)


def test_without_matplotlib_there_is_the_table(profile, monkeypatch):
    monkeypatch.setattr("culaunch._base.figures.is_installed", lambda name: False)
    assert "<svg" not in profile._repr_html_()
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(cl.MissingDependencyError, match=r"Profile\.plot needs .* pip install"):
        profile.plot()


def test_an_empty_profile_and_one_of_the_emulator(emulated):
    with cl.profile.launches() as profile:
        pass
    assert "<svg" not in profile._repr_html_()
    assert profile.plot().get_legend() is None


def timing(name="k", **changed):
    fields = {
        "device": "a device",
        "times": (1.0, 2.0, 3.0),
        "bytes": 1e9,
        "flops": 1e9,
        "peak_bandwidth": 1e12,
        "peak_flops": 1e13,
    }
    return cl.profile.Timing(name, **{**fields, **changed})


def test_a_roofline_has_the_limits_and_a_point_for_each_kernel():
    axes = cl.profile.plot_roofline([timing(), timing(HOSTILE, flops=4e10)])
    roof, first, second = axes.get_lines()
    x, y = roof.get_xdata(), roof.get_ydata()
    assert x[1] == 10
    assert list(y[1:]) == [1e13, 1e13]
    assert y[0] == pytest.approx(x[0] * 1e12)
    assert (first.get_xdata()[0], first.get_ydata()[0]) == (1, pytest.approx(5e11))
    assert (second.get_xdata()[0], second.get_ydata()[0]) == (40, pytest.approx(2e13))
    assert axes.get_xscale() == axes.get_yscale() == "log"
    axes.figure.canvas.draw()


@pytest.mark.parametrize(
    ("timings", "error", "message"),
    [
        ([], ValueError, "at least one"),
        ([1], TypeError, "must be Timing"),
        (1, TypeError, "an iterable of Timing"),
        ([timing(flops=None)], ValueError, "k lacks its bytes or operations"),
        ([timing(peak_flops=None)], ValueError, "limits of k's device are not known"),
        ([timing(is_emulated=True)], ValueError, "k was emulated"),
        ([timing(), timing(peak_flops=1e12)], ValueError, "of one device"),
    ],
)
def test_a_roofline_refuses_what_it_cannot_place(timings, error, message):
    with pytest.raises(error, match=message):
        cl.profile.plot_roofline(timings)


def test_a_timing_is_shown_with_its_distribution():
    found = texts(timing(HOSTILE)._repr_html_().partition("</table>")[2])
    assert "runs" in found
    assert any(text.startswith("k<b>$\\foo{$") for text in found)


def tuned(key, value, block, name="k"):
    trial = cl.tuning.Trial({"block": block}, [value])
    return cl.tuning.Tuning(name, "a device", key, "0", [trial])


def test_a_table_shows_its_choices_over_their_keys():
    table = cl.tuning.TunedConfigs()
    for key, value, block in (
        ((4096, "float16"), 2.0, 256), ((64, "float16"), 0.5, 64), ((64, HOSTILE), 0.25, 32),
    ):  # fmt: skip
        table.add(tuned(key, value, block))
    axes = table.plot(device="a device")
    first, second = axes.get_lines()
    assert [list(first.get_xdata()), list(first.get_ydata())] == [[64, 4096], [0.5, 2.0]]
    assert [list(second.get_xdata()), list(second.get_ydata())] == [[64], [0.25]]
    assert [one.get_text() for one in axes.texts] == ["block 64", "block 256", "block 32"]
    assert axes.get_title() == "a device"
    shown = table._repr_html_()
    assert shown.startswith("<table>")
    assert "block 256" in texts(shown[shown.index("<svg") :])


def test_a_table_without_numbers_has_no_picture():
    table = cl.tuning.TunedConfigs()
    assert "<svg" not in table._repr_html_()
    table.add(tuned(("float16", 0, True), 2.0, 256))
    assert "<svg" not in table._repr_html_()
    with pytest.raises(ValueError, match="no entry for a device has a key with a positive number"):
        table.plot(device="a device")
    with pytest.raises(ValueError, match="no entry for another"):
        table.plot(device="another")


def test_a_tuning_shows_its_configurations_in_order():
    trials = [
        cl.tuning.Trial({"block": 64}, [3.0, 3.0, 3.0]),
        cl.tuning.Trial({"block": 128}, [1.0, 1.0, 1.5]),
        cl.tuning.Trial({"block": 4096}, error=ValueError("too large")),
    ]
    tuning = cl.tuning.Tuning("k", "a device", (1,), "0", trials)
    axes = tuning.plot()
    assert [one.get_text() for one in axes.get_yticklabels()] == ["block 128", "block 64"]
    assert [bar.get_width() for bar in axes.patches] == [1.0, 3.0]
    assert "block 128" in texts(tuning._repr_html_().partition("</table>")[2])
    failed = cl.tuning.Tuning("k", "a device", (1,), "0", trials[2:])
    assert "<svg" not in failed._repr_html_()
