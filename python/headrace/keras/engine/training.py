"""compile, fit, evaluate, predict and single batches."""

import functools
import warnings

import numpy as np

from headrace import _api as tf
from headrace.context import late, stack, strategies
from headrace.context.properties import read_only
from headrace.keras import serialization, settings
from headrace.keras.base import ring_steps, row_values, steps_tuner
from headrace.keras.base.scopes import check_scope, check_variables, in_scope
from headrace.keras.base.steps import OwnSteps, Steps
from headrace.keras.callback.base import CallbackList
from headrace.keras.callback.history import History
from headrace.keras.engine import compiled, data_adapter, graph_data
from headrace.keras.engine.graph_training import (
    GraphNames,
    GraphSteps,
    GraphTraining,
    Logs,
)
from headrace.keras.optimizer import registry
from headrace.keras.optimizer.loss_scale import LossScaleOptimizer


class Trainer(GraphNames):
    """What Model adds to Layer."""

    def _init_training(self):
        plain = self._keras
        plain.losses = plain.compiled_metrics = None
        plain.compiled_with = plain.graph_training = None
        plain.steps, plain.own_steps = {}, {}
        plain.run_eagerly = None
        plain.steps_per_execution = plain.steps_variable = None
        plain.strategy = strategies.strategy()
        if self._in_ring:
            plain.counters = ring_steps.Counters()
        plain.made_in_graph = stack.plain_graph() is not None
        self.stop_training = False

    @property
    def distribute_strategy(self):
        """The tf.distribute.Strategy whose scope the model was made in, else the default
        one."""
        return self._keras.strategy or late.default_strategy()

    @property
    def _in_ring(self):
        """Whether its workers meet in TensorFlow's order."""
        strategy = self._keras.strategy
        return strategy is not None and strategies.in_ring(strategy)

    # --- compiling ---

    optimizer = jit_compile = None  # before compile()
    distribute_reduction_method = "auto"
    autotune_steps_per_execution = False
    _steps_per_execution_tuner = None

    @property
    def steps_per_execution(self):
        """How many steps of training pass between two calls of callbacks: an int64
        variable that may be changed; None before compile()."""
        return self._steps_variable()

    def _steps_variable(self):
        plain = self._keras
        if plain.steps_variable is None and plain.steps_per_execution is not None:
            with tf.init_scope():
                count = plain.steps_per_execution
                plain.steps_variable = tf.Variable(
                    count, dtype=tf.int64, trainable=False
                )
        return plain.steps_variable

    @steps_per_execution.setter
    def steps_per_execution(self, count):
        self._keras.steps_per_execution, self._keras.steps_variable = count, None

    def compile(
        self,
        optimizer="rmsprop",
        loss=None,
        metrics=None,
        loss_weights=None,
        weighted_metrics=None,
        run_eagerly=None,
        steps_per_execution=None,
        jit_compile=None,
        pss_evaluation_shards=0,
        **kwargs,
    ):
        """Says how the model is trained and measured.

        The optimizer, losses and metrics are objects or names; losses and metrics may
        be lists or dicts, one for each output. `weighted_metrics` take sample weights,
        `metrics` do not. `jit_compile` is kept but changes nothing. TypeError for
        unknown arguments.

        In a graph of TensorFlow 1 also: `target_tensors`, tensors of the graph in place
        of the targets, one for each output; `sample_weight_mode`, None or "temporal",
        where weights of samples and of steps are told by their shape in any case.
        """
        targets = self._graph_arguments(kwargs)
        if run_eagerly and self._in_graph:
            raise ValueError(
                "You can only set `run_eagerly=True` if eager execution is enabled."
            )
        if run_eagerly and jit_compile:
            raise ValueError(
                "You cannot enable `run_eagerly` and `jit_compile` at the same time."
            )
        plain = self._keras
        names = self.output_names if hasattr(self, "output_names") else None
        with in_scope(plain.strategy):
            check_scope(plain.strategy, (metrics, weighted_metrics))
            if self.built:
                check_variables(self.variables)
            self.optimizer = self._optimizer_of(optimizer)
            plain.losses = compiled.Losses(loss, loss_weights, names, self._in_graph)
            plain.compiled_metrics = compiled.Metrics(metrics, weighted_metrics, names)
        plain.compiled_with = dict(
            optimizer=optimizer,
            loss=loss,
            metrics=metrics,
            loss_weights=loss_weights,
            weighted_metrics=weighted_metrics,
            run_eagerly=run_eagerly,
            steps_per_execution=steps_per_execution,
            jit_compile=jit_compile,
        )
        plain.steps = {}
        plain.run_eagerly = run_eagerly
        self.autotune_steps_per_execution = steps_per_execution == "auto"
        if self.autotune_steps_per_execution:  # from the number that was known
            known = self.steps_per_execution
            steps_per_execution = 1 if known is None else int(settings.get_value(known))
        self.steps_per_execution = steps_per_execution or 1
        if self._in_ring:  # where a collective tells its value, at this place
            with in_scope(plain.strategy):
                self._steps_variable()
        self._steps_per_execution_tuner = None
        if self.autotune_steps_per_execution and not self._in_graph:
            self._steps_per_execution_tuner = steps_tuner.StepsPerExecutionTuner(
                self.optimizer, self.steps_per_execution
            )
        self.jit_compile = bool(jit_compile)
        self.train_function = self.test_function = self.predict_function = None
        plain.graph_training = None
        if self._in_graph:
            plain.graph_training = GraphTraining(self, targets)

    @property
    def _in_graph(self):
        """Whether its steps are run by a session: of models that were made in a graph,
        where one is built."""
        return self._keras.made_in_graph and stack.plain_graph() is not None

    def _check_mode(self, name):
        """ValueError for a model of eager code within a graph."""
        if stack.plain_graph() is not None and not self._keras.made_in_graph:
            raise ValueError(
                f"Calling `Model.{name}` in graph mode is not supported when the `Model` "
                "instance was constructed with eager mode enabled. Please construct your "
                f"`Model` instance in graph mode or call `Model.{name}` with eager mode "
                "enabled."
            )

    def _graph_arguments(self, given):
        """The target_tensors among compile's further arguments; TypeError for those that
        nobody knows."""
        given = dict(given)
        targets = mode = None
        if self._in_graph:
            targets = given.pop("target_tensors", None)
            mode = given.pop("sample_weight_mode", None)
        if given:
            raise TypeError(
                f"Invalid keyword argument(s) in `compile()`: {(set(given),)}. Valid "
                'keyword arguments include "cloning", "experimental_run_tf_function", '
                '"distribute", "target_tensors", or "sample_weight_mode".'
            )
        if any(m not in (None, "temporal") for m in tf.nest.flatten(mode)):
            raise ValueError(
                f'sample_weight_mode is None or "temporal". Received: {mode}'
            )
        return targets

    @property
    def _data(self):
        """What makes batches for the steps of here."""
        return graph_data if self._in_graph else data_adapter

    def _optimizer_of(self, given):
        """The optimizer, or optimizers of a list, for models that divide their work."""
        if isinstance(given, (list, tuple)):
            return [self._optimizer_of(one) for one in given]
        return self._scaling(registry.get(given))

    def _scaling(self, optimizer):
        """The optimizer, its loss scaled where the model computes in float16."""
        is_mixed = self._dtype_policy.name == "mixed_float16"
        if is_mixed and not isinstance(optimizer, LossScaleOptimizer):
            return LossScaleOptimizer(optimizer)
        return optimizer

    @property
    def loss(self):
        """The loss as compile() got it, or None."""
        with_ = self._keras.compiled_with
        return None if with_ is None else with_["loss"]

    @loss.setter
    def loss(self, value):
        self._keras.compiled_with = dict(self._keras.compiled_with or {}, loss=value)

    compiled_loss = read_only(
        "_keras.losses",
        "What computes the losses of all outputs; None before compile().",
    )

    compiled_metrics = read_only(
        "_keras.compiled_metrics",
        "What updates the metrics of all outputs; None before compile().",
    )

    @property
    def run_eagerly(self):
        """Whether steps run without tf.function: as compile() said, else where a layer
        is dynamic, and in tf.config's way.
        """
        own = self._keras.run_eagerly
        if own is not None:
            return own
        return tf.config.functions_run_eagerly() or self.dynamic

    @run_eagerly.setter
    def run_eagerly(self, value):
        self._keras.run_eagerly = value

    @property
    def metrics(self):
        """A list: the losses' means, the compiled metrics, then those of the layers."""
        plain = self._keras
        found = []
        if plain.losses is not None:
            found += plain.losses.metrics
            found += plain.compiled_metrics.metrics
        return found + [
            m for m in super().metrics if not any(m is other for other in found)
        ]

    @property
    def metrics_names(self):
        """A list of the names of `metrics`: what the numbers of evaluate() are."""
        names = [m.name for m in self.metrics]
        in_graph = self._keras.graph_training is not None
        return ["loss", *names] if in_graph else names

    def reset_metrics(self):
        """Sets the state of all metrics back to that of no data."""
        for m in self.metrics:
            m.reset_state()

    def _assert_compiled(self):
        if self._keras.compiled_with is None:
            raise RuntimeError(
                "You must compile your model before training/testing. Use "
                "`model.compile(optimizer, loss)`."
            )

    # --- one step, to be overridden ---

    def train_step(self, data):
        """One step of fit on a batch: forward, backward, update. Subclasses may replace
        it.

        `data` is x, (x, y) or (x, y, sample_weight). Gives {name: scalar} of the
        metrics. ValueError where there is no loss.
        """
        x, y, sample_weight = data_adapter.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x, y, y_pred, sample_weight)
        if loss is None:
            raise ValueError(
                "No loss found. You may have forgotten to provide a `loss` argument in "
                "the `compile()` method."
            )
        self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def test_step(self, data):
        """One step of evaluate on a batch: {name: scalar}.
        Subclasses may replace it."""
        x, y, sample_weight = data_adapter.unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)
        self.compute_loss(x, y, y_pred, sample_weight)
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def predict_step(self, data):
        """One step of predict on a batch: the outputs. Subclasses may replace it."""
        x, _, _ = data_adapter.unpack_x_y_sample_weight(data)
        return self(x, training=False)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
        """The scalar to minimize: compiled losses and those that layers added.

        None where there is neither. Subclasses may replace it; `x` is for them.
        """
        return self._keras.losses(y, y_pred, sample_weight, self.losses)

    def compute_metrics(self, x, y, y_pred, sample_weight):
        """Takes a batch into the compiled metrics; gives get_metrics_result().

        Subclasses may replace it; `x` is for them.
        """
        self._keras.compiled_metrics.update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def get_metrics_result(self):
        """{name: value} of all metrics;
        a metric that gives a dict gives its own names."""
        results = {}
        for m in self.metrics:
            value = m.result()
            if isinstance(value, dict):
                results.update(value)
            else:
                results[m.name] = value
        return results

    # --- steps as functions ---

    def _steps(self, kind):
        """The traced (or eager) step of that kind, made when first needed."""
        plain = self._keras
        if self._in_graph:
            if kind not in plain.steps:
                plain.steps[kind] = GraphSteps(self, kind)
            plain.steps[kind].check(stack.plain_graph())
        elif kind not in plain.steps or plain.steps[kind].eager != self.run_eagerly:
            steps = ring_steps.RingSteps if self._in_ring else Steps
            plain.steps[kind] = steps(self, kind, self.run_eagerly)
        return plain.steps[kind]

    def _running(self, kind):
        """What runs the steps of that kind: the function of make_train_function() and
        the like, where a subclass has its own."""
        base = self._steps(kind)
        name = f"make_{kind}_function"
        if self._in_graph or not serialization.overrides(type(self), name):
            return base
        own = self._keras.own_steps.setdefault(kind, OwnSteps())
        return own.running(getattr(self, name)(), base)

    def make_train_function(self, force=False):
        """The function of an iterator that takes a batch and trains on it.

        It is kept until compile(); `force` makes it anew.
        """
        return self._iterating("train", force)

    def make_test_function(self, force=False):
        """The function of an iterator that takes a batch and evaluates it.

        It is kept until compile(); `force` makes it anew.
        """
        return self._iterating("test", force)

    def make_predict_function(self, force=False):
        """The function of an iterator that takes a batch and gives its outputs.

        It is kept until compile(); `force` makes it anew.
        """
        return self._iterating("predict", force)

    def _iterating(self, kind, force):
        if force:
            self._keras.steps.pop(kind, None)
        step = self._steps(kind)
        function = lambda iterator: step(next(iterator))
        setattr(self, kind + "_function", function)
        return function

    # --- many steps ---

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        initial_epoch=0,
        steps_per_epoch=None,
        validation_steps=None,
        validation_batch_size=None,
        validation_freq=1,
        max_queue_size=10,
        workers=1,
        use_multiprocessing=False,
    ):
        """Trains for the epochs from `initial_epoch` to `epochs`; returns a History.

        The data are arrays, in batches of 32 unless `batch_size` says else, or a
        dataset, Sequence or generator of batches (x, y, sample_weight), of
        `steps_per_epoch` each. `validation_split` keeps the last part of arrays for
        validation. `verbose` is 0, 1 or 2 (a line each epoch). `workers` and the other
        arguments of queues change nothing. RuntimeError before compile(), ValueError
        for y beside a dataset.
        """
        self._assert_compiled()
        self._check_mode("fit")
        verbose = _verbosity(verbose)
        if self._in_graph:
            batch_size = graph_data.batch_size_of(self, batch_size)
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = self._data.split(
                (x, y, sample_weight), validation_split
            )
        source = self._source(
            x, y, sample_weight, batch_size, steps_per_epoch, shuffle, class_weight
        )
        if epochs <= 0 and not self._in_graph:
            raise ValueError(f"Expected epochs to be positive. Received is {epochs}.")
        if not self._in_graph:
            source.of_epochs(epochs - initial_epoch)
        validation = None
        if validation_data is not None:
            size = validation_batch_size or batch_size
            validation = self._validation(
                validation_data, size, validation_steps, source
            )
        callbacks = self._callback_list(
            callbacks, "train", source, verbose, epochs, validation
        )
        if verbose:
            self._data.announce(source, validation)
        self.stop_training = False
        source.begin()
        callbacks.on_train_begin()
        with steps_tuner.tuning(self._steps_per_execution_tuner):
            logs = self._epochs(
                source, validation, callbacks, initial_epoch, epochs, validation_freq
            )
        for optimizer in tf.nest.flatten(self.optimizer) if epochs else ():
            if optimizer.use_ema:
                optimizer.finalize_variable_values(self.trainable_variables)
        callbacks.on_train_end(None if self._in_graph else logs)
        return self.history

    def _epochs(
        self, source, validation, callbacks, initial_epoch, epochs, validation_freq
    ):
        """All epochs of fit: the logs of the last one."""
        logs = None
        initial_epoch = self._first_epoch(callbacks, initial_epoch)
        for epoch in range(initial_epoch, epochs):
            if source.ran_out:
                break
            self.reset_metrics()
            callbacks.on_epoch_begin(epoch)
            logs = self._epoch(source, callbacks)
            if logs is None:
                break
            if validation is not None and _validates(epoch, validation_freq):
                found = _numbers(self._measure(validation, callbacks))
                logs.update({f"val_{k}": v for k, v in found.items()})
            callbacks.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        return logs

    @staticmethod
    def _first_epoch(callbacks, initial_epoch):
        for callback in callbacks:
            epoch = getattr(callback, "_first_epoch", lambda: None)()
            if epoch is not None:
                return epoch
        return initial_epoch

    def _callback_list(
        self, callbacks, kind, source, verbose, epochs=1, validation=None
    ):
        if isinstance(callbacks, CallbackList):
            return callbacks
        params = self._data.params_of(self, kind, source, verbose, epochs, validation)
        progress = functools.partial(self._data.progress_of, kind, params)
        return CallbackList(
            callbacks,
            model=self,
            history=History if kind == "train" else None,
            progress=progress if verbose else None,
            params=params,
        )

    def _batches(self, kind, source, callbacks, logs_of=None):
        """Gives what the step of that kind makes of each batch, the hooks around it."""
        step = self._running(kind)
        step.begin(source)
        begin, end = callbacks.batch_hooks(kind)
        train = kind == "train"
        together = self._steps_together() if train or self._in_ring else 1
        logs, count, told, has_tried = None, 0, 0, False
        for data in source.epoch():
            described = step.described(count, data)
            if begin and count % together == 0:
                begin(count, described)
            try:
                found = step(data)
            except tf.errors.OutOfRangeError:
                if not source.ends():
                    raise
                has_tried = True
                break
            logs = logs_of(found) if logs_of else found
            count += step.taken
            if end and count % together == 0:
                end(count - 1, logs)
                told = count
            yield found
            if train and self.stop_training:
                break
        if end and told < count:
            end(count - 1, logs)
        if begin and not has_tried and (source.steps is None or source.ran_out):
            begin(count)  # upstream tries one more
        source.note_size(count)

    def _steps_together(self):
        changed = self._keras.steps_variable
        if changed is not None:
            self._keras.steps_per_execution = int(settings.get_value(changed))
        return self._keras.steps_per_execution or 1

    def _epoch(self, source, callbacks):
        """One epoch of training: its logs as numbers; None without data."""
        logs = None
        for logs in self._batches("train", source, callbacks):  # noqa: B007
            pass
        if logs is None:
            if not source.ran_out:
                source.warn_empty()
            return None
        return _numbers(self._of_all(logs))

    def _of_all(self, logs):
        """The last step's logs as numbers; of steps that run on workers when all have
        run, with what metrics are then."""
        if isinstance(logs, Logs):
            return logs.step.whole(logs)
        if self._in_ring:  # whose steps give sums over workers
            found = self.get_metrics_result()
            return _numbers(found if set(found) == set(logs) else logs)
        if not hasattr(logs, "fetch"):
            return _numbers(logs)
        self._keras.strategy.extended._join()
        found = _numbers(logs)
        for metric in self.metrics:
            if metric.name in found:
                found[metric.name] = _number(metric.result())
        return found

    def _measure(self, source, callbacks):
        """One walk over the data with test_step: the logs as numbers."""
        self.reset_metrics()
        callbacks.on_test_begin()
        source.begin()
        if source.ran_out:  # in an earlier epoch of fit
            callbacks.on_test_end({})
            return {}
        logs = None
        for logs in self._batches("test", source, callbacks):  # noqa: B007
            pass
        if logs is None:
            source.warn_empty()
            raise _no_batches("test")
        logs = self._of_all(logs)
        callbacks.on_test_end(None if self._in_graph else logs)
        return logs

    def fit_generator(self, generator, steps_per_epoch=None, epochs=1, **kwargs):
        """fit() under an older name, for data from a generator or Sequence."""
        _warn_of_older_name("fit_generator", "Model.fit")
        return self.fit(
            generator, None, None, epochs, steps_per_epoch=steps_per_epoch, **kwargs
        )

    def evaluate_generator(self, generator, steps=None, verbose=0, **kwargs):
        """evaluate() under an older name, for data from a generator or Sequence."""
        _warn_of_older_name("evaluate_generator", "Model.evaluate")
        return self.evaluate(generator, steps=steps, verbose=verbose, **kwargs)

    def predict_generator(self, generator, steps=None, verbose=0, **kwargs):
        """predict() under an older name, for data from a generator or Sequence."""
        _warn_of_older_name("predict_generator", "Model.predict")
        return self.predict(generator, steps=steps, verbose=verbose, **kwargs)

    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=None,
        verbose="auto",
        sample_weight=None,
        steps=None,
        callbacks=None,
        max_queue_size=10,
        workers=1,
        use_multiprocessing=False,
        return_dict=False,
        **kwargs,
    ):
        """The loss and metrics over the data, given as to fit(); no weights change.

        A number where there is but one, else a list in the order of metrics_names, or a
        dict with `return_dict`. RuntimeError before compile(), TypeError for unknown
        arguments.
        """
        self._assert_compiled()
        self._check_mode("evaluate")
        if kwargs:
            raise TypeError(f"Invalid keyword arguments: {list(kwargs)}")
        if self._in_graph:
            batch_size = graph_data.batch_size_of(self, batch_size)
        source = self._source(x, y, sample_weight, batch_size=batch_size, steps=steps)
        callbacks = self._callback_list(callbacks, "test", source, _verbosity(verbose))
        return self._result(self._measure(source, callbacks), return_dict)

    def _source(self, *args, **kwargs):
        """What gives batches, made in the strategy's scope: it may ask that for them."""
        with in_scope(self._keras.strategy):
            source = self._data.source(*args, **kwargs)
            if source.steps == 0:
                raise ValueError("Expected input data to be non-empty.")
            if self._in_ring:
                together = self._steps_together()
                source = ring_steps.RingSource(self._keras.strategy, source, together)
        return source

    def _validation(self, data, batch_size, steps, training):
        if data_adapter.is_iterable_source(data):
            return self._source(data, steps=steps)
        given = dict(batch_size=batch_size, steps=steps)
        if self._in_graph:
            given["beside"] = training
        return self._source(*data_adapter.unpack_x_y_sample_weight(data), **given)

    def predict(
        self,
        x,
        batch_size=None,
        verbose="auto",
        steps=None,
        callbacks=None,
        max_queue_size=10,
        workers=1,
        use_multiprocessing=False,
    ):
        """The outputs for the data, as NumPy arrays: the batches one behind another.

        `x` is as fit() takes it; targets in a dataset are left out.
        """
        self._check_mode("predict")
        if self._in_graph:
            verbose = 0 if verbose == "auto" else verbose
            batch_size = graph_data.batch_size_of(self, batch_size)
        source = self._source(x, batch_size=batch_size, steps=steps)
        verbose = _verbosity(verbose)
        callbacks = self._callback_list(callbacks, "predict", source, verbose)
        callbacks.on_predict_begin()
        told = self._steps("predict").told  # made anew by each walk
        results = list(self._batches("predict", source, callbacks, told))
        if not results:
            raise _no_batches("predict")
        callbacks.on_predict_end()
        return row_values.joined_of_all(self._keras.strategy, results)

    # --- one batch ---

    def train_on_batch(
        self,
        x,
        y=None,
        sample_weight=None,
        class_weight=None,
        reset_metrics=True,
        return_dict=False,
    ):
        """Trains on one batch: the metrics' values, a scalar where there is but one.

        A list in the order of metrics_names, or a dict with `return_dict`. Unless
        `reset_metrics` is False the values are of this batch alone. RuntimeError before
        compile().
        """
        data = self._data.batch(x, y, sample_weight, class_weight)
        return self._on_batch("train", data, reset_metrics, return_dict)

    def test_on_batch(
        self, x, y=None, sample_weight=None, reset_metrics=True, return_dict=False
    ):
        """Evaluates one batch: the metrics' values, a scalar where there is but one.

        A list in the order of metrics_names, or a dict with `return_dict`. Unless
        `reset_metrics` is False the values are of this batch alone. RuntimeError before
        compile().
        """
        data = self._data.batch(x, y, sample_weight)
        return self._on_batch("test", data, reset_metrics, return_dict)

    def _on_batch(self, kind, data, reset_metrics, return_dict):
        self._assert_compiled()
        self._check_mode(f"{kind}_on_batch")
        in_graph = self._in_graph  # where metrics begin anew behind a batch
        if reset_metrics and not in_graph:
            self.reset_metrics()
        step = self._running(kind)
        step.begin(None)
        logs = step(data)
        logs = _numbers(logs) if self._in_ring else self._of_all(logs)
        found = self._result(logs, return_dict)
        if reset_metrics and in_graph:
            self.reset_metrics()
        return found

    def _result(self, logs, return_dict):
        """Logs as evaluate and the like return them: a dict, numbers or one number."""
        if return_dict:
            return logs
        known = [n for n in self.metrics_names if n in logs]
        values = [logs[n] for n in known + sorted(set(logs) - set(known))]
        return values[0] if len(values) == 1 else values

    def predict_on_batch(self, x):
        """The outputs of one batch as NumPy arrays, in the model's structure."""
        self._check_mode("predict_on_batch")
        found = self._running("predict")(self._data.batch(x))
        return row_values.joined_of_all(self._keras.strategy, [found])


