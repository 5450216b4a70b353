"""The reference pages have every name: of Python, C++, the commands, the environment, the pages."""

import ast
import importlib
import inspect
import json
import re
import runpy
import sys
from pathlib import Path

import pytest

import culaunch as cl

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if path.parent.name not in ("dev", "_build")]

# Headers whose names are not for users: what a launch does by itself, and what exported functions
# are written with.
INNER = {
    "argument.h", "argument_check.h", "demangle.h", "driver_table.h", "emulator.h", "explain.h",
    "graph_building.h", "graph_conditional.h", "graph_executable.h", "graph_node.h",
    "graph_node_calls.h", "graph_slots.h", "graphs.h",
    "launch_graph.h",
    "launch_observer.h", "launch_recorder.h",
    "half.h", "image_check.h", "image_metadata.h", "implementation.h", "kernel_graphs.h",
    "json.h", "kernel_on_devices.h", "launch_options.h",
    "parameter_type.h",
    "shared_library.h", "stream_devices.h", "version.h", "by_name.h", "lock.h", "text.h",
    "tensor_notes.h", "tensor_text.h",
    "function.h", "function_arguments.h", "function_arrays.h", "function_call.h",
    "function_errors.h", "function_numbers.h", "python_math.h", "python_numbers.h",
}  # fmt: skip


@pytest.fixture(scope="module")
def extension():
    """Return a function that imports a module of the documentation's own."""
    sys.path.insert(0, str(DOCS / "_ext"))
    yield importlib.import_module
    sys.path.remove(str(DOCS / "_ext"))


def test_every_public_name_is_on_one_page_of_the_api():
    text = "".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    listed = re.findall(r"^\.\. auto(?:class|function|exception):: (\w+)$", text, re.MULTILINE)
    modules = re.findall(r"^\.\. automodule:: culaunch\.(\w+)$", text, re.MULTILINE)
    assert sorted([*listed, *modules]) == cl.__all__


@pytest.mark.needs("click")
def test_every_command_and_option_is_in_the_reference(extension):
    import click

    made = extension("command_reference").command_reference()
    group = importlib.import_module("culaunch.cli._group").group
    context = click.Context(group)
    for name in group.list_commands(context):
        section = made.partition(f"## culaunch {name}\n")[2].partition("\n## ")[0]
        assert section, name
        for param in group.get_command(context, name).params:
            words = param.opts if isinstance(param, click.Option) else []
            assert all(f"{word}" in section for word in words), (name, words)


def test_every_name_of_the_headers_is_in_the_reference(extension):
    cpp = extension("cpp_reference")
    page = (DOCS / "cpp_api.md").read_text()
    asked = [line.split() for line in re.findall(r"<!-- made: cpp (.*?) -->", page)]
    public = {path.name for path in cpp.HEADERS.glob("*.h")}
    # The declarations of jit.h, from its parts.
    public |= set(re.findall(r'"(jit/[\w/]+\.h)"', (cpp.HEADERS / "jit.h").read_text()))
    assert {one[0] for one in asked} | INNER == public
    assert not INNER & {one[0] for one in asked}
    for header, *left_out in asked:
        text = (cpp.HEADERS / header).read_text()
        made = cpp.cpp_reference(header, *left_out)
        text = cpp._INNER.sub("\n", text)
        named = re.findall(
            r"^(?:class|struct|enum class)(?: \[\[\w+\]\])? (\w+)(?=[ :].*\{$)", text, re.MULTILINE
        )
        named += re.findall(r"^#define (CULAUNCH_[A-Z_]+)", text, re.MULTILINE)
        helpers = {"CULAUNCH_LINE", "CULAUNCH_TEXT", "CULAUNCH_TEXT_"}
        helpers |= {"CULAUNCH_EXPORT_", "CULAUNCH_FIFTH"}
        helpers |= {"CULAUNCH_DIMS", "CULAUNCH_SWITCH", "CULAUNCH_INT", "CULAUNCH_ONE"}
        missing = [
            name
            for name in {*named} - {*left_out} - helpers
            if not re.search(rf":: (template <.*> )?{name}\b", made)
        ]
        assert missing == [], header
        for name in left_out:  # nothing stays left out that is no longer there
            assert re.search(rf"\b{name.rpartition('::')[2]}\b", text), name


def test_members_of_classes_are_read(extension):
    made = extension("cpp_reference").cpp_reference("kernel.h")
    assert "template <class... Arguments> void operator()(const LaunchConfig& config" in made
    assert "CUresult Launch(void** arguments, Dim3 grid, Dim3 block, Stream stream" in made
    assert "state_" not in made  # private
    made = extension("cpp_reference").cpp_reference("jit/compile_options.h")
    assert "cpp:var:: std::map<std::string, std::string> defines\n" in made
    made = extension("cpp_reference").cpp_reference("jit/store/image.h")
    assert "cpp:type:: Signature = std::vector<std::string>\n" in made


