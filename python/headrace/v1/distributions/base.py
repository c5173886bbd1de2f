"""tf.compat.v1.distributions.Distribution: what all distributions have in common.

A class computes what its methods of one underscore give (`_log_prob`, `_mean`, ...);
public methods convert arguments, name scopes, and derive what is not given from what is.
"""

import contextlib

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework.support import signatures
from headrace.v1.distributions import kl


class ReparameterizationType:
    """Whether gradients reach a distribution's parameters through its samples."""

    def __init__(self, rep_type):
        self._rep_type = rep_type

    def __repr__(self):
        return f"<Reparameterization Type: {self._rep_type}>"

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


@contextlib.contextmanager
def opened(name):
    """A name scope, and its name in graphs; None where there are no names."""
    with tf.compat.v1.name_scope(name) as scope:
        yield None if _headrace.is_eager() else scope


def after(checks, tensor):
    """The tensor, once the checks (operations, or None) have run."""
    checks = [check for check in checks if check is not None]
    if not checks:
        return tf.identity(tensor)
    with tf.control_dependencies(checks):
        return tf.identity(tensor)


# Methods without a parameter, and what gives them when a class has none of its own:
# the other one, or that as it is derived itself, and a function of it.
_NULLARY = {
    "entropy": ("Shannon entropy in nats.", None, None),
    "mean": ("Mean.", None, None),
    "mode": ("Mode.", None, None),
    "covariance": ("Covariance matrix of an event's elements.", None, None),
    "variance": ("Variance.", "_stddev", tf.square),
    "stddev": ("Standard deviation.", "_variance", tf.sqrt),
}
# The same for methods of a value.
_OF_VALUE = {
    "prob": ("Probability density, or mass.", "_log_prob", tf.exp),
    "log_prob": ("Logarithm of the density, or of the mass.", "_prob", tf.math.log),
    "cdf": ("P[X <= value].", "_log_cdf", tf.exp),
    "log_cdf": ("log P[X <= value].", "_cdf", tf.math.log),
    "survival_function": ("P[X > value].", "_call_cdf", lambda x: 1.0 - x),
    "log_survival_function": (
        "log P[X > value].",
        "_call_cdf",
        lambda x: tf.math.log1p(-x),
    ),
    "quantile": ("The value whose cdf is this one.", None, None),
}
_NAME = "name: a scope for its operations"


def _derived(name, other, function):
    """A distribution's own `_name`, or the function of the other method."""

    def compute(self, *args):
        try:
            return getattr(self, f"_{name}")(*args)
        except NotImplementedError as missing:
            if other is None:
                raise
            try:
                return function(getattr(self, other)(*args))
            except NotImplementedError:
                raise missing from None

    return compute


def _missing(name):
    def method(self, *args):
        raise NotImplementedError(f"{name} is not implemented: {type(self).__name__}")

    return method


def _nullary(name, what):
    def call(self, name):
        with self._name_scope(name):
            return getattr(self, f"_call_{method}")()

    method = name
    like = signatures.named(name, f"{what}\n\n        {_NAME}.\n        ")
    return signatures.function_of(
        like, signatures.from_text(f"self, name='{name}'"), call
    )


def _of_value(name, what):
    def call(self, value, name):
        with self._name_scope(name):
            value = tf.convert_to_tensor(value, dtype_hint=self.dtype, name="value")
            return getattr(self, f"_call_{method}")(value)

    method = name
    like = signatures.named(
        name, f"{what}\n\n        value: a tensor of events; {_NAME}.\n        "
    )
    return signatures.function_of(
        like, signatures.from_text(f"self, value, name='{name}'"), call
    )


def _with_methods(cls):
    """The class with the methods of both tables."""
    for table, make in ((_NULLARY, _nullary), (_OF_VALUE, _of_value)):
        for name, (what, other, function) in table.items():
            setattr(cls, f"_{name}", _missing(name))
            setattr(cls, name, make(name, what))
            setattr(cls, f"_call_{name}", _derived(name, other, function))
    return cls


