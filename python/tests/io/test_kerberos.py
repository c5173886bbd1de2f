"""Files of an HDFS that asks for Kerberos: a real KDC (eval "$(tools/kerberos.sh start)"), and a
stand-in for WebHDFS that takes tickets of it as Hadoop does."""

import os

import headrace as tf
import pytest
from fake_hdfs import FakeHdfs

gfile, errors = tf.io.gfile, tf.errors
KEYTAB = os.environ.get("HEADRACE_TEST_KEYTAB")
pytestmark = pytest.mark.skipif(
    not KEYTAB, reason='no Kerberos: eval "$(tools/kerberos.sh start)" starts one'
)


@pytest.fixture
def root(monkeypatch):
    # Debian's Python has gssapi.
    fake = FakeHdfs(KEYTAB, python="/usr/bin/python3")
    for name, value in fake.settings().items():
        # Tickets are for the name of the host.
        monkeypatch.setenv(name, value.replace("127.0.0.1", "localhost"))
    yield "hdfs://secure"
    fake.close()


def test_a_ticket_opens_files(root):
    with gfile.GFile(f"{root}/a/f", "w") as file:
        file.write("hello")
    assert gfile.GFile(f"{root}/a/f").read() == "hello"
    assert gfile.listdir(f"{root}/a") == ["f"]
    with gfile.GFile(f"{root}/a/f", "a") as file:
        file.write(" there")
    gfile.rename(f"{root}/a/f", f"{root}/g")
    assert gfile.GFile(f"{root}/g").read() == "hello there"
    v = tf.Variable([1.0, 2.0])
    path = tf.train.Checkpoint(v=v).save(f"{root}/c/ckpt")
    v.assign([0.0, 0.0])
    tf.train.Checkpoint(v=v).restore(path).assert_consumed()
    assert v.numpy().tolist() == [1.0, 2.0]


def test_without_a_ticket(root, monkeypatch, tmp_path):
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "none"))
    with pytest.raises(errors.PermissionDeniedError, match="kinit"):
        gfile.exists(f"{root}/a")
    with pytest.raises(errors.PermissionDeniedError, match=f"{root}/a.*Kerberos"):
        gfile.GFile(f"{root}/a", "w").write("x")
