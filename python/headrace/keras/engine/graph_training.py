"""Training in a graph: what a compiled model computes there, run by Keras' session."""

import numpy as np

from headrace import _api as tf
from headrace.context import late, stack
from headrace.graph import placeholders
from headrace.keras import settings
from headrace.keras.base import row_values
from headrace.keras.base.graph_updates import needs, waits_for
from headrace.keras.base.keras_tensor import history, is_composite
from headrace.keras.engine import graph_data
from headrace.keras.engine.compiled import loss_name
from headrace.keras.optimizer.loss_scale import LossScaleOptimizer

_NO_LOSS = "The model cannot be compiled because it has no loss to optimize."


def parts_of(x):
    """The tensors of a graph that make up x: itself, or those of a composite one."""
    return tf.nest.flatten(x, expand_composites=True)


def _is_placeholder(x):
    kinds = ("Placeholder", "PlaceholderWithDefault")
    return all(part.op.type in kinds for part in parts_of(x))


def _name_of(x):
    """The name of a model's input."""
    return history(x)[0].name if is_composite(x) else x.op.name


class Ends:
    """Where a model begins and ends in a graph.

    With `of`, other Ends, it is called once more, on inputs that leave the size of a
    batch open.

    Attributes:
      inputs, outputs: flat lists of tensors.
      structure: the outputs as the model gives them.
      size: that of a batch, where an input says it, else None.
    """

    def __init__(self, model, x=None, of=None):
        graph = stack.plain_graph()
        if x is not None and getattr(model, "_layer_graph", None) is None:
            first = _declared_elsewhere(tf.nest.flatten(x))[0]
            model._begin_with([None, *np.shape(first)[1:]], _dtype_of(first))
        network = getattr(model, "_layer_graph", None)
        if of is not None:
            self._of_any_size(model, of)
        elif network is None:
            self._of_data(model, x)
        else:
            self.inputs, self.structure = network.flat_inputs, network.outputs
        self.outputs = tf.nest.flatten(self.structure)
        for t in self.outputs:
            if parts_of(t)[0].graph is not graph:
                raise ValueError(f"Tensor {t} is not an element of this graph.")
        self.fed = [t for t in self.inputs if _is_placeholder(t)]
        self.names = [_name_of(t) for t in self.inputs] if of is None else of.names
        sizes = [t.shape[0] for t in self.fed if t.shape.rank]
        self.size = next((int(n) for n in sizes if n is not None), None)

    def _of_any_size(self, model, of):
        self.inputs = [
            t
            if is_composite(t) or not t.shape.rank
            else placeholders.placeholder(t.dtype, [None, *t.shape[1:]], name)
            for t, name in zip(of.inputs, of.names)
        ]
        self.structure = model._layer_graph.run(self.inputs)

    def _of_data(self, model, x):
        if x is None:
            raise ValueError(
                f"Model {model.name} has no inputs of its own: it needs data to be "
                "called on first"
            )
        leaves = tf.nest.flatten(x)
        names = graph_data.names_of(x)
        self.inputs = [
            placeholders.placeholder(_dtype_of(a), [None, *np.shape(a)[1:]], name)
            for a, name in zip(leaves, names)
        ]
        self.structure = model(tf.nest.pack_sequence_as(x, self.inputs))


def _declared_elsewhere(values):
    """The arrays; ValueError where a sparse or ragged value is among them."""
    for value in values:
        if isinstance(value, row_values.KINDS):
            raise ValueError(
                "All SparseTensor and RaggedTensor inputs must be explicitly declared "
                "using a keras.Input() with sparse=True or ragged=True. We found an "
                f"undeclared input {value.value}. For Sequential models, please add a "
                "keras.Input() as your first Layer. For subclassed models, please call "
                "self._set_inputs() on your input set, which you can create using "
                "keras.Input() for each input to your model."
            )
    return values


def _dtype_of(array):
    """The dtype of a placeholder for such data: Keras' float type of all floats."""
    dtype = tf.as_dtype(np.asarray(array).dtype)
    return tf.as_dtype(settings.floatx()) if dtype.is_floating else dtype


