"""Optimizers: TensorFlow's checkpoints of them, averages, arguments."""

import inspect
import pathlib

import headrace as tf
import numpy as np
import optimizer_cases as cases
import pytest

GOLDEN = pathlib.Path(__file__).parents[3] / "tests/golden/keras/optimizers"
optimizers = tf.keras.optimizers


@pytest.mark.parametrize("built", [False, True])
@pytest.mark.parametrize("name", list(cases.optimizers(optimizers)))
def test_goes_on_from_tensorflows_checkpoint(name, built):
    net, optimizer, root = cases.build(tf, name)
    if built and name != "sgd":  # whose file has slots that it does not need
        net.build((None, 3))
        optimizer.build(net.trainable_variables)
    status = root.read(str(GOLDEN / name))
    cases.train(tf, net, optimizer, 2)
    if not (built and (name == "sgd" or name.endswith("_schedule"))):
        status.assert_consumed()
    assert int(optimizer.iterations) == 5
    with np.load(GOLDEN / "weights.npz") as weights:
        for i, weight in enumerate(net.weights):
            np.testing.assert_allclose(
                weight.numpy(), weights[f"{name}/{i}"], rtol=2e-5, atol=2e-6
            )


@pytest.mark.parametrize("traced", [False, True])
def test_averages(traced):
    """The values are TensorFlow's: averaged first, constrained behind."""
    sgd = optimizers.SGD(
        0.1, momentum=0.5, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2
    )
    v = tf.Variable([5.0], constraint=lambda x: tf.clip_by_value(x, 0.0, 1.0))
    step = lambda: sgd.apply_gradients([(tf.constant([0.3]), v)])
    step = tf.function(step) if traced else step
    found = []
    for _ in range(4):
        step()
        found.append([float(x.numpy()[0]) for x in (v, *sgd.variables[1:])])
    expected = [
        [1.0, 4.985, -0.03],
        [1.0, 2.97, -0.045],
        [0.9475, 1.95875, -0.0525],
        [1.0, 1.425, -0.05625],
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_fit_ends_with_the_averages():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[2])])
    adam = optimizers.Adam(0.1, use_ema=True, ema_momentum=0.9)
    model.compile(adam, "mse")
    model.fit(np.ones((8, 2)), np.ones(8), epochs=2, verbose=0)
    averages = adam.variables[1:3]
    for weight, average in zip(model.get_weights(), averages):
        np.testing.assert_array_equal(weight, average)


def test_nadam():
    v = tf.Variable([1.0])
    nadam = optimizers.legacy.Nadam(0.1)
    found = []
    for _ in range(4):
        nadam.apply_gradients([(tf.constant([0.3]), v)])
        found.append(float(v[0]))
    expected = [0.8943548, 0.8159867, 0.7427648, 0.66965985]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    v = tf.Variable([1.0, 2.0, 3.0])
    rows = tf.IndexedSlices(tf.constant([0.3, 0.1, 0.2]), tf.constant([0, 2, 0]))
    nadam = optimizers.legacy.Nadam(0.1)
    for _ in range(3):
        nadam.apply_gradients([(rows, v)])
    np.testing.assert_allclose(v.numpy(), [0.7427647, 2.0, 2.7427647], rtol=1e-6)


def test_rate_of_a_schedule():
    schedule = optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    sgd, v = optimizers.SGD(schedule), tf.Variable(1.0)
    rates = []
    for _ in range(3):
        sgd.apply_gradients([(tf.constant(1.0), v)])
        rates.append(float(sgd.learning_rate))
    np.testing.assert_allclose(rates, [0.1, 0.05, 0.025])
    with pytest.raises(TypeError, match="is not settable"):
        sgd.learning_rate = 0.5


