"""Rows of ops in older forms: of removed versions, and with handles that are
references."""

import pathlib
import tempfile

import numpy as np
from rows import formula, of_old_graph, old_graph, row, wave


def _long(tf, values):
    return tf.constant(values, tf.int64)


def _after(tf, build):
    """A session runs each of the operations by turns; what they give."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        found = [session.run(x) for x in build()]
    return [x for x in tf.nest.flatten(found) if x is not None]


# --- Linear algebra and transforms of graphs up to version 14.

_SQUARE = np.float64([[[4.0, 1.0], [1.0, 3.0]], [[2.0, -0.5], [-0.5, 5.0]]])
_LOWER = np.float64([[[2.0, 0.0], [0.5, 1.5]], [[1.0, 0.0], [-2.0, 3.0]]])
_RIGHT = np.float64([[[1.0], [2.0]], [[-3.0], [0.5]]])


def _old_matrix(tf, raw, op, inputs, producer=12, **attrs):
    inputs = {name: x for name, x in zip("abc", inputs, strict=False)}
    return of_old_graph(tf, raw, op, inputs, producer, T=tf.float64, **attrs)


@row(
    "BatchCholesky BatchCholeskyGrad BatchMatrixDeterminant BatchMatrixInverse"
    " BatchMatrixSolve BatchMatrixSolveLs BatchMatrixTriangularSolve"
)
def matrices_of_old_graphs(tf, raw):
    def of(op, *inputs, **attrs):
        return _old_matrix(tf, raw, op, inputs, **attrs)

    return [
        of("BatchCholesky", _SQUARE),
        of("BatchCholeskyGrad", _LOWER, _LOWER * 0.3),
        of("BatchMatrixDeterminant", _SQUARE),
        of("BatchMatrixInverse", _SQUARE, adjoint=False),
        of("BatchMatrixSolve", _SQUARE, _RIGHT, adjoint=True),
        of("BatchMatrixSolveLs", _SQUARE, _RIGHT, np.float64(0.25), fast=True),
        of("BatchMatrixTriangularSolve", _LOWER, _RIGHT, lower=True, adjoint=False),
    ]


@row("BatchSelfAdjointEig BatchSelfAdjointEigV2 SelfAdjointEig BatchSvd")
def spectra_of_old_graphs(tf, raw):
    one = np.float64([[4.0, 1.0], [1.0, 3.0]])
    found = [
        _old_matrix(tf, raw, "SelfAdjointEig", [one], 10)[0],
        _old_matrix(tf, raw, "BatchSelfAdjointEig", [_SQUARE], 10)[0],
    ]
    # Vectors are only known up to their signs.
    found = [np.concatenate([x[..., :1, :], np.abs(x[..., 1:, :])], -2) for x in found]
    e, v = _old_matrix(tf, raw, "BatchSelfAdjointEigV2", [_SQUARE], compute_v=True)
    s, u, w = _old_matrix(
        tf, raw, "BatchSvd", [_SQUARE], compute_uv=True, full_matrices=False
    )
    return [*found, e, np.abs(v), s, np.abs(u), np.abs(w)]


@formula("BatchFFT BatchFFT2D BatchFFT3D BatchIFFT BatchIFFT2D BatchIFFT3D")
def transforms_of_old_graphs(tf, raw):
    """TensorFlow has them on GPUs alone."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = (np.sin(x) + 1j * np.cos(x * 0.7)).astype(np.complex64)
    found = []
    for inverse in ("", "I"):
        for axes in ((2,), (1, 2), (0, 1, 2)):
            name = f"Batch{inverse}FFT{['', '2D', '3D'][len(axes) - 1]}"
            numpy = np.fft.ifftn if inverse else np.fft.fftn
            found += [
                of_old_graph(tf, raw, name, {"x": x}, 14)[0],
                numpy(x, axes=axes).astype(np.complex64),
            ]
    return found


@row("BatchNormWithGlobalNormalizationGrad")
def batch_norm_slopes_of_old_graphs(tf, raw):
    x = np.sin(np.arange(12, dtype=np.float32)).reshape(1, 2, 2, 3)
    rows = np.float32([[0.1, -0.2, 0.3], [1.0, 0.5, 2.0], [0.7, 1.1, -0.4]])
    found = []
    for scaled in (True, False):
        found += of_old_graph(
            tf,
            raw,
            "BatchNormWithGlobalNormalizationGrad",
            {"t": x, "m": rows[0], "v": rows[1], "gamma": rows[2], "backprop": x * 0.3},
            8,
            T=tf.float32,
            variance_epsilon=0.01,
            scale_after_normalization=scaled,
        )
    # What flows to gamma is said only where it is used.
    return found[:9]


