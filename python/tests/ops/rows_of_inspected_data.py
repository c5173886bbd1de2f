"""Rows of ops that ask or check what a pipeline is and does. Values are TensorFlow
2.21's; of the last component as a filter, of which it has no kernel, they are ours."""

import pathlib
import tempfile

import numpy as np
from rows import formula
from rows_of_data import _elements, _kinds, _long, _range
from rows_of_more_data import _dataset, _numbers


@formula("AssertNextDataset ExperimentalAssertNextDataset")
def what_follows(tf, raw):
    pairs = []
    for op in (raw.AssertNextDataset, raw.ExperimentalAssertNextDataset):
        for names in ([], ["Prefetch"], ["Prefetch", "Root"]):
            made = op(
                input_dataset=_range(tf, raw, 3),
                transformations=tf.constant(names, tf.string),
                **_kinds(tf),
            )
            pairs += [_numbers(tf, raw, made), np.arange(3)]
        made = op(
            input_dataset=_range(tf, raw, 3),
            transformations=["Take", "Prefetch"],
            **_kinds(tf),
        )
        made = raw.TakeDataset(input_dataset=made, count=_long(tf, 2), **_kinds(tf))
        try:
            _numbers(tf, raw, made)
        except tf.errors.InvalidArgumentError as error:
            text = "matching Take at offset 0 but encountered FiniteTake"
            pairs += [np.array(text in str(error)), np.array(True)]
    return pairs


@formula("FilterByLastComponentDataset")
def flagged(tf, raw):
    given = tf.data.Dataset.from_tensor_slices(
        (_long(tf, [1, 2, 3, 4]), [True, False, False, True])
    )
    made = raw.FilterByLastComponentDataset(input_dataset=_dataset(given), **_kinds(tf))
    return [_numbers(tf, raw, made), np.array([1, 4])]


@formula("RewriteDataset")
def rewritten(tf, raw):
    pairs = []
    for name in ("", "disable_prefetch_legacy_autotune", "other"):
        made = raw.RewriteDataset(
            input_dataset=_range(tf, raw, 3), rewrite_name=name, **_kinds(tf)
        )
        pairs += [_numbers(tf, raw, made), np.arange(3)]
    return pairs


@formula("ComputeBatchSize")
def batch_sizes(tf, raw):
    numbers = tf.data.Dataset.range(10)
    batches = numbers.batch(3)
    pairs = []
    for dataset, wanted in (
        (batches, 3),
        (numbers, -1),
        (batches.map(lambda x: x), -1),
        (batches.batch(2), 2),
        (batches.unbatch(), -1),
        (numbers.padded_batch(2, []), 2),
        (batches.shuffle(2).prefetch(1).take(1), 3),
        (batches.filter(lambda x: tf.reduce_all(x >= 0)), 3),
        (tf.data.Dataset.zip((batches, batches)), 3),
        (batches.concatenate(batches), 3),
        (batches.repeat(), 3),
        (numbers.window(2), -1),
    ):
        found = raw.ComputeBatchSize(input_dataset=_dataset(dataset))
        pairs += [found, np.array(wanted)]
    return pairs


@formula("GetOptions")
def options_of_a_pipeline(tf, raw):
    def asked(dataset):
        return raw.GetOptions(input_dataset=dataset)

    given = b"\x08\x00:\x02\x08\x01"
    made = raw.OptionsDataset(
        input_dataset=_range(tf, raw, 3), serialized_options=given, **_kinds(tf)
    )
    longer = raw.TakeDataset(input_dataset=made, count=_long(tf, 1), **_kinds(tf))
    later = raw.OptionsDataset(
        input_dataset=longer, serialized_options=b"\x08\x01", **_kinds(tf)
    )
    pairs = [asked(_range(tf, raw, 3)), b"", asked(made), given]
    pairs += [asked(longer), given, asked(later), b"\x08\x01:\x02\x08\x01"]
    return [x if i % 2 == 0 else np.array(x, object) for i, x in enumerate(pairs)]


