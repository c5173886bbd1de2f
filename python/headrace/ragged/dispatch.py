"""What functions and operators of tf do with ragged tensors.

A row says: when one of these parameters is a ragged tensor (or a list that holds one),
the function is answered by the function behind it, which takes the same arguments.
Functions that work element by element need no row: framework/api_kinds.py lists them.
"""

from headrace import _names
from headrace._load import _headrace
from headrace.framework import dispatch as dispatching
from headrace.ragged.ragged_tensor import RaggedTensor, as_values
from headrace.ragged.ragged_value import RaggedTensorValue

_ROWS = """
concat values[] ragged.joining:concat
stack values[] ragged.joining:stack
expand_dims input ragged.joining:expand_dims
gather params,indices ragged.gathering:gather
gather_nd params,indices ragged.gathering:gather_nd
where condition,x,y ragged.gathering:where
v1.table:where condition,x,y ragged.gathering:where_v1
v1.table:batch_gather params,indices ragged.gathering:batch_gather
size input ragged.shaping:size
rank input ragged.shaping:rank
shape input ragged.shaping:shape
reshape tensor ragged.shaping:reshape
repeat input ragged.shaping:repeat
tile input ragged.shaping:tile
squeeze input ragged.shaping:squeeze
reverse tensor ragged.shaping:reverse
one_hot indices ragged.shaping:one_hot
split value ragged.shaping:split
dynamic_partition data,partitions ragged.partitioning:dynamic_partition
math.unsorted_segment_sum data,segment_ids ragged.partitioning:unsorted_segment_sum
math.unsorted_segment_prod data,segment_ids ragged.partitioning:unsorted_segment_prod
math.unsorted_segment_max data,segment_ids ragged.partitioning:unsorted_segment_max
math.unsorted_segment_min data,segment_ids ragged.partitioning:unsorted_segment_min
math.unsorted_segment_mean data,segment_ids ragged.partitioning:unsorted_segment_mean
math.unsorted_segment_sqrt_n data,segment_ids ragged.partitioning:unsorted_segment_sqrt_n
math.reduce_sum input_tensor ragged.reductions:reduce_sum
math.reduce_prod input_tensor ragged.reductions:reduce_prod
math.reduce_max input_tensor ragged.reductions:reduce_max
math.reduce_min input_tensor ragged.reductions:reduce_min
math.reduce_any input_tensor ragged.reductions:reduce_any
math.reduce_all input_tensor ragged.reductions:reduce_all
math.reduce_mean input_tensor ragged.reductions:reduce_mean
math.reduce_variance input_tensor ragged.reductions:reduce_variance
math.reduce_std input_tensor ragged.reductions:reduce_std
math.reduce_logsumexp input_tensor ragged.reductions:reduce_logsumexp
math.cumsum x ragged.reductions:cumsum
nn.moments x ragged.reductions:moments
strings.reduce_join inputs ragged.reductions:reduce_join
__operators__.eq self,other ragged.functions:equals
__operators__.ne self,other ragged.functions:not_equals
clip_by_value t,clip_value_min,clip_value_max ragged.functions:clip_by_value
identity input ragged.functions:identity
stop_gradient input ragged.functions:stop_gradient
bitcast input ragged.functions:bitcast
math.add_n inputs[] ragged.functions:add_n
nn.softmax logits ragged.functions:softmax
nn.dropout x ragged.functions:dropout
nn.experimental.stateless_dropout x ragged.functions:stateless_dropout
nn.batch_normalization x ragged.functions:batch_normalization
linalg.matmul a,b ragged.functions:matmul
nn.embedding_lookup ids ragged.functions:embedding_lookup
v1.table:nn__embedding_lookup ids ragged.functions:embedding_lookup_v1
v1.table:nn__embedding_lookup_sparse sp_ids,sp_weights ragged.functions:embedding_lookup_sparse_v1
v1.table:nn__safe_embedding_lookup_sparse sparse_ids,sparse_weights ragged.functions:safe_embedding_lookup_sparse_v1
nn.embedding_lookup_sparse sp_ids,sp_weights ragged.functions:embedding_lookup_sparse
nn.safe_embedding_lookup_sparse sparse_ids,sparse_weights ragged.functions:safe_embedding_lookup_sparse
image.resize images ragged.functions:resize
v1.table:image__resize images ragged.functions:resize_v1
strings.join inputs[] ragged.functions:join
strings.format inputs[] ragged.functions:format
debugging.assert_type tensor ragged.functions:assert_type
math.is_non_decreasing x ragged.functions:is_non_decreasing
math.is_strictly_increasing x ragged.functions:is_strictly_increasing
"""


dispatching.add_functions(RaggedTensor, _ROWS)
dispatching.convert_first(RaggedTensorValue, as_values)


@dispatching.dispatch_for_unary_elementwise_apis(RaggedTensor)
def _unary(function, x):
    return x.with_flat_values(function(x.flat_values))


def _binary(function, x, y):
    from headrace.ragged import broadcast

    return broadcast.apply(function, x, y)


def _assertion(function, x, y):
    from headrace.ragged import broadcast

    return broadcast.asserted(function, x, y)


for _register, _handler in (
    (dispatching.dispatch_for_binary_elementwise_apis, _binary),
    (dispatching.dispatch_for_binary_elementwise_assert_apis, _assertion),
):
    _register(RaggedTensor, object)(_handler)
    _register(object, RaggedTensor)(_handler)


def _operator(public, swapped=False):
    found = []

    def apply(self, *others):
        if not found:
            found.append(_names.public(public))
        operands = (self, *others)
        return found[0](*(operands[::-1] if swapped else operands))

    return apply


_OPERATORS = {
    "add": "math.add",
    "sub": "math.subtract",
    "mul": "math.multiply",
    "truediv": "math.truediv",
    "floordiv": "math.floordiv",
    "mod": "math.floormod",
    "pow": "math.pow",
    "and": "math.logical_and",
    "or": "math.logical_or",
    "xor": "math.logical_xor",
    "matmul": "linalg.matmul",
}
_ONE_SIDED = {
    "lt": "math.less",
    "le": "math.less_equal",
    "gt": "math.greater",
    "ge": "math.greater_equal",
    "neg": "math.negative",
    "abs": "math.abs",
    "invert": "math.logical_not",
}


def _equality(public, different):
    compare = _operator(public)

    def apply(self, other):
        if other is None:
            return different
        # As tensors do: those of a session's graph compare by identity.
        if self._is_key() or not _headrace.tensor_equality():
            return (self is other) != different
        return compare(self, other)

    return apply


def _attach():
    for name, public in _OPERATORS.items():
        setattr(RaggedTensor, f"__{name}__", _operator(public))
        setattr(RaggedTensor, f"__r{name}__", _operator(public, swapped=True))
    for name, public in _ONE_SIDED.items():
        setattr(RaggedTensor, f"__{name}__", _operator(public))
    RaggedTensor.__eq__ = _equality("math.equal", False)
    RaggedTensor.__ne__ = _equality("math.not_equal", True)


_attach()
