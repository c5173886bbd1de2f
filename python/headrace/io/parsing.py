"""tf.io.parse_example, parse_sequence_example and their kin."""

from headrace._load import raw
from headrace.framework import conversion, dtypes
from headrace.framework.name_scopes import name_scope
from headrace.framework.sparse_tensor import SparseTensor
from headrace.framework.tensor_shape import TensorShape
from headrace.io import ragged_partitions
from headrace.io.feature_specs import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
)
from headrace.ops import array_ops, math_ops
from headrace.ops.faces import add_faces
from headrace.ops.sparse import sparse_ops
from headrace.ragged.ragged_tensor import RaggedTensor

add_faces(
    globals(),
    """
parse_tensor ParseTensor(serialized, out_type, name=None)
serialize_tensor SerializeTensor(tensor, name=None)
""",
)


class _Request:
    """What an op is to find: by kind, key and dtype."""

    def __init__(self, features, allowed):
        self.features = features
        self.sparse, self.dense, self.ragged = {}, {}, {}
        for key in sorted(features):
            feature = features[key]
            if not isinstance(feature, tuple(allowed)):
                kind = type(feature).__name__
                raise ValueError(  # noqa: TRY004  (upstream's)
                    f"Unsupported {kind} {feature} for key '{key}'"
                )
            self._ask(key, feature)

    def _ask(self, key, feature):
        if not feature.dtype:
            raise ValueError(
                f"Missing type for feature {key}. Received feature={feature}"
                + ("." if isinstance(feature, FixedLenFeature) else "")
            )
        if isinstance(feature, VarLenFeature):
            self._add(self.sparse, key, feature.dtype)
        elif isinstance(feature, SparseFeature):
            self._ask_sparse(key, feature)
        elif isinstance(feature, FixedLenFeature):
            self._ask_fixed(key, feature)
        elif isinstance(feature, FixedLenSequenceFeature):
            self._check_shape(key, feature)
            self.dense[key] = feature
        else:
            self._ask_ragged(key, feature)

    @staticmethod
    def _add(table, key, dtype, *more):
        dtype = dtypes.as_dtype(dtype)
        if table.setdefault(key, (dtype, *more))[0] != dtype:
            raise ValueError(
                f"Conflicting type {table[key][0]} vs {dtype} for feature {key}."
            )

    def _ask_sparse(self, key, feature):
        keys = feature.index_key
        keys = [keys] if isinstance(keys, str) else keys
        if not keys or not feature.value_key:
            raise ValueError(
                f"Missing index_key or value_key for SparseFeature {key}. Received "
                f"feature={feature}"
            )
        for index_key in sorted(keys):
            self._add(self.sparse, index_key, dtypes.int64)
        self._add(self.sparse, feature.value_key, feature.dtype)

    @staticmethod
    def _check_shape(key, feature):
        if feature.shape is None:
            raise ValueError(
                f"Missing shape for feature {key}. Received feature={feature}."
            )

    def _ask_fixed(self, key, feature):
        self._check_shape(key, feature)
        shape = TensorShape(feature.shape)
        if shape.ndims and shape[0] is None:
            raise ValueError(
                f"First dimension of shape for feature {key} unknown. Consider using "
                f"FixedLenSequenceFeature. Received feature={feature}."
            )
        if not shape.is_fully_defined():
            raise ValueError(
                f"All dimensions of shape for feature {key} need to be known but "
                f"received {shape}."
            )
        self.dense[key] = feature

    def _ask_ragged(self, key, feature):
        splits = dtypes.as_dtype(feature.row_splits_dtype)
        value_key = key if feature.value_key is None else feature.value_key
        self._add(self.ragged, value_key, feature.dtype, splits)
        for partition in feature.partitions:
            if not isinstance(partition, RaggedFeature.UniformRowLength):
                self._add(self.ragged, partition.key, dtypes.int64, splits)


def _fallback(key, feature):
    """What stands for a missing dense feature, as the op wants it."""
    dtype = dtypes.as_dtype(feature.dtype)
    value = feature.default_value
    if isinstance(feature, FixedLenSequenceFeature):
        if value is None:
            value = "" if dtype == dtypes.string else 0
        value = conversion.convert_to_tensor(value, dtype=dtype)
        return array_ops.reshape(value, [])
    if value is None:
        return conversion.constant([], dtype=dtype)
    value = conversion.convert_to_tensor(value, dtype=dtype, name=f"key_{key}")
    return array_ops.reshape(value, feature.shape)


def _dense_shape(feature):
    shape = TensorShape(feature.shape)
    if isinstance(feature, FixedLenSequenceFeature):
        return TensorShape([None]).concatenate(shape)
    return shape


def _strings(values):
    return conversion.constant(list(values), dtype=dtypes.string, shape=[len(values)])


