"""tf.function: a Python function traced once a signature."""

import functools
import weakref

from headrace._load import _headrace
from headrace.context import late, stack
from headrace.framework import nest
from headrace.framework.settings import logging
from headrace.framework.support.locks import ForkLock
from headrace.framework.support.properties import read_only
from headrace.framework.trackable import Trackable
from headrace.framework.type_spec import TypeSpec
from headrace.function import trace_types, tracing
from headrace.function.function_type import P, Parameters

_TRACES_TO_WARN = 5  # within ...
_CALLS_TO_WATCH = 10  # ... so many calls
_MOST_WARNINGS = 2

_RETRACING = (
    "%d out of the last %d calls to %s triggered tf.function retracing. Tracing is "
    "expensive and the excessive number of tracings could be due to (1) creating "
    "@tf.function repeatedly in a loop, (2) passing tensors with different shapes, (3) "
    "passing Python objects instead of tensors. For (1), please define your "
    "@tf.function outside of the loop. For (2), @tf.function has reduce_retracing=True "
    "option that can avoid unnecessary retracing. For (3), please refer to "
    "https://www.tensorflow.org/guide/function#controlling_retracing and "
    "https://www.tensorflow.org/api_docs/python/tf/function for  more details."
)


def _captured(concrete, variables):
    """{alias_id: id of the handle} of those variables that a trace also captures."""
    if not variables:
        return {}
    held = {outer._id for outer in concrete.graph.external_captures}
    ids = {n: v.handle._id for n, v in enumerate(variables)}
    return {n: i for n, i in ids.items() if i in held}


class _RetracingWatch:
    """Counts calls and traces to warn of functions that are traced too often."""

    def __init__(self):
        self._runs = []  # calls from each trace to the next
        self._warnings = 0

    def traced(self, function, name, quiet):
        if self._runs:
            self._runs[-1] += function._take_calls()
        else:
            function._take_calls()
        self._runs.append(1)
        while len(self._runs) > 1 and sum(self._runs) - self._runs[0] > _CALLS_TO_WATCH:
            self._runs.pop(0)
        if quiet or self._warnings >= _MOST_WARNINGS:
            return
        if len(self._runs) >= _TRACES_TO_WARN:
            self._warnings += 1
            logging.warn(_RETRACING, len(self._runs), sum(self._runs), name)


