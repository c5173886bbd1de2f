"""What TensorFlow 1's functions do beyond those of tf that stand for them."""

import functools

import numpy as np

from headrace import _api as tf
from headrace._load import _headrace, raw
from headrace.algorithms import ctc
from headrace.framework import conversion, execution
from headrace.framework.settings import random_seed
from headrace.framework.support import signatures
from headrace.imaging import resizing, shapes
from headrace.ops.nn import candidate_ops, embedding_ops
from headrace.v1 import partitioned_variables
from headrace.v1.assertions import *  # noqa: F403
from headrace.v1.sparse import *  # noqa: F403

ctc_loss = ctc.loss_v1
ctc_beam_search_decoder = ctc.beam_search_v1
sampled_softmax_loss = candidate_ops.sampled_softmax_loss_v1
nce_loss = candidate_ops.nce_loss_v1


# What follows takes the parameters of its row in signatures.txt, by their names.
to_float = functools.partial(tf.cast, dtype=tf.float32)
to_double = functools.partial(tf.cast, dtype=tf.float64)
to_int32 = functools.partial(tf.cast, dtype=tf.int32)
to_int64 = functools.partial(tf.cast, dtype=tf.int64)
to_bfloat16 = functools.partial(tf.cast, dtype=tf.bfloat16)
to_complex64 = functools.partial(tf.cast, dtype=tf.complex64)
to_complex128 = functools.partial(tf.cast, dtype=tf.complex128)
dilation2d = functools.partial(tf.nn.dilation2d, data_format="NHWC")
erosion2d = functools.partial(tf.nn.erosion2d, data_format="NHWC")
reduce_join = tf.strings.reduce_join
sample_distorted_bounding_box = raw.SampleDistortedBoundingBoxV2
get_seed = random_seed.get_seed


def constant(value, dtype=None, shape=None, name="Const", verify_shape=False):
    """A constant; where `verify_shape`, of a value that has the shape already. In
    graphs the last of too few values fills up the shape, zeros where there is none.

    Raises TypeError for an unfit shape, in graphs ValueError for too many values.
    """
    if shape is None or isinstance(value, _headrace.Tensor):
        return tf.constant(value, dtype, shape, name)
    shape, eager = tf.TensorShape(shape), _headrace.is_eager()
    dtype = None if dtype is None else tf.as_dtype(dtype)
    made = conversion.as_data(value, dtype)
    if verify_shape and made.shape != shape:
        if eager:
            raise TypeError(
                f"Expected Tensor {made.numpy()} (converted from {value}) with shape "
                f"{tuple(shape)}, but got shape {tuple(made.shape)}."
            )
        raise TypeError(
            f"Expected Tensor's shape: {tuple(shape)}, but got {tuple(made.shape)}."
        )
    if not eager and shape.is_fully_defined():
        given, wanted = made.shape.num_elements(), shape.num_elements()
        if given > wanted > 0:
            raise ValueError(
                f"Too many elements provided. Takes at most {wanted}, but got {given}."
            )
        if given != 1 and given < wanted:
            flat = np.ravel(made.numpy())
            last = flat[-1:] if given else np.zeros(1, flat.dtype)
            flat = np.concatenate([flat, np.repeat(last, wanted - given)])
            value, dtype = flat.reshape(shape.as_list()), made.dtype
    return tf.constant(value, dtype, shape, name)


def div(x, y, name=None):
    """A quotient by Python 2's rule: of integers rounded down."""
    x = tf.convert_to_tensor(x)
    y = tf.convert_to_tensor(y, dtype=x.dtype)
    whole = not x.dtype.is_floating and not x.dtype.is_complex
    op = tf.raw_ops.FloorDiv if whole else tf.raw_ops.RealDiv
    return op(x=x, y=y, name=name or "div")