class _Found:
    """The tensors of an op's outputs by kind and key, and the features of them."""

    def __init__(self, request, single, found, prefix=""):
        """`prefix` is that of the names of the op's outputs."""

        def parts(*names):
            return zip(*(getattr(found, f"{prefix}{name}") for name in names))

        self.request, self.single = request, single
        sparse = parts("sparse_indices", "sparse_values", "sparse_shapes")
        self.sparse = {k: SparseTensor(*p) for k, p in zip(request.sparse, sparse)}
        self.dense = dict(zip(request.dense, getattr(found, f"{prefix}dense_values")))
        ragged = parts("ragged_values", "ragged_row_splits")
        self.ragged = dict(zip(request.ragged, ragged))

    def features(self):
        out = {}
        for key, feature in sorted(self.request.features.items(), key=self._place):
            if isinstance(feature, VarLenFeature):
                out[key] = self.sparse[key]
            elif isinstance(feature, SparseFeature):
                out[key] = self._sparse_of(feature)
            elif isinstance(feature, RaggedFeature):
                value_key = key if feature.value_key is None else feature.value_key
                values, splits = self.ragged[value_key]
                out[key] = ragged_partitions.cut(
                    feature, values, splits, self.ragged.get, self.single
                )
            else:
                out[key] = self.dense[key]
        return out

    def _place(self, item):
        """Where the result has a feature: what the op gives first, then what is put
        together of that; within these by name."""
        key, feature = item
        fixed = (FixedLenFeature, FixedLenSequenceFeature)
        groups = (
            isinstance(feature, VarLenFeature),
            isinstance(feature, fixed),
            isinstance(feature, RaggedFeature) and key in self.request.ragged,
            True,
        )
        return groups.index(True), key

    def _sparse_of(self, feature):
        keys, sizes = feature.index_key, feature.size
        if isinstance(keys, str):
            keys, sizes = [keys], [sizes]
        values = self.sparse[feature.value_key]
        columns = [self.sparse[k].values for k in keys]
        rank = values.indices.shape[-1]
        if rank is None or rank > 1:  # the examples
            columns.insert(0, values.indices[:, 0])
        sizes = math_ops.cast(array_ops.stack(list(sizes)), dtypes.int64)
        indices = array_ops.stack(columns, axis=-1)
        shape = array_ops.concat([values.dense_shape[:-1], sizes], 0)
        made = SparseTensor(indices, values.values, shape)
        if feature.already_sorted:
            return made
        return sparse_ops.reorder(made)


def _parse_example(serialized, features, names):
    if not features:
        raise ValueError(f"Argument `features` cannot be None or falsy. Got {features}")
    kinds = [VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature]
    request = _Request(features, [*kinds, RaggedFeature])
    for feature in request.dense.values():
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise ValueError(
                "Unsupported: FixedLenSequenceFeature requires allow_missing to be "
                "True."
            )
    serialized = conversion.convert_to_tensor(serialized, dtype=dtypes.string)
    if request.ragged and serialized.shape.ndims is None:
        raise ValueError(
            "serialized must have statically-known rank to parse ragged features."
        )
    found = raw.ParseExampleV2(
        serialized,
        _strings([]) if names is None else names,
        _strings(request.sparse),
        _strings(request.dense),
        _strings(request.ragged),
        [_fallback(k, f) for k, f in request.dense.items()],
        num_sparse=len(request.sparse),
        sparse_types=[d for (d,) in request.sparse.values()],
        ragged_value_types=[d for d, _ in request.ragged.values()],
        ragged_split_types=[s for _, s in request.ragged.values()],
        dense_shapes=[_dense_shape(f) for f in request.dense.values()],
    )
    return _Found(request, serialized.shape.ndims == 0, found).features()


def parse_example(serialized, features, example_names=None, name=None):
    """{key: tensor} of a batch of serialised Examples, by {key: what is wanted}."""
    with name_scope(name or "ParseExample"):
        return _parse_example(serialized, features, example_names)


def parse_single_example(serialized, features, example_names=None, name=None):
    """{key: tensor} of one serialised Example."""
    serialized = conversion.convert_to_tensor(serialized, dtype=dtypes.string)
    if serialized.shape.ndims not in (None, 0):
        raise ValueError("Input serialized must be a scalar")
    with name_scope(name or "ParseSingleExample"):
        return _parse_example(serialized, features, example_names)


def _list_shape(key, feature):
    if feature.default_value is not None:
        raise ValueError(f"Value feature_list.dense_defaults[{key}] must be None")
    return TensorShape(feature.shape)


