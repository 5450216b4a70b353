"""A Triton that has not what culaunch reads of it is refused before anything is changed."""

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import as_triton_kernels as kernels  # noqa: E402
from triton.backends import compiler  # noqa: E402
from triton.runtime import autotuner, jit  # noqa: E402

import culaunch as cl  # noqa: E402
from culaunch import MissingDependencyError  # noqa: E402
from culaunch._triton.upstream import supported  # noqa: E402
from culaunch._triton.variants import launch_facts, parameter_sources  # noqa: E402
from culaunch.triton import install, native  # noqa: E402


@pytest.fixture(autouse=True)
def asked_anew():
    supported._missing.cache_clear()
    yield
    supported._missing.cache_clear()


@pytest.mark.parametrize(
    ("holder", "name", "renamed"),
    [
        # A method, a class, and an attribute that objects of a class no longer have.
        (autotuner.Autotuner, "run", "runtime.autotuner.Autotuner.run"),
        (compiler, "GPUTarget", "backends.compiler.GPUTarget"),
        (jit.JITFunction, "pre_run_hooks", "runtime.jit.JITFunction.pre_run_hooks"),
    ],
)
def test_what_is_not_there_is_named_by_install(monkeypatch, holder, name, renamed):
    kernel, run = kernels.put, jit.JITFunction.run
    if name == "pre_run_hooks":
        known = supported._source_of
        monkeypatch.setattr(supported, "_source_of", lambda kind: known(kind).replace(name, "new"))
    else:
        monkeypatch.delattr(holder, name)
    for use in (install, lambda: native(kernel)):
        with pytest.raises(MissingDependencyError) as caught:
            use()
        assert str(caught.value).count(renamed) == 1
        for part in (triton.__version__, "python -m pip install 'triton>=3.4,<"):
            assert part in str(caught.value)
    assert jit.JITFunction.run is run


@pytest.mark.parametrize("kind", [autotuner.Autotuner, autotuner.Heuristics, jit.JITFunction])
def test_what_other_libraries_replace_is_still_there(monkeypatch, kind):
    """They wrap a method, which then names nothing of what the first one did."""
    for name in ("__init__", "run"):
        first = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda *args, first=first, **rest: first(*args, **rest))
    with install():
        pass
    native(kernels.put)


def test_a_triton_without_its_source_is_taken(monkeypatch):
    monkeypatch.setattr(supported, "_source_of", lambda _: "")
    with install():
        pass


def test_metadata_of_a_newer_version_must_have_all_that_is_known():
    metadata = {"name": "kernel", "num_warps": 4, "shared": 0}
    assert launch_facts.LaunchFacts.from_metadata(metadata, "3.6.0").global_scratch_size == 0
    with pytest.raises(ValueError, match=r"Triton 9\.1\.0 has no num_ctas, global_scratch_size"):
        launch_facts.LaunchFacts.from_metadata(metadata, "9.1.0")


def test_an_unknown_newer_triton():
    """Its kernels load if their parameters are as expected, else the error says so."""
    from dataclasses import replace

    facts = launch_facts.LaunchFacts("k", "3.12.0")
    sizes = [(0, 8), (8, 4), (16, 8), (24, 8)]
    assert len(parameter_sources.parameter_sources(["*fp32", "i32"], facts, sizes)) == 4
    with pytest.raises(cl.ImageError, match=r"newer than the newest that culaunch knows, 3\.9"):
        parameter_sources.parameter_sources(["*fp32", "i32"], facts, [*sizes, (32, 8)])
    with pytest.raises(cl.ImageError, match="has 2"):
        parameter_sources.parameter_sources(
            ["*fp32", "i32"], replace(facts, triton_version="3.6.0"), sizes[:2]
        )
    assert (
        len(
            parameter_sources.parameter_sources(
                ["*fp32", "i32"], replace(facts, triton_version="3.2.0"), sizes[:2]
            )
        )
        == 2
    )