@pytest.mark.parametrize(
    "make,message",
    [
        (lambda: optimizers.Adam(foo=1), "foo is not a valid argument"),
        (lambda: optimizers.Adam(decay=0.1), "legacy.Adam"),
        (lambda: optimizers.SGD(use_ema=True, ema_momentum=2), "in the range"),
        (
            lambda: optimizers.SGD(use_ema=True, ema_overwrite_frequency=-1),
            "must be an integer > 1",
        ),
        (lambda: optimizers.Ftrl(learning_rate_power=1.0), "negative or zero"),
        (lambda: optimizers.Lion(beta_1=0), "must be between .0, 1.. Otherwise"),
    ],
)
def test_arguments(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize(
    ("name", "kwargs", "slots"),
    [
        ("Adam", {"amsgrad": True}, "a/m b/m a/v b/v a/vhat b/vhat"),
        (
            "RMSprop",
            {"momentum": 0.9, "centered": True},
            "a/rms b/rms a/momentum b/momentum a/mg b/mg",
        ),
        ("Adadelta", {}, "a/accum_grad b/accum_grad a/accum_var b/accum_var"),
        ("Ftrl", {}, "a/accumulator a/linear b/accumulator b/linear"),
    ],
)
def test_weights_of_older_optimizers_are_in_the_order_of_slots(name, kwargs, slots):
    optimizer = getattr(tf.keras.optimizers.legacy, name)(**kwargs)
    one = tf.constant([1.0])
    a, b = (tf.Variable(one, name=n) for n in "ab")
    optimizer.apply_gradients([(one, a), (one, b)])
    names = [v.name for v in optimizer.variables()]
    assert names == [f"{name}/{s}:0" for s in ["iter", *slots.split()]]


def test_ftrl_takes_looked_up_rows_for_the_whole_table():
    """As Keras 2 does; its older Ftrl leaves the other rows alone."""

    def after(optimizer, steps=3):
        table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        rows = [[0.1, 0.2], [0.3, -0.4], [0.1, 0.1]]
        gradient = tf.IndexedSlices(
            tf.constant(rows), tf.constant([0, 2, 0]), tf.constant([3, 2])
        )
        for _ in range(steps):
            optimizer.apply_gradients([(gradient, table)])
        return table.numpy()

    seen = [[0.011613, 0.374208], [1.19778, 2.471649]]
    newer = after(optimizers.Ftrl(0.1))
    np.testing.assert_allclose(newer[[0, 2]], seen, rtol=1e-5)
    assert newer[1].tolist() == [0.0, 0.0]
    decayed = after(
        optimizers.Ftrl(
            0.1,
            l2_regularization_strength=0.1,
            l2_shrinkage_regularization_strength=0.1,
            beta=0.2,
        )
    )
    np.testing.assert_allclose(decayed[1], [-0.103702, -0.138269], rtol=1e-5)
    older = after(optimizers.legacy.Ftrl(0.1))
    np.testing.assert_allclose(older[[0, 2]], seen, rtol=1e-5)
    assert older[1].tolist() == [3.0, 4.0]


def test_rows_of_unknown_table():
    """Slices that do not say how large the whole is."""
    for make, wanted in (
        (lambda: tf.keras.optimizers.Lion(0.1), [[0.8], [1.0]]),
        (lambda: tf.keras.optimizers.Adam(0.1), [[0.8], [1.0]]),
        (lambda: tf.keras.optimizers.Adafactor(0.1), [[0.80486846], [1.0]]),
    ):
        optimizer, v = make(), tf.Variable([[1.0], [1.0]])
        for _ in range(2):
            slices = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([0, 0]))
            optimizer.apply_gradients([(slices, v)])
        np.testing.assert_allclose(v.numpy(), wanted, atol=3e-6)


def test_adafactor_keeps_rows_and_columns():
    optimizer = tf.keras.optimizers.Adafactor()
    variables = [tf.Variable(tf.ones(s), name="w") for s in ([2, 3], [3], [2, 2, 3])]
    optimizer.build(variables)
    found = [(v.name, v.shape.as_list()) for v in optimizer.variables[1:]]
    rows, columns, all = (f"{slot}/w:0" for slot in "rcv")
    assert found == [
        (rows, [2]),
        (columns, [3]),
        (all, [2, 3]),
        (all, [3]),
        (rows, [2, 2]),
        (columns, [2, 3]),
        (all, [2, 2, 3]),
    ]
    assert optimizer.get_config()["clip_threshold"] == 1.0
    again = tf.keras.optimizers.Adafactor.from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()


def test_constructors_say_what_all_optimizers_take():
    common = ["weight_decay", "clipnorm", "clipvalue", "global_clipnorm", "use_ema"]
    common += ["ema_momentum", "ema_overwrite_frequency", "jit_compile"]
    found = inspect.signature(tf.keras.optimizers.RMSprop).parameters
    assert list(found)[5:] == [*common, "name", "kwargs"]
    assert found["ema_overwrite_frequency"].default == 100
    assert list(inspect.signature(tf.keras.optimizers.AdamW).parameters)[:2] == [
        "learning_rate",
        "weight_decay",
    ]
    optimizer = tf.keras.optimizers.SGD(0.1, 0.0, False, 0.5)
    assert optimizer.weight_decay == 0.5 and optimizer.jit_compile is False
    with pytest.raises(TypeError, match="Optimizer.__init__.. missing 1 required"):
        tf.keras.optimizers.Optimizer()


