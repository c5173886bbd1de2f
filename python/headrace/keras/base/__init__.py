"""What a layer is: its calls, weights, and the values that models are described by."""

# With the layer that functions of KerasTensors become.
from headrace.keras.base import base_layer  # noqa: F401
