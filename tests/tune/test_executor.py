"""``tune`` with an executor: workers compile what is then measured here."""

import concurrent.futures
import multiprocessing
import sys
from pathlib import Path

import numpy as np
import pytest

import culaunch as cl
from culaunch._compile import compilation

pytestmark = [pytest.mark.slow, pytest.mark.needs("numpy", "nvrtc")]


@pytest.fixture
def fill(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    monkeypatch.delitem(sys.modules, "tuned_elsewhere", raising=False)
    import tuned_elsewhere

    with cl.testing.use_driver("emulator"):
        yield tuned_elsewhere.fill


def test_workers_compile_what_is_measured_here(fill, monkeypatch):
    built = []
    build = compilation._build
    monkeypatch.setattr(compilation, "_build", lambda *a: built.append(a) or build(*a))
    y = cl.to_device(np.zeros(64, np.float32))
    configs = [
        {"what": "2", "threads": 32},
        {"what": "sqrtf(y[i] + 2) + 3", "threads": 32},
        {"what": "no_such_thing", "threads": 32},
    ]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        found = cl.tuning.tune(fill, configs, [y], executor=pool)
        assert found.best == configs[0]
    errors = [type(trial.error) for trial in found.trials]
    assert errors == [type(None), type(None), cl.CompileError]
    # The failed one is not in the cache; the others were found there.
    assert len(built) == 1
    assert cl.cache.Cache().info().entries == 2


def test_mistakes(fill):
    y = cl.to_device(np.zeros(64, np.float32))
    configs = [{"what": "1"}, {"what": "2"}]
    with pytest.raises(TypeError, match="executor must have a method submit"):
        cl.tuning.tune(fill, configs, [y], executor=3)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        with pytest.raises(TypeError, match=r"executor must be given only for a cl\.function"):
            cl.tuning.tune(lambda y, what: None, configs, [y], executor=threads)
        local = cl.function(lambda y, what="1": None)
        with pytest.raises(ValueError, match="must be at the top level of a module"):
            cl.tuning.tune(local, configs, [y], executor=threads)