def read_variables():
    """Find the environment variables that the sources read."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from re.findall(r"^CULAUNCH_[A-Z_]+[A-Z]$", node.value)
            if isinstance(node, ast.Call | ast.Subscript):
                whole = ast.unparse(node)
                yield from re.findall(r"^os\.environ(?:\.get\(|\[)'([A-Z_]+)'", whole)
    for path in [*(ROOT / "include").rglob("*.h"), *(ROOT / "csrc").rglob("*.cpp")]:
        text = path.read_text()
        for name in re.findall(r"(?:getenv|Variable)\((\"?\w+\"?)\)", text):
            constant = re.search(rf'{name} = "(\w+)"', text)
            listed = re.search(rf"const {name} : \{{(.*?)\}}", text)
            if constant or name.startswith('"'):
                yield constant[1] if constant else name.strip('"')
            elif listed:  # in a loop; else it is the parameter of what reads it
                yield from re.findall(r'"(\w+)"', listed[1])
    from culaunch._includes.host import ENVIRONMENT

    yield from ENVIRONMENT


@pytest.mark.slow
def test_every_environment_variable_that_is_read_is_on_its_page():
    page = (DOCS / "environment.md").read_text()
    listed = set(re.findall(r"`([A-Z_]+)`", page))
    read = set(read_variables())
    assert {"CULAUNCH_DRIVER", "CULAUNCH_DRIVER_TABLE", "CXX", "CPATH", "VIRTUAL_ENV"} <= read
    assert read - listed == set()
    rows = re.findall(r"^\| `(\w+)`", page, re.MULTILINE)
    assert len(rows) == len(set(rows)), "a variable is there twice"
    # And culaunch reads each variable that is listed as its own.
    own_part = page.partition("## Variables of other software")[0]
    ours = set(re.findall(r"^\| `(CULAUNCH_\w+)`", own_part, re.MULTILINE))
    assert ours <= read


def test_the_front_page_leads_to_every_page():
    table = (DOCS / "index.md").read_text().partition("| I have")[2].partition("```")[0]
    linked = set(re.findall(r"\]\((\S+\.md)\)", table))
    here = {str(page.relative_to(DOCS)) for page in PAGES if page.parent == DOCS} - {"index.md"}
    here |= {f"{folder}/index.md" for folder in ("api", "cookbook", "coming_from")}
    # A section above the table links to the page of launch costs.
    assert here - linked == {"benchmarks.md"}
    assert linked <= here | {"dev/contributing.md"}


def test_the_chart_has_the_numbers_of_the_benchmark(extension):
    chart = extension("launch_chart")
    costs = dict(chart.launch_costs())
    assert set(costs) <= set(chart.SHOWN.values())
    assert {"culaunch launcher", "C loop over the driver"} <= set(costs)
    report = extension("benchmark_numbers").read("launch_overhead")
    assert report["mode"] == "gpu"
    measured = {row["median_ns"] / 1000 for row in report["results"] if row["case"] == "4"}
    assert set(costs.values()) <= measured
    made = chart.launch_chart()
    assert made.count("<tr") == len(costs)
    assert report["machine"]["device"] in made


def test_the_readme_has_the_numbers_of_the_benchmark(extension):
    chart = extension("launch_chart")
    assert (DOCS / "launch_costs.svg").read_text() == chart.launch_svg(), "run launch_chart.py"
    costs = {name: f"{cost:.1f} µs" for name, cost in chart.launch_costs()}
    intro = (ROOT / "README.md").read_text().partition("## Install")[0].partition("On an ")[2]
    shown = re.findall(r"[\d.]+ µs", " ".join(intro.split()))
    names = ("culaunch launcher", "C loop over the driver", "Triton jit[grid]")
    assert shown == [costs[name] for name in names]
    alt = (ROOT / "README.md").read_text().partition("![")[2].partition("]")[0]
    assert re.findall(r"[\d.]+\d", alt) == [costs[name].split()[0] for name in names[:2]]


def test_tables_of_the_benchmarks_are_made_of_their_files(extension):
    """Every file is on the page, and every contender that one has is in a table by name."""
    numbers = extension("benchmark_numbers")
    page = (DOCS / "benchmarks.md").read_text()
    made = extension("generated").with_generated(page)
    assert "<!-- made:" not in made
    pages = page + (DOCS / "triton.md").read_text() + (DOCS / "elementwise.md").read_text()
    pages += (DOCS / "triton_libraries.md").read_text() + (DOCS / "profiling.md").read_text()
    pages += (DOCS / "checks_compared.md").read_text()
    for path in numbers.FOLDER.glob("*.json"):
        assert re.search(rf"<!-- made: \w+ {path.stem} -->|{path.stem}_\w+\.svg", pages), path
    for path in numbers.FOLDER.glob("launch_overhead*.json"):
        assert f"launches {path.stem} -->" in page
        report = numbers.read(path.stem)
        known = {*numbers.LAUNCHES, *numbers.SHORTCUTS}
        for (contender, kernel), time in numbers.medians(report).items():
            if kernel == "19" and time:
                assert contender in known, contender
                assert f" {time:.0f} |" in made
        for bar in report["bars"]:
            assert f"| {bar['name']} |" in made.replace("`", "")
        assert report["machine"]["device"] in made


def test_tables_of_planted_bugs_have_the_tools(extension, tmp_path, monkeypatch):
    numbers, made = extension("benchmark_numbers"), extension("bug_tables")
    here = {"kind": "race", "place": "a.cu:3", "words": "race: a thread reads"}
    nothing = {"words": "", "place": "", "is_right": False}
    silent = dict.fromkeys(made.TOOLS, nothing)
    found = {
        "late": {
            "source": "a", "kind": "race", "place": "a.cu:3", "missed": "", "profiled": False,
            "emulator": {"checked": here, "default": None},
            "sanitizer": {**silent, "racecheck": {"words": "Race | here", "is_right": True}},
        },
        "never": {
            "source": "a", "kind": "race", "place": "a.cu:9", "missed": "not checked",
            "profiled": False,
            "emulator": {"checked": None, "default": None},
            "sanitizer": {**silent, "memcheck": {"words": "Invalid read", "is_right": False},
                          "GPU": {"words": "no end within 25 s", "is_right": False}},
        },
        "partial": {
            "source": "a", "kind": "not-covered", "place": "a.cu:9", "missed": "", "profiled": True,
            "emulator": {"checked": {**here, "place": ""}, "default": None}, "sanitizer": silent,
        },
    }  # fmt: skip
    (tmp_path / "bugs.json").write_text(json.dumps(found))
    monkeypatch.setattr(numbers, "FOLDER", tmp_path)
    totals = made.planted_totals("bugs").splitlines()
    assert totals[-1] == "| all | 3 | 2 | 0 | 0 | 1 | 1 | 0 | 0 |"
    rows = made.planted_bugs("bugs").splitlines()[2:]
    assert rows[0] == "| `late` | race | line, with an option |  |  | line |  |  |"
    assert rows[1] == "| `never` | race | not checked |  | found |  |  |  |"
    assert rows[2] == "| `partial` | not-covered | found by `profile` |  |  |  |  |  |"
    words = made.planted_words("bugs")
    assert "| `late` | racecheck | `Race \\| here` |" in words
    assert "| `never` | GPU | `no end within 25 s` |" in words


def test_every_target_that_reductions_miss_is_bold(extension):
    numbers = extension("benchmark_numbers")
    made = extension("generated").with_generated((DOCS / "elementwise.md").read_text())
    judge = runpy.run_path(str(ROOT / "benchmarks" / "reductions.py"))["judge"]
    missed = [line for line in judge(numbers.read("reductions")) if "torch.compile" in line]
    bold = [cell for line in made.splitlines() if "float" in line for cell in line.split(" | ")
            if re.fullmatch(r"\*\*\d+ \(\d\.\d\d\)\*\*( \|)?", cell)]  # fmt: skip
    assert len(bold) == len(missed)


def test_a_smoke_run_is_not_shown(extension, tmp_path, monkeypatch):
    numbers = extension("benchmark_numbers")
    (tmp_path / "hasty.json").write_text('{"quick": true}')
    monkeypatch.setattr(numbers, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="--quick"):
        numbers.read("hasty")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_somewhere(page):
    """Sphinx sees the same when it builds; this is quicker, and runs wherever tests do."""
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]*)\)", text):
        path, _, _ = target.partition("#")
        if re.match(r"[a-z]+:", target):
            assert re.fullmatch(r"https://[\w.-]+\.[a-z]+(/[\w./%#?=&+~-]*)?", target), target
        elif path:
            assert (page.parent / path).exists(), target


def test_the_options_of_a_launch_are_in_every_reference(extension):
    table = extension("launch_options").launch_options()
    fields = extension("cpp_reference").cpp_reference("launch_config.h")
    # The help has each option: tests/launch/test_launch_options.py.
    parameters = inspect.getdoc(cl.Kernel.configure).split("Parameters\n")[1].split("Returns\n")[0]
    options = re.findall(r"^(\w+) : .*\n    (.*)$", parameters, re.MULTILINE)
    assert [name for name, _ in options] == [*inspect.signature(cl.Kernel.configure).parameters][1:]
    for name, text in options:
        assert re.search(rf"^\| `{name}` \| .* \| {re.escape(text[:20])}", table, re.MULTILINE)
        assert re.search(rf"^   \.\. cpp:var:: \w+ {name}$", fields, re.MULTILINE)
        assert ("has_" + name in fields) == (name == "priority")
    assert "<!-- made: launch_options -->" in (DOCS / "launching.md").read_text()
