"""Global settings of Keras: float type, data format, unique names, seeds."""

import collections
import contextlib
import random
import re

import numpy as np

from headrace import _api as tf
from headrace.context import late, stack
from headrace.framework.settings import random_seed
from headrace.keras import phase
from headrace.ops.faces import add_calls

add_calls(
    globals(),
    """
cast cast(x, dtype)
    x in another dtype, a DType or its name; floats are cut towards zero for integers.
std math.reduce_std(x->input_tensor, axis=None, keepdims=False)
    The standard deviation along `axis`.
var math.reduce_variance(x->input_tensor, axis=None, keepdims=False)
    The variance along `axis`.
argmax argmax(x->input, axis=-1)
    Where the largest element along `axis` is.
argmin argmin(x->input, axis=-1)
    Where the smallest element along `axis` is.
clip clip_by_value(x->t, min_value->clip_value_min, max_value->clip_value_max)
    x cut to [min_value, max_value].
permute_dimensions transpose(x->a, pattern->perm)
    x with its axes in that order.
""",
)

_settings = {"floatx": "float32", "epsilon": 1e-7, "format": "channels_last"}
_counted = {}  # by what is counted: {name: how often}, outside of graphs
_seeds = None  # random.Random of set_random_seed
_phase = None  # what set_learning_phase set


def floatx():
    """The name of Keras' float type: "float32" unless set."""
    return _settings["floatx"]


def set_floatx(value):
    """Sets Keras' float type; ValueError for types that are no floats."""
    accepted = {"bfloat16", "float16", "float32", "float64"}
    if value not in accepted:
        raise ValueError(f"Unknown `floatx` value: {value}. Expected one of {accepted}")
    _settings["floatx"] = str(value)


def epsilon():
    """The small number that keeps losses from log(0): 1e-7 unless set."""
    return _settings["epsilon"]


def set_epsilon(value):
    """Sets the small number of losses."""
    _settings["epsilon"] = value


def image_data_format():
    """ "channels_last" (unless set) or "channels_first"."""
    return _settings["format"]


def set_image_data_format(data_format):
    """Sets where images have their channels; ValueError for other words."""
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(
            f"Unknown `data_format`: {data_format}. Expected one of "
            "{'channels_last', 'channels_first'}"
        )
    _settings["format"] = str(data_format)


def data_format(value):
    """`value` in lower case, or the global setting for None."""
    value = image_data_format() if value is None else value.lower()
    if value not in ("channels_first", "channels_last"):
        raise ValueError(
            'The `data_format` argument must be one of "channels_first", '
            f'"channels_last". Received: {value}'
        )
    return value


def learning_phase():
    """1 while training, 0 else; in a graph, unless it was set, a scalar bool tensor that
    runs may feed, False else."""
    graph = stack.plain_graph()
    if graph is None or _phase is not None:
        return 0 if _phase is None else _phase
    made = graph.__dict__.get("_keras_learning_phase")
    if made is None:
        with tf.init_scope(), graph.name_scope(None):
            made = tf.compat.v1.placeholder_with_default(
                False, [], "keras_learning_phase"
            )
        graph.__dict__["_keras_learning_phase"] = made
    return made


def set_learning_phase(value):
    """Sets the phase (0 or 1) that layers run in when nothing tells them."""
    global _phase
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    _phase = int(value)


@contextlib.contextmanager
def learning_phase_scope(value):
    """A `with` block in which the phase is 0 or 1."""
    global _phase
    before = _phase
    set_learning_phase(value)
    try:
        yield
    finally:
        _phase = before


def phase_that_was_set():
    """The phase as a bool; None where nobody set it."""
    return None if _phase is None else bool(_phase)


_reset_seen = 0


def _next(kind, name):
    """1, 2, … for each name, in each graph anew."""
    global _reset_seen
    graph = stack.current()
    if _reset_seen != stack.times_reset():  # the default graph's names are gone with it
        _counted.pop("name", None)
        _reset_seen = stack.times_reset()
    maps = _counted if graph is None else graph.__dict__.setdefault("_counted", {})
    counts = maps.setdefault(kind, collections.defaultdict(int))
    counts[name] += 1
    return counts[name]


