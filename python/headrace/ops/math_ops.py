"""Arithmetic on tensors."""

import math

from headrace._load import _headrace, raw
from headrace.context.errors import InvalidArgumentError
from headrace.framework import conversion, dtypes, execution
from headrace.framework.name_scopes import composite
from headrace.framework.support import signatures
from headrace.ops import array_ops, check_ops, clip_ops, elementwise_ops, reduction_ops
from headrace.ops.faces import add_faces

add_faces(
    globals(),
    """
_cast=cast Cast(x, DstT, Truncate=False, name=None)
add AddV2(x, y, name=None)
subtract Sub(x, y, name=None)
multiply Mul(x, y, name=None)
_real_div=truediv RealDiv(x, y, name=None)
_mat_mul=matmul MatMul(a, b, transpose_a=False, transpose_b=False, name=None)
_batch_mat_mul=matmul BatchMatMulV2(x, y, adj_x=False, adj_y=False, name=None)
_equal=equal Equal(x, y, incompatible_shape_error=True, name=None)
_not_equal=not_equal NotEqual(x, y, incompatible_shape_error=True, name=None)
equal Equal(x, y, name=None)
    Whether x == y, element by element.
not_equal NotEqual(x, y, name=None)
    Whether x != y, element by element.
top_k TopKV2(input, k=1, sorted=True, index_type=int32, name=None)
    The k greatest of each row, and where they are.
invert_permutation InvertPermutation(x, name=None)
    The permutation that undoes x.
histogram_fixed_width HistogramFixedWidth(values, value_range, nbins=100, dtype=int32,
        name=None)
    How many values fall into each of `nbins` equal bins.
""",
)


def cast(x, dtype, name=None):
    """The values as another type."""
    dtype = dtypes.as_dtype(dtype).base_dtype
    if not isinstance(x, _headrace.Tensor):
        if not _headrace.is_eager():
            return _cast_value(x, dtype, name=name)
        x = conversion.convert_to_tensor(x)
    if x.dtype is dtype:
        return x
    return _cast(x, dtype, False, name)


@composite("Cast", ends=True)
def _cast_value(x, dtype, name=None):
    """The same of what is no tensor yet, in a graph."""
    x = conversion.convert_to_tensor(x, name="x")
    return x if x.dtype is dtype else _cast(x, dtype, False, name)


_DIVISIBLE = (
    "uint8 int8 uint16 int16 uint32 int32 uint64 int64"
    " bfloat16 float16 float32 float64 complex64 complex128"
).split()


def multiply_bools(x, y):
    """x * y where one is a boolean tensor: x and y."""
    return raw.LogicalAnd(cast(x, dtypes.bool), cast(y, dtypes.bool))


def check_numeric(dtype, where):
    """TypeError unless numbers of this type can be divided."""
    if not (dtype.is_integer or dtype.is_floating or dtype.is_complex):
        expected = ", ".join(f"tf.{n}" for n in _DIVISIBLE)
        raise TypeError(
            f"Invalid dtype {dtype!r} in {where}. Expected one of {{{expected}}}."
        )


@composite("truediv", ends=True)
def truediv(x, y, name=None):
    """x / y; integers become floats, as in Python."""
    x = conversion.convert_to_tensor(x, dtype_hint=getattr(y, "dtype", None))
    y = conversion.convert_to_tensor(y, dtype_hint=x.dtype)
    if x.dtype.base_dtype != y.dtype.base_dtype:
        raise TypeError(
            f"`x` and `y` must have the same dtype, got {x.dtype!r} != {y.dtype!r}."
        )
    check_numeric(x.dtype, "__truediv__")
    wanted = dtypes.DIVIDED_AS.get(x.dtype.name)
    if wanted is not None:
        x, y = cast(x, wanted), cast(y, wanted)
    return _real_div(x, y, name)


def logical_xor(x, y, name="LogicalXor"):
    """x xor y, of booleans."""
    either = raw.LogicalOr(x, y)
    both = raw.LogicalAnd(x, y)
    return raw.LogicalAnd(either, raw.LogicalNot(both), name=name)