def clip_by_average_norm(t, clip_norm, name=None):
    """The tensor, scaled where its norm divided by its size is above `clip_norm`."""
    t = tf.convert_to_tensor(t)
    return tf.clip_by_norm(t, clip_norm * tf.cast(tf.size(t), t.dtype), name=name)


def batch_gather(params, indices, name=None):
    """Slices of each row of `params`, at that row's indices."""
    params, indices = tf.convert_to_tensor(params), tf.convert_to_tensor(indices)
    if indices.shape.rank is None:
        raise ValueError("batch_gather does not allow indices with unknown shape.")
    rank = indices.shape.rank - 1
    return tf.gather(params, indices, batch_dims=rank, axis=rank, name=name)


def batch_to_space(input, crops, block_size, name=None):
    """tf.batch_to_space of images [batch, height, width, depth] with one block size."""
    result = tf.batch_to_space(input, block_size, crops, name)
    result.set_shape(result.shape.with_rank(4))
    return result


def extract_image_patches(
    images, sizes=None, strides=None, rates=None, padding=None, name=None
):
    """tf.image.extract_patches with all arguments but the images optional by form.

    Raises TypeError for a list that is missing or is none.
    """
    return tf.image.extract_patches(images, sizes, strides, rates, padding, name)


def expand_dims(input, axis=None, name=None):
    """The tensor with one more dimension, of size 1."""
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return tf.expand_dims(input, axis, name)


# Of these only the rows of signatures.txt are TensorFlow 1's.
setdiff1d = raw.ListDiff
shape, size = tf.shape, tf.size
avg_pool = tf.nn.avg_pool


def max_pool(name=None, **given):
    """tf.nn.max_pool under TensorFlow 1's name of its operation."""
    return tf.nn.max_pool(**given, name=name or execution.node_name("MaxPool"))


def where(condition, x=None, y=None, name=None):
    """The indices of what is true, or `x` there and `y` elsewhere; a condition of one
    dimension chooses whole rows."""
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    if x is None:
        return tf.where(condition, name=name)
    x = tf.convert_to_tensor(x)
    y = tf.convert_to_tensor(y, dtype=x.dtype)
    return tf.raw_ops.Select(condition=condition, x=x, y=y, name=name)


def dimension_value(dimension):
    """The size as an integer, or None."""
    return dimension.value if hasattr(dimension, "value") else dimension


def dimension_at_index(shape, index):
    """The size of one dimension, as a Dimension."""
    return tf.compat.v1.Dimension(None) if shape.rank is None else shape.dims[index]


def cond(
    pred, true_fn=None, false_fn=None, strict=False, name=None, fn1=None, fn2=None
):
    """tf.cond; a list of one result is that result, unless `strict`."""
    for old, new, one, two in (
        ("fn1", "true_fn", fn1, true_fn),
        ("fn2", "false_fn", fn2, false_fn),
    ):
        if one is not None and two is not None:
            raise TypeError(
                f"cond(): '{old}' and '{new}' may not be set simultaneously."
            )
        if one is None and two is None:
            raise TypeError(f"cond(): '{new}' argument required")
    made = tf.cond(pred, true_fn or fn1, false_fn or fn2, name)
    single = isinstance(made, (list, tuple)) and len(made) == 1
    return made[0] if single and not strict else made


@signatures.taking(
    signatures.from_text(
        "shape_invariants=None, parallel_iterations=10, back_prop=True, "
        "swap_memory=False, name=None, maximum_iterations=None"
    ),
    before="return_same_structure",
)
def while_loop(cond, body, loop_vars, return_same_structure=False, **given):
    """tf.while_loop; in a graph a structure of one tensor is that tensor, unless
    `return_same_structure`."""
    result = tf.while_loop(cond, body, loop_vars, **given)
    if return_same_structure or tf.executing_eagerly():
        return result
    flat = tf.nest.flatten(result, expand_composites=True)
    return flat[0] if len(flat) == 1 else result


