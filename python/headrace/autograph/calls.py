"""Calls of converted code: what is called is converted, too, where it is the user's."""

import builtins
import functools
import inspect
import os
import sys
import types

from headrace._load import _headrace
from headrace.autograph import builtins as overloads
from headrace.autograph import messages, operators, status
from headrace.autograph.conversion import converter, stored
from headrace.autograph.conversion.errors import AutoGraphError
from headrace.autograph.status import (
    STD,
    ControlStatusCtx,
    ConversionOptions,
    Status,
    autograph_artifact,
    control_status_ctx,
    is_autograph_artifact,
)
from headrace.context.locks import ForkLock

# Libraries whose functions run as they are; so do those of Python itself.
_LIBRARIES = frozenset(
    [
        "headrace",
        "numpy",
        "scipy",
        "ml_dtypes",
        "google",
        "absl",
        "h5py",
        "PIL",
        "IPython",
        "ipdb",
        "mock",
        "pytest",
        "_pytest",
        "pluggy",
        "psutil",
        "pkg_resources",
        "urllib3",
        "matplotlib",
        "tensorboard",
    ]
)
_FRAME_FUNCTIONS = (builtins.locals, builtins.globals, builtins.eval, builtins.vars)
_OPERATIONS = (_headrace.DispatchedFunction, type(_headrace.raw_op("Identity")))
_refused = {}  # {id of a code object: (the code object, the error of converting it)}
_lock = ForkLock()


def _is_library(name):
    top = name.partition(".")[0]
    return top in _LIBRARIES or top in sys.stdlib_module_names


def _module_of(f):
    """The name of the module that a function's code or an object's class is from."""
    if isinstance(f, types.FunctionType):
        return f.__globals__.get("__name__") or ""
    name = getattr(f, "__module__", None)
    return name if isinstance(name, str) else type(f).__module__


def _runs_as_is(f):
    """True for what is never converted: natives, constructors, generators, libraries."""
    if inspect.isbuiltin(f) or isinstance(f, (type, functools._lru_cache_wrapper)):
        return True
    holder = type(f).__module__  # no text where a native type tells its objects'
    if not isinstance(holder, str) or holder.partition(".")[0] in ("wrapt", "headrace"):
        return True
    inner = f.__func__ if inspect.ismethod(f) else f
    if inspect.isgeneratorfunction(inner) or inspect.iscoroutinefunction(inner):
        return True
    return _is_library(_module_of(inner))


def as_function(f):
    """(the plain function that a call of `f` runs, the arguments before the call's);
    None for what is no code of Python."""
    before = []
    if not inspect.isroutine(f) and callable(f):
        f = f.__call__
    if inspect.ismethod(f):
        before, f = [f.__self__], f.__func__
    return (f, before) if isinstance(f, types.FunctionType) else None


def _call(f, args, kwargs):
    return f(*args, **kwargs) if kwargs else f(*args)


def _in_frame(f, args, scope):
    """locals(), globals(), eval() and vars() of the function that calls them."""
    frame, found = sys._getframe(2), []
    while frame is not None:
        if scope is not None and frame.f_locals.get(scope.scope_name) is scope:
            found.append(frame)
        frame = frame.f_back
    if not found:
        return f(*args)
    names = {}
    for frame in reversed(found):
        names.update(frame.f_locals)
    names = {k: v for k, v in names.items() if k != scope.scope_name}
    if f is builtins.globals:
        return found[-1].f_globals
    if f is builtins.eval:
        return eval(args[0], *(args[1:] or (found[-1].f_globals, names)))
    return f(*args) if args else names


