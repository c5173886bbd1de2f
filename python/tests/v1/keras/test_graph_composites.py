"""Sparse and ragged inputs and outputs of Keras models in graphs of TensorFlow 1.

Values are what tf_keras 2.21 gave (TF_USE_LEGACY_KERAS=1) after
tf.compat.v1.disable_v2_behavior(), but where a test says that it takes more.
"""

import numpy as np
import pytest

import headrace as tf

L = tf.keras.layers
K = tf.compat.v1.keras.backend
SPARSE = tf.compat.v1.SparseTensorValue(
    np.array([[0, 0], [0, 2], [1, 3], [2, 1]]),
    np.array([1, 2, 3, 4], "float32"),
    np.array([3, 4]),
)
RAGGED = tf.compat.v1.ragged.constant_value([[1.0, 2.0], [3.0], []], dtype="float32")
ROWS = [[3], [3], [4]]  # a layer of ones of SPARSE
SUMS = [[3], [3], [0]]
ONES = np.ones((3, 1), "float32")


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


class Sum(L.Layer):
    def call(self, x):
        return tf.reduce_sum(x, axis=1, keepdims=True)


def sums(x):
    return L.Dense(1, kernel_initializer="ones")(x)


def sparse_model():
    x = tf.keras.Input((4,), sparse=True, name="s")
    return tf.keras.Model(x, sums(x))


def ragged_model():
    x = tf.keras.Input((None,), ragged=True)
    return tf.keras.Model(x, sums(Sum()(x)))


def sparse():
    return tf.SparseTensor(*SPARSE)


def ragged():
    return tf.ragged.constant([[1.0, 2.0], [3.0], []])


def batches(values):
    return tf.data.Dataset.from_tensor_slices((values, ONES)).batch(2)


def test_inputs_are_placeholders():
    x = tf.keras.Input((4,), sparse=True, name="sp")
    names = [x.indices.name, x.values.name, x.dense_shape.name]
    assert names == ["sp/indices:0", "sp/values:0", "sp/shape:0"]
    assert x.shape.as_list() == [None, 4] and K.is_sparse(x)
    assert x._keras_history.layer.name == "sp" and K.is_keras_tensor(x)
    assert tf.keras.Input((4,), 3, sparse=True).shape.as_list() == [3, 4]
    x = tf.keras.Input((None, None, 3), ragged=True)
    assert x.ragged_rank == 2 and x.shape.as_list() == [None, None, None, 3]
    assert x.flat_values.name == "Placeholder:0"
    splits = [s.name for s in x.nested_row_splits]
    assert splits == ["Placeholder_1:0", "Placeholder_2:0"]
    assert tf.keras.Input((5,), ragged=True).shape.as_list() == [None, 5]
    with pytest.raises(ValueError, match="type_spec is only supported when eager"):
        tf.keras.Input(type_spec=tf.RaggedTensorSpec([None, None]))


def test_shapes_of_layers():
    x = tf.keras.Input((None,), ragged=True)
    assert Sum()(x).shape.as_list() == [None, 1]
    assert (x * 2.0).shape.as_list() == [None, None]
    wide = L.Dense(2)(tf.keras.Input((None, 3), ragged=True))
    assert wide.shape.as_list() == [None, None, 2]


def test_tensors_of_data():
    model = sparse_model()
    assert model.predict(sparse(), steps=1).tolist() == ROWS
    with pytest.raises(ValueError, match="you should specify the `steps` argument"):
        model.predict(sparse())
    model = ragged_model()
    assert model.predict(ragged(), steps=2).tolist() == SUMS * 2
    assert model.predict_on_batch(ragged()).tolist() == SUMS
    model.compile("sgd", "mse")
    y = tf.constant(ONES)
    history = model.fit(ragged(), y, epochs=2, steps_per_epoch=1, verbose=0).history
    np.testing.assert_allclose(history["loss"], [3.0, 2.3652000427246094], rtol=1e-6)
    loss = model.evaluate(ragged(), y, steps=1, verbose=0)
    np.testing.assert_allclose(loss, 1.8877878, rtol=1e-6)


