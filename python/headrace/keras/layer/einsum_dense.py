"""EinsumDense: a product that an equation describes, with a bias."""

import re

from headrace import _api as tf
from headrace.keras.base.base_layer import Layer
from headrace.keras.layer.parts import Weighted, option_names, takes

_LETTERS = "[a-zA-Z]+"
_FORMS = (  # (equation, where the unnamed axes are)
    (re.compile(f"({_LETTERS}),({_LETTERS})->({_LETTERS})$"), None),
    (re.compile(rf"\.\.\.({_LETTERS}),({_LETTERS})->\.\.\.({_LETTERS})$"), "left"),
    (re.compile(rf"({_LETTERS})\.\.\.,({_LETTERS})->({_LETTERS})\.\.\.$"), "right"),
)


class _Equation:
    """The axes of an equation: of the input, the kernel and the output."""

    def __init__(self, text):
        squeezed = re.sub(r"\s", "", text)
        for form, elided in _FORMS:
            found = form.match(squeezed)
            if found:
                self.inputs, self.kernel, self.outputs = found.groups()
                self.elided = elided
                return
        raise ValueError(
            f"Invalid einsum equation '{text}'. Equations must be in the form "
            "[X],[Y]->[Z], ...[X],[Y]->...[Z], or [X]...,[Y]->[Z]...."
        )

    def shapes(self, input_shape, output_shape, bias_axes):
        """Shapes of the kernel, the bias (None without axes) and the output, which is
        given without the batch."""
        known = list(output_shape)
        unnamed = len(input_shape) - len(self.inputs)
        if self.elided == "left":
            of_inputs = dict(zip(self.inputs, input_shape[unnamed:]))
            known = [*input_shape[:unnamed], *known[-len(self.outputs) :]]
            if len(known) < unnamed + len(self.outputs):
                known.insert(0, input_shape[0])
            of_outputs = dict(zip(self.outputs, known[unnamed:]))
        else:
            of_inputs = dict(zip(self.inputs, input_shape))
            known = [input_shape[0], *known]
            if self.elided == "right":
                known += input_shape[len(self.inputs) :]
            of_outputs = dict(zip(self.outputs, known))
        self._check(of_inputs, of_outputs)
        full = [of_inputs.get(c) if n is None else n for c, n in of_outputs.items()]
        of_outputs = dict(zip(of_outputs, full))
        kernel = [self._size(c, of_inputs, of_outputs) for c in self.kernel]
        return kernel, self._bias(bias_axes, of_outputs, unnamed)

    def _check(self, of_inputs, of_outputs):
        for c in self.inputs:
            if c in of_outputs and None not in (of_outputs[c], of_inputs[c]):
                if of_outputs[c] != of_inputs[c]:
                    raise ValueError(
                        "Input shape and output shape do not match at shared dimension "
                        f"'{c}'. Input shape is {of_inputs[c]}, and output shape is "
                        f"{of_outputs[c]}."
                    )
        for c in self.outputs:
            if c not in of_inputs and c not in self.kernel:
                raise ValueError(
                    f"Dimension '{c}' was specified in the output '{self.outputs}' but "
                    f"has no corresponding dim in the input spec '{self.inputs}' or "
                    f"weight spec '{self.outputs}'"
                )

    def _size(self, c, of_inputs, of_outputs):
        if c in of_inputs:
            return of_inputs[c]
        if c in of_outputs:
            return of_outputs[c]
        raise ValueError(
            f"Weight dimension '{c}' did not have a match in either the input spec "
            f"'{self.inputs}' or the output spec '{self.outputs}'. For this layer, the "
            "weight must be fully specified."
        )

    def _bias(self, axes, of_outputs, unnamed):
        if not axes:
            return None
        for c in axes:
            if c not in of_outputs:
                raise ValueError(
                    f"Bias dimension '{c}' was requested, but is not part of the output "
                    f"spec '{self.outputs}'"
                )
        first = min(self.outputs.index(c) for c in axes)
        shape = [of_outputs[c] if c in axes else 1 for c in self.outputs[first:]]
        return shape + [1] * (unnamed if self.elided == "right" else 0)


@takes(
    "equation, output_shape, activation=None, bias_axes=None, **kwargs",
    *("kernel", "bias"),
)
class EinsumDense(Weighted, Layer):
    """activation(einsum(equation, inputs, kernel) + bias)."""

    _config_names = ("output_shape", "equation", "activation", "bias_axes")
    _config_names += option_names("kernel", "bias")
    _config_attributes = {"output_shape": "partial_output_shape"}

    def _begin(self):
        shape = self.partial_output_shape
        one = shape is None or isinstance(shape, int)
        self.partial_output_shape = [shape] if one else list(shape)

    def build(self, input_shape):
        sizes, of_output = (
            tf.TensorShape(input_shape).as_list(),
            self.partial_output_shape,
        )
        kernel, bias = _Equation(self.equation).shapes(sizes, of_output, self.bias_axes)
        self.kernel = self._new_weight("kernel", kernel)
        self.bias = None if bias is None else self._new_weight("bias", bias)
        self.built = True

    def call(self, inputs):
        out = tf.einsum(self.equation, inputs, self.kernel)
        if self.bias is not None:
            out += self.bias
        return out if self.activation is None else self.activation(out)

    def get_config(self):
        """Adds the arguments; output_shape as a list, without the batch."""
        config = super().get_config()
        return {**config, "output_shape": list(self.partial_output_shape)}
