"""tf.io.gfile."""

import os

import headrace as tf
import pytest

gfile, errors = tf.io.gfile, tf.errors


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def put(path, text):
    with gfile.GFile(path, "w") as f:
        f.write(text)


def test_folders():
    assert gfile.makedirs("a/b") is None and gfile.makedirs("a/b") is None
    gfile.mkdir("a")
    assert gfile.isdir("a") and gfile.exists(b"a") and not gfile.isdir("c")
    with pytest.raises(errors.NotFoundError, match="z/q; No such file"):
        gfile.mkdir("z/q")
    put("a/f", "x")
    assert sorted(gfile.listdir("a")) == ["b", "f"]
    assert gfile.glob("a/*") == ["a/b", "a/f"]
    assert gfile.glob(["a/f", "n*"]) == ["a/f"]
    assert list(gfile.walk("a")) == [("a", ["b"], ["f"]), ("a/b", [], [])]
    assert [row[0] for row in gfile.walk("a", topdown=False)] == ["a/b", "a"]
    assert list(gfile.walk("nothing")) == []
    with pytest.raises(errors.NotFoundError, match="Could not find directory"):
        gfile.listdir("a/f")
    with pytest.raises(errors.FailedPreconditionError, match="Is a directory"):
        gfile.remove("a")
    gfile.rmtree("a")
    with pytest.raises(errors.NotFoundError, match="not found"):
        gfile.rmtree("a")


def test_reading_and_writing():
    put("f", "hello\nwörld\n")
    assert gfile.GFile("f").read() == "hello\nwörld\n"
    assert gfile.GFile("f", "rb").readlines() == [b"hello\n", "wörld\n".encode()]
    assert list(gfile.GFile("f")) == ["hello\n", "wörld\n"]
    with gfile.GFile("f") as f:
        assert (f.read(3), f.tell(), f.size()) == ("hel", 3, 13)
        f.seek(1)
        assert f.readline() == "ello\n"
    with gfile.GFile("f", "a") as f:
        f.write("more")
    with gfile.GFile("f", "r+") as f:
        assert f.read().endswith("more")
    assert gfile.stat("f").length == 17 == os.path.getsize("f")


@pytest.mark.parametrize(
    "act, error, text",
    [
        (lambda: gfile.GFile("none").read(), errors.NotFoundError, "none; No such"),
        (lambda: gfile.GFile(".", "w").write("x"), errors.FailedPreconditionError, ""),
        (lambda: gfile.GFile("f", "x"), errors.InvalidArgumentError, "mode is not 'r'"),
        (
            lambda: gfile.GFile("f", "r").write("x"),
            errors.PermissionDeniedError,
            "isn't open for writing",
        ),
        (
            lambda: gfile.GFile("f", "w").read(),
            errors.PermissionDeniedError,
            "isn't open for reading",
        ),
        (lambda: gfile.stat("none"), errors.NotFoundError, "none; No such"),
        (lambda: gfile.rename("none", "x"), errors.NotFoundError, "none; No such"),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error, match=text or None):
        act()


def test_copies_and_moves():
    put("f", "1")
    put("g", "2")
    for act in (gfile.copy, gfile.rename):
        with pytest.raises(errors.AlreadyExistsError, match="file already exists"):
            act("f", "g")
    gfile.copy("f", "g", overwrite=True)
    assert gfile.GFile("g").read() == "1"
    gfile.rename("g", "h")
    gfile.remove("h")
    assert gfile.listdir(".") == ["f"]


def test_paths_with_their_file_system(tmp_path):
    here = "file://" + str(tmp_path)
    with gfile.GFile(here + "/a", "w") as f:
        f.write("text")
    assert gfile.GFile(str(tmp_path / "a")).read() == "text"
    assert gfile.exists(here + "/a") and gfile.isdir(here)
    assert gfile.glob(here + "/*") == [here + "/a"]
    assert gfile.glob(iter([str(tmp_path / "*")])) == [str(tmp_path / "a")]
    assert list(gfile.walk(here)) == [(here, [], ["a"])]
    with pytest.raises(tf.errors.NotFoundError, match=here + "/b; No such file"):
        gfile.remove(here + "/b")
    with pytest.raises(tf.errors.UnimplementedError, match="scheme 'nope' not impl"):
        gfile.exists("nope://a")
