"""A worker that trains Keras's models by RING, of Headrace or TensorFlow.

`ring_keras.py MODULE WHAT JOB INDEX CLUSTER` prints what it finds, a line of JSON each.
Imported it gives the same models to a process that is alone.
"""

import contextlib
import importlib
import json
import os
import sys

import numpy as np

_RANDOM = np.random.RandomState(0)
X = _RANDOM.randn(30, 3).astype("float32")
Y = (X @ np.array([[1.0], [2.0], [3.0]])).astype("float32")
_BATCH = 12  # which two and three workers divide, as the last one of 6
KINDS = (Y > 0).astype("float32")


class Models:
    """Trains models of a module's Keras, in a strategy's scope where there is one."""

    def __init__(self, tf, strategy=None):
        self._tf, self._keras, self._strategy = tf, tf.keras, strategy

    def _scope(self):
        strategy = self._strategy
        return contextlib.nullcontext() if strategy is None else strategy.scope()

    def _dataset(self, *arrays):
        """Batches, of which the last one is shorter; each worker trains on its part."""
        data = self._tf.data
        options = data.Options()
        policy = data.experimental.AutoShardPolicy.DATA
        options.experimental_distribute.auto_shard_policy = policy
        made = data.Dataset.from_tensor_slices(arrays or (X, Y)).batch(_BATCH)
        return made.with_options(options)

    def _model(self, optimizer, more=(), metrics=("mae",), last=None, **compile_):
        """A model; `optimizer` is (a name, arguments) of the older ones, or with a star
        in front of the newer."""
        keras = self._keras
        dense = keras.layers.Dense
        with self._scope():
            first = dense(4, kernel_initializer="ones", input_shape=(3,))
            out = dense(1, kernel_initializer="ones", activation=last)
            made = keras.Sequential([first, *[make() for make in more], out])
            name, given = optimizer
            kinds = keras.optimizers
            kinds = kinds if name[0] == "*" else kinds.legacy
            rule = getattr(kinds, name.strip("*"))(0.01, **given)
            metrics = [m if isinstance(m, str) else m() for m in metrics]
            made.compile(rule, "mse", metrics=metrics, **compile_)
        return made

    def fit(self, optimizer):
        """The losses of two epochs, what evaluate and predict give, and the weights."""
        made, data = self._model(optimizer), self._dataset()
        history = made.fit(data, epochs=2, verbose=0, validation_data=data).history
        return [
            *[history[k] for k in sorted(history)],
            made.evaluate(data, verbose=0),
            made.predict(data, verbose=0),
            *made.get_weights(),
        ]

    def ways(self):
        """Ways of giving data and of running steps: (data, arguments of fit, of
        compile)."""

        def batches():
            for at in range(0, len(X), _BATCH):
                yield X[at : at + _BATCH], Y[at : at + _BATCH]

        data, arrays = self._dataset, {"batch_size": _BATCH, "shuffle": False}
        rates = self._keras.callbacks.LearningRateScheduler(lambda _, rate: rate / 2)
        return {
            "arrays": ((X, Y), arrays, {}),
            "split": ((X, Y), {**arrays, "validation_split": 0.2}, {}),
            "of no known size": ((data().filter(lambda x, y: True),), {}, {}),
            "endless": ((data().repeat(),), {"steps_per_epoch": 3}, {}),
            "short": ((data(),), {"steps_per_epoch": 2}, {}),
            "generator": ((batches(),), {"epochs": 1}, {}),
            "eager": ((data(),), {}, {"run_eagerly": True}),
            "rates": ((data(),), {"callbacks": [rates]}, {}),
            "several": ((data(),), {}, {"steps_per_execution": 2}),
        }

    def way(self, name):
        """The losses and weights of such a way."""
        data, fit, compile_ = self.ways()[name]
        made = self._model(("SGD", {"momentum": 0.9}), **compile_)
        history = made.fit(*data, **{"epochs": 2, "verbose": 0, **fit}).history
        return [history["loss"], history["mae"], *made.get_weights()]

    def counts(self):
        """Metrics that read their states more than once."""
        kinds = self._keras.metrics
        metrics = [
            lambda: kinds.AUC(num_thresholds=5),
            lambda: kinds.AUC(num_thresholds=5, curve="PR", name="pr"),
            kinds.Precision,
            kinds.Recall,
            lambda: kinds.SensitivityAtSpecificity(0.5, num_thresholds=5),
            lambda: kinds.BinaryIoU([0, 1], 0.5),
        ]
        made = self._model(("*Adam", {}), metrics=metrics, last="sigmoid")
        history = made.fit(self._dataset(X, KINDS), epochs=2, verbose=0).history
        return [*[history[k] for k in sorted(history)], *made.get_weights()]

    def norms(self):
        """Batch normalization, whose averages are means over workers."""
        norm = self._keras.layers.BatchNormalization
        made = self._model(("*SGD", {"momentum": 0.9}), [norm])
        made.fit(self._dataset(), epochs=2, verbose=0)
        return [made.predict(self._dataset(), verbose=0), *made.get_weights()]

    def on_batches(self):
        """Single batches, of which each worker takes its part."""
        made = self._model(("Adam", {}))
        for _ in range(2):
            made.train_on_batch(X[:_BATCH], Y[:_BATCH])
        made.test_on_batch(X[_BATCH:], Y[_BATCH:])
        return [made.predict_on_batch(X[:_BATCH]), *made.get_weights()]


OPTIMIZERS = {
    "SGD": {"momentum": 0.9},
    "Adam": {},
    "RMSprop": {"momentum": 0.9},
    "*SGD": {},
    "*Adam": {"amsgrad": True},
}


def found_by(models, what):
    """(name, values) pairs."""
    if what == "fit":
        for name, given in OPTIMIZERS.items():
            yield name, models.fit((name, given))
    elif what == "ways":
        for name in models.ways():
            yield name, models.way(name)
    else:
        for name in ("counts", "norms", "on_batches"):
            yield name, getattr(models, name)()


def main(module, what, job, index, cluster):
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    task = {"type": job, "index": int(index)}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": json.loads(cluster), "task": task})
    tf = importlib.import_module(module)
    experimental = tf.distribute.experimental
    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=experimental.CommunicationOptions(
            implementation=experimental.CommunicationImplementation.RING
        )
    )
    for name, values in found_by(Models(tf, strategy), what):
        print(json.dumps([name, [np.asarray(v).tolist() for v in values]]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:6])
