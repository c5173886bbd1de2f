"""Models made anew of the layers of others."""

from headrace import _api as tf
from headrace.keras import serialization
from headrace.keras.base.keras_tensor import history, is_described
from headrace.keras.engine import model_config
from headrace.keras.engine.functional import Functional
from headrace.keras.engine.input_layer import Input, InputLayer
from headrace.keras.engine.model import Model
from headrace.keras.engine.sequential import Sequential


def clone_model(model, input_tensors=None, clone_function=None):
    """A model of the same structure whose layers are new, with new weights.

    Args:
        model: a Functional or Sequential model; of other models (and layers) is made
            what their `from_config(get_config())` gives.
        input_tensors: KerasTensors, or tensors whose shapes and dtypes are taken, for
            the inputs of the new model, in the order of `model.inputs`. Inputs without
            one are as the old ones.
        clone_function: called with each layer that is no input: returns the layer to
            be used in its place. Layers of a model that is itself a layer are not seen.

    The new model is not compiled. Raises ValueError for arguments that a model of its
    kind does not take.
    """
    if not isinstance(model, Functional) or model._layer_graph is None:
        if not isinstance(model, Sequential):
            return _by_configuration(model, input_tensors, clone_function)
    clone = _checked(clone_function)
    if isinstance(model, Sequential):
        return _sequential(model, input_tensors, clone)
    plain = input_tensors is None and clone_function is None
    if plain and serialization.overrides(type(model), "get_config"):
        return type(model).from_config(model.get_config())
    return _functional(model, input_tensors, clone)


def _by_configuration(model, input_tensors, clone_function):
    if input_tensors is not None or clone_function is not None:
        raise ValueError(
            "Arguments clone_function and input_tensors are only supported for "
            "Sequential models or Functional models. Received model of type "
            f"'{type(model).__name__}', with clone_function={clone_function} and "
            f"input_tensors={input_tensors}"
        )
    return type(model).from_config(model.get_config())


def _checked(clone_function):
    if clone_function is None:
        return _copy
    if not callable(clone_function):
        raise ValueError(
            "Expected `layer_fn` argument to be a callable. Received: "
            f"layer_fn={clone_function}"
        )
    return clone_function


def _copy(layer):
    if isinstance(layer, Model):
        return clone_model(layer)
    return type(layer).from_config(layer.get_config())


def _input_like(tensor, layer):
    """The KerasTensor for an input tensor that was asked for; like that of the old
    layer where None was."""
    if is_described(tensor):
        return tensor
    if tensor is None:
        return _copy(layer).output
    tensor = tf.convert_to_tensor(tensor)
    return Input(tensor=tensor, name=f"input_wrapper_for_{layer.name}")


def _functional(model, input_tensors, clone):
    given = tf.nest.flatten(input_tensors) if input_tensors is not None else []
    inputs = [history(x)[0] for x in model._layer_graph.flat_inputs]
    given += [None] * (len(inputs) - len(given))
    begins = {
        layer.name: _input_like(tensor, layer) for layer, tensor in zip(inputs, given)
    }

    def made(layer):
        begin = begins.get(layer.name)
        return clone(layer) if begin is None else history(begin)[0]

    # Classes with constructors of their own take other arguments.
    cls = (
        Functional if serialization.overrides(type(model), "__init__") else type(model)
    )
    return model_config.again(model, made, cls)


def _sequential(model, input_tensors, clone):
    begin = None
    if input_tensors is not None:
        tensors = tf.nest.flatten(input_tensors)
        if len(tensors) != 1:
            raise ValueError(
                "To clone a `Sequential` model, we expect at most one tensor as part of "
                f"`input_tensors`. Received: input_tensors={input_tensors}"
            )
        begin = tensors[0]
    layers = []
    for layer in model._keras.stack:
        if not isinstance(layer, InputLayer):
            layers.append(clone(layer))
        elif begin is None:
            layers.append(_copy(layer))
    if begin is not None:
        layers.insert(0, _input_like(begin, model))
    return Sequential(layers, name=model.name)
