"""How operations hand layouts on: the layout of each result by those of the operands.

A rule takes a `Call` and gives a tuple of specs for each result. Specs are names of
dimensions of the mesh, or UNSHARDED; rules leave out what divides no dimension evenly or
comes twice. What has no rule gives whole tensors. The rules are those that TensorFlow's
results show.
"""

import collections

from headrace import _api as tf
from headrace.dtensor.layout import UNSHARDED

RULES = {}  # by the type of an operation


class Call:
    """An operation of a graph and the specs of its inputs."""

    def __init__(self, op, specs):
        self.op, self.specs = op, specs
        self.attr = op.get_attr

    def shape(self, i):
        """The sizes of the input i: a list; None where their number is unknown."""
        return _sizes(self.op.inputs[i])

    def value(self, i):
        """The elements of the input i where it is constant: a flat list, else None."""
        found = tf.get_static_value(self.op.inputs[i])
        return None if found is None else found.ravel().tolist()

    def out(self, i=0):
        """The sizes of the result i, as `shape` gives them."""
        return _sizes(self.op.outputs[i])


def _sizes(tensor):
    return None if tensor.shape.rank is None else tensor.shape.as_list()


def rule(types):
    """Decorates the rule of operations, whose types a text names."""

    def add(function):
        RULES.update(dict.fromkeys(types.split(), function))
        return function

    return add


def whole(rank):
    """The specs of a tensor that is not divided."""
    return (UNSHARDED,) * (rank or 0)


def merged(candidates):
    """Of each dimension's candidates the first, whole where a candidate is one of
    another dimension as well."""
    sets = [{s for s in c if s != UNSHARDED} for c in candidates]
    counts = collections.Counter(s for one in sets for s in one)
    return tuple(
        UNSHARDED
        if not one or any(counts[s] > 1 for s in one)
        else next(s for s in c if s != UNSHARDED)
        for one, c in zip(sets, candidates)
    )


def broadcast(shapes, specs, rank):
    """The specs of what element-wise operations make of operands of those."""
    found = [[] for _ in range(rank)]
    for shape, one in zip(shapes, specs):
        for at, (size, spec) in enumerate(zip(shape[::-1], one[::-1])):
            found[rank - 1 - at].append(UNSHARDED if size == 1 else spec)
    return merged(found)


@rule(
    "Add AddV2 Sub Mul MulNoNan Div DivNoNan RealDiv TruncateDiv FloorDiv FloorMod Mod "
    "TruncateMod Pow Maximum Minimum SquaredDifference Atan2 Xdivy Xlogy Xlog1py "
    "NextAfter Igamma Igammac Zeta Polygamma Betainc Complex LeftShift RightShift "
    "BitwiseAnd BitwiseOr BitwiseXor Equal NotEqual Less LessEqual Greater GreaterEqual "
    "ApproximateEqual LogicalAnd LogicalOr Select SelectV2 AddN ClipByValue ReluGrad "
    "Relu6Grad LeakyReluGrad EluGrad SeluGrad SigmoidGrad TanhGrad SqrtGrad RsqrtGrad "
    "ReciprocalGrad InvGrad SoftplusGrad SoftsignGrad"
)
def _elementwise(call):
    rank = len(call.out())
    shapes = [call.shape(i) for i in range(len(call.specs))]
    return [broadcast(shapes, call.specs, rank)]


@rule(
    "Abs Acos Acosh Angle Asin Asinh Atan Atanh BesselI0e BesselI1e Bitcast Cast Ceil "
    "CheckNumerics CheckNumericsV2 ComplexAbs Conj Cos Cosh DeepCopy Digamma Elu "
    "Erf Erfc Erfinv Exp Expm1 Floor Identity Imag Inv Invert IsFinite IsInf IsNan "
    "LeakyRelu Lgamma Log Log1p LogicalNot LogSoftmax Ndtri Neg OnesLike "
    "PlaceholderWithDefault PreventGradient Real Reciprocal Relu Relu6 Rint Round Rsqrt "
    "Selu Sigmoid Sign Sin Sinh Snapshot Softmax Softplus Softsign Sqrt Square "
    "StopGradient Tan Tanh ZerosLike EnsureShape ReadVariableOp AsString"
)
def _unary(call):
    return [call.specs[0]]


@rule("IdentityN")
def _each(call):
    return list(call.specs)


@rule("While StatelessWhile")
def _loop(call):
    return list(call.specs)


@rule("If StatelessIf Case StatelessCase PartitionedCall StatefulPartitionedCall")
def _branches(call):
    """Results lie like the operand of their shape, which is what bodies hand on."""
    found = []
    for i in range(len(call.op.outputs)):
        shape = call.out(i)
        like = {s for n, s in enumerate(call.specs) if shape and call.shape(n) == shape}
        found.append(like.pop() if len(like) == 1 else whole(len(shape or ())))
    return found


