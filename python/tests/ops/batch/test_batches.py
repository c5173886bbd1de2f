"""Calls that are put together: what is refused, what is cut and filled up, errors of one
call among several, gradients."""

import threading
import time

import headrace as tf
import numpy as np
import pytest
from rows_of_batches import _RULES, together

raw = tf.raw_ops
Invalid = tf.errors.InvalidArgumentError
LONG = 10**7


def _batch(*tensors, name="refused", **more):
    given = {"grad_timeout_micros": 1, "shared_name": name} | _RULES | more
    return raw.Batch(in_tensors=[np.float32(t) for t in tensors], **given)


@pytest.mark.parametrize(
    ("tensors", "more", "text"),
    [
        (([1, 2], [1]), {}, "must have equal 0th-dimension size.\nBelow are the input"),
        ((1,), {}, "must have at least one dimension.\nBelow are the input tensors"),
        (([0] * 5,), {}, "Task size 5 is larger than maximum input batch size 4"),
        (
            ([1],),
            {"max_batch_size": 0},
            "input_batch_size_limit must be positive; was 0",
        ),
        (([1],), {"num_batch_threads": 0}, "num_batch_threads must be positive; was 0"),
        (([1],), {"batch_timeout_micros": -1}, "must be non-negative; was -1"),
        (([1],), {"allowed_batch_sizes": [2, 3]}, "must equal max_batch_size"),
        (([1],), {"allowed_batch_sizes": [4, 2]}, "monotonically increasing"),
        (([1],), {"allowed_batch_sizes": [0, 4]}, "must be positive; was 0"),
    ],
)
def test_refusals_of_batch(tensors, more, text):
    with pytest.raises(Invalid, match=text):
        _batch(*tensors, **more)


def test_unbatch_alone():
    def unbatch(tensor, index, id, name="x"):
        return raw.Unbatch(
            batched_tensor=np.float32(tensor),
            batch_index=np.int64(index),
            id=np.int64(id),
            timeout_micros=1000,
            shared_name=name,
        )

    rows = [[1], [2], [3]]
    assert unbatch(rows, [[5, 0, 1], [6, 1, 3]], 6).numpy().tolist() == [[2], [3]]
    late = "Batched data did not arrive within timeout window"
    with pytest.raises(tf.errors.DeadlineExceededError, match=late):
        unbatch(np.zeros([0, 1]), np.zeros([0, 3]), 77)
    with pytest.raises(tf.errors.DeadlineExceededError, match=late):
        unbatch(rows, [[5, 0, 1]], 6, "y")
    with pytest.raises(Invalid, match="Sum of split sizes must not exceed dim0-size"):
        unbatch(rows, [[5, 0, 1], [6, 1, 4]], 6)
    for tensor, index, id, text in (
        (rows, [[5, -1, 1]], 5, "rows from -1 to 1"),
        (rows, [[5, 2, 1]], 5, "rows from 2 to 1"),
        (1, [[5, 0, 1]], 5, "must have rows"),
        (rows, [5, 0, 1], 5, "must be a matrix of 3 columns"),
        (rows, [[5, 0]], 5, "must be a matrix of 3 columns"),
        (rows, [[5, 0, 1]], [5], "id must be a scalar"),
    ):
        with pytest.raises(Invalid, match=text):
            unbatch(tensor, index, id)


def _function(f, *captured):
    specs = [tf.TensorSpec(c.shape, c.dtype) for c in captured]
    concrete = tf.function(f).get_concrete_function(
        tf.TensorSpec([None], tf.float32), *specs
    )

    def call(rows, name="f", outputs=1, **more):
        return raw.BatchFunction(
            in_tensors=[np.float32(rows)],
            captured_tensors=list(captured),
            Tout=[tf.float32] * outputs,
            f=concrete,
            shared_name=name,
            **_RULES | more,
        )

    return call


def test_refusals_of_functions():
    for f, outputs, kind, text in (
        (
            lambda x: (x, x),
            1,
            tf.errors.InternalError,
            "Wrong number of batched output",
        ),
        (
            tf.reduce_sum,
            1,
            tf.errors.FailedPreconditionError,
            "tensor has 0 dimensions",
        ),
        (
            lambda x: x[:1],
            1,
            tf.errors.FailedPreconditionError,
            "0th dimension size: 1; batch size: 2; unbatched tasks size: 0; padding size: 0",
        ),
        (
            lambda x: tf.cast(x, tf.int32),
            1,
            Invalid,
            "is a int32 tensor, expected float",
        ),
    ):
        with pytest.raises(kind, match=text):
            _function(f)([1, 2], outputs=outputs)
    call = _function(lambda x: x)
    with pytest.raises(
        Invalid, match="must equal max_batch_size when enable_large_batch"
    ):
        call([1], allowed_batch_sizes=[2])
    with pytest.raises(Invalid, match="must be less than or equal to max_batch_size"):
        call([1], allowed_batch_sizes=[8], enable_large_batch_splitting=True)
    with pytest.raises(Invalid, match="Function takes 2 argument.s. but 1 argument"):
        raw.BatchFunction(
            in_tensors=[np.float32([1])],
            captured_tensors=[],
            Tout=[tf.float32],
            f=tf.function(lambda x, y: x).get_concrete_function(
                *[tf.TensorSpec([None], tf.float32)] * 2
            ),
            **_RULES,
        )