class Measures:
    """The loss and the metrics of a model's outputs, given targets and their weights.

    Attributes:
      targets, weights: placeholders; None for outputs without.
      total_loss: the scalar that is trained on; None where there is no loss.
      updates: operations that take a batch into the metrics.
      results: {name: tensor}, of the batches that were taken in.
    """

    def __init__(self, model, ends, weighted, given_targets=None):
        plain = model._keras
        self._model, self._ends = model, ends
        losses, metrics = plain.losses, plain.compiled_metrics
        losses.prepare(ends.structure)
        self.names = losses.names_of(ends.structure)
        given = graph_data.leaves_of(given_targets, self.names)
        metrics.only_where(losses.functions)
        self.targets = [
            None if f is None else _target(name, f, out) if t is None else t
            for name, f, out, t in zip(
                self.names, losses.functions, ends.outputs, given
            )
        ]
        self.weights = [
            _weights(name, rank) if t is not None and rank else None
            for name, t, rank in zip(self.names, self.targets, weighted)
        ]
        self.total_loss = self._loss(losses)
        kinds = [None if f is None else loss_name(f) for f in losses.functions]
        metrics.prepare(self.targets, ends.structure, kinds)
        before = {id(m): len(m.updates) for m in model.metrics}
        for part, value in zip(losses.parts, self._values):
            if part is not None:
                part.update_state(value)
        with tf.name_scope("metrics"):
            metrics.update_state(self.targets, ends.structure, self.weights)
        self._collect(model.metrics, before)

    def _loss(self, losses):
        self._values, terms = [], []
        with tf.name_scope("loss"):
            for i, (name, target) in enumerate(zip(self.names, self.targets)):
                value = None
                if target is not None:
                    with tf.name_scope(f"{name}_loss"):
                        out, weight = self._ends.outputs[i], self.weights[i]
                        value, _ = losses.of_output(i, target, out, weight)
                    terms.append(losses.scaled(i, value))
                self._values.append(value)
            terms += [tf.cast(p, tf.float32) for p in self._penalties()]
            if not terms:
                return None
            return terms[0] if len(terms) == 1 else tf.add_n(terms)

    def _penalties(self):
        """The losses that layers added, but for those of calls with other inputs."""
        return relevant(self._model.losses, self._ends.inputs)

    def _collect(self, metrics, before):
        self.updates, self.results = [], {}
        for metric in metrics:
            new = relevant(metric.updates[before[id(metric)] :], self._feeds())
            new = new or relevant(metric.updates, self._feeds())
            self.updates += new
            with tf.control_dependencies(new):
                value = metric.result()
            if isinstance(value, dict):
                self.results.update(value)
            else:
                self.results[metric.name] = value

    def places(self):
        """The placeholders of targets and, behind them, of weights."""
        targets = [t for t in self.targets if t is not None and _is_placeholder(t)]
        return targets + [w for w in self.weights if w is not None]

    def _feeds(self):
        return [t for t in (*self._ends.inputs, *self.targets) if t is not None]


def _target(name, loss, output):
    shape = None if output.shape.rank is None else [None] * output.shape.rank
    if shape and loss_name(loss) == "sparse_categorical_crossentropy":
        shape[-1] = 1
    return placeholders.placeholder(output.dtype, shape, f"{name}_target")


def _weights(name, rank):
    return placeholders.placeholder(
        settings.floatx(), [None] * rank, f"{name}_sample_weights"
    )


def relevant(elements, inputs):
    """Those elements of a graph that are computed from these inputs, or from none."""
    fed = lambda op: op.type == "Placeholder"
    return [e for e in elements if needs(e, inputs) or not waits_for(e, fed)]


class Logs(dict):
    """What a step gave for its batch; `described` is what callbacks are told besides."""

    def __init__(self, values, step, described):
        super().__init__(values)
        self.step, self.described = step, described


