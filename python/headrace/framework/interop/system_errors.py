"""The system's errors as TensorFlow's."""

import contextlib
import errno
import os

from headrace.context import errors

_ERRORS = {
    errno.ENOENT: errors.NotFoundError,
    errno.EEXIST: errors.AlreadyExistsError,
    errno.EISDIR: errors.FailedPreconditionError,
    errno.ENOTDIR: errors.FailedPreconditionError,
    errno.ENOTEMPTY: errors.FailedPreconditionError,
    errno.EACCES: errors.PermissionDeniedError,
    errno.EPERM: errors.PermissionDeniedError,
    errno.ENOSPC: errors.ResourceExhaustedError,
    errno.EROFS: errors.PermissionDeniedError,
    errno.ENAMETOOLONG: errors.InvalidArgumentError,
}


def _raised(error, path):
    kind = _ERRORS.get(error.errno, errors.UnknownError)
    return kind(None, None, f"{path}; {os.strerror(error.errno or errno.EIO)}")


@contextlib.contextmanager
def system_errors(path):
    """Turns the system's errors of a path into TensorFlow's."""
    try:
        yield
    except OSError as e:
        raise _raised(e, path) from None