def matmul(
    a,
    b,
    transpose_a=False,
    transpose_b=False,
    adjoint_a=False,
    adjoint_b=False,
    a_is_sparse=False,
    b_is_sparse=False,
    output_type=None,
    grad_a=False,
    grad_b=False,
    name=None,
):
    """The matrix product of the last two dimensions.

    `output_type` is that of the sums: tf.int32 of int8 or uint8, else the operands'.
    """
    if transpose_a and adjoint_a:
        raise ValueError(
            "Only one of `transpose_a` and `adjoint_a` can be True. Received "
            f"`transpose_a`={transpose_a}, `adjoint_a`={adjoint_a}."
        )
    if transpose_b and adjoint_b:
        raise ValueError(
            "Only one of `transpose_b` and `adjoint_b` can be True. Received "
            f"`transpose_b`={transpose_b}, `adjoint_b`={adjoint_b}."
        )
    tensor = _headrace.Tensor
    values = not isinstance(a, tensor) or not isinstance(b, tensor)
    if values and not _headrace.is_eager():
        name, a, b = _operands(a, b, name=name)
    if not isinstance(a, tensor):
        a = conversion.convert_to_tensor(
            a, dtype_hint=b.dtype.base_dtype if isinstance(b, tensor) else None
        )
    if not isinstance(b, tensor):
        b = conversion.convert_to_tensor(b, dtype_hint=a.dtype.base_dtype)
    if output_type is not None and not a.dtype == b.dtype == output_type:
        return raw.BatchMatMulV3(
            conj(a) if transpose_a else a,
            conj(b) if transpose_b else b,
            Tout=output_type,
            adj_x=transpose_a or adjoint_a,
            adj_y=transpose_b or adjoint_b,
            name=name,
        )
    rank_a, rank_b = a._rank(), b._rank()
    if (rank_a is None or rank_a > 2) and (rank_b is None or rank_b > 2 or rank_b == 2):
        batch = True
    else:
        batch = rank_b is not None and rank_b > 2 and rank_a is not None and rank_a >= 2
    if batch:
        if transpose_a:
            a, adjoint_a = conj(a), True
        if transpose_b:
            b, adjoint_b = conj(b), True
        if name is None and not _headrace.is_eager():
            name = "MatMul"
        return _batch_mat_mul(a, b, adjoint_a, adjoint_b, name)
    if adjoint_a:
        a, transpose_a = conj(a), True
    if adjoint_b:
        b, transpose_b = conj(b), True
    return _mat_mul(a, b, transpose_a, transpose_b, name)


@composite("MatMul", ends=True)
def _operands(a, b, name):
    """(the name, a, b) of a product in a graph, whose constants lie in its scope."""
    tensor = _headrace.Tensor
    if not isinstance(a, tensor):
        hint = b.dtype.base_dtype if isinstance(b, tensor) else None
        a = conversion.convert_to_tensor(a, dtype_hint=hint, name="a")
    if not isinstance(b, tensor):
        b = conversion.convert_to_tensor(b, dtype_hint=a.dtype.base_dtype, name="b")
    return name, a, b


def conj(x, name=None):
    """The complex conjugate; real tensors as they are."""
    x = conversion.convert_to_tensor(x)
    if not x.dtype.is_complex:
        if x.dtype.is_floating or x.dtype.is_integer or x.dtype == dtypes.variant:
            return x
        raise TypeError(f"Expected numeric or variant tensor, got dtype {x.dtype!r}.")
    return raw.Conj(x, name=name)


def tensor_equals(self, other):
    """What `==` gives."""
    if other is None:
        return False
    return _equal(self, other, False)


def tensor_not_equals(self, other):
    """What `!=` gives."""
    if other is None:
        return True
    return _not_equal(self, other, False)


@composite("Tensordot", ends=True)
def tensordot(a, b, axes, name=None):
    """The sum of products over pairs of dimensions."""
    a = conversion.convert_to_tensor(a)
    b = conversion.convert_to_tensor(b, dtype_hint=a.dtype)
    first, second = _tensordot_axes(a, axes)
    a2, free_a = _as_matrix(a, first, last=True)
    b2, free_b = _as_matrix(b, second, last=False)
    product = matmul(a2, b2)
    if isinstance(free_a, list) and isinstance(free_b, list):
        sizes = free_a + free_b
        if product.shape.as_list() == sizes:
            return product
    else:
        free = [conversion.convert_to_tensor(f, dtypes.int32) for f in (free_a, free_b)]
        sizes = array_ops.concat(free, 0)
    return array_ops.reshape(product, sizes, name=name)


