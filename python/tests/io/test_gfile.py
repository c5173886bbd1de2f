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
    assert gfile.glob(["?/f", "*", "./*"]) == ["./a/f", "./a", "./a"]
    found = tf.io.matching_files(["?/f", "a/b*", "a/f"])
    assert found.numpy().tolist() == [b"./a/f", b"a/b", b"a/f"]
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


def test_arguments_by_name(tmp_path):
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    with tf.io.gfile.GFile(name=one, mode="wb") as f:
        f.write(b"abc")
        assert f.mode == "wb"
    tf.io.gfile.copy(src=one, dst=two)
    tf.io.gfile.rename(src=two, dst=one, overwrite=True)
    assert tf.io.gfile.stat(path=one).length == 3
    with pytest.raises(TypeError, match="path"):
        tf.io.gfile.remove()


def test_names_of_tensorflow_1(tmp_path):
    g, root = tf.compat.v1.gfile, str(tmp_path)
    g.MakeDirs(f"{root}/a/b")
    g.MkDir(dirname=f"{root}/c")
    for kind in (g.GFile, g.Open, g.FastGFile):
        with kind(f"{root}/a/f.txt", "w") as f:
            f.write("text")
    g.Copy(f"{root}/a/f.txt", f"{root}/a/g.txt")
    with pytest.raises(tf.errors.AlreadyExistsError):
        g.Copy(oldpath=f"{root}/a/f.txt", newpath=f"{root}/a/g.txt")
    g.Rename(f"{root}/a/g.txt", f"{root}/a/f.txt", True)
    assert g.Exists(f"{root}/a/f.txt") and not g.Exists(f"{root}/a/g.txt")
    assert g.IsDirectory(f"{root}/a") and not g.IsDirectory(f"{root}/a/f.txt")
    assert sorted(g.ListDirectory(f"{root}/a")) == ["b", "f.txt"]
    assert g.Glob(filename=f"{root}/a/*.txt") == [f"{root}/a/f.txt"]
    assert g.Stat(f"{root}/a/f.txt").length == 4
    last = [folder for folder, _, _ in g.Walk(f"{root}/a", in_order=False)]
    assert last == [f"{root}/a/b", f"{root}/a"]
    g.Remove(f"{root}/a/f.txt")
    g.DeleteRecursively(f"{root}/a")
    with pytest.raises(tf.errors.NotFoundError):
        g.Remove(f"{root}/a/f.txt")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_no_room_is_an_error_of_the_library():
    full = gfile.GFile("/dev/full", "w")
    full.write("a")  # into a buffer
    with pytest.raises(errors.ResourceExhaustedError, match="/dev/full; No space left"):
        full.close()
    with pytest.raises(errors.ResourceExhaustedError, match="/dev/full; No space left"):
        full.write("a" * (1 << 20))
