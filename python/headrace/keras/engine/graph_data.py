"""Data for fit, evaluate and predict in a graph: arrays, which runs are fed.

It has what data_adapter.py has for steps that run at once: source(), split() and batch().
"""

import math

import numpy as np

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import late
from headrace.keras.base import row_values
from headrace.keras.base.keras_tensor import is_composite, key
from headrace.keras.callback.progress import ProgbarLogger, show
from headrace.keras.engine import data_adapter
from headrace.keras.engine.compiled import loss_name
from headrace.keras.engine.data_adapter import pack_x_y_sample_weight

is_iterable_source = data_adapter.is_iterable_source
is_sequence = data_adapter.is_sequence
unpacked = data_adapter.unpack_x_y_sample_weight
_DEFAULT_BATCH = 32


# --- arrays ---


def _array(x):
    if isinstance(x, (tf.Variable, *row_values.KINDS)) or _is_symbolic(x):
        return x
    if hasattr(x, "iloc") or hasattr(x, "to_numpy"):
        return x.to_numpy()
    if getattr(type(x), "_is_composite_tensor", False):
        raise NotImplementedError(
            f"Data of the type {type(x).__name__}: models in graphs take arrays"
        )
    return x.numpy() if isinstance(x, tf.Tensor) else np.asarray(x)


def _is_symbolic(x):
    if is_composite(x):
        return any(map(_is_symbolic, x._components()))
    return isinstance(x, _headrace.SymbolicTensor)


def _arrays(structure):
    return data_adapter.converted(row_values.wrapped(structure), _array)


def names_of(x):
    """Names for the placeholders of data that a model is called on first."""
    if isinstance(x, dict):
        return [str(k) for k in sorted(x)]
    return [f"input_{i + 1}" for i in range(len(tf.nest.flatten(x)))]


def rows_of(data):
    """How many samples a batch has."""
    shapes = [np.shape(x) for x in tf.nest.flatten(data) if x is not None]
    return shapes[0][0] if shapes and shapes[0] else 1


def leaves_of(structure, names):
    """What there is for each of some names: of a dict by names, a sequence, or one."""
    if structure is None:
        return [None] * len(names)
    if isinstance(structure, dict):
        return [structure.get(n) for n in names]
    if isinstance(structure, (list, tuple)):
        return list(structure)
    return [structure] if len(names) == 1 else tf.nest.flatten(structure)


# --- what a run is fed ---


def feeds(ends, x):
    """{placeholder: array} of a model's inputs; ValueError for other shapes."""
    if not ends.fed:
        return {}
    given = leaves_of(x, ends.names) if isinstance(x, dict) else tf.nest.flatten(x)
    if len(given) != len(ends.inputs):
        raise ValueError(
            f"Error when checking model input: expected {len(ends.inputs)} array(s), "
            f"for inputs {ends.names}, but got {len(given)}"
        )
    found = {}
    for name, tensor, array in zip(ends.names, ends.inputs, given):
        if array is None:
            raise ValueError(
                f'No data provided for "{name}". Need data for each key in: {ends.names}'
            )
        shape = None if tensor.shape.rank is None else tensor.shape.as_list()
        _check_kind(name, array, tensor)
        array = _with_axis(array, shape)
        if shape is not None:
            _check("input", name, array, shape)
        found[key(tensor)] = (tensor, getattr(array, "value", array))
    return dict(found.values())


def _check_kind(name, array, tensor):
    """ValueError where a value is dense, sparse or ragged and its input is not."""
    is_rows = isinstance(array, row_values.KINDS)
    if array.fits(tensor) if is_rows else not is_composite(tensor):
        return
    kind = type(array.value if is_rows else array).__name__
    raise ValueError(
        f"Error when checking input: {name} is {tensor}, but its data are of the type "
        f"{kind}: sparse values go to an Input with sparse=True, ragged ones to one with "
        "ragged=True of as many ragged dimensions, arrays to others"
    )


def _with_axis(array, shape):
    """A vector as a column where rows are expected."""
    if isinstance(array, row_values.KINDS):
        return array
    vector = np.ndim(array) == 1 and shape is not None and len(shape) > 1
    return np.expand_dims(array, 1) if vector else array