@pytest.mark.parametrize(
    ("dtype", "adam", "adamw"),
    [
        ("float16", [0.76318359375, 1.7744140625], [0.76171875, 1.771484375]),
        ("bfloat16", [1.0, 2.0], [1.0, 2.0]),
        (
            "float64",
            [0.7601243738672357, 1.7717703760693686],
            [0.759031665743006, 1.769482799348583],
        ),
    ],
)
def test_adam_rounds_as_upstream(dtype, adam, adamw):
    for make, wanted in ((optimizers.Adam, adam), (optimizers.AdamW, adamw)):
        optimizer, v = make(0.1), tf.Variable([1.0, 2.0], dtype=dtype)
        step = tf.function(lambda g: optimizer.apply_gradients([(g, v)]))  # noqa: B023
        optimizer.build([v])
        for g in ([0.1, 0.2], [1e-4, 3.0], [0.5, -0.5]):
            step(tf.constant(g, dtype))
        assert v.numpy().astype(float) == pytest.approx(wanted, rel=1e-15)


def test_steps_that_are_given():
    for make in (optimizers.SGD, optimizers.legacy.SGD):
        optimizer = make(0.1)
        optimizer.iterations = tf.Variable(5, dtype=tf.int64, name="mine")
        optimizer.apply_gradients([(tf.constant(1.0), tf.Variable(1.0))])
        assert int(optimizer.iterations) == 6 and optimizer.iterations.name == "mine:0"
        with pytest.raises(RuntimeError, match="Cannot set `iterations` to a new Vari"):
            optimizer.iterations = tf.Variable(5, dtype=tf.int64)
        optimizer = make(0.1)
        optimizer.iterations = 3
        assert int(optimizer.iterations) == 3


def test_gradients_are_aggregated_and_transformed():
    legacy, seen = optimizers.legacy, []

    def aggregate(pairs):
        seen.append("aggregate")
        return list(pairs)

    def tenfold(pairs):
        seen.append([v.name for _, v in pairs])
        return [(g * 10.0, v) for g, v in pairs]

    def one_more(pairs):
        return [(g + 1.0, v) for g, v in pairs]

    v, w = tf.Variable([1.0, 2.0], name="v"), tf.Variable(3.0, name="w")
    given = {"gradient_transformers": [tenfold, one_more]}
    opt = legacy.SGD(0.1, gradient_aggregator=aggregate, **given)
    pairs = [(tf.constant([3.0, 4.0]), v), (tf.constant(2.0), w), (None, v)]
    opt.apply_gradients(pairs)
    assert seen == ["aggregate", ["v:0", "w:0"]]
    np.testing.assert_allclose([*v.numpy(), w.numpy()], [-2.1, -2.1, 0.9], rtol=1e-6)
    opt.apply_gradients(pairs, experimental_aggregate_gradients=False)
    assert seen[2:] == [["v:0", "w:0"]]
    np.testing.assert_allclose(v.numpy(), [-5.2, -6.2], rtol=1e-6)
    opt.minimize(lambda: tf.reduce_sum(v * v) + w * w, [v, w])
    np.testing.assert_allclose(v.numpy(), [5.1, 6.1], rtol=1e-6)
    for limit in ("clipnorm", "clipvalue", "global_clipnorm"):
        with pytest.raises(ValueError, match=f"`{limit}` cannot be set when"):
            legacy.SGD(0.1, **given, **{limit: 0.5})
        with pytest.raises(ValueError, match=f"`{limit}` cannot be set when"):
            setattr(opt, limit, 0.5)
    layers = tf.keras.layers
    dense = layers.Dense(1, kernel_initializer="ones")
    model = tf.keras.Sequential([layers.Input([1]), dense])
    stop = legacy.Adam(
        0.1, gradient_transformers=[lambda p: [(g * 0, v) for g, v in p]]
    )
    model.compile(stop, "mse")
    model.fit(np.ones([2, 1]), np.zeros([2, 1]), verbose=0)
    assert model.get_weights()[0].item() == 1


def test_transformers_see_the_sums_of_replicas():
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    with strategy.scope():
        v = tf.Variable(1.0)
        seen = []

        def look(pairs):
            seen.extend(float(g) for g, _ in pairs)
            return pairs

        opt = optimizers.legacy.SGD(0.1, gradient_transformers=[look])
    strategy.run(lambda: opt.apply_gradients([(tf.constant(2.0), v)]))
    assert seen == [4.0, 4.0] and abs(v.numpy() - 0.6) < 1e-6
