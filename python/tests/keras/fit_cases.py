"""Trainings whose logs, callbacks' calls and printed lines tests/golden/keras/fit.json
keeps, and the losses of every step of deeper models.

Written anew by a Python that has TensorFlow 2.21 and tf-keras, from this folder:
`TF_USE_LEGACY_KERAS=1 python fit_cases.py tensorflow ../../../tests/golden/keras`.
"""

import contextlib
import importlib
import io
import json
import os
import re
import sys
import tempfile

import numpy as np

_RNG = np.random.RandomState(0)
X = _RNG.normal(size=[70, 4]).astype("float32")
_W = _RNG.normal(size=[4, 3])
Y = np.argmax(X @ _W, 1)
YR = (X @ _W[:, :1]).astype("float32")
IMAGES = _RNG.normal(size=[128, 8, 8, 3]).astype("float32") * 3 + 1
LABELS = _RNG.randint(0, 10, 128)
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Kit:
    """The models of the cases."""

    def __init__(self, tf):
        self.tf, self.keras, self.layers = tf, tf.keras, tf.keras.layers
        self.callbacks = tf.keras.callbacks

    def _start(self, shape, dtype=None, **kwargs):
        n = int(np.prod(shape))
        return self.tf.constant(np.linspace(-0.5, 0.5, n).reshape(shape), "float32")

    def dense(self, n, **kwargs):
        return self.layers.Dense(n, kernel_initializer=self._start, **kwargs)

    def crossentropy(self):
        return self.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def model(self, **compiled):
        first = self.dense(5, activation="tanh", input_shape=[4])
        made = self.keras.Sequential([first, self.dense(3)])
        sgd = self.keras.optimizers.SGD(0.1)
        how = dict(optimizer=sgd, loss=self.crossentropy(), metrics=["accuracy"])
        made.compile(**{**how, **compiled})
        return made

    def two_outputs(self, **compiled):
        inputs = self.keras.Input([4], name="in")
        x = self.dense(5, activation="tanh")(inputs)
        outputs = [self.dense(3, name="a")(x), self.dense(1, name="b")(x)]
        made = self.keras.Model(inputs, outputs)
        how = dict(
            optimizer=self.keras.optimizers.SGD(0.05),
            loss={"a": self.crossentropy(), "b": "mse"},
            loss_weights={"a": 1.0, "b": 0.3},
            metrics={"a": "accuracy", "b": ["mae"]},
        )
        made.compile(**{**how, **compiled})
        return made

    def batches(self, size=10):
        return self.tf.data.Dataset.from_tensor_slices((X, Y)).batch(size)

    def log(self, calls):
        """A callback that notes what is called with what."""

        class Log(self.callbacks.Callback):
            pass

        for what in ("train", "test", "predict"):
            for when in ("begin", "end"):
                name = f"{what}_{when}"
                setattr(Log, f"on_{name}", _noted(calls, name))
                setattr(Log, f"on_{what}_batch_{when}", _noted(calls, what + when, 1))
        Log.on_epoch_begin = _noted(calls, "epoch_begin", 1)
        Log.on_epoch_end = _noted(calls, "epoch_end", 1)
        return Log()


def _noted(calls, name, indexed=False):
    def plain(self, logs=None):
        calls.append([name, _plain(logs)])

    def with_index(self, index, logs=None):
        calls.append([name, index, _plain(logs)])

    return with_index if indexed else plain