# --- products ---


def product(left, right, out, contracted):
    """The specs of a product whose operands' dimensions have letters. ValueError where
    a dimension that is summed over is divided in two ways."""
    found = collections.defaultdict(list)
    for letters, specs in (left, right):
        for letter, spec in zip(letters, specs):
            found[letter].append(spec)
    for letter in contracted:
        given = [s for s in found[letter] if s != UNSHARDED]
        if len(set(given)) > 1:
            raise ValueError(
                "Contracting dimension for matmul has sharding dimension "
                f"{given[0]} for the left input and {given[1]} for the right input "
                "which are not equal. This case is currently not supported."
            )
    return merged([found[letter] for letter in out])


@rule("MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 SparseMatMul")
def _matmul(call):
    op = call.op
    batched = op.type.startswith("Batch")
    names = ("adj_x", "adj_y") if batched else ("transpose_a", "transpose_b")
    left, right = (
        (*s[:-2], s[-1], s[-2]) if call.attr(name) else s
        for s, name in zip(call.specs, names)
    )
    rank = len(call.out())
    batch = broadcast(
        [call.shape(0)[:-2], call.shape(1)[:-2]], [left[:-2], right[:-2]], rank - 2
    )
    inner = product(("rk", left[-2:]), ("kc", right[-2:]), "rc", "k")
    if rank > 2:
        # Rows and columns go before batches, which must not be what is summed over.
        used = {*left[-2:], *right[-2:]} - {UNSHARDED}
        batch = tuple(UNSHARDED if s in used else s for s in batch)
    return [(*batch, *inner)]


@rule("Einsum")
def _einsum(call):
    equation = call.attr("equation")
    if isinstance(equation, bytes):
        equation = equation.decode()
    equation = equation.replace(" ", "")
    inputs, _, out = equation.partition("->")
    if "." in equation:
        return [whole(len(call.out()))]
    found = collections.defaultdict(list)
    for letters, specs in zip(inputs.split(","), call.specs):
        for letter, spec in zip(letters, specs):
            found[letter].append(spec)
    return [merged([found[letter] for letter in out])]


@rule("Conv2D Conv3D DepthwiseConv2dNative MaxPool AvgPool MaxPool3D AvgPool3D")
def _batches(call):
    return [(call.specs[0][0], *whole(len(call.out()) - 1))]


@rule("ResizeBilinear ResizeNearestNeighbor ResizeBicubic ResizeArea")
def _resized(call):
    return _batches(call)


@rule("Conv2DBackpropInput DepthwiseConv2dNativeBackpropInput Conv3DBackpropInputV2")
def _of_outputs(call):
    return [(call.specs[2][0], *whole(len(call.out()) - 1))]


# --- reductions ---


@rule("Sum Prod Max Min Mean All Any EuclideanNorm ArgMax ArgMin")
def _reduced(call):
    rank = len(call.shape(0) or ())
    axes = call.value(1)
    if axes is None:
        return [whole(len(call.out() or ()))]
    axes = {a % rank for a in axes} if rank else ()
    kept = call.op.type not in ("ArgMax", "ArgMin") and call.attr("keep_dims")
    found = []
    for i, spec in enumerate(call.specs[0]):
        if i not in axes:
            found.append(spec)
        elif kept:
            found.append(UNSHARDED)
    return [tuple(found)]


@rule("Cumsum Cumprod CumulativeLogsumexp")
def _cumulated(call):
    axis = call.value(1)
    specs = list(call.specs[0])
    if axis is None or not specs:
        return [whole(len(specs))]
    specs[axis[0]] = UNSHARDED
    return [tuple(specs)]


@rule("TopKV2 TopK")
def _top(call):
    specs = (*call.specs[0][:-1], UNSHARDED)
    return [specs, specs]


@rule("BiasAdd")
def _bias(call):
    if call.attr("data_format") in (b"NCHW", "NCHW"):
        return [call.specs[0]]
    shapes = [call.shape(0), call.shape(1)]
    return [broadcast(shapes, call.specs, len(call.out()))]


@rule("BiasAddGrad")
def _bias_gradient(call):
    return [call.specs[0][-1:]]


@rule("SparseSoftmaxCrossEntropyWithLogits SoftmaxCrossEntropyWithLogits")
def _cross_entropy(call):
    return [call.specs[0][:-1], call.specs[0]]


@rule("UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd")
def _segments(call):
    return [(UNSHARDED, *call.specs[0][len(call.shape(1)) :])]
