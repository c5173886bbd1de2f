"""Layers and models of SavedModels whose classes nobody knows: made of their functions."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework import data_structures
from headrace.framework.trackable import node_of
from headrace.keras.base.base_layer import Layer
from headrace.keras.engine.model import Model

# What Keras and SavedModels add to an object beside its own attributes.
_ADDED = (
    "__call__ _default_save_signature _self_node call_and_return_all_conditional_losses "
    "call_and_return_conditional_losses graph_debug_info keras_api layers losses metrics "
    "non_trainable_variables optimizer regularization_losses signatures "
    "tensorflow_git_version tensorflow_version trainable_variables variables weights"
).split()


class RevivedLayer(Layer):
    """A layer of which the functions that were traced are left, and its variables.

    `_functions` is its object in the SavedModel, `_told` what Keras says of it.
    """

    _functions = _told = None

    def _takes_over(self, functions, told):
        object.__setattr__(self, "_functions", functions)
        object.__setattr__(self, "_told", told)
        for penalty in getattr(functions, "regularization_losses", ()):
            self.add_loss(penalty)
        return self

    def call(self, inputs, *args, training=None, **kwargs):
        """What the layer's function gives; ValueError for inputs that it was not traced
        for. Losses that the layer added are added."""
        if self._told.get("expects_training_arg", True):
            kwargs["training"] = bool(training)
        function = _function_of(self._functions, "call_and_return_conditional_losses")
        if function is None:
            function = _function_of(self._functions, "__call__")
            if function is None:
                raise ValueError(
                    f"Cannot call custom layer {self.name} of type {type(self)}, because "
                    "the call function was not serialized to the SavedModel. Pass its "
                    "class, and what its configuration names, in custom_objects."
                )
            return function(inputs, *args, **kwargs)
        outputs, losses = function(inputs, *args, **kwargs)
        self.add_loss(losses)
        return outputs

    def get_config(self):
        """The configuration that was saved; of other than {} it cannot be made again."""
        return dict(self._told.get("config") or {})


class RevivedNetwork(RevivedLayer, Model):
    """A model of that kind."""


def _function_of(functions, name):
    for place in (functions, getattr(functions, "keras_api", None)):
        found = getattr(place, "__dict__", {}).get(name)
        if found is not None:
            return found
    return None


def is_own(layer):
    """Whether a layer, or model whose call is code, is of a class that is not Headrace's."""
    if hasattr(layer, "_layer_graph") or layer._is_metric:
        return False
    own = type(layer).__module__.startswith("headrace.")
    return isinstance(layer, RevivedLayer) or not own


def functions_of(layer):
    """{name: what a SavedModel has} of a layer by which it may be made without its class;
    {} of one that was never called, or not with tensors."""
    specs = layer._keras.seen_inputs
    if specs is None or None in tf.nest.flatten(specs):
        return {}
    takes_training = layer._first_call().has_training

    def run(inputs, training):
        kept = [(x, x._keras.call_losses) for x in layer._flatten_layers()]
        for x, _ in kept:
            x._keras.call_losses = []
        try:
            given = {"training": training} if takes_training else {}
            outputs = layer(inputs, **given)
            return outputs, [y for x, _ in kept for y in x._keras.call_losses]
        finally:
            for x, losses in kept:
                x._keras.call_losses = losses

    def call_and_return_conditional_losses(inputs, training=False):
        return run(inputs, training)

    made = tf.function(call_and_return_conditional_losses, autograph=False)
    for training in (False, True):
        made.get_concrete_function(specs, training)
    penalties = [_traced(loss) for loss in layer._keras.loss_functions]
    return {
        made.__name__: made,
        "regularization_losses": data_structures.ListWrapper(penalties),
    }


def _traced(loss):
    return tf.function(lambda: loss(), input_signature=[], autograph=False)


def can_be_called(functions):
    """Whether an object of a SavedModel has the functions of a layer."""
    names = ("call_and_return_conditional_losses", "__call__")
    return any(_function_of(functions, name) is not None for name in names)


