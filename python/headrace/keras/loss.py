"""tf.keras.losses: functions of y_true and y_pred, and classes that reduce them."""

from headrace import _api as tf
from headrace.autograph.calls import in_graph
from headrace.context import strategies
from headrace.framework.support import signatures
from headrace.keras import newer_losses, ragged_losses, serialization, settings
from headrace.keras.classes import add_function_classes
from headrace.keras.newer_losses import pair
from headrace.keras.ragged_losses import is_ragged


class Reduction:
    """What a loss makes of the values of a batch."""

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"

    @classmethod
    def all(cls):
        """A tuple of all reductions."""
        return (cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE)

    @classmethod
    def validate(cls, key):
        """Raises ValueError unless `key` is one of them."""
        if key not in cls.all():
            raise ValueError(
                f'Invalid Reduction Key: {key}. Expected keys are "{cls.all()}"'
            )


def squeeze_or_expand(y_pred, y_true=None, sample_weight=None):
    """The three with ranks that fit: a last axis of 1 too many is dropped."""
    rank = y_pred.shape.rank
    if y_true is not None and rank is not None and y_true.shape.rank is not None:
        if rank - y_true.shape.rank == 1 and y_pred.shape[-1] == 1:
            y_pred = tf.squeeze(y_pred, -1)
        elif y_true.shape.rank - rank == 1 and y_true.shape[-1] == 1:
            y_true = tf.squeeze(y_true, -1)
    return y_pred, y_true, fit_weight(sample_weight, y_pred)


def fit_weight(weight, values):
    """A weight with as many axes as the values."""
    if weight is None:
        return None
    have, want = weight.shape.rank, values.shape.rank
    if not have or want is None:
        return weight
    if have - want == 1 and weight.shape[-1] == 1:
        return tf.squeeze(weight, -1)
    if want - have == 1:
        return tf.expand_dims(weight, -1)
    return weight


def reduce_weighted(values, sample_weight, reduction):
    """The values times their weights, reduced."""
    if is_ragged(values):
        values = ragged_losses.weighted(values, sample_weight)
        if reduction == Reduction.NONE:
            return values
        values, sample_weight = values.flat_values, None
    if sample_weight is not None:
        weight = tf.cast(tf.convert_to_tensor(sample_weight), values.dtype)
        weight = ragged_losses.deepened(fit_weight(weight, values), values.shape.rank)
        values = values * weight
    if reduction == Reduction.NONE:
        return values
    total = tf.reduce_sum(values)
    if reduction == Reduction.SUM:
        return total
    # A replica's share of a batch may be empty.
    if sample_weight is None and strategies.replica() is None:
        return tf.reduce_mean(values)
    return tf.math.divide_no_nan(total, tf.cast(tf.size(values), values.dtype))


def _valid_weight(mask, values, sample_weight, reduction):
    """Weights that leave masked values out, of the mean's divisor too."""
    mask = tf.cast(mask, values.dtype)
    if reduction == Reduction.SUM_OVER_BATCH_SIZE:
        whole = tf.cast(tf.size(mask), values.dtype)
        mask = mask * tf.math.divide_no_nan(whole, tf.reduce_sum(mask))
    if sample_weight is None:
        return mask
    weight = tf.cast(sample_weight, values.dtype)
    mask = ragged_losses.deepened(mask, weight.shape.rank or 0)
    return fit_weight(weight, mask) * mask


_UNKNOWN_BATCH = (
    "Please use `tf.keras.losses.Reduction.SUM` or `tf.keras.losses.Reduction.NONE` for "
    "loss reduction when losses are used with `tf.distribute.Strategy`, except for "
    "specifying losses in `Model.compile()` for use by the built-in training looop "
    "`Model.fit()`.\nPlease see "
    "https://www.tensorflow.org/tutorials/distribute/custom_training for more details."
)