@formula("IteratorGetDevice ExperimentalIteratorGetDevice")
def devices_of_iterators(tf, raw):
    iterator = raw.AnonymousIteratorV3(**_kinds(tf))
    raw.MakeIterator(dataset=_range(tf, raw, 3), iterator=iterator)
    place = np.array(b"/job:localhost/replica:0/task:0/device:CPU:0", object)
    found = [
        raw.IteratorGetDevice(resource=iterator),
        raw.ExperimentalIteratorGetDevice(resource=iterator),
    ]
    return [found[0], place, found[1], place]


@formula("DummyIterationCounter")
def counters_of_nothing(tf, raw):
    counter = raw.DummyIterationCounter()
    return [np.array(counter.dtype == tf.resource), np.array(True)]


def summary(tf, text):
    return {v.tag: v for v in tf.compat.v1.Summary.FromString(text.numpy()).value}


def _measured(tf, raw, latency, size):
    made = latency(input_dataset=_range(tf, raw, 5), tag="took", **_kinds(tf))
    return size(input_dataset=made, tag="bytes", **_kinds(tf))


@formula(
    "StatsAggregatorHandle StatsAggregatorSummary SetStatsAggregatorDataset"
    " ExperimentalStatsAggregatorHandle ExperimentalStatsAggregatorSummary"
    " ExperimentalSetStatsAggregatorDataset"
)
def measured_walks(tf, raw):
    pairs = []
    for handle, gathered, told, latency, size in (
        (
            raw.StatsAggregatorHandle,
            raw.StatsAggregatorSummary,
            raw.SetStatsAggregatorDataset,
            raw.LatencyStatsDataset,
            raw.BytesProducedStatsDataset,
        ),
        (
            raw.ExperimentalStatsAggregatorHandle,
            raw.ExperimentalStatsAggregatorSummary,
            raw.ExperimentalSetStatsAggregatorDataset,
            raw.ExperimentalLatencyStatsDataset,
            raw.ExperimentalBytesProducedStatsDataset,
        ),
    ):
        aggregator = handle(shared_name=f"measured{len(pairs)}")
        made = told(
            input_dataset=_measured(tf, raw, latency, size),
            stats_aggregator=aggregator,
            tag="t",
            counter_prefix="c",
            **_kinds(tf),
        )
        pairs += [_numbers(tf, raw, made), np.arange(5)]
        found = summary(tf, gathered(iterator=aggregator))
        sizes = found["t::bytes"].histo
        pairs += [np.array([sizes.min, sizes.max, sizes.num, sizes.sum]), [8, 8, 5, 40]]
        pairs += [np.array(list(sizes.bucket)), [0, 5, 0]]
        pairs += [np.array(found["t::took"].histo.num), 5]
    return [x if i % 2 == 0 else np.array(x) for i, x in enumerate(pairs)]


@formula("StatsAggregatorHandleV2 StatsAggregatorSetSummaryWriter")
def written_measures(tf, raw):
    folder = pathlib.Path(tempfile.mkdtemp())
    writer = raw.SummaryWriter(shared_name="of_stats")
    raw.CreateSummaryFileWriter(
        writer=writer,
        logdir=str(folder),
        max_queue=10,
        flush_millis=1,
        filename_suffix="x",
    )
    aggregator = raw.StatsAggregatorHandleV2(shared_name="written")
    raw.StatsAggregatorSetSummaryWriter(stats_aggregator=aggregator, summary=writer)
    made = raw.SetStatsAggregatorDataset(
        input_dataset=raw.BytesProducedStatsDataset(
            input_dataset=_range(tf, raw, 3), tag="bytes", **_kinds(tf)
        ),
        stats_aggregator=aggregator,
        tag="",
        counter_prefix="",
        **_kinds(tf),
    )
    _elements(tf, raw, made)
    raw.FlushSummaryWriter(writer=writer)
    events = [
        event
        for path in folder.iterdir()
        for event in tf.compat.v1.train.summary_iterator(str(path))
        if event.WhichOneof("what") == "summary"
    ]
    found = [[e.step, e.summary.value[0].histo.num] for e in events]
    names = {v.tag for e in events for v in e.summary.value}
    pairs = [np.array(found), np.array([[0, 1], [1, 2], [2, 3]], np.float64)]
    return [*pairs, np.array(names == {"bytes"}), np.array(True)]
