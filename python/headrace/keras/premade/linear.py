"""tf.keras.experimental.LinearModel and WideDeepModel."""

from headrace import _api as tf
from headrace.keras import activation as activations
from headrace.keras import initializer as initializers
from headrace.keras import regularizer, serialization
from headrace.keras.engine import data_adapter, objects
from headrace.keras.engine.model import Model

_KEPT = ("units", "activation", "use_bias", "kernel_initializer", "bias_initializer")
_KEPT += ("kernel_regularizer", "bias_regularizer")


class LinearModel(Model):
    """The sum of Dense layers without a bias, one for each input of a list, tuple or dict,
    with one bias and an activation."""

    _keras_module = "keras.experimental"

    def __init__(
        self,
        units=1,
        activation=None,
        use_bias=True,
        kernel_initializer="zeros",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.units, self.use_bias = units, use_bias
        self.activation = activations.get(activation)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizer.get(kernel_regularizer)
        self.bias_regularizer = regularizer.get(bias_regularizer)
        self.bias = None

    def build(self, input_shape):
        """Makes a kernel for each input of a structure of shapes, and the bias."""
        many = isinstance(input_shape, (list, tuple, dict))
        if isinstance(input_shape, dict):
            names, shapes = zip(*input_shape.items())
        else:
            nested = many and any(not _is_size(s) for s in input_shape)
            shapes, names = (input_shape if nested else [input_shape]), None
        self.dense_layers = [self._dense(shape) for shape in shapes]
        self._names = names
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                shape=(self.units,),
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
            )
        self.built = True

    def _dense(self, shape):
        layer = tf.keras.layers.Dense(
            self.units,
            use_bias=False,
            kernel_initializer=self.kernel_initializer,
            kernel_regularizer=self.kernel_regularizer,
            name=self.name,
        )
        layer.build(tf.TensorShape(shape))
        return layer

    def call(self, inputs):
        """[batch, units]; ValueError for a dict of other names than it was built for."""
        if isinstance(inputs, dict):
            unknown = set(self._names or ()) ^ set(inputs)
            if self._names is None or unknown:
                raise ValueError(f"LinearModel was not built for inputs {list(inputs)}")
            inputs = [inputs[name] for name in self._names]
        elif not isinstance(inputs, (list, tuple)):
            inputs = [inputs]
        result = sum(layer(x) for layer, x in zip(self.dense_layers, inputs))
        if self.bias is not None:
            result = tf.nn.bias_add(result, self.bias)
        return self.activation(result)

    def get_config(self):
        """The arguments as a dict, for from_config()."""
        own = {name: getattr(self, name) for name in _KEPT}
        own = {k: serialization.serialize(v) for k, v in own.items()}
        base = {"name": self.name, "trainable": self.trainable, "dtype": self.dtype}
        return {**base, **own}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A model of the dict that get_config() gave."""
        with serialization.CustomObjectScope(custom_objects or {}):
            return cls(**config)


def _is_size(value):
    return value is None or isinstance(value, int)


class WideDeepModel(Model):
    """The sum of what a linear and a deep model give, and an activation.

    Args:
      linear_model: a model, as LinearModel.
      dnn_model: another.
      activation: a function or its name.
    Inputs are a pair, one for each model, or what both take. Compiled with a list of two
    optimizers the first trains the linear model, the second the other.
    """

    _keras_module = "keras.experimental"

    def __init__(self, linear_model, dnn_model, activation=None, **kwargs):
        super().__init__(**kwargs)
        self.linear_model, self.dnn_model = linear_model, dnn_model
        self.activation = activations.get(activation)

    def call(self, inputs, training=None):
        """The tensors of both models, added up."""
        pair = inputs
        if not (isinstance(inputs, (list, tuple)) and len(inputs) == 2):
            pair = inputs, inputs
        models = self.linear_model, self.dnn_model
        results = [m(x, training=training) for m, x in zip(models, pair)]
        return tf.nest.map_structure(
            lambda wide, deep: self.activation(wide + deep), *results
        )

    def train_step(self, data):
        """One step of fit on a batch: {name: scalar} of the metrics.

        ValueError for a list of other than two optimizers.
        """
        if not isinstance(self.optimizer, (list, tuple)):
            return super().train_step(data)
        if len(self.optimizer) != 2:
            raise ValueError(
                "WideDeepModel takes one optimizer, or a list of two, of the linear and "
                f"the other model: got {len(self.optimizer)}"
            )
        x, y, sample_weight = data_adapter.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x, y, y_pred, sample_weight)
        models = self.linear_model, self.dnn_model
        weights = [m.trainable_variables for m in models]
        gradients = tape.gradient(loss, weights)
        for optimizer, grads, own in zip(self.optimizer, gradients, weights):
            optimizer.apply_gradients(zip(grads, own))
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def get_config(self):
        """The arguments as a dict, for from_config()."""
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": self.dtype,
            "linear_model": serialization.serialize(self.linear_model),
            "dnn_model": serialization.serialize(self.dnn_model),
            "activation": serialization.serialize(self.activation),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A model of the dict that get_config() gave."""
        own = dict(config)
        with serialization.CustomObjectScope(custom_objects or {}):
            for name in "linear_model", "dnn_model":
                own[name] = objects.deserialize_keras_object(own[name])
            return cls(**own)


_NAMES = {"LinearModel": LinearModel, "WideDeepModel": WideDeepModel}


def deserialize(config, custom_objects=None):
    """A model of the configuration of one."""
    return serialization.deserialize(config, _NAMES, "model", custom_objects)
