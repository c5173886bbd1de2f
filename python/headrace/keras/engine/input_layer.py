"""tf.keras.Input and the layer behind it."""

from headrace import _api as tf
from headrace.framework.support import signatures
from headrace.keras import settings
from headrace.keras.base import dispatch
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.functional_call import Node
from headrace.keras.base.keras_tensor import KerasTensor


class InputLayer(Layer):
    """Stands for an input of a functional model."""

    def __init__(
        self,
        input_shape=None,
        batch_size=None,
        dtype=None,
        input_tensor=None,
        sparse=None,
        name=None,
        ragged=None,
        type_spec=None,
        **kwargs,
    ):
        given = {"input_tensor": input_tensor, "sparse": sparse, "ragged": ragged}
        for key, value in given.items():
            if value:
                raise NotImplementedError(f"InputLayer: {key} is not supported")
        if name is None:
            name = f"input_{settings.get_uid('input')}"
        if type_spec is not None:
            shape, dtype = type_spec.shape.as_list(), type_spec.dtype
        elif "batch_input_shape" in kwargs:
            shape = list(kwargs.pop("batch_input_shape"))
        else:
            inner = (input_shape,) if isinstance(input_shape, int) else input_shape
            shape = [batch_size, *tf.TensorShape(inner).as_list()]
        if kwargs:
            raise ValueError(f"Unrecognized keyword arguments: {list(kwargs)}")
        super().__init__(dtype=dtype or settings.floatx(), name=name)
        self._keras.batch_input_shape = tuple(shape)
        self.built = True
        self.sparse = self.ragged = False
        Node(self, (), {}, KerasTensor(shape, self.dtype, name=name))

    def get_config(self):
        """A dict of shape, dtype and name; sparse and ragged are always False."""
        return {
            "batch_input_shape": self._keras.batch_input_shape,
            "dtype": self.dtype,
            "sparse": False,
            "ragged": False,
            "name": self.name,
        }


@signatures.taking(
    signatures.from_text(
        "batch_size=None, name=None, dtype=None, sparse=None, tensor=None, "
        "ragged=None, type_spec=None, **kwargs"
    )
)
def Input(shape=None, **given):
    """A KerasTensor to start a functional model with."""
    dispatch.install()
    if shape is None and given["type_spec"] is None and "batch_shape" not in given:
        raise ValueError(
            "Please provide to Input a `shape` or a `tensor` or a `type_spec` "
            "argument. Note that `shape` does not include the batch dimension."
        )
    if "batch_shape" in given:
        given["batch_input_shape"] = given.pop("batch_shape")
    layer = InputLayer(input_shape=shape, input_tensor=given.pop("tensor"), **given)
    return layer.inbound_nodes[0].outputs
