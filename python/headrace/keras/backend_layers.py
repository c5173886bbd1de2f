"""tf.keras.backend's functions behind layers, losses and updates."""

from headrace import _api as tf
from headrace.algorithms import ctc
from headrace.keras import settings
from headrace.ops.faces import add_calls

add_calls(
    globals(),
    """
greater_equal greater_equal(x, y)
    x >= y, element by element.
less_equal less_equal(x, y)
    x <= y, element by element.
map_fn map_fn(fn, elems, name=None, dtype=None)
    fn(row) of each row of `elems`, along the first dimension, stacked.
foldl foldl(fn, elems, initializer=None, name=None)
    fn(what came so far, row) from the first row to the last.
foldr foldr(fn, elems, initializer=None, name=None)
    fn(what came so far, row) from the last row to the first.
in_top_k math.in_top_k(predictions, targets, k)
    Whether each target is among the k greatest predictions of its row.
categorical_crossentropy keras.losses.categorical_crossentropy(target->y_true,
        output->y_pred, from_logits=False, axis=-1)
    Keras' loss of probabilities, or logits, along an axis.
sparse_categorical_crossentropy keras.losses.sparse_categorical_crossentropy(
        target->y_true, output->y_pred, from_logits=False, axis=-1, ignore_class=None)
    The same for class numbers.
""",
)


def backend():
    """The name of what Keras runs on."""
    return "tensorflow"


def reverse(x, axes):
    """x the other way round along an axis or several."""
    return tf.reverse(x, [axes] if isinstance(axes, int) else axes)


def is_sparse(tensor):
    """Whether it is a SparseTensor, or stands for one in a model."""
    spec = getattr(tensor, "type_spec", None)
    return isinstance(tensor, tf.SparseTensor) or isinstance(spec, tf.SparseTensorSpec)


def to_dense(tensor):
    """A sparse tensor with its zeros; others as they are."""
    return tf.sparse.to_dense(tensor) if is_sparse(tensor) else tensor


def eval(x):
    """The value as an array, of a sparse tensor with its zeros."""
    return settings.get_value(to_dense(x))


def concatenate(tensors, axis=-1):
    """The tensors one behind the other along `axis`: sparse where all are, ragged where
    all are, else dense."""
    if all(is_sparse(x) for x in tensors):
        return tf.sparse.concat(axis, tensors)
    if all(isinstance(x, tf.RaggedTensor) for x in tensors):
        return tf.concat(tensors, axis)
    return tf.concat([to_dense(x) for x in tensors], axis)


def print_tensor(x, message="", summarize=3):
    """x, which is printed on stderr each time that it is computed."""
    tf.print(message, x, summarize=summarize)
    return tf.identity(x)


# --- updates ---


def update(x, new_x):
    """Assigns `new_x` to a variable; its new value."""
    return x.assign(new_x)


def update_add(x, increment):
    """Adds `increment` to a variable; its new value."""
    return x.assign_add(increment)


def update_sub(x, decrement):
    """Takes `decrement` from a variable; its new value."""
    return x.assign_sub(decrement)


def moving_average_update(x, value, momentum):
    """Brings a variable nearer to a value: momentum x + (1 - momentum) value."""
    return x.assign_sub((x - tf.cast(value, x.dtype)) * (1.0 - momentum))


# --- random numbers ---