def _warn_of_older_name(name, new):
    warnings.warn(
        f"`Model.{name}` is deprecated and will be removed in a future version. Please "
        f"use `{new}`, which supports generators.",
        stacklevel=3,
    )


def _verbosity(verbose):
    if verbose == "auto":
        return 1 if settings.is_interactive_logging_enabled() else 2
    return int(verbose)


def _no_batches(kind):
    return ValueError(
        f"Unexpected result of `{kind}_function` (Empty batch_outputs). Please use "
        "`Model.compile(..., run_eagerly=True)`, or "
        "`tf.config.run_functions_eagerly(True)` for more information of where went "
        "wrong, or file a issue/bug to `tf.keras`."
    )


def _number(x):
    if isinstance(x, tf.Tensor):
        x = x.numpy()
    if isinstance(x, (np.ndarray, np.generic)) and x.ndim == 0:
        return x.item()
    return x


def _numbers(logs):
    logs = logs.get() if hasattr(logs, "fetch") else logs  # of a worker
    if not isinstance(logs, dict):
        raise RuntimeError(
            f"A step must return a dict of logs, but it returned {type(logs).__name__}"
        )
    return {k: _number(v) for k, v in logs.items()}


def _validates(epoch, frequency):
    """Whether validation runs after this epoch."""
    if isinstance(frequency, int):
        return (epoch + 1) % frequency == 0
    if isinstance(frequency, (list, tuple, set)):
        return epoch + 1 in frequency
    raise ValueError(
        "Expected `validation_freq` to be a list or int. Received: "
        f"validation_freq={frequency} of the type {type(frequency)}."
    )