class Function(_headrace.FunctionBase, Trackable):
    """What tf.function returns: calls run a trace made for their signature."""

    def __init__(self, python_function, options, skip_first=False):
        self._python_function = python_function
        self._options = options
        self._name = getattr(python_function, "__name__", None) or "function"
        self._parameters = Parameters(python_function, skip_first)
        self._lock = ForkLock()
        self._concretes = []
        self._count = 0
        self._called = False
        self._made_variables = False
        self._first = None  # a trace that the call under way has to run
        self._watch = _RetracingWatch()
        self._bound = weakref.WeakKeyDictionary()
        # A method in its class: input_signature speaks of what follows `self`.
        self._of_class = (
            options["input_signature"] is not None
            and not skip_first
            and [p.name for p in self._parameters.parameters[:1]] == ["self"]
        )
        self._signature_types = self._constrained(options["input_signature"])
        self._set_up(self._parameters.native_rows())
        functools.update_wrapper(self, python_function, updated=())

    # --- signatures ---

    def _constrained(self, signature):
        """The types that input_signature gives the parameters; None without."""
        if signature is None:
            return None
        wrong = [s for s in nest.flatten(signature) if not isinstance(s, TypeSpec)]
        if wrong or not isinstance(signature, (list, tuple)):
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
        try:
            self._parameters.slots(args, kwargs)
        except TypeError as e:
            self._binding_error(e, args, kwargs)
        raise TypeError(f"{self._name}: these arguments cannot be bound")

    def _binding_error(self, error, args, kwargs):
        types = None if self._of_class else self._signature_types
        text = self._parameters.text(types)
        raise TypeError(
            f"Binding inputs to tf.function failed due to `{error}`. Received args: "
            f"{args} and kwargs: {kwargs} for signature: {text}."
        ) from None

    # --- calling ---

    def _call_python(self, args, kwargs):
        return self._python_function(*args, **kwargs)

    def _resolve(self, slots, leaves):
        """Called natively with a new signature; what RunResolved wants."""
        if self._of_class:
            return self.__get__(slots[0], None)._resolve(slots[1:], leaves)
        with self._lock:
            if self._signature_types is not None:
                return self._resolve_constrained(slots)
            aliases = trace_types.Aliases()
            types = [trace_types.type_of(v, aliases) for v in slots]
            taken = aliases.variables
            concrete = self._find(types, taken)
            if concrete is None:
                concrete = self._trace_call(types, leaves, taken)
            elif not self._fits(slots):
                return self._answer(concrete, leaves)
            if self._first is not None:
                return self._answer_first(leaves)
            # Which trace serves depends on which variables come, not on types alone.
            kept = not taken or not concrete.variables
            return self._answer(concrete, None if kept else leaves)

    def _fits(self, slots):
        return True

    def _answer(self, concrete, leaves):
        results = concrete._results if concrete._native else None
        if concrete._native and results is None:
            results = ()  # nothing is returned: packed by Python
            return concrete, concrete._core, None, leaves
        return concrete, concrete._core, results, leaves

    def _answer_first(self, leaves):
        """The first call runs the trace that made the variables: what their first
        values follow from happens once, in its place."""
        first, self._first = self._first, None
        return self._answer(first, leaves)

    def _resolve_constrained(self, slots):
        types, leaves = self._signature_types, []
        try:
            for value, t in zip(slots, types):
                trace_types.cast(value, t, leaves)
        except TypeError as e:
            self._binding_error(e, *self._parameters.as_called(slots))
        if not self._concretes:
            self._trace_call(types, leaves)
        if self._first is not None:
            return self._answer_first(leaves)
        uncast = all(map(trace_types.fits, slots, types))
        return self._answer(self._concretes[0], None if uncast else leaves)

    def _find(self, types, variables=()):
        """The most specific trace that serves arguments of `types`, of which
        `variables` are, by their alias_id."""
        best = None
        for concrete in self._concretes:
            mine = concrete._function_type.types
            if concrete._parent != self._parent():
                continue
            if _captured(concrete, variables) != concrete._own_variables:
                continue
            if all(map(trace_types.subsumes, mine, types)):
                if best is None or all(
                    map(trace_types.subsumes, best._function_type.types, mine)
                ):
                    best = concrete
        return best

    def _parent(self):
        for graph in reversed(stack.entered()):
            if graph is None:
                return None
            if not graph.building_function:
                return graph._core.id
        return None

    def _trace_call(self, types, leaves, variables=()):
        if self._options["reduce_retracing"] and self._signature_types is None:
            types = self._generalised(types)
        concrete = self._trace(types, leaves, variables)
        self._watch.traced(self, str(self._python_function), False)
        return concrete

    def _generalised(self, types):
        for concrete in reversed(self._concretes):
            joined = list(map(trace_types.join, concrete._function_type.types, types))
            if all(t is not None for t in joined):
                return joined
        return types

    # --- tracing ---

    def _trace(self, types, leaves=None, variables=()):
        first = not self._called
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
                self._first = concrete
            self._kept_variables = [weakref.ref(v) for v in creation.made]
            concrete = self._trace_once(types, tracing.Creation(False))
        own = _captured(concrete, variables)
        if own:
            bound = {n: variables[n] for n in own}
            concrete = self._trace_once(types, tracing.Creation(False), bound)
        concrete._own_variables = own
        self._called = True
        concrete._parent = self._parent()
        self._concretes.append(concrete)
        return concrete

    def _trace_once(self, types, creation, own_variables=()):
        self._count += 1
        return tracing.trace(
            self._python_function,
            self._parameters,
            types,
            self._name,
            creation,
            self._options["autograph"],
            own_variables=own_variables,
            converted=self._converted(),
        )

    def _converted(self):
        """The function with its control flow made that of graphs; None where it is
        traced as it is."""
        if not self._options["autograph"]:
            return None
        return late.converted(self._user_function(), self._options["features"])

    def _user_function(self):
        return self._python_function

    def get_concrete_function(self, *args, **kwargs):
        """The trace for arguments, or for TensorSpecs in their place."""
        if self._of_class and args:
            method = self.__get__(args[0], None)
            return method.get_concrete_function(*args[1:], **kwargs)
        with self._lock:
            if self._signature_types is not None:
                return self._concrete_constrained(args, kwargs)
            try:
                slots = self._parameters.slots(args, kwargs)
            except TypeError as e:
                self._binding_error(e, args, kwargs)
            aliases = trace_types.Aliases()
            types = [trace_types.type_of(v, aliases) for v in slots]
            taken = aliases.variables
            for concrete in self._concretes:
                if concrete._function_type.types == types:
                    if _captured(concrete, taken) == concrete._own_variables:
                        return concrete
            plain = [trace_types.without_names(t) for t in types]
            if plain == types and self._options["reduce_retracing"]:
                types = self._generalised(types)
            return self._trace(types, variables=taken)

    def _concrete_constrained(self, args, kwargs):
        if args or kwargs:
            try:
                slots = self._parameters.slots(args, kwargs)
                for value, t in zip(slots, self._signature_types):
                    self._check_spec(value, t)
            except TypeError as e:
                self._binding_error(e, args, kwargs)
        if not self._concretes:
            self._trace(self._signature_types)
        return self._concretes[0]

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
        return tuple(v for c in self._concretes for v in c.variables)

    @property
    def _jit_compile(self):
        return self._options["jit_compile"]

    @property
    def _autograph(self):
        return self._options["autograph"]

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
        shown = [c.pretty_printed_signature(verbose) for c in self._concretes]
        return "\n\n".join(shown)

    def __get__(self, instance, owner):
        """The function of a method: one an instance, which it does not keep."""
        if instance is None:
            return self
        try:
            bound = self._bound.get(instance)
        except TypeError:
            return self._bind(instance, lambda: instance)
        if bound is None:
            bound = self._bind(instance, weakref.ref(instance))
            self._bound[instance] = bound
        return bound

    def _bind(self, instance, reference):
        function = self._python_function

        def method(*args, **kwargs):
            return function(reference(), *args, **kwargs)

        functools.update_wrapper(method, function)
        bound = _Method(method, dict(self._options), True)
        bound._self, bound._function = reference, function
        return bound

    def __reduce__(self):
        return _rebuild, (self._python_function, self._options)

    def __repr__(self):
        return (
            "<tensorflow.python.eager.polymorphic_function.polymorphic_function."
            f"Function object at {id(self):#x}>"
        )


