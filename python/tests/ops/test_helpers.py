"""Small public functions; the numbers are TensorFlow 2.21's."""

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1


def test_fingerprints():
    rows = [[122, 64, 59, 169, 136, 60, 55, 83], [52, 252, 224, 38, 64, 226, 155, 60]]
    assert tf.fingerprint([["a", "b"], ["c", "d"]]).numpy().tolist() == rows
    for data, method in (("a", "farmhash64"), (["a"], "other")):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.fingerprint(data, method)


def test_blocks_of_space():
    image = tf.reshape(tf.range(16), [1, 4, 4, 1])
    blocks = tf.space_to_batch_nd(image, [2, 2], [[0, 0], [2, 0]])
    assert blocks[..., 0].numpy()[0].tolist() == [[0, 0, 2], [0, 8, 10]]
    paddings, crops = tf.required_space_to_batch_paddings(
        [5, 7], [2, 3], [[1, 0], [0, 2]]
    )
    assert paddings.numpy().tolist() == [[1, 0], [0, 2]]
    assert crops.numpy().tolist() == [[0, 0], [0, 0]]
    with tf.Graph().as_default(), v1.Session() as session:
        shape = v1.placeholder(tf.int32, [2])
        made = tf.required_space_to_batch_paddings(shape, [2, 3])
        paddings, crops = session.run(made, {shape: [5, 7]})
    assert paddings.tolist() == crops.tolist() == [[0, 1], [0, 2]]


def test_bins_of_a_histogram():
    values = [[-1.0, 0.0, 1.5], [2.0, 5.0, 15.0]]
    bins = tf.histogram_fixed_width_bins(values, [0.0, 5.0], nbins=5)
    assert bins.numpy().tolist() == [[0, 0, 1], [2, 4, 4]] and bins.dtype == tf.int32


def test_windows_of_volumes():
    volume = tf.reshape(tf.range(27.0), [1, 3, 3, 3, 1])
    ones = [1] * 5
    patches = tf.extract_volume_patches(volume, [1, 2, 2, 2, 1], ones, "VALID")
    expected = [0, 1, 3, 4, 9, 10, 12, 13]
    assert patches.numpy()[0, 0, 0, 0].tolist() == expected


def test_files_matched_once(tmp_path):
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text("")
    pattern = str(tmp_path / "*.txt")
    files = [str(tmp_path / name).encode() for name in ("a.txt", "b.txt")]
    assert tf.io.match_filenames_once(pattern).numpy().tolist() == files
    with tf.Graph().as_default(), v1.Session() as session:
        variable = v1.train.match_filenames_once(pattern, name="files")
        assert v1.local_variables() == [variable]
        session.run(v1.local_variables_initializer())
        assert session.run(variable).tolist() == files


class Matrix:
    """What a LinearOperator says of a matrix."""

    dtype = tf.float32
    is_positive_definite = True

    def __init__(self, rows, is_self_adjoint=True):
        self.rows, self.is_self_adjoint = tf.constant(rows), is_self_adjoint

    def matvec(self, x):
        return tf.linalg.matvec(self.rows, x)


def test_conjugate_gradients():
    solve = tf.linalg.experimental.conjugate_gradient
    rows = [[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]]
    sides = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], np.float32)
    state = solve(Matrix(rows), sides)
    exact = np.linalg.solve(np.array(rows), sides.T).T
    np.testing.assert_allclose(state.x, exact, atol=1e-4)
    assert state.i == 3 and state.gamma.shape == (2,)
    short = solve(Matrix(rows), tf.constant(sides[0]), x=tf.ones([3]), max_iter=2)
    assert short.i == 2
    np.testing.assert_allclose(short.x, [0.1456, 0.4329, 0.517], atol=1e-4)
    with pytest.raises(ValueError, match="self-adjoint, positive definite"):
        solve(Matrix(rows, is_self_adjoint=False), sides)


def test_images_of_tensorflow_1():
    image = tf.reshape(tf.range(12.0), [3, 4, 1])
    padded = v1.image.resize_image_with_pad(image, 5, 3, method=1, align_corners=True)
    rows = [[0, 0, 0], [0, 2, 3], [8, 10, 11], [0, 0, 0], [0, 0, 0]]
    assert padded.numpy()[..., 0].tolist() == rows
    square = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    glimpse = v1.image.extract_glimpse(square, [2, 2], [[0.0, 0.0]])
    assert glimpse.numpy()[0, ..., 0].tolist() == [[5, 6], [9, 10]]
    boxes = v1.image.sample_distorted_bounding_box(
        [10, 10, 3], [[[0.0, 0.0, 1.0, 1.0]]], seed=1, seed2=2
    )
    assert [b.shape for b in boxes] == [(3,), (3,), (1, 1, 4)]


def test_convolutions_in_few_bits():
    image = tf.bitcast(np.arange(16, dtype=np.uint8).reshape(1, 4, 4, 1), tf.quint8)
    ones = tf.bitcast(np.ones((2, 2, 1, 1), np.uint8), tf.quint8)
    out, low, high = v1.nn.quantized_conv2d(
        image, ones, 0.0, 255.0, 0.0, 255.0, [1, 1, 1, 1], "VALID"
    )
    rows = [[10, 14, 18], [26, 30, 34], [42, 46, 50]]
    assert tf.bitcast(out, tf.int32).numpy()[0, ..., 0].tolist() == rows
    assert out.dtype == tf.qint32 and low < 0 < high


def test_raw_ops_of_tensorflow_1():
    assert v1.raw_ops.Add(x=1, y=2) == 3 and v1.raw_ops.Add is tf.raw_ops.Add


def test_types_for_annotations():
    import typing

    assert tf.Tensor in typing.get_args(tf.types.experimental.TensorLike)


def test_graphs_in_files(tmp_path):
    with tf.Graph().as_default() as graph:
        tf.constant(1, name="one")
    path = tf.io.write_graph(graph, str(tmp_path / "made"), "g.pbtxt")
    with open(path) as f:
        assert 'name: "one"' in f.read()
