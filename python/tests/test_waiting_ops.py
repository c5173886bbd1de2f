"""Other threads run while an op may wait, and calls of ops that never do are not held up."""

import contextlib
import sys
import threading
import time

import pytest

import headrace as tf


@contextlib.contextmanager
def _counting():
    """A list whose item grows whenever a call lets another thread of Python run."""
    turns, ended = [0], threading.Event()

    def count():
        while not ended.is_set():
            turns[0] += 1
            time.sleep(0)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)  # nobody takes the lock: it is given
    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield turns
    finally:
        ended.set()
        sys.setswitchinterval(before)
        thread.join()


def _variable_ops():
    v = tf.Variable([1.0, 2.0])
    raw, handle = tf.raw_ops, v.handle
    two = tf.constant([1.0, 1.0])
    yield lambda: raw.ReadVariableOp(resource=handle, dtype=tf.float32)
    yield lambda: raw.VarIsInitializedOp(resource=handle)
    yield lambda: raw.VariableShape(input=handle)
    yield lambda: raw.AssignVariableOp(resource=handle, value=two)
    yield lambda: raw.AssignAddVariableOp(resource=handle, value=two)
    yield lambda: raw.AssignSubVariableOp(resource=handle, value=two)


@pytest.mark.parametrize("call", list(_variable_ops()))
def test_what_never_waits_keeps_the_turn(call):
    call()
    with _counting() as turns:
        before = turns[0]
        for _ in range(100):
            call()
        assert turns[0] == before


def _waiting_ops():
    queue = tf.queue.FIFOQueue(4, [tf.float32])
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)
    v = tf.Variable([1.0, 2.0])
    raw = tf.raw_ops
    yield queue.size
    yield table.size
    yield lambda: raw.ResourceGather(resource=v.handle, indices=[0], dtype=tf.float32)


@pytest.mark.parametrize("call", list(_waiting_ops()))
def test_what_may_wait_lets_others_run(call):
    end = time.monotonic() + 30
    with _counting() as turns:
        before = turns[0]
        while turns[0] == before and time.monotonic() < end:
            call()
        assert turns[0] != before
