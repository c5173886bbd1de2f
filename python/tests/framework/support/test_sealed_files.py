"""Sealed files: what this user wrote comes back, nothing else does."""

import os

import pytest

from headrace.framework.support import sealed_files

DATA = bytes(range(40))


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return str(tmp_path / "kept" / "file")


def read(path, limit=1000):
    return sealed_files.read(path, limit)


def sealed(path, data=DATA):
    sealed_files.write(path, data)
    with open(path, "rb") as file:
        return file.read()


def test_what_was_written_is_read(path):
    assert read(path) is None
    sealed(path)
    assert read(path) == DATA
    sealed(path, b"")
    assert read(path) == b""
    assert os.listdir(os.path.dirname(path)) == ["file"]  # nothing is left beside


def test_a_file_cut_at_every_byte(path):
    whole = sealed(path)
    for n in range(len(whole)):
        with open(path, "wb") as file:
            file.write(whole[:n])
        assert read(path) is None, n
    with open(path, "wb") as file:
        file.write(whole)
    assert read(path) == DATA


def test_every_bit_turned_and_bytes_added(path):
    whole = sealed(path)
    for n in range(len(whole) * 8):
        turned = bytearray(whole)
        turned[n // 8] ^= 1 << n % 8
        with open(path, "wb") as file:
            file.write(turned)
        assert read(path) is None, n
    with open(path, "ab") as file:
        file.write(b"\0")
    assert read(path) is None


def test_a_file_sealed_with_another_key(path, tmp_path):
    whole = sealed(path)
    os.unlink(tmp_path / "caches" / "headrace" / "key")
    assert read(path) is None
    assert sealed(path) != whole
    assert read(path) == DATA


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_what_others_may_write_is_not_read(path, tmp_path, mode):
    sealed(path)
    for writable in (
        path,
        tmp_path / "caches/headrace/key",
        tmp_path / "caches/headrace",
    ):
        before = os.stat(writable).st_mode & 0o777
        os.chmod(writable, mode | before)
        assert read(path) is None, writable
        os.chmod(writable, before)
    assert read(path) == DATA


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away, as only root may")
def test_what_others_own_is_not_read_nor_replaced(path, tmp_path):
    whole = sealed(path)
    for given in (path, tmp_path / "caches/headrace/key", tmp_path / "caches/headrace"):
        os.chown(given, 12345, -1)
        assert read(path) is None, given
        sealed_files.write(path, b"other")
        with open(path, "rb") as file:
            assert file.read() == whole
        os.chown(given, 0, -1)
    assert read(path) == DATA


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away, as only root may")
def test_no_key_is_made_in_a_home_of_another_user(path, tmp_path):
    (tmp_path / "caches").mkdir()
    os.chown(tmp_path / "caches", 12345, -1)
    sealed_files.write(path, DATA)
    assert not os.path.exists(path)
    assert not (tmp_path / "caches" / "headrace").exists()


def test_what_is_no_plain_file(path):
    sealed(path)
    os.rename(path, path + "_")
    os.symlink(path + "_", path)
    assert read(path) is None
    os.unlink(path)
    os.mkfifo(path)  # read() waits for nobody
    assert read(path) is None
    os.unlink(path)
    os.mkdir(path)
    assert read(path) is None
    sealed_files.write(path, DATA)
    assert os.listdir(path) == []
    assert sorted(os.listdir(os.path.dirname(path))) == ["file", "file_"]


def test_a_link_is_replaced_not_written_through(path, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"stays")
    os.mkdir(os.path.dirname(path))
    os.symlink(other, path)
    sealed_files.write(path, DATA)
    assert read(path) == DATA and other.read_bytes() == b"stays"


def test_no_more_than_the_limit_is_read(path):
    sealed(path)
    assert read(path, len(DATA)) == DATA
    assert read(path, len(DATA) - 1) is None


def test_a_damaged_key_is_made_anew(path, tmp_path):
    sealed(path)
    key = tmp_path / "caches" / "headrace" / "key"
    key.write_bytes(key.read_bytes()[:20])
    assert read(path) is None
    sealed(path)
    assert read(path) == DATA and len(key.read_bytes()) == 32


def test_nowhere_to_write(path, tmp_path, monkeypatch):
    (tmp_path / "kept").write_text("a file where a folder would be")
    sealed_files.write(path, DATA)
    assert read(path) is None
    sealed_files.write("no\0name", DATA)
    assert read("no\0name") is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    sealed_files.write(str(tmp_path / "x"), DATA)
    assert sorted(os.listdir(tmp_path)) == ["caches", "kept"]


def test_the_key_lies_in_the_home_without_a_folder_for_caches(
    path, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    for no_folder in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", no_folder)
        sealed(path)
        assert read(path) == DATA
    assert (tmp_path / ".cache/headrace/key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / ".cache/headrace").stat().st_mode & 0o777 == 0o700
