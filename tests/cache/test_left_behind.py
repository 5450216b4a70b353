"""What lies where, and who removes it: the table of the page on the cache."""

import os
import subprocess
import sys
import time

import pytest

import culaunch as cl

PROGRAM = """
import numpy as np
import culaunch as cl
source = '#include <cuda_fp16.h>\\nextern "C" __global__ void k(int* x) { *x = 1; }'
x = np.zeros(1, np.int32)
cl.load(cl.compile(source, arch="compute_80", pch=True))["k"][1, 1](x)
cl.inspect(cl.compile(source, arch="sm_80"))
assert x[0] == 1
"""


@pytest.mark.needs("nvrtc")
@pytest.mark.parametrize("end", ["", "raise ValueError", "import os; os._exit(0)"])
def test_nothing_is_written_but_the_cache(tmp_path, end):
    home, temporary, here = (tmp_path / name for name in ("home", "temporary", "here"))
    for folder in (home, temporary, here):
        folder.mkdir()
    environment = {
        **os.environ, "HOME": str(home), "TMPDIR": str(temporary), "CULAUNCH_DRIVER": "emulator",
    }  # fmt: skip
    for name in ("CULAUNCH_CACHE_DIR", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    subprocess.run(
        [sys.executable, "-c", PROGRAM + end],
        check=not end.startswith("raise"), cwd=here, env=environment, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert [str(one.relative_to(home)) for one in sorted(home.rglob("*"))][:2] == [
        ".cache", ".cache/culaunch",
    ]  # fmt: skip
    assert {one.parent.name for one in home.rglob("*") if one.is_file()} == {"culaunch"}
    assert list(here.iterdir()) == []
    left = [one.name.rpartition("-")[0] for one in temporary.iterdir()]
    assert left == (["culaunch-pch"] if "_exit" in end else [])


def test_what_killed_writers_left_in_a_shared_folder(machine, shared, image, key, tmp_path):
    folder = tmp_path / "shared" / "00"
    folder.mkdir(parents=True)
    for name, age in (("old.entry.tmp-0", 7200), ("new.entry.tmp-1", 0)):
        (folder / name).write_text("x")
        os.utime(folder / name, (time.time() - age,) * 2)
    cache = machine(shared)
    cache.store(key(1), image(1))
    assert cache.remote.flush()
    assert sorted(os.listdir(folder)) == [f"{key(1)}.entry", "new.entry.tmp-1"]


def test_a_table_has_a_lock_beside_it(tmp_path):
    table = cl.tuning.TunedConfigs(tmp_path / "t.json")
    with cl.testing.use_driver("emulator"):
        cl.tuning.tune(lambda n: None, [{"n": 1}], key=(1,), table=table)
    assert sorted(os.listdir(tmp_path)) == ["t.json", "t.json.lock"]
    assert (tmp_path / "t.json.lock").stat().st_size == 0
