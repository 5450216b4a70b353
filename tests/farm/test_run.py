"""Tasks on an executor: sent tasks, results, cancellations."""

import concurrent.futures
import pickle
import random
import threading
import time

import pytest

import culaunch as cl
from culaunch._farm import run, task, worker


def double(number, text=""):
    if number < 0:
        raise ValueError("number is negative")
    return 2 * number + len(text)


def tasks(numbers, **more):
    return [task.Task(double, {"number": number}, f"task {number}", **more) for number in numbers]


class Away(concurrent.futures.Executor):
    """An executor whose one worker is elsewhere: everything is pickled, and nothing known there."""

    def __init__(self):
        self.sizes = []
        self.known = worker.OrderedDict()

    def submit(self, fn, /, message):
        data = pickle.dumps((fn, message))
        self.sizes.append(len(data))
        future = concurrent.futures.Future()
        fn, message = pickle.loads(data)
        here, worker._kept = worker._kept, self.known
        sender, worker.HERE = worker.HERE, b"elsewhere"
        try:
            future.set_result(pickle.loads(pickle.dumps(fn(message))))
        finally:
            worker._kept, worker.HERE = here, sender
        return future


def test_results_are_in_order():
    assert run.run_all(tasks(range(20)), Away()) == [2 * number for number in range(20)]
    assert run.run_all([], Away()) == []


def test_what_is_shared_is_sent_once_to_a_worker():
    away = Away()
    text = "x" * 1_000_000
    shared = {"text": task.Shared("digest", text)}
    found = run.run_all(tasks(range(50), shared=shared), away)
    assert found == [2 * number + len(text) for number in range(50)]
    whole = [size for size in away.sizes if size > len(text)]
    # Eight were on the way before the first answer said that the worker lacks it.
    assert len(whole) == 1
    assert max(size for size in away.sizes if size not in whole) < 600


class Several(concurrent.futures.Executor):
    """Independent workers; any of them takes the next message."""

    def __init__(self, count, order):
        self.workers = [worker.OrderedDict() for _ in range(count)]
        self.random = random.Random(order)
        self.queue = []
        self.whole = 0

    def submit(self, fn, /, message):
        future = concurrent.futures.Future()
        self.queue.append((future, fn, message))
        self.whole += len(message) > 100_000
        if len(self.queue) >= self.random.randrange(1, 9):
            self.drain()
        else:
            threading.Timer(0.005, self.drain).start()
        return future

    def drain(self):
        with LOCK:
            while self.queue:
                # The last one first, now and then, and the first one at other times.
                future, fn, message = self.queue.pop(self.random.choice((0, -1)))
                which = self.random.randrange(len(self.workers))
                here, worker._kept = worker._kept, self.workers[which]
                sender, worker.HERE = worker.HERE, b"worker%d" % which
                try:
                    reply = fn(message)
                finally:
                    worker._kept, worker.HERE = here, sender
                future.set_result(reply)


LOCK = threading.RLock()


@pytest.mark.parametrize("order", range(6))
def test_what_is_shared_gets_to_all_workers_in_any_order(order):
    several = Several(3, order)
    texts = ["x" * 200_000, "y" * 200_000]
    many = [
        task.Task(double, {"number": n}, "x", {"text": task.Shared(f"{n % 2}", texts[n % 2])})
        for n in range(60)
    ]
    assert run.run_all(many, several) == [2 * n + 200_000 for n in range(60)]
    assert several.whole <= 20


def test_a_worker_that_forgot_asks_again():
    away = Away()
    many = [
        task.Task(double, {"number": 1}, "x", {"text": task.Shared(f"{size}", "a" * size)})
        for size in (number % 40 for number in range(120))
    ]
    assert run.run_all(many, away) == [2 + number % 40 for number in range(120)]


