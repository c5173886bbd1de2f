"""The losses and metrics that compile was given, applied to outputs."""

from headrace import _api as tf
from headrace.autograph.calls import in_graph
from headrace.context import stack, strategies
from headrace.context.properties import read_only
from headrace.keras import loss as losses
from headrace.keras.metric import registry
from headrace.keras.metric.reductions import Mean


def _is_nested(x):
    return isinstance(x, (list, tuple, dict))


def _names_of(y_pred, names):
    """A name for each output, for logs: the model's, dict keys, or output_1, …"""
    count = len(tf.nest.flatten(y_pred))
    if names is not None and len(names) == count:
        return list(names)
    if isinstance(y_pred, dict):
        return sorted(y_pred)
    return [f"output_{i + 1}" for i in range(count)]


def _keys_of(y_pred, names):
    """What dicts of losses, metrics and targets call the outputs."""
    return sorted(y_pred) if isinstance(y_pred, dict) else _names_of(y_pred, names)


def _per_output(given, y_pred, names, what):
    """What compile was given, one entry an output."""
    leaves = tf.nest.flatten(y_pred)
    if isinstance(given, dict):
        unknown = [k for k in given if k not in names]
        if unknown:
            raise ValueError(
                f"Found unexpected {what} keys that do not correspond to any Model "
                f"output: {set(unknown)}. Expected: {names}."
            )
        return [given.get(n) for n in names]
    if isinstance(given, (list, tuple)) and (len(leaves) > 1 or len(given) == 1):
        if len(given) != len(leaves):
            raise ValueError(
                f"The {what} list must have one entry an output: {len(leaves)}, got "
                f"{len(given)}"
            )
        return list(given)
    return [given] * len(leaves)


def _match(structure, y_pred, names):
    """Leaves of targets or weights in the order of the outputs."""
    count = len(tf.nest.flatten(y_pred))
    if structure is None:
        return [None] * count
    if isinstance(structure, dict):
        return [structure.get(n) for n in names]
    if _is_nested(structure):
        leaves = list(structure)
        if len(leaves) == count:
            return leaves
        return tf.nest.flatten(structure)
    return [structure] if count == 1 else [structure] * count


def _with_mask(y_pred, sample_weight):
    """Weights that leave out what the output's mask hides."""
    mask = getattr(y_pred, "_keras_mask", None)
    if mask is None:
        return sample_weight
    mask = tf.cast(mask, y_pred.dtype)
    if sample_weight is None:
        return mask
    weight = tf.cast(sample_weight, y_pred.dtype)
    while weight.shape.rank < mask.shape.rank:
        weight = tf.expand_dims(weight, -1)
    while mask.shape.rank < weight.shape.rank:
        mask = tf.expand_dims(mask, -1)
    return mask * weight


def _fitted(target, output, weight):
    """Target and weight with the output's kind of dtype and rank."""
    if not isinstance(target, tf.RaggedTensor):
        target = tf.convert_to_tensor(target)
    flat = output.shape.rank == 2 and not isinstance(output, tf.RaggedTensor)
    if flat and target.shape.rank == 1:
        target = tf.expand_dims(target, -1)
    same_kind = target.dtype.is_floating == output.dtype.is_floating
    if same_kind and target.dtype.is_floating and target.dtype != output.dtype:
        target = tf.cast(target, output.dtype)
    if weight is not None:
        weight = tf.convert_to_tensor(weight)
        if weight.dtype != output.dtype:
            weight = tf.cast(weight, output.dtype)
        if flat and weight.shape.rank == 1:
            weight = tf.expand_dims(weight, -1)
    return target, weight


def _batch_of(target):
    if isinstance(target, tf.RaggedTensor):
        return target.nrows()
    return tf.shape(target)[0] if target.shape.rank else 1


