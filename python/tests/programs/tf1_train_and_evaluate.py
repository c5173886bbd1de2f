"""TensorFlow 1's way (recorded by 2.15): train_and_evaluate, datasets and exporters."""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
draw = np.random.RandomState(3)
features = {
    "age": draw.randint(18, 80, 80).astype("f4"),
    "work": draw.choice(["private", "state", "none"], 80),
}
target = (0.02 * features["age"] + (features["work"] == "state")).astype("f4")


def input_fn(epochs=None, batch=16):
    def build():
        dataset = tf.data.Dataset.from_tensor_slices((dict(features), target))
        dataset = dataset.repeat(epochs).batch(batch)
        return dataset.make_one_shot_iterator().get_next()

    return build


def model_fn(features, labels, mode, params, config):
    columns = params["columns"]
    net = tf.feature_column.input_layer(features, columns)
    for units in params["hidden"]:
        net = tf.layers.dense(
            net,
            units,
            tf.nn.relu,
            kernel_initializer=tf.glorot_uniform_initializer(seed=units),
        )
    value = tf.squeeze(
        tf.layers.dense(
            net, 1, kernel_initializer=tf.glorot_uniform_initializer(seed=1)
        ),
        1,
        name="value",
    )
    predictions = {"value": value, "age": tf.identity(features["age"])}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.mean_squared_error(labels, value)
    metrics = {
        "mae": tf.metrics.mean_absolute_error(labels, value),
        "rmse": tf.metrics.root_mean_squared_error(labels, value),
    }
    tf.summary.scalar("mean_value", tf.reduce_mean(value))
    train_op = tf.train.AdamOptimizer(0.01).minimize(
        loss, tf.train.get_or_create_global_step()
    )
    return tf.estimator.EstimatorSpec(
        mode, predictions, loss, train_op, eval_metric_ops=metrics
    )


columns = [
    tf.feature_column.numeric_column("age", normalizer_fn=lambda x: x / 50.0),
    tf.feature_column.indicator_column(
        tf.feature_column.categorical_column_with_vocabulary_list(
            "work", ["private", "state", "none"]
        )
    ),
]
folder = tempfile.mkdtemp()
config = tf.estimator.RunConfig(
    model_dir=folder, save_checkpoints_steps=30, save_summary_steps=20
)
estimator = tf.estimator.Estimator(
    model_fn, config=config, params={"columns": columns, "hidden": [8, 4]}
)
spec = tf.feature_column.make_parse_example_spec(columns)
print(sorted(spec.items()))


def compare(best_eval_result, current_eval_result):
    return current_eval_result["loss"] < best_eval_result["loss"]


receiver_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
exporters = [
    tf.estimator.FinalExporter("final", receiver_fn),
    tf.estimator.BestExporter("best", receiver_fn, compare_fn=compare),
]
train_spec = tf.estimator.TrainSpec(input_fn(), max_steps=60)
eval_spec = tf.estimator.EvalSpec(
    input_fn(1), steps=None, exporters=exporters, start_delay_secs=0, throttle_secs=0
)
result, exported = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
print({k: "%.3f" % v for k, v in sorted(result.items())}, len(exported))
print(sorted(f for f in os.listdir(folder) if not f.startswith("events")))
print(sorted(os.listdir(os.path.join(folder, "export"))))
print([len(os.listdir(os.path.join(folder, "export", k))) for k in ("best", "final")])
for part in ("", "eval"):
    for name in sorted(os.listdir(os.path.join(folder, part))):
        if not name.startswith("events"):
            continue
        for event in tf.train.summary_iterator(os.path.join(folder, part, name)):
            tags = [v.tag for v in event.summary.value if "sec" not in v.tag]
            if tags:
                print(part, event.step, tags)
example = tf.train.Example()
example.features.feature["age"].float_list.value.append(40.0)
example.features.feature["work"].bytes_list.value.append(b"state")
final = os.path.join(folder, "export", "final")
path = os.path.join(final, os.listdir(final)[0])
with tf.Session(graph=tf.Graph()) as sess:
    meta = tf.saved_model.loader.load(
        sess, [tf.saved_model.tag_constants.SERVING], path
    )
    signature = meta.signature_def["serving_default"]
    print(sorted(signature.inputs), sorted(signature.outputs), signature.method_name)
    feed = {signature.inputs["examples"].name: [example.SerializeToString()]}
    print(sess.run(signature.outputs["value"].name, feed).round(2))
print(estimator.get_variable_names())
