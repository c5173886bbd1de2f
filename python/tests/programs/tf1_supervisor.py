"""TensorFlow 1's way: a Supervisor, its summaries, and a program that goes on after its end."""

import glob
import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf
from google.protobuf import text_format

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
logdir = tempfile.mkdtemp()
draw = np.random.RandomState(0)
inputs = draw.rand(100, 3)
targets = inputs @ [[1.0], [-2.0], [0.5]] + 0.3


def model():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.placeholder(tf.float32, [None, 1], name="y")
    global_step = tf.Variable(0, name="global_step", trainable=False)
    with tf.name_scope("layer"):
        w = tf.Variable(tf.zeros([3, 1]), name="w")
        b = tf.Variable(tf.zeros([1]), name="b")
        predictions = tf.nn.xw_plus_b(x, w, b, name="predictions")
        tf.summary.histogram("weights", w)
    loss = tf.reduce_mean(tf.square(y - predictions), name="loss")
    rate = tf.train.exponential_decay(0.3, global_step, 10, 0.9, staircase=True)
    tf.summary.scalar("loss", loss)
    tf.summary.scalar("learning_rate", rate)
    tf.summary.text("note", tf.constant("a note"))
    optimizer = tf.train.GradientDescentOptimizer(rate)
    return x, y, global_step, loss, optimizer.minimize(loss, global_step=global_step)


def train(until):
    with tf.Graph().as_default():
        x, y, global_step, loss, train_op = model()
        summary_op = tf.summary.merge_all()
        sv = tf.train.Supervisor(
            logdir=logdir,
            summary_op=None,
            global_step=global_step,
            save_model_secs=0,
            save_summaries_secs=0,
        )
        with sv.managed_session() as sess:
            print("begins at", sess.run(global_step))
            while not sv.should_stop():
                step = sess.run(global_step)
                if step >= until:
                    break
                rows = np.arange(step * 10, step * 10 + 10) % 100
                feed = {x: inputs[rows], y: targets[rows]}
                _, value = sess.run([train_op, loss], feed)
                if step % 10 == 0:
                    sv.summary_computed(sess, sess.run(summary_op, feed))
                    print("step %d loss %.4f" % (step, value))
            sv.saver.save(sess, sv.save_path, global_step=global_step)
            print(os.path.relpath(sv.save_path, logdir), sv.is_chief)
            sv.stop()
    print(sv.should_stop(), sv.session_manager is not None)


train(25)
train(40)
print(sorted(f for f in os.listdir(logdir) if not f.startswith("events")))
for name in sorted(glob.glob(os.path.join(logdir, "events*"))):
    for event in tf.train.summary_iterator(name):
        kind = event.WhichOneof("what")
        if kind == "summary":
            for v in event.summary.value:
                number = "%.4f" % v.simple_value if v.HasField("simple_value") else ""
                told = v.metadata.plugin_data.plugin_name
                print(event.step, v.tag, v.WhichOneof("value"), number, told)
        elif kind == "session_log":
            path = event.session_log.checkpoint_path
            print(event.step, event.session_log.status, os.path.basename(path))
        else:
            print(event.step, kind)
text = tf.gfile.GFile(os.path.join(logdir, "graph.pbtxt")).read()
graph_def = tf.GraphDef()
text_format.Parse(text, graph_def)
print([n.name for n in graph_def.node][:8])
print(tf.train.get_checkpoint_state(logdir).model_checkpoint_path[-13:])
