"""The thread that sends entries to a server: what it does when the server takes none."""

import threading

from culaunch._cache.remote import writer


def test_what_does_not_fit_is_dropped_and_said_once(monkeypatch):
    monkeypatch.setattr(writer, "_MOST_WAITING", 10)
    taken, sent, said = threading.Event(), [], []

    def write(name, data):
        assert taken.wait(60)
        sent.append(name)

    waiting = writer.Writer(write, lambda: said.append("too many"))
    for name in ("first", "lost", "lost too", "lost as well"):
        waiting.put(name, b"x" * 8)
    assert said == ["too many"]
    taken.set()
    assert waiting.flush(60)
    waiting.put("last", b"x" * 8)
    assert waiting.flush(60)
    assert sent == ["first", "last"]
    assert said == ["too many"]
