"""The parts of a release: cibuildwheel's configuration, the workflow, the recipe, the page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
RECIPE = ROOT / "release" / "conda" / "recipe.yaml"
PAGE = (ROOT / "docs" / "dev" / "release.md").read_text()


@pytest.fixture
def project():
    tomllib = pytest.importorskip("tomllib", reason="needs tomllib")
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.needs("tomllib")
def test_wheels_are_built_and_tried_for_every_python_that_is_promised(project):
    wheels = project["tool"]["cibuildwheel"]
    built = set(re.findall(r"cp(\w+)-\*", wheels["build"]))
    classifiers = project["project"]["classifiers"]
    promised = {
        version.replace(".", "")
        for text in classifiers
        for version in re.findall(r"Python :: (3\.\d+)$", text)
    }
    assert built == promised | {"314t"}
    assert wheels["manylinux-x86_64-image"] == wheels["manylinux-aarch64-image"] == "manylinux_2_28"
    assert "smoke.py" in wheels["test-command"]
    (musl,) = wheels["overrides"]
    assert "CULAUNCH_STATIC_CXX_RUNTIME" in str(musl["config-settings"])
    assert musl["select"] == "*-musllinux*"
    assert project["tool"]["scikit-build"]["wheel"]["py-api"] == "cp312"


@pytest.mark.needs("tomllib")
def test_what_the_smoke_test_needs_is_what_the_emulator_needs(project):
    emulator = project["project"]["optional-dependencies"]["emulator"]
    assert set(project["tool"]["cibuildwheel"]["test-requires"]) < set(emulator)


@pytest.mark.needs("tomllib", "yaml")
def test_the_recipe_says_what_pyproject_says(project):
    import yaml

    # The places of the template are text for YAML.
    recipe = yaml.safe_load(RECIPE.read_text())
    header = (ROOT / "include" / "culaunch" / "version.h").read_text()
    version = ".".join(re.findall(r"#define CULAUNCH_VERSION_\w+ (\d+)", header)[:3])
    assert recipe["context"]["version"] == version
    about = recipe["about"]
    assert about["license"] == project["project"]["license"]
    assert about["license_file"] == project["project"]["license-files"]
    assert about["summary"] == project["project"]["description"]
    build = {one.split()[0] for one in recipe["requirements"]["host"]}
    assert {"scikit-build-core", "pip", "python"} <= build
    extras = project["project"]["optional-dependencies"]
    numpy = next(one for one in extras["emulator"] if one.startswith("numpy"))
    assert re.sub(r"(\w)(>=)", r"\1 \2", numpy) in recipe["requirements"]["run_constraints"]
    assert "tools/wheels/smoke.py" in recipe["tests"][1]["files"]["source"]


@pytest.mark.needs("yaml")
def test_only_the_jobs_that_publish_may_write():
    import yaml

    workflow = yaml.safe_load(WORKFLOW.read_text())
    assert workflow["permissions"] == {}
    rights = {name: job.get("permissions", {}) for name, job in workflow["jobs"].items()}
    writers = {name for name, right in rights.items() if "write" in right.values()}
    assert writers == {"attest", "publish"}
    assert workflow["jobs"]["publish"]["environment"]["name"] == "pypi"
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if "uses" in step:
                # By its commit: a tag may be moved.
                assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"])
    # Its version is beside it, to look for a newer one.
    versions = re.findall(r"@[0-9a-f]{40}(.*)", WORKFLOW.read_text())
    assert all(re.fullmatch(r" # v\d+\.\d+\.\d+", one) for one in versions)


def test_the_workflow_and_the_page_use_what_is_there():
    text = WORKFLOW.read_text() + PAGE
    used = set(re.findall(r"\b((?:tools|release|benchmarks)/[\w/.-]+\.\w+)", text))
    assert {"tools/wheels/build.py", "tools/wheels/check.py"} <= used
    assert sorted(name for name in used if not (ROOT / name).exists()) == []
    assert re.search(r"cibuildwheel==[\d.]+", text), "a release is built by a known version"
