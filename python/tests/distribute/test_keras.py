"""Keras under strategies. The expected numbers are TensorFlow's with tf_keras."""

import headrace as tf
import numpy as np
import pytest

keras = tf.keras
distribute = tf.distribute

_RANDOM = np.random.RandomState(0)
X = _RANDOM.randn(22, 3).astype("float32")
Y = X @ np.array([[1.0], [2.0], [3.0]]) + _RANDOM.randn(22, 1) * 0.1
Y = Y.astype("float32")


def strategies():
    return {
        "default": distribute.get_strategy(),
        "mirrored": distribute.MirroredStrategy(["CPU:0", "CPU:1"]),
        "central": distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"]),
        "one": distribute.OneDeviceStrategy("/cpu:0"),
    }


def model(optimizer, batch_norm=False, regularizer=None):
    layers = [
        keras.layers.Dense(
            4,
            kernel_initializer="ones",
            kernel_regularizer=regularizer,
            input_shape=(3,),
        )
    ]
    if batch_norm:
        layers.append(keras.layers.BatchNormalization())
    layers.append(keras.layers.Dense(1, kernel_initializer="ones"))
    made = keras.Sequential(layers)
    squares = keras.metrics.MeanSquaredError(name="m2")
    made.compile(optimizer, "mse", metrics=["mae", squares])
    return made


def momentum():
    return keras.optimizers.legacy.SGD(0.01, momentum=0.9)


def trained(strategy, optimizer, rows=22, **how):
    with strategy.scope():
        made = model(optimizer(), **how)
    history = made.fit(
        X[:rows], Y[:rows], batch_size=8, epochs=2, shuffle=False, verbose=0
    )
    return made, history.history


SGD = {
    "loss": [11.35201, 6.83698],
    "mae": [2.54869, 2.06324],
    "m2": [11.35201, 6.83698],
}
ADAM = {"loss": [18.30501, 14.86794], "mae": [3.66513, 3.27991]}


@pytest.mark.parametrize("name", ["default", "mirrored", "central", "one"])
def test_fit_evaluate_predict(name):
    strategy = strategies()[name]
    made, history = trained(strategy, momentum)
    for key, want in SGD.items():
        np.testing.assert_allclose(history[key], want, rtol=1e-5)
    found = made.evaluate(X, Y, batch_size=8, verbose=0)
    np.testing.assert_allclose(found, [9.77388, 2.4979, 9.77388], rtol=1e-5)
    found = made.predict(X[:5], batch_size=4, verbose=0)
    want = [[0.6323], [0.1601], [-0.3784], [0.5316], [0.0069]]
    np.testing.assert_allclose(found, want, atol=1e-4)
    want = np.repeat([[0.3344], [0.6296], [0.9463]], 4, 1)
    np.testing.assert_allclose(made.get_weights()[0], want, atol=1e-4)
    assert made.distribute_strategy is strategy


@pytest.mark.parametrize(
    "optimizer, history",
    [
        (lambda: keras.optimizers.legacy.Adam(0.01), ADAM),
        (lambda: keras.optimizers.Adam(0.01), ADAM),
        (lambda: keras.optimizers.SGD(0.01, momentum=0.9), SGD),
    ],
)
def test_optimizers(optimizer, history):
    made, found = trained(strategies()["mirrored"], optimizer)
    for key, want in history.items():
        np.testing.assert_allclose(found[key], want, rtol=1e-5)
    for v in (*made.weights, *made.optimizer.variables):
        copies = [c.numpy() for c in v.values]
        np.testing.assert_array_equal(*copies)


def test_batch_normalization():
    made, history = trained(strategies()["mirrored"], momentum, batch_norm=True)
    np.testing.assert_allclose(history["loss"], [9.06691, 6.88821], rtol=1e-5)
    found = made.evaluate(X, Y, batch_size=8, verbose=0)
    np.testing.assert_allclose(found[:2], [0.99238, 0.84384], rtol=1e-4)
    mean, variance = made.layers[1].moving_mean, made.layers[1].moving_variance
    np.testing.assert_allclose(mean.numpy(), [-0.0058] * 4, atol=1e-4)
    np.testing.assert_allclose(variance.numpy(), [1.0664] * 4, atol=1e-4)
    assert mean.aggregation == tf.VariableAggregation.MEAN


