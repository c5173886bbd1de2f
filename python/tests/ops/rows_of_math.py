"""Rows of arithmetic, arrays, segments and sparse tensors that no recipe draws."""

import numpy as np
from rows import formula, in_graph, of_old_graph, row, wave


def _long(tf, values):
    return tf.constant(values, tf.int64)


@row("GuaranteeConst IdentityN LogicalNot ShapeN CheckNumericsV2")
def passed_on(tf, raw):
    x = wave(tf, 2, 2)
    return [
        raw.GuaranteeConst(input=x),
        *raw.IdentityN(input=[x, tf.constant([1, 2])]),
        raw.LogicalNot(x=[True, False]),
        *raw.ShapeN(input=[x, tf.zeros([3])], out_type=tf.int64),
        raw.CheckNumericsV2(tensor=x, message="m"),
    ]


@row("AccumulateNV2 Const NoOp ControlTrigger ParallelConcat")
def made_in_graphs(tf, raw):
    def build():
        x, y = wave(tf, 2, 2), wave(tf, 2, 2, phase=1.0)
        with tf.control_dependencies([raw.NoOp(), raw.ControlTrigger()]):
            return [
                raw.AccumulateNV2(inputs=[x, y, x], shape=[2, 2]),
                raw.ParallelConcat(values=[[[1, 2]], [[3, 4]]], shape=[2, 2]),
            ]

    value = np.array([[1, 2], [3, 4]], "int32")
    constant = of_old_graph(tf, raw, "Const", {}, 27, value=value, dtype=tf.int32)
    return [*in_graph(tf, build), *constant]


@row("Empty Snapshot Copy CopyHost DeepCopy")
def copied(tf, raw):
    x = wave(tf, 2, 2)
    return [
        raw.Empty(shape=[2, 3], dtype=tf.float32, init=True),
        raw.Snapshot(input=x),
        raw.Copy(input=x, tensor_name="t"),
        raw.CopyHost(input=x, tensor_name="t"),
        raw.DeepCopy(x=x),
    ]


@row("BroadcastGradientArgs ConcatOffset Reverse ToBool InTopK ApproxTopK")
def small_arrays(tf, raw):
    x = wave(tf, 2, 5)
    return [
        *raw.BroadcastGradientArgs(s0=[2, 1, 3], s1=[4, 1]),
        *raw.ConcatOffset(concat_dim=1, shape=[[2, 3, 4], [2, 5, 4], [2, 1, 4]]),
        raw.Reverse(tensor=x, dims=[False, True]),
        *(raw.ToBool(input=v) for v in (0.0, 2, "", "a", [], [0])),
        raw.InTopK(predictions=x, targets=[1, 4], k=2),
        *raw.ApproxTopK(input=x, k=2),
    ]


@row("BatchMatMulV3")
def batches_of_matrices(tf, raw):
    x = wave(tf, 2, 3, 3)
    ints = tf.reshape(tf.range(-4, 8), [2, 2, 3])
    return [
        raw.BatchMatMulV3(x=x, y=x[:1], Tout=tf.float32, adj_x=True),
        raw.BatchMatMulV3(
            x=tf.cast(ints, tf.int8),
            y=tf.cast(ints, tf.int8),
            Tout=tf.int32,
            adj_y=True,
        ),
    ]