def converted_call(f, args, kwargs=None, caller_fn_scope=None, options=None):
    """What f(*args, **kwargs) gives, `f` converted where it is code of the user.

    `caller_fn_scope` is the FunctionScope of the converted code that calls, `options`
    the ConversionOptions where no such code does.
    """
    if type(f) in _OPERATIONS:  # converted code does not come here with these
        return _call(f, args, kwargs)
    if options is None:
        options = STD if caller_fn_scope is None else caller_fn_scope.callopts
    if isinstance(f, types.BuiltinFunctionType) and f in _FRAME_FUNCTIONS:
        return _in_frame(f, args, caller_fn_scope)
    if is_autograph_artifact(f):
        return _call(f, args, kwargs)
    if isinstance(f, functools.partial):
        merged = dict(f.keywords, **(kwargs or {}))
        return converted_call(f.func, f.args + args, merged, caller_fn_scope, options)
    replaced = overloads.overload_of(f, options.uses("BUILTIN_FUNCTIONS"))
    if replaced is not f:
        return _call(replaced, args, kwargs)
    converts = options.user_requested or (
        options.internal_convert_user_code
        and control_status_ctx().status is not Status.DISABLED
    )
    found = as_function(f) if converts and not _runs_as_is(f) else None
    if found is not None:
        function, before = found
        made = _converted_or_none(function, options, f)
        if made is not None:
            return _call(made, (*before, *args), kwargs)
    return _call(f, args, kwargs)


def _converted_or_none(function, options, f):
    """The converted function; None where `function` runs as it is, with a warning once
    where it could not be made."""
    if is_autograph_artifact(function) or _runs_as_is(function):
        return None
    code = function.__code__
    if why_unconverted(code) is not None:
        return None
    # One conversion serves all callers: what they ask for differs in the call only.
    options = ConversionOptions(True, True, True, options.optional_features)
    try:
        return converter.converted(function, options, ag__)
    except Exception as e:
        if os.environ.get("AUTOGRAPH_STRICT_CONVERSION", "0") not in ("", "0"):
            raise
        with _lock:
            known = why_unconverted(code) is not None
            _refused[id(code)] = code, e
        if not known:
            messages.warn_of(f, e)
        return None


def why_unconverted(code):
    """The error for which code of the user runs as it is; None of any other code."""
    kept = _refused.get(id(code))
    return kept[1] if kept is not None and kept[0] is code else None


def traced(function, features=None):
    """What tf.function traces for a function of the user."""
    return _converting(function, ConversionOptions(True, True, True, features))


def _converting(f, options):
    """A function that calls `f` converted."""

    def call(*args, **kwargs):
        # A function of this package asks by the status whether to convert the user's.
        try:
            with ControlStatusCtx(Status.ENABLED, options):
                return converted_call(f, args, kwargs, options=options)
        finally:
            if control_status_ctx().status is Status.UNSPECIFIED:  # the outermost
                stored.write()

    return call


def in_graph(function):
    """The function as it runs here, called by this package for the user: converted
    while a graph is made, as it is in eager code or where nothing is converted."""
    context = control_status_ctx()
    if _headrace.is_eager() or context.status is Status.DISABLED:
        return function
    return tf_convert(function, context)


def tf_convert(f, ctx, convert_by_default=True, user_requested=False):
    """The function as it runs where `ctx`, a ControlStatusCtx, holds: converted where
    conversion is on, else as it is.
    """
    if is_autograph_artifact(f):
        return f
    stays_off = ctx.status is Status.UNSPECIFIED and not convert_by_default
    if ctx.status is Status.DISABLED or stays_off:
        return do_not_convert(f)
    features = ctx.options.optional_features if ctx.options else None
    options = ConversionOptions(True, user_requested, True, features)

    call = functools.update_wrapper(_converting(f, options), f, updated=())
    return autograph_artifact(call)


def do_not_convert(func=None):
    """Decorates a function that runs as it is, and so does what it calls.

    Raises AutoGraphError for what is not callable.
    """
    if func is None:
        return do_not_convert
    if not callable(func):
        raise AutoGraphError(f"do_not_convert wants a function, got {func!r}")

    def call(*args, **kwargs):
        with ControlStatusCtx(Status.DISABLED):
            return func(*args, **kwargs)

    if inspect.isfunction(func) or inspect.ismethod(func):
        call = functools.update_wrapper(call, func)
    return autograph_artifact(call)


def _names_for_converted_code():
    """What converted code finds under the name ag__."""
    names = types.ModuleType("ag__")
    names.__dict__.update({k: v for k, v in vars(operators).items() if k[0] != "_"})
    for value in (
        status.ConversionOptions,
        status.Feature,
        status.FunctionScope,
        status.autograph_artifact,
        status.with_function_scope,
    ):
        setattr(names, value.__name__, value)
    names.STD = status.STD
    names.converted_call = _headrace.converted_call
    return names


_headrace.set_converted_call(converted_call, _OPERATIONS)
ag__ = _names_for_converted_code()
