"""Files of the file systems that paths name: ram://, servers of S3 and WebHDFS that stand in
for real ones, and an HDFS that tools/hdfs.sh has started (eval "$(tools/hdfs.sh start)"); without one, its
tests are skipped. HEADRACE_TEST_S3=s3://bucket/folder names a real S3, as the AWS tools'
variables lead to it."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import headrace as tf
import numpy as np
import pytest
from fake_hdfs import FakeHdfs
from fake_s3 import FakeS3

gfile, errors = tf.io.gfile, tf.errors
HDFS = os.environ.get("HEADRACE_TEST_HDFS")
S3 = os.environ.get("HEADRACE_TEST_S3")
needs_hdfs = pytest.mark.skipif(
    not HDFS, reason='no HDFS: eval "$(tools/hdfs.sh start)" starts one'
)


def _lead_to(fake, place, monkeypatch):
    for name, value in fake.settings().items():
        monkeypatch.setenv(name, value)
    yield place
    fake.close()


@pytest.fixture
def fake_s3(monkeypatch):
    yield from _lead_to(FakeS3(), "s3://bucket", monkeypatch)


@pytest.fixture
def fake_hdfs(monkeypatch):
    yield from _lead_to(FakeHdfs(), "hdfs://stand-in", monkeypatch)


@pytest.fixture(
    params=[
        "ram:/",
        "fake_s3",
        "fake_hdfs",
        pytest.param(HDFS, marks=needs_hdfs, id="hdfs"),
        pytest.param(S3, marks=pytest.mark.skipif(not S3, reason="no S3"), id="s3"),
    ]
)
def root(request):
    place = request.param
    if place in ("fake_s3", "fake_hdfs"):
        place = request.getfixturevalue(place)
    folder = f"{place}/headrace-test-{os.getpid()}"
    gfile.makedirs(folder)
    yield folder
    gfile.rmtree(folder)


@pytest.fixture
def hdfs_root():
    folder = f"{HDFS}/headrace-test-{os.getpid()}"
    gfile.makedirs(folder)
    yield folder
    gfile.rmtree(folder)


def put(path, text):
    with gfile.GFile(path, "w") as f:
        f.write(text)


def test_folders(root):
    gfile.makedirs(f"{root}/a/b")
    gfile.mkdir(f"{root}/a")
    put(f"{root}/a/x y+", "x")
    assert gfile.isdir(f"{root}/a") and not gfile.isdir(f"{root}/a/x y+")
    assert gfile.exists(f"{root}/a/x y+") and not gfile.exists(f"{root}/c")
    assert sorted(gfile.listdir(f"{root}/a")) == ["b", "x y+"]
    assert gfile.glob(f"{root}/*/x*") == [f"{root}/a/x y+"]
    assert gfile.glob([f"{root}/?", f"{root}/n*"]) == [f"{root}/a"]
    walked = [(f"{root}/a", ["b"], ["x y+"]), (f"{root}/a/b", [], [])]
    assert list(gfile.walk(f"{root}/a")) == walked
    assert list(gfile.walk(f"{root}/a", topdown=False)) == walked[::-1]
    assert list(gfile.walk(f"{root}/none")) == []
    stat = gfile.stat(f"{root}/a/x y+")
    assert stat.length == 1 and not stat.is_directory
    assert abs(stat.mtime_nsec / 1e9 - time.time()) < 600
    assert gfile.stat(f"{root}/a").is_directory
    gfile.rmtree(f"{root}/a")
    assert not gfile.exists(f"{root}/a")


def test_reading_and_writing(root):
    path = f"{root}/f"
    put(path, "hello\nwörld\n")
    assert gfile.GFile(path).read() == "hello\nwörld\n"
    assert gfile.GFile(path, "rb").readlines() == [b"hello\n", "wörld\n".encode()]
    with gfile.GFile(path) as f:
        assert (f.read(3), f.tell(), f.size()) == ("hel", 3, 13)
        f.seek(1)
        assert f.readline() == "ello\n"
        f.seek(-2, 2)
        assert f.read() == "d\n"
    with gfile.GFile(path, "a") as f:
        f.write("more")
        f.flush()
        assert gfile.GFile(path).read().endswith("\nmore")
        f.write(" still")
        assert f.tell() == 23
    assert gfile.stat(path).length == 23
    put(path, "anew")
    assert gfile.GFile(path).read() == "anew"
    with pytest.raises(errors.UnimplementedError, match="'r\\+' for .*/f"):
        gfile.GFile(path, "r+").read()


def test_moves(root, tmp_path):
    put(f"{root}/a", "1")
    put(f"{root}/b", "2")
    with pytest.raises(errors.AlreadyExistsError):
        gfile.rename(f"{root}/a", f"{root}/b")
    with pytest.raises(errors.AlreadyExistsError):
        gfile.copy(f"{root}/a", f"{root}/b")
    gfile.copy(f"{root}/a", f"{root}/c")
    gfile.rename(f"{root}/a", f"{root}/b", overwrite=True)
    assert sorted(gfile.listdir(root)) == ["b", "c"]
    assert gfile.GFile(f"{root}/b").read() == "1"
    here = str(tmp_path / "here")
    gfile.copy(f"{root}/b", here)
    gfile.copy(here, f"{root}/d")
    assert gfile.GFile(here).read() == gfile.GFile(f"{root}/d").read() == "1"
    with pytest.raises(errors.UnimplementedError, match="to another"):
        gfile.rename(here, f"{root}/e")
    gfile.remove(f"{root}/b")
    assert not gfile.exists(f"{root}/b")


def test_errors(root):
    put(f"{root}/f", "x")
    gfile.makedirs(f"{root}/d/e")
    for call, error in [
        (lambda: gfile.GFile(f"{root}/none").read(), errors.NotFoundError),
        (lambda: gfile.GFile(f"{root}/d").read(), errors.FailedPreconditionError),
        (lambda: put(f"{root}/d", "x"), errors.FailedPreconditionError),
        (lambda: gfile.remove(f"{root}/none"), errors.NotFoundError),
        (lambda: gfile.remove(f"{root}/d"), errors.FailedPreconditionError),
        (lambda: gfile.rmtree(f"{root}/none"), errors.NotFoundError),
        (lambda: gfile.listdir(f"{root}/none"), errors.NotFoundError),
        (lambda: gfile.stat(f"{root}/none"), errors.NotFoundError),
        (lambda: gfile.rename(f"{root}/none", f"{root}/x"), errors.NotFoundError),
    ]:
        with pytest.raises(error, match=root):
            call()


def test_schemes():
    assert {"", "file", "ram", "hdfs", "webhdfs", "s3"} <= set(
        gfile.get_registered_schemes()
    )
    with pytest.raises(
        errors.UnimplementedError,
        match="File system scheme 'zz' not implemented \\(file: 'zz://a'\\)",
    ):
        gfile.exists("zz://a")
    with pytest.raises(errors.InvalidArgumentError, match="fs.defaultFS"):
        os.environ.pop("HEADRACE_WEBHDFS", None) if not HDFS else None
        gfile.exists("webhdfs:///a")


def test_datasets(root):
    put(f"{root}/t", "".join(f"{i}\n" for i in range(1000)))
    lines = tf.data.TextLineDataset(f"{root}/t")
    assert [int(x) for x in lines] == list(range(1000))
    with tf.io.TFRecordWriter(f"{root}/r", "GZIP") as writer:
        for i in range(1000):
            writer.write(b"%d" % i * 50)
    records = list(tf.data.TFRecordDataset(f"{root}/r", "GZIP"))
    assert records[999].numpy() == b"999" * 50 and len(records) == 1000
    assert [
        x.numpy() for x in tf.data.Dataset.list_files(f"{root}/?", shuffle=False)
    ] == [
        f"{root}/r".encode(),
        f"{root}/t".encode(),
    ]
    tf.data.Dataset.range(10).save(f"{root}/saved")
    assert list(tf.data.Dataset.load(f"{root}/saved").as_numpy_iterator()) == list(
        range(10)
    )
    assert tf.io.read_file(f"{root}/t").numpy().startswith(b"0\n1\n")


def test_checkpoints(root):
    v = tf.Variable(np.arange(300000.0))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), f"{root}/c", 2)
    for _ in range(3):
        v.assign_add(tf.ones_like(v))
        path = manager.save()
    assert sorted(gfile.listdir(f"{root}/c")) == sorted(
        ["checkpoint"]
        + [f"ckpt-{i}{s}" for i in (2, 3) for s in (".data-00000-of-00001", ".index")]
    )
    assert tf.train.latest_checkpoint(f"{root}/c") == path
    assert tf.train.get_checkpoint_state(f"{root}/c").model_checkpoint_path == path
    w = tf.Variable(np.zeros(300000))
    tf.train.Checkpoint(v=w).restore(path).assert_consumed()
    np.testing.assert_array_equal(w, np.arange(300000.0) + 3)
    name = "v/.ATTRIBUTES/VARIABLE_VALUE"
    assert tf.train.load_variable(f"{root}/c", name)[7] == 10
    saver = tf.compat.v1.train.Saver([w])
    assert saver.save(None, f"{root}/v1/m", 5) == f"{root}/v1/m-5"
    saver.restore(None, f"{root}/v1/m-5")


def test_summaries_and_models(root):
    writer = tf.summary.create_file_writer(f"{root}/logs")
    with writer.as_default():
        tf.summary.scalar("a", 1.0, step=1)
        writer.flush()
        (path,) = gfile.glob(f"{root}/logs/*")
        assert len(list(tf.compat.v1.train.summary_iterator(path))) == 2
        tf.summary.scalar("a", 2.0, step=2)
    writer.close()
    assert len(list(tf.compat.v1.train.summary_iterator(path))) == 3

    module = tf.Module()
    module.v = tf.Variable(2.0)
    module.f = tf.function(lambda x: x * module.v)
    module.f.get_concrete_function(tf.TensorSpec([], tf.float32))
    tf.saved_model.save(module, f"{root}/m")
    assert float(tf.saved_model.load(f"{root}/m").f(tf.constant(3.0))) == 6.0
    assert tf.saved_model.contains_saved_model(f"{root}/m")


def test_s003_c42_training_data_lie_on_hdfs(fake_hdfs):
    """A model trains on records of two files, and goes on from its checkpoint there."""
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    for part in range(2):
        with tf.io.TFRecordWriter(f"{fake_hdfs}/data/part-{part}") as writer:
            for value in x[part::2]:
                writer.write(np.array([value, 3 * value + 1], np.float32).tobytes())
    assert gfile.listdir(f"{fake_hdfs}/data") == ["part-0", "part-1"]

    def trained(epochs):
        w, b = tf.Variable(0.0), tf.Variable(0.0)
        optimizer = tf.keras.optimizers.SGD(0.3)
        checkpoint = tf.train.Checkpoint(w=w, b=b, optimizer=optimizer)
        manager = tf.train.CheckpointManager(checkpoint, f"{fake_hdfs}/run", 2)
        found = manager.restore_or_initialize()
        files = tf.data.Dataset.list_files(f"{fake_hdfs}/data/*", shuffle=False)
        records = files.interleave(tf.data.TFRecordDataset, cycle_length=2)
        rows = records.map(lambda r: tf.io.decode_raw(r, tf.float32)).batch(16)
        for row in rows.repeat(epochs):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((w * row[:, 0] + b - row[:, 1]) ** 2)
            gradients = tape.gradient(loss, [w, b])
            optimizer.apply_gradients(zip(gradients, [w, b]))
        manager.save()
        return found, float(w), float(b), int(optimizer.iterations)

    found, _, _, steps = trained(5)
    assert found is None and steps == 20
    found, w, b, steps = trained(10)
    assert found == f"{fake_hdfs}/run/ckpt-1" and steps == 60
    assert abs(w - 3) < 0.01 and abs(b - 1) < 0.01


_WRITER = """
import sys
import headrace as tf
v = tf.Variable(tf.zeros([1 << 19]))
manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), sys.argv[1], 3)
manager.restore_or_initialize()
print("begun", flush=True)
while True:
    v.assign_add(tf.ones_like(v))
    manager.save()
    print("saved", flush=True)
