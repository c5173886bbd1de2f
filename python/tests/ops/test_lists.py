"""Lists of tensors, stacked and cut: what is known of them, and what is refused."""

import headrace as tf
import pytest

raw = tf.raw_ops


def _list(values, element_shape=()):
    return raw.TensorListFromTensor(
        tensor=tf.constant(values),
        element_shape=tf.constant(element_shape, tf.int32),
    )


def _in_graph(build):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(build())


def test_stacked_lists_keep_what_is_known():
    """Their elements' type and shape are looked at when the next operation is made."""

    def both(values):
        return tf.stack([_list(values), _list(values)])

    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="wrong element dtype"):
            raw.TensorListPushBackBatch(
                input_handles=both([1.0]), tensor=tf.constant([2, 3])
            )
        with pytest.raises(ValueError, match="input_b.type != element_dtype"):
            raw.TensorListConcatLists(
                input_a=both([1.0]), input_b=both([1]), element_dtype=tf.float32
            )
        rows = tf.stack([_list([[1.0]], [1])] * 2)
        with pytest.raises(ValueError, match="equal rank"):
            raw.TensorListConcatLists(
                input_a=both([1.0]), input_b=rows, element_dtype=tf.float32
            )
    with pytest.raises(tf.errors.InvalidArgumentError, match="list at index 0"):
        _in_graph(
            lambda: raw.TensorListPushBackBatch(
                input_handles=both([1.0]), tensor=tf.constant([[2.0], [3.0]])
            )
        )


def test_lists_of_unlike_elements_are_stacked():
    """What they do not share is not known any more, and no error."""

    def first():
        stacked = tf.stack([_list([1.0, 2.0]), _list([[3.0]], [1])])
        return raw.TensorListStack(
            input_handle=tf.unstack(stacked)[0],
            element_shape=tf.constant(-1),
            element_dtype=tf.float32,
        )

    assert _in_graph(first).tolist() == [1.0, 2.0]
    assert first().numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("traced", [False, True])
def test_splits_say_both_shapes(traced):
    def split(tensor, element_shape):
        return raw.TensorListSplit(
            tensor=tensor, element_shape=element_shape, lengths=[1, 1]
        )

    run = tf.function(split) if traced else split
    for tensor, shape, text in [
        ([[1.0], [2.0]], [3, 3, 3], r"tensor shape \[2,1\] is not compatible with"),
        (1.0, [2], r"at least a vector, but saw shape: \[\]"),
    ]:
        with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=text):
            run(tf.constant(tensor), shape)


def _set(*values):
    handle = raw.TensorListReserve(
        element_shape=-1, num_elements=len(values), element_dtype=tf.float32
    )
    for i, value in enumerate(values):
        if value is not None:
            handle = raw.TensorListSetItem(
                input_handle=handle, index=i, item=tf.constant(value)
            )
    return handle


@pytest.mark.parametrize("shape", [-1, [-1], [1]])
def test_elements_of_several_shapes_are_not_stacked(shape):
    for values, message in (
        ([[1.0], [1.0, 2.0]], r"shapes during merge: \[1\] vs. \[2\]"),
        ([None, [1.0], [[2.0]]], "ranks during merge: 1 vs. 2"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            raw.TensorListStack(
                input_handle=_set(*values),
                element_shape=tf.constant(shape),
                element_dtype=tf.float32,
            )


def test_what_was_never_set_is_like_all_that_were():
    """One that is unlike the others leaves no shape for zeros."""
    item = lambda handle, shape: raw.TensorListGetItem(
        input_handle=handle,
        index=0,
        element_shape=tf.constant(shape),
        element_dtype=tf.float32,
    )
    assert item(_set(None, [1.0, 2.0]), -1).numpy().tolist() == [0.0, 0.0]
    mixed = _set(None, [1.0], [1.0, 2.0])
    assert item(mixed, [1]).numpy().tolist() == [0.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="shapes during merge"):
        item(mixed, -1)
