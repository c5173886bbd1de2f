"""Rows of variables of graphs, tables, queues, readers and random numbers."""

import pathlib
import tempfile

import numpy as np
from rows import in_graph, of_old_graph, row, wave


def _long(tf, values):
    return tf.constant(values, tf.int64)


def _begun(tf, raw, values, make="VariableV2"):
    """A variable with these values: its reference, after they were assigned."""
    ref = getattr(raw, make)(shape=np.shape(values), dtype=tf.float32)
    return raw.Assign(ref=ref, value=tf.constant(values, tf.float32))


def _after(tf, build):
    """A session runs each of the operations by turns."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return [session.run(x) for x in build()]


@row("VariableV2 Variable Assign AssignAdd AssignSub IsVariableInitialized RefIdentity")
def references(tf, raw):
    def build():
        ref = raw.VariableV2(shape=[2], dtype=tf.float32)
        old = raw.Variable(shape=[2], dtype=tf.float32)
        return [
            raw.IsVariableInitialized(ref=ref),
            raw.Assign(ref=ref, value=[1.0, 2.0]),
            raw.Assign(ref=old, value=[5.0, 6.0]),
            raw.AssignAdd(ref=ref, value=[0.5, 0.25]),
            raw.AssignSub(ref=old, value=[0.5, 0.25]),
            raw.IsVariableInitialized(ref=ref),
            raw.RefIdentity(input=ref),
            raw.RefIdentity(input=old),
        ]

    return _after(tf, build)


@row(
    "ScatterAdd ScatterDiv ScatterMax ScatterMin ScatterMul ScatterSub ScatterUpdate"
    " ScatterNdNonAliasingAdd StridedSliceAssign"
)
def scattered(tf, raw):
    def build():
        x = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
        how = {"indices": [2, 0], "updates": [[0.5, 9.0], [-2.0, 3.0]]}
        names = "Add Div Max Min Mul Sub Update".split()
        made = [
            getattr(raw, "Scatter" + n)(ref=_begun(tf, raw, x), **how) for n in names
        ]
        part = raw.StridedSliceAssign(
            ref=_begun(tf, raw, x),
            begin=[0, 1],
            end=[3, 2],
            strides=[2, 1],
            value=[[7.0], [8.0]],
        )
        add = raw.ScatterNdNonAliasingAdd(
            input=tf.constant(x), indices=[[1], [1]], updates=how["updates"]
        )
        return [*made, part, add]

    return in_graph(tf, build)


# What each update has beside `var` and `grad`: states, then numbers.
_UPDATES = {
    "AdaMax": ("m v", "beta1_power=0.8 lr=0.1 beta1=0.9 beta2=0.99 epsilon=0.01"),
    "Adadelta": ("accum accum_update", "lr=0.1 rho=0.9 epsilon=0.01"),
    "Adagrad": ("accum", "lr=0.1"),
    "AdagradDA": (
        "gradient_accumulator gradient_squared_accumulator",
        "lr=0.1 l1=0.01 l2=0.02 global_step=2",
    ),
    "AdagradV2": ("accum", "lr=0.1 epsilon=0.01"),
    "Adam": (
        "m v",
        "beta1_power=0.8 beta2_power=0.9 lr=0.1 beta1=0.9 beta2=0.99 epsilon=0.01",
    ),
    "AddSign": ("m", "lr=0.1 alpha=1.5 sign_decay=0.9 beta=0.8"),
    "CenteredRMSProp": ("mg ms mom", "lr=0.1 rho=0.9 momentum=0.5 epsilon=0.01"),
    "Ftrl": ("accum linear", "lr=0.1 l1=0.01 l2=0.02 lr_power=-0.5"),
    "FtrlV2": (
        "accum linear",
        "lr=0.1 l1=0.01 l2=0.02 l2_shrinkage=0.03 lr_power=-0.5",
    ),
    "GradientDescent": ("", "alpha=0.1"),
    "Momentum": ("accum", "lr=0.1 momentum=0.5"),
    "PowerSign": ("m", "lr=0.1 logbase=1.5 sign_decay=0.9 beta=0.8"),
    "ProximalAdagrad": ("accum", "lr=0.1 l1=0.01 l2=0.02"),
    "ProximalGradientDescent": ("", "alpha=0.1 l1=0.01 l2=0.02"),
    "RMSProp": ("ms mom", "lr=0.1 rho=0.9 momentum=0.5 epsilon=0.01"),
}
_START = np.float32([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]])
_DENSE_ONLY = ("AdaMax", "Adam", "AddSign", "GradientDescent", "PowerSign")


def _update(tf, raw, name, sparse):
    """The variable and its states after two steps."""
    states, numbers = _UPDATES[name]
    # The mean of squares is at least the square of the mean.
    starts = {"mg": 0.1, "ms": 0.5}
    refs = {
        s: _begun(tf, raw, np.full([3, 2], starts.get(s, 0.4))) for s in states.split()
    }
    refs["var"] = _begun(tf, raw, _START)
    given = {}
    for pair in numbers.split():
        key, value = pair.split("=")
        given[key] = (
            _long(tf, int(value)) if key == "global_step" else tf.constant(float(value))
        )
    grad = wave(tf, 2 if sparse else 3, 2, phase=2.0)
    slope = "delta" if "GradientDescent" in name and not sparse else "grad"
    given[slope] = grad
    if sparse:
        given["indices"] = tf.constant([2, 0])
    op = getattr(raw, ("SparseApply" if sparse else "Apply") + name)
    with tf.control_dependencies(list(refs.values())):
        first = op(**refs, **given)
    with tf.control_dependencies([first]):
        second = op(**refs, **given)
    with tf.control_dependencies([second]):
        return [tf.identity(second)]


def _updates(tf, raw, sparse):
    def build():
        return [
            _update(tf, raw, name, sparse)
            for name in _UPDATES
            if not (sparse and name in _DENSE_ONLY)
        ]

    return in_graph(tf, build)


@row(" ".join("Apply" + name for name in _UPDATES))
def updates(tf, raw):
    return _updates(tf, raw, False)


@row(" ".join("SparseApply" + n for n in _UPDATES if n not in _DENSE_ONLY))
def updates_of_rows(tf, raw):
    return _updates(tf, raw, True)


# --- Tables.


@row(
    "HashTableV2 InitializeTableV2 LookupTableFindV2 LookupTableSizeV2"
    " LookupTableExportV2 AnonymousHashTable"
)
def hash_tables(tf, raw):
    types = {"key_dtype": tf.string, "value_dtype": tf.int64}
    found = []
    for table in (
        raw.HashTableV2(**types, shared_name="table_of_rows"),
        raw.AnonymousHashTable(**types),
    ):
        raw.InitializeTableV2(
            table_handle=table, keys=["a", "b"], values=_long(tf, [5, 7])
        )
        keys, values = raw.LookupTableExportV2(
            table_handle=table, Tkeys=tf.string, Tvalues=tf.int64
        )
        found += [
            raw.LookupTableFindV2(
                table_handle=table, keys=["b", "x"], default_value=_long(tf, -1)
            ),
            raw.LookupTableSizeV2(table_handle=table),
            np.sort(keys.numpy()),
            np.sort(values.numpy()),
        ]
    return found


@row(
    "MutableHashTableV2 MutableHashTableOfTensorsV2 LookupTableInsertV2"
    " LookupTableRemoveV2 LookupTableImportV2 AnonymousMutableHashTable"
    " AnonymousMutableHashTableOfTensors"
)
def mutable_tables(tf, raw):
    types = {"key_dtype": tf.int64, "value_dtype": tf.float32}
    found = []
    for table, shape in (
        (raw.MutableHashTableV2(**types), []),
        (raw.AnonymousMutableHashTable(**types), []),
        (raw.MutableHashTableOfTensorsV2(**types, value_shape=[2]), [2]),
        (raw.AnonymousMutableHashTableOfTensors(**types, value_shape=[2]), [2]),
    ):

        def find(keys, table=table, shape=shape):
            return raw.LookupTableFindV2(
                table_handle=table,
                keys=_long(tf, keys),
                default_value=tf.fill(shape, -1.0),
            )

        raw.LookupTableInsertV2(
            table_handle=table, keys=_long(tf, [1, 2, 3]), values=wave(tf, 3, *shape)
        )
        raw.LookupTableRemoveV2(table_handle=table, keys=_long(tf, [2, 9]))
        found += [find([1, 2, 3]), raw.LookupTableSizeV2(table_handle=table)]
        raw.LookupTableImportV2(
            table_handle=table, keys=_long(tf, [4]), values=wave(tf, 1, *shape)
        )
        found.append(find([1, 4]))
    return found


@row("InitializeTableFromTextFileV2")
def table_of_a_file(tf, raw):
    table = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "words")
        path.write_text("a 3\nb 5\n")
        raw.InitializeTableFromTextFileV2(
            table_handle=table,
            filename=str(path),
            key_index=0,
            value_index=1,
            delimiter=" ",
        )
    return raw.LookupTableFindV2(
        table_handle=table, keys=["b", "a", "x"], default_value=_long(tf, -1)
    )


# --- Queues.


@row(
    "FIFOQueueV2 QueueEnqueueV2 QueueEnqueueManyV2 QueueDequeueV2 QueueDequeueManyV2"
    " QueueDequeueUpToV2 QueueSizeV2 QueueCloseV2 QueueIsClosedV2"
)
def queues(tf, raw):
    def build():
        types = [tf.float32, tf.int32]
        queue = raw.FIFOQueueV2(component_types=types, shapes=[[2], []])
        return [
            raw.QueueEnqueueV2(handle=queue, components=[[1.0, 2.0], 3]),
            raw.QueueEnqueueManyV2(
                handle=queue, components=[wave(tf, 4, 2), tf.range(4)]
            ),
            raw.QueueSizeV2(handle=queue),
            raw.QueueDequeueV2(handle=queue, component_types=types),
            raw.QueueDequeueManyV2(handle=queue, component_types=types, n=2),
            raw.QueueIsClosedV2(handle=queue),
            raw.QueueCloseV2(handle=queue),
            raw.QueueIsClosedV2(handle=queue),
            raw.QueueDequeueUpToV2(handle=queue, component_types=types, n=5),
        ]

    return [x for x in tf.nest.flatten(_after(tf, build)) if x is not None]


@row("PaddingFIFOQueueV2 PriorityQueueV2 RandomShuffleQueueV2")
def other_queues(tf, raw):
    def build():
        padded = raw.PaddingFIFOQueueV2(component_types=[tf.int32], shapes=[[None]])
        by_rank = raw.PriorityQueueV2(component_types=[tf.int32], shapes=[[]])
        shuffled = raw.RandomShuffleQueueV2(
            component_types=[tf.int32], shapes=[[]], seed=3, seed2=4
        )
        return [
            raw.QueueEnqueueV2(handle=padded, components=[[1, 2, 3]]),
            raw.QueueEnqueueV2(handle=padded, components=[[4]]),
            raw.QueueDequeueManyV2(handle=padded, component_types=[tf.int32], n=2),
            raw.QueueEnqueueManyV2(
                handle=by_rank, components=[_long(tf, [3, 1, 2]), tf.range(3)]
            ),
            raw.QueueDequeueManyV2(
                handle=by_rank, component_types=[tf.int64, tf.int32], n=3
            ),
            raw.QueueEnqueueManyV2(handle=shuffled, components=[tf.range(6)]),
            raw.QueueDequeueManyV2(handle=shuffled, component_types=[tf.int32], n=6),
        ]

    return [x for x in tf.nest.flatten(_after(tf, build)) if x is not None]


# --- Readers.


def _read(tf, raw, reader, paths, times=3):
    """The keys (without folders) and values of some reads, and how many there were."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        handle = reader()
        queue = raw.FIFOQueueV2(component_types=[tf.string], shapes=[[]])
        more = {"reader_handle": handle, "queue_handle": queue}
        session.run(
            raw.QueueEnqueueManyV2(handle=queue, components=[[str(p) for p in paths]])
        )
        one = raw.ReaderReadV2(**more)
        some = raw.ReaderReadUpToV2(**more, num_records=_long(tf, 2))
        found = [session.run(one) for _ in range(times - 1)] + [session.run(some)]
        counts = [
            raw.ReaderNumRecordsProducedV2(reader_handle=handle),
            raw.ReaderNumWorkUnitsCompletedV2(reader_handle=handle),
        ]
        found = [
            np.array(
                [k.rpartition(b"/")[2] for k in np.ravel(keys)] + list(np.ravel(v))
            )
            for keys, v in found
        ]
        return [*found, *session.run(counts)]


