"""TensorFlow 1's way (recorded by 2.15): a model_fn in an Estimator, its three modes."""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)


def cnn_model_fn(features, labels, mode, params):
    input_layer = tf.reshape(features["x"], [-1, 8, 8, 1])
    conv1 = tf.layers.conv2d(
        inputs=input_layer,
        filters=4,
        kernel_size=[3, 3],
        padding="same",
        activation=tf.nn.relu,
    )
    pool1 = tf.layers.max_pooling2d(inputs=conv1, pool_size=[2, 2], strides=2)
    pool1_flat = tf.reshape(pool1, [-1, 4 * 4 * 4])
    dense = tf.layers.dense(inputs=pool1_flat, units=16, activation=tf.nn.relu)
    dropout = tf.layers.dropout(
        inputs=dense, rate=0.2, training=mode == tf.estimator.ModeKeys.TRAIN
    )
    logits = tf.layers.dense(inputs=dropout, units=3)
    predictions = {
        "classes": tf.argmax(input=logits, axis=1),
        "probabilities": tf.nn.softmax(logits, name="softmax_tensor"),
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(
            mode=mode,
            predictions=predictions,
            export_outputs={"classify": tf.estimator.export.PredictOutput(predictions)},
        )
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    if mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = tf.train.GradientDescentOptimizer(params["learning_rate"])
        train_op = optimizer.minimize(loss=loss, global_step=tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode=mode, loss=loss, train_op=train_op)
    eval_metric_ops = {
        "accuracy": tf.metrics.accuracy(labels, predictions["classes"]),
        "recall": tf.metrics.recall(tf.equal(labels, 1), logits[:, 1] > 0),
    }
    return tf.estimator.EstimatorSpec(
        mode=mode, loss=loss, eval_metric_ops=eval_metric_ops
    )


class Losses(tf.train.SessionRunHook):
    def __init__(self):
        self.values = []

    def before_run(self, context):
        tensor = context.session.graph.get_collection(tf.GraphKeys.LOSSES)[0]
        return tf.train.SessionRunArgs(tensor)

    def after_run(self, context, values):
        self.values.append(values.results)


draw = np.random.RandomState(0)
labels = draw.randint(0, 3, 60).astype(np.int32)
images = draw.rand(60, 64).astype(np.float32)
for row, label in enumerate(labels):
    images[row].reshape(8, 8)[2 * label : 2 * label + 3] += 1
config = tf.estimator.RunConfig(
    model_dir=tempfile.mkdtemp(),
    tf_random_seed=5,
    save_checkpoints_steps=20,
    keep_checkpoint_max=2,
)
classifier = tf.estimator.Estimator(
    model_fn=cnn_model_fn, config=config, params={"learning_rate": 0.1}
)
train_input_fn = tf.estimator.inputs.numpy_input_fn(
    x={"x": images}, y=labels, batch_size=20, num_epochs=None, shuffle=False
)
losses = Losses()
classifier.train(input_fn=train_input_fn, steps=50, hooks=[losses])
print(*("%.3f" % x for x in losses.values[:3]), losses.values[-1] < 0.6)
eval_input_fn = tf.estimator.inputs.numpy_input_fn(
    x={"x": images}, y=labels, num_epochs=1, shuffle=False
)
results = classifier.evaluate(input_fn=eval_input_fn)
print(sorted(results), results["accuracy"] > 0.8, results["global_step"])
predictions = list(classifier.predict(eval_input_fn))
print(len(predictions), sorted(predictions[0]), predictions[0]["probabilities"].shape)
print(classifier.get_variable_names())
print(classifier.get_variable_value("conv2d/kernel").shape)
print(os.path.basename(classifier.latest_checkpoint()))
folder = config.model_dir
print(sorted(f for f in os.listdir(folder) if f.endswith("index")))


def serving_input_fn():
    inputs = {"x": tf.placeholder(tf.float32, [None, 64], name="images")}
    return tf.estimator.export.ServingInputReceiver(inputs, inputs)


exported = classifier.export_saved_model(tempfile.mkdtemp(), serving_input_fn)
with tf.Session(graph=tf.Graph()) as sess:
    meta = tf.saved_model.loader.load(sess, ["serve"], exported.decode())
    for key, signature in sorted(meta.signature_def.items()):
        print(key, signature.method_name, sorted(signature.outputs))
    signature = meta.signature_def["classify"]
    name = signature.outputs["classes"].name
    classes = sess.run(name, {signature.inputs["x"].name: images[:5]})
    print((classes == [p["classes"] for p in predictions[:5]]).all(), name)
warm = tf.estimator.Estimator(
    cnn_model_fn,
    params={"learning_rate": 0.0},
    warm_start_from=tf.estimator.WarmStartSettings(
        folder, vars_to_warm_start="dense.*"
    ),
)
warm.train(train_input_fn, steps=1)
for name in ("dense/kernel", "conv2d/kernel"):
    a, b = warm.get_variable_value(name), classifier.get_variable_value(name)
    print(name, np.allclose(a, b))