class Loss:
    """Base of losses: `call` gives values a sample, `reduction` says the rest.

    What the mask of the predictions hides (that of a layer's output), or that of the
    values (`ignore_class`), counts neither in the sum nor in the mean's divisor.
    """

    _keras_module = "keras.losses"

    def __init__(self, reduction=Reduction.AUTO, name=None):
        Reduction.validate(reduction)
        self.reduction, self.name = reduction, name

    def __call__(self, y_true, y_pred, sample_weight=None):
        mask = getattr(y_pred, "_keras_mask", None)
        values = in_graph(self.call)(y_true, y_pred)
        reduction = self._reduction()
        counted = getattr(values, "_keras_mask", None)
        if counted is not None:
            mask = counted if mask is None else tf.logical_and(mask, counted)
        if mask is not None:
            sample_weight = _valid_weight(mask, values, sample_weight, reduction)
        if not is_ragged(values):
            values = tf.convert_to_tensor(values)
        return reduce_weighted(values, sample_weight, reduction)

    _in_compile = False  # fit and evaluate know how many replicas there are

    def _reduction(self):
        mean = self.reduction in (Reduction.AUTO, Reduction.SUM_OVER_BATCH_SIZE)
        if mean and not self._in_compile and strategies.strategy() is not None:
            raise ValueError(_UNKNOWN_BATCH)
        return Reduction.SUM_OVER_BATCH_SIZE if mean else self.reduction

    def call(self, y_true, y_pred):
        """The loss of each sample: [batch, ...] without the last axis. Subclasses
        define it.
        """
        raise NotImplementedError("Must be implemented in subclasses.")

    def get_config(self):
        """The constructor's arguments as a dict, for from_config()."""
        return {"reduction": self.reduction, "name": self.name}

    @classmethod
    def from_config(cls, config):
        """A loss of the dict that get_config() gave; a function in it is left out."""
        config = dict(config)
        config.pop("fn", None)
        return cls(**config)


class LossFunctionWrapper(Loss):
    """A function as a loss."""

    def __init__(self, fn, reduction=Reduction.AUTO, name=None, **kwargs):
        super().__init__(reduction, name)
        self.fn, self._fn_kwargs = fn, kwargs

    def call(self, y_true, y_pred):
        """The function of y_true and y_pred, with its further arguments.

        A last axis of size 1 that one of the two lacks is taken off, unless the
        function is a sparse one. Ragged ones are handed on as they are.
        """
        if is_ragged(y_true, y_pred):
            return in_graph(self.fn)(y_true, y_pred, **self._fn_kwargs)
        y_pred = tf.convert_to_tensor(y_pred)
        y_true = tf.convert_to_tensor(y_true)
        if self.fn not in _SPARSE:
            logits = getattr(y_pred, "_keras_logits", None)
            y_pred, y_true, _ = squeeze_or_expand(y_pred, y_true)
            if logits is not None and not hasattr(y_pred, "_keras_logits"):
                if y_pred.shape.rank == logits.shape.rank - 1:
                    y_pred._keras_logits = tf.squeeze(logits, -1)
        return in_graph(self.fn)(y_true, y_pred, **self._fn_kwargs)

    def get_config(self):
        """A dict of reduction, name, the function and its further arguments."""
        config = super().get_config()
        config.update(self._fn_kwargs)
        config["fn"] = serialization.function_name(self.fn)
        return config


# --- functions ---


def _smooth_pair(y_true, y_pred, smoothing, classes=None):
    """pair(), the labels drawn by `smoothing` to an even share of the classes: as many
    as the last axis has unless told.
    """
    y_true, y_pred = pair(y_true, y_pred)
    if smoothing:
        if classes is None:
            classes = tf.cast(tf.shape(y_true)[-1], y_pred.dtype)
        y_true = y_true * (1.0 - smoothing) + smoothing / classes
    return y_true, y_pred


def _inside(p):
    """Probabilities, kept away from 0 and 1."""
    small = settings.epsilon()
    return tf.clip_by_value(p, small, 1.0 - small)


def _binary_terms(y_true, p):
    """The cross-entropy of each label 0 or 1 and its probability."""
    p, small = _inside(p), settings.epsilon()
    return -(
        y_true * tf.math.log(p + small) + (1.0 - y_true) * tf.math.log(1.0 - p + small)
    )


