"""Names of operators, and modules that are loaded again."""

import importlib
import sys
import textwrap

import pytest

import culaunch as cl
from culaunch._torch import dispatch, unregistered

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch")]


def test_a_function_that_is_registered_again_is_the_same(scale, name):
    assert cl.frameworks.torch_op(name, scale) is cl.frameworks.torch_op(name, scale)


@pytest.mark.parametrize("is_native", [True, False])
def test_a_module_that_is_loaded_again(tmp_path, monkeypatch, name, torch, is_native, kernels):
    if not is_native:
        monkeypatch.setattr(dispatch, "_missing", lambda: "a name")
    text = """
        import culaunch as cl

        @cl.function
        def made(x, count: int = {default}):
            return cl.zeros((count, {columns}))

        op = cl.frameworks.torch_op("{name}", made)
    """
    stem = name.replace("::", "_")
    path = tmp_path / f"{stem}.py"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)

    def write(**words):
        path.write_text(textwrap.dedent(text).format(name=name, **words))
        importlib.invalidate_caches()

    write(default=1, columns=2)
    module = importlib.import_module(stem)
    first, x = module.op, torch.ones(1)
    assert first(x).shape == (1, 2)
    write(default=1, columns=3)
    module = importlib.reload(module)
    assert module.op is first
    assert first(x).shape == (1, 3)
    assert first.overload(x).shape == (1, 3)
    write(default=5, columns=3)
    with pytest.raises(
        ValueError, match=r"count=1\) -> Tensor, but made now has the schema .*count=5\)"
    ):
        importlib.reload(module)
    assert first(x).shape == (1, 3)


def test_names_that_are_none(scale, scale_in_place, name, torch):
    for wrong in ("scale", "a::b::c", "1a::b", "::b", "a::", "a.b::c", ""):
        with pytest.raises(ValueError, match="name must be 'namespace::name'"):
            cl.frameworks.torch_op(wrong, scale)
    with pytest.raises(TypeError, match="name must be a str"):
        cl.frameworks.torch_op(3, scale)
    cl.frameworks.torch_op(name, scale)
    with pytest.raises(ValueError, match=r"is the operator of .*scale\. Operators live as long"):
        cl.frameworks.torch_op(name, scale_in_place)
    with pytest.raises(ValueError, match="reserved"):
        cl.frameworks.torch_op("prim::culaunch", scale)
    library = torch.library.Library("culaunch_other", "FRAGMENT")
    library.define("there(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="has registered the operator culaunch_other::there"):
        cl.frameworks.torch_op("culaunch_other::there", scale)


def test_what_is_no_function(name):
    for wrong in (len, None, lambda x: x):
        with pytest.raises(TypeError, match=r"function must be a cl\.function"):
            cl.frameworks.torch_op(name, wrong)


def test_torch_may_be_missing(name, scale, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(cl.MissingDependencyError, match="pip install torch"):
        cl.frameworks.torch_op(name, scale)


def test_the_name_of_what_nobody_registered_is_the_same_in_every_process(scale, monkeypatch):
    def made():
        monkeypatch.setattr(unregistered, "_names", set())
        return unregistered._free_name(scale, "(Tensor x) -> Tensor")

    first = made()
    assert first == made()
    assert first.startswith("culaunch::")
    assert "scale" in first
    assert unregistered._free_name(scale, "(Tensor x) -> Tensor") == f"{first}_2"
    assert unregistered._free_name(scale, "(Tensor x) -> ()") not in (first, f"{first}_2")