def _float(dtype):
    return dtype or settings.floatx()


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Normal numbers within two deviations."""
    seed = settings.drawn_seed(seed)
    return tf.random.truncated_normal(shape, mean, stddev, _float(dtype), seed)


def random_bernoulli(shape, p=0.0, dtype=None, seed=None):
    """1 with the probability p, else 0."""
    dtype = _float(dtype)
    drawn = tf.random.uniform(shape, dtype=dtype, seed=settings.drawn_seed(seed))
    return tf.where(drawn <= p, tf.ones(shape, dtype), tf.zeros(shape, dtype))


def dropout(x, level, noise_shape=None, seed=None):
    """x with the share `level` of its elements set to 0, the others made larger."""
    return tf.nn.dropout(x, level, noise_shape, settings.drawn_seed(seed))


def random_uniform_variable(shape, low, high, dtype=None, name=None, seed=None):
    """A variable of even numbers from low to high."""
    seed = settings.drawn_seed(seed, 1_000_000_000)
    value = tf.random.uniform(shape, low, high, _float(dtype), seed)
    return settings.variable(value, dtype, name)


def random_normal_variable(shape, mean, scale, dtype=None, name=None, seed=None):
    """A variable of normal numbers."""
    seed = settings.drawn_seed(seed, 1_000_000_000)
    value = tf.random.normal(shape, mean, scale, _float(dtype), seed)
    return settings.variable(value, dtype, name)


# --- losses ---


def ctc_label_dense_to_sparse(labels, label_lengths):
    """Labels [batch, n], of which so many of each row count, as a SparseTensor."""
    labels = tf.convert_to_tensor(labels)
    inside = tf.sequence_mask(tf.reshape(label_lengths, [-1]), tf.shape(labels)[1])
    shape = tf.shape(labels, out_type=tf.int64)
    return tf.SparseTensor(tf.where(inside), tf.boolean_mask(labels, inside), shape)


def ctc_batch_cost(y_true, y_pred, input_length, label_length):
    """CTC's loss [batch, 1] of labels and probabilities [batch, steps, classes], whose
    last class is the blank; lengths are [batch, 1].
    """
    sparse = ctc_label_dense_to_sparse(tf.cast(y_true, tf.int32), label_length)
    logs = tf.math.log(tf.transpose(y_pred, [1, 0, 2]) + settings.epsilon())
    lengths = tf.cast(tf.reshape(input_length, [-1]), tf.int32)
    loss = ctc.loss_v1(sparse, logs, lengths)
    return tf.expand_dims(loss, 1)


def ctc_decode(y_pred, input_length, greedy=True, beam_width=100, top_paths=1):
    """([labels, -1 behind their ends], scores) of probabilities [batch, steps, classes]."""
    logs = tf.math.log(tf.transpose(y_pred, [1, 0, 2]) + settings.epsilon())
    lengths = tf.cast(input_length, tf.int32)
    if greedy:
        found, scores = tf.nn.ctc_greedy_decoder(logs, lengths)
    else:
        found, scores = tf.nn.ctc_beam_search_decoder(
            logs, lengths, beam_width=beam_width, top_paths=top_paths
        )
    shape = tf.shape(y_pred, out_type=tf.int64)[:2]
    dense = []
    for x in found:
        wide = tf.SparseTensor(x.indices, x.values, shape)
        dense.append(tf.sparse.to_dense(wide, default_value=-1))
    return dense, scores


# --- layers ---


def _channels_first(data_format):
    data_format = data_format or settings.image_data_format()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(f"Unknown data_format: {data_format}")
    return data_format == "channels_first"


def bias_add(x, bias, data_format=None):
    """x plus one number a channel, or a bias of x's own rank but the batch."""
    rank = len(bias.shape)
    if rank not in (1, len(x.shape) - 1):
        raise ValueError(
            f"Unexpected bias dimensions {rank}, expect to be 1 or {len(x.shape) - 1} "
            "dimensions"
        )
    if rank > 1:
        if _channels_first(data_format):
            bias = tf.transpose(bias, [rank - 1, *range(rank - 1)])
        return x + tf.expand_dims(bias, 0)
    if _channels_first(data_format):
        return x + tf.reshape(bias, [1, -1, *[1] * (len(x.shape) - 2)])
    return x + bias


def temporal_padding(x, padding=(1, 1)):
    """Zeros before and behind the steps of [batch, steps, channels]."""
    return tf.pad(x, [[0, 0], list(padding), [0, 0]])


def spatial_2d_padding(x, padding=((1, 1), (1, 1)), data_format=None):
    """Zeros around images."""
    sides = [list(side) for side in padding]
    if _channels_first(data_format):
        return tf.pad(x, [[0, 0], [0, 0], *sides])
    return tf.pad(x, [[0, 0], *sides, [0, 0]])