# --- Queues, readers, tables, stacks and arrays by reference.


@row(
    "FIFOQueue QueueEnqueue QueueEnqueueMany QueueDequeue QueueDequeueMany"
    " QueueDequeueUpTo QueueSize QueueClose QueueIsClosed"
)
def queues_by_reference(tf, raw):
    def build():
        types = [tf.float32, tf.int32]
        queue = raw.FIFOQueue(component_types=types, shapes=[[2], []])
        return [
            raw.QueueEnqueue(handle=queue, components=[[1.0, 2.0], 3]),
            raw.QueueEnqueueMany(
                handle=queue, components=[wave(tf, 4, 2), tf.range(4)]
            ),
            raw.QueueSize(handle=queue),
            raw.QueueDequeue(handle=queue, component_types=types),
            raw.QueueDequeueMany(handle=queue, component_types=types, n=2),
            raw.QueueIsClosed(handle=queue),
            raw.QueueClose(handle=queue),
            raw.QueueIsClosed(handle=queue),
            raw.QueueDequeueUpTo(handle=queue, component_types=types, n=5),
        ]

    return _after(tf, build)


@row("PaddingFIFOQueue PriorityQueue RandomShuffleQueue FakeQueue")
def other_queues_by_reference(tf, raw):
    def build():
        padded = raw.PaddingFIFOQueue(component_types=[tf.int32], shapes=[[None]])
        by_rank = raw.PriorityQueue(component_types=[tf.int32], shapes=[[]])
        shuffled = raw.RandomShuffleQueue(
            component_types=[tf.int32], shapes=[[]], seed=3, seed2=4
        )
        plain = raw.FIFOQueueV2(component_types=[tf.int32], shapes=[[]])
        fake = raw.FakeQueue(resource=plain)
        return [
            raw.QueueEnqueue(handle=padded, components=[[1, 2, 3]]),
            raw.QueueEnqueue(handle=padded, components=[[4]]),
            raw.QueueDequeueMany(handle=padded, component_types=[tf.int32], n=2),
            raw.QueueEnqueueMany(
                handle=by_rank, components=[_long(tf, [3, 1, 2]), tf.range(3)]
            ),
            raw.QueueDequeueMany(
                handle=by_rank, component_types=[tf.int64, tf.int32], n=3
            ),
            raw.QueueEnqueueMany(handle=shuffled, components=[tf.range(6)]),
            raw.QueueDequeueMany(handle=shuffled, component_types=[tf.int32], n=6),
            raw.QueueEnqueue(handle=fake, components=[7]),
            raw.QueueDequeueV2(handle=plain, component_types=[tf.int32]),
        ]

    return _after(tf, build)


def _read_by_reference(tf, raw, reader, attrs, path, times=3):
    nodes = [
        ("reader", reader, [], attrs),
        (
            "queue",
            "FIFOQueue",
            [],
            {"component_types": [tf.string], "shapes": [tf.TensorShape([])]},
        ),
        (
            "put",
            "QueueEnqueue",
            ["queue", np.array(str(path).encode(), object)],
            {"Tcomponents": [tf.string]},
        ),
        ("read", "ReaderRead", ["reader", "queue"], {}),
        ("some", "ReaderReadUpTo", ["reader", "queue", np.int64(2)], {}),
        ("count", "ReaderNumRecordsProduced", ["reader"], {}),
        ("units", "ReaderNumWorkUnitsCompleted", ["reader"], {}),
    ]
    steps = [["put"], *[["read:1"]] * (times - 1), ["some:1"], ["count:0", "units:0"]]
    return old_graph(tf, raw, 25, nodes, steps)