def _check(kind, name, array, shape):
    got = np.shape(array)
    if len(got) != len(shape):
        raise ValueError(
            f"Error when checking {kind}: expected {name} to have {len(shape)} "
            f"dimensions, but got array with shape {got}"
        )
    if any(None not in (n, m) and n != m for n, m in zip(shape[1:], got[1:])):
        raise ValueError(
            f"Error when checking {kind}: expected {name} to have shape "
            f"{tuple(shape[1:])} but got array with shape {got[1:]}"
        )


_OF_OUTPUTS_SHAPE = {
    "mean_squared_error",
    "binary_crossentropy",
    "categorical_crossentropy",
}


def target_feeds(measures, losses, ends, y):
    """{placeholder: array} of the targets; ValueError for shapes that a loss does not
    take."""
    wanted = [i for i, t in enumerate(measures.targets) if t is not None]
    names = [measures.names[i] for i in wanted]
    given = leaves_of(y, names)
    if y is not None and not names:
        raise ValueError(
            f"('Error when checking model target: expected no data, but got:', {y})"
        )
    if y is not None and len(given) != len(names):
        raise ValueError(
            "Error when checking model target: the list of Numpy arrays that you are "
            "passing to your model is not the size the model expected. Expected to see "
            f"{len(names)} array(s), for outputs {names} but instead got the following "
            f"list of {len(given)} arrays: {str(given)[:200]}..."
        )
    found = {}
    for i, array in zip(wanted, given):
        target = measures.targets[i]
        if array is None:
            continue
        if target.op.type != "Placeholder":
            raise ValueError(
                f"{measures.names[i]} has a target tensor already, so fit() takes none "
                "for it"
            )
        out = ends.outputs[i].shape
        shape = None if out.rank is None else out.as_list()
        array = _with_axis(array, shape)
        name = loss_name(losses.functions[i])
        if shape is not None and name in _OF_OUTPUTS_SHAPE:
            _check_target(array, shape, name)
        found[target] = array
    return found


def _check_target(array, shape, name):
    got = np.shape(array)
    same = len(got) == len(shape) and all(
        n is None or n == m for n, m in zip(shape[1:], got[1:])
    )
    if not same:
        raise ValueError(
            f"A target array with shape {got} was passed for an output of shape "
            f"{tuple(shape)} while using as loss `{name}`. This loss expects targets to "
            "have the same shape as the output."
        )


def weight_feeds(measures, weights):
    """{placeholder: array} of the weights of samples."""
    pairs = zip(measures.weights, weights)
    return {place: w for place, w in pairs if place is not None and w is not None}


def _check_weights(sample_weight, y):
    """ValueError where the weights of an output do not fit its targets."""
    for weight, target in zip(*map(_listed, (sample_weight, y))):
        if weight is not None and target is not None:
            _check_weight(weight, target)


def _check_weight(weight, y):
    shape, of = np.shape(weight), np.shape(y)
    if len(shape) > max(len(of) - 1, 1):
        raise ValueError(
            f"Found a sample_weight array with shape {shape}. In order to use "
            "timestep-wise sample weights, y must have as many axes and one more; if you "
            "just mean to use sample-wise weights, make sure your sample_weight array is "
            "1D."
        )
    if of[: len(shape)] != shape:
        raise ValueError(
            f"Found a sample_weight array with shape {shape} for an input with shape "
            f"{of}. sample_weight cannot be broadcast."
        )


# --- batches ---


class _Source:
    """What gives the batches of each epoch.

    Attributes:
      steps: how many there are, None where nobody knows.
      rows: how many samples there are, None likewise.
      batch_size: that of arrays in batches, or that was given.
      by_samples: whether progress is counted in samples.
      unit: what the line above fit's progress counts; None where there is no line.
      trains: whether it is walked over for training.
      ran_out: whether it gave fewer batches than were asked for.
    """

    rows = batch_size = None
    unit = "samples"
    by_samples = trains = ran_out = False

    def size_of(self, data):
        """The size of a batch that callbacks are told."""
        return 1

    def counts_steps(self, kind):
        """Whether steps count alike in the mean loss, whatever their sizes."""
        return True

    def in_doubles(self, kind):
        """Whether the losses of steps are summed in float64, as TensorFlow does."""
        return kind == "train"

    def begin(self):
        """Every epoch begins anew."""

    def note_size(self, count):
        """It is known."""