def spatial_3d_padding(x, padding=((1, 1), (1, 1), (1, 1)), data_format=None):
    """Zeros around volumes."""
    return spatial_2d_padding(x, padding, data_format)


def _of_rank(function, x, data_format, rank, **options):
    """A function of images with channels last, for both formats."""
    if not _channels_first(data_format):
        return function(x, **options)
    last = [0, *range(2, rank + 2), 1]
    found = function(tf.transpose(x, last), **options)
    return tf.transpose(found, [0, rank + 1, *range(1, rank + 1)])


def _convolution(rank):
    def convolve(
        x,
        kernel,
        strides=1 if rank == 1 else (1,) * rank,
        padding="valid",
        data_format=None,
        dilation_rate=1 if rank == 1 else (1,) * rank,
    ):
        if rank == 1 and padding == "causal":
            left = dilation_rate * (kernel.shape[0] - 1)
            x, padding = temporal_padding(x, (left, 0)), "valid"
        how = dict(strides=strides, padding=padding.upper(), dilations=dilation_rate)
        return _of_rank(tf.nn.convolution, x, data_format, rank, filters=kernel, **how)

    convolve.__name__ = convolve.__qualname__ = f"conv{rank}d"
    convolve.__doc__ = f"The convolution of {rank} dimensions, without a bias."
    return convolve


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))


def _pooling(rank):
    ones = (1,) * rank

    def pool(
        x, pool_size, strides=ones, padding="valid", data_format=None, pool_mode="max"
    ):
        if pool_mode not in ("max", "avg"):
            raise ValueError(f"Invalid pooling mode: {pool_mode}")
        how = dict(window_shape=pool_size, strides=strides, padding=padding.upper())
        how["pooling_type"] = pool_mode.upper()
        return _of_rank(tf.nn.pool, x, data_format, rank, **how)

    pool.__name__ = pool.__qualname__ = f"pool{rank}d"
    pool.__doc__ = (
        f'The greatest ("max") or mean ("avg") of windows, {rank} dimensions.'
    )
    return pool


pool2d, pool3d = _pooling(2), _pooling(3)


def resize_images(x, height_factor, width_factor, data_format, interpolation="nearest"):
    """Images made larger by whole factors."""

    def resize(x):
        size = [x.shape[1] * height_factor, x.shape[2] * width_factor]
        return tf.image.resize(x, size, method=interpolation)

    if interpolation not in ("nearest", "bilinear", "bicubic", "area", "lanczos3"):
        raise ValueError(f"Unknown interpolation: {interpolation}")
    return _of_rank(resize, x, data_format, 2)


def batch_dot(x, y, axes=None):
    """Products of the rows of two batches, summed along one axis of each.

    By default the last of x and the last but one of y (the last where y has rank 2).
    Results of rank 1 get an axis of 1.
    """
    ranks = len(x.shape), len(y.shape)
    if min(ranks) < 2:
        raise ValueError(
            "Cannot do batch_dot on inputs with rank < 2. Received inputs with tf.shapes "
            f"{x.shape} and {y.shape}"
        )
    if axes is None:
        axes = [ranks[0] - 1, ranks[1] - (1 if ranks[1] == 2 else 2)]
    axes = [axes, axes] if isinstance(axes, int) else list(axes)
    axes = [a % rank for a, rank in zip(axes, ranks)]
    if 0 in axes:
        raise ValueError("Cannot perform batch_dot over axis 0.")
    letters = iter("cdefghijklmnopqrstuvwxyz")
    names = [["a", *(next(letters) for _ in range(rank - 1))] for rank in ranks]
    for of, axis in zip(names, axes):
        of[axis] = "b"
    out = ["a", *(n for of in names for n in of[1:] if n != "b")]
    found = tf.einsum(f"{''.join(names[0])},{''.join(names[1])}->{''.join(out)}", x, y)
    return tf.expand_dims(found, -1) if len(out) == 1 else found