@pytest.mark.parametrize(
    "make, data, expected",
    [
        (sparse_model, sparse, (ROWS, [6.380800247192383, 3.391106605529785])),
        (ragged_model, ragged, (SUMS, [2.5407999753952026])),
    ],
)
def test_datasets(make, data, expected):
    model, rows = make(), batches(data())
    model.compile("sgd", "mse")
    assert model.predict(rows).tolist() == expected[0]
    history = model.fit(rows, epochs=len(expected[1]), verbose=0).history
    np.testing.assert_allclose(history["loss"], expected[1], rtol=1e-6)


def test_several_inputs():
    a = tf.keras.Input((4,), sparse=True, name="a")
    b = tf.keras.Input((2,), name="b")
    model = tf.keras.Model([a, b], L.add([sums(a), sums(b)]))
    model.compile("sgd", "mse", metrics=["mae"])
    x = [sparse(), tf.ones((3, 2))]
    assert model.predict(x, steps=1).tolist() == [[5], [5], [6]]
    assert model.predict({"b": x[1], "a": x[0]}, steps=1).tolist() == [[5], [5], [6]]
    rows = batches({"a": sparse(), "b": np.ones((3, 2), "float32")})
    assert model.predict(rows).tolist() == [[5], [5], [6]]
    np.testing.assert_allclose(model.evaluate(rows, verbose=0), [20.5, 4.3333335])
    history = model.fit(rows, verbose=0, validation_data=rows).history
    found = [values[0] for values in history.values()][:3]
    expected = [18.95120143890381, 4.2266669273376465, 8.522760391235352]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_layers_of_ragged_inputs():
    x = tf.keras.Input((None,), ragged=True, dtype="int64")
    y = L.Embedding(5, 2, embeddings_initializer="ones")(x)
    y = L.Lambda(lambda t: tf.reduce_sum(t, axis=1))(y)
    words = tf.ragged.constant([[1, 2], [3], []], dtype="int64")
    found = tf.keras.Model(x, y).predict(words, steps=1)
    assert found.tolist() == [[2, 2], [1, 1], [0, 0]]
    x = tf.keras.Input((None, 1), ragged=True)
    ones = dict(kernel_initializer="ones", recurrent_initializer="ones")
    model = tf.keras.Model(x, L.LSTM(2, **ones)(x))
    series = tf.ragged.constant([[[1.0], [2.0]], [[3.0]]], ragged_rank=1)
    expected = [[0.84592474] * 2, [0.7037754] * 2]
    np.testing.assert_allclose(model.predict(series, steps=1), expected, rtol=1e-6)


def test_outputs():
    x = tf.keras.Input((4,), sparse=True)
    model = tf.keras.Model(x, L.Lambda(tf.sparse.reorder)(x))
    found = model.predict(sparse(), steps=1)
    assert type(found).__name__ == "SparseTensorValue"
    assert [f.tolist() for f in found] == [v.tolist() for v in SPARSE]
    found = model.predict(sparse(), steps=2)  # there the first place is overwritten
    assert found.indices[:, 0].tolist() == [0, 0, 1, 2, 3, 3, 4, 5]
    assert list(found.dense_shape) == [6, 4] and found.values.tolist()[4:] == [
        1,
        2,
        3,
        4,
    ]
    x = tf.keras.Input((None,), ragged=True)
    model = tf.keras.Model(x, L.Lambda(lambda t: tf.concat([t, t], 1))(x))
    rows = [[1, 2, 1, 2], [3, 3], []]
    assert model.predict(ragged(), steps=1).to_list() == rows
    assert model.predict(ragged(), steps=2).to_list() == rows * 2
    x = tf.keras.Input((2,))
    model = tf.keras.Model(x, L.Lambda(tf.RaggedTensor.from_tensor)(x))
    assert model.predict(np.ones((3, 2)), batch_size=2).to_list() == [[1, 1]] * 3


