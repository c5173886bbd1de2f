"""What a layer wants of its inputs."""

from headrace import _api as tf
from headrace.keras.classes import takes


@takes(
    "dtype=None, shape=None, ndim=None, max_ndim=None, min_ndim=None, axes=None, "
    "allow_last_axis_squeeze=False, name=None, optional=False"
)
class InputSpec:
    """Rank, shape and dtype that an input must have; None says nothing.

    With `allow_last_axis_squeeze`, as models ask their inputs, the rank is free: the
    sizes that both have must agree, and the layers themselves say what they need.
    """

    def _begin(self):
        if self.dtype is not None:
            self.dtype = tf.as_dtype(self.dtype).name
        shape = tf.TensorShape(self.shape)
        self.shape = None if shape.rank is None else tuple(shape.as_list())
        self.ndim = self.ndim if self.shape is None else len(self.shape)
        self.axes = {int(k): v for k, v in (self.axes or {}).items()}

    def __repr__(self):
        given = [
            f"{name}={value}" for name, value in self.get_config().items() if value
        ]
        return f"InputSpec({', '.join(given)})"

    def get_config(self):
        """All six arguments as a dict, None for what is not asked."""
        names = ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_config(cls, config):
        """One of what get_config() gave."""
        return cls(**config)

    def problem(self, x):
        """What is wrong with x, in words; None when nothing is."""
        if self.shape is None and self.ndim is None and not self.axes:
            if self.min_ndim is None and self.max_ndim is None and not self.dtype:
                return None
        shape = x.shape
        rank = shape.rank
        if rank is None:
            return None
        full = f"Full shape received: {tuple(shape.as_list())}"
        squeezes = self.allow_last_axis_squeeze and rank and shape[-1] == 1
        strict = self.ndim is not None and not self.allow_last_axis_squeeze
        if strict and rank != self.ndim:
            return f"expected ndim={self.ndim}, found ndim={rank}. {full}"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"expected max_ndim={self.max_ndim}, found ndim={rank}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"expected min_ndim={self.min_ndim}, found ndim={rank}. {full}"
        if self.dtype is not None and x.dtype.name != self.dtype:
            return f"expected dtype={self.dtype}, found dtype={x.dtype.name}"
        return self._shape_problem(shape.as_list(), squeezes)

    def _shape_problem(self, sizes, squeezes):
        for axis, wanted in self.axes.items():
            if wanted is not None and -len(sizes) <= axis < len(sizes):
                if sizes[axis] not in (wanted, None):
                    return (
                        f"expected axis {axis} of input shape to have value {wanted}, "
                        f"but received input with shape {tuple(sizes)}"
                    )
        if self.shape is None:
            return None
        found = sizes[:-1] if squeezes and len(sizes) > len(self.shape) else sizes
        for wanted, size in zip(self.shape, found):
            if wanted is not None and size is not None and wanted != size:
                return f"expected shape={self.shape}, found shape={tuple(sizes)}"
        return None


def check(specs, inputs, layer_name):
    """Raises ValueError where the inputs are not what the specs want."""
    if isinstance(specs, dict):
        inputs = [inputs[k] for k in specs] if isinstance(inputs, dict) else inputs
        specs = list(specs.values())
    specs = tf.nest.flatten(specs)
    inputs = tf.nest.flatten(inputs)
    has_optional = any(spec is None or spec.optional for spec in specs)
    for x in inputs:
        if not hasattr(x, "shape") and not (x is None and has_optional):
            raise TypeError(
                f"Inputs to a layer should be tensors. Got '{x}' (of type {type(x)}) as "
                f"input for layer '{layer_name}'."
            )
    if len(inputs) != len(specs):
        raise ValueError(
            f'Layer "{layer_name}" expects {len(specs)} input(s), but it received '
            f"{len(inputs)} input tensors. Inputs received: {inputs}"
        )
    for i, (x, spec) in enumerate(zip(inputs, specs)):
        if spec is None or not hasattr(x, "shape"):
            continue
        problem = spec.problem(x)
        if problem:
            raise ValueError(
                f'Input {i} of layer "{layer_name}" is incompatible with the layer: '
                + problem
            )
