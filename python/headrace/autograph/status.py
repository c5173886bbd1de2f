"""What is converted here and now: options, optional features, scopes of functions."""

import enum
import inspect
import threading

from headrace._load import _headrace
from headrace.context import strategies
from headrace.autograph.variables import UndefinedReturnValue


class Feature(enum.Enum):
    """Optional parts of the conversion (`experimental_autograph_options`).

    Attributes:
      ALL: all of them.
      AUTO_CONTROL_DEPS: effects of a converted function run in order, outside of
        tf.function, too.
      ASSERT_STATEMENTS: `assert` on tensors becomes tf.debugging.Assert.
      BUILTIN_FUNCTIONS: `print` of tensors becomes tf.print.
      EQUALITY_OPERATORS: `==` and `!=` compare tensors by value.
      LISTS: lists become TensorArrays or lists of tensors.
      NAME_SCOPES: a function's operations lie in a name scope of its name.
    """

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"

    @classmethod
    def all(cls):
        """All features, as a tuple."""
        return tuple(cls.__members__.values())

    @classmethod
    def all_but(cls, exclude):
        """All features but those in `exclude` (one or several) and ALL."""
        if not isinstance(exclude, (list, tuple, set)):
            exclude = (exclude,)
        return tuple(set(cls.all()) - set(exclude) - {cls.ALL})


class ConversionOptions:
    """How functions are converted.

    Attributes:
      recursive: whether functions that they call are converted, too.
      user_requested: whether the user asked for this very function.
      internal_convert_user_code: whether called functions are converted at all.
      optional_features: a frozenset of Features.
    """

    def __init__(
        self,
        recursive=False,
        user_requested=False,
        internal_convert_user_code=True,
        optional_features=Feature.ALL,
    ):
        self.recursive = recursive
        self.user_requested = user_requested
        self.internal_convert_user_code = internal_convert_user_code
        features = optional_features or ()
        if isinstance(features, Feature):
            features = (features,)
        self.optional_features = frozenset(features)

    def as_tuple(self):
        """What tells options apart."""
        return (
            self.recursive,
            self.user_requested,
            self.internal_convert_user_code,
            self.optional_features,
        )

    def __hash__(self):
        return hash(self.as_tuple())

    def __eq__(self, other):
        return isinstance(other, ConversionOptions) and (
            self.as_tuple() == other.as_tuple()
        )

    def uses(self, feature):
        """True where the feature of that name is on."""
        on = self.optional_features
        return Feature.ALL in on or Feature[feature] in on

    def source(self):
        """The expression that makes these options in converted code."""
        names = sorted(f.name for f in self.optional_features)
        listed = "".join(f"ag__.Feature.{n}, " for n in names)
        listed = listed if len(names) == 1 else listed.removesuffix(", ")
        return (
            f"ag__.ConversionOptions(recursive={self.recursive}, "
            f"user_requested={self.user_requested}, "
            f"optional_features=({listed}), "
            f"internal_convert_user_code={self.internal_convert_user_code})"
        )


STD = ConversionOptions(
    recursive=True,
    user_requested=False,
    internal_convert_user_code=True,
    optional_features=None,
)


class Status(enum.Enum):
    """Whether functions that are called now are converted."""

    UNSPECIFIED = 0
    ENABLED = 1
    DISABLED = 2


class ControlStatusCtx:
    """A context manager: the status of the calls inside it, on this thread.

    Attributes:
      status: a Status.
      options: the ConversionOptions of converted code, or None.
    """

    def __init__(self, status, options=None):
        self.status, self.options = status, options

    def __enter__(self):
        _state.contexts.append(self)
        return self

    def __exit__(self, *error):
        _state.contexts.pop()

    def __repr__(self):
        return f"{type(self).__name__}[status={self.status}, options={self.options}]"


class _State(threading.local):
    def __init__(self):
        self.contexts = [ControlStatusCtx(Status.UNSPECIFIED)]


_state = strategies.carry(_State())


def control_status_ctx():
    """The innermost ControlStatusCtx of this thread."""
    return _state.contexts[-1]


class FunctionScope:
    """What converted functions run in.

    Attributes:
      callopts: the ConversionOptions of the functions that are called inside.
    """

    def __init__(self, function_name, scope_name, options):
        self.name, self.scope_name, self.options = function_name, scope_name, options
        self._context = ControlStatusCtx(Status.ENABLED, options)
        self.callopts = ConversionOptions(
            options.recursive,
            user_requested=False,
            internal_convert_user_code=options.recursive,
            optional_features=options.optional_features,
        )

    def __enter__(self):
        _headrace.push_base()
        self._context.__enter__()
        return self

    def __exit__(self, *error):
        self._context.__exit__(*error)
        _headrace.pop_base()

    def ret(self, value, did_return):
        """What the function returns: None where no `return` was met."""
        if isinstance(value, UndefinedReturnValue):
            return None
        return value


def with_function_scope(thunk, scope_name, options):
    """What thunk(scope) gives, for converted lambdas."""
    with FunctionScope("lambda_", scope_name, options) as scope:
        return thunk(scope)


def autograph_artifact(entity, extras=None):
    """Marks what converted code made: it is converted already."""
    if inspect.isroutine(entity):
        entity.__dict__["autograph_info__"] = extras
    return entity


def is_autograph_artifact(entity):
    """True for converted functions."""
    return hasattr(entity, "autograph_info__")
