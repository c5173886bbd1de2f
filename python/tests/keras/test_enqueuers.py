"""Batches prepared by threads, threads that run every so often, logs that are posted. What
is asserted TensorFlow does, too."""

import http.server
import threading
import time

import headrace as tf
import numpy as np
import pytest

U = tf.keras.utils


class Tens(U.Sequence):
    ends = 0

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return i * 10

    def on_epoch_end(self):
        self.ends += 1


def until(true):
    end = time.time() + 10
    while not true() and time.time() < end:
        time.sleep(0.01)
    assert true()


def test_in_order():
    sequence = Tens()
    enqueuer = U.OrderedEnqueuer(sequence)
    assert not enqueuer.is_running()
    enqueuer.start(workers=2, max_queue_size=4)
    batches = enqueuer.get()
    assert [next(batches) for _ in range(7)] == [0, 10, 20, 0, 10, 20, 0]
    assert enqueuer.is_running()
    until(lambda: sequence.ends >= 2)
    enqueuer.stop()
    assert not enqueuer.is_running() and list(batches) == []


def test_in_a_new_order():
    enqueuer = U.OrderedEnqueuer(Tens(), shuffle=True)
    enqueuer.start()
    batches = enqueuer.get()
    assert sorted(next(batches) for _ in range(3)) == [0, 10, 20]
    enqueuer.stop()


def test_errors_of_threads_are_raised():
    class Broken(Tens):
        def __getitem__(self, i):
            raise KeyError("x")

    enqueuer = U.OrderedEnqueuer(Broken())
    enqueuer.start()
    with pytest.raises(KeyError, match="x"):
        next(enqueuer.get())
    assert not enqueuer.is_running()

    def broken():
        yield 1
        raise KeyError("y")

    enqueuer = U.GeneratorEnqueuer(broken())
    enqueuer.start()
    batches = enqueuer.get()
    assert next(batches) == 1
    with pytest.raises(KeyError, match="y"):
        next(batches)


def test_generators():
    for given, wanted in ((range(5), [0, 1, 2, 3, 4]), ([1, 2, None, 3], [1, 2, 3])):
        enqueuer = U.GeneratorEnqueuer(iter(given))
        enqueuer.start(workers=2, max_queue_size=2)
        assert list(enqueuer.get()) == wanted
        enqueuer.stop()
    with pytest.raises(
        NotImplementedError, match="use_multiprocessing is not supported"
    ):
        U.GeneratorEnqueuer(iter([1]), use_multiprocessing=True)


def test_timed_threads():
    class Counter(U.TimedThread):
        count = 0

        def on_interval(self):
            self.count += 1

    counter = Counter(0.005)
    assert not counter.is_alive()
    for _ in range(2):
        counter.start()
        before = counter.count
        until(lambda: counter.count > before + 3)  # noqa: B023
        counter.stop()
        until(lambda: not counter.is_alive())
    with Counter(0.005) as counter:
        until(lambda: counter.count > 1)
    until(lambda: not counter.is_alive())
    with pytest.raises(NotImplementedError, match="Runs every x interval seconds"):
        U.TimedThread(1).on_interval()


@pytest.fixture
def posted():
    """(URL of a server, what was posted to it)."""
    found = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            headers = self.headers
            found.append((self.path, headers["Content-Type"], text, headers.get("X-A")))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", found
        server.shutdown()


def test_logs_are_posted(posted):
    root, found = posted
    make = tf.keras.callbacks.RemoteMonitor
    logs = {"loss": np.float32(0.5), "a": 1}
    form = "application/x-www-form-urlencoded"
    text = "%7B%22epoch%22%3A+3%2C+%22loss%22%3A+0.5%2C+%22a%22%3A+1%7D"
    for given, wanted in (
        ({}, ("/publish/epoch/end/", form, f"data={text}", None)),
        ({"field": "f"}, ("/publish/epoch/end/", form, f"f={text}", None)),
        (
            {"send_as_json": True, "headers": {"X-A": "q"}, "path": "/p/"},
            ("/p/", "application/json", '{"epoch": 3, "loss": 0.5, "a": 1}', "q"),
        ),
    ):
        make(root, **given).on_epoch_end(3, logs)
        assert found.pop() == wanted
    make("http://127.0.0.1:1").on_epoch_end(0, {})
    assert found == []