class Revival:
    """Makes layers of what tf.saved_model.load gave.

    root: the loaded object. rows: {path, such as "root.dense": what Keras says of that
    layer}. made: a function of such a row that gives the layer of a known class, or None.
    """

    def __init__(self, root, rows, made):
        self._rows, self._made = rows, made
        self._root = root
        self._layers = {}  # by the object of the SavedModel

    def next_of(self, class_name, name):
        """The layer of an unknown class that has this name; where a configuration says
        none, the next one of the class. ValueError where there is none."""
        for path, told in self._rows.items():
            if told.get("class_name") != class_name or path == "root":
                continue
            functions = self._at(path)
            if (
                told.get("name") == name
                or not name
                and id(functions) not in self._layers
            ):
                return self.layer(functions, path)
        raise ValueError(f"the SavedModel has no {class_name} {name or ''}")

    def model(self):
        """The root as a model."""
        return self.layer(self._root, "root", RevivedNetwork)

    def _at(self, path):
        found = self._root
        for name in path.split(".")[1:]:
            is_list = isinstance(found, (list, tuple)) and name.isdigit()
            found = found[int(name)] if is_list else _child(found, name)
        return found

    def layer(self, functions, path, base=RevivedLayer, needs_functions=True):
        """The layer of an object; ValueError where it has no functions and needs some."""
        if id(functions) in self._layers:
            return self._layers[id(functions)]
        told = self._rows[path]
        if needs_functions and not can_be_called(functions):
            raise ValueError(
                f"{told.get('class_name')} at {path} is of no known class, and the "
                "SavedModel has no functions of it: give its class in custom_objects"
            )
        cls = type(str(told.get("class_name", "Revived")), (base,), {})
        options = {} if base is RevivedNetwork else {"dtype": told.get("dtype")}
        made = cls(name=told.get("name"), **options)
        self._layers[id(functions)] = made
        made._takes_over(functions, told)
        made.trainable = told.get("trainable", True)
        for name, value in vars(functions).items():
            if name not in _ADDED and not name.startswith(("layer-", "layer_with_")):
                setattr(made, name, self._part(value, f"{path}.{name}"))
        made.built = True
        made._keras.seen_inputs = _inputs_of(functions)
        return made

    def _part(self, value, path):
        """What stands for an attribute of an object."""
        if path in self._rows:
            if "class_name" not in self._rows[path]:
                return value
            try:
                known = self._made(self._rows[path])
            except (TypeError, ValueError):
                # The functions of what has it do without it.
                return self.layer(value, path, needs_functions=False)
            if known is None:
                return self.layer(value, path)
            adopt(known, value)
            return known
        if isinstance(value, data_structures.ListWrapper):
            return [self._part(v, f"{path}.{i}") for i, v in enumerate(value)]
        if isinstance(value, data_structures._DictMethods):
            return {k: self._part(v, f"{path}.{k}") for k, v in value.items()}
        return value


def _inputs_of(functions):
    """The TensorSpecs that a function of a layer was first traced for."""
    for name in ("call_and_return_conditional_losses", "__call__"):
        found = _function_of(functions, name)
        for concrete in getattr(found, "concrete_functions", ()):
            return concrete.structured_input_signature[0][0]
    return None


def _child(thing, name):
    if isinstance(thing, data_structures._DictMethods):
        return thing[name]
    return vars(thing)[name]


def adopt(layer, saved):
    """Gives a layer that was built the variables of its object in a SavedModel, which
    that one's functions use."""
    for name, value in vars(saved).items():
        if name in _ADDED:
            continue
        if isinstance(value, _headrace.VariableBase):
            _replace(layer, name, value)
        elif isinstance(getattr(layer, name, None), Layer):
            adopt(getattr(layer, name), value)


def _replace(layer, name, variable):
    known = [v for n, v in layer._keras.names if n == name]
    old = getattr(layer, name, None) if not known else known[0]
    if not isinstance(old, _headrace.VariableBase):
        raise ValueError(f"{layer.name} has no variable {name}, its SavedModel has one")
    own = layer._keras.own
    own[:] = [variable if v is old else v for v in own]
    layer._keras.names = [
        (n, variable if v is old else v) for n, v in layer._keras.names
    ]
    for loss in layer._keras.loss_functions:
        if getattr(loss, "variable", None) is old:
            loss.variable = variable
    for attribute, value in list(vars(layer).items()):
        if value is old:
            object.__setattr__(layer, attribute, variable)
    node = node_of(layer)
    if name in dict(node.attached()):
        node.detach(name)
        node.attach(name, node_of(variable))
