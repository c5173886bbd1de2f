"""Networks of TensorFlow 1 whose names, values and errors tests/golden/v1/networks.json
keeps.

Written anew by a Python that has TensorFlow 2.21 and tf-keras:
`TF_USE_LEGACY_KERAS=1 python network_cases.py tensorflow ../../../tests/golden/v1`.
"""

import importlib
import json
import os
import sys

import numpy as np


def wave(*shape, k=1):
    """Numbers of a shape, different for each k."""
    n = int(np.prod(shape))
    return np.sin(np.arange(n) * 0.7 * k + k).reshape(shape).astype(np.float32)


class Cases:
    """Each method gives {name: function that builds a network and gives its outputs}."""

    def __init__(self, tf):
        self.tf, self.v1 = tf, tf.compat.v1
        self.cells, self.layers = self.v1.nn.rnn_cell, self.v1.layers

    def x(self, *shape):
        return self.tf.constant(wave(*shape), name="x")

    def switch(self, on):
        """A bool that only a run knows."""
        given = self.v1.placeholder_with_default(int(on), [], name="on")
        return self.tf.equal(given, 1)

    def kinds_of_cells(self):
        c = self.cells
        return {
            "rnn": lambda: c.BasicRNNCell(4),
            "gru": lambda: c.GRUCell(4),
            "basic_lstm": lambda: c.BasicLSTMCell(4),
            "lstm": lambda: c.LSTMCell(
                4, use_peepholes=True, num_proj=3, cell_clip=0.4, proj_clip=0.3
            ),
            "lstm_joined": lambda: c.LSTMCell(
                4, state_is_tuple=False, activation="relu"
            ),
            "lstm_in_parts": lambda: c.LSTMCell(4, num_unit_shards=2),
            "stacked": lambda: c.MultiRNNCell(
                [c.GRUCell(4), c.ResidualWrapper(c.BasicLSTMCell(4))]
            ),
            "stacked_joined": lambda: c.MultiRNNCell(
                [c.GRUCell(4), c.GRUCell(3)], state_is_tuple=False
            ),
            "on_device": lambda: c.DeviceWrapper(c.GRUCell(4), "/cpu:0"),
            "residual": lambda: c.ResidualWrapper(
                c.GRUCell(2), residual_fn=lambda x, y: x * 2 - y
            ),
        }

    def recurrent(self):
        nn, x, c, f32 = self.v1.nn, self.x, self.cells, self.tf.float32
        cases = {}
        for name, cell in self.kinds_of_cells().items():
            cases |= {
                f"{name} dynamic": lambda cell=cell: nn.dynamic_rnn(
                    cell(), x(3, 5, 2), dtype=f32
                ),
                f"{name} dynamic lengths": lambda cell=cell: nn.dynamic_rnn(
                    cell(), x(3, 5, 2), sequence_length=[2, 4, 0], dtype=f32
                ),
                f"{name} static": lambda cell=cell: nn.static_rnn(
                    cell(), [x(3, 2), x(3, 2) * 2], dtype=f32
                ),
                f"{name} static lengths": lambda cell=cell: nn.static_rnn(
                    cell(),
                    [x(3, 2), x(3, 2) * 2, x(3, 2) * 3],
                    sequence_length=[1, 3, 2],
                    dtype=f32,
                ),
            }
        steps = lambda: [x(3, 2), x(3, 2) * 2, x(3, 2) * 3]  # noqa: E731
        return cases | {
            "time first": lambda: nn.dynamic_rnn(
                c.GRUCell(4), x(5, 3, 2), time_major=True, initial_state=x(3, 4)
            ),
            "scope": lambda: nn.dynamic_rnn(
                c.GRUCell(4), x(5, 3, 2), scope="own", dtype=f32, swap_memory=True
            ),
            "both ways": lambda: nn.bidirectional_dynamic_rnn(
                c.GRUCell(4),
                c.BasicLSTMCell(3),
                x(3, 5, 2),
                sequence_length=[2, 5, 3],
                dtype=f32,
            ),
            "both ways time first": lambda: nn.bidirectional_dynamic_rnn(
                c.GRUCell(4), c.GRUCell(3), x(5, 3, 2), time_major=True, dtype=f32
            ),
            "both ways static": lambda: nn.static_bidirectional_rnn(
                c.GRUCell(4),
                c.BasicLSTMCell(3),
                steps(),
                sequence_length=[1, 3, 2],
                dtype=f32,
            ),
            "saved state": lambda: nn.static_state_saving_rnn(
                c.BasicLSTMCell(4), steps(), _Saver(self), ("c", "h")
            ),
            "two inputs": lambda: nn.dynamic_rnn(
                _TwoInputs(self), (x(3, 5, 2), x(3, 5, 4)), dtype=f32
            ),
            "raw": self._raw,
            "raw emitting": self._raw_emitting,
            "own cell": lambda: nn.dynamic_rnn(
                _own_cell(self)(3), x(3, 5, 2), dtype=f32
            ),
            "cell of keras": lambda: nn.dynamic_rnn(
                self.tf.keras.layers.GRUCell(3), x(3, 5, 2), dtype=f32
            ),
        }

    def _reader(self):
        tf, lengths = self.tf, self.tf.constant([2, 4, 1])
        steps = tf.transpose(self.x(3, 5, 2), [1, 0, 2])
        array = tf.TensorArray(tf.float32, 5).unstack(steps)

        def read(time):
            finished = time >= lengths
            inputs = tf.cond(
                tf.reduce_all(finished),
                lambda: tf.zeros([3, 2]),
                lambda: array.read(time),
            )
            return finished, inputs

        return read

    def _raw(self):
        tf, cell, read = self.tf, self.cells.LSTMCell(4), self._reader()

        def step(time, output, state, total):
            finished, inputs = read(time)
            if output is None:
                state, total = cell.zero_state(3, tf.float32), tf.constant(0.0)
                return finished, inputs, state, None, total
            total += tf.reduce_sum(output)
            return finished, inputs, state, output * 2, total

        outputs, state, total = self.v1.nn.raw_rnn(cell, step)
        return outputs.stack(), state, total

    def _raw_emitting(self):
        tf, cell, read = self.tf, self.cells.GRUCell(4), self._reader()

        def step(time, output, state, _):
            finished, inputs = read(time)
            if output is None:
                like = {"part": tf.zeros([2]), "time": tf.zeros([], tf.int32)}
                state = cell.zero_state(3, tf.float32)
                return finished, inputs, state, like, None
            emitted = {"part": output[:, :2], "time": tf.fill([3], time)}
            return finished, inputs, state, emitted, None

        outputs, state, _ = self.v1.nn.raw_rnn(cell, step, scope="decoder")
        return outputs["part"].stack(), outputs["time"].stack(), state

    def feed_forward(self):
        tf, to, x = self.tf, self.layers, self.x
        image = lambda: x(4, 6, 6, 3)  # noqa: E731
        penalty = lambda w: 0.1 * tf.reduce_sum(w * w)  # noqa: E731

        def shared():
            with self.v1.variable_scope("s", reuse=self.v1.AUTO_REUSE):
                a = to.dense(x(4, 3), 2, name="d")
            with self.v1.variable_scope("s", reuse=True):
                return a, to.dense(x(4, 3) * 2, 2, name="d")

        def reopened():
            with self.v1.variable_scope("s"):
                a = to.dense(x(4, 3), 2)
            with self.v1.variable_scope("s", reuse=True):
                return a, to.dense(x(4, 3) * 2, 2)

        def kept():
            layer = to.Dense(2, name="kept", activation="relu")
            return layer(x(4, 3)), layer.apply(x(4, 3) * 2)

        return {
            "dense": lambda: to.dense(x(4, 3), 2, activation=tf.nn.tanh),
            "dense volume": lambda: to.dense(x(4, 2, 3), 2, name="wide"),
            "dense twice": lambda: (to.dense(x(4, 3), 2), to.dense(x(4, 3), 3)),
            "dense shared": shared,
            "dense reopened": reopened,
            "dense kept": kept,
            "dense penalties": lambda: to.dense(
                x(4, 3),
                2,
                kernel_regularizer=penalty,
                bias_regularizer=penalty,
                activity_regularizer=tf.reduce_sum,
            ),
            "conv1d": lambda: to.conv1d(x(2, 7, 3), 4, 3),
            "conv2d": lambda: to.conv2d(
                image(), 4, 3, strides=2, padding="SAME", activation=tf.nn.relu
            ),
            "conv2d first": lambda: to.conv2d(
                tf.transpose(image(), [0, 3, 1, 2]), 4, 3, data_format="channels_first"
            ),
            "conv2d wide": lambda: to.conv2d(image(), 4, 2, dilation_rate=2),
            "conv3d": lambda: to.conv3d(x(1, 3, 3, 3, 2), 2, 2, use_bias=False),
            "separable1d": lambda: to.separable_conv1d(
                x(2, 7, 3), 4, 3, depth_multiplier=2
            ),
            "separable2d": lambda: to.separable_conv2d(image(), 4, 3),
            "transposed2d": lambda: to.conv2d_transpose(
                image(), 2, 3, strides=2, padding="same"
            ),
            "transposed3d": lambda: to.conv3d_transpose(
                x(1, 2, 2, 2, 2), 2, 3, strides=2
            ),
            "max1d": lambda: to.max_pooling1d(x(2, 7, 3), 2, 2),
            "max2d": lambda: to.max_pooling2d(image(), 2, 2, name="pool"),
            "max3d": lambda: to.max_pooling3d(x(1, 4, 4, 4, 2), 2, 2),
            "average1d": lambda: to.average_pooling1d(x(2, 7, 3), 2, 2, padding="same"),
            "average2d": lambda: to.average_pooling2d(image(), 3, 2),
            "average3d": lambda: to.average_pooling3d(x(1, 4, 4, 4, 2), 2, 2),
            "flatten": lambda: to.flatten(image()),
            "flatten first": lambda: to.flatten(image(), data_format="channels_first"),
            "dropout": lambda: to.dropout(x(4, 3), 0.4),
        }

    def normalization(self):
        tf, x = self.tf, self.x
        apply = self.layers.batch_normalization
        image = lambda: x(4, 6, 6, 3)  # noqa: E731
        clipping = {"rmax": 1.5, "rmin": 0.5, "dmax": 0.4}
        kinds = {
            "rows": lambda on: apply(x(4, 3), training=on),
            "images": lambda on: apply(image(), training=on),
            "images first": lambda on: apply(image(), axis=1, training=on),
            "images unfused": lambda on: apply(image(), fused=False, training=on),
            "axes": lambda on: apply(x(4, 3, 2), axis=[1, 2], training=on),
            "inner axis": lambda on: apply(x(4, 3, 2), axis=1, training=on),
            "renorm": lambda on: apply(
                x(4, 3),
                renorm=True,
                renorm_clipping=clipping,
                renorm_momentum=0.8,
                training=on,
            ),
            "renorm free": lambda on: apply(
                image(), renorm=True, scale=False, momentum=0.5, training=on
            ),
            "parts": lambda on: apply(x(4, 3), virtual_batch_size=2, training=on),
            "parts of images": lambda on: apply(
                image(), virtual_batch_size=2, training=on
            ),
            "adjusted": lambda on: apply(
                x(4, 3),
                adjustment=lambda s: (tf.fill([s[0], 1], 2.0), tf.fill([s[0], 1], 0.5)),
                training=on,
            ),
            "plain": lambda on: apply(image(), scale=False, center=False, training=on),
        }
        modes = {
            "fixed": lambda: False,
            "training": lambda: True,
            "switch on": lambda: self.switch(True),
            "switch off": lambda: self.switch(False),
        }
        return {
            f"{kind} {mode}": lambda build=build, on=on: build(on())
            for kind, build in kinds.items()
            for mode, on in modes.items()
        }

    def errors(self):
        return self._errors_of_layers() | self._errors_of_cells()

    def _unknown(self, *shape):
        return self.v1.placeholder(self.tf.float32, list(shape), name="p")

    def _ints(self, *shape):
        return self.tf.ones(shape, self.tf.int32)

    def _errors_of_layers(self):
        c, to, x, ints = self.cells, self.layers, self.x, self._ints
        nn, f32, unknown = self.v1.nn, self.tf.float32, self._unknown
        image = lambda: x(2, 8, 8, 3)  # noqa: E731
        return {
            "reuse of nothing": lambda: to.dense(x(2, 3), 2, name="d", reuse=True),
            "again": lambda: [to.dense(x(2, 3), 2, name="d") for _ in "ab"],
            "again recurrent": lambda: [
                nn.dynamic_rnn(c.GRUCell(3), x(2, 3, 4), dtype=f32) for _ in "ab"
            ],
            "scope name": lambda: to.Dense(2).scope_name,
            "scope": lambda: to.Dense(3)(x(2, 3), scope=3),
            "dense ints": lambda: to.dense(ints(2, 3), 3),
            "dense vector": lambda: to.dense(x(3), 3),
            "dense unknown": lambda: to.dense(unknown(2, None), 3),
            "dense negative": lambda: to.dense(x(2, 3), -3),
            "dense word": lambda: to.dense(x(2, 3), "a"),
            "argument": lambda: to.Dense(3, foo=1),
            "conv rank": lambda: to.conv2d(x(2, 3), 3, 3),
            "conv padding": lambda: to.conv2d(image(), 3, 3, padding="foo"),
            "conv kernel": lambda: to.conv2d(image(), 3, (3, 3, 3)),
            "conv format": lambda: to.conv2d(image(), 3, 3, data_format="x"),
            "conv filters": lambda: to.conv2d(image(), 0, 3),
            "conv strides": lambda: to.conv2d(image(), 3, 3, 2, dilation_rate=2),
            "conv channels": lambda: to.conv2d(unknown(2, 8, 8, None), 3, 3),
            "pool padding": lambda: to.max_pooling2d(image(), 2, 2, padding="foo"),
            "pool strides": lambda: to.max_pooling2d(image(), 2, None),
            "pool rank": lambda: to.max_pooling2d(x(2, 8, 3), 2, 2),
            "dropout rate": lambda: to.dropout(x(2, 3), 2.0),
            "norm axis": lambda: to.batch_normalization(x(2, 3), axis=4),
            "norm axes": lambda: to.batch_normalization(x(2, 3, 4), axis=[1, 1]),
            "norm axis type": lambda: to.BatchNormalization(axis="a"),
            "norm clipping": lambda: to.batch_normalization(
                x(2, 3), renorm=True, renorm_clipping={"foo": 1}
            ),
            "norm unknown": lambda: to.batch_normalization(unknown(2, None)),
            "keras style": self._in_keras_style,
        }

    def _errors_of_cells(self):
        c, x, ints, unknown = self.cells, self.x, self._ints, self._unknown
        nn, f32 = self.v1.nn, self.tf.float32
        return {
            "cell rank": lambda: c.BasicRNNCell(3)(x(4), x(2, 3)),
            "cell size": lambda: c.LSTMCell(3)(unknown(4, None), (x(4, 3), x(4, 3))),
            "cell ints": lambda: c.BasicRNNCell(3)(ints(2, 3), ints(2, 3)),
            "cell argument": lambda: c.GRUCell(3, foo=1),
            "stack empty": lambda: c.MultiRNNCell([]),
            "stack type": lambda: c.MultiRNNCell(3),
            "stack joined": lambda: c.MultiRNNCell(
                [c.BasicLSTMCell(3)], state_is_tuple=False
            ),
            "stack state": lambda: c.MultiRNNCell([c.GRUCell(3)])(x(2, 3), x(2, 3)),
            "wrapped": lambda: c.DropoutWrapper(3),
            "kept share": lambda: c.DropoutWrapper(c.GRUCell(3), input_keep_prob=1.5),
            "same mask": lambda: c.DropoutWrapper(
                c.GRUCell(3), 0.5, variational_recurrent=True
            ),
            "same mask size": lambda: c.DropoutWrapper(
                c.GRUCell(3), 0.5, variational_recurrent=True, dtype=f32
            ),
            "visitor": lambda: c.DropoutWrapper(
                c.GRUCell(3), dropout_state_filter_visitor=3
            ),
            "residual": lambda: c.ResidualWrapper(c.GRUCell(3))(x(2, 4), x(2, 3)),
            "config": lambda: c.ResidualWrapper.from_config(
                c.ResidualWrapper(c.GRUCell(3)).get_config()
            ),
            "tuple dtype": lambda: c.LSTMStateTuple(x(1), ints(1)).dtype,
            "abstract": lambda: c.RNNCell().state_size,
            "abstract state": lambda: c.RNNCell().zero_state(2, f32),
            "negative batch": lambda: c.GRUCell(3).zero_state(-2, f32),
            "no batch": lambda: c.GRUCell(3).get_initial_state(),
            "other batch": lambda: c.GRUCell(3).get_initial_state(x(4, 2), 3),
            "dynamic cell": lambda: nn.dynamic_rnn(3, x(2, 3, 4)),
            "dynamic dtype": lambda: nn.dynamic_rnn(c.GRUCell(3), x(2, 3, 4)),
            "dynamic rank": lambda: nn.dynamic_rnn(c.GRUCell(3), x(2, 4), dtype=f32),
            "dynamic lengths": lambda: nn.dynamic_rnn(
                c.GRUCell(3), unknown(2, 3, 4), unknown(2, 2), dtype=f32
            ),
            "dynamic size": lambda: nn.dynamic_rnn(
                c.GRUCell(3), unknown(2, 3, None), dtype=f32
            ),
            "dynamic times": lambda: nn.dynamic_rnn(
                c.GRUCell(3), (unknown(2, 3, 4), unknown(2, 4, 4)), dtype=f32
            ),
            "dynamic parallel": lambda: nn.dynamic_rnn(
                c.GRUCell(3), x(2, 3, 4), dtype=f32, parallel_iterations=-1
            ),
            "static cell": lambda: nn.static_rnn(3, [x(2, 3)]),
            "static inputs": lambda: nn.static_rnn(c.GRUCell(3), unknown(2, 3)),
            "static empty": lambda: nn.static_rnn(c.GRUCell(3), []),
            "static size": lambda: nn.static_rnn(
                c.GRUCell(3), [unknown(2, None)], dtype=f32
            ),
            "static batch": lambda: nn.static_rnn(
                c.GRUCell(3), [x(2, 3), x(3, 3)], dtype=f32
            ),
            "both ways cell": lambda: nn.bidirectional_dynamic_rnn(
                c.GRUCell(3), 3, x(2, 3, 4)
            ),
            "both ways dtype": lambda: nn.bidirectional_dynamic_rnn(
                c.GRUCell(3), c.GRUCell(3), x(2, 3, 4)
            ),
            "saver name": lambda: nn.static_state_saving_rnn(
                c.BasicLSTMCell(3), [x(2, 3)], None, "a"
            ),
            "saver names": lambda: nn.static_state_saving_rnn(
                c.BasicLSTMCell(3), [x(2, 3)], None, ("a",)
            ),
            "raw function": lambda: nn.raw_rnn(c.GRUCell(3), 3),
        }

    def _in_keras_style(self):
        with self.layers.experimental.keras_style_scope():
            return self.layers.dense(self.x(2, 3), 3, name="a")


