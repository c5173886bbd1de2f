"""tf.experimental.dtensor: tensors laid out over the devices of a mesh."""

from headrace.dtensor import calls, functions, further, variables

__all__ = ["calls", "functions", "further", "variables"]
