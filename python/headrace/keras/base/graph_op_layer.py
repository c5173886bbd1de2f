"""Operations of a plain graph between layers of a model, as layers themselves.

Programs of TensorFlow 1 apply functions of tf to tensors that layers gave, and give the
results to layers again. Each such operation becomes a TensorFlowOpLayer when a layer, or
a model, meets what it gives.
"""

import json

import numpy as np

from headrace import _api as tf
from headrace.framework.support import protos
from headrace.keras import settings
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.functional_call import Node
from headrace.keras.base.keras_tensor import history

_CYCLES = ("NextIteration", "Enter", "Exit")


class TensorFlowOpLayer(Layer):
    """One operation, which is made again in each call.

    node_def: the operation, as a NodeDef or its JSON form. constants: {index of an input: its
    value} of the inputs that are no tensors of the model; their values are those that
    Keras' session had.
    """

    _config_names = ()

    def __init__(self, node_def, name, constants=None, trainable=True, dtype=None):
        super().__init__(name=_PREFIX + name, trainable=trainable, dtype=dtype)
        if isinstance(node_def, dict):
            node_def = json.dumps(node_def)
        if isinstance(node_def, str):
            node_def = protos.of_json(node_def, protos.NodeDef())
        self._node_def, self._short = node_def, name
        self._values = {int(i): v for i, v in (constants or {}).items()}
        self.built = True

    def call(self, inputs):
        """The operation's outputs for the tensors among its inputs: one, or a list."""
        given, places = iter(tf.nest.flatten(inputs)), {}
        definition = tf.compat.v1.GraphDef()
        node = definition.node.add()
        node.CopyFrom(self._node_def)
        count = sum(not x.startswith("^") for x in node.input)
        del node.input[:]
        for i in range(count):
            value = self._values[i] if i in self._values else next(given)
            value = tf.convert_to_tensor(value)
            place = definition.node.add(op="Placeholder", name=f"input_{i}")
            place.attr["dtype"].type = value.dtype.as_datatype_enum
            node.input.append(place.name)
            places[place.name] = value
        (made,) = tf.graph_util.import_graph_def(
            definition, places, return_elements=[node.name], name=self._short
        )
        return made.outputs[0] if len(made.outputs) == 1 else list(made.outputs)

    def get_config(self):
        """The operation as text and its constants, beside what all layers have."""
        return {
            "name": self._short,
            "trainable": self.trainable,
            "dtype": self.dtype,
            "node_def": json.loads(protos.to_json(self._node_def)),
            "constants": {i: np.asarray(v).tolist() for i, v in self._values.items()},
        }


_PREFIX = "tf_op_layer_"


def describe(tensors):
    """Makes layers of the operations that lead from tensors of models to these."""
    known = {}
    for tensor in tensors:
        _describe(tensor, known)


def _describe(tensor, known):
    """A tensor of a plain graph becomes one of a model where it is computed from such."""
    waiting = [tensor]
    while waiting:
        x = waiting[-1]
        op = x.op
        missing = [
            y for y in op.inputs if y.op.name not in known and history(y) is None
        ]
        if x.op.name in known or history(x) is not None:
            waiting.pop()
        elif op.type in _CYCLES:
            known[op.name] = False
            waiting.pop()
        elif missing:
            waiting.extend(missing)
        else:
            waiting.pop()
            known[op.name] = _made_layer(op)


def _made_layer(op):
    """Makes a layer of an operation with inputs of a model; False where there are none."""
    inputs = list(op.inputs)
    described = [i for i, x in enumerate(inputs) if history(x) is not None]
    if not described:
        return False
    others = [i for i in range(len(inputs)) if i not in described]
    values = settings.batch_get_value([inputs[i] for i in others])
    definition = op.node_def
    name = op.name.rpartition("/")[2]
    layer = TensorFlowOpLayer(
        definition, settings.unique_name(name), dict(zip(others, values))
    )
    taken = [inputs[i] for i in described]
    outputs = list(op.outputs)
    Node(
        layer,
        (taken[0] if len(taken) == 1 else taken,),
        {},
        outputs[0] if len(outputs) == 1 else outputs,
    )
    layer._first_call()
    return True
