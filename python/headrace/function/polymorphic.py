"""tf.function: a Python function traced once a signature."""

import functools
import inspect

from headrace._load import _headrace
from headrace.context import late, stack, strategies
from headrace.context.properties import read_only
from headrace.framework import cancellation, nest
from headrace.framework.settings import tracebacks
from headrace.framework.support import markup
from headrace.framework.trackable import Trackable, is_for_checkpoint
from headrace.framework.type_spec import TensorSpec, TypeSpec
from headrace.function import attributes, away, trace_types, tracing
from headrace.function.function_type import P, Parameters
from headrace.function.implementing import Implementing
from headrace.function.instances import Instances
from headrace.function.protocol import PolymorphicFunction
from headrace.function.retraces import Retraces, watch_of
from headrace.function.traces import Sizes, Traces


def _captured(concrete, variables):
    """{alias_id: id of the handle} of those variables that a trace also captures."""
    if not variables:
        return {}
    held = {outer._id for outer in concrete.graph.external_captures}
    ids = {n: v.handle._id for n, v in enumerate(variables)}
    return {n: i for n, i in ids.items() if i in held}


def _subsume(general, special):
    return all(map(trace_types.subsumes, general, special))


class InputSignatureValueError(ValueError, TypeError):
    """Arguments do not fit an input_signature. The guide has it a ValueError, later
    TensorFlow a TypeError: it is both."""