def Print(data, **given):
    """The input as it is, whose use prints `data`; the row in signatures.txt has all
    parameters."""
    return raw.Print(data=[tf.convert_to_tensor(d) for d in data], **given)


def dropout(x, keep_prob=None, noise_shape=None, seed=None, name=None, rate=None):
    """tf.nn.dropout; `keep_prob` is 1 - `rate`."""
    if keep_prob is not None:
        if rate is not None:
            raise ValueError("Cannot specify both 'keep_prob' and 'rate'.")
        try:
            rate = 1 - keep_prob
        except TypeError:
            raise ValueError(
                "`keep_prob` must be a floating point number or Tensor. Received: "
                f"keep_prob={keep_prob}"
            ) from None
    if rate is None:
        raise ValueError(f"`rate` must be provided. Received: rate={rate}")
    return tf.nn.dropout(x, rate, noise_shape, seed, name)


def fused_batch_norm(
    x, epsilon, data_format, is_training, mean=None, variance=None, **given
):
    """(normalised, mean, variance) of a batch of images; the row in signatures.txt
    has all parameters."""
    first = tf.convert_to_tensor(x).shape.rank
    if (not is_training or given["exponential_avg_factor"] != 1.0) and (
        mean is None or variance is None
    ):
        raise ValueError(
            "Both `mean` and `variance` must be a 1D tensor when `is_training` is False "
            "or `exponential_avg_factor` != 1.0. Received: `mean` "
            f"{mean!r} and `variance` {variance!r}"
        )
    empty = tf.constant([], tf.float32)
    if first == 5:
        data_format = {"NHWC": "NDHWC", "NCHW": "NCDHW"}.get(data_format, data_format)
    found = raw.FusedBatchNormV3(
        x=x,
        mean=empty if mean is None else mean,
        variance=empty if variance is None else variance,
        epsilon=max(epsilon, 1.001e-5),
        data_format=data_format,
        is_training=is_training,
        **given,
    )
    return found[0], found[1], found[2]


def relu_layer(x, weights, biases, name=None):
    """relu(x @ weights + biases)."""
    with tf.name_scope(name or "relu_layer") as scope:
        return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weights), biases), name=scope)


def xw_plus_b(x, weights, biases, name=None):
    """x @ weights + biases."""
    with tf.name_scope(name or "xw_plus_b") as scope:
        return tf.nn.bias_add(tf.matmul(x, weights), biases, name=scope)


def softmax_cross_entropy_with_logits(labels=None, logits=None, axis=-1, name=None):
    """The cross-entropy, through which no gradient reaches the labels."""
    if labels is None or logits is None:
        raise ValueError(
            "Both `labels` and `logits` must be provided for "
            f"softmax_cross_entropy_with_logitsReceived: labels={labels} and "
            f"logits={logits}"
        )
    labels = tf.stop_gradient(labels)
    return tf.nn.softmax_cross_entropy_with_logits(labels, logits, axis, name)