@row(
    "TextLineReader WholeFileReader TFRecordReader"
    " ReaderRead ReaderReadUpTo ReaderNumRecordsProduced ReaderNumWorkUnitsCompleted"
)
def readers_by_reference(tf, raw):
    with tempfile.TemporaryDirectory() as folder:
        path, records = pathlib.Path(folder, "text"), pathlib.Path(folder, "records")
        path.write_text("ab\ncd\nef\ngh\nij\n")
        with tf.io.TFRecordWriter(str(records)) as writer:
            for text in ("x", "yy", "zzz", "w", "v"):
                writer.write(text)

        def read(reader, attrs=None, path=path, times=3):
            return _read_by_reference(tf, raw, reader, attrs or {}, path, times)

        return [
            read("TextLineReader", {"skip_header_lines": 1}),
            read("WholeFileReader", times=1),
            read("TFRecordReader", path=records),
        ]


@formula("FixedLengthRecordReader")
def fixed_records_by_reference(tf, raw):
    """TensorFlow's kernel asks for an attribute that the op does not have."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "text")
        path.write_text("ab\ncd\nef\ngh\nij\n")
        fixed = {"record_bytes": 3, "header_bytes": 1}
        name = "FixedLengthRecordReader"
        found = _read_by_reference(tf, raw, name, fixed, path)
    wanted = [b"b\nc", b"d\ne", np.array([b"f\ng", b"h\ni"], object), 4, 0]
    return [x for pair in zip(found, wanted, strict=True) for x in pair]


@row("IdentityReader ReaderSerializeState ReaderRestoreState ReaderReset")
def reader_states_by_reference(tf, raw):
    kinds = {"component_types": [tf.string], "shapes": [tf.TensorShape([])]}
    words = np.array([b"a", b"b", b"c"], object)
    state = np.array(b"\x08\x01\x10\x01\x18\x01", object)
    nodes = [
        ("reader", "IdentityReader", [], {}),
        ("queue", "FIFOQueue", [], kinds),
        ("put", "QueueEnqueueMany", ["queue", words], {"Tcomponents": [tf.string]}),
        ("read", "ReaderRead", ["reader", "queue"], {}),
        ("state", "ReaderSerializeState", ["reader"], {}),
        ("back", "ReaderRestoreState", ["reader", state], {}),
        ("reset", "ReaderReset", ["reader"], {}),
        ("count", "ReaderNumRecordsProduced", ["reader"], {}),
    ]
    steps = [["put"], ["read:1"], ["state:0"], ["read:1"], ["count:0"], ["back"]]
    steps += [["count:0"], ["reset"], ["count:0"]]
    return old_graph(tf, raw, 25, nodes, steps)


@row("Stack StackPush StackPop StackClose")
def stacks_by_reference(tf, raw):
    def build():
        stack = raw.Stack(elem_type=tf.float32)
        first = raw.StackPush(handle=stack, elem=[1.0, 2.0])
        with tf.control_dependencies([first]):
            second = raw.StackPush(handle=stack, elem=[3.0])
        with tf.control_dependencies([second]):
            top = raw.StackPop(handle=stack, elem_type=tf.float32)
        with tf.control_dependencies([top]):
            last = raw.StackPop(handle=stack, elem_type=tf.float32)
        with tf.control_dependencies([last]):
            end = raw.StackClose(handle=stack)
        with tf.control_dependencies([end]):
            return [[tf.identity(top), tf.identity(last), first]]

    return _after(tf, build)


def _array_nodes(tf, size):
    value, flow = np.float32([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.float32(0)
    kind, types = {"dtype": tf.float32}, {"T": tf.float32}
    rows = np.int32([2, 0, 1])
    return [
        ("array", "TensorArray", [np.int32(size)], kind | {"clear_after_read": False}),
        ("put", "TensorArrayScatter", ["array", rows, value, flow], types),
        ("one", "TensorArrayRead", ["array", np.int32(1), "put"], kind),
        ("some", "TensorArrayGather", ["array", np.int32([1, 2]), "put"], kind),
        ("all", "TensorArrayPack", ["array", "put"], kind),
        ("joined", "TensorArrayConcat", ["array", "put"], kind),
        ("size", "TensorArraySize", ["array", "put"], {}),
        ("other", "TensorArray", [np.int32(size)], kind),
        ("spread", "TensorArrayUnpack", ["other", value * 2, flow], types),
        ("its", "TensorArrayPack", ["other", "spread"], kind),
        ("third", "TensorArray", [np.int32(size)], kind),
        (
            "cut",
            "TensorArraySplit",
            ["third", value[0], np.int64([1, 0, 1]), flow],
            types,
        ),
        ("piece", "TensorArrayRead", ["third", np.int32(2), "cut"], kind),
        ("fourth", "TensorArray", [np.int32(1)], kind),
        ("w", "TensorArrayWrite", ["fourth", np.int32(0), value[1], flow], types),
        ("r", "TensorArrayRead", ["fourth", np.int32(0), "w"], kind),
        ("end", "TensorArrayClose", ["fourth", "^r"], {}),
    ]


@row(
    "TensorArray TensorArrayWrite TensorArrayRead TensorArrayGather"
    " TensorArrayScatter TensorArrayConcat TensorArraySplit TensorArraySize"
    " TensorArrayClose TensorArrayPack TensorArrayUnpack"
)
def arrays_by_reference(tf, raw):
    # An element of a vector is what Concat joins.
    fetches = "one some all joined:0 joined:1 size its piece r".split()
    names = [x if ":" in x else x + ":0" for x in fetches]
    found = old_graph(tf, raw, 15, _array_nodes(tf, 3), [names])
    return found + old_graph(tf, raw, 15, _array_nodes(tf, 3), [["r:0", "end"]])


@row(
    "HashTable InitializeTable LookupTableFind LookupTableSize LookupTableExport"
    " MutableHashTable MutableHashTableOfTensors LookupTableInsert LookupTableImport"
)
def tables_by_reference(tf, raw):
    def build():
        fixed = raw.HashTable(key_dtype=tf.string, value_dtype=tf.int64)
        types = {"key_dtype": tf.int64, "value_dtype": tf.float32}
        scalars = raw.MutableHashTable(**types)
        rows = raw.MutableHashTableOfTensors(**types, value_shape=[2])
        steps = [
            raw.InitializeTable(
                table_handle=fixed, keys=["a", "b"], values=_long(tf, [5, 7])
            ),
            raw.LookupTableFind(
                table_handle=fixed, keys=["b", "x"], default_value=_long(tf, -1)
            ),
            raw.LookupTableSize(table_handle=fixed),
        ]
        for table, shape in ((scalars, []), (rows, [2])):
            find = raw.LookupTableFind(
                table_handle=table,
                keys=_long(tf, [1, 2, 4]),
                default_value=tf.fill(shape, -1.0),
            )
            steps += [
                raw.LookupTableInsert(
                    table_handle=table,
                    keys=_long(tf, [1, 2]),
                    values=wave(tf, 2, *shape),
                ),
                find,
                raw.LookupTableImport(
                    table_handle=table, keys=_long(tf, [4]), values=wave(tf, 1, *shape)
                ),
                find,
                raw.LookupTableExport(
                    table_handle=table, Tkeys=tf.int64, Tvalues=tf.float32
                ),
            ]
        return steps

    return _after(tf, build)


@row("InitializeTableFromTextFile")
def table_of_a_file_by_reference(tf, raw):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "words")
        path.write_text("a 3\nb 5\n")

        def build():
            table = raw.HashTable(key_dtype=tf.string, value_dtype=tf.int64)
            return [
                raw.InitializeTableFromTextFile(
                    table_handle=table,
                    filename=str(path),
                    key_index=0,
                    value_index=1,
                    delimiter=" ",
                ),
                raw.LookupTableFind(
                    table_handle=table,
                    keys=["b", "a", "x"],
                    default_value=_long(tf, -1),
                ),
            ]

        return _after(tf, build)


@row("CountUpTo TemporaryVariable DestroyTemporaryVariable RefSelect")
def other_references(tf, raw):
    def build():
        counter = raw.VariableV2(shape=[], dtype=tf.int64)
        count = raw.CountUpTo(ref=counter, limit=10)
        begun = raw.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="t")
        set_to = raw.Assign(ref=begun, value=[1.0, 2.0])
        grown = raw.AssignAdd(ref=set_to, value=[0.5, 0.25])
        pair = [raw.VariableV2(shape=[2], dtype=tf.float32) for _ in range(2)]
        put = [
            raw.Assign(ref=v, value=x)
            for v, x in zip(pair, ([1.0, 2.0], [3.0, 4.0]), strict=True)
        ]
        return [
            raw.Assign(ref=counter, value=_long(tf, 3)),
            count,
            count,
            raw.DestroyTemporaryVariable(ref=grown, var_name="t"),
            put,
            tf.identity(raw.RefSelect(index=1, inputs=pair)),
        ]

    return _after(tf, build)