class _Saver:
    def __init__(self, cases):
        self._cases = cases

    def state(self, name):
        return self._cases.tf.constant(wave(3, 4, k=len(name)))

    def save_state(self, name, value):
        return self._cases.tf.identity(value, name=f"saved_{name}")


def _own_cell(cases):
    v1, tf = cases.v1, cases.tf

    class OwnCell(v1.nn.rnn_cell.RNNCell):
        def __init__(self, units):
            super().__init__()
            self.units = units

        state_size = property(lambda self: self.units)
        output_size = property(lambda self: self.units)

        def call(self, inputs, state):
            size = inputs.shape[-1] + self.units
            w = v1.get_variable("w", [size, self.units])
            out = tf.tanh(tf.matmul(tf.concat([inputs, state], 1), w))
            return out, out + state

    return OwnCell


def _TwoInputs(cases):  # noqa: N802
    class TwoInputs(cases.v1.nn.rnn_cell.RNNCell):
        state_size = (2, 4)
        output_size = (2, 4)

        def __call__(self, inputs, state, scope=None):
            new = (inputs[0] + state[0], inputs[1] * state[1] + 1.0)
            return (new[0] * 2.0, new[1]), new

    return TwoInputs()


def _short(array):
    """The shape, the first numbers and the sum of an array."""
    array = np.asarray(array)
    first = [round(float(v), 5) for v in array.ravel()[:12]]
    return [list(array.shape), first, round(float(np.sum(array, dtype=np.float64)), 4)]