def _mean(x):
    return tf.reduce_mean(x, axis=-1)


@ragged_losses.of_rows
def mean_squared_error(y_true, y_pred):
    """The mean over the last axis of (y_pred - y_true)^2: [..., d] gives [...]."""
    y_true, y_pred = pair(y_true, y_pred)
    return _mean(tf.math.squared_difference(y_pred, y_true))


@ragged_losses.of_rows
def mean_absolute_error(y_true, y_pred):
    """The mean over the last axis of |y_pred - y_true|: [..., d] gives [...]."""
    y_true, y_pred = pair(y_true, y_pred)
    return _mean(tf.abs(y_pred - y_true))


@ragged_losses.of_rows
def mean_absolute_percentage_error(y_true, y_pred):
    """100 times the mean over the last axis of the error's part of |y_true|."""
    y_true, y_pred = pair(y_true, y_pred)
    scale = tf.maximum(tf.abs(y_true), settings.epsilon())
    return 100.0 * _mean(tf.abs((y_true - y_pred) / scale))


@ragged_losses.of_rows
def mean_squared_logarithmic_error(y_true, y_pred):
    """The mean over the last axis of (log(y_pred + 1) - log(y_true + 1))^2."""
    y_true, y_pred = pair(y_true, y_pred)
    first = tf.math.log(tf.maximum(y_pred, settings.epsilon()) + 1.0)
    second = tf.math.log(tf.maximum(y_true, settings.epsilon()) + 1.0)
    return _mean(tf.math.squared_difference(first, second))


def _signs(y_true):
    """Labels 0 and 1 as -1 and 1; others as they are."""
    binary = tf.reduce_all(tf.logical_or(tf.equal(y_true, 0), tf.equal(y_true, 1)))
    return tf.where(binary, 2.0 * y_true - 1.0, y_true)


@ragged_losses.of_rows
def hinge(y_true, y_pred):
    """The last axis' mean of max(1 - y_true y_pred, 0); labels -1 (or 0) and 1."""
    y_true, y_pred = pair(y_true, y_pred)
    return _mean(tf.maximum(1.0 - _signs(y_true) * y_pred, 0.0))


@ragged_losses.of_rows
def squared_hinge(y_true, y_pred):
    """The mean over the last axis of hinge's terms squared."""
    y_true, y_pred = pair(y_true, y_pred)
    return _mean(tf.square(tf.maximum(1.0 - _signs(y_true) * y_pred, 0.0)))


@ragged_losses.of_rows
def categorical_hinge(y_true, y_pred):
    """max(wrong - right + 1, 0): the best wrong score, and the right class's."""
    y_true, y_pred = pair(y_true, y_pred)
    right = tf.reduce_sum(y_true * y_pred, axis=-1)
    wrong = tf.reduce_max((1.0 - y_true) * y_pred, axis=-1)
    return tf.maximum(wrong - right + 1.0, 0.0)


@ragged_losses.of_rows
def huber(y_true, y_pred, delta=1.0):
    """The last axis' mean: squares of errors up to `delta`, lines beyond."""
    y_true, y_pred = pair(y_true, y_pred)
    error = tf.abs(y_pred - y_true)
    small = 0.5 * tf.square(error)
    return _mean(tf.where(error <= delta, small, delta * error - 0.5 * delta**2))


@ragged_losses.of_rows
def log_cosh(y_true, y_pred):
    """The mean over the last axis of log(cosh(y_pred - y_true))."""
    y_true, y_pred = pair(y_true, y_pred)
    x = y_pred - y_true
    return _mean(x + tf.math.softplus(-2.0 * x) - 0.6931471805599453)


@ragged_losses.of_rows
def kl_divergence(y_true, y_pred):
    """The sum over the last axis of y_true log(y_true / y_pred)."""
    y_true, y_pred = pair(y_true, y_pred)
    y_true = tf.clip_by_value(y_true, settings.epsilon(), 1)
    y_pred = tf.clip_by_value(y_pred, settings.epsilon(), 1)
    return tf.reduce_sum(y_true * tf.math.log(y_true / y_pred), axis=-1)


