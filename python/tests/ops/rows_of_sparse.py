"""Rows of sparse and ragged tensors, sets, and what is parsed."""

import numpy as np
from rows import formula, row, wave

_AT = [[0, 1], [0, 3], [2, 0], [2, 2]]


def _long(tf, values):
    return tf.constant(values, tf.int64)


def _sparse(tf, shape=(3, 4), phase=0.3):
    return _long(tf, _AT), wave(tf, 4, phase=phase), _long(tf, shape)


def _matrix(tf, raw, phase=0.3, values=None):
    at, drawn, shape = _sparse(tf, (3, 4), phase)
    return raw.SparseTensorToCSRSparseMatrix(
        indices=at, values=drawn if values is None else values, dense_shape=shape
    )


def _dense(tf, raw, matrix):
    return raw.CSRSparseMatrixToDense(sparse_input=matrix, type=tf.float32)


@row(
    "SparseTensorToCSRSparseMatrix CSRSparseMatrixComponents CSRSparseMatrixToDense"
    " CSRSparseMatrixToSparseTensor DenseToCSRSparseMatrix SparseMatrixNNZ"
    " SparseMatrixTranspose"
)
def csr_matrices(tf, raw):
    a = _matrix(tf, raw)
    cut = raw.DenseToCSRSparseMatrix(
        dense_input=wave(tf, 2, 3), indices=_long(tf, [[0, 1], [1, 0], [1, 2]])
    )
    turned = raw.SparseMatrixTranspose(input=a, type=tf.float32)
    return [
        *raw.CSRSparseMatrixComponents(csr_sparse_matrix=a, index=0, type=tf.float32),
        *raw.CSRSparseMatrixToSparseTensor(sparse_matrix=cut, type=tf.float32),
        raw.SparseMatrixNNZ(sparse_matrix=a),
        *(_dense(tf, raw, m) for m in (a, cut, turned)),
    ]


@row("SparseMatrixMatMul SparseMatrixSparseMatMul")
def csr_arithmetic(tf, raw):
    a, b = _matrix(tf, raw), _matrix(tf, raw, 1.0)
    product = raw.SparseMatrixSparseMatMul(a=a, b=b, type=tf.float32, transpose_b=True)
    return [
        _dense(tf, raw, product),
        raw.SparseMatrixMatMul(a=a, b=wave(tf, 4, 2)),
    ]


@formula(
    "SparseMatrixAdd SparseMatrixMul SparseMatrixZeros SparseMatrixSoftmax"
    " SparseMatrixSoftmaxGrad"
)
def csr_functions(tf, raw):
    a, b = _matrix(tf, raw), _matrix(tf, raw, 1.0)
    x, y = _dense(tf, raw, a).numpy(), _dense(tf, raw, b).numpy()
    both = raw.SparseMatrixAdd(a=a, b=b, alpha=tf.constant(2.0), beta=tf.constant(-1.0))
    zeros = raw.SparseMatrixZeros(dense_shape=_long(tf, [2, 2]), type=tf.float32)
    product = raw.SparseMatrixMul(a=a, b=tf.constant(3.0))
    soft = raw.SparseMatrixSoftmax(logits=a, type=tf.float32)
    back = raw.SparseMatrixSoftmaxGrad(softmax=soft, grad_softmax=b, type=tf.float32)
    raised = np.where(x != 0, np.exp(x), 0)
    share = raised / np.maximum(raised.sum(1, keepdims=True), 1e-9)
    slope = share * (y - (share * y).sum(1, keepdims=True))
    wanted = [2 * x - y, 3 * x, np.zeros([2, 2]), share, slope]
    return [
        (_dense(tf, raw, m), w)
        for m, w in zip((both, product, zeros, soft, back), wanted, strict=True)
    ]


@row("SparseMatrixOrderingAMD SparseMatrixSparseCholesky")
def csr_roots(tf, raw):
    square = tf.constant([[4.0, 1, 0], [1, 3, 0.5], [0, 0.5, 2]])
    at = _long(tf, [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [2, 1], [2, 2]])
    square = raw.DenseToCSRSparseMatrix(dense_input=square, indices=at)
    order = raw.SparseMatrixOrderingAMD(input=square)
    root = raw.SparseMatrixSparseCholesky(
        input=square, permutation=[0, 1, 2], type=tf.float32
    )
    return [order, _dense(tf, raw, root)]


@row("SparseMatMul SparseTensorDenseAdd SparseAddGrad SparseSliceGrad")
def sparse_sums(tf, raw):
    at, values, shape = _sparse(tf)
    return [
        raw.SparseMatMul(
            a=[[1.0, 0, 2], [0, 0, 3]],
            b=[[0.0, 1], [2, 0], [0.5, 4]],
            a_is_sparse=True,
            b_is_sparse=True,
        ),
        raw.SparseTensorDenseAdd(
            a_indices=at, a_values=values, a_shape=shape, b=wave(tf, 3, 4)
        ),
        *raw.SparseAddGrad(
            backprop_val_grad=[1.0, 2.0, 3.0],
            a_indices=_long(tf, [[0, 1], [2, 0]]),
            b_indices=_long(tf, [[0, 1], [1, 1]]),
            sum_indices=_long(tf, [[0, 1], [1, 1], [2, 0]]),
        ),
        raw.SparseSliceGrad(
            backprop_val_grad=[1.5, 2.5],
            input_indices=at,
            input_start=_long(tf, [1, 0]),
            output_indices=_long(tf, [[1, 0], [1, 2]]),
        ),
    ]


