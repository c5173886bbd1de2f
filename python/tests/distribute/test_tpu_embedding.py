"""tf.tpu.experimental.embedding: tables that are looked up where there is no TPU."""

import types

import headrace as tf
import numpy as np
import pytest

embedding = tf.tpu.experimental.embedding
SPARSE = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 3])
RAGGED = tf.RaggedTensor.from_row_lengths([1, 2, 3, 4], [3, 1])


def _features():
    """Of a table of ones, summed, and of one of the numbers from 0 to 11."""
    ones = tf.initializers.Constant(1.0)
    first = embedding.TableConfig(6, 2, ones, combiner="sum", name="a")
    numbers = lambda shape, dtype=None: tf.reshape(tf.range(12.0), (6, 2))
    second = embedding.TableConfig(6, 2, numbers, name="b")
    return {
        "x": embedding.FeatureConfig(first, name="x"),
        "y": embedding.FeatureConfig(second, name="y"),
        "z": embedding.FeatureConfig(second, name="z", max_sequence_length=2),
    }


def _made(optimizer=None):
    return embedding.TPUEmbeddingForServing(_features(), optimizer)


def test_lookups():
    found = _made()({"x": SPARSE, "y": RAGGED, "z": RAGGED})
    assert found["x"].numpy().tolist() == [[2.0, 2.0], [1.0, 1.0]]
    assert found["y"].numpy().tolist() == [[4.0, 5.0], [8.0, 9.0]]
    sequence = [[[2.0, 3.0], [4.0, 5.0]], [[8.0, 9.0], [0.0, 0.0]]]
    assert found["z"].numpy().tolist() == sequence
    found = _made()({"y": tf.constant([[1], [2]]), "z": SPARSE})
    assert found["y"].numpy().tolist() == [[[2.0, 3.0]], [[4.0, 5.0]]]
    sequence = [[[2.0, 3.0], [4.0, 5.0]], [[6.0, 7.0], [0.0, 0.0]]]
    assert found["z"].numpy().tolist() == sequence
    weights = RAGGED.with_values(tf.constant([1.0, 2.0, 3.0, 1.0]))
    found = _made()({"y": RAGGED}, weights={"y": weights})["y"]
    np.testing.assert_allclose(found, [[14 / 3, 17 / 3], [8.0, 9.0]], rtol=1e-6)
    ids = tf.SparseTensor([[0, 0], [2, 0]], [-1, 2], [3, 1])
    found = _made()({"y": ids})["y"]
    assert found.numpy().tolist() == [[0.0, 0.0], [0.0, 0.0], [4.0, 5.0]]
    traced = tf.function(lambda x: made({"z": x}))
    made = _made()
    assert traced(SPARSE)["z"].numpy().tolist() == sequence


def test_gradients():
    made = _made()
    table = list(made.embedding_tables.values())[1]
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(made({"y": SPARSE})["y"])
    gradient = tf.convert_to_tensor(tape.gradient(total, table)).numpy()
    assert gradient[:, 0].tolist() == [0.0, 0.5, 0.5, 1.0, 0.0, 0.0]


WRONG = [
    (
        {"x": SPARSE, "q": SPARSE},
        None,
        "Inputs are not a subset of feature_config. Inp",
    ),
    ({"x": 3.5}, None, "Input x is type <class 'float'>. Tensor, SparseTensor or Ragg"),
    ({"z": tf.constant([1])}, None, "Feature z is a sequence feature but a dense tens"),
    ({"z": SPARSE}, {"z": SPARSE}, "Weight specified for z, but this is a sequence fe"),
    ({"x": tf.constant([1])}, {"x": SPARSE}, "Weight specified for x, but input is de"),
    ({"x": SPARSE}, {"y": SPARSE}, "The two structures don't have the same nested str"),
]


@pytest.mark.parametrize("inputs, weights, message", WRONG)
def test_wrong_lookups(inputs, weights, message):
    with pytest.raises(ValueError) as caught:
        _made()(inputs, weights)
    assert str(caught.value).startswith(message)


SLOTS = [
    (embedding.SGD(0.1), {}),
    (None, {}),
    (embedding.Adagrad(0.1), {"accumulators": 0.1}),
    (embedding.Adam(0.1), {"momenta": 0.0, "velocities": 0.0}),
    (embedding.FTRL(0.1), {"accumulators": 0.1, "linears": 0.0}),
    (embedding.AdagradMomentum(0.1), {"accumulators": 0.0, "momenta": 0.0}),
]


@pytest.mark.parametrize("optimizer, slots", SLOTS)
def test_slots(optimizer, slots):
    variables = _made(optimizer).variables["a"]
    assert list(variables) == [*slots, "parameters"]
    for name, value in slots.items():
        slot = variables[name]
        assert (slot.name, slot.shape, slot.trainable) == (f"a/{name}:0", (6, 2), False)
        np.testing.assert_allclose(slot, np.full((6, 2), value), rtol=1e-6)
    assert variables["parameters"].name == "a:0"
    assert variables["parameters"].trainable


def test_tables_are_saved(tmp_path):
    made = _made(embedding.Adagrad())
    made.build()
    made.variables["a"]["accumulators"].assign(tf.fill((6, 2), 7.0))
    path = tf.train.Checkpoint(m=made).save(str(tmp_path / "c"))
    other = embedding.TPUEmbedding(_features(), embedding.Adagrad())
    tf.train.Checkpoint(m=other).restore(path)
    other.build()
    assert float(other._variables["a"]["accumulators"][0, 0]) == 7.0


