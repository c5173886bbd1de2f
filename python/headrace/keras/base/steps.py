"""A model's train, test or predict step as a function that is called in a loop."""

import collections
import weakref

from headrace import _api as tf
from headrace.autograph.calls import in_graph
from headrace.context import stack
from headrace.keras.base.base_layer import any_batch_spec

_EXACT_SHAPES = 3  # so many shapes get traces of their own


def _of_replicas(step, strategy, kind):
    """The step of a global batch, of which each replica gets its share."""
    extended = strategy.extended

    def all_replicas(data):
        results = extended._run_shares(step, data)
        if kind == "predict" and len(results) > 1:
            return tf.nest.map_structure(_joined, *results)
        return results[0]  # of metrics, which are those of all replicas

    return all_replicas


def _of_many(value):
    """Whether a value of a batch has one for each replica."""
    return isinstance(getattr(type(value), "values", None), property) and isinstance(
        getattr(value, "values", None), tuple
    )


def _joined(*outputs):
    return tf.concat(outputs, 0)


def _call(function, data):
    return function(data)


class Steps:
    """Calls a step: traced for the shapes that come first, then for any shape.

    Traces of known shapes run faster, so a full batch and the last one get their
    own; data whose shapes keep changing shares one that leaves sizes open.
    """

    def __init__(self, model, kind, eager):
        self.eager, self.beside = eager, []
        method = getattr(type(model), kind + "_step")
        own = model.__dict__.get(kind + "_step")

        def step(data):
            graph = stack.current()
            self._graph = None if graph is None else weakref.ref(graph)
            return in_graph(own or method.__get__(model))(data)

        strategy, self._schedule = model._keras.strategy, None
        if strategy is not None:
            step = _of_replicas(step, strategy, kind)
            if kind != "predict" and not eager:  # whose results are wanted in order
                self._schedule = strategy.extended._schedule
        step.__name__ = kind + "_function"
        self._step = step
        self._exact = None if eager else tf.function(step)
        self._open = None
        self._shapes = set()
        self._last = ()  # dims seen right before
        self._graph = None

    taken = 1  # batches of a call

    def begin(self, source):
        """A walk over the data begins."""

    def described(self, index, data):
        """What callbacks are told of a batch before it: nothing."""
        return None

    def told(self, outputs):
        """What callbacks are told of the outputs of a batch."""
        return {"outputs": outputs}

    @property
    def graph(self):
        """The graph of the last trace; None where there is none."""
        return None if self._graph is None else self._graph()

    def __call__(self, data):
        if self.eager:
            return self._step(data)
        if self._open is None:
            self._watch(data)
        function = self._exact if self._open is None else self._open
        return (self._schedule or _call)(function, data)

    def _watch(self, data):
        """Counts shapes by those of the first tensor."""
        first = data
        while isinstance(first, (tuple, list, dict)):
            first = next(iter(first.values() if isinstance(first, dict) else first))
        first = getattr(first, "values", (first,))[0] if _of_many(first) else first
        shape = getattr(first, "shape", None)
        dims = shape._dims if shape is not None else None
        if dims == self._last:
            return
        self._last = dims
        self._shapes.add(dims)
        if len(self._shapes) > _EXACT_SHAPES:
            self._open = tf.function(self._step, reduce_retracing=True)


class OwnSteps:
    """Calls a function of the program's with an iterator whose next element is the
    batch: an iterator of datasets, which traced functions take."""

    def __init__(self):
        self._waiting = collections.deque()
        self._iterators = {}  # by the specs of a batch

    def running(self, function, base):
        """Itself, to call that function from now on; what else steps do is `base`'s."""
        self._function, self._base = function, base
        return self

    def __reduce__(self):
        return OwnSteps, ()  # copies of models begin anew

    def __getattr__(self, name):
        if "_base" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._base, name)

    def __call__(self, data):
        if hasattr(data, "_of_this_worker"):  # an iterator
            return self._function(data)
        leaves = tf.nest.flatten(data)
        known = all(tf.is_tensor(x) and hasattr(x, "shape") for x in leaves)
        if not known:  # shares of replicas, objects of the program's
            return self._function(iter([data]))
        self._waiting.clear()  # of a step that failed
        self._waiting.append(data)
        return self._function(self._iterator_of(data))

    def _iterator_of(self, data):
        specs = tf.nest.map_structure(_open_spec, data)
        key = repr(specs)
        if key not in self._iterators:
            given = tf.data.Dataset.from_generator(
                self._batches, output_signature=specs
            )
            self._iterators[key] = iter(given)
        return self._iterators[key]

    def _batches(self):
        while self._waiting:
            yield self._waiting.popleft()


def _open_spec(x):
    """The spec of a batch of any size."""
    spec = tf.type_spec_from_value(x)
    return any_batch_spec(spec) if isinstance(spec, tf.TensorSpec) else spec
