"""Elements that hold others: TensorArrays, datasets, batches of datasets."""

import headrace as tf
import pytest

Dataset = tf.data.Dataset


def _listed(x):
    if isinstance(x, Dataset):
        return [_listed(e) for e in x]
    if isinstance(x, tuple):
        return [_listed(e) for e in x]
    return (x.stack() if isinstance(x, tf.TensorArray) else x).numpy().tolist()


def _array(x):
    array = tf.TensorArray(tf.float32, size=2, element_shape=[])
    return array.write(0, tf.cast(x, tf.float32)).write(1, 5.0)


def _arrays():
    return Dataset.range(3).map(_array)


_ARRAYS = [[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]]


@pytest.mark.parametrize(
    "change, want",
    [
        (lambda d: d, _ARRAYS),
        (
            lambda d: d.map(lambda a: a.write(1, a.read(0) * 2.0)),
            [[0, 0], [1, 2], [2, 4]],
        ),
        (lambda d: d.map(lambda a: a.stack()), _ARRAYS),
        (lambda d: d.filter(lambda a: a.read(0) > 0.5), _ARRAYS[1:]),
        (lambda d: d.cache().prefetch(1).skip(1).repeat(2), _ARRAYS[1:] * 2),
        (
            lambda d: Dataset.zip((d, Dataset.range(2))),
            [[_ARRAYS[0], 0], [_ARRAYS[1], 1]],
        ),
        (lambda d: d.window(2), [_ARRAYS[:2], _ARRAYS[2:]]),
        (
            lambda d: d.flat_map(lambda a: Dataset.from_tensor_slices(a.stack())),
            sum(_ARRAYS, []),
        ),
    ],
)
def test_arrays_are_elements(change, want):
    assert _listed(change(_arrays())) == want


def test_arrays_of_eager_code_and_what_is_known_of_them():
    spec = tf.TensorArraySpec([], tf.float32)
    assert _arrays().element_spec == iter(_arrays()).element_spec == spec
    held = Dataset.from_tensors((1, _array(7.0)))
    assert _listed(held) == [[1, [7.0, 5.0]]]
    array = next(iter(_arrays()))
    assert isinstance(array, tf.TensorArray)
    assert (array.dtype, array.element_shape) == (tf.float32, tf.TensorShape([]))
    total = _arrays().reduce(
        tf.constant(0.0), lambda s, a: s + tf.reduce_sum(a.stack())
    )
    assert total.numpy() == 18.0
    optional = iter(_arrays()).get_next_as_optional().get_value()
    assert _listed(optional) == _ARRAYS[0]
    read = tf.function(lambda a: a.stack(), input_signature=[spec])
    assert _listed(read(array)) == _ARRAYS[0]
    # A place that was never set stays so.
    holes = tf.TensorArray(tf.int32, size=3, element_shape=[]).write(1, 4)
    assert _listed(Dataset.from_tensors(holes)) == [[0, 4, 0]]


def test_arrays_are_not_batched():
    for change in (
        lambda d: d.batch(2),
        lambda d: d.unbatch(),
        lambda d: d.padded_batch(2),
        lambda d: Dataset.from_tensor_slices(_array(1.0)),
    ):
        with pytest.raises(TypeError):
            change(_arrays())


_WINDOWS = [[0, 1, 2], [3, 4, 5], [6]]


def _windows():
    return Dataset.range(7).window(3)


_INT = tf.TensorSpec([], tf.int64)


@pytest.mark.parametrize(
    "change, want",
    [
        (lambda d: d.batch(2).unbatch(), _WINDOWS),
        (lambda d: d.batch(2, drop_remainder=True).unbatch(), _WINDOWS[:2]),
        (lambda d: d.batch(2, num_parallel_calls=2).unbatch(), _WINDOWS),
        (lambda d: d.batch(1).batch(3).unbatch().unbatch(), _WINDOWS),
        (lambda d: d.batch(3).rebatch(1).unbatch(), _WINDOWS),
        (lambda d: d.batch(2).map(lambda b: b).prefetch(1).unbatch(), _WINDOWS),
        (
            lambda d: d.batch(2).unbatch().flat_map(lambda w: w.batch(2)),
            [[0, 1], [2], [3, 4], [5], [6]],
        ),
        (
            lambda d: Dataset.zip((d, Dataset.range(3))).batch(2).unbatch(),
            [[w, i] for i, w in enumerate(_WINDOWS)],
        ),
        (
            lambda d: Dataset.from_tensor_slices([Dataset.range(2), Dataset.range(1)]),
            [[0, 1], [0]],
        ),
    ],
)
def test_batches_of_datasets(change, want):
    assert _listed(change(_windows())) == want


def test_what_is_known_of_batches_of_datasets():
    batches = _windows().batch(2)
    assert batches.element_spec == tf.data.DatasetSpec(_INT, [None])
    assert batches.element_spec == iter(batches).element_spec
    whole = _windows().batch(2, drop_remainder=True)
    assert whole.element_spec == tf.data.DatasetSpec(_INT, [2])
    assert batches.batch(2).element_spec == tf.data.DatasetSpec(_INT, [None, None])
    assert batches.unbatch().element_spec == tf.data.DatasetSpec(_INT)
    assert [b.shape.as_list() for b in batches] == [[2], [1]]
    assert next(iter(batches)).element_spec == _INT
    assert int(batches.cardinality()) == 2
    legacy = tf.compat.v1.data
    for f in (
        legacy.get_output_types,
        legacy.get_output_shapes,
        legacy.get_output_classes,
    ):
        assert f(batches) == batches.element_spec
    assert _listed(tf.function(_windows().batch(2).take)(1).unbatch()) == _WINDOWS[:2]
    pairs = Dataset.zip((Dataset.range(4), Dataset.range(4, 8))).window(2).batch(2)
    assert _listed(pairs.unbatch()) == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]


def test_datasets_that_do_not_fit():
    with pytest.raises(ValueError, match="Slicing dataset elements"):
        Dataset.from_tensor_slices((Dataset.range(3),))
    with pytest.raises(TypeError, match="Incompatible dataset elements"):
        Dataset.from_tensors([Dataset.range(3), Dataset.from_tensors("a")])
    with pytest.raises(AttributeError, match="DatasetBatch"):
        _windows().batch(2).map(lambda b: b.batch(2))
    uneven = _windows().batch(2).batch(2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="different shapes"):
        list(uneven)


def test_in_sessions():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        one_shot = tf.compat.v1.data.make_one_shot_iterator
        window = one_shot(_windows().batch(2).unbatch()).get_next()
        assert session.run(one_shot(window.batch(3)).get_next()).tolist() == [0, 1, 2]
        array = one_shot(_arrays()).get_next()
        assert session.run(array.stack()).tolist() == [0.0, 5.0]