@row(
    "TextLineReaderV2 WholeFileReaderV2 FixedLengthRecordReaderV2 TFRecordReaderV2"
    " ReaderReadV2 ReaderReadUpToV2 ReaderNumRecordsProducedV2"
    " ReaderNumWorkUnitsCompletedV2"
)
def readers(tf, raw):
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder, name) for name in "abcd"]
        for i, path in enumerate(paths):
            path.write_text("".join(f"{path.name}{i}{j}\n" for j in range(2)))
        records = pathlib.Path(folder, "records")
        with tf.io.TFRecordWriter(str(records)) as writer:
            for text in ("x", "yy", "zzz", "w"):
                writer.write(text)
        fixed = {"record_bytes": 3, "header_bytes": 1, "hop_bytes": 2}
        return [
            _read(tf, raw, lambda: raw.TextLineReaderV2(skip_header_lines=1), paths),
            _read(tf, raw, lambda: raw.WholeFileReaderV2(), paths),
            _read(tf, raw, lambda: raw.FixedLengthRecordReaderV2(**fixed), paths),
            _read(tf, raw, lambda: raw.TFRecordReaderV2(), [records]),
        ]


@row("IdentityReaderV2 ReaderSerializeStateV2 ReaderRestoreStateV2 ReaderResetV2")
def reader_states(tf, raw):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        handle = raw.IdentityReaderV2()
        queue = raw.FIFOQueueV2(component_types=[tf.string], shapes=[[]])
        session.run(raw.QueueEnqueueManyV2(handle=queue, components=[["a", "b", "c"]]))
        read = raw.ReaderReadV2(reader_handle=handle, queue_handle=queue)
        count = raw.ReaderNumRecordsProducedV2(reader_handle=handle)
        found = [session.run(read)]
        state = session.run(raw.ReaderSerializeStateV2(reader_handle=handle))
        found += [session.run(read), session.run(count)]
        session.run(raw.ReaderRestoreStateV2(reader_handle=handle, state=state))
        found.append(session.run(count))
        session.run(raw.ReaderResetV2(reader_handle=handle))
        found.append(session.run(count))
        return found