def test_calls_are_filled_up_and_cut():
    sizes = []

    def f(x):
        tf.py_function(lambda n: sizes.append(int(n)), [tf.size(x)], [])
        return x + 1

    call = _function(f)
    found = call([1, 2, 3], "fill", allowed_batch_sizes=[2, 4])[0]
    assert found.numpy().tolist() == [2, 3, 4]
    assert sizes == [4]
    sizes.clear()
    cut = {"enable_large_batch_splitting": True, "allowed_batch_sizes": [1, 2]}
    found = call([1, 2, 3, 4], "cut", num_batch_threads=4, **cut)[0]
    assert found.numpy().tolist() == [2, 3, 4, 5]
    assert sizes == [2, 2]
    assert call([], "none")[0].shape == [0]
    # With BATCH_DOWN the last call waits for a batch of its own.
    sizes.clear()
    down = {"batch_padding_policy": "BATCH_DOWN", "allowed_batch_sizes": [2, 4]}
    down |= {"batch_timeout_micros": 300000}
    calls = [
        lambda i=i: call([i], "down", **down)[0].numpy().tolist() for i in range(3)
    ]
    assert together(calls) == [[1], [2], [3]]
    assert sorted(sizes) == [2, 2]


def test_an_error_is_of_all_and_ends_with_them():
    def f(x):
        with tf.control_dependencies([tf.debugging.assert_less(x, 5.0)]):
            return x + 1

    call = _function(f)

    def tried(rows):
        try:
            return call(rows, "error", batch_timeout_micros=LONG)[0].numpy().tolist()
        except Invalid as error:
            return "assertion failed" in str(error)

    assert together([lambda: tried([1, 9]), lambda: tried([1, 2])]) == [True, True]
    assert together([lambda: tried([1, 2]), lambda: tried([3, 4])]) == [[2, 3], [4, 5]]


def test_tensors_that_do_not_fit_are_apart():
    concrete = tf.function(lambda x: x * 2).get_concrete_function(
        tf.TensorSpec([None, None], tf.float32)
    )

    def call(x):
        rules = _RULES | {"batch_timeout_micros": 100000}
        given = {"captured_tensors": [], "Tout": [tf.float32], "f": concrete}
        return raw.BatchFunction(in_tensors=[x], **given, **rules)[0].numpy().tolist()

    found = together([lambda: call([[1.0]]), lambda: call([[1.0, 2.0]])])
    assert found == [[[2]], [[2, 4]]]


def test_too_many_wait():
    hold, slow = threading.Event(), threading.Event()

    def f(x):
        def wait():
            slow.set()
            hold.wait(30)

        tf.py_function(wait, [], [])
        return x + 1

    call = _function(f)
    rules = {"max_enqueued_batches": 1, "batch_timeout_micros": 0}
    first = threading.Thread(target=lambda: call([1], "many", **rules))
    first.start()
    assert slow.wait(30)
    second = threading.Thread(target=lambda: call([1, 2, 3, 4], "many", **rules))
    second.start()
    end = time.monotonic() + 30
    text = ""
    try:
        while "queue" not in text and time.monotonic() < end:
            time.sleep(0.05)
            with pytest.raises(tf.errors.UnavailableError) as error:
                call([1, 2, 3, 4], "many", **rules)
            text = str(error.value)
    finally:
        hold.set()
        first.join()
        second.join()
    assert "1 batches enqueued and max_enqueued_batches is 1" in text


def test_gradients_go_through_a_batch():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 1])
        batch = raw.Batch(
            in_tensors=[x],
            grad_timeout_micros=LONG,
            allowed_batch_sizes=[3, 4],
            **_RULES | {"batch_timeout_micros": 300000},
        )
        own = raw.Unbatch(
            batched_tensor=batch.batched_tensors[0] ** 2,
            batch_index=batch.batch_index,
            id=batch.id,
            timeout_micros=LONG,
        )
        gradient = tf.gradients(own, x)[0]
        steps = [
            lambda rows=rows: session.run(gradient, {x: rows}).tolist()
            for rows in ([[7.0]], [[1.0]])
        ]
        assert together(steps) == [[[14]], [[2]]]


def test_the_public_decorator():
    traces = []

    @tf.nondifferentiable_batch_function(1, 4, LONG, allowed_batch_sizes=[2, 4])
    def f(x, y):
        traces.append(x.shape.as_list())
        return {"sum": x + tf.reduce_sum(y), "list": [y]}

    def call(rows):
        found = f(tf.constant(rows), tf.ones([len(rows), 1]))
        return found["sum"].numpy().tolist(), found["list"][0].shape.as_list()

    one, three = together([lambda: call([1.0]), lambda: call([2.0, 3.0, 4.0])])
    assert one == ([5], [1, 1])
    assert three == ([6, 7, 8], [3, 1])
    assert traces == [[None]]
    text = "supposed to be Tensors; found <tf.Variable"
    with pytest.raises(ValueError, match=text):
        f(tf.Variable([1.0]), tf.ones([1, 1]))
    with pytest.raises(Invalid, match="must have at least one dimension"):
        f(tf.constant(1.0), tf.constant(1.0))
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, tf.ones([4, 1]))["sum"]
    with pytest.raises(LookupError, match="BatchFunction"):
        tape.gradient(y, x)
