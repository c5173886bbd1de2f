"""Metrics of how predictions and labels fall together."""

import numpy as np

from headrace import _api as tf
from headrace.keras.classes import add_classes, takes
from headrace.keras.metric.base import Metric


def _weights(sample_weight, values, dtype):
    if sample_weight is None:
        return None
    weight = tf.cast(sample_weight, dtype)
    while weight.shape.rank < values.shape.rank:
        weight = tf.expand_dims(weight, -1)
    ranks = weight.shape.rank, values.shape.rank
    if None not in ranks and ranks[0] == ranks[1] + 1 and weight.shape[-1] == 1:
        weight = tf.squeeze(weight, -1)  # weights of a column, values of a row
    return tf.broadcast_to(weight, tf.shape(values))


_LOWEST = -1e10  # what is not among the top k
_NAMES = {
    "tp": "true_positives",
    "tn": "true_negatives",
    "fp": "false_positives",
    "fn": "false_negatives",
}


_PARAMETERS = "thresholds=None, top_k=None, class_id=None, name=None, dtype=None"


@takes(_PARAMETERS)
class _Counts(Metric):
    """Counts at one threshold or several."""

    _parts = ()  # of "tp", "fp", "tn", "fn"
    _config_attributes = {"thresholds": "init_thresholds"}

    def _begin(self):
        default = _LOWEST if self.top_k is not None else 0.5
        given = default if self.init_thresholds is None else self.init_thresholds
        self._many = isinstance(given, (list, tuple))
        self.thresholds = list(given) if self._many else [given]
        for t in self.thresholds:
            if t is None or (t != _LOWEST and not 0 <= t <= 1):
                raise ValueError(
                    "Threshold values must be in [0, 1]. Received: "
                    f"{list(self.thresholds)}"
                )
        self._labels = ["accumulator"]
        if len(self._parts) > 1:
            self._labels = [_NAMES[part] for part in self._parts]
        for label in self._labels:
            weight = self.add_weight(label, shape=(len(self.thresholds),))
            setattr(self, label, weight)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds the counts of a batch at each threshold.

        `y_true` is 0 or 1, `y_pred` in [0, 1]: a prediction above the threshold says
        yes. Both are of one shape, which `sample_weight` broadcasts to.
        """
        y_pred = tf.cast(y_pred, self._dtype)
        y_true = tf.cast(y_true, self._dtype)
        if self.top_k is not None:
            y_pred = _only_top(y_pred, self.top_k)
        if y_true.shape.rank != y_pred.shape.rank:
            y_true = tf.reshape(y_true, tf.shape(y_pred))
        weight = _weights(sample_weight, y_pred, self._dtype)
        if self.class_id is not None:
            y_true, y_pred = y_true[..., self.class_id], y_pred[..., self.class_id]
            weight = None if weight is None else weight[..., self.class_id]
        counts = confusion(y_true, y_pred, self.thresholds, weight)
        for part, label in zip(self._parts, self._labels):
            getattr(self, label).assign_add(counts[part])

    def _out(self, values):
        return values if self._many else values[0]

    def _share(self, part, other):
        """part / (part + other) of two counts at each threshold, 0 where both are 0."""
        part, other = _NAMES[part], _NAMES[other]
        found = self._reads(part, other, part)
        return tf.math.divide_no_nan(found[part], found[part] + found[other])


def confusion(y_true, y_pred, thresholds, weight=None, columns=()):
    """{"tp", "fp", "tn", "fn"}: weighted counts at each threshold; with `columns`,
    (their number,), those of each column."""
    rows = [1, -1, *columns]
    label = tf.reshape(tf.cast(y_true, tf.bool), rows)
    score = tf.reshape(y_pred, rows)
    limits = [-1] + [1] * (len(rows) - 1)
    limits = tf.reshape(tf.constant(thresholds, y_pred.dtype), limits)
    positive = score > limits
    weight = None if weight is None else tf.reshape(weight, rows)

    def count(a, b):
        hits = tf.cast(tf.logical_and(a, b), y_pred.dtype)
        return tf.reduce_sum(hits if weight is None else hits * weight, axis=1)

    negative, no_label = tf.logical_not(positive), tf.logical_not(label)
    return {
        "tp": count(positive, label),
        "fp": count(positive, no_label),
        "tn": count(negative, no_label),
        "fn": count(negative, label),
    }


def interpolated_pr(tp, fp, fn):
    """The exact area between points of a precision-recall curve."""
    gain = tp[:-1] - tp[1:]
    found = tp + fp
    change = found[:-1] - found[1:]
    slope = tf.math.divide_no_nan(gain, tf.maximum(change, 0))
    offset = tp[1:] - slope * found[1:]
    both = tf.logical_and(found[:-1] > 0, found[1:] > 0)
    ratio = tf.where(
        both,
        tf.math.divide_no_nan(found[:-1], tf.maximum(found[1:], 0)),
        tf.ones_like(found[1:]),
    )
    area = slope * (gain + offset * tf.math.log(ratio))
    whole = tf.maximum(tp[1:] + fn[1:], 0)
    return tf.reduce_sum(tf.math.divide_no_nan(area, whole), axis=0)


def area(x, y, method):
    """The area under points whose x falls: of the lower ("minoring") or the higher
    ("majoring") of two neighbours' heights, or of their mean."""
    first, second = y[:-1], y[1:]
    if method in ("minoring", "majoring"):
        pick = tf.minimum if method == "minoring" else tf.maximum
        heights = pick(first, second)
    else:
        heights = (first + second) / 2.0
    return tf.reduce_sum((x[:-1] - x[1:]) * heights, axis=0)