# --- Random numbers.


@row(
    "StatelessRandomUniformV2 StatelessRandomNormalV2 StatelessTruncatedNormalV2"
    " StatelessRandomUniformIntV2 StatelessRandomUniformFullIntV2"
    " StatelessRandomUniformFullInt StatelessRandomGetAlg StatelessRandomGetKeyCounter"
    " StatelessRandomGetKeyCounterAlg StatelessShuffle StatelessRandomGammaV3"
)
def stateless(tf, raw):
    key, counter = raw.StatelessRandomGetKeyCounter(seed=[3, 4])
    found = [key, counter, *raw.StatelessRandomGetKeyCounterAlg(seed=[5, 6])]
    found.append(raw.StatelessRandomGetAlg())
    more = {"shape": [2, 3], "key": key, "counter": counter, "alg": 1}
    found += [
        raw.StatelessRandomUniformV2(**more),
        raw.StatelessRandomNormalV2(**more, dtype=tf.float64),
        raw.StatelessTruncatedNormalV2(**more),
        raw.StatelessRandomUniformIntV2(**more, minval=-5, maxval=90),
        raw.StatelessRandomUniformFullIntV2(**more, dtype=tf.uint32),
        raw.StatelessRandomGammaV3(**more, alpha=[0.5, 2.0, 3.0]),
    ]
    found.append(
        raw.StatelessShuffle(value=tf.range(6), key=key, counter=counter, alg=1)
    )
    found.append(
        raw.StatelessRandomUniformFullInt(shape=[3], seed=[3, 4], dtype=tf.uint64)
    )
    return found