def test_failures_come_back_by_task_with_where_they_were_raised():
    found = run.run_all(tasks([1, -1, 2, -2]), Away(), return_exceptions=True)
    assert found[::2] == [2, 4]
    assert [type(one) for one in found[1::2]] == [ValueError, ValueError]
    assert str(found[1]) == "task -1, and 1 more failed: number is negative"
    assert "in double" in str(found[1].__cause__)
    with pytest.raises(ValueError, match=r"^task -1: number is negative$"):
        run.run_all(tasks([1, 2, -1]), Away())


class TwoArguments(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def odd():
    raise TwoArguments(1, 2)


def test_an_exception_that_cannot_be_pickled_is_told_as_text():
    (found,) = run.run_all([task.Task(odd, {}, "odd")], Away(), return_exceptions=True)
    assert type(found) is cl.CulaunchError
    assert str(found) == "odd: TwoArguments: 1 and 2"
    with concurrent.futures.ThreadPoolExecutor(1) as threads, pytest.raises(TwoArguments):
        run.run_all([task.Task(odd, {}, "odd")], threads)


def test_nothing_begins_after_a_failure():
    begun = []

    def work(number):
        begun.append(number)
        if number == 3:
            raise ValueError("three")
        time.sleep(0.001)

    some = [task.Task(work, {"number": number}, f"task {number}") for number in range(500)]
    with (
        concurrent.futures.ThreadPoolExecutor(1) as threads,
        pytest.raises(ValueError, match="task 3: three"),
    ):
        run.run_all(some, threads)
    assert len(begun) < 400


def test_nothing_begins_after_the_caller_was_interrupted():
    gate = threading.Event()
    begun = []

    def work(number):
        begun.append(number)
        gate.wait(10)

    def stop(now):
        raise KeyboardInterrupt

    some = [task.Task(lambda: None, {}, "first")]
    some += [task.Task(work, {"number": number}, f"task {number}") for number in range(100)]
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        with pytest.raises(KeyboardInterrupt):
            run.run_all(some, threads, progress=stop)
        gate.set()
    assert len(begun) <= 1


class Jobs:
    """What submitit's executors are like: jobs without callbacks, whose cancel says nothing."""

    def __init__(self):
        self.cancelled = 0

    def submit(self, fn, message):
        return Job(self, fn(message))


class Job:
    def __init__(self, jobs, value):
        self._jobs = jobs
        self._value = value
        self._looks = 0

    def done(self):
        self._looks += 1
        return self._looks > 1

    def exception(self):
        return None

    def result(self):
        return self._value

    def cancel(self):
        self._jobs.cancelled += 1


def test_jobs_without_callbacks():
    jobs = Jobs()
    assert run.run_all(tasks(range(5)), jobs) == [0, 2, 4, 6, 8]
    assert jobs.cancelled == 0
    with pytest.raises(ValueError, match="task -1: number is negative"):
        run.run_all(tasks([-1, *range(5)]), jobs)
    assert jobs.cancelled > 0


def test_an_executor_that_was_shut_down():
    pool = concurrent.futures.ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(RuntimeError, match=r"task 0.*cannot schedule new futures"):
        run.run_all(tasks(range(3)), pool)
    found = run.run_all(tasks(range(3)), pool, return_exceptions=True)
    assert [type(one) for one in found] == [RuntimeError] * 3


def test_mistakes():
    for executor in (3, "pool", object()):
        with pytest.raises(TypeError, match="executor must have a method submit"):
            cl.compiling.compile_many(["__global__ void k() {}"], executor=executor)
    for progress in (3, "yes", None):
        with pytest.raises(TypeError, match="progress must be True, False or callable"):
            cl.compiling.compile_many([], progress=progress)


@pytest.mark.needs("ray")
def test_ray_takes_no_task_after_shutdown():
    executor = cl.compiling.RayExecutor()
    with pytest.raises(TypeError, match="fn must be callable"):
        executor.submit(3)
    executor.shutdown()
    with pytest.raises(RuntimeError, match="shut down"):
        executor.submit(print)
