"""TensorFlow 1's way: a graph frozen, imported elsewhere, mapped, trimmed, trained further."""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
folder = tempfile.mkdtemp()


def train():
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 4], name="input")
        y = tf.placeholder(tf.float32, [None, 1], name="target")
        with tf.variable_scope("model"):
            h = tf.layers.dense(
                x,
                5,
                tf.nn.relu,
                kernel_initializer=tf.ones_initializer(),
                name="hidden",
            )
            h = tf.layers.dropout(h, 0.5, training=False)
            out = tf.layers.dense(
                h, 1, kernel_initializer=tf.zeros_initializer(), name="out"
            )
        out = tf.sigmoid(out, name="output")
        loss = tf.losses.log_loss(y, out)
        step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
        saver = tf.train.Saver()
        tf.summary.scalar("loss", loss)
        sess.run(tf.global_variables_initializer())
        draw = np.random.RandomState(0)
        data = draw.rand(50, 4)
        feed = {x: data, y: data[:, :1] > 0.5}
        for _ in range(20):
            sess.run(step, feed)
        path = saver.save(sess, os.path.join(folder, "model.ckpt"))
        tf.train.write_graph(graph.as_graph_def(), folder, "graph.pbtxt")
        frozen = tf.graph_util.convert_variables_to_constants(
            sess, graph.as_graph_def(), ["output"]
        )
        with tf.gfile.GFile(os.path.join(folder, "frozen.pb"), "wb") as f:
            f.write(frozen.SerializeToString())
        return path, data, sess.run(out, {x: data[:3]})


def load_graph(filename, **how):
    with tf.gfile.GFile(filename, "rb") as f:
        graph_def = tf.GraphDef()
        graph_def.ParseFromString(f.read())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, **how)
    return graph


path, data, before = train()
graph = load_graph(os.path.join(folder, "frozen.pb"), name="prefix")
for op in graph.get_operations():
    print(op.name, op.type)
x = graph.get_tensor_by_name("prefix/input:0")
y = graph.get_tensor_by_name("prefix/output:0")
with tf.Session(graph=graph) as sess:
    print(np.allclose(sess.run(y, {x: data[:3]}), before), before.round(3).ravel())

with tf.Graph().as_default() as graph, tf.Session() as sess:
    graph_def = tf.GraphDef()
    graph_def.ParseFromString(open(os.path.join(folder, "frozen.pb"), "rb").read())
    mine = tf.constant(data[:3].astype("f4"))
    (y, hidden) = tf.import_graph_def(
        graph_def, {"input": mine}, ["output:0", "model/hidden/Relu"], name=""
    )
    print(np.allclose(sess.run(y), before), hidden.type, hidden.name)
    part = tf.graph_util.extract_sub_graph(graph_def, ["model/hidden/Relu"])
    print([n.name for n in part.node])
    slim = tf.graph_util.remove_training_nodes(graph_def)
    print(len(graph_def.node), len(slim.node))
    for wrong in ({"nothing": mine}, {"input": tf.constant(1)}):
        try:
            tf.import_graph_def(graph_def, wrong)
        except ValueError as error:
            print(str(error).partition(" of node")[0])
    w = tf.get_variable("w", [5, 1], initializer=tf.ones_initializer())
    new = tf.reduce_sum(tf.matmul(hidden.outputs[0], w))
    tune = tf.train.GradientDescentOptimizer(0.01).minimize(new)
    sess.run(tf.global_variables_initializer())
    sess.run(tune)
    print(sess.run(w).round(3).ravel(), [v.name for v in tf.trainable_variables()])

with tf.Graph().as_default() as graph, tf.Session() as sess:
    saver = tf.train.import_meta_graph(path + ".meta", clear_devices=True)
    saver.restore(sess, path)
    print(sorted(graph.get_all_collection_keys()))
    print([v.op.name for v in tf.trainable_variables()])
    feed = {"input:0": data, "target:0": data[:, :1] > 0.5}
    a = sess.run("log_loss/value:0", feed)
    sess.run("GradientDescent", feed)
    print("%.4f" % a, sess.run("log_loss/value:0", feed) < a)
    print(sess.run(tf.get_collection("summaries")[0], feed)[:1])
with tf.Graph().as_default() as graph, tf.Session() as sess:
    saver = tf.train.import_meta_graph(path + ".meta", import_scope="again")
    saver.restore(sess, path)
    print([v.op.name for v in tf.trainable_variables()])
    out = sess.run("again/output:0", {"again/input:0": data[:3]})
    print(np.allclose(out, before))
    meta = tf.train.export_meta_graph(graph=graph)
    print(meta.graph_def.node[0].name, sorted(meta.collection_def)[:2])
