"""tf.io.gfile: files and folders, with TensorFlow's errors."""

import collections
import errno
import functools
import inspect
import os
import re

from headrace.context import errors
from headrace.context.properties import read_only
from headrace.framework.interop.system_errors import system_errors
from headrace.io import local_files, remote_files

_MODES = ("r", "w", "a", "r+", "w+", "a+")
Stat = collections.namedtuple("Stat", ["length", "mtime_nsec", "is_directory"])


def _path(path):
    """The path on this machine of a path that may name its file system, or itself
    where that is another one."""
    path = os.fsdecode(os.fspath(path))
    return path.removeprefix("file://")


def _is_remote(path):
    return "://" in path


def _files(path):
    """What reaches a path: local_files, or remote_files where it names a file system,
    as in hdfs://."""
    return remote_files if _is_remote(_path(path)) else local_files


def _named_alike(path, found):
    """A path that was found below `path`, written as that one."""
    named = os.fsdecode(os.fspath(path)).startswith("file://")
    return f"file://{found}" if named else found


def _of_path(function):
    first = next(iter(inspect.signature(function).parameters))

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        path = args[0] if args else kwargs.pop(first, None)
        if path is None:
            return function(**kwargs)  # which says what is missing
        local = _path(path)
        with system_errors(_named_alike(path, local)):
            return function(local, *args[1:], **kwargs)

    return wrapped


class GFile:
    """A file that is opened when it is first read or written.

    `mode` is one of r, w, a, r+, w+, a+, with b for bytes instead of text (UTF-8).
    """

    def __init__(self, name, mode="r"):
        self._name, self._given = _path(name), mode
        self._binary = "b" in mode
        self._mode = mode.replace("b", "")
        if self._mode not in _MODES:
            names = " or ".join(f"'{m}'" for m in _MODES)
            raise errors.InvalidArgumentError._of(f"mode is not {names}")
        self._file = None

    name = read_only("_name", "The path, as given.")
    mode = read_only("_given", "The mode, as given, with its b.")

    def _open(self, reading):
        allowed = "+" in self._mode or (self._mode == "r") == reading
        if not allowed:
            what = "reading" if reading else "writing"
            raise errors.PermissionDeniedError._of(f"File isn't open for {what}")
        if self._file is None:
            # Bytes below: places are counted in them.
            with system_errors(self._name):
                opened = remote_files.open if _is_remote(self._name) else open
                self._file = opened(self._name, self._mode + "b")
            if self._mode == "a+":
                self._file.seek(0)
        return self._file

    def _text(self, data):
        return data if self._binary else data.decode("utf-8")

    def read(self, n=-1):
        """The next n bytes, all that are left where n is negative."""
        with system_errors(self._name):
            return self._text(self._open(True).read(n))

    def readline(self):
        """The next line with its line feed; empty at the end of the file."""
        return self._text(self._open(True).readline())

    def next(self):
        """The next line; StopIteration at the end of the file."""
        return next(iter(self))

    def readlines(self):
        """A list of the lines that are left, each with its line feed."""
        return [self._text(line) for line in self._open(True).readlines()]

    def write(self, file_content):
        """Writes a str, as UTF-8, or bytes; returns nothing.

        PermissionDeniedError where the mode is for reading only.
        """
        data = file_content
        if isinstance(data, str):
            data = data.encode("utf-8")
        with system_errors(self._name):
            self._open(False).write(data)

    def seek(self, offset=None, whence=0, position=None):
        """Moves to `offset` bytes from the start (whence 0), from here (1) or the end
        (2).

        `position` is an older name of `offset`. InvalidArgumentError for another
        whence; PermissionDeniedError where the mode is for writing only.
        """
        if position is not None:
            offset = position
        if offset is None:
            raise TypeError("seek(): offset argument required")
        if whence not in (0, 1, 2):
            raise errors.InvalidArgumentError._of(
                f"Invalid whence argument: {whence}. Valid values are 0, 1, or 2."
            )
        self._open(True).seek(offset, whence)

    def tell(self):
        """The place in the file, in bytes from its start."""
        return self._open("r" in self._mode or "+" in self._mode).tell()

    def size(self):
        """The file's length in bytes."""
        self.flush()
        return stat(self._name).length

    def seekable(self):
        """True: files can always seek."""
        return True

    def flush(self):
        """Hands what was written to the system; does nothing where no file is open."""
        if self._file is not None and not self._file.closed:
            self._file.flush()
            self._file.raw.flush()  # to another machine

    def close(self):
        """Closes the file; a later read or write opens it anew, as its mode says."""
        if self._file is not None:
            try:
                with system_errors(self._name):
                    self._file.close()
            finally:
                self._file = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __iter__(self):
        return self

    def __next__(self):
        line = self.readline()
        if not line:
            raise StopIteration
        return line