def test_penalties():
    _, history = trained(strategies()["mirrored"], momentum, regularizer="l2")
    np.testing.assert_allclose(history["loss"], [11.45551, 6.91029], rtol=1e-5)
    np.testing.assert_allclose(history["m2"], [11.35019, 6.84339], rtol=1e-5)


@pytest.mark.parametrize("name", strategies())
def test_metrics_that_layers_of_described_models_add(name):
    class Added(keras.layers.Layer):
        def call(self, x):
            self.add_metric(tf.reduce_sum(x), name="s", aggregation="mean")
            return x * 2

    with strategies()[name].scope():
        x = keras.Input((3,))
        made = keras.Model(x, keras.layers.Dense(1)(Added()(x)))
        made.compile("sgd", "mse")
    history = made.fit(
        np.ones((8, 3)), np.ones((8, 1)), batch_size=4, verbose=0
    ).history
    # The mean over replicas and steps of sums over each replica's rows.
    replicas = made.distribute_strategy.num_replicas_in_sync
    assert history["s"] == [12.0 / replicas]


def test_a_replica_without_rows():
    made, history = trained(strategies()["mirrored"], momentum, rows=17)
    np.testing.assert_allclose(history["loss"], [14.49804, 7.85152], rtol=1e-5)
    found = made.evaluate(X, Y, batch_size=8, verbose=0)
    np.testing.assert_allclose(found, [10.35887, 2.56435, 10.35887], rtol=1e-5)


def test_datasets_as_data():
    strategy = strategies()["mirrored"]
    with strategy.scope():
        made = model(momentum())
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    plain = made.evaluate(dataset, verbose=0)
    divided = strategy.experimental_distribute_dataset(dataset)
    np.testing.assert_allclose(made.evaluate(divided, verbose=0), plain, rtol=1e-6)
    made.fit(divided, epochs=1, verbose=0)
    assert made.optimizer.iterations.numpy() == 3
    assert made.predict(dataset, verbose=0).shape == (22, 1)


def test_variables_and_their_names(tmp_path):
    made, _ = trained(strategies()["mirrored"], momentum)
    kinds = {type(w).__name__ for w in (*made.weights, *made.optimizer.weights)}
    assert kinds == {"MirroredVariable"}
    states = {type(w).__name__ for m in made.metrics for w in m.weights}
    assert states == {"SyncOnReadVariable"}
    path = tf.train.Checkpoint(model=made).write(str(tmp_path / "c"))
    mirrored = {n for n, _ in tf.train.list_variables(path)}
    other, _ = trained(distribute.get_strategy(), momentum)
    path = tf.train.Checkpoint(model=other).write(str(tmp_path / "d"))
    assert mirrored == {n for n, _ in tf.train.list_variables(path)}
    made.save_weights(str(tmp_path / "w"))
    other.load_weights(str(tmp_path / "w")).expect_partial()
    np.testing.assert_array_equal(
        made.predict(X, verbose=0), other.predict(X, verbose=0)
    )


@pytest.mark.parametrize("traced", [False, True])
def test_custom_loops(traced):
    strategy = strategies()["mirrored"]
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])
        optimizer = keras.optimizers.legacy.SGD(0.1)
        metric = keras.metrics.Mean()

    def step():
        context = distribute.get_replica_context()
        own = tf.cast(context.replica_id_in_sync_group, tf.float32) + 1.0
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v) * own
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        metric.update_state(loss)
        return loss, metric.result()

    run = (
        tf.function(lambda: strategy.run(step))
        if traced
        else lambda: strategy.run(step)
    )
    loss, result = run()
    assert [float(x) for x in loss.values] == [5.0, 10.0] and float(result) == 7.5
    np.testing.assert_allclose(v.numpy(), [0.4, 0.8], rtol=1e-6)
    run()
    np.testing.assert_allclose(v.values[1].numpy(), [0.16, 0.32], rtol=1e-6)
    assert optimizer.iterations.numpy() == 2
    np.testing.assert_allclose(metric.result().numpy(), 4.35, rtol=1e-6)