def _plain(value):
    """What a callback was given, as JSON holds it; arrays by their shapes."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "shape") and len(value.shape):
        return [int(n) for n in value.shape]
    return round(float(value), 5) if hasattr(value, "__float__") else value


def _result(history):
    return _plain([history.history, history.epoch, history.params])


@case
def fit_and_calls(kit, log):
    m = kit.model()
    r = m.fit(X, Y, epochs=2, batch_size=20, shuffle=False, callbacks=[log])
    return _result(r), m.metrics_names


@case
def summary_lines_and_a_split(kit, log):
    how = dict(epochs=2, batch_size=20, shuffle=False, validation_split=0.3)
    return _result(kit.model().fit(X, Y, verbose=2, callbacks=[log], **how))


@case
def weights_of_classes_and_samples(kit, log):
    m = kit.model(weighted_metrics=["accuracy"])
    how = dict(epochs=2, batch_size=20, shuffle=False, verbose=0)
    first = _result(m.fit(X, Y, class_weight={0: 1.0, 1: 2.0, 2: 0.5}, **how))
    held_out = X, Y, np.linspace(1, 0, 70)
    how.update(sample_weight=np.linspace(0, 2, 70), validation_data=held_out)
    second = _result(m.fit(X, Y, **how))
    return first, second, m.evaluate(X, Y, sample_weight=Y + 0.5, verbose=0)


@case
def steps_of_an_endless_dataset(kit, log):
    data = kit.batches().repeat()
    how = dict(epochs=2, steps_per_epoch=3, validation_data=data, validation_steps=2)
    return _result(kit.model().fit(data, callbacks=[log], **how))


@case
def data_of_unknown_size(kit, log):
    def rows():
        for i in range(0, 70, 10):
            yield X[i : i + 10], Y[i : i + 10]

    specs = kit.tf.TensorSpec([None, 4]), kit.tf.TensorSpec([None], "int64")
    data = kit.tf.data.Dataset.from_generator(rows, output_signature=specs)
    return _result(kit.model().fit(data, epochs=2, callbacks=[log]))


@case
def data_that_runs_out(kit, log):
    how = dict(epochs=3, steps_per_epoch=3, verbose=2)
    return _result(kit.model().fit(kit.batches().take(4), **how))


@case
def two_outputs(kit, log):
    m = kit.two_outputs()
    y = {"a": Y, "b": YR}
    r = m.fit(X, y, epochs=2, batch_size=20, shuffle=False, callbacks=[log])
    return _result(r), m.metrics_names, m.evaluate(X, [Y, YR], verbose=1)


@case
def losses_and_metrics_in_lists(kit, log):
    losses = [kit.crossentropy(), "mae"]
    metrics = [["accuracy"], ["mse"]]
    m = kit.two_outputs(loss=losses, loss_weights=None, metrics=metrics)
    m.fit(X, [Y, YR], verbose=2, shuffle=False)
    return m.metrics_names, _plain(m.evaluate(X, [Y, YR], verbose=0, return_dict=True))


@case
def steps_of_ones_own(kit, log):
    tf = kit.tf

    class Own(kit.keras.Model):
        def __init__(self):
            super().__init__()
            self.d, self.average = kit.dense(3), kit.keras.metrics.Mean(name="avg")

        def call(self, x):
            return self.d(x)

        @property
        def metrics(self):
            return [self.average]

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = kit.crossentropy()(y, self(x, training=True))
            variables = self.trainable_variables
            gradients = tape.gradient(loss, variables)
            self.optimizer.apply_gradients(zip(gradients, variables))
            self.average.update_state(loss)
            norm = tf.linalg.global_norm(gradients)
            return {"norm": norm, "avg": self.average.result()}

        def test_step(self, data):
            self.average.update_state(tf.reduce_mean(self(data[0])))
            return {"avg": self.average.result()}

    m = Own()
    m.compile(kit.keras.optimizers.SGD(0.1))
    how = dict(epochs=2, shuffle=False, batch_size=35, validation_data=(X, Y))
    r = m.fit(X, Y, verbose=2, callbacks=[log], **how)
    return _result(r), m.evaluate(X, Y, verbose=2)


@case
def early_stop(kit, log):
    stop = kit.callbacks.EarlyStopping(
        "val_loss", patience=1, min_delta=0.05, verbose=1, restore_best_weights=True
    )
    how = dict(epochs=8, shuffle=False, verbose=2, validation_split=0.3)
    r = kit.model().fit(X, Y, callbacks=[stop], **how)
    return _result(r), stop.stopped_epoch, stop.best_epoch, _plain(stop.best)


@case
def rates_that_fall(kit, log):
    plateau = kit.callbacks.ReduceLROnPlateau(
        "loss", 0.5, 1, 1, min_delta=0.1, cooldown=1, min_lr=0.01
    )
    how = dict(epochs=5, shuffle=False, verbose=2)
    first = _result(kit.model().fit(X, Y, callbacks=[plateau], **how))
    schedule = lambda epoch, rate: rate * 0.5
    halves = kit.callbacks.LearningRateScheduler(schedule, verbose=1)
    return first, _result(kit.model().fit(X, Y, callbacks=[halves], **how))


@case
def csv_log(kit, log):
    path = "log.csv"
    how = dict(shuffle=False, verbose=0, validation_split=0.2)
    m = kit.model()
    m.fit(X, Y, epochs=2, callbacks=[kit.callbacks.CSVLogger(path)], **how)
    m.fit(X, Y, callbacks=[kit.callbacks.CSVLogger(path, append=True)], **how)
    return open(path).read()


@case
def saved_when_better(kit, log):
    saver = kit.callbacks.ModelCheckpoint(
        "c/w{epoch:02d}-{loss:.2f}", "loss", 1, save_best_only=True,
        save_weights_only=True,
    )  # fmt: skip
    kit.model().fit(X, Y, epochs=3, shuffle=False, verbose=2, callbacks=[saver])
    return sorted(os.listdir("c"))


@case
def evaluated_and_predicted(kit, log):
    m = kit.model()
    found = m.evaluate(X, Y, verbose=1, callbacks=[log])
    shape = m.predict(X, verbose=1, callbacks=[log]).shape
    m.predict(X, verbose=2)
    return found, list(shape), _plain(m.evaluate(X, Y, verbose=2, return_dict=True))


@case
def single_batches(kit, log):
    m = kit.model()
    first = m.train_on_batch(X, Y), m.train_on_batch(X, Y, return_dict=True)
    return _plain([*first, m.test_on_batch(X, Y), m.predict_on_batch(X)])


@case
def steps_together(kit, log):
    m = kit.model(steps_per_execution=3)
    return _result(m.fit(X, Y, batch_size=10, shuffle=False, callbacks=[log]))


@case
def from_a_later_epoch(kit, log):
    how = dict(initial_epoch=3, validation_data=(X, Y), validation_freq=2, verbose=2)
    return _result(kit.model().fit(X, Y, epochs=5, shuffle=False, **how))


@case
def stopped_in_an_epoch(kit, log):
    class Stop(kit.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch == 1

    how = dict(epochs=5, batch_size=10, shuffle=False, callbacks=[Stop(), log])
    return _result(kit.model().fit(X, Y, **how))


@case
def penalties(kit, log):
    inputs = kit.keras.Input([4])
    layer = kit.dense(3, kernel_regularizer=kit.keras.regularizers.L2(0.1))
    m = kit.keras.Model(inputs, layer(inputs))
    m.compile(kit.keras.optimizers.SGD(0.1), kit.crossentropy())
    return _result(m.fit(X, Y, epochs=2, shuffle=False, verbose=2)), m.metrics_names


def _deep(kit, kind):
    """Models with normalization, pooling and recurrence, weights from a fixed draw."""
    k = kit.layers
    if kind == "conv":
        stack = [
            k.Conv2D(8, 3, padding="same", use_bias=False, input_shape=[8, 8, 3]),
            k.BatchNormalization(),
            k.ReLU(),
            k.MaxPooling2D(),
            k.Conv2D(16, 3, strides=2, use_bias=False),
            k.BatchNormalization(momentum=0.9, epsilon=1e-5),
            k.Activation("relu"),
            k.GlobalAveragePooling2D(),
        ]
    elif kind == "flat":
        l2 = kit.keras.regularizers.L2(0.01)
        stack = [
            k.Flatten(input_shape=[8, 8, 3]),
            k.Dense(20, use_bias=False, kernel_regularizer=l2),
            k.BatchNormalization(center=False),
            k.Activation("relu"),
            k.LayerNormalization(),
        ]
    else:
        stack = [
            k.Reshape([8, 24], input_shape=[8, 8, 3]),
            k.LSTM(10, return_sequences=True),
            k.GRU(7),
        ]
    m = kit.keras.Sequential([*stack, k.Dense(10)])
    draw = np.random.RandomState(5)
    values = []
    for v in m.weights:
        value = draw.normal(size=v.shape).astype("float32") * 0.2
        spread = "variance" in v.name or "gamma" in v.name
        values.append(np.abs(value) + 0.8 if spread else value)
    m.set_weights(values)
    return m


def _curve(kind, optimizer):
    def run(kit, log):
        m = _deep(kit, kind)
        made = optimizer(kit.keras.optimizers)
        m.compile(made, kit.crossentropy(), metrics=["accuracy"])
        losses = []
        for _ in range(2):
            for at in range(0, len(IMAGES), 32):
                rows = slice(at, at + 32)
                losses.append(m.train_on_batch(IMAGES[rows], LABELS[rows])[0])
        return _plain(losses), m.evaluate(IMAGES, LABELS, verbose=0, batch_size=50)

    return run


_OPTIMIZERS = {
    "sgd": lambda o: o.SGD(0.1, momentum=0.9, nesterov=True),
    "adam": lambda o: o.Adam(0.01),
    "adam_limited": lambda o: o.Adam(
        o.schedules.ExponentialDecay(0.05, 3, 0.5), clipnorm=1.0
    ),
    "adamw": lambda o: o.AdamW(0.01),
    "rmsprop": lambda o: o.RMSprop(0.01, momentum=0.5, centered=True),
    "ftrl": lambda o: o.Ftrl(0.1),
}
for _kind, _names in {
    "conv": list(_OPTIMIZERS),
    "flat": ["sgd", "adam"],
    "recurrent": ["sgd", "adam"],
}.items():
    for _name in _names:
        CASES[f"curve_{_kind}_{_name}"] = _curve(_kind, _OPTIMIZERS[_name])


def shown(text):
    """The printed lines as they were at last, without the times in them."""
    lines = []
    for line in text.split("\n"):
        last = line.rpartition("\r")[2].rstrip("\b")
        last = re.sub(r"\d+(ms|us|s)(/step|/epoch)?", r"T\2", last).rstrip()
        lines.append(last)
    return lines


def run(tf, name):
    """What a case shows, gives and has called."""
    tf.keras.backend.clear_session()
    calls, text, kit = [], io.StringIO(), Kit(tf)
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(text):
                result = CASES[name](kit, kit.log(calls))
        finally:
            os.chdir(before)
    found = {"text": shown(text.getvalue()), "result": _plain(result), "calls": calls}
    return json.loads(json.dumps(found))


if __name__ == "__main__":
    module = importlib.import_module(sys.argv[1])
    found = {name: run(module, name) for name in CASES}
    with open(os.path.join(sys.argv[2], "fit.json"), "w") as out:
        lines = ",\n".join(
            f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()
        )
        out.write("{\n" + lines + "\n}\n")
