"""TensorFlow 1's way: a MonitoredTrainingSession, its hooks, and a restart."""

import glob
import os
import tempfile

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
folder = tempfile.mkdtemp()


class Told(tf.train.SessionRunHook):
    def begin(self):
        self._step = -1
        print("begin", len(tf.global_variables()))

    def after_create_session(self, session, coord):
        print("created, step", session.run(tf.train.get_global_step()))

    def before_run(self, run_context):
        self._step += 1
        return tf.train.SessionRunArgs({"loss": loss, "step": "global_step:0"})

    def after_run(self, run_context, run_values):
        results = run_values.results
        if self._step % 5 == 0:
            print("at", results["step"], "%.4f" % results["loss"])
        if results["loss"] < 0.02:
            run_context.request_stop()

    def end(self, session):
        print("end, step", session.run(tf.train.get_global_step()))


class Init(tf.train.SessionRunHook):
    def begin(self):
        self.value = tf.placeholder(tf.float32, [2], name="value")
        self.assign = w.assign(self.value[:, None])

    def after_create_session(self, session, coord):
        if session.run(tf.train.get_global_step()) == 0:
            session.run(self.assign, {self.value: [0.5, 0.5]})


def build():
    global loss, w
    x = tf.constant([[1.0, 2.0], [3.0, 1.0], [0.5, 0.2]], name="x")
    y = tf.constant([[3.0], [2.0], [0.4]], name="y")
    w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
    steps = tf.get_variable(
        "steps", [], tf.int32, tf.zeros_initializer(), collections=["local_variables"]
    )
    loss = tf.losses.mean_squared_error(y, tf.matmul(x, w))
    tf.summary.scalar("loss", loss)
    count = tf.assign_add(steps, 1)
    with tf.control_dependencies([count]):
        return tf.train.AdagradOptimizer(0.3).minimize(
            loss, global_step=tf.train.get_or_create_global_step()
        )


def run(last_step, extra=()):
    with tf.Graph().as_default():
        train_op = build()
        hooks = [
            tf.train.StopAtStepHook(last_step=last_step),
            tf.train.NanTensorHook(loss),
            Told(),
            *extra,
        ]
        scaffold = tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=2))
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder,
            hooks=hooks,
            scaffold=scaffold,
            save_checkpoint_steps=6,
            save_summaries_steps=4,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                session.run(train_op)
        return tf.train.latest_checkpoint(folder)


print(os.path.basename(run(14)))
print(os.path.basename(run(30)))
print(sorted(f for f in os.listdir(folder) if f.endswith("index") or "graph" in f))
for name in sorted(glob.glob(os.path.join(folder, "events*"))):
    for event in tf.train.summary_iterator(name):
        kind = event.WhichOneof("what")
        if kind == "summary":
            told = [(v.tag, "%.4f" % v.simple_value) for v in event.summary.value]
            print(event.step, *told)
        elif kind == "session_log":
            print(event.step, kind, event.session_log.status)
        else:
            print(event.step, kind)
with tf.Graph().as_default():
    build()
    init = Init()
    with tf.train.SingularMonitoredSession([init], checkpoint_dir=folder) as session:
        print(session.run(w).ravel().round(3), session.run("steps:0"))
        raw = session.raw_session()
        print(raw.run(tf.train.get_global_step()), raw.graph.finalized)
with tf.Graph().as_default():
    bad = tf.log(tf.get_variable("bad", initializer=-1.0))
    tf.train.get_or_create_global_step()
    try:
        with tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(bad)]) as session:
            session.run(bad)
    except tf.train.NanLossDuringTrainingError as error:
        print(error)