def test_values_are_cut_into_batches():
    """TensorFlow takes no SparseTensorValue and no RaggedTensorValue here."""
    model = sparse_model()
    assert model.predict(SPARSE).tolist() == ROWS
    assert model.predict(SPARSE, batch_size=2).tolist() == ROWS
    assert model.predict_on_batch(SPARSE).tolist() == ROWS
    model.compile("sgd", "mse")
    order = np.array([2, 0, 1])
    turned = model.fit(SPARSE, ONES, batch_size=1, epochs=2, verbose=0).history
    assert turned["loss"][1] < turned["loss"][0]
    split = model.fit(SPARSE, ONES, verbose=0, validation_split=0.4).history
    assert split["val_loss"][0] > 0

    def forever():
        while True:
            yield SPARSE, ONES

    assert len(model.fit(forever(), steps_per_epoch=2, verbose=0).history["loss"]) == 1
    from headrace.keras.base import row_values

    taken = row_values.SparseRows(SPARSE)[order].value
    assert taken.indices.tolist() == [[0, 1], [1, 0], [1, 2], [2, 3]]
    assert taken.values.tolist() == [4, 1, 2, 3]
    deep = tf.compat.v1.ragged.constant_value([[[1.0], [2.0, 3.0]], [], [[]]])
    taken = row_values.RaggedRows(deep)[order].value
    assert taken.to_list() == [[[]], [[1], [2, 3]], []]
    model = ragged_model()
    assert model.predict(RAGGED, batch_size=2).tolist() == SUMS


def test_matrices_of_scipy():
    scipy = pytest.importorskip("scipy.sparse")
    dense = np.array([[1, 0, 2, 0], [0, 0, 0, 3], [0, 4, 0, 0]], "float32")
    model = sparse_model()
    for kind in (scipy.csr_matrix, scipy.coo_matrix):
        assert model.predict(kind(dense), batch_size=2).tolist() == ROWS


def test_models_are_called():
    model = sparse_model()
    place = tf.compat.v1.sparse_placeholder(tf.float32, [None, 4])
    y = model(place)
    assert y.shape.as_list() == [None, 1]
    assert K.get_session().run(y, {place: SPARSE}).tolist() == ROWS
    run = K.function([model.input], [model.output])
    assert run([SPARSE])[0].tolist() == ROWS
    x = tf.keras.Input((4,), sparse=True)
    assert tf.keras.Model(x, model(x)).predict(sparse(), steps=1).tolist() == ROWS
    model = ragged_model()
    place = tf.compat.v1.ragged.placeholder(tf.float32, 1, [])
    assert K.get_session().run(model(place), {place: RAGGED}).tolist() == SUMS


def test_models_are_saved(tmp_path):
    model = sparse_model()
    for name in ("a.h5", "a.keras", "a"):
        model.save(tmp_path / name)
        again = tf.keras.models.load_model(tmp_path / name)
        assert again.predict(sparse(), steps=1).tolist() == ROWS
    again = tf.keras.models.clone_model(model)
    assert again.inputs[0].shape.as_list() == [None, 4] and K.is_sparse(again.inputs[0])


def test_backend_placeholders():
    place = K.placeholder((None, 2), sparse=True, name="k")
    dense = K.to_dense(place)
    assert K.is_sparse(place) and not K.is_sparse(dense)
    value = tf.compat.v1.SparseTensorValue([[0, 1]], np.float32([3]), [2, 2])
    assert K.function([place], [dense])([value])[0].tolist() == [[0, 3], [0, 0]]
    assert K.placeholder((None, None), ragged=True).ragged_rank == 1


def test_what_is_refused():
    model = sparse_model()
    with pytest.raises(ValueError, match="s is SparseTensor.* of the type ndarray"):
        model.predict(np.ones((3, 4), "float32"))
    with pytest.raises(ValueError, match=r"expected s to have shape \(4,\)"):
        model.predict(SPARSE._replace(dense_shape=[3, 5]))
    with pytest.raises(ValueError, match="as many ragged dimensions"):
        ragged_model().predict(np.ones((3, 2), "float32"))
    x = tf.keras.Input((4,))
    with pytest.raises(ValueError, match="sparse values go to an Input with sparse"):
        tf.keras.Model(x, sums(x)).predict(sparse(), steps=1)
    model = tf.keras.Sequential([L.Dense(1)])
    with pytest.raises(
        ValueError, match="must be explicitly declared using a keras.Inp"
    ):
        model.predict(sparse(), steps=1)