@PolymorphicFunction.register
class Function(_headrace.FunctionBase, Trackable):
    """What tf.function returns: calls run a trace made for their signature."""

    def __init__(self, python_function, options, bound=False):
        """`bound`: a method of an instance, which the caller does not give."""
        self._python_function = python_function
        self._options = options
        self._name = getattr(python_function, "__name__", None) or "function"
        self._parameters = Parameters(python_function)
        self._lock = _headrace.TracingLock()
        self._traces = Traces(self)
        self._retraces = Retraces([p.name for p in self._parameters.parameters])
        self._count = 0
        self._called = False
        self._first = None  # a trace that made variables and has to run, once
        self._made_variables = False
        self._watch = watch_of(inspect.unwrap(python_function))
        self._watch.add(self)
        self._bound = Instances()
        # A method in its class: input_signature speaks of what follows `self`.
        self._of_class = (
            options["input_signature"] is not None
            and not bound
            and [p.name for p in self._parameters.parameters[:1]] == ["self"]
        )
        self._signature_types = self._constrained(options["input_signature"])
        self._set_up(self._parameters.native_rows())
        functools.update_wrapper(self, python_function, updated=())
        self._take_attributes(python_function)
        self.__signature__ = self._parameters.signature  # what inspect tells

    def _take_attributes(self, python_function):
        """Those that programs gave the function, or that an object has which is called,
        as they are now; what it has of its own goes first."""
        for name, value in getattr(python_function, "__dict__", {}).items():
            if name[:1] != "_" and not hasattr(type(self), name):
                self.__dict__.setdefault(name, value)

    # --- signatures ---

    def _constrained(self, signature):
        """The types that input_signature gives the parameters; None without."""
        if signature is None:
            return None
        if not isinstance(signature, (list, tuple)):
            raise TypeError(
                "input_signature must be either a tuple or a list, got "
                f"{type(signature)}."
            )
        wrong = [s for s in nest.flatten(signature) if not isinstance(s, TypeSpec)]
        if wrong:
            raise TypeError(
                "input_signature must be a possibly nested sequence of TensorSpec "
                f"objects, got invalid args {wrong} with types "
                f"{[type(s) for s in wrong]}."
            )
        specs = [trace_types.signature_type(s) for s in signature]
        types = []
        for p in self._parameters.parameters[self._of_class :]:
            if p.kind == P.VAR_POSITIONAL:
                types.append(trace_types.Structure(tuple(specs), None, specs))
                specs = []
            elif p.kind == P.VAR_KEYWORD:
                types.append(trace_types.Structure({}, [], []))
            elif specs:
                types.append(specs.pop(0))
            elif p.default is not P.empty:
                types.append(trace_types.type_of(p.default, trace_types.Aliases()))
            else:
                raise TypeError(f"input_signature missing type constraint for {p.name}")
        if specs:
            raise TypeError(
                f"input_signature contains {len(specs)} extra type constraints."
            )
        return types

    def _refuse(self, args, kwargs):
        """Raises what is wrong with the arguments."""
        self._slots(args, kwargs)
        raise TypeError(f"{self._name}: these arguments cannot be bound")

    def _signature_error(self, error, slots):
        args, kwargs = self._parameters.as_called(slots)
        inputs = ",\n    ".join(map(str, [*args, *kwargs.values()]))
        wanted = ",\n    ".join(map(str, self.input_signature))
        try:
            self._binding_error(error, args, kwargs)
        except TypeError as e:
            raise InputSignatureValueError(
                "Python inputs incompatible with input_signature:\n"
                f"  inputs: (\n    {inputs})\n  input_signature: (\n    {wanted})\n{e}"
            ) from None

    def _slots(self, args, kwargs):
        """The arguments by the parameters that take them; TypeError where they do not
        fit."""
        try:
            return self._parameters.slots(args, kwargs)
        except TypeError as e:
            self._binding_error(e, args, kwargs)

    def _binding_error(self, error, args, kwargs):
        types = None if self._of_class else self._signature_types
        text = self._parameters.text(types)
        raise TypeError(
            f"Binding inputs to tf.function failed due to `{error}`. Received args: "
            f"{args} and kwargs: {kwargs} for signature: {text}."
        ) from None

    # --- calling ---

    def _call_python(self, args, kwargs):
        if self._options["timeout"] is None or not stack.executing_eagerly():
            return self._python_function(*args, **kwargs)
        with cancellation.Cancellation(self._options["timeout"]):
            return self._python_function(*args, **kwargs)

    @tracebacks.filtered
    def _resolve(self, slots, leaves):
        """Called natively with a new signature; what RunResolved wants."""
        if self._of_class:
            return self.__get__(slots[0], None)._resolve(slots[1:], leaves)
        with self._lock:
            self._traces.drop_old()
            if self._signature_types is not None:
                return self._resolve_constrained(slots)
            aliases = trace_types.Aliases()
            types = [trace_types.type_of(v, aliases) for v in slots]
            taken = aliases.variables
            concrete = self._find(types, taken)
            if concrete is None:
                concrete = self._trace_call(types, leaves, taken)
            if concrete._runs_first is not None:
                return self._answer_first(concrete, leaves)
            # Which trace serves depends on which variables come, not on types alone.
            kept = not taken or not concrete.variables
            return self._answer(concrete, leaves, kept)

    def _ran(self, concrete):
        """Called natively when what _resolve gave has run."""
        new, concrete._is_new = concrete._is_new, False
        if not new:
            self._watch.called()
        elif _headrace.is_eager():
            self._watch.traced(str(self._python_function), concrete._reason)

    def __del__(self):
        try:
            self._watch.called(self._take_calls())
        except AttributeError:  # never set up
            pass

    def _answer(self, concrete, leaves, kept=False):
        """`leaves` are what it runs with; `kept`: so do calls of the same signature."""
        if concrete._graph.deferred:
            leaves, kept = [*leaves, *concrete._graph.deferred_values()], False
        if concrete._has_closures:
            concrete._captures.tensors()
            kept = False
        core = concrete._core
        if concrete._runner is not None and _headrace.is_eager():
            core, kept = away.core_of(concrete), False
        # None: Python packs the results, or there are none.
        results = concrete._results if concrete._native else None
        return concrete, core, results, None if kept else leaves

    def _answer_first(self, concrete, leaves):
        """The first call runs the trace that made the variables: what their first
        values follow from happens once, in its place."""
        first, concrete._runs_first = concrete._runs_first, None
        return self._answer(first, leaves)

    def _resolve_constrained(self, slots):
        types, leaves = self._signature_types, []
        try:
            for value, t in zip(slots, types):
                trace_types.cast(value, t, leaves)
        except TypeError as e:
            self._signature_error(e, slots)
        concrete = self._only(types, leaves)
        if concrete._runs_first is not None:
            return self._answer_first(concrete, leaves)
        uncast = all(map(trace_types.fits, slots, types))
        return self._answer(concrete, leaves, uncast)

    def _only(self, types, leaves=None):
        """The trace of a function with an input_signature."""
        traces = self._traces.all()
        return traces[0] if traces else self._trace(types, leaves)

    def _find(self, types, variables=(), of_specs=False):
        """The most specific trace that serves arguments of `types`, of which
        `variables` are, by their alias_id; of those made for specs where `of_specs`
        is true."""
        parent, number = self._parent(), strategies.call_number()

        def serves(concrete):
            return (
                (concrete._of_specs or not of_specs)
                and concrete._parent == parent
                and concrete._call_number == number
                and _captured(concrete, variables) == concrete._own_variables
                and _subsume(concrete._function_type.types, types)
            )

        def is_below(a, b):
            return _subsume(b._function_type.types, a._function_type.types)

        return self._traces.find(serves, is_below)

    def _parent(self):
        for graph in reversed(stack.entered()):
            if graph is None:
                return None
            if not graph.building_function:
                return graph._core.id
        return None

    def _trace_call(self, types, leaves, variables=()):
        """A new trace; where it pays, one that serves tensors of other shapes too."""
        sizes = self._traces.sizes_of_next(bool(self._options["reduce_retracing"]))
        general = types if sizes == Sizes.EXACT else self._generalised(types)
        if general is types or sizes == Sizes.OPEN:
            return self._trace(general, leaves, variables)
        # Nobody asked for it: where the function wants to know the shapes, it does.
        try:
            return self._trace(general, leaves, variables)
        except Exception:
            exact = self._trace(types, leaves, variables)
            self._traces.sizes_stay()
            return exact

    def _generalised(self, types):
        joined = self._traces.joined(
            lambda c: trace_types.joined(c._function_type.types, types)
        )
        return types if joined is None else joined

    # --- tracing ---

    def _trace(self, types, leaves=None, variables=()):
        first = not self._called
        reason = self._retraces.compare(types, self._traces.all())
        creation = tracing.Creation(not self._made_variables, leaves)
        concrete = self._trace_once(types, creation)
        if creation.made:
            if not first:
                raise ValueError(
                    "Creating variables on a non-first call to a function decorated "
                    "with tf.function."
                )
            self._made_variables = True
            if creation.in_trace:
                concrete._kept_variables = tuple(creation.made)
                self._first = concrete
            concrete = self._trace_once(types, tracing.Creation(False))
        own = _captured(concrete, variables)
        if own:
            bound = {n: variables[n] for n in own}
            concrete = self._trace_once(types, tracing.Creation(False), bound)
        concrete._own_variables = own
        if self._first is not None and self._first._function_type.types == types:
            concrete._runs_first, self._first = self._first, None
        self._called = True
        concrete._parent = self._parent()
        concrete._call_number = strategies.call_number()
        concrete._is_new, concrete._reason = True, reason
        if reason is not None:
            self._retraces.add(self._count, reason)
        self._traces.add(concrete)
        return concrete

    def _trace_once(self, types, creation, own_variables=()):
        self._count += 1
        concrete = tracing.trace(
            self._python_function,
            self._parameters,
            types,
            self._name,
            creation,
            self._options["autograph"],
            keeps_effects="_disable_acd" not in (self._options["attributes"] or ()),
            own_variables=own_variables,
            keeps_variables=self._options["keeps_variables"],
            attributes=self._options["attributes"],
            converted=self._converted(),
        )
        if self._options["timeout"] is not None:
            concrete._core.set_timeout(self._options["timeout"])
        return concrete

    def _converted(self):
        """The function with its control flow made that of graphs; None where it is
        traced as it is."""
        if not self._options["autograph"]:
            return None
        return late.converted(self._user_function(), self._options["features"])

    def _user_function(self):
        return self._python_function

    @tracebacks.filtered
    def get_concrete_function(self, *args, **kwargs):
        """The trace for arguments, or for TensorSpecs in their place."""
        if self._of_class and args:
            method = self.__get__(args[0], None)
            return method.get_concrete_function(*args[1:], **kwargs)
        with self._lock:
            self._traces.drop_old()
            if self._signature_types is not None:
                return self._concrete_constrained(args, kwargs)
            slots = self._slots(args, kwargs)
            aliases = trace_types.Aliases()
            types = [trace_types.type_of(v, aliases) for v in slots]
            taken = aliases.variables
            of_specs = any(type(x) is TensorSpec for x in nest.flatten(slots))
            # The guide has specs traced anew where values were traced before.
            for concrete in self._traces.all():
                if of_specs and not concrete._of_specs:
                    continue
                if concrete._function_type.types == types:
                    if _captured(concrete, taken) == concrete._own_variables:
                        return concrete
            named = [trace_types.without_names(t) for t in types] != types
            if not named:  # else the names are wanted
                if (concrete := self._find(types, taken, of_specs)) is not None:
                    return concrete
                if self._options["reduce_retracing"]:
                    types = self._generalised(types)
            concrete = self._trace(types, variables=taken)
            concrete._of_specs = of_specs
            return concrete

    def _traced_apart(self, concrete):
        """What a trace would be if it were made now: once, and for no call."""
        with self._lock:
            if concrete._apart is None and not concrete._own_variables:
                types = concrete._function_type.types
                concrete._apart = self._trace_once(types, tracing.Creation(False))
        return concrete if concrete._apart is None else concrete._apart

    def _concrete_constrained(self, args, kwargs):
        if args or kwargs:
            try:
                slots = self._parameters.slots(args, kwargs)
                for value, t in zip(slots, self._signature_types):
                    self._check_spec(value, t)
            except TypeError as e:
                self._binding_error(e, args, kwargs)
        return self._only(self._signature_types)

    def _check_spec(self, value, t):
        if isinstance(value, TypeSpec):
            if not trace_types.subsumes(t, value):
                raise TypeError(f"Can not cast {value!r} to {t!r}")
        elif not (nest.is_nested(value) or isinstance(t, trace_types.Literal)):
            trace_types.cast(value, t, [])

    # --- what it is ---

    python_function = read_only("_python_function")
    name = read_only("_name")

    @property
    def input_signature(self):
        signature = self._options["input_signature"]
        return None if signature is None else tuple(signature)

    function_spec = read_only("_parameters")
    function_type = read_only("_parameters")

    @property
    def variable_captures(self):
        return tuple(v for c in self._traces.all() for v in c.variables)

    _jit_compile = property(lambda self: self._options["jit_compile"])
    _autograph = property(lambda self: self._options["autograph"])
    _reduce_retracing = property(lambda self: self._options["reduce_retracing"])
    _attributes = property(lambda self: self._options["attributes"])
    _experimental_autograph_options = property(lambda self: self._options["features"])

    def _list_all_concrete_functions(self):
        return self._traces.all()

    _list_all_concrete_functions_for_serialization = _list_all_concrete_functions

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        """Its traces, of which a checkpoint holds none."""
        del kwargs
        if is_for_checkpoint(save_type):
            return {}
        return {f"trace_{i}": trace for i, trace in enumerate(self._traces.all())}

    def experimental_get_tracing_count(self):
        """How often the Python function was traced."""
        return self._count

    def experimental_get_compiler_ir(self, *args, **kwargs):
        raise NotImplementedError("experimental_get_compiler_ir is not supported")

    def get_initialization_function(self, *args, **kwargs):
        """Variables are initialised when they are made: nothing is left to do."""
        if not self._called:
            self.get_concrete_function(*args, **kwargs)
        return Function(lambda: None, dict(self._options, input_signature=None))

    def pretty_printed_concrete_signatures(self, verbose=True):
        shown = [c.pretty_printed_signature(verbose) for c in self._traces.all()]
        return "\n\n".join(shown)

    def _repr_html_(self):
        """What notebooks show: the traces there are."""
        rows = [
            (c.pretty_printed_signature(False), len(c.graph.get_operations()))
            for c in self._traces.all()
        ]
        note = "" if rows else "not traced yet"
        title = f"tf.function {self._name}"
        return markup.table(title, ("trace", "operations"), rows, note)

    def explain_retraces(self):
        """Why the function was traced again: a list of str, a retrace each.

        Each says which argument changed from what to what, against the most similar of
        the traces that there were: "trace 2: x changed from 1 to 2". The last 64.
        """
        return self._retraces.told()

    def __get__(self, instance, owner):
        """The function of a method: one an instance, which it does not keep."""
        if instance is None:
            return self
        bound = self._bound.of(instance)
        if bound is None:
            with self._lock:
                bound = self._bound.of(instance) or self._bound.add(
                    instance, self._bind
                )
        return bound

    def _bind(self, reference):
        function = self._python_function

        def method(*args, **kwargs):
            return function(_living(reference, function), *args, **kwargs)

        functools.update_wrapper(method, function)
        bound = function.__get__(_living(reference, function))
        method.__signature__ = Parameters(bound).signature
        return self._method_class(method, self._options, reference, function)

    def _with(self, options):
        """A Function of the same Python function."""
        return _class_of(options)(self._python_function, options)

    def _clone(self, python_function):
        """The same options for another Python function, under the same name."""
        return _rebuild(python_function, self._options, self._name)

    def _decorate(self, decorator):
        """Puts decorator(python_function) in the Python function's place."""
        if self._called:
            raise ValueError(
                "Functions cannot be decorated after they have been traced."
            )
        self._python_function = decorator(self._python_function)

    def __reduce__(self):
        return _rebuild, (self._python_function, self._options, self._name)

    def __repr__(self):
        return (
            "<tensorflow.python.eager.polymorphic_function.polymorphic_function."
            f"Function object at {id(self):#x}>"
        )