class Whole(_Source):
    """Arrays in memory, given whole to each of a number of steps."""

    def __init__(self, x, y, sample_weight, batch_size, steps):
        self.batch_size = batch_size
        self._data = pack_x_y_sample_weight(x, y, sample_weight)
        self.rows, self.steps = _checked_size(x, y), steps
        _check_weights(sample_weight, y)

    def epoch(self):
        """The same data for each step."""
        for _ in range(self.steps):
            yield self._data


class Arrays(_Source):
    """Batches of arrays in memory."""

    by_samples = True

    def __init__(self, x, y, sample_weight, batch_size, shuffle):
        self._data = pack_x_y_sample_weight(x, y, sample_weight)
        self._flat = tf.nest.flatten(self._data)
        self.rows = self._size = _checked_size(x, y)
        _check_weights(sample_weight, y)
        if batch_size is None:
            batch_size = _DEFAULT_BATCH
        if int(batch_size) < 1:
            raise ValueError(
                f"Expected batch_size to be positive. Received is {batch_size}."
            )
        self.batch_size = int(batch_size)
        self._shuffle = shuffle

    @property
    def steps(self):
        return math.ceil(self._size / self.batch_size)

    def size_of(self, data):
        """The size of a batch that callbacks are told."""
        return rows_of(data)

    def counts_steps(self, kind):
        """Whether steps count alike in the mean loss, whatever their sizes."""
        return False

    def epoch(self):
        """The batches of one epoch, in another order each time where it is shuffled."""
        size = self.batch_size
        self._order = np.arange(self._size)
        if self._shuffle == "batch":
            self._shuffle_batches()
        elif self._shuffle:
            np.random.shuffle(self._order)
        for at in range(0, self._size, size):
            rows = slice(at, at + size)
            if self._shuffle:
                rows = self._order[rows]
            taken = [None if a is None else a[rows] for a in self._flat]
            yield tf.nest.pack_sequence_as(self._data, taken)

    def _shuffle_batches(self):
        """Batches stay together; what is behind the last whole one stays there."""
        size = self.batch_size
        whole = self._size // size * size
        batches = self._order[:whole].reshape(-1, size)
        np.random.shuffle(batches)
        self._order = np.append(batches.flatten(), self._order[whole:])

    def warn_empty(self):
        raise ValueError("Empty training data.")


def _listed(structure):
    return [] if structure is None else tf.nest.flatten(structure)


def _checked_size(x, y):
    """How many samples there are; ValueError where arrays differ."""
    sizes = {}
    for what, data in (("input", x), ("target", y)):
        data = [a for a in _listed(data) if a is not None]
        found = {a.shape[0] if a.shape else None for a in data}
        if len(found) > 1 or None in found:
            shapes = [a.shape for a in data]
            raise ValueError(
                f"All {what} arrays ({'xy'[what == 'target']}) should have the same "
                f"number of samples. Got array shapes: {shapes}"
            )
        sizes[what] = found.pop() if found else None
    if sizes["target"] is not None and sizes["target"] != sizes["input"]:
        raise ValueError(
            "Input arrays should have the same number of samples as target arrays. Found "
            f"{sizes['input']} input samples and {sizes['target']} target samples."
        )
    return sizes["input"]


class Beside(Arrays):
    """Arrays that validate what trains on a generator: in the order of the rows, in
    batches of the size of its last one."""

    def __init__(self, x, y, sample_weight, generator):
        super().__init__(x, y, sample_weight, None, False)
        self._generator = generator

    def begin(self):
        """Takes the size of the batches."""
        self.batch_size = self._generator.last_size or _DEFAULT_BATCH