@row("SparseReduceMaxSparse SparseReduceSumSparse SparseFillEmptyRowsGrad")
def sparse_reductions(tf, raw):
    at, values, shape = _sparse(tf)
    more = {"input_indices": at, "input_values": values, "input_shape": shape}
    return [
        *raw.SparseReduceMaxSparse(**more, reduction_axes=[1], keep_dims=True),
        *raw.SparseReduceSumSparse(**more, reduction_axes=[1]),
        *raw.SparseFillEmptyRowsGrad(
            reverse_index_map=_long(tf, [0, 2]), grad_values=[1.0, 2.0, 4.0]
        ),
    ]


@row("SparseCross SparseCrossV2 SparseCrossHashed")
def crosses(tf, raw):
    more = {
        "indices": [_long(tf, [[0, 0], [1, 0], [1, 1]])],
        "values": [tf.constant(["a", "b", "c"])],
        "shapes": [_long(tf, [2, 2])],
        "dense_inputs": [tf.constant([["x"], ["y"]])],
    }
    return [
        *raw.SparseCross(
            **more,
            hashed_output=False,
            num_buckets=0,
            hash_key=1,
            out_type=tf.string,
            internal_type=tf.string,
        ),
        *raw.SparseCrossV2(**more, sep="_"),
        *raw.SparseCrossHashed(
            **more, num_buckets=_long(tf, 50), strong_hash=False, salt=_long(tf, [3, 4])
        ),
    ]


@row("RaggedCross RaggedFillEmptyRows RaggedFillEmptyRowsGrad")
def ragged_rows(tf, raw):
    return [
        *raw.RaggedCross(
            ragged_values=[tf.constant(["a", "b", "c"])],
            ragged_row_splits=[_long(tf, [0, 1, 3])],
            sparse_indices=[],
            sparse_values=[],
            sparse_shape=[],
            dense_inputs=[tf.constant([["x"], ["y"]])],
            input_order="RD",
            hashed_output=False,
            num_buckets=0,
            hash_key=1,
            out_values_type=tf.string,
            out_row_splits_type=tf.int64,
        ),
        *raw.RaggedFillEmptyRows(
            value_rowids=_long(tf, [0, 0, 3]),
            values=[1.0, 2.0, 3.0],
            nrows=_long(tf, 5),
            default_value=-1.0,
        ),
        *raw.RaggedFillEmptyRowsGrad(
            reverse_index_map=_long(tf, [0, 2]), grad_values=[1.0, 2.0, 4.0]
        ),
    ]


@row("RaggedTensorToVariant RaggedTensorFromVariant RaggedTensorToVariantGradient")
def ragged_variants(tf, raw):
    splits = _long(tf, [0, 2, 2, 5])
    coded = raw.RaggedTensorToVariant(
        rt_nested_splits=[splits], rt_dense_values=wave(tf, 5), batched_input=True
    )
    again = raw.RaggedTensorFromVariant(
        encoded_ragged=coded,
        input_ragged_rank=0,
        output_ragged_rank=1,
        Tvalues=tf.float32,
        Tsplits=tf.int64,
    )
    back = raw.RaggedTensorToVariantGradient(
        encoded_ragged_grad=coded,
        row_splits=splits,
        dense_values_shape=[5],
        Tvalues=tf.float32,
    )
    return [again[0], again[1], back]


@row("SetSize DenseToSparseSetOperation SparseToSparseSetOperation")
def sets(tf, raw):
    at = _long(tf, [[0, 0], [0, 1], [1, 0]])
    other = {
        "set2_indices": at,
        "set2_values": _long(tf, [2, 5, 7]),
        "set2_shape": _long(tf, [2, 2]),
    }
    found = [
        raw.SetSize(
            set_indices=at,
            set_values=_long(tf, [3, 3, 4]),
            set_shape=_long(tf, [2, 2]),
        )
    ]
    for how in ("a-b", "b-a", "intersection", "union"):
        found += raw.DenseToSparseSetOperation(
            set1=_long(tf, [[5, 1], [7, 7]]), **other, set_operation=how
        )
    found += raw.SparseToSparseSetOperation(
        set1_indices=at,
        set1_values=_long(tf, [5, 1, 8]),
        set1_shape=_long(tf, [2, 2]),
        **other,
        set_operation="union",
    )
    return found


@row("SerializeSparse SerializeManySparse DeserializeSparse DeserializeManySparse")
def sparse_texts(tf, raw):
    at, values, shape = _sparse(tf)
    more = {"sparse_indices": at, "sparse_values": values, "sparse_shape": shape}
    one, many = raw.SerializeSparse(**more), raw.SerializeManySparse(**more)
    return [
        one,
        many,
        *raw.DeserializeSparse(
            serialized_sparse=tf.stack([one, one]), dtype=tf.float32
        ),
        *raw.DeserializeManySparse(serialized_sparse=many, dtype=tf.float32),
    ]


