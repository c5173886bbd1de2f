"""Files of the file systems that paths name ("hdfs://", "ram://"), for gfile; as
local_files, but with TensorFlow's errors."""

import io
import os

from headrace._load import _headrace
from headrace.context import errors

# Reads and writes of fewer bytes are gathered: each call of the engine costs more.
_BUFFER = 1 << 20

listdir = _headrace.file_list
makedirs = mkdir = _headrace.file_make_directories
remove = _headrace.file_delete
rmtree = _headrace.file_delete_recursively
replace = _headrace.file_rename
copyfile = _headrace.file_copy
glob = _headrace.file_match
stat = _headrace.file_stat


def exists(path):
    """Whether there is a file or folder."""
    try:
        stat(path)
    except errors.NotFoundError:
        return False
    return True


def isdir(path):
    """Whether there is a folder."""
    try:
        return stat(path)[2]
    except errors.NotFoundError:
        return False


def walk(top, topdown=True, onerror=None):
    """As os.walk."""
    try:
        names = listdir(top)
        folders = [n for n in names if isdir(os.path.join(top, n))]
    except errors.OpError as error:
        if onerror is not None:
            onerror(error)
        return
    step = top, folders, [n for n in names if n not in set(folders)]
    if topdown:
        yield step
    for folder in folders:
        yield from walk(os.path.join(top, folder), topdown, onerror)
    if not topdown:
        yield step


class _Reading(io.RawIOBase):
    def __init__(self, path):
        self._file, self._at = _headrace.FileReader(path), 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=os.SEEK_SET):
        start = (0, self._at, self._file.size())[whence]
        if start + offset < 0:
            raise errors.OutOfRangeError._of("a place before the file's start")
        self._at = start + offset
        return self._at

    def tell(self):
        return self._at

    def read(self, n=-1):
        data = self._file.read(self._at, self._file.size() if n is None or n < 0 else n)
        self._at += len(data)
        return data

    readall = read

    def readinto(self, buffer):
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Writing(io.RawIOBase):
    def __init__(self, path, append):
        self._file = _headrace.FileWriter(path, append)

    def writable(self):
        return True

    def tell(self):
        return self._file.size()

    def write(self, data):
        self._file.write(bytes(data))
        return len(data)

    def flush(self):
        if self._file is not None:
            self._file.sync()

    def close(self):
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        finally:
            super().close()  # which flushes


def open(path, mode):
    """A file of bytes; UnimplementedError for modes that read and write."""
    if mode == "rb":
        return io.BufferedReader(_Reading(path), _BUFFER)
    if "+" in mode:
        raise errors.UnimplementedError._of(
            f"the mode '{mode.rstrip('b')}' for {path}: a file of that file system is "
            "read or written, not both"
        )
    return io.BufferedWriter(_Writing(path, append=mode == "ab"), _BUFFER)
