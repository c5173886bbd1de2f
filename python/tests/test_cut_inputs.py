"""Every other kind of file and message that is parsed, cut at every byte.

Graphs and checkpoints are in test_damaged_files.py; records, tables, packed bytes and
the keys of slices in the C++ tests of src/formats, states of iterators in
src/data/states_test.cc.
"""

import gzip
import zlib

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
PIXELS = (np.arange(5 * 4 * 3) * 4).astype(np.uint8).reshape(5, 4, 3)


def refused(read, data, most_read=0):
    """Reads data cut at every byte: an error of ours that says something, or for at
    most `most_read` cuts a value."""
    read(data)
    values = []
    for n in range(len(data)):
        try:
            values.append((n, read(data[:n])))
        except (tf.errors.OpError, ValueError) as e:
            assert str(e)
    assert len(values) <= most_read, values[:5]


@pytest.mark.parametrize("encode", ["png", "jpeg"])
def test_images_that_are_written(encode):
    file = getattr(tf.io, f"encode_{encode}")(PIXELS).numpy()
    decode = getattr(tf.io, f"decode_{encode}")
    # Of a PNG the checksums behind the last row are not asked for; a JPEG's last two
    # bytes say that it ends.
    refused(decode, file, most_read=24)
    refused(tf.io.decode_image, file, most_read=24)
    tf.image.is_jpeg(file[:2])


def test_bitmaps():
    rows = b"".join(bytes(row.ravel()) for row in PIXELS[::-1])
    head = np.array([40, 4, 5], "<i4").tobytes() + b"\1\0\x18\0" + bytes(24)
    file = b"BM" + np.array([54 + 60, 0, 54], "<i4").tobytes() + head + rows
    refused(tf.io.decode_bmp, file)


def test_gifs():
    file = bytes.fromhex(
        "47494638396101000100800000ffffff0000002c00000000010001000002024401003b"
    )
    # What lies behind the last row need not be there.
    refused(tf.io.decode_gif, file, most_read=4)


@pytest.mark.parametrize(
    "value", [[1.5, 2.5], [b"ab", b"c"], [True, False], np.ones([3, 2], np.int64)]
)
def test_tensors(value):
    tensor = tf.constant(value)
    data = tf.io.serialize_tensor(tensor).numpy()

    def read(data):
        out = tf.io.parse_tensor(data, tensor.dtype)
        # Without its last fields a message is one with fewer values or dimensions.
        assert out.shape.num_elements() <= tensor.shape.num_elements()
        return out

    refused(read, data, most_read=8)


def test_examples():
    feature = {
        "a": tf.train.Feature(float_list=tf.train.FloatList(value=[1, 2])),
        "b": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"xyz"])),
    }
    data = tf.train.Example(
        features=tf.train.Features(feature=feature)
    ).SerializeToString()
    wanted = {
        "a": tf.io.FixedLenFeature([2], tf.float32),
        "b": tf.io.VarLenFeature(tf.string),
    }
    refused(lambda d: tf.io.parse_single_example(d, wanted), data)
    refused(lambda d: tf.io.parse_example([data, d], wanted), data)


def test_sequence_examples():
    steps = [
        tf.train.Feature(int64_list=tf.train.Int64List(value=[n])) for n in range(3)
    ]
    lists = tf.train.FeatureLists(
        feature_list={"s": tf.train.FeatureList(feature=steps)}
    )
    data = tf.train.SequenceExample(feature_lists=lists).SerializeToString()
    wanted = {"s": tf.io.FixedLenSequenceFeature([], tf.int64)}
    refused(
        lambda d: tf.io.parse_single_sequence_example(d, sequence_features=wanted), data
    )
    refused(lambda d: tf.io.parse_sequence_example([d], {}, wanted), data)


def test_packed_strings():
    for kind, pack in [("ZLIB", zlib.compress), ("GZIP", gzip.compress)]:
        refused(
            lambda d, kind=kind: tf.io.decode_compressed(d, kind), pack(b"ab" * 40), 1
        )
    refused(tf.io.decode_base64, b"aGVsbG8", most_read=6)


def elements(dataset):
    return [np.asarray(x).tolist() for x in dataset.as_numpy_iterator()]


def test_csv_files(tmp_path):
    path = tmp_path / "f.csv"
    data = b'a,1.5,3\r\n"b ""q"", c",-2e3,4\nlast,7,\n'
    defaults = ["none", tf.float32, [9]]

    def read(data):
        path.write_bytes(data)
        dataset = tf.data.experimental.CsvDataset(str(path), defaults)
        return [tuple(x.numpy() for x in row) for row in dataset]

    whole = read(data)
    for n in range(len(data)):
        try:
            rows = read(data[:n])
        except tf.errors.InvalidArgumentError as e:
            assert str(e)
        else:  # all but the last row that is there
            assert rows[:-1] == whole[: max(len(rows) - 1, 0)]