class Losses:
    """The total loss of all outputs, and running means for the logs."""

    def __init__(self, given, weights, names, in_graph=False):
        self._given, self._weights, self._names = given, weights, names
        self._functions = None
        # In graphs runs give each loss.
        self._total = None if in_graph else Mean(name="loss")
        self._parts = []

    def prepare(self, y_pred):
        """Makes what is applied to such outputs, once."""
        if self._functions is None:
            with tf.init_scope():
                self._build(y_pred)

    def _build(self, y_pred):
        names = _names_of(y_pred, self._names)
        self._keys = keys = _keys_of(y_pred, self._names)
        given = _per_output(self._given, y_pred, keys, "loss")
        self._functions = [None if g is None else losses.as_loss(g) for g in given]
        for function in self._functions:
            if isinstance(function, losses.Loss):
                function._in_compile = True
        weights = _per_output(self._weights, y_pred, keys, "loss_weights")
        self._scales = weights
        if len(names) > 1:
            self._parts = [
                None if f is None else Mean(name=f"{n}_loss")
                for n, f in zip(names, self._functions)
            ]

    def names_of(self, y_pred):
        """The outputs' names."""
        return _names_of(y_pred, self._names)

    functions = read_only(
        "_functions", "The loss of each output; None of those without."
    )
    parts = read_only(
        "_parts", "The means of the outputs' losses, where there are several."
    )

    @property
    def built(self):
        """Whether the outputs are known."""
        return self._functions is not None

    def reset_state(self):
        """Sets the running means back to those of no data."""
        for mean in self.metrics:
            mean.reset_state()

    @property
    def metrics(self):
        if self._functions is None:
            return []  # nobody knows yet what is to be trained
        found = [self._total] if self._used and self._total is not None else []
        return found + [p for p in self._parts if p is not None]

    _used = True

    def of_output(self, i, y_true, y_pred, sample_weight):
        """(the loss of one output, its target)."""
        target, weight = _fitted(y_true, y_pred, sample_weight)
        value = self._functions[i](target, y_pred, _with_mask(y_pred, weight))
        return value, target

    def scaled(self, i, value):
        """The loss of one output as it counts in the total."""
        scale = self._scales[i]
        return value if scale is None else value * scale

    def __call__(self, y_true, y_pred, sample_weight=None, regularization_losses=None):
        """The total, with the sum of those of layers; updates the running means."""
        self.prepare(y_pred)
        outputs = tf.nest.flatten(y_pred)
        targets = _match(y_true, y_pred, self._keys)
        weights = _match(sample_weight, y_pred, self._keys)
        if self._given is not None and all(t is None for t in targets):
            raise ValueError(
                f"Target data is missing. Your model was compiled with loss={self._given}"
                ", and therefore expects target data to be provided in `fit()`."
            )
        replica = strategies.replica()
        count = 1 if replica is None else replica.num_replicas_in_sync
        values, told, shared, batch = [], [], [], None
        for i, function in enumerate(self._functions):
            if function is None or targets[i] is None:
                continue
            value, target = self.of_output(i, targets[i], outputs[i], weights[i])
            if batch is None:
                batch = _batch_of(target)
            # Running means take the mean over replicas, also of sums over their batches.
            whole = value * count if count > 1 and _is_sum(function) else value
            if self._parts:
                self._parts[i].update_state(whole, sample_weight=batch)
            values.append(self.scaled(i, value))
            told.append(self.scaled(i, whole) if whole is not value else values[-1])
            shared.append(_is_mean(function))
        penalties = [tf.cast(p, tf.float32) for p in regularization_losses or ()]
        values += penalties
        told += penalties
        if not values:
            self._used = self._given is not None
            return None if not self._used else tf.zeros([])
        total = told[0] if len(told) == 1 else tf.add_n(told)
        if self._total is not None:
            self._total.update_state(total, sample_weight=1 if batch is None else batch)
        if count == 1:
            return total
        # Gradients of replicas are summed: means of their batches count by their share.
        shared += [True] * len(penalties)
        return tf.add_n([v / count if m else v for v, m in zip(values, shared)])


def loss_name(function):
    """The name of a loss, an object or a function."""
    return getattr(function, "name", None) or getattr(function, "__name__", "")


def _is_mean(function):
    """Whether a loss is the mean over a batch."""
    means = (losses.Reduction.AUTO, losses.Reduction.SUM_OVER_BATCH_SIZE)
    return getattr(function, "reduction", losses.Reduction.AUTO) in means


