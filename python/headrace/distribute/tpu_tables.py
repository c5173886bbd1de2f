"""tf.tpu.experimental.embedding: what tables, features and their optimizers are told.

Plain descriptions: none of them needs a TPU.
"""

import dataclasses
import math

from headrace.framework import dtypes, tensor_shape
from headrace.framework.support import signatures
from headrace.ops import array_ops, math_ops
from headrace.ops.random import initializers
from headrace.ops.random.initializers_v1 import TruncatedNormal

_SHARED = signatures.from_text(
    "use_gradient_accumulation=True, clip_weight_min=None, clip_weight_max=None, "
    "weight_decay_factor=None, multiply_weight_decay_factor_by_learning_rate=None, "
    "slot_variable_creation_fn=None, clipvalue=None, low_dimensional_packing_status=False"
)


class _Described:
    """Objects that are equal when all of their attributes are."""

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self):
        return hash(tuple(self.__dict__.items()))


class _Optimizer(_Described):
    """The parameters of an optimizer, kept as attributes; `clipvalue` as its two ends."""

    _slots = ()

    def _take(self, learning_rate, shared, **own):
        if shared["clipvalue"] is not None and not shared["use_gradient_accumulation"]:
            raise ValueError(
                "When `use_gradient_accumulation` is False, gradient clipping cannot be "
                "used and `clipvalue` should be left as None. Received value "
                f"{shared['clipvalue']} for argument `clipvalue`."
            )
        make = shared.get("slot_variable_creation_fn")
        if make is not None and not callable(make):
            raise ValueError(
                "Argument `slot_variable_creation_fn` must be either None or a callable. "
                f"Received: {make}"
            )
        shared = dict(shared)
        low, high = _ends(shared.pop("clipvalue"))
        self.__dict__.update(
            slot_variable_creation_fn=shared.pop("slot_variable_creation_fn", None),
            learning_rate=learning_rate,
            **shared,
            clip_gradient_min=low,
            clip_gradient_max=high,
            **own,
        )

    def _slot_names(self):
        return list(self._slots)


def _ends(clipvalue):
    if clipvalue is None or isinstance(clipvalue, tuple):
        return clipvalue or (None, None)
    return -clipvalue, clipvalue


def _optimizer(name, text, doc, slots=(), check=None, without=()):
    """The class of an optimizer with the parameters of `text` and those that all share;
    its slots begin with zeros, but accumulators with `initial_accumulator_value`."""

    def __init__(self, **given):
        shared = {p.name: given.pop(p.name) for p in _SHARED if p.name in given}
        if check is not None:
            check(**given)
        self._take(given.pop("learning_rate"), shared, **given)

    def _slot_initializers(self):
        first = {"accumulators": getattr(self, "initial_accumulator_value", 0.0)}
        return [initializers.Constant(first.get(slot, 0.0)) for slot in slots]

    own = signatures.from_text("self, " + text)
    shared = [p for p in _SHARED if p.name not in without]
    # Those that come behind the shared ones, as upstream has it.
    behind = [p for p in own if p.name in _BEHIND]
    ahead = [p for p in own if p.name not in _BEHIND]
    parameters = [*ahead, *shared[:-1], *behind, shared[-1]]
    head = signatures.named("__init__")
    members = {
        "__init__": signatures.function_of(head, parameters, __init__),
        "__doc__": doc,
        "__module__": __name__,
        "_slots": slots,
        "_slot_initializers": _slot_initializers,
    }
    return type(name, (_Optimizer,), members)


_BEHIND = ("multiply_linear_by_learning_rate", "allow_zero_accumulator")


def _check_adam(
    beta_1, beta_2, epsilon, lazy_adam, use_gradient_accumulation=True, **_
):
    for name, value in (("beta_1", beta_1), ("beta_2", beta_2)):
        if not 0.0 <= value < 1.0:
            raise ValueError(
                f"Argument `{name}` must be >= 0 and < 1. Received: {value}."
            )
    if epsilon <= 0.0:
        raise ValueError(f"epsilon must be positive; got {epsilon}.")


