"""tf.data.Dataset.from_generator."""

import itertools
import warnings

import numpy as np

from headrace._load import raw
from headrace.data.dataset import Dataset, made, source
from headrace.data.functions import DatasetFunction, flat
from headrace.elements import nest, structure
from headrace.framework import conversion, dtypes, tensor_shape
from headrace.framework import nest as core
from headrace.framework.sparse_tensor import SparseTensor, is_sparse
from headrace.framework.type_spec import TensorSpec, TypeSpec
from headrace.function.py_functions import numpy_function


class _Runs:
    """The Python iterators of a generator that are going on."""

    def __init__(self, generator):
        self.generator = generator
        self.iterators = {}
        self.numbers = itertools.count()

    def begin(self, *args):
        number = next(self.numbers)
        self.iterators[number] = iter(self.generator(*args))
        return np.array(number, np.int64)

    def next(self, number):
        return next(self.iterators[int(number)])

    def end(self, number):
        self.iterators.pop(int(number), None)
        return np.array(0, np.int64)


def _generated(begin, following, end, state_spec, spec):
    """Elements that a function gives one by one."""
    init = DatasetFunction(begin, "generator_init", [], unpack=False)
    give = DatasetFunction(following, "generator_next", [state_spec], unpack=False)
    last = DatasetFunction(end, "generator_finalize", [state_spec], unpack=False)
    functions = [init, give, last]
    variant = raw.GeneratorDataset(
        *(f.captures for f in functions),
        init_func=init.function,
        next_func=give.function,
        finalize_func=last.function,
        **flat(spec),
    )
    return made("GeneratorDataset", variant, spec, (), functions)


@source
def from_generator(
    generator,
    output_types=None,
    output_shapes=None,
    args=None,
    output_signature=None,
    name=None,
):
    """What iterators of `generator(*args)` yield, a new one for each walk.

    `output_signature` is the structure of TypeSpecs that they yield; `output_types`
    with `output_shapes` say it for plain tensors. It runs Python code in this
    process, one call at a time, so that graphs with it cannot run elsewhere.
    """
    if not callable(generator):
        raise TypeError("`generator` must be a Python callable.")
    if output_signature is not None:
        if output_types is not None:
            raise TypeError(
                "The `output_types` argument can not be used together with the "
                "`output_signature` argument."
            )
        if output_shapes is not None:
            raise TypeError(
                "The `output_shapes` argument can not be used together with the "
                "`output_signature` argument."
            )
        for s in nest.flatten(output_signature):
            if not isinstance(s, TypeSpec):
                raise TypeError(
                    f"`output_signature` must contain objects that are subclass of "
                    f"`tf.TypeSpec` but found {type(s)} which is not."
                )
        spec = output_signature
    elif output_types is None:
        raise TypeError(
            "Either the `output_signature` argument or the `output_types` argument "
            "must be specified."
        )
    else:
        spec = structure.of_types_and_shapes(output_types, output_shapes)
    spec = nest.map_structure(
        lambda s: TensorSpec(s.shape, s.dtype) if isinstance(s, TensorSpec) else s, spec
    )
    runs = _Runs(generator)
    args = tuple(conversion.convert_to_tensor(a) for a in args or ())
    state = TensorSpec([], dtypes.int64)

    def begin_with(*values):
        def begin():
            number = numpy_function(runs.begin, list(values), dtypes.int64)
            number.set_shape([])
            return number

        return begin

    def following(number):
        out = numpy_function(
            lambda n: _converted(runs.next(n), spec),
            [number],
            structure.flat_types(spec),
        )
        for t, s in zip(out, structure.component_specs(spec)):
            t.set_shape(s.shape)
        return structure.from_tensors(spec, out)

    def end(number):
        done = numpy_function(runs.end, [number], dtypes.int64)
        done.set_shape([])
        return done

    def make(_, *values):
        return _generated(begin_with(*values), following, end, state, spec)

    # As upstream: a dataset of one, of which each walk makes its own iterator.
    made = Dataset.from_tensors((np.int64(0), *args)).flat_map(make)
    if output_types is not None:  # the guide's way to describe it, and its words
        shapes = _listed(spec, lambda s: str(s.shape))
        types = _listed(spec, lambda s: f"tf.{s.dtype.name}")
        made._shown = f"FlatMapDataset shapes: {shapes}, types: {types}"
    return made


def _listed(spec, text):
    """A structure of specs as Python would show it, with these texts for leaves."""

    class _Text(str):
        __slots__ = ()
        __repr__ = str.__str__

    return str(nest.map_structure(lambda s: _Text(text(s)), spec))


def _converted(value, spec):
    """The arrays of one element; TypeError where it is none of that spec."""
    try:
        flattened = _flatten_like(spec, value)
    except (TypeError, ValueError, KeyError):
        raise TypeError(
            "`generator` yielded an element that did not match the expected structure. "
            f"The expected structure was {nest.map_structure(lambda s: s.dtype, spec)},"
            f" but the yielded element was {value}."
        ) from None
    out = []
    for x, s in zip(flattened, nest.flatten(spec)):
        if not isinstance(s, TensorSpec):
            out += _composite(x, s)
            continue
        try:
            array = _array(x, s.dtype)
        except (TypeError, ValueError) as e:
            raise TypeError(
                "`generator` yielded an element that could not be converted to the "
                f"expected type. The expected type was {s.dtype.name}, but the yielded "
                f"element was {x}."
            ) from e
        if not s.shape.is_compatible_with(tensor_shape.TensorShape(array.shape)):
            raise TypeError(
                f"`generator` yielded an element of shape {array.shape} where an "
                f"element of shape {s.shape} was expected."
            )
        out.append(array)
    return out


def _composite(x, spec):
    """The components of a composite element."""
    try:
        x = SparseTensor.from_value(x) if is_sparse(x) else structure.normalize(x)
    except (TypeError, ValueError) as e:
        raise TypeError(
            "`generator` yielded an element that could not be converted to the expected "
            f"type. The expected type was {spec}, but the yielded element was {x}."
        ) from e
    if not spec.is_compatible_with(x):
        raise TypeError(
            f"`generator` yielded an element of {x} where an element of {spec} was "
            "expected."
        )
    return structure.components_of(spec, x)


def _array(x, dtype):
    if hasattr(x, "numpy"):
        x = x.numpy()
    if dtype == dtypes.string:
        array = np.asarray(x)
        if array.size and array.dtype.kind not in "OSU":
            raise TypeError(f"{x!r} is no string")
        return np.asarray(
            [v.encode() if isinstance(v, str) else v for v in array.ravel().tolist()],
            object,
        ).reshape(array.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(np.array(x), dtype.as_numpy_dtype)


def _flatten_like(spec, value):
    if not nest.is_nested(spec):
        return [value]
    if isinstance(spec, dict):
        if set(spec) != set(value):
            raise ValueError("other keys")
        keys = core.sorted_keys(spec)
        return [x for k in keys for x in _flatten_like(spec[k], value[k])]
    if isinstance(value, (str, bytes, np.ndarray)) or len(value) != len(spec):
        raise ValueError("another number of parts")
    return [x for s, v in zip(spec, value) for x in _flatten_like(s, v)]