def _only_top(y_pred, k):
    """Scores that are not among the k highest become -inf."""
    _, places = tf.math.top_k(y_pred, k, sorted=False)
    kept = tf.reduce_sum(tf.one_hot(places, y_pred.shape[-1]), axis=-2)
    low = tf.constant(_LOWEST, y_pred.dtype)
    return y_pred * kept + low * (1.0 - kept)


@takes("thresholds=None, name=None, dtype=None")
class _OneCount(_Counts):
    _config_without = ("top_k", "class_id")

    def result(self):
        """The count: a scalar for one threshold, else a vector."""
        return self._out(self.accumulator._read())


add_classes(
    globals(),
    """
TruePositives(_OneCount, _parts=("tp",))
    How many (or what weight of) positives were found, one a threshold.
FalsePositives(_OneCount, _parts=("fp",))
    How many (or what weight of) negatives were taken for positives.
TrueNegatives(_OneCount, _parts=("tn",))
    How many (or what weight of) negatives were left out.
FalseNegatives(_OneCount, _parts=("fn",))
    How many (or what weight of) positives were missed.
""",
)


@takes(_PARAMETERS)
class Precision(_Counts):
    """The share of right ones among the positives that were found."""

    _parts = ("tp", "fp")

    def result(self):
        """True positives / (true and false positives), 0 where none was found.

        A scalar for one threshold, else a vector.
        """
        return self._out(self._share(*self._parts))


@takes(_PARAMETERS)
class Recall(_Counts):
    """The share of positives that were found."""

    _parts = ("tp", "fn")

    def result(self):
        """True positives / (true positives and false negatives), 0 where there is none.

        A scalar for one threshold, else a vector.
        """
        return self._out(self._share(*self._parts))


# What the arguments may say, and what they then are.
_CURVES = {
    **dict.fromkeys(("PR", "pr"), "PR"),
    **dict.fromkeys(("ROC", "roc"), "ROC"),
    **dict.fromkeys(("PR_GAIN", "PRGAIN", "pr_gain", "prgain"), "PR_GAIN"),
}
# Which counts each curve is made of, in the order and as often as they are read.
_READ_BY_CURVE = {
    "ROC": "tp fn tp fp tn fp",
    "PR": "tp fn tp tp fp tp",
    "PR_GAIN": "tp fn tp tp fn fp tn fn tp fp tp tp tp",
}
_SUMMATIONS = {
    name: name.lower()
    for word in ("interpolation", "majoring", "minoring")
    for name in (word, word.capitalize())
}


def _one_of(what, name, known):
    if name not in known:
        expected = ", ".join(f'"{n}"' for n in dict.fromkeys(known.values()))
        raise ValueError(
            f'Invalid AUC {what} value: "{name}". Expected values are [{expected}]'
        )
    return known[name]


