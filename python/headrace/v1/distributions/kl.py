"""Divergences between distributions: functions by pairs of classes."""

from headrace import _api as tf

_FUNCTIONS = {}  # {(class of a, class of b): function}


def _registered(a, b):
    """The function of the nearest classes that `a` and `b` are, or None."""
    pairs = (
        (i + j, i, _FUNCTIONS[p, q])
        for i, p in enumerate(a.__mro__)
        for j, q in enumerate(b.__mro__)
        if (p, q) in _FUNCTIONS
    )
    return min(pairs, key=lambda pair: pair[:2], default=(0, 0, None))[2]


def kl_divergence(distribution_a, distribution_b, allow_nan_stats=True, name=None):
    """KL(a || b) by the function that is registered for their classes, or their bases'.

    Of the batch's shape. NotImplementedError if there is none; with
    `allow_nan_stats=False` NaN is an InvalidArgumentError.
    """
    names = type(distribution_a).__name__, type(distribution_b).__name__
    function = _registered(type(distribution_a), type(distribution_b))
    if function is None:
        raise NotImplementedError(
            "No KL(distribution_a || distribution_b) registered for distribution_a "
            f"type {names[0]} and distribution_b type {names[1]}"
        )
    with tf.name_scope("KullbackLeibler"):
        found = function(distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return found
        found = tf.identity(found, name="kl")
        text = "KL calculation between {} and {} returned NaN values (and was called "
        text = (text + "with allow_nan_stats=False). Values:").format(
            distribution_a.name, distribution_b.name
        )
        no_nan = tf.logical_not(tf.reduce_any(tf.math.is_nan(found)))
        checked = tf.debugging.Assert(no_nan, [text, found])
        with tf.control_dependencies([] if checked is None else [checked]):
            return tf.identity(found, name="checked_kl")


def cross_entropy(ref, other, allow_nan_stats=True, name=None):
    """The entropy of `ref` and its divergence from `other`."""
    with tf.name_scope(name or "cross_entropy"):
        entropy = ref.entropy()
        return entropy + kl_divergence(ref, other, allow_nan_stats=allow_nan_stats)


class RegisterKL:
    """Decorates f(a, b, name=None), which computes KL(a || b) of two classes of
    distributions and those derived from them."""

    def __init__(self, dist_cls_a, dist_cls_b):
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn):
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _FUNCTIONS:
            a, b = (c.__name__ for c in self._key)
            known = _FUNCTIONS[self._key]
            raise ValueError(f"KL({a} || {b}) has already been registered to: {known}")
        _FUNCTIONS[self._key] = kl_fn
        return kl_fn