def test_gradients_that_are_not_summed():
    strategy = strategies()["mirrored"]
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])
        optimizer = keras.optimizers.legacy.SGD(1.0)
    optimizer.apply_gradients([(tf.constant([1.0, 1.0]), v)])
    assert v.values[1].numpy().tolist() == [0.0, 1.0]
    with strategy.scope():
        with pytest.raises(
            RuntimeError, match="cannot be called in cross-replica context"
        ):
            optimizer.apply_gradients([(tf.constant([1.0, 1.0]), v)])

    def step():
        given = [(tf.constant([1.0, 1.0]), v)]
        optimizer.apply_gradients(given, experimental_aggregate_gradients=False)

    strategy.run(step)
    assert [c.numpy().tolist() for c in v.values] == [[-1.0, 0.0]] * 2


def test_what_was_made_elsewhere():
    strategy = strategies()["mirrored"]
    layer, metric = keras.layers.Dense(1), keras.metrics.Mean()
    layer.build((None, 3))
    with strategy.scope():
        made = keras.Sequential([layer])
        with pytest.raises(
            ValueError, match="was created inside a different distribution"
        ):
            made.compile("sgd", "mse", metrics=[metric])
        made.compile("sgd", "mse")
    with pytest.raises(
        ValueError, match="must only be passed a variable created in this"
    ):
        made.fit(X, Y, verbose=0)
    with strategy.scope():
        loss = keras.losses.MeanSquaredError()
        with pytest.raises(
            ValueError, match="Please use `tf.keras.losses.Reduction.SUM`"
        ):
            loss(Y, Y)


def test_optimizers_of_version_1():
    strategy = strategies()["mirrored"]
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])
    optimizer = tf.compat.v1.train.MomentumOptimizer(0.1, 0.9)

    def step():
        context = distribute.get_replica_context()
        own = tf.cast(context.replica_id_in_sync_group, tf.float32) + 1.0
        optimizer.minimize(lambda: tf.reduce_sum(v) * own)

    for _ in range(2):
        strategy.run(step)
    want = [1.0 - 0.3 - 0.57, 2.0 - 0.3 - 0.57]
    for copy in v.values:
        np.testing.assert_allclose(copy.numpy(), want, rtol=1e-5)


@pytest.mark.parametrize("name, logged", [("default", 1.7074), ("mirrored", 1.7074)])
def test_losses_that_are_sums_are_logged_as_of_whole_batches(name, logged):
    strategy = strategies()[name]
    x = np.arange(64, dtype=np.float32).reshape(32, 2) / 64
    y = (x.sum(1, keepdims=True) > 1).astype(np.float32)
    with strategy.scope():
        made = keras.Sequential(
            [keras.layers.Dense(1, input_shape=(2,), kernel_initializer="ones")]
        )
        loss = keras.losses.MeanSquaredError(reduction="sum")
        made.compile(keras.optimizers.SGD(0.01), loss)
    history = made.fit(x, y, batch_size=8, shuffle=False, verbose=0).history
    np.testing.assert_allclose(history["loss"], [logged], atol=1e-4)
    np.testing.assert_allclose(made.get_weights()[0], [[0.8796], [0.876]], atol=1e-4)


@pytest.mark.parametrize("name", ["mirrored", "one", "central"])
def test_models_of_another_scope_are_refused(name):
    made = keras.Sequential([keras.layers.Dense(1, input_shape=(3,))])
    with strategies()[name].scope():
        with pytest.raises(ValueError, match="was not created in the distribution"):
            made.compile("sgd", "mse")