def get_uid(prefix=""):
    """1, 2, … for each prefix."""
    return _next("uid", prefix)


def reset_uids():
    """Begins counting names anew."""
    _counted.clear()


def clear_session():
    """Forgets what was counted: the next Dense is `dense` again."""
    global _phase
    _phase = None
    reset_uids()
    late.forget_keras_session()


def snake_case(name):
    """LSTMCell -> lstm_cell."""
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    name = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
    return "private" + name if name[0] == "_" else name


def unique_name(base, zero_based=True):
    """base, base_1, base_2, …; from base_1 on where not zero-based."""
    number = _next("name", base)
    if zero_based:
        number -= 1
    return f"{base}_{number}" if number else base


def set_random_seed(seed):
    """Seeds Python, NumPy and this package."""
    global _seeds
    if not isinstance(seed, int):
        raise ValueError(
            "Expected `seed` argument to be an integer. "
            f"Received: seed={seed} (of type {type(seed)})"
        )
    random.seed(seed)
    np.random.seed(seed)
    random_seed.set_seed(seed)
    _seeds = random.Random(seed)


def drawn_seed(seed, below=10_000_000):
    """A seed for functions of tf.keras.backend: NumPy draws it, unless it is given."""
    return np.random.randint(below) if seed is None else seed


def new_seed():
    """A seed for what got none."""
    return (_seeds or random).randint(1, int(1e9))


def int_shape(x):
    """The shape as a tuple, None for dimensions that are not known."""
    shape = tuple(tf.TensorShape(x.shape).as_list())
    return shape


def variable(value, dtype=None, name=None, constraint=None):
    """A variable, in Keras' float type unless told."""
    made = tf.Variable(value, dtype=dtype or floatx(), name=name, constraint=constraint)
    keep(made)
    return made


def keep(variable):
    """Notes a variable of a plain graph, for the session that Keras runs it in."""
    graph = stack.plain_graph()
    if graph is not None and isinstance(variable, tf.Variable):
        graph.__dict__.setdefault("_keras_variables", []).append(variable)


def constant(value, dtype=None, shape=None, name=None):
    """A constant, in Keras' float type unless told."""
    return tf.constant(value, dtype=dtype or floatx(), shape=shape, name=name)


def cast_to_floatx(x):
    """A tensor, or an array of anything else, in Keras' float type."""
    if isinstance(x, (tf.Tensor, tf.Variable)):
        return tf.cast(x, floatx())
    return np.asarray(x, dtype=floatx())


def get_value(x):
    """The tensor's or variable's value as an array; in a graph as Keras' session has
    it."""
    return batch_get_value([x])[0]


def set_value(x, value):
    """Gives the variable a value; in a graph in Keras' session."""
    batch_set_value([(x, value)])


def _is_of_graph(x):
    """Whether a session has the value of a tensor or variable."""
    return stack.plain_graph() is not None and hasattr(x, "graph")


def batch_get_value(tensors):
    """A list of the values of tensors or variables, as arrays."""
    tensors = list(tensors)
    wanted = [x for x in tensors if _is_of_graph(x)]
    there = iter(late.keras_session(wanted).run(wanted) if wanted else ())
    others = lambda x: x.numpy() if hasattr(x, "numpy") else x
    return [next(there) if _is_of_graph(x) else others(x) for x in tensors]


def batch_set_value(tuples):
    """Gives each variable its value, from pairs."""
    operations, fed = [], {}
    for x, value in tuples:
        if not isinstance(value, tf.Tensor):
            value = np.asarray(value, dtype=x.dtype.as_numpy_dtype)
        if not _is_of_graph(x):
            x.assign(value)
        elif isinstance(value, tf.Tensor):
            operations.append(x.assign(value, read_value=False))
        else:
            place, operation = _setter(x)
            operations.append(operation)
            fed[place] = value
    if operations:
        late.keras_session([operations[0]]).run(operations, fed)