def _living(reference, function):
    """The instance of a method."""
    instance = reference()
    if instance is None:
        raise ReferenceError(
            f"the object whose method `{function.__name__}` is to be traced is gone: a "
            "method's Function holds it weakly, so keep it in a variable of your own"
        )
    return instance


class _Method(Function):
    """A Function bound to an instance."""

    def __init__(self, method, options, reference, function):
        super().__init__(method, dict(options), bound=True)
        self._self, self._function = reference, function

    def _with(self, options):
        return _Method(self._python_function, options, self._self, self._function)

    @property
    def __self__(self):
        return self._self()

    def _user_function(self):
        return self._function.__get__(_living(self._self, self._function))


Function._method_class = _Method


class _ImplementingMethod(Implementing, _Method):
    pass


class _Implementing(Implementing, Function):
    _method_class = _ImplementingMethod


def _class_of(options):
    implements = "_implements" in (options["attributes"] or ())
    return _Implementing if implements else Function


def _rebuild(python_function, options, name):
    made = _class_of(options)(python_function, options)
    made._name = name
    return made


def checked_options(
    input_signature=None,
    autograph=True,
    jit_compile=None,
    reduce_retracing=False,
    attributes=None,
    features=None,
    keeps_variables=False,
    timeout=None,
):
    """What a Function is made with. Its traces keep the variables that they captured
    alive where `keeps_variables` is true."""
    return dict(locals())


