"""Statuses of servers as the exceptions of tf.errors."""

from headrace.context import errors

# Of HTTP statuses that stand for one status code; the others are UNKNOWN.
_OF_HTTP = {
    400: errors.INVALID_ARGUMENT,
    401: errors.UNAUTHENTICATED,
    403: errors.PERMISSION_DENIED,
    404: errors.NOT_FOUND,
    405: errors.INVALID_ARGUMENT,
    408: errors.DEADLINE_EXCEEDED,
    409: errors.ABORTED,
    411: errors.INVALID_ARGUMENT,
    413: errors.RESOURCE_EXHAUSTED,
    429: errors.RESOURCE_EXHAUSTED,
    431: errors.INVALID_ARGUMENT,
    499: errors.CANCELLED,
    500: errors.INTERNAL,
    501: errors.UNIMPLEMENTED,
    502: errors.UNAVAILABLE,
    503: errors.UNAVAILABLE,
    504: errors.DEADLINE_EXCEEDED,
}
# Names of status codes in JSON ("NOT_FOUND") and their numbers.
CODES = {
    name: value
    for name, value in vars(errors).items()
    if name.isupper() and isinstance(value, int)
}


def of_code(code, message):
    """The exception of a status code's number."""
    cls = errors._BY_CODE.get(code, errors.UnknownError)
    return cls(None, None, message)


def of_http(status, message):
    """The exception of an HTTP status."""
    return of_code(_OF_HTTP.get(status, errors.UNKNOWN), message)


def invalid(message):
    """What a call is refused with before it is sent."""
    return errors.InvalidArgumentError(None, None, message)


def unimplemented(message):
    """What is said of what a protocol has not."""
    return errors.UnimplementedError(None, None, message)


def unavailable(message):
    """What is said of a server that cannot be reached: worth another try."""
    return errors.UnavailableError(None, None, message)


def late(message):
    """What is said when a deadline has passed."""
    return errors.DeadlineExceededError(None, None, message)


def broken(message):
    """What is said of an answer that is none."""
    return errors.DataLossError(None, None, message)
