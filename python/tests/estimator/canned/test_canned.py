"""Ready-made estimators: what they learn, what their checkpoints and models hold."""

import glob
import os

import headrace as tf
import numpy as np
import pytest

E, v1, fc = tf.estimator, tf.compat.v1, tf.feature_column
X = np.linspace(-1, 1, 16).astype(np.float32)
WORDS = np.array(["a", "b", "c", "a"] * 4)
TWO = (X > 0).astype(np.int32)
THREE = (np.arange(16) % 3).astype(np.int32)
NUMBERS = (3 * X + 1).astype(np.float32)

NUMBER = fc.numeric_column("x")
WORD = fc.categorical_column_with_vocabulary_list("c", ["a", "b", "c"])
EMBEDDED, INDICATED = fc.embedding_column(WORD, 2), fc.indicator_column(WORD)


def rows(labels, repeat=2):
    def input_fn():
        features = {"x": X[:, None], "c": WORDS, "w": np.abs(X) + 0.5}
        dataset = tf.data.Dataset.from_tensor_slices((features, labels))
        return dataset.batch(8).repeat(repeat)

    return input_fn


def config():
    return E.RunConfig(tf_random_seed=1)


def variables(estimator):
    """{name: shape}, without what optimizers count."""
    return {
        name: estimator.get_variable_value(name).shape
        for name in estimator.get_variable_names()
    }


DNN = {
    "dnn/hiddenlayer_0/bias": (4,),
    "dnn/hiddenlayer_0/kernel": (3, 4),
    "dnn/input_from_feature_columns/input_layer/c_embedding/embedding_weights": (3, 2),
    "dnn/logits/bias": (1,),
    "dnn/logits/kernel": (4, 1),
}
LINEAR = {
    "linear/linear_model/bias_weights": (1,),
    "linear/linear_model/c/weights": (3, 1),
    "linear/linear_model/x/weights": (1, 1),
}
FTRL = "beta decay l1_regularization_strength l2_regularization_strength "
FTRL += "learning_rate learning_rate_power"


def slots(optimizer, names, of, hypers):
    found = {
        f"training/{optimizer}/{name}/{slot}": shape
        for name, shape in of.items()
        for slot in names.split()
    }
    return {**found, **{f"training/{optimizer}/{h}": () for h in hypers.split()}}


# Names of variables and values as TensorFlow 2.15 gives them for this seed.
def test_networks():
    estimator = E.DNNClassifier([4], [NUMBER, EMBEDDED], config=config())
    estimator.train(rows(TWO))
    of_optimizer = slots("Adagrad", "accumulator", DNN, "decay learning_rate")
    assert variables(estimator) == {**DNN, **of_optimizer, "global_step": ()}
    found = estimator.evaluate(rows(TWO))
    names = (
        "accuracy accuracy_baseline auc auc_precision_recall average_loss label/mean "
    )
    names += "loss precision prediction/mean recall global_step"
    assert set(found) == set(names.split()) and found["global_step"] == 4
    first = next(estimator.predict(rows(TWO)))
    names = "logits logistic probabilities class_ids classes all_class_ids all_classes"
    assert list(first) == names.split()


def test_numbers_are_upstream_s():
    deep = E.DNNClassifier([4, 3], [NUMBER, EMBEDDED], config=config())
    first = next(deep.train(rows(TWO)).predict(rows(TWO)))
    assert first["logits"][0] == pytest.approx(0.21949363, rel=1e-4)
    found = deep.evaluate(rows(TWO))
    assert found["average_loss"] == pytest.approx(0.7158017, rel=1e-4)
    assert found["auc_precision_recall"] == pytest.approx(0.3515444, rel=1e-4)
    words = E.DNNClassifier(
        [4],
        [NUMBER, INDICATED],
        n_classes=3,
        label_vocabulary=["a", "b", "c"],
        optimizer="Adam",
        config=config(),
    )
    first = next(words.train(rows(WORDS)).predict(rows(WORDS)))
    np.testing.assert_allclose(
        first["logits"], [0.6868454, -0.11836644, -0.14650679], rtol=1e-4
    )
    assert first["classes"][0] == b"a"
    weighted = E.DNNRegressor(
        [4], [NUMBER, INDICATED], weight_column="w", config=config()
    )
    found = weighted.train(rows(NUMBERS)).evaluate(rows(NUMBERS))
    assert found["average_loss"] == pytest.approx(10.670485, rel=1e-4)
    assert found["loss"] == pytest.approx(11.026167, rel=1e-4)