class _Method(Function):
    """A Function bound to an instance."""

    @property
    def __self__(self):
        return self._self()

    def _user_function(self):
        return self._function.__get__(self._self())


def _rebuild(python_function, options):
    return Function(python_function, options)


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
):
    """Makes calls of a Python function run a graph traced from it.

    A call is traced anew for tensors of other dtypes or shapes and for other Python
    values; `input_signature`, TensorSpecs, allows one trace, and `reduce_retracing`
    leaves sizes open that differ. `autograph` turns Python's if, while and for on
    tensors into those of graphs. Without `func` it gives the decorator.
    """
    if experimental_follow_type_hints:
        raise NotImplementedError(
            "tf.function: experimental_follow_type_hints is not supported"
        )
    if experimental_relax_shapes is not None:
        reduce_retracing = experimental_relax_shapes
    if jit_compile is None:
        jit_compile = experimental_compile
    options = dict(
        input_signature=input_signature,
        autograph=autograph,
        features=experimental_autograph_options,
        jit_compile=jit_compile,
        reduce_retracing=reduce_retracing,
        implements=experimental_implements,
        attributes=experimental_attributes,
    )

    def decorated(inner):
        if isinstance(inner, Function):
            return Function(inner.python_function, options)
        if not callable(inner):
            raise TypeError(f"{inner!r} is not a callable object")
        return Function(inner, options)

    return decorated if func is None else decorated(func)