def run_restored(status):
    """Gives the values that a checkpoint's status has to restore to variables of a graph,
    in Keras' session."""
    if stack.plain_graph() is not None:
        status.initialize_or_restore(late.keras_session())


def _setter(variable):
    """(a placeholder, the operation that assigns what it is fed to a variable)."""
    found = variable.__dict__.get("_keras_setter")
    if found is None:
        graph = variable.graph
        with graph.as_default(), tf.init_scope(), graph.name_scope(None):
            place = tf.compat.v1.placeholder(
                variable.dtype, [None] * variable.shape.rank
            )
            found = place, variable.assign(place, read_value=False)
        variable._keras_setter = found
    return found


def count_params(x):
    """How many elements x has."""
    return int(np.prod(x.shape.as_list()))


def ndim(x):
    """How many axes x has."""
    return x.shape.rank


def dtype(x):
    """The name of x's dtype."""
    return x.dtype.name


def _over_axis(name, function, what, cast_bool=False):
    def reduce(x, axis=None, keepdims=False):
        if cast_bool and x.dtype == tf.bool:
            x = tf.cast(x, floatx())
        return function(x, axis, keepdims)

    reduce.__name__ = name
    cast = " Bools are cast to floatx()." if cast_bool else ""
    reduce.__doc__ = f"{what} along `axis`; of everything without one.{cast}"
    return reduce


sum = _over_axis("sum", tf.reduce_sum, "The sum")
mean = _over_axis("mean", tf.reduce_mean, "The mean", cast_bool=True)
max = _over_axis("max", tf.reduce_max, "The maximum")
min = _over_axis("min", tf.reduce_min, "The minimum")
prod = _over_axis("prod", tf.reduce_prod, "The product")


def dot(x, y):
    """The product over x's last and y's last but one axis; x may be a matrix that is
    sparse."""
    if isinstance(x, tf.SparseTensor):
        return tf.sparse.sparse_dense_matmul(x, y)
    if y.shape.rank is not None and y.shape.rank > 2:
        return tf.tensordot(x, y, [[-1], [y.shape.rank - 2]])
    return tf.matmul(x, y) if x.shape.rank == 2 else tf.tensordot(x, y, 1)


def batch_flatten(x):
    """x as [batch, elements]."""
    return tf.reshape(x, [-1, int(np.prod(x.shape.as_list()[1:]))])


def relu(x, alpha=0.0, max_value=None, threshold=0.0):
    """Relu with a slope below `threshold` and a ceiling."""
    if threshold:
        kept = x * tf.cast(x > threshold, x.dtype)
        below = alpha * (threshold - x) * tf.cast(x <= threshold, x.dtype)
        out = kept - below if alpha else kept
    elif alpha:
        out = tf.nn.leaky_relu(x, alpha=alpha)
    else:
        out = tf.nn.relu(x)
    if max_value is not None:
        out = tf.minimum(out, tf.cast(max_value, out.dtype))
    return out


def in_train_phase(x, alt, training=None):
    """`x` while training, `alt` else; either may be a function that gives it."""
    training = learning_phase() if training is None else training
    call = lambda value: value() if callable(value) else value
    return phase.choose(training, lambda: call(x), lambda: call(alt))


def in_test_phase(x, alt, training=None):
    """`x` outside of training, `alt` in it; either may be a function that gives it."""
    return in_train_phase(alt, x, training)


_shows_progress = True


def enable_interactive_logging():
    """Progress of fit() and its like goes to the console, as at a program's start."""
    global _shows_progress
    _shows_progress = True


def disable_interactive_logging():
    """Progress goes to the log, as messages of the level INFO."""
    global _shows_progress
    _shows_progress = False


def is_interactive_logging_enabled():
    """Whether progress goes to the console."""
    return _shows_progress