class GraphTraining:
    """What a model that is compiled in a graph trains and is measured with."""

    def __init__(self, model, targets=None):
        self._model, self._targets = model, targets
        self.graph = stack.plain_graph()
        if model._keras.strategy is not None:
            raise NotImplementedError(
                f"Model {model.name} of a strategy's scope: strategies do not train Keras "
                "models in graphs of TensorFlow 1"
            )
        if isinstance(model.optimizer, LossScaleOptimizer):
            raise NotImplementedError(
                f"Model {model.name}: losses are not scaled in graphs of TensorFlow 1"
            )
        self._ends = None
        self._measures = {}  # by the ranks of sample weights, 0 for none
        self._train = {}  # of the same: the operation of a training step
        if model._keras.losses is not None and getattr(model, "_layer_graph", None):
            if self.measures().total_loss is None:
                raise ValueError(_NO_LOSS)
            self._weights = model.trainable_weights

    _states = None
    _weights = None  # those that are trained: as compile() found them

    def ends(self, x=None):
        """Where the model begins and ends: made for data x where it does not know."""
        if self._ends is None:
            self._ends = Ends(self._model, x)
        return self._ends

    _open = None  # the Ends of batches of other sizes than an input says

    def ends_for(self, x):
        """Where the model begins and ends for a batch of the size of x: where it is not
        the one that an input says, unless layers hold a state of each row."""
        ends = self.ends(x)
        if ends.size in (None, graph_data.rows_of(x)):
            return ends
        if any(layer.stateful for layer in self._model._flatten_layers()):
            return ends
        if self._open is None:
            self._open = Ends(self._model, of=ends)
        return self._open

    def measures(self, ends=None, weighted=None):
        """The loss and metrics, given which outputs have weights."""
        ends = ends or self.ends()
        if weighted is None:
            weighted = (0,) * len(ends.outputs)
        key = weighted, ends is self._open
        if key not in self._measures:
            targets = self._targets if self.last is None else self.last.targets
            self._measures[key] = Measures(self._model, ends, weighted, targets)
            self.last = self._measures[key]
        return self._measures[key]

    last = None  # the Measures that were made last

    def train_operation(self, measures):
        """The operation that makes one training step; ValueError without a loss."""
        found = self._train.get(id(measures))
        if found is None:
            found = self._train[id(measures)] = self._new_train_operation(measures)
        return found

    def _new_train_operation(self, measures):
        model, loss = self._model, measures.total_loss
        if loss is None:
            raise ValueError(_NO_LOSS)
        updates = relevant(model.updates, measures._feeds())
        before = [loss, *measures.updates]
        with tf.name_scope("training"), tf.control_dependencies(before):
            if self._weights is None:
                self._weights = model.trainable_weights
            steps = _steps(model.optimizer, loss, self._weights)
        return tf.group(*steps, *updates)

    def state_updates(self, ends=None):
        """The operations of what layers remember from batch to batch."""
        if ends is not None and ends is self._open:
            return relevant(self._model.state_updates, ends.inputs)
        if self._states is None:
            self._states = relevant(self._model.state_updates, self.ends().inputs)
        return self._states


def _steps(optimizer, loss, weights):
    """The operations of a training step; older optimizers say them themselves."""
    if not weights:
        return []
    own = getattr(optimizer, "get_updates", None)
    if own is not None:
        return own(loss, weights)
    return [optimizer.apply_gradients(zip(tf.gradients(loss, weights), weights))]