@takes(
    "num_thresholds=200, curve='ROC', summation_method='interpolation', name=None, "
    "dtype=None, thresholds=None, multi_label=False, num_labels=None, "
    "label_weights=None, from_logits=False"
)
class AUC(Metric):
    """The area under the ROC, the precision-recall ("PR") or the precision-recall-gain
    curve ("PRGAIN"; Flach and Kull, NeurIPS 2015), by trapezoids.

    With `multi_label` the mean of each column's area, by `label_weights` if given;
    without, these weigh the columns' elements.
    """

    _config_without = ("thresholds",)

    def _begin(self):
        if self.num_labels and not self.multi_label:
            raise ValueError("`num_labels` is needed only when `multi_label` is True.")
        if self.label_weights is not None:
            self.label_weights = np.asarray(self.label_weights, "float32")
            tf.debugging.assert_non_negative(
                self.label_weights,
                message="All values of `label_weights` must be non-negative.",
            )
        self.curve = _one_of("curve", self.curve, _CURVES)
        self.summation_method = _one_of(
            "summation method", self.summation_method, _SUMMATIONS
        )
        count = self.num_thresholds
        self._given_thresholds = self.thresholds is not None
        if self._given_thresholds:
            inner = sorted(self.thresholds)
        else:
            if count <= 1:
                raise ValueError(
                    "Argument `num_thresholds` must be an integer > 1. Received: "
                    f"num_thresholds={count}"
                )
            inner = [(i + 1) / (count - 1) for i in range(count - 2)]
        self.num_thresholds = len(inner) + 2
        self._limits = np.array([-1e-7, *inner, 1.0 + 1e-7])
        self.thresholds = list(self._limits)
        self._columns = None
        if self.num_labels or not self.multi_label:
            self._make([self.num_labels] if self.multi_label else [])

    def _make(self, columns):
        for label in _NAMES.values():
            weight = self.add_weight(label, shape=(self.num_thresholds, *columns))
            setattr(self, label, weight)
        self._columns = columns

    def _check_columns(self, shape):
        """Makes or checks the counts of predictions of that shape."""
        if self.multi_label and shape.rank != 2:
            raise ValueError(
                "`y_pred` must have rank 2 when `multi_label=True`. Found rank "
                f"{shape.rank}. Full shape received for `y_pred`: {shape}"
            )
        if self._columns is None:
            with tf.init_scope():
                self._make([shape[-1]])
        wanted = [*self._columns]
        if self.label_weights is not None:
            wanted.append(len(self.label_weights))
        if any(n != shape[-1] for n in wanted):
            raise ValueError(
                f"Number of labels is not consistent: predictions have {shape[-1]}, "
                f"`num_labels` is {self.num_labels}, `label_weights` are "
                f"{self.label_weights}"
            )

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds the counts of a batch at each of the thresholds.

        `y_true` is 0 or 1, of as many elements as `y_pred`, which is in [0, 1], or any
        number with from_logits. With multi_label it is [samples, labels].
        """
        y_pred = tf.cast(y_pred, self._dtype)
        if self.from_logits:
            y_pred = tf.sigmoid(y_pred)
        y_true = tf.reshape(tf.cast(y_true, self._dtype), tf.shape(y_pred))
        self._check_columns(y_pred.shape)
        weight = _weights(sample_weight, y_pred, self._dtype)
        if self.label_weights is not None and not self.multi_label:
            weight = self._label_weights() * (
                tf.ones_like(y_pred) if weight is None else weight
            )
        limits = self._limits.tolist()
        counts = confusion(y_true, y_pred, limits, weight, self._columns)
        for part, label in _NAMES.items():
            getattr(self, label).assign_add(counts[part])

    def _label_weights(self):
        return tf.constant(self.label_weights, self._dtype)

    def result(self):
        """The area: a scalar, the sum of the strips between neighbouring thresholds."""
        return self._of_columns(self._areas())

    def _of_columns(self, areas):
        if not self.multi_label:
            return areas
        if self.label_weights is None:
            return tf.reduce_mean(areas)
        weights = self._label_weights()
        total = tf.reduce_sum(areas * weights)
        return tf.math.divide_no_nan(total, tf.reduce_sum(weights))

    def _counted(self, row):
        """A function that gives a count by its short name: of those of a row, which are
        read in its order."""
        found = self._reads(*[_NAMES[part] for part in row.split()])
        return lambda part: found[_NAMES[part]]

    def _pr_areas(self):
        of = self._counted("tp tp tp fp tp tp fn")
        return interpolated_pr(of("tp"), of("fp"), of("fn"))

    def _areas(self):
        if self.curve == "PR" and self.summation_method == "interpolation":
            return self._pr_areas()
        share = tf.math.divide_no_nan
        of = self._counted(_READ_BY_CURVE[self.curve])
        tp, fn = of("tp"), of("fn")
        if self.curve == "ROC":
            tn, fp = of("tn"), of("fp")
            x, y = share(fp, fp + tn), share(tp, tp + fn)
        elif self.curve == "PR":
            x, y = share(tp, tp + fn), share(tp, tp + of("fp"))
        else:
            tn, fp = of("tn"), of("fp")
            # Recall that is lower than that of always saying yes counts as no gain.
            odds = share(tp + fn, tn + fp)
            x = tf.maximum(share(tp - odds * fn, tp), 0)
            y = 1.0 - odds * share(fp, tp)
        return area(x, y, self.summation_method)

    def get_config(self):
        """A dict of the arguments, `thresholds` among them where they were given."""
        config = super().get_config()
        if self._given_thresholds:
            config["thresholds"] = self._limits[1:-1].tolist()
        return config

    def interpolate_pr_auc(self):
        """The exact area of the precision-recall curve (Davis and Goadrich, 2006): a
        scalar, with `multi_label` and `label_weights` too."""
        return self._of_columns(self._pr_areas())