@row(
    "StatefulStandardNormalV2 StatefulTruncatedNormal"
    " StatefulUniform StatefulUniformFullInt StatefulUniformInt"
    " StatefulRandomBinomial RngSkip RngReadAndSkip"
)
def generators(tf, raw):
    state = tf.Variable(_long(tf, [1, 2, 3]))
    alg = {"resource": state.handle, "algorithm": _long(tf, 1)}
    more = {**alg, "shape": _long(tf, [2, 2])}
    found = [
        raw.StatefulStandardNormalV2(**more, dtype=tf.float64),
        raw.StatefulTruncatedNormal(**more, dtype=tf.float32),
        raw.StatefulUniform(**more, dtype=tf.float32),
        raw.StatefulUniformFullInt(**more, dtype=tf.uint64),
        raw.StatefulUniformInt(**more, minval=-4, maxval=50),
        raw.StatefulRandomBinomial(
            **alg, shape=[2, 2], counts=[9.0, 3.0], probs=[0.5, 0.2]
        ),
        state.read_value(),
    ]
    raw.RngSkip(**alg, delta=_long(tf, 7))
    found.append(state.read_value())
    found.append(
        raw.RngReadAndSkip(
            resource=state.handle, alg=1, delta=tf.constant(5, tf.uint64)
        )
    )
    return [*found, state.read_value()]