def test_text_and_vocabulary_files(tmp_path):
    path = tmp_path / "f.txt"
    data = b"one\t1\ntwo\t22\r\nthree\t3"
    for n in range(len(data) + 1):
        path.write_bytes(data[:n])
        assert elements(tf.data.TextLineDataset(str(path))) == [
            line.rstrip(b"\r") for line in data[:n].split(b"\n") if line
        ]
        try:
            table = tf.lookup.StaticHashTable(
                tf.lookup.TextFileInitializer(
                    str(path), tf.string, 0, tf.int64, 1, delimiter="\t"
                ),
                -1,
            )
        except tf.errors.OpError as e:
            assert str(e)
        else:
            assert int(table.size()) <= 3


def test_event_files(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        tf.summary.scalar("loss", 0.5, step=1)
        tf.summary.scalar("loss", 0.25, step=2)
    writer.close()
    (path,) = tmp_path.glob("events*")
    data = path.read_bytes()

    def read(data):
        path.write_bytes(data)
        return [e.step for e in v1.train.summary_iterator(str(path))]

    assert read(data) == [0, 1, 2]
    # Within the twelve bytes before an event, a cut is the end, as upstream has it.
    refused(read, data, most_read=3 * 12)


def test_the_state_file_of_a_folder(tmp_path):
    v = tf.Variable(1.0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), str(tmp_path), 2)
    manager.save()
    newest = manager.save()
    path = tmp_path / "checkpoint"
    data = path.read_bytes()
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="Invalid checkpoint state loaded from"):
        tf.train.latest_checkpoint(str(tmp_path))
    for n in range(1, len(data)):
        path.write_bytes(data[:n])
        # A message on the console where it is damaged, as upstream does.
        assert tf.train.latest_checkpoint(str(tmp_path)) in (None, newest)


def test_saved_and_cached_datasets(tmp_path):
    source = tf.data.Dataset.from_tensor_slices((np.arange(3), ["a", "bb", "ccc"]))
    source.save(str(tmp_path / "saved"))
    cached = source.cache(str(tmp_path / "cache"))
    whole = [tuple(x) for x in cached.as_numpy_iterator()]
    readers = {
        "saved": lambda: tf.data.Dataset.load(str(tmp_path / "saved")),
        "cache": lambda: source.cache(str(tmp_path / "cache")),
    }
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(files) >= 3
    for path in files:
        data = path.read_bytes()
        read = readers[path.relative_to(tmp_path).parts[0].split(".")[0]]
        for n in range(len(data)):
            path.write_bytes(data[:n])
            try:
                rows = [tuple(x) for x in read().as_numpy_iterator()]
            except (tf.errors.OpError, ValueError) as e:
                assert str(e)
            else:
                assert rows == whole[: len(rows)]
        path.write_bytes(data)


def test_graphs_as_text():
    with tf.Graph().as_default() as g:
        tf.identity(v1.placeholder(tf.float32, [2], name="x"), name="y")
    text_format = pytest.importorskip("google.protobuf.text_format")
    text = str(g.as_graph_def())

    def read(text):
        graph_def = text_format.Parse(text, v1.GraphDef())
        with tf.Graph().as_default() as again:
            tf.import_graph_def(graph_def, name="")
        return {op.name for op in again.get_operations()}

    assert read(text) == {"x", "y"}
    for n in range(len(text)):
        try:
            assert read(text[:n]) <= {"x", "y"}
        except (text_format.ParseError, ValueError, tf.errors.OpError) as e:
            assert str(e)


def test_summaries_and_events():
    summary = v1.Summary(value=[v1.Summary.Value(tag="a", simple_value=1.0)])
    data = summary.SerializeToString()
    merge = tf.raw_ops.MergeSummary
    refused(lambda d: merge(inputs=[data[:0], d]), data, most_read=1)


def test_bools_of_other_bytes(tmp_path):
    """What is no bool in memory is a true one: reading it as it is would be undefined."""
    true = np.array([2, 0, 255], np.uint8).view(np.bool_)
    proto = tf.make_tensor_proto([True, False, True])
    del proto.bool_val[:]
    proto.tensor_content = b"\2\0\xff"
    v = tf.Variable(np.ones([70, 3], bool))
    path = tf.train.Checkpoint(v=v).write(str(tmp_path / "c"))
    for t in [
        tf.constant(true),
        tf.io.parse_tensor(proto.SerializeToString(), tf.bool),
        tf.io.decode_raw(b"\2\0\xff", tf.bool),
        tf.numpy_function(lambda: true, [], tf.bool),
        tf.train.load_checkpoint(path).get_tensor("v/.ATTRIBUTES/VARIABLE_VALUE")[0],
    ]:
        assert set(np.asarray(t).view(np.uint8)) <= {0, 1}
        assert tf.where(t).shape[0] == np.count_nonzero(t)