def _check_python_function(inner):
    """TypeError for what cannot be traced."""
    if not callable(inner):
        raise TypeError(f"{inner!r} is not a callable object")
    body = inner
    if not inspect.isroutine(inner) and not isinstance(inner, functools.partial):
        body = getattr(type(inner), "__call__", inner)
    for check, kind in (
        (inspect.iscoroutinefunction, "an async function, which gives a coroutine"),
        (inspect.isasyncgenfunction, "an async generator function"),
        (inspect.isgeneratorfunction, "a generator function, which gives a generator"),
    ):
        if check(body):
            raise TypeError(
                f"tf.function cannot trace {inner!r}: it is {kind}; traced functions "
                "return tensors, composite tensors or None"
            )
    if isinstance(inner, type):
        raise TypeError(
            f"tf.function cannot trace the class {inner!r}: calls of it make an object, "
            "and traced functions return tensors, composite tensors or None; decorate "
            "its methods"
        )


def function(
    func=None,
    input_signature=None,
    autograph=True,
    jit_compile=None,
    reduce_retracing=False,
    experimental_implements=None,
    experimental_autograph_options=None,
    experimental_attributes=None,
    experimental_relax_shapes=None,
    experimental_compile=None,
    experimental_follow_type_hints=None,
    *,
    timeout=None,
):
    """Makes calls of a Python function run a graph traced from it.

    A call is traced anew for tensors of other dtypes or shapes and for other Python
    values; `input_signature`, TensorSpecs, allows one trace, and `reduce_retracing`
    leaves sizes open that differ. A Function keeps at most 128 traces; those beyond
    leave sizes open where they can. `autograph` turns Python's if, while and for on
    tensors into those of graphs. `jit_compile` is accepted: all traces are compiled to
    plans. `experimental_implements` and `experimental_attributes` are written into the
    functions that it makes. Without `func` it gives the decorator.

    `timeout` (this package's own): seconds that a call of a trace may run, whatever
    calls it: DeadlineExceededError beyond. Tracing does not count; a call inside
    another traced function is a part of that one's. `tf.experimental.Cancellation` ends
    several calls together, or on request.

    Raises TypeError for what cannot be traced: coroutines, generators, classes.
    """
    if experimental_follow_type_hints:
        raise NotImplementedError(
            "tf.function: experimental_follow_type_hints is not supported"
        )
    if experimental_relax_shapes is not None:
        reduce_retracing = experimental_relax_shapes
    if jit_compile is None:
        jit_compile = experimental_compile
    options = checked_options(
        input_signature,
        autograph,
        jit_compile,
        reduce_retracing,
        attributes.checked(experimental_attributes, experimental_implements),
        experimental_autograph_options,
        timeout=cancellation.checked_timeout(timeout),
    )

    def decorated(inner):
        if isinstance(inner, Function):
            return inner._with(options)
        _check_python_function(inner)
        return _class_of(options)(inner, options)

    return decorated if func is None else decorated(func)