@ragged_losses.of_rows
def poisson(y_true, y_pred):
    """The mean over the last axis of y_pred - y_true log(y_pred)."""
    y_true, y_pred = pair(y_true, y_pred)
    return _mean(y_pred - y_true * tf.math.log(y_pred + settings.epsilon()))


@ragged_losses.of_rows
def cosine_similarity(y_true, y_pred, axis=-1):
    """Minus the product of the two unit vectors along `axis`: -1 where they agree."""
    y_true, y_pred = pair(y_true, y_pred)
    y_true = tf.math.l2_normalize(y_true, axis=axis)
    y_pred = tf.math.l2_normalize(y_pred, axis=axis)
    return -tf.reduce_sum(y_true * y_pred, axis=axis)


def _logits(y_pred, from_logits):
    """(logits, True) where they are known, else (probabilities, False)."""
    if from_logits:
        return y_pred, True
    logits = getattr(y_pred, "_keras_logits", None)
    return (y_pred, False) if logits is None else (logits, True)


@ragged_losses.of_rows
def binary_crossentropy(
    y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1
):
    """The mean over `axis` of the cross-entropy of labels 0 and 1."""
    y_true, y_pred = _smooth_pair(y_true, y_pred, label_smoothing, 2)
    x, known = _logits(y_pred, from_logits)
    if known:
        values = tf.nn.sigmoid_cross_entropy_with_logits(labels=y_true, logits=x)
    else:
        values = _binary_terms(y_true, x)
    return tf.reduce_mean(values, axis=axis)


@ragged_losses.of_rows
def binary_focal_crossentropy(
    y_true,
    y_pred,
    apply_class_balancing=False,
    alpha=0.25,
    gamma=2.0,
    from_logits=False,
    label_smoothing=0.0,
    axis=-1,
):
    """binary_crossentropy whose terms count (1 - right)^gamma: sure ones less."""
    y_true, y_pred = _smooth_pair(y_true, y_pred, label_smoothing, 2)
    p = tf.nn.sigmoid(y_pred) if from_logits else y_pred
    cross = _binary_terms(y_true, p)
    right = y_true * p + (1.0 - y_true) * (1.0 - p)
    values = tf.pow(1.0 - right, gamma) * cross
    if apply_class_balancing:
        values *= y_true * alpha + (1.0 - y_true) * (1.0 - alpha)
    return tf.reduce_mean(values, axis=axis)


@ragged_losses.of_rows
def categorical_crossentropy(
    y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1
):
    """The cross-entropy of distributions along `axis`: [..., classes] gives [...]."""
    y_true, y_pred = _smooth_pair(y_true, y_pred, label_smoothing)
    x, known = _logits(y_pred, from_logits)
    y_true.shape.assert_is_compatible_with(y_pred.shape)
    if known:
        return tf.nn.softmax_cross_entropy_with_logits(
            labels=y_true, logits=x, axis=axis
        )
    x = x / tf.reduce_sum(x, axis, keepdims=True)
    return -tf.reduce_sum(y_true * tf.math.log(_inside(x)), axis)


@ragged_losses.of_rows
def categorical_focal_crossentropy(
    y_true,
    y_pred,
    alpha=0.25,
    gamma=2.0,
    from_logits=False,
    label_smoothing=0.0,
    axis=-1,
):
    """categorical_crossentropy whose terms count alpha (1 - p)^gamma."""
    y_true, y_pred = _smooth_pair(y_true, y_pred, label_smoothing)
    x = tf.nn.softmax(y_pred, axis) if from_logits else y_pred
    x = x / tf.reduce_sum(x, axis, keepdims=True)
    x = _inside(x)
    factor = tf.cast(alpha, x.dtype) * tf.pow(1.0 - x, gamma)
    return tf.reduce_sum(-factor * y_true * tf.math.log(x), axis)