@row("SerializeTensor ParseTensor UnicodeEncode DecodeCompressed")
def texts(tf, raw):
    import zlib

    coded = raw.SerializeTensor(tensor=wave(tf, 2, 2))
    squeezed = zlib.compress(b"some words, some words")
    return [
        coded,
        raw.ParseTensor(serialized=coded, out_type=tf.float32),
        raw.UnicodeEncode(
            input_values=[72, 228, 8364, 33],
            input_splits=_long(tf, [0, 2, 2, 4]),
            output_encoding="UTF-16-BE",
        ),
        raw.DecodeCompressed(bytes=[squeezed], compression_type="ZLIB"),
    ]


# --- Examples.


def _examples(tf):
    def feature(**kinds):
        return tf.train.Feature(**kinds)

    def floats(*values):
        return feature(float_list=tf.train.FloatList(value=values))

    def ints(*values):
        return feature(int64_list=tf.train.Int64List(value=values))

    rows = [
        {"x": floats(1.5, 2.5), "n": ints(3, 4), "r": ints(1)},
        {"n": ints(5), "r": ints(2, 3)},
    ]
    steps = [[floats(0.5), floats(1.0, 2.0)], [floats(4.0)]]
    examples, sequences = [], []
    for made, step in zip(rows, steps, strict=True):
        features = tf.train.Features(feature=made)
        examples.append(tf.train.Example(features=features).SerializeToString())
        lists = tf.train.FeatureLists(
            feature_list={
                "s": tf.train.FeatureList(feature=step),
                "d": tf.train.FeatureList(feature=[ints(7), ints(8)]),
                "g": tf.train.FeatureList(feature=[ints(9, 6), ints(4)]),
            }
        )
        sequence = tf.train.SequenceExample(context=features, feature_lists=lists)
        sequences.append(sequence.SerializeToString())
    return examples, sequences


@row("ParseExample ParseExampleV2 ParseSingleExample")
def examples(tf, raw):
    coded, _ = _examples(tf)
    default = [tf.constant([-1.0, -2.0])]
    dense = {"dense_defaults": default, "dense_shapes": [[2]]}
    none = tf.constant([], tf.string)
    return [
        *raw.ParseExample(
            serialized=coded,
            names=none,
            sparse_keys=["n"],
            dense_keys=["x"],
            sparse_types=[tf.int64],
            **dense,
        ),
        *raw.ParseExampleV2(
            serialized=coded,
            names=none,
            sparse_keys=["n"],
            dense_keys=["x"],
            ragged_keys=["r"],
            num_sparse=1,
            sparse_types=[tf.int64],
            ragged_value_types=[tf.int64],
            ragged_split_types=[tf.int32],
            **dense,
        ),
        *raw.ParseSingleExample(
            serialized=coded[0],
            num_sparse=1,
            sparse_keys=["n"],
            dense_keys=["x"],
            sparse_types=[tf.int64],
            **dense,
        ),
    ]


@row("ParseSequenceExample ParseSequenceExampleV2 ParseSingleSequenceExample")
def sequence_examples(tf, raw):
    _, coded = _examples(tf)
    default = [tf.constant([-1.0, -2.0])]
    none = tf.constant([], tf.string)
    types = {
        "context_sparse_types": [tf.int64],
        "feature_list_dense_types": [tf.int64],
        "context_dense_shapes": [[2]],
        "feature_list_sparse_types": [tf.float32],
        "feature_list_dense_shapes": [[1]],
        "context_dense_defaults": default,
    }
    counts = {"Ncontext_sparse": 1, "Nfeature_list_sparse": 1, "Nfeature_list_dense": 1}
    return [
        *raw.ParseSequenceExample(
            serialized=coded,
            debug_name=none,
            feature_list_dense_missing_assumed_empty=[],
            context_sparse_keys=["n"],
            context_dense_keys=["x"],
            feature_list_sparse_keys=["s"],
            feature_list_dense_keys=["d"],
            Ncontext_dense=1,
            **counts,
            **types,
        ),
        *raw.ParseSequenceExampleV2(
            serialized=coded,
            debug_name=none,
            context_sparse_keys=["n"],
            context_dense_keys=["x"],
            context_ragged_keys=["r"],
            feature_list_sparse_keys=["s"],
            feature_list_dense_keys=["d"],
            feature_list_ragged_keys=["g"],
            feature_list_dense_missing_assumed_empty=[False],
            context_ragged_value_types=[tf.int64],
            context_ragged_split_types=[tf.int64],
            feature_list_ragged_value_types=[tf.int64],
            feature_list_ragged_split_types=[tf.int64],
            **counts,
            **types,
        ),
        *raw.ParseSingleSequenceExample(
            serialized=coded[0],
            feature_list_dense_missing_assumed_empty=[],
            context_sparse_keys=["n"],
            context_dense_keys=["x"],
            feature_list_sparse_keys=["s"],
            feature_list_dense_keys=["d"],
            debug_name="",
            **types,
        ),
    ]
