"""Users' functions, traced for the elements of a dataset."""

from headrace._load import _headrace
from headrace.autograph import calls, status
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.elements import structure
from headrace.framework.dtypes import DType
from headrace.framework.type_spec import TensorSpec
from headrace.function import polymorphic, py_functions


class DatasetFunction:
    """A function of components, with what its results are like.

    `specs` are those of the arguments; a spec that is a tuple gives one argument
    each of its parts. `function` is the trace, `output` the spec of what it returns.
    """

    def __init__(self, func, transformation, specs, unpack=True):
        if not callable(func):
            raise ValueError(
                f"Argument `func` must be a callable. Received func={func} (of type "
                f"{type(func)})"
            )
        self._func = calls.tf_convert(func, status.control_status_ctx())
        self._transformation = transformation
        self._specs = specs
        self._unpack = unpack
        self.output = None
        name = getattr(func, "__name__", type(func).__name__)
        # The dataset reads the variables that the function captured.
        traced = polymorphic.Function(
            self._wrapper(f"Dataset_{transformation}_{name}"),
            polymorphic.checked_options(keeps_variables=True),
        )
        components = [c for s in specs for c in structure.component_specs(s)]
        self.function = traced.get_concrete_function(
            *[TensorSpec(c.shape, c.dtype) for c in components]
        )
        if debug.on:
            self.function = self._called_each_time(components)
        graph = stack.current()
        if graph is not None:
            self.function.add_to_graph(graph)
            # The Python functions that it calls live as long as that graph.
            graph.__dict__.setdefault("_dataset_functions", []).append(self)

    def _wrapper(self, name):
        def wrapper(*components):
            components = list(components)
            values = []
            for spec in self._specs:
                n = len(structure.component_specs(spec))
                values.append(structure.from_tensors(spec, components[:n]))
                del components[:n]
            if len(values) == 1 and self._unpack and _is_args(values[0]):
                values = list(values[0])
            result = self._func(*values)
            if isinstance(result, list):  # as many parts, not one stacked tensor
                result = tuple(result)
            result = _normalized(result, self._transformation)
            self.output = structure.spec_of(result)
            return structure.to_tensors(self.output, result)

        wrapper.__name__ = wrapper.__qualname__ = name
        return wrapper

    def _called_each_time(self, components):
        """A trace that calls the Python function eagerly for each element: what was
        traced says what its results are like."""
        call = self._wrapper(self._func.__class__.__name__)
        results = structure.component_specs(self.output)

        def each_time(*parts):
            made = py_functions.py_function(call, parts, [r.dtype for r in results])
            for tensor, spec in zip(made, results):
                tensor.set_shape(spec.shape)
            return made

        return polymorphic.Function(
            each_time, polymorphic.checked_options(autograph=False)
        ).get_concrete_function(*[TensorSpec(c.shape, c.dtype) for c in components])

    captures = read_only("function.captured_inputs")


class _Debug:
    on = False


debug = _Debug()


def enable_debug_mode():
    """From now on functions of datasets are Python that is called for each element, so
    that a debugger stops in them and print() prints. ValueError unless eager."""
    if not _headrace.is_eager():
        raise ValueError("`enable_debug_mode() is only supported in eager mode.")
    debug.on = True


def _normalized(result, transformation):
    """What a function gave, as tensors; TypeError for what is no value: types, too."""
    cause = None
    try:
        leaves = structure.nest.flatten(result)
        if not any(isinstance(leaf, (type, DType)) for leaf in leaves):
            return structure.normalize(result)
    except (TypeError, ValueError) as e:
        cause = e
    shown = "reduce" if transformation == "reduce" else f"Dataset.{transformation}"
    raise TypeError(
        f"Unsupported return value from function passed to {shown}(): {result}."
    ) from cause


def _is_args(value):
    """True for elements whose parts are the arguments of a function."""
    return type(value) is tuple or (
        isinstance(value, tuple) and not hasattr(value, "_fields")
    )


def flat(spec):
    """The attributes output_types and output_shapes of a spec.

    As tuples: calls with attributes that cannot change are resolved only once.
    """
    return {
        "output_types": structure.flat_types(spec),
        "output_shapes": structure.flat_shapes(spec),
    }
