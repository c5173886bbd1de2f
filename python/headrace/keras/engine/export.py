"""What SavedModels hold of a model beside its variables: its call, and a signature."""

import inspect

from headrace import _api as tf
from headrace.framework import nest
from headrace.framework.data_structures import ListWrapper


def children_of(model):
    """{name: what SavedModels have} of a model that knows what it takes: `__call__`,
    traced for training and not, what servers call by default, and lists of its variables,
    by which programs train on what they loaded. {} for one that was never called.
    """
    specs = specs_of(model)
    if specs is None:
        return {}
    return {
        "__call__": _call_of(model, specs),
        "_default_save_signature": _signature_of(model, specs),
        "variables": _wholes(model.variables),
        "trainable_variables": _wholes(model.trainable_variables),
    }


def _wholes(variables):
    """A list of variables, with the whole of those in parts in the place of these."""
    wholes = [getattr(v, "_part_of", lambda: None)() or v for v in variables]
    return ListWrapper({id(v): v for v in wholes}.values())


def specs_of(model):
    """The structure of inputs as TensorSpecs with names; None where nobody knows."""
    declared = getattr(model, "_layer_graph", None)
    if declared is not None:
        names = iter(model.input_names)
        return tf.nest.map_structure(
            lambda x: _named_spec(x, next(names)), declared.inputs
        )
    seen = getattr(model._keras, "seen_inputs", None)
    if seen is None:
        return None
    leaves = tf.nest.flatten(seen)
    if not all(isinstance(s, tf.TensorSpec) for s in leaves):
        return None
    return _named(seen)


def spec_of_call(args, kwargs):
    """What save_spec() tells of a call: ([the arguments], {name: keyword argument}) as
    TensorSpecs of their shapes; None of what is no tensor, of which keyword arguments
    are left out."""
    arguments = [tf.nest.map_structure(_spec, x) for x in args]
    if arguments and not _are_specs(args[0]):
        arguments[0] = _named(arguments[0])
    named = {k: tf.nest.map_structure(_spec, x) for k, x in kwargs.items()}
    named.pop("training", None)
    known = lambda value: all(s is not None for s in tf.nest.flatten(value))
    return arguments, {k: v for k, v in named.items() if known(v)}


def _are_specs(structure):
    return any(isinstance(x, tf.TensorSpec) for x in tf.nest.flatten(structure))


def _spec(x):
    if isinstance(x, tf.TensorSpec):
        return x
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        return None
    return tf.TensorSpec(x.shape, x.dtype)


def _named(structure):
    """The TensorSpecs of inputs with the names of inputs, of dicts the keys."""
    leaves = tf.nest.flatten(structure)
    names = [f"input_{i}" for i in range(1, len(leaves) + 1)]
    if isinstance(structure, dict) and len(structure) == len(leaves):
        names = sorted(structure)
    named = [s and tf.TensorSpec(s.shape, s.dtype, n) for s, n in zip(leaves, names)]
    return tf.nest.pack_sequence_as(structure, named)


def call_of(model, dynamic_batch):
    """Model.save_spec()."""
    if getattr(model, "_layer_graph", None) is not None:
        return [specs_of(model)], {}
    seen = model._keras.seen_call
    if seen is None or not dynamic_batch:
        return seen

    def of_any_batch(spec):
        if spec is None or not spec.shape.rank:
            return spec
        return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype, spec.name)

    return tf.nest.map_structure(of_any_batch, seen)


def _named_spec(x, name):
    if isinstance(getattr(x, "type_spec", None), tf.TensorSpec | None):
        return tf.TensorSpec(x.shape, x.dtype, name)
    return x.type_spec


def _call_of(model, specs):
    if "training" in inspect.signature(model.call).parameters:

        def call(inputs, training=False):
            return model(inputs, training=training)

        made = tf.function(call, autograph=False)
        for training in (False, True):
            made.get_concrete_function(specs, training)
        return made
    made = tf.function(lambda inputs: model(inputs), autograph=False)
    made.get_concrete_function(specs)
    return made


def _signature_of(model, specs):
    def _wrapped_model(*inputs):
        found = model(tf.nest.pack_sequence_as(specs, inputs))
        flat = tf.nest.flatten(found)
        if isinstance(found, dict) and len(found) == len(flat):
            return found
        names = _output_names(model, found, len(flat))
        return dict(zip(names, flat))

    return tf.function(
        _wrapped_model, input_signature=tf.nest.flatten(specs), autograph=False
    )


def _output_names(model, outputs, count):
    """Names of all tensors of a model's outputs: those of its layers, else their places,
    such as output_2_1, and in a dict a_1."""
    names = getattr(model, "output_names", None)
    if names is not None and len(names) == count:
        return names
    paths = [path for path, _ in nest.flatten_with_paths(outputs)]
    return [_place(path) for path in paths]


def _place(path):
    shown = [str(key + 1 if isinstance(key, int) else key) for key in path] or ["1"]
    name = "_".join(shown)
    return name if path and not isinstance(path[0], int) else f"output_{name}"
