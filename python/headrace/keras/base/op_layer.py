"""The layer that a function of tf becomes where it is called with KerasTensors."""

from headrace.keras.base.base_layer import Layer


class TFOpLambda(Layer):
    """An operation on KerasTensors as a layer."""

    def __init__(self, function, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self._function = function
        self.built = True

    def call(self, *args):
        return self._function(*args)

    def get_config(self):
        """Not supported, as it holds a function: raises NotImplementedError."""
        raise NotImplementedError(
            f"The configuration of the operation {self.name} is not supported: use a "
            "layer instead"
        )