def _tensordot_axes(a, axes):
    rank = a.shape.rank
    if isinstance(axes, _headrace.EagerTensor):
        axes = axes.numpy().tolist()
    if isinstance(axes, int):
        if axes < 0:
            raise ValueError(f"`axes` must be at least 0. Received: {axes}.")
        if rank is not None and axes > rank:
            raise ValueError(
                f"`axes` must not be larger than the number of dimensions of tensor {a}. "
                f" Received {axes}, vs tensor dimensions {rank}."
            )
        if rank is None:
            of_a = array_ops.range(axes) + (array_ops.rank(a) - axes)
            return of_a, list(range(axes))
        return list(range(rank - axes, rank)), list(range(axes))
    if len(axes) != 2:
        raise ValueError(
            f"`axes` must be an integer or have length 2. Received {axes}."
        )
    first, second = ([x] if isinstance(x, int) else list(x) for x in axes)
    if len(first) != len(second):
        raise ValueError(
            f"Different number of contraction axes `a` and `b`, {len(first)} != "
            f"{len(second)}."
        )
    return first, second


def _checked_axes(axes, shape):
    """Dimensions from 0, of a shape of known rank."""
    for i in axes:
        if not -shape.rank <= i < shape.rank:
            raise InvalidArgumentError._of(
                f"axis {i} is out of range for shape {shape}"
            )
    return [i % shape.rank for i in axes]


def _as_matrix(x, axes, last):
    """(x as a matrix whose columns, or rows unless `last`, run over `axes`; the sizes
    of the other dimensions: numbers where all are known, else a tensor)."""
    if x.shape.rank is None:
        rank = array_ops.rank(x)
        axes = conversion.convert_to_tensor(axes, rank.dtype)
        axes = array_ops.where(axes < 0, axes + rank, axes)
        free = _headrace.raw_op("ListDiff")(x=array_ops.range(rank), y=axes).out
        order = array_ops.concat([free, axes] if last else [axes, free], 0)
    else:
        axes = _checked_axes(axes, x.shape)
        free = [i for i in range(x.shape.rank) if i not in axes]
        order = free + axes if last else axes + free
    if x.shape.is_fully_defined():
        sizes = x.shape.as_list()
        kept = [sizes[i] for i in free]
        sides = [math.prod(kept), math.prod(sizes[i] for i in axes)]
    else:
        sizes = array_ops.shape(x)
        kept, summed = (
            array_ops.gather(sizes, conversion.convert_to_tensor(i, dtypes.int32))
            for i in (free, axes)
        )
        sides = [-1, _headrace.raw_op("Prod")(input=summed, axis=[0])]
    sides = sides if last else sides[::-1]
    if not isinstance(order, list) or order != sorted(order):
        x = array_ops.transpose(x, order)
    if x.shape.is_fully_defined() and x.shape.as_list() == sides:
        return x, kept
    known = all(isinstance(n, int) for n in sides)
    return array_ops.reshape(x, sides if known else array_ops.stack(sides)), kept


@composite("einsum")
def einsum(equation, *inputs, **kwargs):
    """Sums of products by Einstein's convention."""
    name = kwargs.pop("name", None)
    optimize = kwargs.pop("optimize", "greedy")
    del optimize  # every order of contraction gives the same sums
    if kwargs:
        raise TypeError(
            f"Invalid keyword arguments for this function: {sorted(kwargs)}"
        )
    operands = list(inputs)
    expected = equation.partition("->")[0].count(",") + 1
    if len(operands) != expected:
        raise ValueError(
            f'Got {len(operands)} inputs for equation "{equation}", expecting {expected}'
        )
    if len(operands) > 2:
        return _einsum_by_pairs(equation, operands)
    equation = _completed(equation.replace(" ", ""), len(operands))
    return raw.Einsum(operands, equation=equation, name=name)


def _completed(equation, count):
    """The equation with its output spelt out."""
    if "->" in equation:
        left, output = equation.split("->", 1)
        for label in output.replace("...", ""):
            if label not in left:
                raise ValueError(
                    f"Output subscripts contain the label {label} not present in the "
                    "input subscripts."
                )
        return equation
    labels = equation.replace(",", "").replace(".", "")
    once = sorted(c for c in set(labels) if labels.count(c) == 1)
    dots = "..." if "..." in equation else ""
    return equation + "->" + dots + "".join(once)


