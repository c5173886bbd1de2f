"""TensorFlow 1's way (recorded by 2.15): ready-made estimators on feature columns."""

import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
draw = np.random.RandomState(1)
COLUMNS = ("SepalLength", "SepalWidth", "PetalLength")
species = draw.randint(0, 3, 90)
iris = {
    name: (species * (i + 1) * 0.8 + draw.rand(90)).astype("f4")
    for i, name in enumerate(COLUMNS)
}


def train_input_fn(features, labels, batch_size):
    dataset = tf.data.Dataset.from_tensor_slices((dict(features), labels))
    return dataset.repeat().batch(batch_size)


def eval_input_fn(features, labels, batch_size):
    inputs = dict(features) if labels is None else (dict(features), labels)
    return tf.data.Dataset.from_tensor_slices(inputs).batch(batch_size)


columns = [tf.feature_column.numeric_column(key=key) for key in COLUMNS]
config = tf.estimator.RunConfig(tf_random_seed=1, model_dir=tempfile.mkdtemp())
classifier = tf.estimator.DNNClassifier(
    feature_columns=columns, hidden_units=[10, 10], n_classes=3, config=config
)
classifier.train(lambda: train_input_fn(iris, species, 30), steps=100)
result = classifier.evaluate(lambda: eval_input_fn(iris, species, 30))
print(sorted(result), result["accuracy"] > 0.8)
for name in classifier.get_variable_names():
    print(name, classifier.get_variable_value(name).shape)
predict = {k: v[:3] for k, v in iris.items()}
for p in classifier.predict(lambda: eval_input_fn(predict, None, 3)):
    print({k: np.asarray(v).shape for k, v in sorted(p.items())}, p["classes"].dtype)

linear = tf.estimator.LinearRegressor(
    columns + [tf.feature_column.bucketized_column(columns[0], [1.0, 2.0])],
    optimizer=tf.train.FtrlOptimizer(0.2, l2_regularization_strength=0.01),
    config=config.replace(model_dir=tempfile.mkdtemp()),
)
y = (2 * iris["SepalLength"] - iris["PetalLength"]).astype("f4")
linear.train(lambda: train_input_fn(iris, y, 30), steps=60)
result = linear.evaluate(lambda: eval_input_fn(iris, y, 30))
print({k: "%.3f" % v for k, v in sorted(result.items())})
for name in linear.get_variable_names():
    value = linear.get_variable_value(name)
    print(name, value.shape, np.round(value.ravel(), 2))
values = [
    p["predictions"][0] for p in linear.predict(lambda: eval_input_fn(predict, None, 3))
]
print(np.round(values, 2))

binary = tf.estimator.LinearClassifier(
    columns,
    optimizer=lambda: tf.train.GradientDescentOptimizer(0.1),
    config=config.replace(model_dir=tempfile.mkdtemp()),
)
is_first = (species == 0).astype(np.int64)
binary.train(lambda: train_input_fn(iris, is_first, 45), max_steps=40)
result = binary.evaluate(lambda: eval_input_fn(iris, is_first, 90))
print({k: "%.2f" % v for k, v in sorted(result.items())})
baseline = tf.estimator.BaselineRegressor(
    config=config.replace(model_dir=tempfile.mkdtemp()),
    optimizer=tf.train.GradientDescentOptimizer(0.1),
)
baseline.train(lambda: train_input_fn(iris, y, 30), steps=20)
print(
    baseline.get_variable_names(),
    np.round(baseline.get_variable_value("baseline/bias"), 3),
)
both = tf.estimator.DNNLinearCombinedRegressor(
    linear_feature_columns=columns[:1],
    linear_optimizer=tf.train.GradientDescentOptimizer(0.01),
    dnn_feature_columns=columns,
    dnn_optimizer=tf.train.AdagradOptimizer(0.05),
    dnn_hidden_units=[4],
    config=config.replace(model_dir=tempfile.mkdtemp()),
)
both.train(lambda: train_input_fn(iris, y, 30), steps=5)
print(both.get_variable_names())