class GraphSteps:
    """Calls a step: a run of Keras' session. Its losses are those of each batch, their
    mean that of all samples, or of all steps where nobody knows how many there are."""

    eager, taken = None, 1

    def __init__(self, model, kind):
        self._model, self._kind = model, kind
        self.graph = stack.plain_graph()
        self._training = model._keras.graph_training
        if self._training is None or self._training.graph is not self.graph:
            self._training = GraphTraining(model) if kind == "predict" else None
        if self._training is None:
            raise ValueError(
                f"Model {model.name} was compiled for another graph than {self.graph}, "
                "which is the default graph now"
            )
        self.beside = []  # (a tensor, a function that takes its value) of each test
        self.begin(None)

    def check(self, graph):
        """InvalidArgumentError where another graph is the default one."""
        if graph is not self.graph:
            raise tf.errors.InvalidArgumentError(
                None,
                None,
                f"Tensor {self._training.ends().outputs[0].name} of model "
                f"{self._model.name}, which is fetched, was not found in the graph",
            )

    def make(self):
        """Makes the nodes of a run and gives variables their values, so that runs
        change the graph no more. Returns a function that runs them: of a list of values
        for the placeholders of inputs, targets and weights, in this order, those behind
        are left out; it gives a list of the outputs, or of the loss and metrics."""
        training = self._training
        places = list(training.ends().fed)
        if self._kind == "predict":
            given = list(training.ends().outputs)
            also = training.state_updates()
        else:
            measures = training.last or training.measures()
            places += measures.places()
            given = [measures.total_loss, *measures.results.values()]
            also = [measures.updates, self._changes(measures, training.ends())]
        self._session()
        self._model.reset_metrics()

        def run(values):
            feeds = dict(zip(places, values))
            return self._run([given, also], feeds)[0]

        return run

    def _changes(self, measures, ends):
        if self._kind == "train":
            return self._training.train_operation(measures)
        return self._training.state_updates(ends)

    def begin(self, source):
        """A walk over the data begins."""
        self._by_steps = source is not None and source.counts_steps(self._kind)
        self._in_doubles = source is not None and source.in_doubles(self._kind)
        self._loss, self._count, self._described = 0.0, 0, {}
        self._source = source
        if source is not None:
            source.trains = self._kind == "train"

    def described(self, index, data):
        """What callbacks are told of a batch before it."""
        self._described = {"batch": index, "size": self._source.size_of(data)}
        return self._described

    def told(self, outputs):
        """What callbacks are told of the outputs of a batch: a list of them."""
        return {**self._described, "outputs": tf.nest.flatten(outputs)}

    def __call__(self, data):
        x, y, weight = graph_data.unpacked(data)
        if self._kind == "predict":
            return self._predict(x)
        model, training = self._model, self._training
        ends = training.ends(x) if self._kind == "train" else training.ends_for(x)
        losses = model._keras.losses
        losses.prepare(ends.structure)
        weights = graph_data.leaves_of(weight, losses.names_of(ends.structure))
        given = tuple(0 if w is None else np.ndim(w) for w in weights)
        if not any(given):
            given, weights = None, []
        measures = training.measures(ends, given)
        if measures.total_loss is None:
            raise ValueError(_NO_LOSS)
        feeds = graph_data.feeds(ends, x)
        feeds.update(graph_data.target_feeds(measures, losses, ends, y))
        feeds.update(graph_data.weight_feeds(measures, weights))
        fetches = [measures.total_loss, measures.results, measures.updates]
        fetches.append(self._changes(measures, ends))
        fetches.append([tensor for tensor, _ in self.beside])
        loss, results, *_, told = self._run(fetches, feeds)
        for (_, take), value in zip(self.beside, told):
            take(value)
        size = 1 if self._by_steps else graph_data.rows_of(data)
        self._loss += (float(loss) if self._in_doubles else loss) * float(size)
        self._count += size
        return Logs({"loss": loss, **results}, self, self._described)

    def _predict(self, x):
        ends = self._training.ends_for(x)
        fetches = [ends.structure, self._training.state_updates(ends)]
        return self._run(fetches, graph_data.feeds(ends, x))[0]

    def _run(self, fetches, feeds):
        phase = self.graph.__dict__.get("_keras_learning_phase")
        if phase is not None:
            feeds[phase] = self._kind == "train"
        with self.graph.as_default():
            return self._session().run(fetches, feeds)

    def _session(self):
        session = late.keras_session(parts_of(self._training.ends().outputs[0]))
        if session._closed:
            raise tf.errors.CancelledError(None, None, "Session has been closed.")
        return session

    def whole(self, logs):
        """The last batch's logs as those of all batches."""
        mean = self._loss / self._count if self._count else logs["loss"]
        return {**logs, "loss": mean}


class GraphNames:
    """What programs of TensorFlow 1 ask a model in a graph for: its placeholders, its loss,
    the functions that run it. Elsewhere there are none of them, but for total_loss."""

    @property
    def total_loss(self):
        """What a model in a graph is trained on: a scalar tensor, of the inputs' and
        targets' placeholders; None elsewhere."""
        last = self._keras.graph_training and self._keras.graph_training.last
        return last and last.total_loss

    @property
    def sample_weights(self):
        """The placeholders of weights, one for each output; None for outputs that were
        not given any yet."""
        return list(self._compiled_in_graph("sample_weights").weights)

    @property
    def _feed_inputs(self):
        network = self._layer_graph if self._in_graph else None
        if network is None:
            raise AttributeError(
                f"Model {self.name} has no _feed_inputs: it has no placeholders"
            )
        return list(network.flat_inputs)

    @property
    def _feed_targets(self):
        measures = self._compiled_in_graph("_feed_targets")
        return [t for t in measures.targets if t is not None]

    @property
    def _feed_sample_weights(self):
        return [w for w in self.sample_weights if w is not None]

    def _compiled_in_graph(self, name):
        training = self._keras.graph_training
        if training is None or training.last is None:
            raise AttributeError(
                f"Model {self.name} has no {name}: it was not compiled in a graph of "
                "TensorFlow 1"
            )
        return training.last

    @property
    def _make_train_function(self):
        return self._making("train")

    @property
    def _make_test_function(self):
        return self._making("test")

    @property
    def _make_predict_function(self):
        return self._making("predict")

    def _making(self, kind):
        """A function without arguments that makes the nodes of a graph, which programs
        call before threads run the model, and `train_function` and the like."""
        if not self._in_graph:
            raise AttributeError(
                f"_make_{kind}_function is of models in graphs of TensorFlow 1: use "
                f"make_{kind}_function"
            )

        def make():
            if getattr(self, f"{kind}_function", None) is None:
                setattr(self, f"{kind}_function", self._steps(kind).make())

        return make
