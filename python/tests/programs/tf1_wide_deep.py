"""TensorFlow 1's way: linear_model and input_layer by hand, crossed and embedded columns."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
fc = tf.feature_column
draw = np.random.RandomState(0)
N = 64
data = {
    "age": draw.randint(17, 70, (N, 1)).astype("f4"),
    "hours": draw.rand(N, 1).astype("f4") * 60,
    "education": draw.choice(["HS", "BA", "PhD", "other"], (N, 1)),
    "occupation": draw.choice(["tech", "sales", "farm"], (N, 1)),
}
label = ((data["age"] > 40) & (data["education"] != "HS")).astype("f4")
age = fc.numeric_column("age")
hours = fc.numeric_column("hours", normalizer_fn=lambda x: (x - 30) / 30)
age_buckets = fc.bucketized_column(age, boundaries=[25, 35, 45, 55])
education = fc.categorical_column_with_vocabulary_list(
    "education", ["HS", "BA", "PhD"], num_oov_buckets=1
)
occupation = fc.categorical_column_with_hash_bucket("occupation", 10)
wide_columns = [
    age_buckets,
    education,
    fc.crossed_column([age_buckets, "education"], hash_bucket_size=20),
    fc.crossed_column(["education", "occupation"], hash_bucket_size=15),
]
deep_columns = [
    hours,
    age_buckets,
    fc.indicator_column(education),
    fc.embedding_column(
        occupation, 3, initializer=tf.truncated_normal_initializer(stddev=0.5, seed=1)
    ),
]
features = {
    k: tf.placeholder(tf.string if v.dtype.kind == "U" else tf.float32, [None, 1], k)
    for k, v in data.items()
}
labels = tf.placeholder(tf.float32, [None, 1], name="labels")
cols_to_vars = {}
wide = fc.linear_model(features, wide_columns, cols_to_vars=cols_to_vars)
with tf.variable_scope("deep", initializer=tf.glorot_uniform_initializer(seed=2)):
    net = fc.input_layer(features, deep_columns)
    print(net.shape)
    for units in (8, 4):
        net = tf.layers.dense(net, units, activation=tf.nn.relu)
    deep = tf.layers.dense(net, 1)
logits = wide + deep
loss = tf.losses.sigmoid_cross_entropy(labels, logits)
wide_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "linear_model")
deep_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "deep")
train = tf.group(
    tf.train.FtrlOptimizer(0.2, l1_regularization_strength=0.01).minimize(
        loss, var_list=wide_vars
    ),
    tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=deep_vars),
)
inputs = fc.input_layer(features, deep_columns[:3])
accuracy, update = tf.metrics.accuracy(labels > 0.5, logits > 0)
auc, auc_update = tf.metrics.auc(labels, tf.sigmoid(logits), num_thresholds=50)
for v in tf.global_variables():
    print(v.op.name, v.shape)
print(sorted(k if isinstance(k, str) else k.name for k in cols_to_vars))
feed = {features[k]: v for k, v in data.items()}
feed[labels] = label
with tf.Session() as sess:
    sess.run(
        [
            tf.global_variables_initializer(),
            tf.local_variables_initializer(),
            tf.tables_initializer(),
        ]
    )
    print(np.round(sess.run(logits, feed)[:3].ravel(), 4))
    print(np.round(sess.run(inputs, feed)[0], 3))
    for i in range(21):
        _, value = sess.run([train, loss], feed)
        if i % 5 == 0:
            print(i, "%.4f" % value)
    sess.run([update, auc_update], feed)
    print("%.3f %.3f" % tuple(sess.run([accuracy, auc])))
    print(np.round(sess.run("linear_model/bias_weights:0"), 3))