def _check_momentum(epsilon, exponent, **_):
    if epsilon <= 0.0:
        raise ValueError("Adagrad momentum: epsilon must be positive")
    if exponent <= 0.0:
        raise ValueError("Adagrad momentum: Precondition exponent must >0")


def _check_accumulator(initial_accumulator_value, **_):
    if initial_accumulator_value <= 0:
        raise ValueError(
            "Argument `initial_accumulator_value` must be a positive float. Received: "
            f"{initial_accumulator_value}"
        )


SGD = _optimizer(
    "SGD",
    "learning_rate=0.01",
    "Stochastic gradient descent's parameters.",
    without=("slot_variable_creation_fn",),
)
Adagrad = _optimizer(
    "Adagrad",
    "learning_rate=0.001, initial_accumulator_value=0.1",
    "Adagrad's parameters; ValueError unless the first accumulator is positive.",
    slots=("accumulators",),
    check=_check_accumulator,
)
AdagradMomentum = _optimizer(
    "AdagradMomentum",
    "learning_rate=0.001, momentum=0.0, use_nesterov=False, exponent=2, beta2=1, "
    "epsilon=1e-10",
    "Adagrad's parameters with momentum; ValueError unless epsilon and the exponent are "
    "positive.",
    slots=("accumulators", "momenta"),
    check=_check_momentum,
)
FTRL = _optimizer(
    "FTRL",
    "learning_rate=0.001, learning_rate_power=-0.5, l1_regularization_strength=0.0, "
    "l2_regularization_strength=0.0, beta=0.0, initial_accumulator_value=0.1, "
    "multiply_linear_by_learning_rate=False, allow_zero_accumulator=False",
    "Follow-the-regularized-leader's parameters; ValueError unless the first accumulator "
    "is positive.",
    slots=("accumulators", "linears"),
    check=_check_accumulator,
)
Adam = _optimizer(
    "Adam",
    "learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, lazy_adam=True, "
    "sum_inside_sqrt=True",
    "Adam's parameters; ValueError for betas outside of [0, 1) and for an epsilon that is "
    "not positive.",
    slots=("momenta", "velocities"),
    check=_check_adam,
)


class QuantizationConfig:
    """Values between `lower` and `upper` are rounded to one of `num_buckets`."""

    def __init__(self, num_buckets, lower, upper):
        if num_buckets < 2:
            raise ValueError(f"num_buckets is {num_buckets}, must be at least 2.")
        self.num_buckets, self.lower, self.upper = num_buckets, lower, upper

    def __repr__(self):
        return (
            f"QuantizationConfig(num_buckets={self.num_buckets}, lower={self.lower}, "
            f"upper={self.upper})"
        )