class Tensors(_Source):
    """Batches of tensors of the graph, which each step computes anew."""

    def __init__(self, data, steps):
        self._data, self.steps = data, steps
        shapes = [x.shape for x in tf.nest.flatten(data) if x is not None]
        self.rows = shapes[0][0] if shapes and len(shapes[0]) else None

    def epoch(self):
        """The values of one epoch's steps."""
        for _ in range(self.steps):
            yield _values(self._data)


def _values(tensors):
    """What a session has for a structure of tensors, arrays and None."""
    flat = tf.nest.flatten(tensors)
    wanted = {i: x for i, x in enumerate(flat) if _is_symbolic(x)}
    found = wanted and _session(wanted.values()).run(wanted)
    found = row_values.wrapped(found)
    return tf.nest.pack_sequence_as(
        tensors, [found.get(i, x) for i, x in enumerate(flat)]
    )


def _session(tensors):
    """Keras' session for the graph of these."""
    return late.keras_session(tf.nest.flatten(list(tensors), expand_composites=True))


class Iterable(data_adapter.IterableSource, _Source):
    """Batches that a dataset, a generator or a Sequence gives."""

    last_size = None  # of the batch that was last given

    def __init__(self, data, steps, shuffle=False, weigh=None):
        self._is_dataset = hasattr(data, "element_spec")
        self.unit = "steps" if self._is_dataset else None
        super().__init__(data, steps, shuffle, weigh)

    def size_of(self, data):
        """The size of a batch that callbacks are told: of datasets' nobody asks."""
        return 1 if self._is_dataset else rows_of(data)

    def counts_steps(self, kind):
        """Generators' batches count by their size in training, and nowhere else."""
        return self._is_dataset or kind != "train"

    def in_doubles(self, kind):
        """Whether the losses of steps are summed in float64."""
        return True

    def end_epoch(self):
        if self.trains:
            super().end_epoch()

    def _cardinality(self):
        if not self._is_dataset:
            return None
        return int(_values(tf.data.experimental.cardinality(self._data)))

    def _walk(self):
        if not self._is_dataset:
            return super()._walk()
        return self._elements()

    _nodes = None  # of a dataset: what begins a walk over it, and its next element

    def _elements(self):
        if self._nodes is None:
            iterator = tf.compat.v1.data.make_initializable_iterator(self._data)
            self._nodes = iterator.initializer, iterator.get_next()
        initializer, element = self._nodes
        session = _session([element])
        session.run(initializer)
        while True:
            try:
                yield _values(element)
            except tf.errors.OutOfRangeError:
                return

    def _element(self, element):
        parts = map(_arrays, unpacked(element))
        element = pack_x_y_sample_weight(*parts)
        self.last_size = rows_of(element)
        return element if self._weigh is None else self._weigh(element)


def source(
    x,
    y=None,
    sample_weight=None,
    batch_size=None,
    steps=None,
    shuffle=False,
    class_weight=None,
    beside=None,
    what="steps",
):
    """What gives the batches of each epoch; ValueError for data that do not fit.

    `beside` is what gives the batches of training that these validate.
    """
    steps = None if steps == -1 else steps
    weigh = None if class_weight is None else _weigher(class_weight)
    if hasattr(x, "get_next") and not hasattr(x, "batch"):
        raise ValueError(
            "For performance reasons TF-Keras `fit`, `evaluate` and`predict` accept tf.data "
            "`Datasets` as input but not iterators that have been manually generated from "
            "Datasets by users. Please directly pass in the original `Dataset` object "
            "instead of passing in `iter(dataset)`."
        )
    if x is not None and is_iterable_source(x):
        _only_alone(y, sample_weight)
        if steps is None and hasattr(x, "__next__") and not is_sequence(x):
            raise ValueError(
                f"Please specify the number of steps via the `{what}` argument."
            )
        return Iterable(x, steps, shuffle, weigh)
    x, y, sample_weight = map(_arrays, (x, y, sample_weight))
    if x is None or any(map(_is_symbolic, _listed((x, y, sample_weight)))):
        if steps is None:
            raise ValueError(
                "When using data tensors as input to a model, you should specify the "
                f"`{what}` argument."
            )
        return Tensors(pack_x_y_sample_weight(x, y, sample_weight), steps)
    if weigh is not None:
        x, y, sample_weight = weigh((x, y, sample_weight))
    if beside is not None and beside.unit is None:
        return Beside(x, y, sample_weight, beside)
    if steps is not None:
        return Whole(x, y, sample_weight, batch_size, steps)
    shuffle = shuffle or beside is not None  # upstream shuffles what validates
    return Arrays(x, y, sample_weight, batch_size, shuffle)


