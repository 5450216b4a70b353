"""How many tasks go at a time, and how many together."""

import concurrent.futures
import dataclasses
import pickle
import threading
import time

import pytest

import culaunch as cl
from culaunch._farm import in_flight, message, run, task, worker


def double(number):
    if number < 0:
        raise ValueError("number is negative")
    return 2 * number


def tasks(numbers, call=double, **more):
    return [task.Task(call, {"number": number}, f"task {number}", **more) for number in numbers]


class OneWorker(concurrent.futures.Executor):
    """It does at once what it is given; `change` may change a message before."""

    def __init__(self, change=lambda sent: sent):
        self.messages = []
        self.change = change

    def submit(self, fn, data):
        future = concurrent.futures.Future()
        sent = self.change(pickle.loads(data) if isinstance(data, bytes) else data)
        self.messages.append(sent)
        try:
            future.set_result(fn(pickle.dumps(sent)))
        except Exception as error:  # noqa: BLE001
            future.set_exception(error)
        return future

    @property
    def numbers(self):
        return [[item[1]["number"] for item in sent.items] for sent in self.messages]


def test_quick_tasks_go_together():
    executor, seen = OneWorker(), []
    found = run.run_all(tasks(range(500)), executor, progress=seen.append)
    assert found == [2 * number for number in range(500)]
    assert [now.done for now in seen] == list(range(1, 501)), "and each is counted"
    assert [len(one) for one in executor.numbers[:8]] == [1] * 8, "nothing is known before"
    assert len(executor.messages) < 100
    assert max(map(len, executor.numbers)) <= 32


def test_what_a_worker_has_no_time_for_is_sent_again():
    executor = OneWorker(lambda sent: dataclasses.replace(sent, seconds=0.0))
    assert run.run_all(tasks(range(100)), executor) == [2 * number for number in range(100)]
    assert max(map(len, executor.numbers)) > 1
    begun = [one[0] for one in executor.numbers]
    assert sorted(begun) == list(range(100)), "each once, as the first of its message"


def test_a_worker_begins_nothing_after_its_time_or_a_failure():
    def answers(numbers, **more):
        sent = message.Message.of(
            tasks(numbers), whole=False, **{"seconds": 9.0, "stops": True, **more}
        )
        return [type(one) for one in worker.perform(sent).answers]

    assert answers([1, -1, 2]) == [message.Done, message.Failed, message.NotBegun]
    assert answers([1, -1, 2], stops=False) == [message.Done, message.Failed, message.Done]
    assert answers([1, 2, 3], seconds=0.0) == [message.Done, message.NotBegun, message.NotBegun]


class Elsewhere:
    """An executor with one worker, which is not known to see this process's memory."""

    def __init__(self, threads):
        self.threads = threads

    def submit(self, fn, data):
        assert isinstance(data, bytes)
        return self.threads.submit(fn, data)


begun = []


def noted(number):
    begun.append(number)
    time.sleep(0.002)
    return double(number)


def test_a_failure_among_others_stops_the_rest():
    begun.clear()
    numbers = [*range(60), -1, *range(61, 600)]
    with (
        concurrent.futures.ThreadPoolExecutor(1) as threads,
        pytest.raises(ValueError, match="task -1: number is negative"),
    ):
        run.run_all(tasks(numbers, noted), Elsewhere(threads))
    assert 61 <= len(begun) < 400
    found = run.run_all(tasks(numbers), OneWorker(), return_exceptions=True)
    assert [one for one in found if isinstance(one, Exception)] == [found[60]]
    assert str(found[60]) == "task -1: number is negative"


def test_a_message_that_ends_its_worker_fails_for_one_task_alone():
    def killed(sent):
        if any(item[1]["number"] == 77 for item in sent.items):
            raise ConnectionResetError("the worker was killed")
        return sent

    class Fragile(OneWorker):
        def submit(self, fn, data):
            try:
                return super().submit(fn, data)
            except ConnectionResetError as error:
                future = concurrent.futures.Future()
                future.set_exception(error)
                return future

    executor = Fragile(killed)
    found = run.run_all(tasks(range(200)), executor, return_exceptions=True)
    assert [number for number, one in enumerate(found) if one != 2 * number] == [77]
    assert isinstance(found[77], ConnectionResetError)
    assert len(executor.messages) < 150


def test_nothing_is_sent_again_after_the_end():
    """Not what a worker lacked, either."""
    away = concurrent.futures.ThreadPoolExecutor(1)
    sent = []

    class Forgetful:
        def submit(self, fn, data):
            sent.append(pickle.loads(data))
            return away.submit(fn, data)

    def stop(now):
        raise KeyboardInterrupt

    shared = {"text": task.Shared("a digest of nothing else", "x" * 100)}
    some = tasks([1]) + tasks(range(100), double_and, shared=shared)
    with away, pytest.raises(KeyboardInterrupt):
        run.run_all(some, Forgetful(), progress=stop)
    assert len(sent) == 8


def double_and(number, text):
    return 2 * number


def test_more_is_sent_while_nobody_answers(monkeypatch):
    """Thousands of workers with long work must not wait for the answers of the first eight."""
    monkeypatch.setattr(in_flight, "_PATIENCE", 0.01)
    monkeypatch.setattr(in_flight, "_PATIENCE_AT_FIRST", 0.02)
    all_there = threading.Event()
    futures = []

    class Many:
        def submit(self, fn, data):
            future = concurrent.futures.Future()
            futures.append((future, fn, data))
            if len(futures) == 200:
                all_there.set()
            return future

    def answer():
        assert all_there.wait(20)
        for future, fn, data in futures:
            future.set_result(fn(data))

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        assert run.run_all(tasks(range(200)), Many()) == [2 * number for number in range(200)]
    finally:
        all_there.set()
        thread.join()


class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


def test_how_a_message_travels():
    def packed(**arguments):
        one = task.Task(double, {"number": 1, **arguments}, "x")
        return message.Message.of([one], whole=False, seconds=1.0, stops=True).packed()

    one, other = packed(), packed()
    assert isinstance(one, bytes)
    assert one != other, "an engine that knows calls by their arguments takes it for another"
    as_it_is = packed(lock=threading.Lock())
    assert isinstance(as_it_is, message.Message), "the engine may know how to send it"
    assert isinstance(packed(text="__main__.Class"), message.Message)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_in_a_worker_ends_the_run(kind):
    class Interrupted:
        def submit(self, fn, data):
            future = concurrent.futures.Future()
            future.set_exception(kind("stopped"))
            return future

    with pytest.raises(kind, match="stopped"):
        run.run_all(tasks([1, 2]), Interrupted(), return_exceptions=True)


def test_answers_that_nobody_can_read():
    class Liar:
        def submit(self, fn, data):
            future = concurrent.futures.Future()
            future.set_result(self.answer)
            return future

    liar = Liar()
    for answer, error in ((b"nothing", pickle.UnpicklingError), (3, cl.CulaunchError)):
        liar.answer = answer
        (found,) = run.run_all(tasks([1]), liar, return_exceptions=True)
        assert isinstance(found, error)
