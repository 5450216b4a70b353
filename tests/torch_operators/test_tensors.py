"""Tensors of all kinds, given to functions that nobody registered and to operators."""

import pytest

import culaunch as cl

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch")]


@pytest.fixture(params=["function", "operator"])
def call(request, scale, name):
    return scale if request.param == "function" else cl.frameworks.torch_op(name, scale)


def test_tensors_without_data_give_such_ones(call, torch):
    from torch._subclasses.fake_tensor import FakeTensorMode

    meta = call(torch.ones(3, 4, device="meta"), 2.0)
    assert (meta.device.type, tuple(meta.shape)) == ("meta", (3, 4))
    with FakeTensorMode():
        fake = call(torch.ones(3, 4), 2.0)
        assert type(fake).__name__ == "FakeTensor"
        assert tuple(fake.shape) == (3, 4)
        with pytest.raises(Exception, match="x must be contiguous"):
            call(torch.ones(3, 4).t(), 2.0)


def test_export_that_traces_without_dynamo(call, torch):
    class Model(torch.nn.Module):
        def forward(self, x):
            return call(x, 2.0)

    sizes = {"x": {0: torch.export.Dim("rows")}}
    done = torch.export.export(Model(), (torch.ones(3, 4),), dynamic_shapes=sizes, strict=False)
    x = torch.randn(70, 4)
    assert torch.equal(done.module()(x), 2 * x)


def test_subclasses_of_tensors(call, torch):
    class Named(torch.Tensor):
        pass

    x = torch.arange(3.0)
    assert torch.equal(torch.Tensor(call(x.as_subclass(Named), 2.0)), 2 * x)


def test_an_operator_goes_through_subclasses_that_dispatch(scale, name, torch):
    from torch.testing._internal.two_tensor import TwoTensor

    op = cl.frameworks.torch_op(name, scale)
    x = torch.arange(3.0)
    both = op(TwoTensor(x, x + 1), 2.0)
    assert torch.equal(both.a, 2 * x)
    assert torch.equal(both.b, 2 * x + 2)
    with pytest.raises(TypeError, match=r"got a torch\.TwoTensor that has no memory"):
        scale(TwoTensor(x, x), 2.0)


def test_what_no_kernel_reads(scale, name, torch):
    op = cl.frameworks.torch_op(name, scale)
    sparse = torch.eye(3).to_sparse()
    with pytest.raises(TypeError, match=r"layout torch\.sparse_coo"):
        scale(sparse, 2.0)
    with pytest.raises(NotImplementedError, match="'SparseCPU' backend"):
        op(sparse, 2.0)


def test_a_tensor_that_no_operator_takes_either(torch):
    @cl.function
    def view(x):
        return x[1:]

    with pytest.raises(TypeError, match=r"on the meta device.*; and it is not a torch operator"):
        view(torch.ones(3, device="meta"))


def test_torch_script_has_the_operator(scale, name, torch):
    op = cl.frameworks.torch_op(name, scale)
    short = name.partition("::")[2]
    unit = torch.jit.CompilationUnit(f"""
def scripted(x: Tensor) -> Tensor:
    return torch.ops.culaunch_test.{short}(x, 2.0)
""")
    x = torch.arange(3.0)
    assert torch.equal(unit.scripted(x), op(x, 2.0))


def test_a_mesh_of_devices_wants_a_rule(scale, name, torch):
    """DTensor splits what it has a rule for, and says so of everything else."""
    dist = pytest.importorskip("torch.distributed")
    if not dist.is_available():
        pytest.skip("this torch has no torch.distributed")
    from torch.distributed.tensor import DTensor, Replicate, init_device_mesh

    op = cl.frameworks.torch_op(name, scale)
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,))
        x = DTensor.from_local(torch.arange(3.0), mesh, [Replicate()])
        with pytest.raises(NotImplementedError, match="sharding strategy"):
            op(x, 2.0)
        from torch.distributed.tensor.experimental import register_sharding

        @register_sharding(op.overload)
        def strategy(x, factor):
            return [([Replicate()], [Replicate(), None])]

        assert torch.equal(op(x, 2.0).to_local(), 2 * torch.arange(3.0))
    finally:
        dist.destroy_process_group()