@ragged_losses.of_rows
def sparse_categorical_crossentropy(
    y_true, y_pred, from_logits=False, axis=-1, ignore_class=None
):
    """The same for class numbers: y_true [...], y_pred [..., classes]."""
    y_pred = tf.convert_to_tensor(y_pred)
    x, known = _logits(y_pred, from_logits)
    if not known:
        x = tf.math.log(_inside(x))
    rank = x.shape.rank
    if axis not in (-1, rank - 1):
        order = [d for d in range(rank) if d != axis % rank] + [axis % rank]
        x = tf.transpose(x, order)
    ids = tf.cast(tf.convert_to_tensor(y_true), tf.int64)
    if ids.shape.rank == rank and ids.shape[-1] == 1:
        ids = tf.squeeze(ids, -1)
    if ignore_class is None:
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=x)
    kept = tf.not_equal(ids, tf.cast(ignore_class, tf.int64))
    values = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.where(kept, ids, tf.zeros_like(ids)), logits=x
    )
    values = tf.where(kept, values, tf.zeros_like(values))
    values._keras_mask = kept
    return values


_SPARSE = {sparse_categorical_crossentropy, newer_losses.ctc}


# --- classes ---


def _common(function):
    """The parameters of its class: those behind y_true and y_pred, and all classes'."""
    own = signatures.parameters_of(function)[2:]
    text = f"reduction='{Reduction.AUTO}', name='{function.__name__}'"
    return own + signatures.from_text(text)


_functions = add_function_classes(
    globals(),
    LossFunctionWrapper,
    """
MeanSquaredError mean_squared_error
MeanAbsoluteError mean_absolute_error
MeanAbsolutePercentageError mean_absolute_percentage_error
MeanSquaredLogarithmicError mean_squared_logarithmic_error
Hinge hinge
SquaredHinge squared_hinge
CategoricalHinge categorical_hinge
LogCosh log_cosh
KLDivergence kl_divergence
Poisson poisson
BinaryCrossentropy binary_crossentropy
BinaryFocalCrossentropy binary_focal_crossentropy
CategoricalCrossentropy categorical_crossentropy
CategoricalFocalCrossentropy categorical_focal_crossentropy
SparseCategoricalCrossentropy sparse_categorical_crossentropy(from_logits=False,
    ignore_class=None, reduction='auto', name='sparse_categorical_crossentropy')
Huber huber(delta=1.0, reduction='auto', name='huber_loss')
CosineSimilarity cosine_similarity
Dice newer_losses.dice
Tversky newer_losses.tversky
CTC newer_losses.ctc
""",
    "The loss {} of batches, weighted and reduced as `reduction` says.",
    _common,
)

NAMES = {f.__name__: f for f in _functions}
for _function, *_short in (
    (mean_squared_error, "mse", "MSE"),
    (mean_absolute_error, "mae", "MAE"),
    (mean_absolute_percentage_error, "mape", "MAPE"),
    (mean_squared_logarithmic_error, "msle", "MSLE"),
    (kl_divergence, "kld", "KLD", "kullback_leibler_divergence"),
    (log_cosh, "logcosh"),
    (binary_crossentropy, "bce"),
    (huber, "huber_loss"),
):
    NAMES.update(dict.fromkeys(_short, _function))
NAMES.update(serialization.classes_of(globals(), LossFunctionWrapper))
get, _deserialize = serialization.getter(NAMES, "loss function")
serialize = serialization.serializer("loss")


def deserialize(name, custom_objects=None, use_legacy_format=False):
    """The loss of a name, or of a dict that serialize() gave."""
    return _deserialize(name, custom_objects, use_legacy_format)


def as_loss(identifier):
    """A Loss for what compile was given."""
    found = get(identifier)
    if isinstance(found, Loss):
        return found
    if not callable(found):
        raise ValueError(f"Could not interpret loss function identifier: {identifier}")
    return LossFunctionWrapper(found, name=getattr(found, "__name__", "loss"))