def _sequence_ragged(request, found, single):
    """The RaggedTensors of lists of features: a row a step, within one an example."""
    out = {}
    parts = zip(
        found.feature_list_ragged_values,
        found.feature_list_ragged_inner_splits,
        found.feature_list_ragged_outer_splits,
    )
    by_key = dict(zip(request.ragged, parts))
    for key, feature in request.features.items():
        if not isinstance(feature, RaggedFeature):
            continue
        if feature.partitions:
            raise ValueError(
                f"RaggedFeature.partitions of the sequence feature {key!r} are not "
                "supported"
            )
        value_key = key if feature.value_key is None else feature.value_key
        values, inner, outer = by_key[value_key]
        rows = RaggedTensor.from_row_splits(values, inner, validate=feature.validate)
        if not single:
            rows = RaggedTensor.from_row_splits(rows, outer, validate=feature.validate)
        out[key] = rows
    return out


def _parse_sequence(serialized, context_features, sequence_features, names):
    """(context, lists, lengths of dense lists)."""
    context = _Request(
        context_features or {},
        [VarLenFeature, SparseFeature, FixedLenFeature, RaggedFeature],
    )
    lists = _Request(
        sequence_features or {}, [VarLenFeature, FixedLenSequenceFeature, RaggedFeature]
    )
    dense = lists.dense
    list_shapes = [_list_shape(k, f) for k, f in dense.items()]
    may_miss = [bool(f.allow_missing) for f in dense.values()]
    single = serialized.shape.ndims == 0
    found = raw.ParseSequenceExampleV2(
        serialized=serialized,
        debug_name=_strings([]) if names is None else names,
        context_sparse_keys=_strings(context.sparse),
        context_dense_keys=_strings(context.dense),
        context_ragged_keys=_strings(context.ragged),
        feature_list_sparse_keys=_strings(lists.sparse),
        feature_list_dense_keys=_strings(dense),
        feature_list_ragged_keys=_strings(lists.ragged),
        feature_list_dense_missing_assumed_empty=conversion.constant(
            may_miss, dtype=dtypes.bool, shape=[len(may_miss)]
        ),
        context_dense_defaults=[_fallback(k, f) for k, f in context.dense.items()],
        Ncontext_sparse=len(context.sparse),
        context_sparse_types=[d for (d,) in context.sparse.values()],
        context_ragged_value_types=[d for d, _ in context.ragged.values()],
        context_ragged_split_types=[s for _, s in context.ragged.values()],
        context_dense_shapes=[_dense_shape(f) for f in context.dense.values()],
        Nfeature_list_sparse=len(lists.sparse),
        Nfeature_list_dense=len(dense),
        feature_list_dense_types=[dtypes.as_dtype(f.dtype) for f in dense.values()],
        feature_list_sparse_types=[d for (d,) in lists.sparse.values()],
        feature_list_ragged_value_types=[d for d, _ in lists.ragged.values()],
        feature_list_ragged_split_types=[s for _, s in lists.ragged.values()],
        feature_list_dense_shapes=list_shapes,
    )
    of_context = _Found(context, single, found, "context_").features()
    sparse = zip(
        found.feature_list_sparse_indices,
        found.feature_list_sparse_values,
        found.feature_list_sparse_shapes,
    )
    of_lists = {key: SparseTensor(*p) for key, p in zip(lists.sparse, sparse)}
    of_lists.update(zip(dense, found.feature_list_dense_values))
    of_lists.update(_sequence_ragged(lists, found, single))
    return of_context, of_lists, dict(zip(dense, found.feature_list_dense_lengths))


def parse_sequence_example(
    serialized,
    context_features=None,
    sequence_features=None,
    example_names=None,
    name=None,
):
    """(context, lists of features, lengths of the dense lists) of a batch of
    serialised SequenceExamples."""
    if not (context_features or sequence_features):
        raise ValueError(
            "Both `context_features` and `sequence_features` argument are None, but at "
            "least one should have values."
        )
    serialized = conversion.convert_to_tensor(serialized, dtype=dtypes.string)
    with name_scope(name or "ParseSequenceExample"):
        return _parse_sequence(
            serialized, context_features, sequence_features, example_names
        )


def parse_single_sequence_example(
    serialized,
    context_features=None,
    sequence_features=None,
    example_name=None,
    name=None,
):
    """(context, lists of features) of one serialised SequenceExample."""
    if not (context_features or sequence_features):
        raise ValueError(
            "Both context_features and sequence_features are None, but at least one "
            "should have values."
        )
    serialized = conversion.convert_to_tensor(serialized, dtype=dtypes.string)
    if serialized.shape.ndims not in (None, 0):
        raise ValueError("Input serialized must be a scalar")
    names = None if example_name is None else [example_name]
    with name_scope(name or "ParseSingleSequenceExample"):
        found = _parse_sequence(serialized, context_features, sequence_features, names)
    return found[0], found[1]