def _is_sum(function):
    """Whether a loss is the sum over a batch."""
    return getattr(function, "reduction", None) == losses.Reduction.SUM


def _name(plain, weighted, prefix):
    """Names the metrics of one output; no two alike."""
    taken = set()
    for metrics, mark in ((plain, ""), (weighted, "weighted_")):
        for m in metrics:
            if mark and prefix + m._name in taken:
                m._name = mark + m._name
            m._name = prefix + m._name
            if m._name in taken:
                raise ValueError(
                    f"Found two metrics with the same name: {m._name}. All the metrics "
                    "added to the model need to have unique names."
                )
            taken.add(m._name)


class Metrics:
    """What compile was given as metrics, made when outputs are first seen."""

    def __init__(self, given, weighted, names):
        self._given, self._weighted, self._names = given, weighted, names
        self._built = None

    @property
    def built(self):
        """Whether the outputs are known."""
        return self._built is not None

    @property
    def metrics(self):
        if self._built is None:
            return []
        return [m for row in self._built for group in row for m in group]

    def _rows(self, given, y_pred, names):
        """A list of metrics for each output."""
        count = len(tf.nest.flatten(y_pred))
        if given is None:
            return [[] for _ in range(count)]
        if isinstance(given, dict):
            rows = _per_output(given, y_pred, names, "metrics")
        elif count == 1:
            rows = [given]
        elif isinstance(given, (list, tuple)) and any(map(_is_nested, given)):
            rows = list(given)
        else:
            rows = [given] * count
        return [
            r if isinstance(r, (list, tuple)) else [] if r is None else [r]
            for r in rows
        ]

    def _build(self, y_true, y_pred, losses):
        names = _names_of(y_pred, self._names)
        self._keys = keys = _keys_of(y_pred, self._names)
        outputs = tf.nest.flatten(y_pred)
        losses = losses or [None] * len(outputs)
        targets = _match(y_true, y_pred, keys)
        built = []
        plain = self._rows(self._given, y_pred, keys)
        weighted = self._rows(self._weighted, y_pred, keys)
        for i, measured in enumerate(self._measured or ()):
            if not measured:
                plain[i], weighted[i] = [], []
        for i, out in enumerate(outputs):
            rows = tuple(
                [registry.for_output(m, targets[i], out, losses[i]) for m in row]
                for row in (plain[i], weighted[i])
            )
            if not stack.all_v2():
                for given, metric in zip(weighted[i], rows[1]):
                    if given is not metric:
                        metric._name = f"weighted_{metric._name}"
            _name(*rows, prefix=f"{names[i]}_" if len(names) > 1 else "")
            built.append(rows)
        self._built = built

    def only_where(self, losses):
        """Outputs without a loss have no metrics, as in graphs of TensorFlow 1, where
        they have no targets."""
        self._measured = [loss is not None for loss in losses]

    _measured = None  # which outputs have metrics; all where nobody said

    def prepare(self, y_true, y_pred, losses=None):
        """Makes the metrics for such targets and outputs, once; the names of the losses
        say what accuracy means in graphs, where less is known of targets."""
        if self._built is None:
            with tf.init_scope():
                self._build(y_true, y_pred, losses)

    def update_state(self, y_true, y_pred, sample_weight=None):
        if self._given is None and self._weighted is None:
            return
        self.prepare(y_true, y_pred)
        outputs = tf.nest.flatten(y_pred)
        targets = _match(y_true, y_pred, self._keys)
        weights = _match(sample_weight, y_pred, self._keys)
        for i, (plain, weighted) in enumerate(self._built):
            if targets[i] is None:
                continue
            target, weight = _fitted(targets[i], outputs[i], weights[i])
            mask = _with_mask(outputs[i], None)
            for m in plain:
                in_graph(m.update_state)(target, outputs[i], sample_weight=mask)
            if weighted:
                weight = _with_mask(outputs[i], weight)
                for m in weighted:
                    update = in_graph(m.update_state)
                    update(target, outputs[i], sample_weight=weight)

    def reset_state(self):
        for m in self.metrics:
            m.reset_state()