class ResizeMethod:
    """Ways to resize images, by TensorFlow 1's numbers."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


_RESIZERS = {
    "bilinear": "ResizeBilinear",
    "nearest": "ResizeNearestNeighbor",
    "bicubic": "ResizeBicubic",
    "area": "ResizeArea",
}


def resize_images(
    images, size, method=0, align_corners=False, preserve_aspect_ratio=False, name=None
):
    """Images resized by the rules of TensorFlow 1: pixels begin at their corners."""
    kinds = list(_RESIZERS)
    kind = kinds[method] if method in range(len(kinds)) else method
    if kind not in _RESIZERS:
        raise ValueError("Resize method is not implemented.")
    with tf.name_scope(name or "resize"):
        keep = preserve_aspect_ratio
        images, size = resizing.images_and_size(images, size, keep)
        known = tf.get_static_value(size)
        if known is not None and images.shape[-3:-1].as_list() == list(known):
            return images
        resizer = _headrace.raw_op(_RESIZERS[kind])
        return shapes.in_batches(
            lambda i: resizer(images=i, size=size, align_corners=align_corners), images
        )


def resize_image_with_pad(
    image, target_height, target_width, method=0, align_corners=False
):
    """The image resized by the rules of TensorFlow 1 with its aspect, zeros around."""
    return resizing.resized_with_pad(
        image,
        target_height,
        target_width,
        lambda i, size: resize_images(i, size, method, align_corners),
    )


def _as_asked(ragged, result_type):
    kind = result_type.lower()
    if kind == "sparsetensor":
        return ragged.to_sparse()
    if kind == "raggedtensor":
        return ragged
    raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")


def strings_split(
    input=None, sep=None, maxsplit=-1, result_type="SparseTensor", name=None
):
    """tf.strings.split into a sparse tensor, unless a ragged one is asked for."""
    input = tf.convert_to_tensor(input)
    if input.shape.rank == 0:
        input = tf.expand_dims(input, 0)
    made = tf.strings.split(input, sep, maxsplit, name)
    return _as_asked(made, result_type)


def string_split(
    source, sep=None, skip_empty=True, result_type="SparseTensor", name=None
):
    """Strings cut at any of the characters of `sep`."""
    source = tf.convert_to_tensor(source)
    made = tf.raw_ops.StringSplit(
        input=source,
        delimiter=" " if sep is None else sep,
        skip_empty=skip_empty,
        name=name,
    )
    sparse = tf.SparseTensor(made[0], made[1], made[2])
    if result_type.lower() == "raggedtensor":
        return tf.RaggedTensor.from_value_rowids(
            values=made[1], value_rowids=made[0][:, 0], nrows=made[2][0]
        )
    if result_type.lower() != "sparsetensor":
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")
    return sparse


def assert_all_finite(x=None, message=None, name=None):
    """The tensor, or an error where it holds an infinity or NaN."""
    return tf.debugging.assert_all_finite(x, message, name)


def add_check_numerics_ops():
    """An operation that fails where a floating-point tensor of the graph so far holds
    NaN or infinity: the first of them, in the order in which they were made.

    RuntimeError when eager; ValueError in graphs with TensorFlow 1's control flow.
    """
    execution.only_in_graphs(
        "add_check_numerics_ops() is not compatible with eager execution. To check "
        "for Inf's and NaN's under eager execution, call "
        "tf.debugging.enable_check_numerics() once before executing the checked "
        "operations."
    )
    checks = []
    for op in tf.compat.v1.get_default_graph().get_operations():
        if op.type in ("Switch", "Merge", "Enter", "Exit", "NextIteration"):
            raise ValueError(
                "tf.compat.v1.add_check_numerics_ops() is not compatible with control "
                f"flow of TensorFlow 1: {op.name} ({op.type})"
            )
        for output in op.outputs:
            if output.dtype in (tf.float16, tf.float32, tf.float64):
                with tf.control_dependencies(checks[-1:]):
                    checks.append(tf.debugging.check_numerics(output, output.name))
    return tf.group(*checks)


def _partitioned(params):
    kind = getattr(partitioned_variables, "PartitionedVariable", ())
    return list(params) if isinstance(params, kind) else params


def embedding_lookup(params, ids, partition_strategy="mod", name=None, max_norm=None):
    """Rows of an embedding that may lie in several parts."""
    return embedding_ops.lookup(
        _partitioned(params), ids, partition_strategy, max_norm, name
    )


def embedding_lookup_sparse(params, sp_ids, sp_weights, **given):
    """Rows of an embedding, combined for each row of ids."""
    parts = _partitioned(params)
    return embedding_ops.lookup_sparse(parts, sp_ids, sp_weights, **given)


def safe_embedding_lookup_sparse(embedding_weights, sparse_ids, **given):
    """The same, where ids and weights may be bad and rows empty."""
    parts = _partitioned(embedding_weights)
    return embedding_ops.safe_lookup_sparse(parts, sparse_ids, **given)