class TableConfig:
    """A table of embeddings, [vocabulary_size, dim].

    Args:
      vocabulary_size, dim: the sizes, ints of at least 1.
      initializer: a function of a shape and dtype; a normal distribution cut at two
        deviations, of mean 0 and deviation 1 / sqrt(dim), unless it is given.
      optimizer: the parameters of an optimizer, else those of the whole embedding.
      combiner: "mean", "sum" or "sqrtn": how the embeddings of a row become one.
      name: of the variable.
      quantization_config: a QuantizationConfig.
      layout: for TPUs alone.
      dtype: of the values.

    Raises:
      ValueError: a size, the initializer or the combiner is none.
    """

    def __init__(
        self,
        vocabulary_size,
        dim,
        initializer=None,
        optimizer=None,
        combiner="mean",
        name=None,
        quantization_config=None,
        layout=None,
        dtype=dtypes.float32,
    ):
        for label, size in (
            ("`vocabulary_size`", vocabulary_size),
            ("`dim` (embedding dimension)", dim),
        ):
            if not isinstance(size, int) or size < 1:
                raise ValueError(
                    f"Argument {label} must be an int and must be >= 1. Received: {size}"
                )
        if initializer is not None and not callable(initializer):
            raise ValueError(
                "Argument `initializer` must be a callable (or None). Received: "
                f"{initializer}"
            )
        if combiner not in ("mean", "sum", "sqrtn"):
            raise ValueError(
                "String argument `combiner` must be in ('mean', 'sum', 'sqrtn'). "
                f"Received: {combiner}"
            )
        self._given_initializer = initializer
        if initializer is None:
            initializer = TruncatedNormal(stddev=1.0 / math.sqrt(dim))
        self.vocabulary_size, self.dim = vocabulary_size, dim
        self.initializer, self.optimizer = initializer, optimizer
        self.combiner, self.name = combiner, name
        self.quantization_config, self.layout, self.dtype = (
            quantization_config,
            layout,
            dtype,
        )

    def __repr__(self):
        return (
            f"TableConfig(vocabulary_size={self.vocabulary_size}, dim={self.dim}, "
            f"initializer={self._given_initializer}, optimizer={self.optimizer}, "
            f"combiner={self.combiner!r}, name={self.name!r}, "
            f"quantization_config={self.quantization_config!r})"
        )


class FeatureConfig:
    """A feature that is looked up in a table.

    Args:
      table: its TableConfig; several features may share one.
      max_sequence_length: 0, or how many embeddings of a row are kept side by side
        instead of being combined.
      validate_weights_and_indices: whether rows without ids are zeros, and ids below 0
        and weights that are not positive are left out.
      output_shape: the shape of what TPUs look up, without the table's `dim`: here ids
        say it.
      name: in messages.

    Raises:
      ValueError: the table is none, a length is negative, or `validate_...` no bool.
    """

    def __init__(
        self,
        table,
        max_sequence_length=0,
        validate_weights_and_indices=True,
        output_shape=None,
        name=None,
    ):
        if not isinstance(table, TableConfig):
            raise ValueError(
                f"Argument `table` has invalid type {type(table)}. Expected "
                "`tf.tpu.experimental.embedding.TableConfig`."
            )
        if not isinstance(max_sequence_length, int) or max_sequence_length < 0:
            raise ValueError(
                "Argument `max_sequence_length` must be an int and must be >= 0. "
                f"Received: {max_sequence_length}"
            )
        if not isinstance(validate_weights_and_indices, bool):
            raise ValueError(
                "Argument `validate_weights_and_indices` must be a boolean. Received: "
                f"{validate_weights_and_indices}"
            )
        self.table, self.max_sequence_length = table, max_sequence_length
        self.name = name
        self.output_shape = tensor_shape.TensorShape(output_shape)
        self.validate_weights_and_indices = validate_weights_and_indices

    def __repr__(self):
        return (
            f"FeatureConfig(table={self.table!r}, "
            f"max_sequence_length={self.max_sequence_length!r}, "
            f"validate_weights_and_indices={self.validate_weights_and_indices!r}, "
            f"output_shape={self.output_shape!r}, name={self.name!r})"
        )


class RowIdInitializer:
    """Rows of a table that are filled with their own numbers, from `offset` on."""

    def __init__(self, offset=0):
        self.offset = offset

    def __call__(self, shape, dtype):
        numbers = array_ops.range(self.offset, self.offset + shape[0])
        rows = array_ops.expand_dims(math_ops.cast(numbers, dtype), 1)
        return array_ops.tile(rows, [1, shape[1]])


@dataclasses.dataclass
class SparseCoreEmbeddingConfig:
    """How TPUs would divide tables: a description, by which nothing is made here."""

    disable_table_stacking: bool = False
    max_ids_per_chip_per_sample: int = 64
    max_ids_per_table: dict | None = None
    max_unique_ids_per_table: dict | None = None
    allow_id_dropping: bool = False
    initialize_tables_on_host: bool = True
    enable_fast_table_initialization: bool = False
