"""What files of S3 have of their own, with the server of fake_s3."""

import os
import subprocess
import sys

import headrace as tf
import numpy as np
import pytest
from fake_s3 import FakeS3

gfile, errors = tf.io.gfile, tf.errors


@pytest.fixture
def server(monkeypatch):
    fake = FakeS3()
    for name, value in fake.settings().items():
        monkeypatch.setenv(name, value)
    yield fake
    fake.close()


def put(path, data, mode="wb"):
    with gfile.GFile(path, mode) as f:
        f.write(data)


def get(path):
    with gfile.GFile(path, "rb") as f:
        return f.read()


def test_keys_and_folders(server):
    odd = "s3://bucket/d/ä b+c%20&'=?#~"
    put(odd, b"x")
    assert get(odd) == b"x" and gfile.listdir("s3://bucket/d") == [odd[14:]]
    gfile.makedirs("s3://bucket/e/f")
    assert server.state()["keys"] == ["d/" + odd[14:], "e/", "e/f/"]
    assert gfile.isdir("s3://bucket") and gfile.isdir("s3://bucket/d/")
    assert gfile.listdir("s3://bucket/e/f") == []
    for i in range(8):  # pages of three
        put(f"s3://bucket/e/f/{i}", b"")
    assert gfile.listdir("s3://bucket/e/f") == list("01234567")
    assert gfile.glob("s3://bucket/*/f/[2-4]") == [
        f"s3://bucket/e/f/{i}" for i in (2, 3, 4)
    ]
    gfile.rename("s3://bucket/e", "s3://bucket/g")
    assert [x[0] for x in gfile.walk("s3://bucket/")][-1] == "s3://bucket/g/f"
    assert not gfile.exists("s3://bucket/e")
    with pytest.raises(errors.InvalidArgumentError, match="into itself"):
        gfile.rename("s3://bucket/g", "s3://bucket/g/h")
    gfile.rmtree("s3://bucket/g")
    assert server.state()["keys"] == ["d/" + odd[14:]]


def test_wrong_places_and_keys(server, monkeypatch):
    for call in (gfile.listdir, gfile.makedirs, lambda p: put(p + "/f", b"")):
        with pytest.raises(errors.NotFoundError, match="nobucket"):
            call("s3://nobucket")
    with pytest.raises(errors.InvalidArgumentError, match="'a' is no name"):
        gfile.exists("s3://a/b")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(
        errors.PermissionDeniedError,
        match="s3://bucket/f: Check your key \\(SignatureDoesNotMatch\\)",
    ):
        gfile.exists("s3://bucket/f")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(errors.PermissionDeniedError, match="Anonymous"):
        gfile.listdir("s3://bucket")


def test_a_busy_server_is_asked_again(server):
    server.state(busy=2)
    put("s3://bucket/f", b"abc")
    server.state(busy=2)
    assert get("s3://bucket/f") == b"abc"


def test_large_files_and_what_is_added(server):
    data = np.random.default_rng(5).bytes(70 << 20)
    path = "s3://bucket/f"
    with gfile.GFile(path, "wb") as f:
        f.write(data)
        assert server.state()["keys"] == []  # not before it is whole
    assert get(path) == data
    server.state()
    with gfile.GFile(path, "ab") as f:
        f.write(b"1")
        f.flush()
        assert gfile.stat(path).length == len(data) + 1
        f.write(b"2")
    # What is there is copied by the server.
    assert sum("partNumber" in r for r in server.state()["requests"]) == 4
    assert get(path) == data + b"12"
    put("s3://bucket/small", b"a", "ab")
    put("s3://bucket/small", b"b", "ab")
    assert get("s3://bucket/small") == b"ab"
    gfile.copy(path, "s3://bucket/copy")
    assert gfile.stat("s3://bucket/copy").length == len(data) + 2
    f = gfile.GFile(path, "ab")
    f.write(b"3")
    put(path, b"another's")
    for end in (f.flush, f.close):
        with pytest.raises(errors.FailedPreconditionError, match="replaced|shorter"):
            end()
    assert get(path) == b"another's"


def test_what_fails_leaves_the_old_and_no_parts(server):
    put("s3://bucket/f", b"old")
    server.state(refused="partNumber=2")
    with pytest.raises(errors.PermissionDeniedError, match="s3://bucket/f: No more"):
        put("s3://bucket/f", bytes(70 << 20))
    state = server.state(refused="")
    assert state["uploads"] == [] and get("s3://bucket/f") == b"old"


_WRITER = """
import sys, time
import headrace as tf
v = tf.Variable(tf.zeros([1 << 18]))
manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), sys.argv[1], 3)
manager.restore_or_initialize()
print("begun", flush=True)
while True:
    v.assign_add(tf.ones_like(v))
    manager.save()
"""


def test_killed_writers_leave_whole_checkpoints(server):
    folder, last = "s3://bucket/c", 0
    for _ in range(3):
        program = subprocess.Popen(
            [sys.executable, "-c", _WRITER, folder], stdout=subprocess.PIPE
        )
        with program:
            assert program.stdout.readline() == b"begun\n"
            while int((tf.train.latest_checkpoint(folder) or "-0").rsplit("-")[-1]) == (
                last
            ):
                pass
            program.kill()
        path = tf.train.latest_checkpoint(folder)
        last = int(path.rsplit("-")[-1])
        v = tf.Variable(tf.zeros([1 << 18]))
        tf.train.Checkpoint(v=v).restore(path).assert_consumed()
        assert np.ptp(v.numpy()) == 0 and v[0] >= 1


def test_keys_of_profiles(server, monkeypatch, tmp_path):
    put("s3://bucket/f", b"abc")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        value = os.environ[name]
        monkeypatch.delenv(name)
        with open(tmp_path / "keys", "a", encoding="utf8") as f:
            if f.tell() == 0:
                f.write("[work]\n")
            f.write(f"{name.lower()} = {value}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "keys"))
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert get("s3://bucket/f") == b"abc"
    monkeypatch.setenv("AWS_PROFILE", "other")
    with pytest.raises(errors.InvalidArgumentError, match="AWS_PROFILE is other"):
        get("s3://bucket/f")
