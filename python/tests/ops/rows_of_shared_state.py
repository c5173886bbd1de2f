"""Rows of what steps share: accumulators, barriers, staging areas, session tensors,
mutexes, sparse tensors under numbers; and of what looks at tensors."""

import numpy as np
from rows import formula, in_graph, of_old_graph, row


def _long(tf, values):
    return tf.constant(values, tf.int64)


def _after(tf, build):
    """A session runs each of the operations by turns; what they give."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        found = [session.run(x) for x in build()]
    return [x for x in tf.nest.flatten(found) if x is not None]


def _accumulate(tf, raw, handle, prefix):
    def op(name, **more):
        return getattr(raw, f"{prefix}Accumulator{name}")(handle=handle, **more)

    def add(step, gradient):
        return op("ApplyGradient", local_step=_long(tf, step), gradient=gradient)

    take = op("TakeGradient", num_required=2, dtype=tf.float32)
    return [
        add(0, [1.0, 2.0]),
        add(0, [3.0, 5.0]),
        op("NumAccumulated"),
        take,
        op("NumAccumulated"),
        add(0, [7.0, 7.0]),  # of a step that is over
        op("NumAccumulated"),
        op("SetGlobalStep", new_global_step=_long(tf, 5)),
        add(4, [9.0, 9.0]),
        add(5, [1.0, 1.0]),
        add(6, [4.0, 6.0]),
        take,
    ]


@row(
    "ConditionalAccumulator AccumulatorApplyGradient AccumulatorTakeGradient"
    " AccumulatorNumAccumulated AccumulatorSetGlobalStep"
)
def accumulators(tf, raw):
    def build(kind):
        handle = raw.ConditionalAccumulator(
            dtype=tf.float32, shape=[2], reduction_type=kind
        )
        return _accumulate(tf, raw, handle, "")

    return [_after(tf, lambda kind=k: build(kind)) for k in ("MEAN", "SUM")]


@row(
    "ResourceConditionalAccumulator ResourceAccumulatorApplyGradient"
    " ResourceAccumulatorTakeGradient ResourceAccumulatorNumAccumulated"
    " ResourceAccumulatorSetGlobalStep"
)
def resource_accumulators(tf, raw):
    def build():
        handle = raw.ResourceConditionalAccumulator(dtype=tf.float32, shape=[2])
        return _accumulate(tf, raw, handle, "Resource")

    return _after(tf, build)


@row(
    "SparseConditionalAccumulator SparseAccumulatorApplyGradient"
    " SparseAccumulatorTakeGradient"
)
def sparse_accumulators(tf, raw):
    def build(kind):
        handle = raw.SparseConditionalAccumulator(
            dtype=tf.float32, shape=[4, 2], reduction_type=kind
        )

        def add(rows, values):
            return raw.SparseAccumulatorApplyGradient(
                handle=handle,
                local_step=_long(tf, 0),
                gradient_indices=_long(tf, rows),
                gradient_values=tf.constant(values),
                gradient_shape=_long(tf, [4, 2]),
                has_known_shape=True,
            )

        return [
            add([0, 2], [[1.0, 2.0], [3.0, 4.0]]),
            add([2, 3], [[10.0, 20.0], [30.0, 40.0]]),
            raw.SparseAccumulatorTakeGradient(
                handle=handle, num_required=2, dtype=tf.float32
            ),
        ]

    return [_after(tf, lambda kind=k: build(kind)) for k in ("MEAN", "SUM")]


@row(
    "Barrier BarrierInsertMany BarrierTakeMany BarrierReadySize"
    " BarrierIncompleteSize BarrierClose"
)
def barrier_by_key(tf, raw):
    def build():
        types = [tf.float32, tf.int32]
        barrier = raw.Barrier(component_types=types, shapes=[[2], []])

        def put(keys, values, i):
            return raw.BarrierInsertMany(
                handle=barrier, keys=keys, values=values, component_index=i
            )

        def take(n, **more):
            return raw.BarrierTakeMany(
                handle=barrier, num_elements=n, component_types=types, **more
            )

        sizes = [
            raw.BarrierReadySize(handle=barrier),
            raw.BarrierIncompleteSize(handle=barrier),
        ]
        return [
            put(["a", "b", "c"], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], 0),
            put(["d"], [4], 1),
            sizes,
            put(["d", "x"], [[7.0, 8.0], [0.0, 0.0]], 0),
            put(["c", "a"], [30, 10], 1),
            sizes,
            take(2),  # of the earlier batch
            take(1),
            put(["b"], [20], 1),
            raw.BarrierClose(handle=barrier),
            sizes,
            take(1, allow_small_batch=True),
        ]

    return _after(tf, build)


@row("Stage Unstage StagePeek StageSize StageClear")
def staging_areas(tf, raw):
    def build():
        area = {"shared_name": "area"}
        kind = {"dtypes": [tf.float32, tf.int32], **area}
        size = raw.StageSize(**kind)
        return [
            raw.Stage(values=[tf.constant([1.0, 2.0]), 3], **area),
            raw.Stage(values=[tf.constant([4.0]), 5], **area),
            size,
            raw.StagePeek(index=1, **kind),
            raw.Unstage(**kind),
            size,
            raw.StageClear(**kind),
            size,
        ]

    return _after(tf, build)


def _staged_by_key(tf, raw, prefix):
    def op(name):
        return getattr(raw, prefix + name)

    def build():
        kind = {"dtypes": [tf.float32, tf.int32], "shared_name": prefix}

        def put(key, indices, values):
            return op("Stage")(
                key=_long(tf, key), indices=indices, values=values, **kind
            )

        sizes = [op("Size")(**kind), op("IncompleteSize")(**kind)]
        return [
            put(7, [0, 1], [tf.constant([1.0, 2.0]), 3]),
            put(2, [1], [4]),
            sizes,
            put(2, [0], [tf.constant([9.0])]),
            sizes,
            op("Peek")(key=_long(tf, 7), indices=[0, 1], **kind),
            op("Unstage")(key=_long(tf, 7), indices=[0, 1], **kind),
            op("UnstageNoKey")(indices=[0, 1], **kind),
            put(5, [1], [4]),
            op("Clear")(**kind),
            sizes,
        ]

    return _after(tf, build)


@row("MapStage MapUnstage MapUnstageNoKey MapPeek MapSize MapIncompleteSize MapClear")
def staging_maps(tf, raw):
    return _staged_by_key(tf, raw, "Map")


@row(
    "OrderedMapStage OrderedMapUnstage OrderedMapUnstageNoKey OrderedMapPeek"
    " OrderedMapSize OrderedMapIncompleteSize OrderedMapClear"
)
def ordered_staging_maps(tf, raw):
    return _staged_by_key(tf, raw, "OrderedMap")


@row("GetSessionHandle GetSessionTensor DeleteSessionTensor")
def session_tensors(tf, raw):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        kept = raw.GetSessionHandle(value=tf.constant([[1.0, 2.0]]) * 3.0)
        handle = session.run(kept)
        if not isinstance(handle, bytes):  # sessions may wrap it
            handle = handle.handle
        name = tf.compat.v1.placeholder(tf.string, [])
        value = raw.GetSessionTensor(handle=name, dtype=tf.float32)
        gone = raw.DeleteSessionTensor(handle=name)
        found = session.run(value + 1.0, {name: handle})
        session.run(gone, {name: handle})
        try:
            session.run(value, {name: handle})
        except tf.errors.InvalidArgumentError:
            return found


@formula("GetSessionHandleV2")
def session_handles(tf, raw):
    """TensorFlow takes such handles nowhere."""
    size = in_graph(tf, lambda: tf.size(raw.GetSessionHandleV2(value=[1.0])))
    return [size, np.int32(1)]


@row("MutexV2 MutexLock ConsumeMutexLock")
def locks(tf, raw):
    mutex = raw.MutexV2(shared_name="row_of_mutexes")
    for _ in range(3):  # it is free again each time
        lock = raw.MutexLock(mutex=mutex)
        raw.ConsumeMutexLock(mutex_lock=lock)
        del lock
    return tf.constant(3)


@row("AddSparseToTensorsMap AddManySparseToTensorsMap TakeManySparseFromTensorsMap")
def kept_sparse_tensors(tf, raw):
    def build():
        kind = {"container": "", "shared_name": "kept_of_rows"}
        one = raw.AddSparseToTensorsMap(
            sparse_indices=_long(tf, [[1], [3]]),
            sparse_values=[1.0, 2.0],
            sparse_shape=_long(tf, [5]),
            **kind,
        )
        many = raw.AddManySparseToTensorsMap(
            sparse_indices=_long(tf, [[0, 2], [2, 0], [2, 6]]),
            sparse_values=[7.0, 8.0, 9.0],
            sparse_shape=_long(tf, [3, 7]),
            **kind,
        )
        all_of_them = tf.concat([many, [one]], 0)
        taken = raw.TakeManySparseFromTensorsMap(
            sparse_handles=all_of_them, dtype=tf.float32, **kind
        )
        return [taken]

    return _after(tf, build)


# --- Summaries.


@row("AudioSummaryV2 TensorSummary TensorSummaryV2")
def sounds_and_tensors_as_summaries(tf, raw):
    x = tf.constant([[[0.1, 0.2], [0.3, -1.5]], [[0.0, 0.5], [1.0, -0.25]]])
    return [
        raw.AudioSummaryV2(tag="a", tensor=x, sample_rate=8.0),
        raw.AudioSummaryV2(tag="a", tensor=x[0], sample_rate=8.0, max_outputs=1),
        raw.TensorSummary(tensor=tf.constant([1.0, 2.0]), description="d"),
        raw.TensorSummaryV2(
            tag="t", tensor=["x", "y"], serialized_summary_metadata=b"\x12\x01x"
        ),
    ]


@row("AudioSummary")
def sound_of_an_old_graph(tf, raw):
    x = np.float32([[0.1, -0.5, 0.25]])
    inputs = {"tag": b"a", "tensor": x}
    return of_old_graph(tf, raw, "AudioSummary", inputs, 14, sample_rate=4.0)


def _images(tf, bytes_of_summary):
    summary = tf.compat.v1.Summary.FromString(bytes_of_summary)
    return [
        [
            value.tag,
            np.int32([value.image.height, value.image.width, value.image.colorspace]),
            tf.io.decode_png(value.image.encoded_image_string),
        ]
        for value in summary.value
    ]


@row("ImageSummary")
def image_summaries(tf, raw):
    pictures = [
        np.float32([[[[0.1], [0.2]], [[0.5], [2.0]]]]),
        np.float32([[[[-0.1], [0.2]], [[0.5], [2.0]]]]),
        np.float64([[[[np.nan, 1, 2], [0.2, 1, 2]]]]),
        np.float16([[[[0.1], [0.2]]], [[[0.0], [0.0]]]]),
        np.uint8([[[[7], [200]]], [[[1], [2]]]]),
    ]
    found = in_graph(
        tf, lambda: [raw.ImageSummary(tag="a/b", tensor=x) for x in pictures]
    )
    return [_images(tf, x) for x in found]


@row("WriteImageSummary WriteAudioSummary WriteHistogramSummary")
def written_summaries(tf, raw):
    import pathlib
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        writer = raw.SummaryWriter(shared_name=folder)
        raw.CreateSummaryFileWriter(
            writer=writer,
            logdir=folder,
            max_queue=1,
            flush_millis=1,
            filename_suffix="",
        )
        at = {"writer": writer, "step": _long(tf, 3)}
        raw.WriteImageSummary(
            **at,
            tag="i",
            tensor=[[[[0.1], [0.2]]]],
            bad_color=tf.constant([1, 2, 3, 4], tf.uint8),
        )
        raw.WriteAudioSummary(**at, tag="s", tensor=[[[0.1], [0.2]]], sample_rate=4.0)
        raw.WriteHistogramSummary(**at, tag="h", values=[1.0, 2.0, 3.0])
        raw.CloseSummaryWriter(writer=writer)
        (path,) = pathlib.Path(folder).iterdir()
        events = list(tf.compat.v1.train.summary_iterator(str(path)))[1:]
        found = _images(tf, events[0].summary.SerializeToString())
        for event in events[1:]:
            found += [np.int64(event.step), event.summary.SerializeToString()]
        return found


# --- What the debugger puts into graphs.


@row(
    "DebugIdentity DebugIdentityV2 DebugIdentityV3 DebugGradientIdentity"
    " DebugNanCount DebugNumericSummary DebugNumericSummaryV2"
)
def watched_tensors(tf, raw):
    x = tf.constant([[np.nan, 1, -2], [0, np.inf, -np.inf], [3, 4, 0]], tf.float32)
    name = {"tensor_name": "a:0"}
    summary = raw.DebugNumericSummary
    return [
        raw.DebugIdentity(input=x[2], **name),
        raw.DebugIdentityV2(input=x[2]),
        raw.DebugIdentityV3(input=x[2], **name),
        raw.DebugGradientIdentity(input=x[2]),
        raw.DebugNanCount(input=x, **name),
        raw.DebugNanCount(input=[1, 2], **name),
        summary(input=x, **name),
        summary(input=x, lower_bound=-1.0, upper_bound=3.0, **name),
        summary(input=[1, 2, 3, -4], **name),
        summary(input=[True, False], **name),
        summary(input=np.zeros([0, 2], np.float32), **name),
        [
            raw.DebugNumericSummaryV2(input=x, tensor_debug_mode=mode, tensor_id=7)
            for mode in (2, 3, 4, 5, 8)
        ],
    ]


@row("DebugGradientRefIdentity")
def watched_references(tf, raw):
    def build():
        ref = raw.VariableV2(shape=[2], dtype=tf.float32)
        put = raw.Assign(ref=ref, value=[1.0, 2.0])
        return tf.identity(raw.DebugGradientRefIdentity(input=put))

    return in_graph(tf, build)