@pytest.mark.parametrize("name", ["mirrored", "central"])
def test_saved_models_with_means_over_replicas(name, tmp_path):
    """Batch normalization's variables are read as the mean over all copies."""
    made, _ = trained(strategies()[name], momentum, batch_norm=True)
    made.save(tmp_path / "model")
    loaded = keras.models.load_model(tmp_path / "model")
    for got, want in zip(loaded.get_weights(), made.get_weights()):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    want = made(X, training=False).numpy()
    np.testing.assert_allclose(loaded(X, training=False).numpy(), want, rtol=1e-5)
    served = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    (found,) = served(tf.constant(X)).values()
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-5)


def test_backups_leave_the_rest_of_their_folder(tmp_path):
    (tmp_path / "mine").write_text("kept")
    made = model(momentum())
    backup = keras.callbacks.BackupAndRestore(str(tmp_path))
    made.fit(X, Y, epochs=2, verbose=0, callbacks=[backup])
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(("rows", "batch"), [(22, 6), (4, 3)])
def test_a_replica_without_rows(rows, batch):
    """The last batch has fewer rows than there are replicas. TensorFlow's numbers."""
    strategy = distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    with strategy.scope():
        made = model(keras.optimizers.SGD(0.01), batch_norm=True)
        made.layers[1].momentum = 0.5
    made.fit(X[:rows], Y[:rows], batch_size=batch, epochs=2, shuffle=False, verbose=0)
    assert all(np.isfinite(w).all() for w in made.get_weights())
    if rows == 4:  # a row a replica has no variance: halved by each batch with rows
        variance = made.layers[1].moving_variance.numpy()
        np.testing.assert_allclose(variance, (1 / 16 + 1 / 4 + 1 / 4) / 3, rtol=1e-5)


@pytest.mark.parametrize("name", ["mirrored", "one", "central"])
@pytest.mark.parametrize("optimizers", [keras.optimizers, keras.optimizers.legacy])
@pytest.mark.parametrize("eager", [False, True])
def test_scales_of_losses_that_move(name, optimizers, eager):
    """All replicas leave a step out whose gradients are not finite in one of them."""
    strategy = strategies()[name]
    rows = X.copy()
    rows[9, 1] = 1e30  # in the second replica's part of the second batch
    with strategy.scope():
        made = keras.Sequential([keras.layers.Dense(1, input_shape=(3,))])
        scaled = keras.mixed_precision.LossScaleOptimizer(
            optimizers.SGD(0.0), initial_scale=64.0, dynamic_growth_steps=2
        )
        made.compile(scaled, "mse", run_eagerly=eager)
    before = made.get_weights()
    made.fit(rows[:16], Y[:16], batch_size=4, shuffle=False, verbose=0)
    assert scaled.loss_scale == 64.0  # 64, 32, 32, 64
    assert scaled.iterations == 4
    np.testing.assert_array_equal(made.get_weights()[0], before[0])


def test_a_replica_s_bad_gradient_stops_all():
    strategy = strategies()["mirrored"]
    with strategy.scope():
        v = tf.Variable(1.0)
        scaled = keras.mixed_precision.LossScaleOptimizer(
            keras.optimizers.SGD(0.5), initial_scale=8.0
        )

    @tf.function
    def step(good, sums):
        def replica():
            number = distribute.get_replica_context().replica_id_in_sync_group
            gradient = tf.where(good | tf.equal(number, 0), 1.0, np.nan)
            (own,) = scaled.get_unscaled_gradients([gradient * 8.0])
            scaled.apply_gradients([(own, v)], skip_gradients_aggregation=not sums)

        strategy.run(replica)

    for good, sums, value, scale in (
        (True, True, 0.0, 8.0),
        (False, True, 0.0, 4.0),
        (False, False, 0.0, 2.0),
        (True, True, -4.0, 2.0),  # 8 / 2 each
    ):
        step(good, sums)
        assert [c.numpy() for c in v.values] == [value] * 2
        assert scaled.loss_scale == scale
    assert scaled.iterations == 4


def test_moving_averages_of_central_storage_are_one():
    strategy = strategies()["central"]
    made, _ = trained(strategy, momentum, batch_norm=True)
    want = made(X, training=False).numpy()
    np.testing.assert_allclose(made.predict(X, verbose=0), want, rtol=1e-5, atol=1e-5)
