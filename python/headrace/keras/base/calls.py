"""What layers tell of their calls with tensors of models, which nodes record."""

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.keras.base import dispatch


class Calls:
    """The members of layers that their nodes answer.

    `kind` below is "inputs" or "outputs" of a node, `word` its name in messages.
    """

    inbound_nodes = read_only(
        "_keras.inbound",
        "A list of the layer's calls with tensors of a functional model.",
    )

    outbound_nodes = read_only(
        "_keras.outbound",
        "A list of the calls of other layers that took what this layer gave.",
    )

    def _node_at(self, index, word, attribute):
        """The call of that number."""
        nodes = self._keras.inbound
        if not nodes:
            raise RuntimeError(
                f"The layer {self.name} has never been called and thus has no defined "
                f"{attribute}."
            )
        if index >= len(nodes):
            raise ValueError(
                f"Asked to get {word} at node {index}, but the layer has only "
                f"{len(nodes)} inbound nodes."
            )
        dispatch.install()
        return nodes[index]

    @property
    def input(self):
        """The KerasTensor, or list, that the layer's first call in a model took.

        AttributeError where there was no such call.
        """
        if not self._keras.inbound:
            raise AttributeError(
                f"Layer {self.name} is not connected, no input to return."
            )
        return self._node_at(0, "input", "input").inputs

    @property
    def output(self):
        """The KerasTensor, or list, that the layer's first call in a model gave.

        AttributeError where there was no such call.
        """
        if not self._keras.inbound:
            raise AttributeError(f"Layer {self.name} has no inbound nodes.")
        return self._node_at(0, "output", "output").outputs

    @property
    def input_mask(self):
        """The masks of `input` in their structure, each None where there is none.

        AttributeError where there was no call.
        """
        return _masks(self.input)

    @property
    def output_mask(self):
        """The masks of `output` in their structure, each None where there is none.

        AttributeError where there was no call.
        """
        return _masks(self.output)

    def get_input_at(self, node_index):
        """What the call numbered `node_index` in models took."""
        return self._node_at(node_index, "input", "input").inputs

    def get_output_at(self, node_index):
        """What the call numbered `node_index` in models gave."""
        return self._node_at(node_index, "output", "output").outputs

    def get_input_mask_at(self, node_index):
        """The masks of what the call numbered `node_index` took; None where there are
        none."""
        return _masks(self.get_input_at(node_index))

    def get_output_mask_at(self, node_index):
        """The masks of what the call numbered `node_index` gave; None where there are
        none."""
        return _masks(self.get_output_at(node_index))

    def get_input_shape_at(self, node_index):
        """The shape, or shapes, of what the call numbered `node_index` took."""
        return sizes_of(self._node_at(node_index, "input shape", "input shape").inputs)

    def get_output_shape_at(self, node_index):
        """The shape, or shapes, of what the call numbered `node_index` gave."""
        return sizes_of(
            self._node_at(node_index, "output shape", "output shape").outputs
        )

    @property
    def input_shape(self):
        """The shape, or shapes, of `input`: tuples with None for the batch.

        AttributeError where there was no call, and where calls took other shapes.
        """
        return self._shape_in_models("input")

    @property
    def output_shape(self):
        """The shape, or shapes, of `output`: tuples with None for the batch.

        AttributeError where there was no call, and where calls gave other shapes.
        """
        return self._shape_in_models("output")

    def _shape_in_models(self, word):
        if not self._keras.inbound:
            raise AttributeError(
                f'The layer "{self.name}" has never been called and thus has no defined '
                f"{word} shape."
            )
        nodes = self._keras.inbound
        shapes = [sizes_of(getattr(node, word + "s")) for node in nodes]
        if any(shape != shapes[0] for shape in shapes):
            raise AttributeError(
                f'The layer "{self.name}" has multiple inbound nodes, with different '
                f'{word} shapes. Hence the notion of "{word} shape" is ill-defined for '
                f"the layer. Use `get_{word}_shape_at(node_index)` instead."
            )
        return shapes[0]


def sizes_of(tensors):
    """Tuples of the sizes of tensors, in their structure."""
    return tf.nest.map_structure(lambda t: tuple(t.shape.as_list()), tensors)


def _masks(tensors):
    dispatch.install()
    return tf.nest.map_structure(lambda t: getattr(t, "_keras_mask", None), tensors)
