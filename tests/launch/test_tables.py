"""What ``print`` and notebooks show: the tables that the command prints."""

import pytest

import culaunch as cl

SOURCE = """
namespace ns { __constant__ float table[4]; }
template <class T> __global__ void scale(T* y, T a, int n) { y[n] *= a * ns::table[n]; }
extern "C" __global__ void plain(float* y) { *y = 1; }
"""
NAMES = ("scale<float>", "scale<int>")


@pytest.fixture
def module(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    return cl.load(cl.compile(SOURCE, names=NAMES))


def test_an_inspection_is_its_table(module):
    found = cl.inspect(module.image)
    assert str(module) == str(found)
    assert "\n  ns::table     16" in str(found)
    assert str(found.images[0]) in str(found)
    assert str(found.images[0].kernels[0]).startswith("kernel")
    for one in (module, found, found.images[0], found.images[0].kernels[0]):
        assert one._repr_html_().startswith("<pre>")
    assert "scale&lt;float&gt;" in found._repr_html_()
    assert "KernelInfo(" not in str(found)


def test_a_kernel_is_what_it_takes(module):
    text = str(module["scale<float>"])
    assert text.splitlines()[:2] == [
        "void scale<float>(float*, float, int)",
        "(float*, float, int)",
    ]
    assert text.splitlines()[2].startswith("kernel")
    assert module["plain"]._repr_html_().startswith("<pre>plain")


def test_numbers_are_a_column(module):
    attributes = module["plain"].attributes()
    lines = str(attributes).splitlines()
    assert lines[0] == f"max_threads_per_block  {attributes.max_threads_per_block}"
    assert len(lines) == 8
    occupancy = module["plain"].occupancy(64)
    assert str(occupancy).splitlines()[0] == f"active_blocks    {occupancy.active_blocks}"
    assert occupancy._repr_html_().startswith("<pre>active_blocks")


def test_a_module_is_a_collection_of_its_kernels(module):
    assert len(module) == len(module.kernels) == len(list(module)) == 3
    assert all(kernel in module for kernel in module)
    assert all(kernel.name in module for kernel in module)
    other = cl.load(module.image)
    assert module["plain"] not in other
    assert 3 not in module
    assert module["scale<float>"] is module[module.image.names["scale<float>"]]
    keys = module._ipython_key_completions_()
    assert sorted(keys) == ["plain", "scale<float>", "scale<int>"]
    assert [module[key] for key in keys] == list(module)
    assert module["plain"]._ipython_key_completions_() == []


def test_a_key_that_would_be_several_kernels_is_the_name_in_the_image(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    text = "__global__ void f(int* x) { *x = 1; }\n__global__ void f(float* x) { *x = 1; }\n"
    module = cl.load(cl.compile(text))
    assert sorted(module._ipython_key_completions_()) == ["_Z1fPf", "_Z1fPi"]