@row("MatrixDiagV2 MatrixSetDiagV2 CholeskyGrad Eig")
def matrices(tf, raw):
    x = wave(tf, 3, 3)
    square = tf.constant([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    values, _ = raw.Eig(input=square, Tout=tf.complex64)
    return [
        raw.MatrixDiagV2(
            diagonal=x[:2], k=[-1, 0], num_rows=3, num_cols=3, padding_value=9.0
        ),
        raw.MatrixSetDiagV2(input=x, diagonal=x[:2], k=[0, 1]),
        raw.CholeskyGrad(l=raw.Cholesky(input=square), grad=x),
        tf.sort(tf.math.real(values)),
    ]


@formula("FFTND IFFTND RFFTND IRFFTND")
def spectra_of_axes(tf, raw):
    x = wave(tf, 2, 3, 4)
    z = tf.complex(x, x[:, ::-1])
    more = {"fft_length": [3, 4], "axes": [1, 2]}
    a, b = x.numpy(), z.numpy()
    return [
        (raw.FFTND(input=z, **more), np.fft.fftn(b, axes=[1, 2])),
        (raw.IFFTND(input=z, **more), np.fft.ifftn(b, axes=[1, 2])),
        (raw.RFFTND(input=x, **more), np.fft.rfftn(a, axes=[1, 2])),
        (
            raw.IRFFTND(input=z[..., :3], **more),
            np.fft.irfftn(b[..., :3], [3, 4], [1, 2]),
        ),
    ]


@row("RFFT3D IRFFT3D")
def spectra(tf, raw):
    x = wave(tf, 2, 3, 4)
    z = tf.complex(x, x[:, ::-1])
    return [
        raw.RFFT3D(input=x, fft_length=[2, 3, 4]),
        raw.IRFFT3D(input=z[..., :3], fft_length=[2, 3, 4]),
    ]


@row("SegmentProdV2 SegmentSumV2")
def segments(tf, raw):
    """TensorFlow runs these only when they are compiled."""
    more = {"data": wave(tf, 4, 2), "segment_ids": [0, 0, 2, 2], "num_segments": 4}

    @tf.function(jit_compile=True)
    def run():
        return raw.SegmentProdV2(**more), raw.SegmentSumV2(**more)

    return run()


@formula("TopK")
def largest_of_old_graphs(tf, raw):
    x = wave(tf, 3, 4).numpy()
    found = of_old_graph(tf, raw, "TopK", {"input": x}, 6, T=tf.float32, k=2)
    order = np.argsort(-x, axis=1)[:, :2]
    return [
        (found[0], np.take_along_axis(x, order, 1)),
        (found[1], order),
    ]


@row(
    "BatchMatrixBandPart BatchMatrixDiag BatchMatrixDiagPart BatchMatrixSetDiag"
    " QuantizeAndDequantize"
)
def only_in_old_graphs(tf, raw):
    x = wave(tf, 2, 3, 3).numpy()
    one, none = np.int64(1), np.int64(0)

    def run(op, producer, inputs, **attrs):
        return of_old_graph(tf, raw, op, inputs, producer, T=tf.float32, **attrs)

    band = {"input": x, "num_lower": one, "num_upper": none}
    return [
        run("BatchMatrixBandPart", 13, band),
        run("BatchMatrixDiag", 13, {"diagonal": x[0]}),
        run("BatchMatrixDiagPart", 13, {"input": x}),
        run("BatchMatrixSetDiag", 13, {"input": x, "diagonal": x[:, 0]}),
        run(
            "QuantizeAndDequantize",
            21,
            {"input": x},
            num_bits=4,
            range_given=True,
            input_min=-1.0,
            input_max=1.0,
        ),
    ]


@row(
    "SparseSegmentMeanGrad SparseSegmentSqrtNGrad SparseSegmentSumGrad"
    " SparseSegmentSqrtNWithNumSegments SparseSegmentMeanGradV2"
    " SparseSegmentSqrtNGradV2 SparseSegmentSumGradV2"
)
def sparse_segments(tf, raw):
    grad = wave(tf, 2, 3)
    old = {
        "grad": grad,
        "indices": [0, 3, 1, 3],
        "segment_ids": [0, 0, 1, 1],
        "output_dim0": 5,
    }
    new = {
        "grad": grad,
        "indices": [0, 3, 1, 3],
        "segment_ids": [0, 0, 1, 1],
        "dense_output_dim0": 5,
    }
    return [
        raw.SparseSegmentMeanGrad(**old),
        raw.SparseSegmentSqrtNGrad(**old),
        raw.SparseSegmentSumGrad(**old),
        raw.SparseSegmentSqrtNWithNumSegments(
            data=wave(tf, 4, 2),
            indices=[0, 3, 1, 3],
            segment_ids=[0, 0, 2, 2],
            num_segments=4,
        ),
        *raw.SparseSegmentMeanGradV2(**new),
        *raw.SparseSegmentSqrtNGradV2(**new),
        *raw.SparseSegmentSumGradV2(**new),
    ]


@formula("SegmentMaxV2 SegmentMinV2")
def segments_of_a_count(tf, raw):
    """TensorFlow's, compiled by XLA, give the least or greatest number, too, where
    there is nothing."""
    found = []
    for name in ("float32", "int32", "uint8"):
        numbers = np.finfo(name) if name == "float32" else np.iinfo(name)
        given = {
            "data": tf.cast([[3, 1], [2, 9], [7, 4]], name),
            "segment_ids": [1, 1, 3],
            "num_segments": 5,
        }
        for op, none, both in (
            (raw.SegmentMaxV2, numbers.min, [3, 9]),
            (raw.SegmentMinV2, numbers.max, [2, 1]),
        ):
            empty = [none, none]
            wanted = np.array([empty, both, empty, [7, 4], empty], name)
            found.append((op(**given), wanted))
    return found


@row("IgammaGradA RandomGammaGrad IsotonicRegression")
def slopes_of_functions(tf, raw):
    a, x = tf.constant([0.5, 2.0, 3.5]), tf.constant([0.3, 2.5, 3.0])
    return [
        raw.IgammaGradA(a=a, x=x),
        raw.RandomGammaGrad(alpha=a, sample=x),
        *raw.IsotonicRegression(input=[[3.0, 1.0, 2.0, 0.5], [1.0, 2.0, 3.0, 3.0]]),
    ]


@row("Fingerprint ComputeAccidentalHits StringFormat ShardedFilename ShardedFilespec")
def names_and_hashes(tf, raw):
    hits = raw.ComputeAccidentalHits(
        true_classes=_long(tf, [[1, 2], [0, 4]]),
        sampled_candidates=_long(tf, [0, 2, 7]),
        num_true=2,
    )
    return [
        raw.Fingerprint(data=["a", "Ab c"], method="farmhash64"),
        raw.Fingerprint(data=[[1, 2], [3, 4]], method="farmhash64"),
        *hits,
        raw.StringFormat(
            inputs=[wave(tf, 5), tf.constant("x")],
            template="a {} b {}",
            placeholder="{}",
            summarize=2,
        ),
        raw.ShardedFilename(basename="b", shard=2, num_shards=10),
        raw.ShardedFilespec(basename="b", num_shards=10),
    ]


@row("SpaceToBatch BatchToSpace DataFormatDimMap DataFormatVecPermute MirrorPadGrad")
def blocks(tf, raw):
    x = wave(tf, 1, 3, 4, 1)
    cut = raw.SpaceToBatch(input=x, paddings=[[1, 0], [0, 0]], block_size=2)
    paddings = [[1, 1], [2, 0]]
    return [
        cut,
        raw.BatchToSpace(input=cut, crops=[[1, 0], [0, 0]], block_size=2),
        raw.DataFormatDimMap(x=[0, 1, -1, 2], src_format="NHWC", dst_format="NCHW"),
        raw.DataFormatVecPermute(x=[1, 2, 3, 4], src_format="NHWC", dst_format="NCHW"),
        raw.MirrorPadGrad(input=wave(tf, 4, 5), paddings=paddings, mode="REFLECT"),
        raw.MirrorPadGrad(input=wave(tf, 4, 5), paddings=paddings, mode="SYMMETRIC"),
    ]


@row("QuantizeAndDequantizeV4Grad")
def quantized_slopes(tf, raw):
    x = wave(tf, 2, 3)
    return raw.QuantizeAndDequantizeV4Grad(
        gradients=x, input=x * 2.0, input_min=-1.0, input_max=1.0
    )


@formula("QuantizedReluX")
def quantized_relu(tf, raw):
    numbers = np.array([0, 30, 128, 200, 255], np.uint8)
    y, low, high = raw.QuantizedReluX(
        features=tf.bitcast(tf.constant(numbers), tf.quint8),
        max_value=1.0,
        min_features=-2.0,
        max_features=2.0,
    )
    # From the number of 0 to that of 1, round(255 / 4) above it.
    return [(y, np.clip(numbers, 128, 192)), (low, -2.0), (high, 2.0)]


@row("Bincount DenseBincount SparseBincount RaggedBincount")
def bincounts(tf, raw):
    return [
        raw.Bincount(arr=[1, 2, 2, 5], size=4, weights=[0.5, 1.0, 2.0, 9.0]),
        raw.DenseBincount(
            input=[[1, 2, 2], [0, 0, 9]], size=4, weights=tf.constant([], tf.float32)
        ),
        raw.SparseBincount(
            indices=_long(tf, [[0, 0], [1, 2], [1, 3]]),
            values=[2, 1, 1],
            dense_shape=_long(tf, [2, 4]),
            size=3,
            weights=[0.5, 1.5, 2.0],
        ),
        raw.RaggedBincount(
            splits=_long(tf, [0, 2, 2, 5]),
            values=[1, 0, 2, 2, 7],
            size=3,
            weights=tf.constant([], tf.int64),
            binary_output=True,
        ),
    ]


@row("DenseCountSparseOutput SparseCountSparseOutput RaggedCountSparseOutput")
def counts(tf, raw):
    none = tf.constant([], tf.float32)
    return [
        *raw.DenseCountSparseOutput(
            values=[[1, 2, 2], [0, 0, 9]], weights=none, binary_output=False
        ),
        *raw.SparseCountSparseOutput(
            indices=_long(tf, [[0, 0], [1, 2], [1, 3]]),
            values=[2, 1, 1],
            dense_shape=_long(tf, [2, 4]),
            weights=[0.5, 1.5, 2.0],
            binary_output=False,
            minlength=4,
        ),
        *raw.RaggedCountSparseOutput(
            splits=_long(tf, [0, 2, 2, 5]),
            values=[1, 0, 2, 2, 7],
            weights=none,
            binary_output=True,
            maxlength=4,
        ),
    ]


@row("VarHandleOp AssignVariableOp ReadVariableOp VarIsInitializedOp DestroyResourceOp")
def handles(tf, raw):
    handle = raw.VarHandleOp(
        dtype=tf.float32, shape=[2], shared_name="variable_of_rows"
    )
    before = raw.VarIsInitializedOp(resource=handle)
    raw.AssignVariableOp(resource=handle, value=[1.5, 2.5])
    results = [
        before,
        raw.VarIsInitializedOp(resource=handle),
        raw.ReadVariableOp(resource=handle, dtype=tf.float32),
    ]
    raw.DestroyResourceOp(resource=handle, ignore_lookup_error=False)
    again = raw.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="variable_of_rows")
    return [*results, raw.VarIsInitializedOp(resource=again)]
