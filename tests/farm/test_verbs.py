"""The other verbs that take an executor: Triton's compile, and specialize of functions."""

import concurrent.futures

import pytest

import culaunch as cl

pytestmark = [pytest.mark.slow, pytest.mark.needs("triton", "torch")]


@pytest.fixture(scope="module")
def kernels():
    import farmed_kernels

    return farmed_kernels


@pytest.mark.parametrize("name", ["double", "tuned"])
def test_triton_variants_are_those_of_one_process(name, kernels, pool):
    import culaunch.triton as ct

    kernel = getattr(kernels, name)
    more = {} if name == "tuned" else {"configs": [{"BLOCK": 64}, {"BLOCK": 128, "num_warps": 8}]}
    signatures = ["*fp32:16, *fp32:16, i32", "*fp16, *fp16, i32"]
    seen = []
    there = ct.compile(
        kernel, signatures, arch=["sm_80", "sm_90a"], executor=pool, progress=seen.append, **more
    )
    here = ct.compile(kernel, signatures, arch=["sm_80", "sm_90a"], **more)
    assert there.variants == here.variants
    assert len(here.variants) == 8 == len(seen)
    for variant in here.variants:
        assert there.read(variant.image) == here.read(variant.image)


def test_triton_failures_name_the_variant(kernels, pool):
    import culaunch.triton as ct

    with pytest.raises(cl.CompileError, match="variant 0 of wrong for sm_80: Triton cannot") as one:
        ct.compile(kernels.wrong, "*fp32", arch="sm_80", constants={"BLOCK": 1}, executor=pool)
    assert "no_such_thing" in one.value.log


def test_functions_are_traced_by_workers_first(kernels, pool):
    seen = []
    kinds = kernels.sized.specialize(executor=pool, progress=seen.append)
    assert len(kinds) == 2
    assert [(now.done, now.total, now.failed) for now in seen] == [(1, 2, 0), (2, 2, 0)]


def test_what_workers_cannot_find_is_refused_here(kernels, pool):
    import culaunch.triton as ct

    @cl.function
    def inner(x: cl.Array("float32", "n")):
        return cl.empty_like(x)

    with pytest.raises(
        ValueError, match=r"the function must be at the top level of a module.*<locals>"
    ):
        inner.specialize(executor=pool)
    # Another object is under its name.
    other = type(kernels.double)(kernels.tuned.fn.fn)
    with pytest.raises(ValueError, match="is not the kernel to compile"):
        ct.compile(other, "*fp32, *fp32, i32", arch="sm_80", constants={"BLOCK": 64}, executor=pool)
    from culaunch._farm.by_name import find

    with pytest.raises(ValueError, match="this worker cannot find farmed_kernels"):
        find("farmed_kernels", "none")


def test_mistakes(kernels):
    import culaunch.triton as ct

    with pytest.raises(TypeError, match="executor must have a method submit"):
        kernels.sized.specialize(executor=3)
    with pytest.raises(TypeError, match="executor must have a method submit"):
        ct.compile(kernels.double, "*fp32, *fp32, i32", arch="sm_80", constants={"BLOCK": 64},
                   executor=3)  # fmt: skip
    with pytest.raises(TypeError, match="progress must be"):
        kernels.sized.specialize(progress=3)
    assert concurrent.futures  # the executor of a thread works, too
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        assert len(kernels.sized.specialize(executor=threads)) == 2
