"""What converted code does with datasets and iterators: loops of the graph, builtins."""

from headrace._load import raw
from headrace.autograph import builtins, loops, tensors
from headrace.autograph.graph_loops import GraphLoop
from headrace.context import stack
from headrace.control_flow import branches
from headrace.data.dataset import Dataset
from headrace.data.iterator import Iterator, OwnedIterator
from headrace.data.optional import Optional
from headrace.elements import nest, structure
from headrace.framework import conversion, dtypes
from headrace.ops import elementwise_ops, graph_assert


def over_dataset(dataset, extra_test, body, state, opts):
    """A loop over a dataset. Shapes of variables may change: they are generalised."""
    iterator = OwnedIterator(dataset)
    return over_elements(iterator, extra_test, body, state, opts, relaxes=True)


def over_iterator(iterator, extra_test, body, state, opts):
    """A loop over the elements that are left; one that is broken off leaves the rest."""
    return over_elements(iterator, extra_test, body, state, opts, relaxes=False)


def over_elements(iterator, extra_test, body, state, opts, relaxes):
    """A loop over what an iterator gives as optionals; with `relaxes` shapes of variables
    may change.

    Carries the next element, if any: it is asked for only when it will be used.
    """
    opts = dict(opts)
    most = opts.pop("maximum_iterations", None)
    counters = [] if most is None else [conversion.convert_to_tensor(0)]
    most = None if most is None else conversion.convert_to_tensor(most, dtypes.int32)
    empty = Optional.empty(iterator.element_spec)

    def following(counters):
        conditions = [raw.Less(count, most) for count in counters]
        if extra_test is not None:
            conditions.append(tensors.tensor(extra_test()))
        if not conditions:
            return _next(iterator)
        wanted = conditions[0] if len(conditions) == 1 else raw.LogicalAnd(*conditions)
        return branches.cond(
            wanted, lambda: _next(iterator), lambda: raw.Identity(empty._variant_tensor)
        )

    def test(variant, *counters):
        return raw.OptionalHasValue(variant)

    def step(variant, *counters):
        body(empty._from_components([variant]).get_value())
        counters = [raw.AddV2(count, 1) for count in counters]
        return [following(counters), *counters]

    hidden = [following(counters), *counters]
    GraphLoop(state, test, step, hidden, opts, defines=False, relaxes=relaxes).run()
    return True


def _next(iterator):
    return iterator.get_next_as_optional()._variant_tensor


loops.register_iterable(Dataset, over_dataset)
loops.register_iterable(Iterator, over_iterator)


# --- builtins ---


def _length(dataset):
    if not tensors.in_graph():
        return NotImplemented
    count = dataset.cardinality()
    text = "len requires dataset with definitive cardinality, got "
    check = graph_assert.make(raw.GreaterEqual(count, 0), [text, count])
    with stack.current().control_dependencies([check]):
        return raw.Identity(count)


def _absolute(dataset):
    def function(*parts):
        element = parts[0] if len(parts) == 1 else parts
        return nest.map_structure(elementwise_ops.abs, element)

    return dataset.map(function)


def _all(dataset):
    return dataset.reduce(True, lambda found, x: raw.LogicalAnd(found, x))


def _any(dataset):
    return dataset.reduce(False, lambda found, x: raw.LogicalOr(found, x))


def _enumerate(dataset, start=0):
    return dataset.enumerate(start)


def _are_datasets(values):
    return all(isinstance(value, Dataset) for value in values)


def _zip(*iterables):
    if not _are_datasets(iterables):
        return NotImplemented
    return Dataset.zip(tuple(iterables))


def _map(function, *iterables):
    if not _are_datasets(iterables):
        return NotImplemented
    if len(iterables) == 1:
        return iterables[0].map(function)
    return Dataset.zip(tuple(iterables)).map(function)


def _filter(function, iterable):
    if not isinstance(iterable, Dataset):
        return NotImplemented
    return iterable.filter(function)


def _next_or(iterator, *default):
    if not default or not tensors.in_graph():
        return NotImplemented
    value = structure.normalize(default[0])
    spec = structure.spec_of(value)
    _check_default(iterator.element_spec, spec)
    found = iterator.get_next_as_optional()
    return branches.cond(found.has_value(), found.get_value, lambda: value)


def _check_default(wanted, given):
    """TypeError for a default that is not like the elements."""
    try:
        nest.assert_same_structure(wanted, given)
    except (ValueError, TypeError) as e:
        raise TypeError(
            "the default of next() must have the same element structure as the "
            f"iterator: {e}"
        ) from None
    for a, b in zip(nest.flatten(wanted), nest.flatten(given)):
        if getattr(a, "dtype", None) != getattr(b, "dtype", None):
            raise TypeError(
                f"the default of next() has dtype {b.dtype.name} where the iterator's "
                f"elements have {a.dtype.name}"
            )
        if not b.shape.is_subtype_of(a.shape):
            raise TypeError(
                f"the default of next() has shape {b.shape} where the iterator's "
                f"elements have {a.shape}"
            )


for _builtin, _function in (
    (len, _length),
    (abs, _absolute),
    (all, _all),
    (any, _any),
    (enumerate, _enumerate),
    (zip, _zip),
    (map, _map),
    (filter, _filter),
):
    builtins.register_overload(_builtin, Dataset, _function)
builtins.register_overload(next, Iterator, _next_or)
