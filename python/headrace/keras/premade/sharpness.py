"""tf.keras.models.experimental.SharpnessAwareMinimization."""

from headrace import _api as tf
from headrace.keras import serialization
from headrace.keras.engine import data_adapter, objects
from headrace.keras.engine.model import Model

_SMALL = 1e-12  # added to the norm, so that nothing divides by 0


class SharpnessAwareMinimization(Model):
    """Trains a model where its loss is flat: by the gradients not here but where the loss
    is highest nearby.

    Args:
      model: the model.
      rho: how far away the weights are moved to take the gradients.
      num_batch_splits: in how many parts a batch is divided, of which each moves the
        weights by itself.
      name: of this model.
    """

    def __init__(self, model, rho=0.05, num_batch_splits=None, name=None):
        super().__init__(name=name)
        self.model, self.rho, self.num_batch_splits = model, rho, num_batch_splits

    def call(self, inputs):
        """What the model gives."""
        return self.model(inputs)

    def train_step(self, data):
        """One step of fit on a batch: {name: scalar} of the metrics.

        ValueError where the batch cannot be divided so.
        """
        x, y, sample_weight = data_adapter.unpack_x_y_sample_weight(data)
        parts = self.num_batch_splits or 1
        if parts == 1:
            divided = [(x, y, sample_weight)]
        else:
            given = x, y, sample_weight
            divided = zip(*[_divided(values, parts) for values in given])
        predicted, gradients = [], []
        for part in divided:
            y_pred, found = self._gradients_nearby(*part)
            predicted.append(y_pred)
            gradients.append(found)
        mean = [_sum_of(found) for found in zip(*gradients)]
        self.optimizer.apply_gradients(zip(mean, self.model.trainable_variables))
        y_pred = tf.nest.map_structure(lambda *all: tf.concat(all, 0), *predicted)
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def _gradients_nearby(self, x, y, sample_weight):
        """What the model gives for a part, and the gradients where the loss is higher."""
        weights = self.model.trainable_variables
        with tf.GradientTape() as tape:
            y_pred = self(x)
            loss = self.compute_loss(x, y, y_pred, sample_weight)
        gradients = tape.gradient(loss, weights)
        norm = tf.linalg.global_norm(gradients) + _SMALL
        moves = [None if g is None else g * (self.rho / norm) for g in gradients]
        for weight, move in zip(weights, moves):
            if move is not None:
                weight.assign_add(move)
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x), sample_weight)
        gradients = tape.gradient(loss, weights)
        for weight, move in zip(weights, moves):
            if move is not None:
                weight.assign_sub(move)
        return y_pred, gradients

    def get_config(self):
        """The arguments as a dict, for from_config()."""
        return {"model": serialization.serialize(self.model), "rho": self.rho}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A model of the dict that get_config() gave."""
        own = dict(config)
        with serialization.CustomObjectScope(custom_objects or {}):
            own["model"] = objects.deserialize_keras_object(own["model"])
            return cls(**own)


def _divided(values, parts):
    """Tensors, or a structure of some, in parts of the same length; None in Nones."""
    if values is None:
        return [None] * parts
    split = [tf.split(x, parts) for x in tf.nest.flatten(values)]
    return [tf.nest.pack_sequence_as(values, part) for part in zip(*split)]


def _sum_of(gradients):
    known = [g for g in gradients if g is not None]
    return tf.add_n(known) if known else None
