"""tf.experimental.dtensor: tensors laid out over the devices of a mesh."""

from headrace.dtensor import calls, functions, variables  # what other rooms ask for

__all__ = ["calls", "functions", "variables"]
