"""tf.errors: an exception class for every status code."""

from headrace.context import call_stacks
from headrace.context.properties import read_only


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

    @classmethod
    def _of(cls, message):
        """The error of what no operation did."""
        return cls(None, None, message)

    def __reduce__(self):
        args = [self._node_def, self._op, self._message]
        if type(self) in (OpError,):
            args.append(self._error_code)
        return type(self), tuple(args)

    message = read_only(
        "_message",
        "What happened, without the list of operations that led to it: a str.",
    )

    @property
    def op(self):
        """The tf.Operation that failed, or None where none is known,
        as in eager code."""
        return self._op

    error_code = read_only(
        "_error_code",
        "The number of the status code, such as tf.errors.INVALID_ARGUMENT.",
    )
    node_def = read_only(
        "_node_def", "The NodeDef of the operation that failed, or None."
    )
    experimental_payloads = read_only(
        "_payloads", "A dict of what the runtime attached to the error: name to bytes."
    )

    def __str__(self):
        if self._op is None or "Original stack trace for" in str(self._message):
            return str(self._message)
        rows = call_stacks.user_frames(self._op.traceback)
        lines = "".join(f'\n  File "{f}", line {n}, in {fn}' for f, n, fn in rows)
        return f"{self._message}\n\nOriginal stack trace for {self._op.name!r}:{lines}"


_BY_CODE = {}
OK = 0

# The name of a status code, its number, the exception and what that says of itself.
_TABLE = """
CANCELLED 1 CancelledError The work was cancelled.
UNKNOWN 2 UnknownError An error of unknown kind.
INVALID_ARGUMENT 3 InvalidArgumentError An operation got an invalid argument.
DEADLINE_EXCEEDED 4 DeadlineExceededError A deadline passed before the end.
NOT_FOUND 5 NotFoundError Something asked for is not there.
ALREADY_EXISTS 6 AlreadyExistsError Something to be made is there already.
PERMISSION_DENIED 7 PermissionDeniedError The caller may not do this.
RESOURCE_EXHAUSTED 8 ResourceExhaustedError Memory or another resource ran out.
FAILED_PRECONDITION 9 FailedPreconditionError The system is not in a state that the operation needs.
ABORTED 10 AbortedError The operation was aborted.
OUT_OF_RANGE 11 OutOfRangeError The operation went past the valid range.
UNIMPLEMENTED 12 UnimplementedError The operation is not implemented.
INTERNAL 13 InternalError An invariant of the engine broke.
UNAVAILABLE 14 UnavailableError A service is not available at the moment.
DATA_LOSS 15 DataLossError Data was lost or is corrupt.
UNAUTHENTICATED 16 UnauthenticatedError The caller did not say who it is.
"""


def _define(name, code, doc):
    def __init__(self, node_def, op, message, *args):
        OpError.__init__(self, node_def, op, message, code, *args)

    cls = type(name, (OpError,), {"__init__": __init__, "__doc__": doc})
    cls.__module__ = __name__
    return cls


for _row in _TABLE.strip().split("\n"):
    _constant, _number, _name, _doc = _row.split(" ", 3)
    globals()[_constant] = int(_number)
    globals()[_name] = _BY_CODE[int(_number)] = _define(_name, int(_number), _doc)


class OperatorNotAllowedInGraphError(TypeError):
    """A symbolic tensor was used where Python needs a value."""


class InaccessibleTensorError(ValueError):
    """A tensor of another graph was used."""


def _from_status(code, message):
    """The exception of a status: called by the bindings."""
    cls = _BY_CODE.get(code, UnknownError)
    return cls(None, None, message)


def exception_type_from_error_code(error_code):
    """The exception class of a status code's number; KeyError if there is none."""
    return _BY_CODE[error_code]


def error_code_from_exception_type(cls):
    """The status code's number of an exception class; of another class an
    UnknownError, which is not raised."""
    for code, known in _BY_CODE.items():
        if known is cls:
            return code
    return UnknownError(None, None, "Unknown class exception")
