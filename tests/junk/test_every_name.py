"""The sweep is whole: every public name that takes arguments is called with junk somewhere."""

import inspect

import pytest
from test_junk_of_elementwise import CALLS as ELEMENTWISE
from test_junk_of_elementwise import OPERATIONS
from test_junk_of_functions import CALLS as FUNCTIONS
from test_junk_of_functions import METHODS
from test_junk_of_graphs import CALLS as GRAPHS
from test_junk_of_launches import CALLS as LAUNCHES
from test_junk_of_triton import CALLS as TRITON
from test_junk_of_verbs import CALLS as VERBS

import culaunch as cl

# Records that culaunch returns, bases and parts of what is swept, and what takes any value at all.
NOT_CALLED = {
    "CacheInfo", "ImageInfo", "Inspection", "KernelAttributes", "KernelInfo", "Occupancy",
    "ParameterInfo", "DType", "Lowered", "Value", "ElementwiseFunction", "Headers.__contains__",
    "Headers.__getitem__", "Headers.get", "KernelSet",
    # Only on a GPU; matplotlib's own.
    "Surface.copy_from", "Surface.numpy", "Timing", "Timing.plot", "Profile.plot", "Tuning.plot",
    "Diagnosis", "Component", "VariableInfo", "GraphStatus",
    # Refuse every call.
    "GraphCondition", "GraphBody.enable",
    # A profile, and the records that it lists.
    "KernelProfile", "Launch", "Profile",
    # What load_report returns.
    "LoadedImage", "LoadReport",
    # What tune returns, and what it asks of a table.
    "Trial", "Tuning", "TunedConfigs.add", "TunedConfigs.earlier_choice", "TunedConfigs.keep",
    "TunedConfigs.plot",
    "TunedConfigs.resume", "TunedConfigs.__getitem__",
    "TunedConfigs.__contains__",
    # What compile_many tells; Ray's own options.
    "Progress", "RayExecutor", "RayExecutor.map", "RayExecutor.shutdown", "RayExecutor.submit",
    # Of functions: what a library returns, and what its functions ask of themselves.
    "Library", "LoadedFunction", "TorchOperator", "JaxOperator",
    "JaxOperator.__call__",
    # Of culaunch.triton.install: what it and report return.
    "Installation", "KernelReport", "Report",
}  # fmt: skip
HERE = {
    **VERBS, **LAUNCHES, **GRAPHS, **ELEMENTWISE, **TRITON, **FUNCTIONS, **METHODS,
    "torch_op": None, "jax_op": None,
    **dict.fromkeys(OPERATIONS),
}  # fmt: skip


def callables(face, prefix=""):
    for name in face.__all__:
        member = getattr(face, name)
        if inspect.ismodule(member) or (
            inspect.isclass(member) and issubclass(member, BaseException)
        ):
            continue
        if inspect.isclass(member):
            yield prefix + name, member
            for method in methods_of(member):
                is_called = method in ("__call__", "__getitem__", "__contains__")
                if (is_called or method[0] != "_") and callable(getattr(member, method)):
                    yield f"{prefix}{name}.{method}", getattr(member, method)
        elif callable(member):
            yield prefix + name, member


def methods_of(owner):
    """List the names in a class, and in its bases up to a public or native one."""
    public = {getattr(face, name) for face in FACES.values() for name in face.__all__}
    names = {}
    for one in owner.__mro__:
        if one is not owner and (one in public or not one.__module__.startswith("culaunch._")):
            break
        if one is owner or one.__module__ != "culaunch._core":
            names |= dict.fromkeys(vars(one))
    return names


def takes_arguments(function):
    try:
        names = set(inspect.signature(function).parameters)
    except ValueError:  # of the extension
        return True
    return bool(names - {"self", "cls"})


FACES = {
    "": cl,
    **{
        name: member
        for name in cl.__all__
        if inspect.ismodule(member := getattr(cl, name)) and name != "triton"
    },
}


@pytest.mark.parametrize("module", FACES)
def test_every_public_name_is_called_with_junk(module):
    assert not_called(FACES[module], "testing." if module == "testing" else "") == []


def not_called(face, prefix):
    return [
        name
        for name, function in callables(face, prefix)
        if takes_arguments(function)
        and not {name, name.replace(".__call__", "()"), name.replace(".__call__", "")} & HERE.keys()
        and name.partition(".")[0] not in NOT_CALLED
        and name not in NOT_CALLED
    ]


@pytest.mark.needs("triton", "torch")
def test_every_name_for_triton_is_called_with_junk():
    import culaunch.triton

    assert not_called(culaunch.triton, "") == []
