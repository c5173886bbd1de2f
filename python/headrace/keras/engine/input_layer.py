"""tf.keras.Input and the layer behind it."""

from headrace import _api as tf
from headrace.context import stack
from headrace.framework.support import signatures
from headrace.framework.type_spec import flat_tensor_specs, of_flat_tensors
from headrace.graph import placeholders
from headrace.keras import settings
from headrace.keras.base import dispatch
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.functional_call import Node
from headrace.keras.base.keras_tensor import KerasTensor
from headrace.ops.sparse.placeholders import sparse_placeholder


class InputLayer(Layer):
    """Stands for an input of a functional model."""

    _saved_identifier = "_tf_keras_input_layer"

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
        optional=False,
        **kwargs,
    ):
        if sparse and ragged:
            raise ValueError(
                "Cannot set both `sparse` and `ragged` to `True` in a Keras `Input`."
            )
        if input_tensor is not None:
            if dtype is not None and input_tensor.dtype != tf.as_dtype(dtype):
                raise ValueError(
                    "`input_tensor.dtype` differs from `dtype`. Received: "
                    f"input_tensor.dtype={input_tensor.dtype} but expected dtype={dtype}"
                )
            dtype = input_tensor.dtype
            kwargs["batch_input_shape"] = input_tensor.shape.as_list()
        if type_spec is not None:
            if stack.plain_graph() is not None:
                raise ValueError(
                    "Creating TF-Keras inputs from a type_spec is only supported when "
                    "eager execution is enabled."
                )
            _check_alone(input_shape, batch_size, dtype)
        if name is None:
            name = f"input_{settings.get_uid('input')}"
        if type_spec is not None:
            dtype = getattr(type_spec, "dtype", None)
            shape = type_spec.shape
            shape = None if shape.rank is None else shape.as_list()
        elif "batch_input_shape" in kwargs:
            shape = list(kwargs.pop("batch_input_shape"))
        else:
            inner = (input_shape,) if isinstance(input_shape, int) else input_shape
            shape = [batch_size, *tf.TensorShape(inner).as_list()]
        if kwargs:
            raise ValueError(f"Unrecognized keyword arguments: {list(kwargs)}")
        super().__init__(dtype=dtype or settings.floatx(), name=name)
        self._keras.batch_input_shape = None if shape is None else tuple(shape)
        self.built = True
        if sparse:
            type_spec = tf.SparseTensorSpec(shape, self.dtype)
        elif ragged:
            type_spec = _ragged_spec(shape, self.dtype)
        self.optional = bool(optional)
        self.sparse = isinstance(type_spec, tf.SparseTensorSpec)
        self.ragged = isinstance(type_spec, tf.RaggedTensorSpec)
        Node(self, (), {}, self._stand_in(shape, input_tensor, type_spec))

    def _stand_in(self, shape, tensor, spec):
        """What stands for the input: in a plain graph placeholders, or the tensor that
        was given."""
        if stack.plain_graph() is not None:
            if isinstance(tensor, (tf.Tensor, tf.SparseTensor, tf.RaggedTensor)):
                return tensor
            if self.sparse or self.ragged:
                return placeholder_of(shape, self.dtype, self._name, self.ragged)
        if isinstance(spec, tf.TensorSpec | None):
            if stack.plain_graph() is None:
                return KerasTensor(shape, self.dtype, name=self._name)
            return placeholders.placeholder(self.dtype, shape, self._name)
        return KerasTensor.of_spec(spec, self._name)

    def get_config(self):
        """A dict of shape, dtype, name and whether it is sparse, ragged or optional."""
        return {
            "batch_input_shape": self._keras.batch_input_shape,
            "dtype": self.dtype,
            "sparse": self.sparse,
            "ragged": self.ragged,
            "name": self.name,
            "optional": self.optional,
        }


def _ragged_spec(shape, dtype):
    """Axes are ragged up to the last one of unknown size."""
    last = max((i for i, n in enumerate(shape) if i and n is None), default=0)
    return tf.RaggedTensorSpec(shape, dtype, ragged_rank=last)


def placeholder_of(shape, dtype, name, ragged):
    """A sparse or ragged tensor of placeholders of TensorFlow's names; a plain one where
    it is to be ragged and no axis is."""
    if not ragged:
        return sparse_placeholder(dtype, shape, name)
    spec = _ragged_spec(shape, dtype)
    parts = flat_tensor_specs(spec)
    made = [placeholders.placeholder(p.dtype, p.shape, "Placeholder") for p in parts]
    return of_flat_tensors(spec, iter(made))


def _check_alone(shape, batch_size, dtype):
    given = {"(input_)shape": shape, "batch_size": batch_size, "dtype": dtype}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                "When `type_spec` is not None, all other args except `name` must be None, "
                f"but {name} is not None."
            )


@signatures.taking(
    signatures.from_text(
        "batch_size=None, name=None, dtype=None, sparse=None, tensor=None, "
        "ragged=None, type_spec=None, optional=False, **kwargs"
    )
)
def Input(shape=None, **given):
    """A KerasTensor to start a functional model with; `tensor` gives it a tensor's shape,
    with the batch, and dtype. An `optional` one may be None in calls of the model.
    """
    dispatch.install()
    known = (shape, given["type_spec"], given["tensor"])
    if all(x is None for x in known) and "batch_shape" not in given:
        raise ValueError(
            "Please provide to Input a `shape` or a `tensor` or a `type_spec` "
            "argument. Note that `shape` does not include the batch dimension."
        )
    if "batch_shape" in given:
        given["batch_input_shape"] = given.pop("batch_shape")
    layer = InputLayer(input_shape=shape, input_tensor=given.pop("tensor"), **given)
    return layer.inbound_nodes[0].outputs
