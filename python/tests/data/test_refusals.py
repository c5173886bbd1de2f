"""What datasets refuse, and in which words; values are those of TensorFlow 2.21."""

import headrace as tf
import pytest

D = tf.data.Dataset
R, ROWS, PAIRS = D.range(5), D.range(5).batch(2), D.zip(D.range(5), D.range(9))
SEQUENCE = "If shallow structure is a sequence, input must also be a sequence. Input "


def rejected(error, text, make):
    with pytest.raises(error) as caught:
        make()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "source, shapes, error, text",
    [
        (R, [2], ValueError, "The padded shape (2,) is not compatible with the shape"),
        (ROWS, [], ValueError, "padded shape () is not compatible with the shape (No"),
        (D.range(4).batch(2, True), [1], ValueError, "(1,) is not compatible"),
        (PAIRS, [2], TypeError, SEQUENCE + "has type: 'list'."),
        (PAIRS, ([],), ValueError, "Input structure has length 1, while shallow"),
        (D.zip({"u": R}), {"v": []}, ValueError, "has keys ['v'], while shallow"),
        (R, -1, ValueError, "Padded shape -1 must be a `tf.int64` vector tensor, but"),
        (R.map(lambda x: (x, None)), None, TypeError, "subclass of TensorSpec: `None"),
        (R.window(2), None, TypeError, "is not supported for datasets of datasets"),
    ],
)
def test_padded_shapes(source, shapes, error, text):
    rejected(error, text, lambda: source.padded_batch(2, padded_shapes=shapes))


@pytest.mark.parametrize(
    "source, values, error, text",
    [
        (R, 1, TypeError, "<dtype: 'int32'> does not match type <dtype: 'int64'>"),
        (R, "x", TypeError, "<dtype: 'string'> does not match type <dtype: 'int64'>"),
        (R, (0, 1), TypeError, SEQUENCE + "has type: 'ndarray'."),
        (PAIRS, (0,), ValueError, "Input structure has length 2, while shallow"),
        (R, tf.constant([1], tf.int64), ValueError, "scalars, but got (1,)."),
    ],
)
def test_padding_values(source, values, error, text):
    rejected(error, text, lambda: source.padded_batch(2, padding_values=values))


def test_rows_that_elements_do_not_have():
    rejected(ValueError, "Cannot unbatch an input with scalar comp", R.unbatch)
    rejected(ValueError, "Invalid `batch_sizes`. Expected", lambda: R.rebatch(2))
    rejected(ValueError, "only supported for rank >= 1", lambda: R.rebatch(2, True))
    rejected(ValueError, "Slicing dataset elements", lambda: R.window(2).unbatch())
    rejected(ValueError, "Dimension -1 must be >= 0", lambda: R.batch(-1, True))
    invalid = tf.errors.InvalidArgumentError
    rejected(invalid, "must be greater than zero", lambda: R.batch(-1))


def test_unique_takes_one_component():
    invalid = tf.errors.InvalidArgumentError
    rejected(invalid, "inputs with a single component.", PAIRS.unique)
    sparse = R.map(lambda x: tf.sparse.from_dense([x]))
    rejected(invalid, "inputs with a single `tf.int32`, `tf.int64`", sparse.unique)
    floats = D.range(3, output_type=tf.float32)
    rejected(TypeError, "does not support type <dtype: 'float32'> --", floats.unique)


def test_more_calls_than_datasets_open():
    make = lambda: R.interleave(D.range, cycle_length=1, num_parallel_calls=2)
    rejected(tf.errors.InvalidArgumentError, "`cycle_length` is 1", make)


def test_cardinality_is_one_element():
    rejected(
        tf.errors.FailedPreconditionError,
        "expected to contain 3 elements but contained only 1 element.",
        lambda: list(D.range(1).apply(tf.data.experimental.assert_cardinality(3))),
    )


@pytest.mark.parametrize(
    "source, size, row, error, text",
    [
        (PAIRS, 2, [4], TypeError, "types: (tf.int64, tf.int64)."),
        (ROWS, 0, [4], tf.errors.InvalidArgumentError, "greater than zero"),
        (ROWS, 2, [1], tf.errors.DataLossError, "shape ([2]) that is larger than the "),
        (ROWS, 2, [2, 2], tf.errors.InvalidArgumentError, "with the row shape ([2,2])"),
    ],
)
def test_sparse_batch(source, size, row, error, text):
    rejected(error, text, lambda: list(source.sparse_batch(size, row)))


def test_loops_over_datasets_in_traces_end():
    text = "An unusually high number of `tf.data.Iterator.get_next()` calls"

    @tf.function(autograph=False)
    def loop(dataset):
        return [x for x in dataset]

    @tf.function(autograph=False)
    def few(count):
        iterator = iter(D.range(100))
        return [next(iterator) for _ in range(count)][-1]

    rejected(ValueError, text, lambda: loop(D.range(3)))
    assert int(few(32)) == 31
    rejected(ValueError, text, lambda: few(33))
    # Eager loops go on for ever.
    assert len(list(D.range(100))) == 100


def test_what_is_no_function_or_dataset_is_named():
    numbers = tf.data.Dataset.range(3)
    with pytest.raises(
        ValueError, match="Argument `func` must be a callable. Received"
    ):
        numbers.map(3)
    with pytest.raises(TypeError, match="but encountered object of type <class 'int'>"):
        tf.data.Dataset.zip(3)
    with pytest.raises(ValueError, match="same length as `datasets` but got"):
        tf.data.Dataset.sample_from_datasets([numbers, numbers], weights=[1.0])
    with pytest.raises(ValueError, match="scalar tensor but its return type isTensor"):
        numbers.take_while(lambda x: x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="to be true. Summarized"):
        tf.data.Dataset.list_files("/nonexistent/*")
    assert repr(numbers.as_numpy_iterator()).startswith("NumpyIterator(iterator=<")