"""


@needs_hdfs
def test_killed_writers_leave_whole_checkpoints(hdfs_root):
    last, kills = 0.0, int(os.environ.get("HEADRACE_HDFS_KILLS", "5"))
    for kill in range(kills):
        program = subprocess.Popen(
            [sys.executable, "-c", _WRITER, f"{hdfs_root}/c"], stdout=subprocess.PIPE
        )
        assert program.stdout.readline() == b"begun\n"
        if kill + 1 == kills:  # however slow the machine is, one has been written
            assert program.stdout.readline() == b"saved\n"
        time.sleep(0.3 + 0.25 * (kill % 5) + 0.007 * (kill // 5))
        program.send_signal(signal.SIGKILL)
        program.wait()
        path = tf.train.latest_checkpoint(f"{hdfs_root}/c")
        if path is None:
            continue
        v = tf.Variable(tf.zeros([1 << 19]))
        tf.train.Checkpoint(v=v).restore(path).assert_consumed()
        values = v.numpy()
        assert values.min() == values.max() >= last
        last = values[0]
    assert last > 0


@needs_hdfs
def test_other_clients_have_the_same_bytes(hdfs_root, tmp_path):
    """What Hadoop's client in Java put is read here, and a client in Go reads what was
    written here; blocks of tools/cluster.sh have a megabyte."""
    data = np.random.default_rng(3).bytes((5 << 20) + 7)
    (tmp_path / "put").write_bytes(data)
    root = os.path.join(os.path.dirname(__file__), "../../..")
    folder = os.environ["HEADRACE_TEST_HDFS_FOLDER"]
    shell = ["bash", os.path.join(root, "tools/hdfs.sh"), "shell", folder]
    subprocess.run([*shell, "-put", f"{tmp_path}/put", f"{hdfs_root}/java"], check=True)
    with gfile.GFile(f"{hdfs_root}/java", "rb") as f:
        assert f.read() == data
    with gfile.GFile(f"{hdfs_root}/ours", "wb") as f:
        f.write(data[: 3 << 20])
    with gfile.GFile(f"{hdfs_root}/ours", "ab") as f:
        f.write(data[3 << 20 :])
    if shutil.which("hdfs") is None:
        pytest.skip("no Go client: Debian's hdfs-cli")
    place, path = hdfs_root.removeprefix("hdfs://").split("/", 1)
    subprocess.run(
        ["hdfs", "get", f"/{path}/ours", f"{tmp_path}/got"],
        env={**os.environ, "HADOOP_NAMENODE": place},
        check=True,
    )
    assert (tmp_path / "got").read_bytes() == data


@needs_hdfs
@pytest.mark.skipif(
    not os.environ.get("HEADRACE_TEST_HDFS_KILL"),
    reason="HEADRACE_TEST_HDFS_KILL=1 lets it kill a DataNode of tools/hdfs.sh",
)
def test_a_data_node_dies_in_a_read(hdfs_root):
    data = np.random.default_rng(5).bytes(64 << 20)
    with gfile.GFile(f"{hdfs_root}/f", "wb") as f:
        f.write(data)
    folder = os.environ["HEADRACE_TEST_HDFS_FOLDER"]
    with open(os.path.join(folder, "datanode1.pid"), encoding="utf8") as f:
        process = int(f.read())
    killer = threading.Timer(0.1, os.kill, (process, signal.SIGKILL))
    got = bytearray()
    with gfile.GFile(f"{hdfs_root}/f", "rb") as f:
        killer.start()
        while part := f.read(100000):
            got += part
    killer.join()
    for _ in range(8):  # the NameNode still sends readers to the dead one
        assert gfile.GFile(f"{hdfs_root}/f", "rb").read(1000) == data[:1000]
    assert got == data
