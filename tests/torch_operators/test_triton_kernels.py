"""Triton kernels as operators."""

import importlib
import warnings
from functools import partial

import pytest

import culaunch as cl

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch", "triton")]
ADD = "(Tensor x, Tensor y, Tensor(a!) out, SymInt n, float factor) -> ()"


@pytest.fixture(scope="session")
def made():
    return importlib.import_module("kernels_to_register")


@pytest.fixture(scope="session")
def native():
    return importlib.import_module("culaunch.triton").native


def blocks(meta):
    return (-(-meta["n"] // meta["BLOCK"]),)


@pytest.fixture
def x(torch):
    return torch.arange(100.0)


def test_a_kernel_whose_signature_says_it(made, native, name, x, torch):
    """The arrays that it writes are read from its intermediate representation."""
    constants = {"BLOCK": 64, "num_warps": 2}
    op = cl.frameworks.torch_op(name, native(made.typed), grid=blocks, constants=constants)
    assert op.schema == f"{name}(Tensor x, Tensor(a!) out, SymInt n) -> ()"
    assert (op.mutates, op.dispatch) == (("out",), "native")
    out = torch.zeros(100)
    assert op(x, out, 90) is None
    assert torch.equal(out, torch.where(x < 90, 2 * x, 0))


@pytest.mark.slow
def test_opcheck_of_a_kernel(made, native, name, x, torch):
    op = cl.frameworks.torch_op(name, native(made.typed), grid=(2,), constants={"BLOCK": 64})
    torch.library.opcheck(op.overload, (x, torch.zeros(100), 100))


def test_a_schema_says_what_the_numbers_are(made, native, name, x, torch):
    op = cl.frameworks.torch_op(
        name, native(made.add), grid=blocks, constants={"BLOCK": 64}, schema=ADD
    )
    assert op.schema == name + ADD
    out = torch.empty(100)
    op(x, x, out, 100, 3.0)
    assert torch.equal(out, 4 * x)
    with pytest.raises(TypeError, match="pass schema="):
        cl.frameworks.torch_op(f"{name}b", native(made.add), grid=(2,), constants={"BLOCK": 64})


def test_a_tuned_kernel(made, native, name, x, torch):
    op = cl.frameworks.torch_op(name, native(made.tuned), grid=blocks)
    assert op.schema == f"{name}(Tensor x, Tensor(a!) out, SymInt n) -> ()"
    out = torch.empty(100)
    op(x, out, 100)
    assert torch.equal(out, 3 * x)


def test_a_saved_set_says_types_and_not_writes(made, name, x, torch):
    saved = importlib.import_module("culaunch.triton").compile(
        made.add, "*fp32:16, *fp32:16, *fp32:16, i32, fp32", constants={"BLOCK": 64},
        arch="sm_80", keep_ptx=True,
    )  # fmt: skip
    with pytest.raises(TypeError, match=r"whether they write x, y, out.*mutates="):
        cl.frameworks.torch_op(name, saved, grid=(2,))
    op = cl.frameworks.torch_op(
        name, saved, grid=lambda meta: (-(-meta["n"] // 64),), mutates=["out"]
    )
    assert op.schema == name + ADD
    out = torch.empty(100)
    op(x, x, out, 100, 2.0)
    assert torch.equal(out, 3 * x)


@pytest.mark.slow
def test_a_compiled_region_with_kernels(made, native, name, x, torch):
    typed = cl.frameworks.torch_op(name, native(made.typed), grid=blocks, constants={"BLOCK": 64})

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def region(x):
        out = torch.empty_like(x)
        typed(x + 1, out, x.shape[0])
        return out + 1

    for size in (100, 40):
        assert torch.equal(region(x[:size].clone()), 2 * x[:size] + 3)


def test_what_is_wrong_with_a_kernel(made, native, scale, name):
    kernel = native(made.typed)
    with pytest.raises(TypeError, match="grid is missing"):
        cl.frameworks.torch_op(name, kernel)
    with pytest.raises(
        ValueError, match="constants must not contain n, which each launch of typed passes"
    ):
        cl.frameworks.torch_op(name, kernel, grid=(1,), constants={"n": 3})
    with pytest.raises(TypeError, match="constants must have the names of parameters"):
        cl.frameworks.torch_op(name, kernel, grid=(1,), constants={3: 3})
    for word, value in (("grid", (1,)), ("constants", {}), ("mutates", [])):
        with pytest.raises(TypeError, match=f"{word} must be given only for Triton kernels"):
            cl.frameworks.torch_op(name, scale, **{word: value})
    with pytest.raises(TypeError, match=r"culaunch\.triton\.native\(kernel\)"):
        cl.frameworks.torch_op(name, made.typed)


def test_a_function_with_a_triton_kernel_needs_no_call_before(made, native, name, x, torch):
    kernel = native(made.typed)

    @cl.function
    def doubled(x):
        out = cl.empty_like(x)
        kernel[(cl.ceildiv(x.size, 64),)](x, out, x.size, BLOCK=64)
        return out

    op = cl.frameworks.torch_op(name, doubled)
    assert op.schema == f"{name}(Tensor x) -> Tensor"
    assert torch.equal(op(x), 2 * x)


@pytest.mark.parametrize("kind", ["add", "tuned"])
def test_a_plain_kernel_in_a_body_is_named_with_the_way(made, native, name, kind, x, torch):
    """Triton's own launch fails with whatever it meets first; no other arguments help."""
    native(made.typed)  # with Triton's stand-in of a driver, if it has none
    kernel = getattr(made, kind)

    @cl.function
    def plain(x):
        out = cl.empty_like(x)
        if kind == "add":
            kernel[(cl.ceildiv(x.size, 64),)](x, x, out, x.size, 1.0, BLOCK=64)
        else:
            kernel[lambda meta: (cl.ceildiv(x.size, meta["BLOCK"]),)](x, out, x.size)
        return out

    way = rf"at .*: {kind} is a plain Triton kernel.* {kind} = culaunch\.triton\.native\({kind}\)$"
    for run in (
        lambda: plain(x),
        lambda: cl.frameworks.torch_op(name, plain),
        lambda: plain.explain(x),
    ):
        with pytest.raises(TypeError, match=way):
            run()


def test_a_warning_of_a_body_that_is_an_error_arrives_as_itself(name, x, torch):
    @cl.function
    def warns(x):
        warnings.warn("the old way", FutureWarning, stacklevel=1)
        return cl.empty_like(x)

    for run in (lambda: warns(x), lambda: cl.frameworks.torch_op(name, warns)):
        with pytest.raises(FutureWarning, match=r"^the old way$"):
            run()


def test_a_warning_of_triton_that_is_an_error_arrives_as_itself(
    made, native, name, x, torch, monkeypatch
):
    source = importlib.import_module("triton.compiler").ASTSource
    make_ir = source.make_ir

    def warn(*args, **keywords):
        warnings.warn("on its way out", DeprecationWarning, stacklevel=1)
        return make_ir(*args, **keywords)

    monkeypatch.setattr(source, "make_ir", warn)
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    kernel = native(importlib.import_module("triton").jit(made.typed.fn))

    @cl.function
    def doubled(x):
        out = cl.empty_like(x)
        kernel[(cl.ceildiv(x.size, 64),)](x, out, x.size, BLOCK=64)
        return out

    compile_typed = partial(
        importlib.import_module("culaunch.triton").compile,
        made.typed, "*fp32, *fp32, i32", constants={"BLOCK": 64}, arch="sm_80",
    )  # fmt: skip
    for run in (lambda: doubled(x), lambda: cl.frameworks.torch_op(name, doubled), compile_typed):
        with pytest.raises(DeprecationWarning, match=r"^on its way out \(Triton 3.* about typed,"):
            run()
