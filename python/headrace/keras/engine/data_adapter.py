"""Data for fit, evaluate and predict: arrays, datasets, generators, sequences."""

import copy
import itertools
import math
import operator

import numpy as np

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework.settings import logging, random_seed
from headrace.keras import settings
from headrace.keras.base.base_layer import any_batch_spec
from headrace.keras.callback.progress import ProgbarLogger
from headrace.keras.dataset_creator import DatasetCreator
from headrace.keras.utility import Sequence

_DEFAULT_BATCH = 32


def unpack_x_y_sample_weight(data):
    """(x, y, sample_weight) of what a dataset gives."""
    if isinstance(data, list):
        data = tuple(data)
    if not isinstance(data, tuple):
        return data, None, None
    if len(data) in (1, 2, 3):
        return data + (None,) * (3 - len(data))
    raise ValueError(
        "Data is expected to be in format `x`, `(x,)`, `(x, y)`, or `(x, y, "
        f"sample_weight)`, found: {data}"
    )


def pack_x_y_sample_weight(x, y=None, sample_weight=None):
    """The tuple of what is not None; x alone is itself unless it is a tuple."""
    if y is None:
        return (x,) if isinstance(x, tuple) else x
    return (x, y) if sample_weight is None else (x, y, sample_weight)


def is_iterable_source(x):
    """Datasets, generators and sequences, which hold x, y and weights together."""
    if isinstance(x, (tf.Tensor, np.ndarray, list, tuple, dict)):
        return False
    if _is_composite(x):
        return False
    if isinstance(x, DatasetCreator):
        return True
    return hasattr(x, "element_spec") or hasattr(x, "__next__") or is_sequence(x)


def _is_composite(x):
    """Whether x is a value of several tensors with rows, such as a ragged one."""
    is_one = getattr(type(x), "_is_composite_tensor", False)
    return is_one and not hasattr(x, "element_spec")  # as datasets are


def is_sequence(x):
    return isinstance(x, Sequence) or (
        hasattr(x, "__getitem__")
        and hasattr(x, "__len__")
        and not hasattr(x, "dtype")
        and not hasattr(x, "iloc")
        and not isinstance(x, (list, tuple, dict))
    )


def _tensor(x, view=False):
    """A tensor of an array; NumPy's doubles become Keras' floats, those of pandas' tables
    stay. pandas' series are columns, [rows, 1].

    With `view` it sees the array's memory: for what is only copied from.
    """
    if isinstance(x, tf.Tensor) or _is_composite(x):
        return x
    if isinstance(x, tf.Variable):
        return x.read_value()
    is_table = False
    if hasattr(x, "iloc") or hasattr(x, "to_numpy"):
        x = x.to_numpy()
        is_table = x.ndim > 1
        x = x if is_table else np.expand_dims(x, -1)
    if isinstance(x, np.ndarray) or not isinstance(x, (list, tuple)):
        x = np.asarray(x)
        if not is_table and x.dtype.kind == "f" and x.dtype.name != settings.floatx():
            x = x.astype(settings.floatx())
        if view:
            return _headrace.view_array(x)
    return tf.convert_to_tensor(x)


def converted(structure, convert):
    """convert() of each part of a structure of arrays; a list of numbers is an array
    itself, one of arrays becomes a tuple, as lists do in datasets.
    """
    if structure is None:
        return None
    if isinstance(structure, list):
        if not structure or isinstance(
            structure[0], (int, float, bool, str, bytes, list)
        ):
            return convert(np.asarray(structure))
        structure = tuple(structure)
    if type(structure) is tuple:
        return tuple(converted(part, convert) for part in structure)
    if isinstance(structure, dict):
        made = copy.copy(structure)  # of its class, whatever that is made with
        made.update((k, converted(v, convert)) for k, v in structure.items())
        return made
    return tf.nest.map_structure(convert, structure)


def _tensors(structure, view=False):
    return converted(structure, lambda x: _tensor(x, view))


def _orders(size):
    """A function that gives the order in which fit takes rows, another one at every call.

    As upstream, the same global seed gives the same orders in every fit.
    """
    seed = random_seed._Context.seed
    rows = tf.range(size, dtype=tf.int64)

    def shuffled():
        return tf.raw_ops.RandomShuffle(value=rows, seed=seed or 0, seed2=0)

    # A trace of its own begins the seed's sequence anew.
    return shuffled if seed is None else tf.function(shuffled)


