"""Files that nobody but this user wrote, and whole.

A sealed file begins with a code of its content under a key of the user's, which lies in
a folder of the user's own: what is damaged, cut off, written by somebody else or carried
in from elsewhere is not read. Whoever can find the key can run programs as the user
anyway. Nothing here raises: where there is no key, or nothing can be read or written,
there are no sealed files.
"""

import contextlib
import hmac
import os
import stat
from hashlib import blake2b

_BEGIN = b"headrace1\n"
_CODE = 32  # bytes of the code of the content
_KEY = 32  # bytes of the key
_FAILURES = (OSError, ValueError)  # ValueError: names with a zero in them


def _is_own(status):
    """True for what belongs to the user and nobody else may write."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _content(path, limit, folder=None):
    """What is in a plain file that only the user may write; None else."""
    # No link is followed and no pipe waited for.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags, dir_fd=folder), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or not _is_own(status):
            return None
        data = file.read(limit + 1)
        return data if len(data) <= limit else None


def _put(path, data, folder=None):
    """Makes a file, or puts it in the place of another: readers see either."""
    beside = f"{path}.{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with open(os.open(beside, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(data)
        os.replace(beside, path, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise


def _key_folder():
    """Where the key is; made where there is a place of the user's for it."""
    caches = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(caches):
        caches = os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(caches, "headrace")
    if not os.path.isdir(folder):
        above = folder
        while not os.path.isdir(above):
            above = os.path.dirname(above)
        if os.stat(above).st_uid != os.geteuid():
            return None  # of another user, for whom this one acts
        os.makedirs(folder, 0o700, exist_ok=True)
    return folder


def _key():
    """The user's key, made when it is first asked for; None where it has no place."""
    path = _key_folder()
    if path is None:
        return None
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not _is_own(os.fstat(folder)):
            return None
        for _ in range(2):
            with contextlib.suppress(FileNotFoundError):
                key = _content("key", _KEY, folder)
                if key is None or len(key) == _KEY:
                    return key
            _put("key", os.urandom(_KEY), folder)
        return None
    finally:
        os.close(folder)


def _code(key, data):
    return blake2b(data, key=key, digest_size=_CODE).digest()


def read(path, limit):
    """The content of a sealed file of at most `limit` bytes; None where there is none
    or it is not this user's."""
    try:
        found = _content(path, len(_BEGIN) + _CODE + limit)
        if found is None or not found.startswith(_BEGIN):
            return None
        code, data = found[len(_BEGIN) :][:_CODE], found[len(_BEGIN) + _CODE :]
        key = _key()
        if key is None or not hmac.compare_digest(code, _code(key, data)):
            return None
        return data
    except _FAILURES:
        return None


def write(path, data):
    """Seals a file, in a folder that is made where there is none. A file that belongs
    to somebody else stays."""
    try:
        key = _key()
        if key is None:
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            if os.lstat(path).st_uid != os.geteuid():
                return
        _put(path, _BEGIN + _code(key, data) + data)
    except _FAILURES:
        pass