def exists(path):
    """True where there is a file or folder."""
    return _files(path).exists(_path(path))


def isdir(path):
    """True where there is a folder."""
    return _files(path).isdir(_path(path))


@_of_path
def mkdir(path):
    """Makes a folder; nothing where it is there."""
    files = _files(path)
    if not files.isdir(path):
        files.mkdir(path)


@_of_path
def makedirs(path):
    """Makes a folder and those above it; none where the path is longer than the system
    takes."""
    _files(path).makedirs(path)


@_of_path
def remove(path):
    """Removes a file."""
    files = _files(path)
    if files.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "")
    files.remove(path)


@_of_path
def rmtree(path):
    """Removes a folder and all below it."""
    files = _files(path)
    if not files.exists(path):
        raise errors.NotFoundError._of(f"{path} not found")
    files.rmtree(path)


@_of_path
def listdir(path):
    """The names in a folder, in no order."""
    files = _files(path)
    if not files.isdir(path):
        raise errors.NotFoundError._of(f"Could not find directory {path}")
    return files.listdir(path)


@_of_path
def stat(path):
    """A Stat: length in bytes, mtime_nsec, is_directory."""
    return Stat(*_files(path).stat(path))


def _check_move(src, dst, overwrite):
    if not _files(src).exists(src):
        raise FileNotFoundError(errno.ENOENT, "")
    if not overwrite and _files(dst).exists(dst):
        raise errors.AlreadyExistsError._of("file already exists")


def _files_of_both(src, dst):
    return _files(dst) if _files(src) is local_files else _files(src)


@_of_path
def copy(src, dst, overwrite=False):
    """Copies a file, also from one file system to another."""
    dst = _path(dst)
    _check_move(src, dst, overwrite)
    _files_of_both(src, dst).copyfile(src, dst)


@_of_path
def rename(src, dst, overwrite=False):
    """Moves a file or folder."""
    dst = _path(dst)
    _check_move(src, dst, overwrite)
    _files_of_both(src, dst).replace(src, dst)


def glob(pattern):
    """The paths that fit a pattern, or one of several, in order. Where a pattern begins
    in the working folder they begin with "./"."""
    single = isinstance(pattern, (str, bytes, os.PathLike))
    return [
        _named_alike(p, _here(p) + path)
        for p in ([pattern] if single else pattern)
        for path in sorted(_files(p).glob(_path(p)))
    ]


def _here(pattern):
    """What stands before the paths that a pattern finds."""
    text = os.fsdecode(os.fspath(pattern))
    plain = re.split(r"[*?[\\]", text, maxsplit=1)[0]
    return "" if plain == text or "/" in plain else "./"


def walk(top, topdown=True, onerror=None):
    """(folder, names of its folders, names of its files), the deepest last or first.

    onerror is called with the error of a folder that cannot be read, which is
    otherwise passed over.
    """
    steps = _files(top).walk(_path(top), topdown=topdown, onerror=onerror)
    for folder, folders, files in steps:
        yield _named_alike(top, folder), sorted(folders), sorted(files)


def join(path, *paths):
    """The parts as one path."""
    return os.path.join(path, *paths)


def get_registered_schemes():
    """The kinds of file systems that paths may name: "" is the local one."""
    return ["", "file", "ram", "hdfs", "webhdfs", "swebhdfs", "s3"]