def test_linear_models():
    estimator = E.LinearClassifier([NUMBER, WORD], config=config())
    estimator.train(rows(TWO))
    of_optimizer = slots("Ftrl", "accumulator linear", LINEAR, FTRL)
    assert variables(estimator) == {**LINEAR, **of_optimizer, "global_step": ()}
    assert estimator.get_variable_value("training/Ftrl/learning_rate") == np.float32(
        0.2
    )
    found = estimator.evaluate(rows(TWO))
    assert found["average_loss"] == pytest.approx(0.5908739, rel=1e-4)
    assert found["accuracy"] == 0.9375 and found["recall"] == 0.875
    numbers = E.LinearRegressor([NUMBER, WORD], config=config()).train(rows(NUMBERS))
    found = numbers.evaluate(rows(NUMBERS))
    assert found["average_loss"] == pytest.approx(2.8443575, rel=1e-4)
    assert found["prediction/mean"] == pytest.approx(0.23195462, rel=1e-4)


def test_both_together():
    estimator = E.DNNLinearCombinedClassifier(
        linear_feature_columns=[NUMBER, WORD],
        dnn_feature_columns=[NUMBER, EMBEDDED],
        dnn_hidden_units=[4],
        config=config(),
    ).train(rows(TWO))
    found = variables(estimator)
    wanted = {
        **slots("Adagrad", "accumulator", DNN, "decay learning_rate"),
        **slots("Ftrl", "accumulator linear", LINEAR, FTRL + " iter"),
    }
    assert found == {**DNN, **LINEAR, **wanted, "global_step": ()}
    assert estimator.get_variable_value("training/Ftrl/iter") == 4
    found = estimator.evaluate(rows(TWO))
    assert found["average_loss"] == pytest.approx(0.6201838, rel=1e-4)
    tags = {
        value.tag
        for path in glob.glob(os.path.join(estimator.model_dir, "*tfevents*"))
        for event in v1.train.summary_iterator(path)
        for value in event.summary.value
    }
    scopes = ("dnn/hiddenlayer_0", "dnn/logits", "linear")
    kinds = ("activation", "fraction_of_zero_values")
    wanted = {f"{scope}/{kind}" for scope in scopes for kind in kinds}
    assert tags == wanted | {"bias", "fraction_of_zero_weights", "loss"}


def test_baselines():
    estimator = E.BaselineClassifier(n_classes=3, config=config())
    estimator.train(rows(THREE, 100))
    of_optimizer = slots("Ftrl", "accumulator linear", {"baseline/bias": (3,)}, FTRL)
    wanted = {"baseline/bias": (3,), "global_step": (), **of_optimizer}
    assert variables(estimator) == wanted
    first = next(estimator.predict(rows(THREE)))
    shares = np.bincount(THREE) / 16
    np.testing.assert_allclose(first["probabilities"], shares, atol=0.05)
    numbers = E.BaselineRegressor(config=config()).train(rows(NUMBERS, 200))
    first = next(numbers.predict(rows(NUMBERS)))
    assert first["predictions"][0] == pytest.approx(NUMBERS.mean(), abs=0.1)