def _load(session, variables):
    for number, variable in enumerate(variables):
        value = wave(*variable.shape.as_list(), k=number + 2) * 0.5
        if "variance" in variable.name or "stddev" in variable.name:
            value = np.abs(value) + 0.1
        variable.load(value, session)


def measure(tf, build):
    """What a network is called, what it and its gradients are, what its updates do."""
    v1 = tf.compat.v1
    found = {}
    with tf.Graph().as_default() as graph:
        outputs = tf.nest.flatten(build())
        found["names"] = [t.name for t in outputs]
        found["shapes"] = [str(t.shape) for t in outputs]
        keys = ("variables", "trainable_variables", "regularization_losses")
        for key in (*keys, "update_ops"):
            found[key] = [v.name for v in graph.get_collection(key)]
        floats = [t for t in outputs if t.dtype.is_floating]
        loss = tf.add_n([tf.reduce_sum(tf.square(t)) for t in floats])
        loss += tf.add_n([tf.constant(0.0), *v1.losses.get_regularization_losses()])
        trained = v1.trainable_variables()
        slopes = tf.gradients(loss, trained) if trained else []
        slopes = [s for s in slopes if s is not None]
        variables = v1.global_variables()
        updates = graph.get_collection("update_ops")
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            _load(session, variables)
            values, gradients = session.run([outputs, slopes])
            found["values"] = [_short(v) for v in values]
            found["gradients"] = [_short(g) for g in gradients]
            session.run(updates)
            kept = [v for v in variables if not v.trainable]
            found["kept"] = {v.name: _short(session.run(v)) for v in kept}
    return found


def error_of(tf, build):
    """The class and the text of what building a network raises."""
    with tf.Graph().as_default():
        try:
            build()
        except Exception as error:
            return [type(error).__name__, str(error)]
    return None


def all_networks(cases):
    return cases.recurrent() | cases.feed_forward() | cases.normalization()


def main(module, folder):
    tf = importlib.import_module(module)
    cases = Cases(tf)
    found = {"networks": {}, "frames": {}, "errors": {}}
    for kind, switch in (
        ("networks", tf.compat.v1.enable_control_flow_v2),
        ("frames", tf.compat.v1.disable_control_flow_v2),
    ):
        switch()
        for name, build in all_networks(cases).items():
            found[kind][name] = measure(tf, build)
    tf.compat.v1.enable_control_flow_v2()
    for name, build in cases.errors().items():
        found["errors"][name] = error_of(tf, build)
    same = [n for n, f in found["frames"].items() if f == found["networks"][n]]
    for name in same:  # what does not depend on how loops are made is kept once
        del found["frames"][name]
    with open(os.path.join(folder, "networks.json"), "w") as file:
        json.dump(found, file, indent=0, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
