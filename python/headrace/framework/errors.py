"""tf.errors: an exception class for every status code."""

from headrace.context import call_stacks


class OpError(Exception):
    """The base of errors that operations raise.

    Attributes:
      message: what happened.
      op: the operation that failed, where a graph has one.
      error_code: the status code's number.
    """

    def __init__(self, node_def, op, message, error_code, *args):
        super().__init__()
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = error_code
        self._payloads = dict(args[0]) if args else {}

    def __reduce__(self):
        args = [self._node_def, self._op, self._message]
        if type(self) in (OpError,):
            args.append(self._error_code)
        return type(self), tuple(args)

    @property
    def message(self):
        """What happened, without the list of operations that led to it: a str."""
        return self._message

    @property
    def op(self):
        """The tf.Operation that failed, or None where none is known,
        as in eager code."""
        return self._op

    @property
    def error_code(self):
        """The number of the status code, such as tf.errors.INVALID_ARGUMENT."""
        return self._error_code

    @property
    def node_def(self):
        """The NodeDef of the operation that failed, or None."""
        return self._node_def

    @property
    def experimental_payloads(self):
        """A dict of what the runtime attached to the error: name to bytes."""
        return self._payloads

    def __str__(self):
        if self._op is None or "Original stack trace for" in str(self._message):
            return str(self._message)
        rows = call_stacks.user_frames(self._op.traceback)
        lines = "".join(f'\n  File "{f}", line {n}, in {fn}' for f, n, fn in rows)
        return f"{self._message}\n\nOriginal stack trace for {self._op.name!r}:{lines}"


_BY_CODE = {}


def _define(name, code, doc):
    def __init__(self, node_def, op, message, *args):
        OpError.__init__(self, node_def, op, message, code, *args)

    cls = type(name, (OpError,), {"__init__": __init__, "__doc__": doc})
    cls.__module__ = __name__
    _BY_CODE[code] = cls
    return cls


CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16
OK = 0

CancelledError = _define("CancelledError", CANCELLED, "The work was cancelled.")
UnknownError = _define("UnknownError", UNKNOWN, "An error of unknown kind.")
InvalidArgumentError = _define(
    "InvalidArgumentError", INVALID_ARGUMENT, "An operation got an invalid argument."
)
DeadlineExceededError = _define(
    "DeadlineExceededError", DEADLINE_EXCEEDED, "A deadline passed before the end."
)
NotFoundError = _define("NotFoundError", NOT_FOUND, "Something asked for is not there.")
AlreadyExistsError = _define(
    "AlreadyExistsError", ALREADY_EXISTS, "Something to be made is there already."
)
PermissionDeniedError = _define(
    "PermissionDeniedError", PERMISSION_DENIED, "The caller may not do this."
)
ResourceExhaustedError = _define(
    "ResourceExhaustedError", RESOURCE_EXHAUSTED, "Memory or another resource ran out."
)
FailedPreconditionError = _define(
    "FailedPreconditionError",
    FAILED_PRECONDITION,
    "The system is not in a state that the operation needs.",
)
AbortedError = _define("AbortedError", ABORTED, "The operation was aborted.")
OutOfRangeError = _define(
    "OutOfRangeError", OUT_OF_RANGE, "The operation went past the valid range."
)
UnimplementedError = _define(
    "UnimplementedError", UNIMPLEMENTED, "The operation is not implemented."
)
InternalError = _define("InternalError", INTERNAL, "An invariant of the engine broke.")
UnavailableError = _define(
    "UnavailableError", UNAVAILABLE, "A service is not available at the moment."
)
DataLossError = _define("DataLossError", DATA_LOSS, "Data was lost or is corrupt.")
UnauthenticatedError = _define(
    "UnauthenticatedError", UNAUTHENTICATED, "The caller did not say who it is."
)


class OperatorNotAllowedInGraphError(TypeError):
    """A symbolic tensor was used where Python needs a value."""


class InaccessibleTensorError(ValueError):
    """A tensor of another graph was used."""


def _from_status(code, message):
    """The exception of a status: called by the bindings."""
    cls = _BY_CODE.get(code, UnknownError)
    return cls(None, None, message)


def exception_type_from_error_code(error_code):
    """The exception class of a status code's number."""
    return _BY_CODE[error_code]


def error_code_from_exception_type(cls):
    """The status code's number of an exception class."""
    for code, known in _BY_CODE.items():
        if known is cls:
            return code
    return UNKNOWN