def test_learning():
    """What is to be learned is learned."""
    two = E.DNNClassifier(
        [8], [NUMBER], optimizer=lambda: tf.keras.optimizers.Adam(0.1), config=config()
    ).train(rows(TWO, 40))
    assert two.evaluate(rows(TWO))["accuracy"] == 1.0
    line = E.LinearRegressor(
        [NUMBER], optimizer=tf.keras.optimizers.legacy.SGD(0.3), config=config()
    ).train(rows(NUMBERS, 40))
    assert line.evaluate(rows(NUMBERS))["average_loss"] < 1e-3
    kernel = line.get_variable_value("linear/linear_model/x/weights")
    np.testing.assert_allclose(kernel, [[3.0]], atol=0.05)
    deep = E.DNNRegressor(
        [8, 8],
        [NUMBER],
        optimizer="Adam",
        activation_fn=tf.nn.tanh,
        batch_norm=True,
        dropout=0.1,
        config=config(),
    ).train(rows(NUMBERS, 5))
    assert "dnn/hiddenlayer_1/batchnorm_1/moving_variance" in variables(deep)
    variance = deep.get_variable_value("dnn/hiddenlayer_0/batchnorm_0/moving_variance")
    assert (variance != 1.0).all()  # the batches' are noted


def test_training_goes_on_and_warm_starts(tmp_path):
    first = E.DNNClassifier(
        [4], [NUMBER, EMBEDDED], str(tmp_path / "a"), config=config()
    )
    first.train(rows(TWO)).train(rows(TWO))
    assert first.get_variable_value("global_step") == 8
    second = E.DNNClassifier(
        [4],
        [NUMBER, EMBEDDED],
        str(tmp_path / "b"),
        optimizer=tf.keras.optimizers.legacy.SGD(0.0),
        warm_start_from=first.model_dir,
        config=config(),
    ).train(rows(TWO))
    for name in DNN:
        np.testing.assert_array_equal(
            second.get_variable_value(name), first.get_variable_value(name)
        )
    again = E.DNNClassifier([4], [NUMBER, EMBEDDED], first.model_dir, config=config())
    assert again.evaluate(rows(TWO))["global_step"] == 8


def test_heads_of_the_user():
    counts = np.arange(16, dtype=np.int32) % 4
    poisson = E.LinearEstimator(E.PoissonRegressionHead(), [NUMBER], config=config())
    poisson.train(rows(counts))
    assert set(poisson.evaluate(rows(counts))) >= {"average_loss", "label/mean"}
    head = E.MultiHead([E.BinaryClassHead(name="h1"), E.RegressionHead(2, name="h2")])
    labels = {"h1": TWO, "h2": np.stack([X, X], 1)}
    both = E.DNNEstimator(head, [3], [NUMBER], config=config()).train(rows(labels))
    found = both.evaluate(rows(labels))
    assert found["loss"] == pytest.approx(found["loss/h1"] + found["loss/h2"], rel=1e-5)
    assert ("h2", "predictions") in next(both.predict(rows(labels)))
    mixed = E.DNNLinearCombinedEstimator(
        E.LogisticRegressionHead(), linear_feature_columns=[NUMBER], config=config()
    ).train(rows(np.abs(X)))
    assert "linear/linear_model/x/weights" in variables(mixed)
    plain = E.BaselineEstimator(E.MultiLabelHead(2), config=config())
    plain.train(rows(np.stack([TWO, 1 - TWO], 1)))
    assert "baseline/bias" in variables(plain)


def test_of_tensorflow_1():
    estimator = v1.estimator.LinearRegressor([NUMBER, WORD], config=config())
    found = estimator.train(rows(NUMBERS)).evaluate(rows(NUMBERS))
    assert found["average_loss"] == pytest.approx(2.8987012, rel=1e-4)
    assert found["loss"] == pytest.approx(23.18961, rel=1e-4)  # of a batch, summed
    assert "linear/linear_model/x/weights/part_0/Ftrl" in variables(estimator)
    cut = v1.estimator.DNNClassifier(
        [4],
        [NUMBER],
        n_classes=3,
        input_layer_partitioner=v1.fixed_size_partitioner(1),
        optimizer=v1.train.AdamOptimizer(0.01),
        loss_reduction=v1.losses.Reduction.SUM_OVER_BATCH_SIZE,
        config=config(),
    ).train(rows(THREE))
    found = cut.evaluate(rows(THREE))
    assert found["loss"] == pytest.approx(found["average_loss"], rel=1e-5)
    both = v1.estimator.DNNLinearCombinedRegressor(
        linear_feature_columns=[NUMBER, WORD],
        dnn_feature_columns=[NUMBER],
        dnn_hidden_units=[4],
        config=config(),
    ).train(rows(NUMBERS))
    assert both.get_variable_value("global_step") == 4
    found = v1.estimator.BaselineClassifier(config=config()).train(rows(TWO))
    assert found.evaluate(rows(TWO))["average_loss"] == pytest.approx(
        0.6938597, rel=1e-4
    )
    with pytest.raises(ValueError, match="not an Optimizer instance. Given: 3"):
        v1.estimator.DNNClassifier([2], [NUMBER], optimizer=3).train(rows(TWO))