class Distribution:
    """A batch of distributions of one kind, with different parameters.

    A class derived from it has the methods `_batch_shape`, `_event_shape`, their
    `..._tensor`, `_sample_n(n, seed)` and what it can compute of `_log_prob(value)`,
    `_prob`, `_cdf`, `_mean`, ... What it has not is a NotImplementedError.
    """

    def __init__(
        self,
        dtype,
        reparameterization_type,
        validate_args,
        allow_nan_stats,
        parameters=None,
        graph_parents=None,
        name=None,
    ):
        parents = [] if graph_parents is None else graph_parents
        for i, parent in enumerate(parents):
            if parent is None or not tf.is_tensor(parent):
                raise ValueError(f"Graph parent item {i} is not a Tensor; {parent}.")
        if not name or name[-1] != "/":
            with opened(name or type(self).__name__) as name:
                pass
        self._dtype = dtype
        self._reparameterization_type = reparameterization_type
        self._allow_nan_stats = allow_nan_stats
        self._validate_args = validate_args
        self._parameters = parameters or {}
        self._graph_parents = parents
        self._name = name

    @classmethod
    def param_shapes(cls, sample_shape, name="DistributionParamShapes"):
        """{parameter: the shape, a tensor, that it has for samples of this shape}."""
        with tf.name_scope(name):
            return cls._param_shapes(sample_shape)

    @classmethod
    def param_static_shapes(cls, sample_shape):
        """{parameter: the TensorShape that it has for samples of this shape}.

        ValueError unless `sample_shape` is known in full.
        """
        if isinstance(sample_shape, tf.TensorShape):
            if not sample_shape.is_fully_defined():
                raise ValueError("TensorShape sample_shape must be fully defined")
            sample_shape = sample_shape.as_list()
        shapes = {}
        for name, shape in cls.param_shapes(sample_shape).items():
            static = tf.get_static_value(shape)
            if static is None:
                raise ValueError(
                    "sample_shape must be a fully-defined TensorShape or list/tuple"
                )
            shapes[name] = tf.TensorShape(static)
        return shapes

    @staticmethod
    def _param_shapes(sample_shape):
        raise NotImplementedError("_param_shapes not implemented")

    name = property(lambda self: self._name, doc="Its name scope; None when eager.")
    dtype = property(lambda self: self._dtype, doc="The samples' dtype.")
    reparameterization_type = property(
        lambda self: self._reparameterization_type,
        doc="Whether gradients pass through samples.",
    )
    allow_nan_stats = property(
        lambda self: self._allow_nan_stats,
        doc="Whether statistics that are not defined are NaN, not errors.",
    )
    validate_args = property(
        lambda self: self._validate_args, doc="Whether arguments are checked when run."
    )

    @property
    def parameters(self):
        """What it was constructed with."""
        hidden = ("self", "__class__", "graph_parents")
        return {k: v for k, v in self._parameters.items() if k not in hidden}

    def copy(self, **override_parameters_kwargs):
        """One of this class with the same parameters, but for those that are given."""
        return type(self)(**dict(self.parameters, **override_parameters_kwargs))

    @contextlib.contextmanager
    def _name_scope(self, name):
        if not self._name:
            yield
            return
        with tf.name_scope(self._name), tf.name_scope(name):
            yield

    # --- shapes ---

    batch_shape = property(
        lambda self: tf.TensorShape(self._batch_shape()),
        doc="The TensorShape of the parameters: of one sample without the event's.",
    )
    event_shape = property(
        lambda self: tf.TensorShape(self._event_shape()),
        doc="The TensorShape of one event of one distribution.",
    )

    def _batch_shape(self):
        return tf.TensorShape(None)

    def _event_shape(self):
        return tf.TensorShape(None)

    def _batch_shape_tensor(self):
        raise NotImplementedError(
            f"batch_shape_tensor is not implemented: {type(self).__name__}"
        )

    def _event_shape_tensor(self):
        raise NotImplementedError(
            f"event_shape_tensor is not implemented: {type(self).__name__}"
        )

    def batch_shape_tensor(self, name="batch_shape_tensor"):
        """The batch's shape, an int32 vector."""
        return self._shape_tensor(self.batch_shape, self._batch_shape_tensor, name)

    def event_shape_tensor(self, name="event_shape_tensor"):
        """The event's shape, an int32 vector."""
        return self._shape_tensor(self.event_shape, self._event_shape_tensor, name)

    def _shape_tensor(self, static, dynamic, name):
        with self._name_scope(name):
            if static.is_fully_defined():
                return tf.constant(static.as_list(), tf.int32)
            return dynamic()

    def is_scalar_event(self, name="is_scalar_event"):
        """Whether an event is a scalar: a boolean tensor."""
        return self._is_scalar(self.event_shape, self.event_shape_tensor, name)

    def is_scalar_batch(self, name="is_scalar_batch"):
        """Whether it is one distribution: a boolean tensor."""
        return self._is_scalar(self.batch_shape, self.batch_shape_tensor, name)

    def _is_scalar(self, static, dynamic, name):
        with self._name_scope(name):
            if static.rank is not None:
                return tf.constant(static.rank == 0)
            return tf.equal(tf.size(dynamic()), 0)

    # --- samples ---

    def sample(self, sample_shape=(), seed=None, name="sample"):
        """Samples: a tensor of [sample_shape, batch, event]."""
        with self._name_scope(name):
            shape = tf.cast(
                tf.convert_to_tensor(sample_shape, dtype_hint=tf.int32), tf.int32
            )
            rank = shape.shape.rank
            if rank is not None and rank > 1:
                raise ValueError("Input is neither scalar nor vector.")
            known = tf.get_static_value(shape)
            if known is not None:
                shape = tf.constant(known.reshape([-1]), tf.int32)
            elif rank != 1:
                shape = tf.reshape(shape, [-1])
            samples = self._sample_n(tf.reduce_prod(shape), seed)
            rest = tf.shape(samples)[1:]
            samples = tf.reshape(samples, tf.concat([shape, rest], 0))
            return self._with_static_shape(samples, shape)

    def _sample_n(self, n, seed=None):
        raise NotImplementedError(f"sample_n is not implemented: {type(self).__name__}")

    def _with_static_shape(self, samples, sample_shape):
        known = tf.get_static_value(sample_shape)
        if known is None:
            if sample_shape.shape[0] is None:
                return samples
            known = [None] * sample_shape.shape[0]
        static = tf.TensorShape(list(known)).concatenate(self.batch_shape)
        samples.set_shape(static.concatenate(self.event_shape))
        return samples

    # --- of two distributions ---

    def cross_entropy(self, other, name="cross_entropy"):
        """-E[log q(X)] of X of this distribution P and the density q of the other."""
        with self._name_scope(name):
            return self._cross_entropy(other)

    def _cross_entropy(self, other):
        return kl.cross_entropy(self, other, allow_nan_stats=self.allow_nan_stats)

    def kl_divergence(self, other, name="kl_divergence"):
        """E[log p(X) / q(X)] of X of this distribution, whose density is p."""
        with self._name_scope(name):
            return self._kl_divergence(other)

    def _kl_divergence(self, other):
        return kl.kl_divergence(self, other, allow_nan_stats=self.allow_nan_stats)

    # --- texts ---

    def _shapes(self, between):
        parts = (
            f"{part}_shape={shape}"
            for part, shape in (
                ("batch", self.batch_shape),
                ("event", self.event_shape),
            )
            if shape.rank is not None
        )
        return "".join(between + part for part in parts)

    def __str__(self):
        kind, dtype = type(self).__name__, self.dtype.name
        shapes = self._shapes(", ")
        return f'tfp.distributions.{kind}("{self.name}"{shapes}, dtype={dtype})'

    def __repr__(self):
        kind, dtype = type(self).__name__, self.dtype.name
        shapes = self._shapes(" ")
        return f"<tfp.distributions.{kind} '{self.name}'{shapes} dtype={dtype}>"