def test_what_needs_a_tpu():
    features = _features()
    for cls in (embedding.TPUEmbeddingV0, embedding.TPUEmbeddingV2):
        with pytest.raises(
            RuntimeError, match="should be created under TPUStrategy but"
        ):
            cls(features, embedding.SGD())
    made = embedding.TPUEmbedding(features, embedding.SGD())
    assert len(made.embedding_tables) == 2
    calls = {
        "enqueue": lambda: made.enqueue({}),
        "dequeue": made.dequeue,
        "apply_gradients": lambda: made.apply_gradients({}),
    }
    for name, call in calls.items():
        with pytest.raises(RuntimeError) as caught:
            call()
        assert str(caught.value) == (
            f"{name} is not valid when TPUEmbedding object is not created under a "
            "TPUStrategy."
        )
    with pytest.raises(ValueError, match="Please provide a TPU Name to connect to"):
        tf.tpu.experimental.initialize_tpu_system()
    with pytest.raises(ValueError, match="Please provide a TPU Name to connect to"):
        tf.tpu.experimental.shutdown_tpu_system()
    kinds = tf.tpu.experimental.HardwareFeature.EmbeddingFeature
    assert kinds.V2.value == "V2"
    message = types.SimpleNamespace(embedding_feature=1)
    found = tf.tpu.experimental.HardwareFeature(message).embedding_feature
    assert found is kinds.V1
    assert tf.tpu.XLAOptions().use_spmd_for_xla_partitioning
    with pytest.raises(AttributeError, match="there are no TPUs"):
        _ = tf.tpu.experimental.Topology


def test_configurations():
    adagrad = embedding.Adagrad(0.1, clipvalue=2.0)
    assert (adagrad.clip_gradient_min, adagrad.clip_gradient_max) == (-2.0, 2.0)
    assert embedding.SGD(clipvalue=(1, 2)).clip_gradient_max == 2
    assert embedding.Adagrad(0.1) == embedding.Adagrad(0.1) != embedding.Adagrad(0.2)
    assert hash(embedding.Adam()) == hash(embedding.Adam())
    adam = embedding.Adam(0.1)
    assert (adam.learning_rate, adam.beta_2, adam.lazy_adam) == (0.1, 0.999, True)
    table = embedding.TableConfig(8, 4, name="t")
    assert repr(table) == (
        "TableConfig(vocabulary_size=8, dim=4, initializer=None, optimizer=None, "
        "combiner='mean', name='t', quantization_config=None)"
    )
    values = table.initializer([200, 4]).numpy()
    assert 0.3 < values.std() < 0.6
    assert abs(values).max() <= 1.0
    feature = embedding.FeatureConfig(table, output_shape=3)
    assert feature.output_shape == [3]
    config = embedding.QuantizationConfig(8, 0.0, 1.0)
    assert repr(config) == "QuantizationConfig(num_buckets=8, lower=0.0, upper=1.0)"
    rows = embedding.RowIdInitializer(3)([2, 2], tf.float32)
    assert rows.numpy().tolist() == [[3.0, 3.0], [4.0, 4.0]]
    assert embedding.SparseCoreEmbeddingConfig().max_ids_per_chip_per_sample == 64


REFUSED = [
    (lambda: embedding.Adam(slot_variable_creation_fn=3), "Argument `slot_variable_cr"),
    (lambda: embedding.Adam(beta_1=1.5), "Argument `beta_1` must be >= 0 and < 1. Rec"),
    (lambda: embedding.Adam(epsilon=-1.0), "epsilon must be positive; got -1.0."),
    (
        lambda: embedding.Adagrad(use_gradient_accumulation=False, clipvalue=1.0),
        "When `use_gradient_accumulation` is False, gradient clipping cannot be used",
    ),
    (
        lambda: embedding.FTRL(initial_accumulator_value=-1),
        "Argument `initial_accumulator_value` must be a positive float. Received: -1",
    ),
    (lambda: embedding.AdagradMomentum(exponent=-1.0), "Adagrad momentum: Preconditio"),
    (
        lambda: embedding.TableConfig(1.5, 4),
        "Argument `vocabulary_size` must be an int",
    ),
    (
        lambda: embedding.TableConfig(1, 0),
        "Argument `dim` (embedding dimension) must b",
    ),
    (lambda: embedding.TableConfig(1, 4, 3), "Argument `initializer` must be a callab"),
    (
        lambda: embedding.TableConfig(1, 4, combiner="x"),
        "String argument `combiner` mu",
    ),
    (lambda: embedding.FeatureConfig(3), "Argument `table` has invalid type <class 'i"),
    (
        lambda: embedding.FeatureConfig(embedding.TableConfig(1, 4), -1),
        "Argument `max_sequence_length` must be an int and must be >= 0. Received: -1",
    ),
    (
        lambda: embedding.TPUEmbeddingForServing(
            [
                embedding.FeatureConfig(embedding.TableConfig(n, 4, name="a"))
                for n in (1, 2)
            ],
            None,
        ),
        "Tables must have a unique name. Multiple tables with name a found.",
    ),
]


@pytest.mark.parametrize("make, message", REFUSED)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value).startswith(message)