def batch_size_of(model, given):
    """The size of batches of arrays: what the model's inputs say, where they do."""
    network = getattr(model, "_layer_graph", None)
    shape = network.flat_inputs[0].shape if network is not None else None
    known = shape[0] if shape is not None and shape.rank else None
    if known is None or given is None:
        return given if known is None else int(known)
    if int(given) != int(known):
        raise ValueError(
            f"The `batch_size` argument value {given} is incompatible with the specified "
            f"batch size of your Input Layer: {known}"
        )
    return given


def params_of(model, kind, source, verbose, epochs, validation=None):
    """What callbacks are told of a run."""
    names = [] if kind == "predict" else list(model.metrics_names)
    if validation is not None:
        names += [f"val_{n}" for n in names]
    return {
        "batch_size": source.batch_size,
        "epochs": epochs,
        "steps": None if source.by_samples else source.steps,
        "samples": source.rows if source.by_samples else source.steps,
        "verbose": verbose,
        "do_validation": validation is not None,
        "metrics": names,
    }


def progress_of(kind, params):
    """The callback that shows progress: of fit alone; fit says what it trains on."""
    if kind != "train":
        return None
    return ProgbarLogger("samples" if params["steps"] is None else "steps")


def announce(source, validation):
    """Shows what fit trains on; nothing of generators."""
    if source.unit is None:
        return
    trained = source.rows if source.by_samples else source.steps
    text = f"Train on {trained} {source.unit}"
    if validation is not None:
        count = validation.rows if validation.rows is not None else validation.steps
        text += f", validate on {count} {source.unit}"
    show(text + "\n")


def _only_alone(y, sample_weight):
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise ValueError(
                f"`{name}` argument is not supported when data is a dataset, generator "
                "or Sequence: it gives all of them"
            )


def batch(x, y=None, sample_weight=None, class_weight=None):
    """One batch of arrays as steps want it."""
    data = tuple(map(_arrays, (x, y, sample_weight)))
    if any(map(_is_symbolic, _listed(data))):
        data = _values(data)
    _checked_size(data[0], data[1])
    _check_weights(data[2], data[1])
    if class_weight is not None:
        data = _weigher(class_weight)(data)
    return data


def split(data, fraction):
    """((x, y, w) for training, (x, y, w) for validation): the last rows."""
    if any(d is not None and is_iterable_source(d) for d in data):
        raise ValueError(
            "`validation_split` is only supported for Tensors or NumPy arrays"
        )
    arrays = tuple(map(_arrays, data))
    if any(map(_is_symbolic, _listed(arrays))):
        raise ValueError(
            "If your data is in the form of symbolic tensors, you cannot use "
            "`validation_split`."
        )
    size = _checked_size(arrays[0], arrays[1])
    at = int(size * (1.0 - fraction))
    if at in (0, size):
        raise ValueError("Empty training data.")
    return data_adapter.cut(arrays, at)


def _weigher(class_weight):
    """Adds the weights of the classes that y names."""

    def weigh(data):
        x, y, sample_weight = unpacked(data)
        if isinstance(y, (tuple, list, dict)):
            raise ValueError(
                "`class_weight` is only supported for Models with a single output."
            )
        classes = y
        if y.ndim > 1:
            classes = np.argmax(y, 1) if y.shape[1] > 1 else y.reshape(len(y))
        missing = set(classes.tolist()) - set(class_weight)
        if missing:
            raise ValueError(
                "`class_weight` must contain all classes in the data. The classes "
                f"{missing} exist in the data but not in `class_weight`."
            )
        weights = np.asarray([class_weight[c] for c in classes.tolist()], "float32")
        if sample_weight is not None:
            weights = weights * sample_weight
        return x, y, weights

    return weigh
