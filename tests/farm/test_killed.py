"""Workers that are killed in the middle: what fails then, and what does not."""

import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from deadly import number_or_death

from culaunch._farm import run, task

pytestmark = pytest.mark.slow

HERE = str(Path(__file__).parent)


def tasks(count, **more):
    return [
        task.Task(number_or_death, {"number": number, **more}, f"task {number}")
        for number in range(count)
    ]


def test_a_pool_whose_worker_is_killed():
    """It is broken then, and takes nothing any more: all that was not answered fails, at once."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        found = run.run_all(tasks(100, deadly=60), pool, return_exceptions=True)
        assert found[:8] == list(range(8))
        assert isinstance(found[60], BrokenProcessPool)
        for number, one in enumerate(found):
            if one != number:
                assert isinstance(one, BrokenProcessPool)
                assert f"task {number}" in "".join(getattr(one, "__notes__", [])) + str(one)
    with (
        concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool,
        pytest.raises(BrokenProcessPool),
    ):
        run.run_all(tasks(100, deadly=60), pool)


DASK = """
import sys
from distributed import Client, LocalCluster
sys.path.insert(0, sys.argv[1])
from deadly import number_or_death
from culaunch._farm import run, task

def main():
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=sys.argv[2],
        host="127.0.0.1"
    ) as cluster, Client(cluster) as client:
        client.run(sys.path.insert, 0, sys.argv[1])
        marker = sys.argv[2] + "/marker"
        tasks = [
            task.Task(number_or_death, {"number": n, "deadly": 60, "marker": marker}, f"task {n}")
            for n in range(100)
        ]
        print("FOUND", run.run_all(tasks, client.get_executor()) == list(range(100)))

if __name__ == "__main__":
    main()
"""


@pytest.mark.needs("distributed")
def test_dask_works_on_without_the_worker(tmp_path):
    """The scheduler gives what it had to another."""
    program = tmp_path / "program.py"
    program.write_text(DASK)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), HERE, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, "PYTHONPATH": HERE},  # of the worker that comes in the other's place
    )
    assert "FOUND True" in done.stdout, done.stdout + done.stderr
    assert (tmp_path / "marker").exists()