def test_functions_of_logits():
    make = v1.estimator.experimental
    with tf.Graph().as_default():
        features = {"x": tf.constant(X[:, None])}
        dnn = make.dnn_logit_fn_builder(2, [4], [NUMBER], tf.nn.relu, None, None, False)
        logits = E.experimental.call_logit_fn(dnn, features, "train", {}, config())
        assert logits.shape.as_list() == [16, 2]
        linear = make.linear_logit_fn_builder(3, [NUMBER])
        logits = E.experimental.call_logit_fn(linear, features, "train", {}, config())
        assert logits.shape.as_list() == [16, 3]
        with pytest.raises(ValueError, match="should return a Tensor or a dictionary"):
            E.experimental.call_logit_fn(
                lambda features: 3, features, "train", {}, None
            )
        with pytest.raises(ValueError, match="units must be an int"):
            make.dnn_logit_fn_builder("2", [4], [NUMBER], tf.nn.relu, None, None, False)


@pytest.mark.parametrize(
    "make, text",
    [
        (
            lambda: E.DNNClassifier([2], [NUMBER], optimizer="x"),
            "Unsupported optimizer n",
        ),
        (
            lambda: E.DNNClassifier([2], [NUMBER], optimizer=3),
            "not a tf.keras.optimizers",
        ),
        (
            lambda: E.LinearClassifier([NUMBER], optimizer="x"),
            "Supported names are: .'Ada",
        ),
        (
            lambda: E.DNNLinearCombinedClassifier(),
            "Either linear_feature_columns or dnn",
        ),
        (
            lambda: E.DNNLinearCombinedClassifier(dnn_feature_columns=[NUMBER]),
            "dnn_hidden_units must be defined",
        ),
        (lambda: E.DNNClassifier([2], []), "feature_columns must not be empty"),
        (lambda: E.DNNClassifier([2], [WORD]), "You can wrap a categorical column"),
        (lambda: E.LinearClassifier([3]), "Items of feature_columns must be a"),
        (
            lambda: E.DNNClassifier([2], [NUMBER], n_classes=1),
            "n_classes must be > 2: 1",
        ),
        (
            lambda: E.DNNClassifier([2], [NUMBER], loss_reduction="x"),
            "Invalid loss_redu",
        ),
    ],
)
def test_wrong_arguments(make, text):
    with pytest.raises(ValueError, match=text):
        make().train(rows(TWO))


# Names as TensorFlow 2.15 has them.
def test_slots_of_tensorflow_1():
    v1 = tf.compat.v1.estimator
    estimator = v1.DNNClassifier([4], [NUMBER], config=config())
    estimator.train(rows(TWO))
    names = set(estimator.get_variable_names())
    assert "dnn/hiddenlayer_0/kernel/t_0/Adagrad" in names
    assert "dnn/logits/bias/t_0/Adagrad" in names
    estimator = v1.LinearClassifier([NUMBER], config=config())
    estimator.train(rows(TWO))
    found = {n for n in estimator.get_variable_names() if "Ftrl" in n}
    assert "linear/linear_model/bias_weights/part_0/Ftrl" in found
    assert all("/part_0/" in n for n in found)
    both = v1.DNNLinearCombinedClassifier(
        linear_feature_columns=[NUMBER],
        dnn_feature_columns=[NUMBER],
        dnn_hidden_units=[2],
        config=config(),
    )
    both.train(rows(TWO))
    assert "dnn/hiddenlayer_0/kernel/Adagrad" in both.get_variable_names()