class ArraySource:
    """Batches of arrays that are held in memory."""

    def __init__(self, x, y, sample_weight, batch_size, steps, shuffle):
        given = (x, y, sample_weight)
        parts = [_tensors(part, view=True) for part in given]
        self._keep(*parts)
        sizes = {t.shape[0] if t.shape.rank else None for t in self._flat}
        if len(sizes) != 1 or None in sizes:
            raise ValueError(
                "Data cardinality is ambiguous:\n"
                + "".join(map(_sizes, ("x", "y", "sample_weight"), parts))
                + "Make sure all arrays contain the same number of samples."
            )
        self._size = sizes.pop()
        if batch_size is None:
            batch_size = math.ceil(self._size / steps) if steps else _DEFAULT_BATCH
        self._batch_size = int(batch_size)
        if self._batch_size < 1:
            raise ValueError(
                f"Expected batch_size to be positive. Received is {batch_size}."
            )
        whole = -(-self._size // self._batch_size)
        self.steps = whole if steps is None else steps
        self._whole, self._passes, self._rest = whole, 1, None
        self.ran_out = False  # gave fewer batches than were asked for
        if whole == 1:  # the batch is what was given, and others may keep it
            self._keep(*map(_tensors, given))
        self._order = _orders(self._size) if shuffle else None
        self._by_batch = shuffle == "batch"

    def _keep(self, x, y, sample_weight):
        """Holds the arrays as a step gets a batch of them."""
        self._data = pack_x_y_sample_weight(x, y, sample_weight)
        self._flat = tf.nest.flatten(self._data)
        if isinstance(self._data, tf.Tensor):
            self._pack = operator.itemgetter(0)
        elif all(isinstance(part, tf.Tensor) for part in self._data):
            self._pack = tuple
        else:
            self._pack = self._packed

    def of_epochs(self, count):
        """There are that many epochs: so often the rows are gone over."""
        self._passes = count

    def epoch(self):
        """The batches of one epoch, which goes on where the last one ended."""
        if self.starts_anew():
            return self._pass()
        if self._rest is None:
            self._rest = self._all()
        return self._next()

    def _next(self):
        for _ in range(0 if self.ran_out else self.steps):
            element = next(self._rest, None)
            if element is None:
                self.ran_out = True
                _warn_of_end()
                return
            yield element

    def _all(self):
        for _ in range(self._passes):
            yield from self._pass()

    def _pass(self):
        """The batches of all rows."""
        if self._order is None:
            return self._slices()
        if not self._by_batch:
            return self._shuffled()
        ranges = self._ranges()
        np.random.shuffle(ranges)
        return self._sliced(ranges)

    def _packed(self, flat):
        return tf.nest.pack_sequence_as(self._data, flat)

    def _ranges(self):
        n, size = self._batch_size, self._size
        return [(at, min(at + n, size)) for at in range(0, size, n)]

    def _slices(self):
        if self._whole == 1:
            yield self._pack(self._flat)
            return
        yield from self._sliced(self._ranges())

    def _sliced(self, ranges):
        flat, pack = self._flat, self._pack
        for start, stop in ranges:
            rows = slice(start, stop)
            yield pack([t[rows] for t in flat])

    def _shuffled(self):
        flat, pack = self._flat, self._pack
        ranges = self._ranges()
        if not ranges:
            return
        order = self._order()[: ranges[-1][1]]
        sizes = [stop - start for start, stop in ranges]
        gather = _headrace.raw_op("GatherV2")  # without what tf.gather looks for
        for rows in tf.split(order, sizes) if len(sizes) > 1 else [order]:
            yield pack([gather(params=t, indices=rows, axis=0) for t in flat])

    def begin(self):
        """The next epoch starts at the first batch again."""
        self._rest, self.ran_out = None, False

    def starts_anew(self):
        """Whether every epoch begins with the first batch: where it takes all."""
        return self.steps == self._whole

    def end_epoch(self):
        pass

    def ends(self):
        """Whether a step that finds no batch has come to the end: steps get theirs."""
        return False

    def divided(self, strategy, divide):
        """The batches, divided among workers by divide(strategy, dataset)."""
        specs = tf.nest.map_structure(_spec_of_batch, self._data)
        batches = self._pass if self.starts_anew() else self._all
        made = tf.data.Dataset.from_generator(batches, output_signature=specs)
        return divide(strategy, made)

    def note_size(self, count):
        pass

    def warn_empty(self):
        raise ValueError("Expected input data to be non-empty.")


def _spec_of_batch(x):
    """The spec of batches, of any number of rows, of an array or a batch."""
    spec = tf.type_spec_from_value(x)
    return any_batch_spec(spec) if isinstance(spec, tf.TensorSpec) else spec


def _sizes(label, data):
    """The line of an error: how many rows the arrays have."""
    if data is None:
        return ""
    sizes = [str(t.shape[0]) if t.shape.rank else "()" for t in tf.nest.flatten(data)]
    return f"  {label} sizes: {', '.join(sizes)}\n"


class IterableSource:
    """Batches that an iterable gives: a dataset, a generator or a sequence."""

    def __init__(self, data, steps, shuffle=False, weigh=None):
        self._data, self._wanted, self._weigh = data, steps, weigh
        made = hasattr(data, "element_spec")  # a dataset, or an iterator over one
        self._is_sequence = is_sequence(data) and not made
        self._is_generator = hasattr(data, "__next__") and not made
        self._shuffle = shuffle and self._is_sequence
        self._endless = None  # an iterator that goes on from epoch to epoch
        self.ran_out = False  # gave fewer batches than were asked for
        self.steps = steps if steps is not None else self._known_size()

    def of_epochs(self, count):
        pass

    def _known_size(self):
        if self._is_sequence:
            return len(self._data)
        size = self._cardinality()
        if size == -1:
            raise ValueError(
                "When providing an infinite dataset, you must specify the number of "
                "steps to run (if you did not intend to create an infinite dataset, "
                "make sure to not call `repeat()` on the dataset)."
            )
        return size if size is not None and size >= 0 else None

    def _cardinality(self):
        known = getattr(self._data, "cardinality", None)  # of distributed ones a number
        return None if known is None else int(known() if callable(known) else known)

    def _walk(self):
        if not self._is_sequence:
            mark = getattr(self._data, "_of_this_worker", None)  # a distributed one's
            return iter(self._data) if mark is None else map(mark, self._data)
        order = list(range(len(self._data)))
        if self._shuffle:
            np.random.shuffle(order)
        return (self._data[i] for i in order)

    def begin(self):
        """The next epoch starts at the first batch again."""
        self._endless = None

    def starts_anew(self):
        """Whether every epoch walks over the data from its beginning."""
        if self._is_sequence or (self._wanted is None and not self._is_generator):
            return True
        return self._wanted is not None and self._cardinality() == self._wanted

    def epoch(self):
        if self._wanted is None:
            for element in self._walk():
                yield self._element(element)
            self.end_epoch()
            return
        if self.ran_out:
            return
        if self._endless is None or self.starts_anew():
            self._endless = self._walk()
        for _ in range(self._wanted):
            try:
                element = next(self._endless)
            except (StopIteration, tf.errors.OutOfRangeError):
                self.ran_out = True
                _warn_of_end()
                return
            yield self._element(element)

    def end_epoch(self):
        if hasattr(self._data, "on_epoch_end"):
            self._data.on_epoch_end()

    def ends(self):
        """Whether a step that finds no batch has come to the end: steps get theirs."""
        return False

    def divided(self, strategy, divide):
        """The batches, divided among workers by divide(strategy, dataset)."""
        if hasattr(self._data, "_of_this_worker"):
            return self._data
        if isinstance(self._data, tf.data.Dataset):
            data, weigh = self._data, self._weigh
            if weigh is not None:
                data = data.map(lambda *e: weigh(e))
            return divide(strategy, data)
        walk, ahead = self._walk, []
        if self._is_generator:
            rest = self._walk()
            ahead = list(itertools.islice(rest, 1))
            walk = lambda: itertools.chain(ahead, rest)
        first = next(iter(ahead or walk()), None)
        if first is None:
            raise ValueError("Expected input data to be non-empty.")
        made = tf.data.Dataset.from_generator(
            lambda: map(self._element, walk()),
            output_signature=tf.nest.map_structure(
                _spec_of_batch, self._element(first)
            ),
        )
        return divide(strategy, made)

    def _element(self, element):
        if not hasattr(self._data, "element_spec"):
            element = pack_x_y_sample_weight(
                *map(_tensors, unpack_x_y_sample_weight(element))
            )
        return element if self._weigh is None else self._weigh(element)

    def note_size(self, count):
        if self.steps is None and count:
            self.steps = count

    def warn_empty(self):
        _warn_of_end()


def _warn_of_end():
    logging.warn(
        "Your input ran out of data; interrupting training. Make sure that your dataset "
        "or generator can generate at least `steps_per_epoch * epochs` batches. You may "
        "need to use the repeat() function when building your dataset."
    )


def params_of(model, kind, source, verbose, epochs, validation=None):
    """What callbacks are told of a run."""
    return dict(verbose=verbose, epochs=epochs, steps=source.steps)


def progress_of(kind, params):
    """The callback that shows progress."""
    return ProgbarLogger()


def announce(source, validation):
    """Nothing is shown above fit's progress."""


def source(
    x,
    y=None,
    sample_weight=None,
    batch_size=None,
    steps=None,
    shuffle=False,
    class_weight=None,
):
    """What gives the batches of each epoch; `steps` of -1 are all there are."""
    steps = None if steps == -1 else steps
    if steps is not None and steps <= 0:
        raise ValueError(
            f"steps_per_epoch must be positive, None or -1. Received {steps}. See "
            "`Model.fit`."
        )
    weigh = None if class_weight is None else _weigher(class_weight)
    if is_iterable_source(x):
        made = hasattr(x, "element_spec") or isinstance(x, DatasetCreator)
        kind = "dataset" if made else "python generator"
        kind = "`keras.utils.Sequence`" if is_sequence(x) else kind
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise ValueError(
                    f"`{name}` argument is not supported when using {kind} as input."
                )
        if isinstance(x, DatasetCreator):
            x = x._dataset(steps)
        return IterableSource(x, steps, shuffle, weigh)
    if x is None:
        raise ValueError("fit, evaluate and predict need data: x is None")
    if any(map(_is_composite, _leaves(x, y))):
        parts = pack_x_y_sample_weight(x, *map(_tensors, (y, sample_weight)))
        return _source_of_rows(parts, batch_size, steps, shuffle, weigh)
    if weigh is not None:
        x, y, sample_weight = weigh((x, _tensors(y), _tensors(sample_weight)))
    return ArraySource(x, y, sample_weight, batch_size, steps, shuffle)


def _leaves(*structures):
    return tf.nest.flatten(structures)


def _source_of_rows(parts, batch_size, steps, shuffle, weigh):
    """Batches of sparse, ragged and extension types, which datasets know how to cut into rows."""
    rows = tf.data.Dataset.from_tensor_slices(parts)
    if shuffle:
        rows = rows.shuffle(int(rows.cardinality()))
    return IterableSource(rows.batch(batch_size or _DEFAULT_BATCH), steps, weigh=weigh)


def batch(x, y=None, sample_weight=None, class_weight=None):
    """One batch of arrays as steps want it: always a tuple."""
    data = tuple(map(_tensors, (x, y, sample_weight)))
    if class_weight is not None:
        return _weigher(class_weight)(data)
    return data[:1] if y is None else data[:2] if sample_weight is None else data


def _weigher(class_weight):
    """Adds the weights of the classes that y names."""
    classes = sorted(class_weight)
    if classes != list(range(len(classes))):
        raise ValueError(
            "Expected `class_weight` to be a dict with keys from 0 to one less than the "
            f"number of classes, found {class_weight}"
        )
    table = tf.constant([class_weight[c] for c in classes], settings.floatx())

    def weigh(data):
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        if tf.nest.is_nested(y):
            raise ValueError(
                "`class_weight` is only supported for Models with a single output."
            )
        ids = y
        if y.shape.rank is not None and y.shape.rank > 1:
            ids = tf.argmax(y, 1) if y.shape[-1] != 1 else tf.squeeze(y, -1)
        ids = tf.round(ids) if ids.dtype.is_floating else ids
        weights = tf.gather(table, tf.cast(ids, tf.int64))
        if sample_weight is not None:
            weights = tf.cast(weights, sample_weight.dtype) * sample_weight
        return x, y, weights

    return weigh


def split(data, fraction):
    """((x, y, w) for training, (x, y, w) for validation): the last rows."""
    if any(is_iterable_source(d) for d in data):
        raise ValueError(
            "`validation_split` is only supported for Tensors or NumPy arrays, found "
            f"following types in the input: {[type(d) for d in data if d is not None]}"
        )
    tensors = tuple(_tensors(d, view=True) for d in data)
    flat = tf.nest.flatten([t for t in tensors if t is not None])
    size = flat[0].shape[0]
    at = int(math.floor(size * (1.0 - fraction)))
    if at in (0, size):
        raise ValueError(
            f"Training data contains {size} samples, which is not sufficient to split it "
            "into a validation and training set as specified by "
            f"`validation_split={fraction}`. Either provide more data, or a different "
            "value for the `validation_split` argument."
        )
    return cut(tensors, at)


def cut(parts, at):
    """(the rows before `at`, those from it on) of each part of data."""

    def of(rows):
        return tuple(
            None if t is None else tf.nest.map_structure(lambda a: a[rows], t)
            for t in parts
        )

    return of(slice(None, at)), of(slice(at, None))
