"""tf.vectorized_map: programs of rows, compared with the same row by row."""

import headrace as tf
import numpy as np
import pytest

X = np.array([[0.5, -1.0], [2.0, 3.0], [4.0, 0.25]], np.float32)
W = np.array([[1.0, -2.0, 0.5], [0.25, 1.5, -1.0]], np.float32)


def _each(f, x):
    values = [f(row) for row in tf.unstack(tf.constant(x))]
    flat = zip(*(tf.nest.flatten(v) for v in values))
    return tf.nest.pack_sequence_as(values[0], [np.stack(column) for column in flat])


def _compare(given, wanted):
    tf.nest.assert_same_structure(given, wanted)
    for a, b in zip(tf.nest.flatten(given), tf.nest.flatten(wanted)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@tf.function
def _scaled(v, k):
    return v * k, tf.reduce_sum(v)


@tf.function
def _powers(r, n):
    array = tf.TensorArray(tf.float32, size=n)
    for i in tf.range(n):
        array = array.write(i, r ** tf.cast(i, tf.float32))
    return array.stack(), array.gather([n - 1, 0]), array.concat()


@tf.function
def _picked(r):
    array = tf.TensorArray(tf.float32, size=3)
    first = tf.cast(r[0] > 1, tf.int32)
    array = array.unstack(tf.stack([r, r * 2, r * 3]))
    array = array.write(first, r * 9)
    return array.read(first + 1), array.gather([first, 2]), array.stack()


@tf.function
def _until(r):
    n = 0
    while tf.reduce_sum(r) < 20.0:
        r = r * 2.0 + 1.0
        n += 1
    return r, n


@tf.function
def _shared_turns(r):
    total = r
    for i in tf.range(3):
        total = total * tf.cast(i, tf.float32) + r
    return total


def _branches(r):
    return tf.cond(
        r[0] > 1, lambda: (r * 2, tf.reduce_max(r)), lambda: (-r, tf.constant(7.0))
    )


def _shared_branch(r):
    return tf.cond(tf.constant(W)[0, 0] > 0, lambda: (r, 1.0), lambda: (W[:, 0], 2.0))


def _case(r):
    at = tf.cast(r[0], tf.int32)
    return tf.switch_case(at, [lambda: r, lambda: r * 2, lambda: r * 3, lambda: -r])


def _network(r):
    h = tf.nn.relu(tf.matmul(r[None], W))
    h = tf.nn.softmax(tf.linalg.matvec(tf.constant(W), h[0]) + r)
    return {"p": h, "n": tf.norm(h), "shape": tf.shape(h)}


def _strange_sizes(r):
    return tf.reduce_sum(tf.boolean_mask(r, r > 0)), tf.size(tf.where(r > 1))


PROGRAMS = {
    "network": _network,
    "call": lambda r: _scaled(r, 3.0),
    "powers": lambda r: _powers(r, 4),
    "picked": _picked,
    "until": _until,
    "shared turns": _shared_turns,
    "branches": _branches,
    "shared branch": _shared_branch,
    "case": _case,
    "gathers": lambda r: (
        tf.gather(W, tf.cast(r > 1, tf.int32)),
        tf.gather(r, [1, 0, 1]),
        tf.gather(W, tf.cast(r > 1, tf.int32), axis=1),
        tf.constant(W)[tf.cast(r[0] > 1, tf.int32)],
        r[tf.cast(r[0] < 1, tf.int32) - 1],
    ),
    "layout": lambda r: (
        tf.reshape(r, [-1, 1]),
        tf.transpose(tf.tile(r[None], [3, 1])),
        tf.stack([r, W[:, 0]], axis=1),
        tf.concat([r, [1.0]], 0),
        tf.pad(r, [[1, 2]]),
        tf.split(r, 2),
        r[::-1],
        r[..., tf.newaxis],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f = PROGRAMS[name]
    wanted = _each(f, X)
    run = lambda x: tf.vectorized_map(f, x, fallback_to_while_loop=False)
    _compare(run(tf.constant(X)), wanted)
    _compare(tf.function(run)(tf.constant(X)), wanted)
    unknown = tf.function(run, input_signature=[tf.TensorSpec([None, 2])])
    _compare(unknown(tf.constant(X)), wanted)
    for made, each in zip(
        tf.nest.flatten(unknown(tf.zeros([0, 2]))), tf.nest.flatten(wanted)
    ):
        assert made.shape.as_list() == [0, *each.shape[1:]]


@pytest.mark.parametrize(
    "name", [n for n in PROGRAMS if n not in ("until", "layout", "picked")]
)
def test_gradients_go_through(name):
    f = PROGRAMS[name]
    w = tf.Variable([2.0, 3.0])

    def of_rows(rows):
        with tf.GradientTape() as tape:
            x = tf.constant(X)
            tape.watch(x)
            flat = tf.nest.flatten(rows(lambda r: f(r * w), x))
            total = sum(tf.reduce_sum(tf.cast(y, tf.float32) ** 2) for y in flat)
        return tape.gradient(total, [x, w])

    def one_by_one(f, x):
        values = [tf.nest.flatten(f(row)) for row in tf.unstack(x)]
        return [tf.stack(column) for column in zip(*values)]

    wanted = of_rows(one_by_one)
    for run in (of_rows, tf.function(of_rows)):
        given = run(lambda f, x: tf.vectorized_map(f, x, False))
        for a, b in zip(given, wanted):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_what_loops_gives_the_same(caplog):
    for f in (
        _strange_sizes,
        lambda r: tf.strings.as_string(r),
        lambda r: tf.py_function(lambda v: v * 2, [r], tf.float32),
        lambda r: tf.reduce_sum(tf.range(tf.cast(tf.abs(r[0]), tf.int32))),
    ):
        given, wanted = tf.vectorized_map(f, tf.constant(X)), _each(f, X)
        for a, b in zip(tf.nest.flatten(given), tf.nest.flatten(wanted)):
            np.testing.assert_array_equal(a, b)


def test_the_function_is_traced_once():
    calls = []

    def f(r):
        calls.append(1)
        return r

    tf.vectorized_map(f, tf.constant(X))
    assert calls == [1]


def test_what_does_not_depend_on_the_row_is_done_once():
    seen = []

    def once():
        seen.append(1)
        return np.float32(2)

    @tf.function
    def run(x):
        factor = tf.py_function(once, [], tf.float32)
        return tf.vectorized_map(lambda r: r * factor, x)

    np.testing.assert_array_equal(run(tf.constant(X)), X * 2)
    assert seen == [1]


def test_random_numbers_differ_by_row():
    drawn = tf.vectorized_map(
        lambda r: (
            tf.random.uniform([3]),
            tf.random.shuffle(tf.range(50)),
            tf.random.stateless_uniform([3], [1, 2]),
        ),
        tf.constant(X),
    )
    uniform, shuffled, stateless = [x.numpy() for x in drawn]
    assert len({tuple(row) for row in uniform}) == 3
    assert len({tuple(row) for row in shuffled}) == 3
    assert len({tuple(row) for row in stateless}) == 1


def test_changes_happen_row_by_row():
    v = tf.Variable(1.0)
    given = tf.vectorized_map(
        lambda r: (v.assign_add(r[0]), v.read_value()), tf.constant(X), warn=False
    )
    np.testing.assert_allclose(given[0], [1.5, 3.5, 7.5])
    np.testing.assert_allclose(given[1], [1.5, 3.5, 7.5])
    with pytest.raises(ValueError, match="defined for AssignAddVariableOp"):
        tf.vectorized_map(lambda r: v.assign_add(r[0]), tf.constant(X), False)
    assert float(v) == 7.5


def test_tensors_of_one_row_serve_all():
    given = tf.vectorized_map(lambda p: p[0] + p[1], (X, np.ones([1, 2], np.float32)))
    np.testing.assert_array_equal(given, X + 1)
    with pytest.raises(ValueError, match="not compatible"):
        tf.vectorized_map(lambda p: p[0] + p[1], (X, np.ones([2, 2], np.float32)))
    with pytest.raises(ValueError, match="1\\+ dimensional"):
        tf.vectorized_map(lambda r: r, tf.constant(1.0))
    with pytest.raises(ValueError, match="elems"):
        tf.vectorized_map(lambda r: r, [])


def test_refusals_name_the_operation():
    call = lambda f: tf.vectorized_map(f, tf.constant(X), False)
    with pytest.raises(ValueError, match="No pfor vectorization defined for Where\n"):
        call(lambda r: tf.where(r > 0))
    with pytest.raises(ValueError, match="fallback_to_while_loop option to pfor"):
        call(lambda r: tf.where(r > 0))
    wanted = "Input \"dims\" of op 'Fill' expected to be loop invariant"
    with pytest.raises(ValueError, match=wanted):
        call(lambda r: tf.fill([tf.cast(r[1], tf.int32)], 1.0))


def test_rows_of_other_sizes_are_refused_when_they_run():
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        tf.vectorized_map(
            lambda r: tf.range(tf.cast(tf.abs(r[0]), tf.int32)), X, warn=False
        )


def test_composites():
    ragged = tf.ragged.constant([[[1.0, 2], [3.0]], [[5.0]], []])
    given = tf.vectorized_map(lambda r: r * 2, ragged, warn=False)
    assert given.to_list() == [[[2.0, 4.0], [6.0]], [[10.0]], []]
    given = tf.vectorized_map(tf.sparse.from_dense, np.eye(2), warn=False)
    np.testing.assert_array_equal(tf.sparse.to_dense(given), np.eye(2))


def test_lists_of_rows():
    """Tensor lists by their own ops, told apart by row or shared."""
    raw = tf.raw_ops
    of_dtype = {"element_dtype": tf.float32}
    scalar = np.zeros([0], np.int32)

    def stack(made):
        return raw.TensorListStack(
            input_handle=made, element_shape=scalar, num_elements=-1, **of_dtype
        )

    def item(made, i):
        return raw.TensorListGetItem(
            input_handle=made, index=i, element_shape=scalar, **of_dtype
        )

    def f(r):
        own = tf.cast(r[0] > 1, tf.int32)
        made = raw.TensorListFromTensor(tensor=r, element_shape=scalar)
        made = raw.TensorListPushBack(input_handle=made, tensor=r[1] * 5)
        at = tf.stack([own, 2])
        got = [
            raw.TensorListGather(
                input_handle=made, indices=i, element_shape=scalar, **of_dtype
            )
            for i in ([1, 0], at)
        ]
        popped, last = raw.TensorListPopBack(
            input_handle=made, element_shape=scalar, **of_dtype
        )
        longer = raw.TensorListResize(input_handle=popped, size=3)
        scattered = raw.TensorListScatter(
            tensor=r, indices=[2, 0], element_shape=scalar
        )
        more = raw.TensorListScatterV2(
            tensor=r, indices=[1, 3], element_shape=scalar, num_elements=5
        )
        into = raw.TensorListScatterIntoExistingList(
            input_handle=more, tensor=r * 2, indices=[0, 1]
        )
        shared = raw.TensorListFromTensor(tensor=[1.0, 2.0, 3.0], element_shape=scalar)
        own_item = raw.TensorListSetItem(input_handle=shared, index=own, item=r[0])
        rows = raw.TensorListFromTensor(
            tensor=tf.stack([[r, r], [-r, r]]), element_shape=[2, 2]
        )
        joined, lengths = raw.TensorListConcatV2(
            input_handle=rows,
            element_shape=[2, 2],
            leading_dims=np.zeros([0], np.int64),
            **of_dtype,
        )
        twice = raw.AddN(inputs=[own_item, shared])
        return [
            *got,
            *(last, item(made, own), item(shared, own), joined, lengths),
            *map(stack, (made, popped, scattered, into, own_item, twice)),
            stack(raw.ZerosLike(x=made)),
            *(raw.TensorListLength(input_handle=x) for x in (made, longer, shared)),
            raw.TensorListElementShape(input_handle=rows, shape_type=tf.int32),
        ]

    wanted = _each(f, X)
    run = lambda x: tf.vectorized_map(f, x, fallback_to_while_loop=False)
    _compare(run(tf.constant(X)), wanted)
    _compare(tf.function(run)(tf.constant(X)), wanted)


def test_checks_and_prints(capfd):
    def f(r):
        tf.debugging.assert_greater(r[0], -5.0)
        tf.print(r[0])
        return r

    tf.vectorized_map(f, tf.constant(X), fallback_to_while_loop=False)
    assert capfd.readouterr().err.split() == ["0.5", "2", "4"]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.vectorized_map(f, tf.constant(-9 * X))
    told = lambda r: tf.raw_ops.Print(input=r, data=[r[0]], message="row ")
    np.testing.assert_array_equal(tf.vectorized_map(told, tf.constant(X), False), X)
    assert capfd.readouterr().err.count("row ") == 3


def test_results_that_are_no_rows():
    x = tf.constant(X)
    assert tf.vectorized_map(lambda r: {"a": None, "b": [r, 3]}, x)["a"] is None
    for f in (
        tf.data.Dataset.from_tensors,
        lambda r: iter(tf.data.Dataset.from_tensors(1)),
        tf.experimental.Optional.from_value,
    ):
        with pytest.raises(ValueError, match="BatchableTypeSpec"):
            tf.vectorized_map(f, x)
    with pytest.raises(TypeError, match="returned the operation"):
        tf.vectorized_map(lambda r: (tf.print(r[:0]), r), x)
    with pytest.raises(TypeError):
        tf.vectorized_map(lambda r: object(), x)


def test_gradients_of_lookups_are_results():
    table = tf.Variable(tf.ones([4, 2]))

    def of_row(row):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, tf.cast(row, tf.int32)) ** 2)
        return tape.gradient(y, table)

    given = tf.vectorized_map(of_row, tf.constant([[0.0, 1], [1, 1], [3, 0]]))
    wanted = np.zeros([3, 4, 2])
    for i, rows in enumerate([[0, 1], [1, 1], [3, 0]]):
        for at in rows:
            wanted[i, at] += 2
    np.testing.assert_array_equal(given, wanted)