def _einsum_by_pairs(equation, operands):
    equation = _completed(equation.replace(" ", ""), len(operands))
    left, output = equation.split("->")
    terms = left.split(",")
    total, label = operands[0], terms[0]
    for i in range(1, len(operands)):
        later = set("".join(terms[i + 1 :])) | set(output)
        if i == len(operands) - 1:
            kept = output
        else:
            both = label.replace("...", "") + terms[i].replace("...", "")
            kept = "".join(dict.fromkeys(c for c in both if c in later))
            if "..." in label or "..." in terms[i]:
                kept = "..." + kept
        total = raw.Einsum([total, operands[i]], equation=f"{label},{terms[i]}->{kept}")
        label = kept
    return total


def _approximate(largest, own_name):
    def approximate(operand, **given):
        return raw.ApproxTopK(operand, is_max_k=largest, **given)

    doc = "(values, indices) of the k extremes; exact on processors."
    parameters = signatures.from_text(
        "operand, k, reduction_dimension=-1, recall_target=0.95, "
        "reduction_input_size_override=-1, aggregate_to_topk=True, name=None"
    )
    like = signatures.named(own_name, doc, __name__)
    return signatures.function_of(like, parameters, approximate)


approx_max_k = _approximate(True, "approx_max_k")
approx_min_k = _approximate(False, "approx_min_k")


@composite("in_top_k")
def in_top_k(targets, predictions, k, name=None):
    """Whether each target is among the k greatest predictions."""
    return raw.InTopKV2(predictions, targets, k, name=name)


@composite("histogram_fixed_width_bins")
def histogram_fixed_width_bins(
    values, value_range, nbins=100, dtype=dtypes.int32, name=None
):
    """Which of `nbins` equal bins between the two of `value_range` each value falls
    into; the first and last also take what lies outside. Shaped like `values`."""
    values = conversion.convert_to_tensor(values, name="values")
    value_range = conversion.convert_to_tensor(
        value_range, values.dtype, name="value_range"
    )
    low, high = value_range[0], value_range[1]
    bins = conversion.convert_to_tensor(nbins, dtype_hint=dtypes.int32, name="nbins")
    check = check_ops.Assert(bins > 0, [f"nbins {bins} must > 0"])
    with execution.control_dependencies([] if check is None else [check]):
        share = truediv(values - low, high - low)
    places = cast(elementwise_ops.floor(cast(bins, share.dtype) * share), dtypes.int32)
    return cast(clip_ops.clip_by_value(places, 0, bins - 1), dtype)


def _same_rank(labels, predictions):
    """Both, the one of a rank more without its last dimension of 1."""
    ranks = labels.shape.rank, predictions.shape.rank
    if None not in ranks and ranks[0] - ranks[1] == 1 and labels.shape[-1] in (1, None):
        labels = array_ops.squeeze(labels, [-1])
    elif None not in ranks and ranks[1] - ranks[0] == 1:
        if predictions.shape[-1] in (1, None):
            predictions = array_ops.squeeze(predictions, [-1])
    return labels, predictions


def _classes_below(classes, name, limit=None):
    """The classes, from 0 on and below the limit: checked when they are used."""
    text = f"`{name}` contains negative values"
    tests = [check_ops.assert_non_negative(classes, message=text)]
    if limit is not None:
        text = f"`{name}` out of bound"
        tests.append(check_ops.assert_less(classes, limit, message=text))
    tests = [test for test in tests if test is not None]
    with execution.control_dependencies(tests):
        return array_ops.identity(classes) if tests else classes


@composite("confusion_matrix")
def confusion_matrix(
    labels, predictions, num_classes=None, weights=None, dtype=dtypes.int32, name=None
):
    """How often each label was predicted as each class: [num_classes, num_classes].

    A last dimension of 1 that only one of both has is taken off. InvalidArgumentError
    for classes outside of [0, num_classes).
    """
    labels, predictions = map(conversion.convert_to_tensor, (labels, predictions))
    labels, predictions = _same_rank(labels, predictions)
    labels = cast(labels, dtypes.int64)
    predictions = cast(predictions, dtypes.int64)
    n = None if num_classes is None else cast(num_classes, dtypes.int64)
    labels = _classes_below(labels, "labels", n)
    predictions = _classes_below(predictions, "predictions", n)
    if n is None:
        most = map(reduction_ops.reduce_max, (labels, predictions))
        n = raw.Maximum(*most) + 1
    if weights is None:
        values = array_ops.ones_like(predictions, dtype)
    else:
        weights = conversion.convert_to_tensor(weights)
        predictions.shape.assert_is_compatible_with(weights.shape)
        values = cast(weights, dtype)
    return array_ops.scatter_nd(
        array_ops.stack([labels, predictions], axis=1), values, array_ops.stack([n, n])
    )
