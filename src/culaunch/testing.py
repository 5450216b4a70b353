"""Test kernels on the emulated driver, and on the GPU if there is one, with the same test.

culaunch installs a pytest plugin. A test with the fixture ``culaunch_driver`` runs once for each
driver. ``@pytest.mark.culaunch_drivers("emulator")`` selects drivers::

    def test_scale(culaunch_driver):
        x = np.arange(1000, dtype=np.float32)
        y = testing.to_driver(np.zeros_like(x))
        cl.load(cl.compile(SOURCE))["scale"][4, 256](y, testing.to_driver(x), 2.0, 1000)
        testing.assert_allclose(y, 2 * x)

Nothing here imports pytest: the functions work with any test runner.

Examples
--------
>>> from culaunch import testing
>>> a = testing.to_driver(np.arange(4, dtype=np.float32))
>>> testing.assert_allclose(a, [0, 1, 2, 3])
"""

from culaunch._testing.arrays import assert_allclose, from_driver, to_driver
from culaunch._testing.drivers import c_driver, has_gpu, use_driver
from culaunch._testing.emulator import (
    count_instructions,
    emulator_options,
    for_each_seed,
    profile,
    reset_emulator,
)
from culaunch._testing.sarif import write_sarif

__all__ = [
    "assert_allclose",
    "c_driver",
    "count_instructions",
    "emulator_options",
    "for_each_seed",
    "from_driver",
    "has_gpu",
    "profile",
    "reset_emulator",
    "to_driver",
    "use_driver",
    "write_sarif",
]


def __dir__() -> list[str]:
    return list(__all__)  # for completion, without the names imported here
