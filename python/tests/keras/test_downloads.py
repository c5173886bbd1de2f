"""get_file with a server of this machine, as TensorFlow's does it."""

import functools
import hashlib
import http.server
import io
import os
import tarfile
import threading

import headrace as tf
import pytest

get_file = tf.keras.utils.get_file
RIGHT = hashlib.sha256(b"hello").hexdigest()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def archive_of(path, names):
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 2
            archive.addfile(member, io.BytesIO(b"pp"))


@pytest.fixture
def site(tmp_path):
    root = tmp_path / "www"
    root.mkdir()
    (root / "a.txt").write_text("hello")
    archive_of(root / "pic.tar.gz", ["pic/p.txt"])
    archive_of(root / "bad.tar.gz", ["../out.txt"])
    handler = functools.partial(_Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def fetch(tmp_path):
    (tmp_path / "cache").mkdir()
    return functools.partial(get_file, cache_dir=str(tmp_path / "cache"))


def test_a_file_is_fetched_once(site, fetch, tmp_path, capsys):
    path = fetch("b.txt", site + "a.txt", file_hash=RIGHT)
    assert path == str(tmp_path / "cache/datasets/b.txt")
    assert capsys.readouterr().out == f"Downloading data from {site}a.txt\n"
    assert fetch("b.txt", site + "none") == path
    assert fetch(origin=site + "a.txt?x=1").endswith("/datasets/a.txt")
    assert fetch("c", site + "a.txt", cache_subdir="s").endswith("/cache/s/c")
    assert fetch("d", f"file://{path}").endswith("/cache/datasets/d")
    assert capsys.readouterr().out.count("Downloading") == 3


def test_another_hash(site, fetch, capsys):
    path = fetch("a.txt", site + "a.txt", md5_hash=hashlib.md5(b"hello").hexdigest())
    with open(path, "w") as file:
        file.write("old")
    fetch("a.txt", site + "a.txt", file_hash=RIGHT)
    assert open(path).read() == "hello"
    assert "so we will re-download the data." in capsys.readouterr().out
    with pytest.raises(ValueError, match="Incomplete or corrupted file detected"):
        fetch("a.txt", site + "a.txt", file_hash="0" * 64)


def test_archives(site, fetch, tmp_path):
    folder = tmp_path / "cache" / "datasets"
    for name in ("pic", "pic.tar.gz"):
        assert fetch(name, site + "pic.tar.gz", untar=True) == str(folder / "pic")
    assert (folder / "pic" / "p.txt").read_text() == "pp"
    found = fetch("x.tar.gz", site + "pic.tar.gz", extract=True, cache_subdir="sub")
    assert found.endswith("x.tar.gz")
    assert sorted(os.listdir(tmp_path / "cache" / "sub")) == ["pic", "x.tar.gz"]
    assert fetch("a.txt", site + "a.txt", extract=True).endswith("a.txt")
    with pytest.raises((ValueError, tarfile.TarError)):
        fetch("bad", site + "bad.tar.gz", untar=True)
    assert not (tmp_path / "cache" / "out.txt").exists()


def test_what_cannot_be_fetched(site, fetch, tmp_path):
    with pytest.raises(Exception, match="URL fetch failure on .*none: 404 -- File not"):
        fetch("n.txt", site + "none")
    with pytest.raises(Exception, match="URL fetch failure on .*: None -- .*refused"):
        fetch("n.txt", "http://127.0.0.1:1/x")
    with pytest.raises(ValueError, match='Please specify the "origin" argument'):
        fetch("n.txt")
    with pytest.raises(ValueError, match="Can't parse the file name from the origin"):
        fetch(origin=site)
    with pytest.raises(ValueError, match="unknown url type: 'foo'"):
        fetch("n.txt", "foo")
    assert os.listdir(tmp_path / "cache" / "datasets") == []