_with_methods(Distribution)


def takes(text, reparameterized=True, shaped="", attributes=""):
    """Decorates a distribution, made of the parameters in a text: its _begin(**given)
    gives its dtype and keeps the parameters' tensors as attributes with an underscore.

    Those of `attributes` are properties; a text that begins with "name: " has its
    docstring behind. `shaped` are the parameters of the same shape as samples.
    """
    kind = FULLY_REPARAMETERIZED if reparameterized else NOT_REPARAMETERIZED
    names = attributes.split()

    def decorate(cls):
        def begin(self, validate_args, allow_nan_stats, name, **given):
            kept = dict(given, validate_args=validate_args)
            kept.update(allow_nan_stats=allow_nan_stats, name=name)
            self._validate_args, self._allow_nan_stats = validate_args, allow_nan_stats
            with opened(name) as scope:
                dtype = self._begin(**given)
            tensors = [getattr(self, f"_{n}") for n in names]
            Distribution.__init__(
                self, dtype, kind, validate_args, allow_nan_stats, kept, tensors, scope
            )

        further = "validate_args=False, allow_nan_stats=True"
        text_ = f"{text}, {further}, name='{cls.__name__}'"
        init = signatures.from_text(f"self, {text_}", int32=tf.int32)
        cls.__init__ = signatures.function_of(signatures.named("__init__"), init, begin)
        cls.__init__.__qualname__ = f"{cls.__name__}.__init__"
        for n in names:
            what = f"The tensor of `{n}`."
            setattr(
                cls, n, property(lambda self, n=n: getattr(self, f"_{n}"), doc=what)
            )
        if shaped:
            cls._param_shapes = staticmethod(
                lambda shape: dict.fromkeys(
                    shaped.split(), tf.convert_to_tensor(shape, tf.int32)
                )
            )
        return cls

    return decorate


class ScalarEvents(Distribution):
    """Distributions of scalars, whose batch's shape is that of some tensors together."""

    _of = ()  # the attributes whose shapes make the batch's

    def _tensors(self):
        return [getattr(self, f"_{name}") for name in self._of]

    def _batch_shape(self):
        shape = tf.TensorShape([])
        for tensor in self._tensors():
            shape = tf.broadcast_static_shape(shape, tensor.shape)
        return shape

    def _batch_shape_tensor(self):
        shape = tf.constant([], tf.int32)
        for tensor in self._tensors():
            shape = tf.broadcast_dynamic_shape(shape, tf.shape(tensor))
        return shape

    def _event_shape(self):
        return tf.TensorShape([])

    def _event_shape_tensor(self):
        return tf.constant([], tf.int32)

    def _n_of_batch(self, n):
        """The shape [n, batch]."""
        return tf.concat([[n], self.batch_shape_tensor()], 0)

    def _batch_ones(self):
        return tf.ones(self.batch_shape_tensor(), self.dtype)