@row(
    "ParameterizedTruncatedNormal StatelessParameterizedTruncatedNormal RandomGamma"
    " RandomPoisson RandomPoissonV2 RandomUniformInt SobolSample"
)
def seeded(tf, raw):
    seeds = {"seed": 3, "seed2": 4}
    bounds = {"means": 1.0, "stddevs": 2.0, "minvals": -1.0, "maxvals": 2.5}
    few = {"shape": [3, 2]}
    return [
        raw.ParameterizedTruncatedNormal(
            shape=[4], means=1.0, stdevs=2.0, minvals=-1.0, maxvals=2.5, **seeds
        ),
        raw.StatelessParameterizedTruncatedNormal(shape=[4], seed=[3, 4], **bounds),
        raw.RandomGamma(**few, alpha=[0.5, 2.0], **seeds),
        of_old_graph(
            tf,
            raw,
            "RandomPoisson",
            {"shape": np.int32([3, 2]), "rate": np.float32([0.5, 12.0])},
            24,
            S=tf.int32,
            dtype=tf.float32,
            **seeds,
        ),
        raw.RandomPoissonV2(**few, rate=[0.5, 12.0], **seeds, dtype=tf.int32),
        raw.RandomUniformInt(**few, minval=-4, maxval=50, **seeds),
        raw.SobolSample(dim=3, num_results=4, skip=1),
    ]


@row(
    "AllCandidateSampler FixedUnigramCandidateSampler LearnedUnigramCandidateSampler"
    " ThreadUnsafeUnigramCandidateSampler"
)
def candidates(tf, raw):
    true = _long(tf, [[1, 2], [0, 4]])
    more = {"true_classes": true, "num_true": 2, "unique": True, "seed": 3, "seed2": 4}
    return [
        *raw.AllCandidateSampler(**more, num_sampled=5),
        *raw.FixedUnigramCandidateSampler(
            **more, num_sampled=3, range_max=5, unigrams=[1.0, 2.0, 3.0, 4.0, 5.0]
        ),
        *raw.LearnedUnigramCandidateSampler(**more, num_sampled=3, range_max=6),
        *raw.ThreadUnsafeUnigramCandidateSampler(**more, num_sampled=3, range_max=6),
    ]


@row("AnonymousSeedGenerator ShuffleDatasetV3 MakeIterator")
def seed_generators(tf, raw):
    """Seen by a shuffled dataset that they seed."""
    found = []
    numbers = raw.RangeDataset(
        start=_long(tf, 0),
        stop=_long(tf, 6),
        step=_long(tf, 1),
        output_types=[tf.int64],
        output_shapes=[[]],
    )
    handle, _deleter = raw.AnonymousSeedGenerator(
        seed=_long(tf, 3), seed2=_long(tf, 4), reshuffle=True
    )
    shuffled = {
        "input_dataset": numbers,
        "buffer_size": _long(tf, 6),
        "output_types": [tf.int64],
        "output_shapes": [[]],
    }
    data = raw.ShuffleDatasetV3(
        **shuffled, seed=_long(tf, 3), seed2=_long(tf, 4), seed_generator=handle
    )
    for _ in range(2):
        iterator, _deleter = raw.AnonymousIteratorV2(
            output_types=[tf.int64], output_shapes=[[]]
        )
        raw.MakeIterator(dataset=data, iterator=iterator)
        found += [
            raw.IteratorGetNext(
                iterator=iterator, output_types=[tf.int64], output_shapes=[[]]
            )
            for _ in range(6)
        ]
    return found
