"""tf.keras.utils.FeatureSpace: columns of data preprocessed, crossed and encoded."""

import os

from headrace import _api as tf
from headrace.keras import serialization, settings
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.keras_tensor import KerasTensor
from headrace.keras.engine import objects, whole


def _one_of(modes, given):
    if given not in modes:
        raise ValueError(
            "Invalid value for argument `output_mode`. Expected one of "
            f"{{{', '.join(map(repr, modes))}}}. Received: output_mode={given}"
        )
    return given


class Cross:
    """Columns that are hashed together.

    Attributes:
      feature_names: a tuple of their names. crossing_dim: how many values there are.
      output_mode: "int", or "one_hot".
      name: that of the result, such as a_X_b.
    """

    def __init__(self, feature_names, crossing_dim, output_mode="one_hot"):
        self.output_mode = _one_of(("int", "one_hot"), output_mode)
        self.feature_names = tuple(feature_names)
        self.crossing_dim = crossing_dim

    @property
    def name(self):
        return "_X_".join(self.feature_names)

    def get_config(self):
        """A dict of the constructor's arguments."""
        return {
            "feature_names": self.feature_names,
            "crossing_dim": self.crossing_dim,
            "output_mode": self.output_mode,
        }

    @classmethod
    def from_config(cls, config):
        """The Cross of a get_config()."""
        return cls(**config)


class Feature:
    """A column.

    Attributes:
      dtype: of its data, a str. preprocessor: a layer, or a function.
      output_mode: "int", "one_hot" or "float".
    """

    def __init__(self, dtype, preprocessor, output_mode):
        self.output_mode = _one_of(("int", "one_hot", "float"), output_mode)
        self.dtype = dtype
        if isinstance(preprocessor, dict):
            preprocessor = objects.deserialize_keras_object(preprocessor)
        elif callable(preprocessor) and not isinstance(preprocessor, Layer):
            preprocessor = tf.keras.layers.Lambda(preprocessor)
        self.preprocessor = preprocessor

    def get_config(self):
        """A dict of the constructor's arguments, of the layer its configuration."""
        return {
            "dtype": self.dtype,
            "preprocessor": serialization.serialize(self.preprocessor),
            "output_mode": self.output_mode,
        }

    @classmethod
    def from_config(cls, config):
        """The Feature of a get_config()."""
        return cls(**config)


def _named(kind, name):
    """The name of the layer of a column of some kind."""
    return f"{name or settings.unique_name(kind, zero_based=False)}_preprocessor"


def _kept(value, cls):
    """value, made of a configuration where it is one."""
    if isinstance(value, dict):
        return cls.from_config(value["config"])
    return value


class FeatureSpace(Layer):
    """Preprocesses the columns of dicts of data, batches or single rows, and encodes them.

    Args:
      features: {name of a column: its kind}, a str such as "string_categorical" or what
        the methods of these names give. ValueError for other kinds and for none.
      output_mode: "concat" for one vector of all columns, in the order of their names,
        or "dict".
      crosses: a list of tuples of names, or of cross(), that are hashed together.
      crossing_dim, hashing_dim, num_discretization_bins: the sizes of crosses, of hashed
        columns and of discretized ones that say none.

    Columns that learn from data do so by adapt(). Attributes of these names are there,
    and preprocessors, crossers and one_hot_encoders: {name: layer}.
    """

    _keras_module = "keras.utils"

    def __init__(
        self,
        features,
        output_mode="concat",
        crosses=None,
        crossing_dim=32,
        hashing_dim=32,
        num_discretization_bins=32,
    ):
        super().__init__()
        if not features:
            raise ValueError("The `features` argument cannot be None or empty.")
        self.crossing_dim, self.hashing_dim = crossing_dim, hashing_dim
        self.num_discretization_bins = num_discretization_bins
        self.features = {k: self._feature(k, v) for k, v in features.items()}
        self.crosses = self._crosses_of(crosses or [], features)
        self.crosses_by_name = {cross.name: cross for cross in self.crosses}
        self.output_mode = _one_of(("dict", "concat"), output_mode)
        self.inputs = {
            name: tf.keras.Input(shape=(1,), dtype=feature.dtype, name=name)
            for name, feature in self.features.items()
        }
        self.preprocessors = {k: f.preprocessor for k, f in self.features.items()}
        self.encoded_features = self.concat = None
        self.one_hot_encoders = {}
        self.crossers = {
            cross.name: tf.keras.layers.HashedCrossing(
                cross.crossing_dim, name=cross.name
            )
            for cross in self.crosses
        }
        self._is_adapted = not self._learning()

    # --- kinds of columns ---

    @classmethod
    def cross(cls, feature_names, crossing_dim, output_mode="one_hot"):
        """Columns that are hashed together into `crossing_dim` values."""
        return Cross(feature_names, crossing_dim, output_mode=output_mode)

    @classmethod
    def feature(cls, dtype, preprocessor, output_mode):
        """A column that a layer, or function, of the program's preprocesses."""
        return Feature(dtype, preprocessor, output_mode)

    @classmethod
    def float(cls, name=None):
        """Floats as they are."""
        layer = tf.keras.layers.Identity(dtype="float32", name=_named("float", name))
        return Feature("float32", layer, "float")

    @classmethod
    def float_rescaled(cls, scale=1.0, offset=0.0, name=None):
        """Floats times `scale`, plus `offset`."""
        name = _named("float_rescaled", name)
        layer = tf.keras.layers.Rescaling(scale, offset, name=name)
        return Feature("float32", layer, "float")

    @classmethod
    def float_normalized(cls, name=None):
        """Floats that get the mean 0 and the variance 1 of the data of adapt()."""
        name = _named("float_normalized", name)
        layer = tf.keras.layers.Normalization(axis=-1, name=name)
        return Feature("float32", layer, "float")

    @classmethod
    def float_discretized(
        cls, num_bins, bin_boundaries=None, output_mode="one_hot", name=None
    ):
        """Floats as the numbers of bins, of which adapt() finds the boundaries."""
        name = _named("float_discretized", name)
        layer = tf.keras.layers.Discretization(
            num_bins=num_bins, bin_boundaries=bin_boundaries, name=name
        )
        return Feature("float32", layer, output_mode)

    @classmethod
    def integer_categorical(
        cls, max_tokens=None, num_oov_indices=1, output_mode="one_hot", name=None
    ):
        """Integers as places in the vocabulary that adapt() finds."""
        name = _named("integer_categorical", name)
        layer = tf.keras.layers.IntegerLookup(max_tokens, num_oov_indices, name=name)
        return Feature("int64", layer, output_mode)

    @classmethod
    def string_categorical(
        cls, max_tokens=None, num_oov_indices=1, output_mode="one_hot", name=None
    ):
        """Texts as places in the vocabulary that adapt() finds."""
        name = _named("string_categorical", name)
        layer = tf.keras.layers.StringLookup(max_tokens, num_oov_indices, name=name)
        return Feature("string", layer, output_mode)

    @classmethod
    def string_hashed(cls, num_bins, output_mode="one_hot", name=None):
        """Texts hashed into `num_bins` values."""
        layer = tf.keras.layers.Hashing(num_bins, name=_named("string_hashed", name))
        return Feature("string", layer, output_mode)

    @classmethod
    def integer_hashed(cls, num_bins, output_mode="one_hot", name=None):
        """Integers hashed into `num_bins` values."""
        layer = tf.keras.layers.Hashing(num_bins, name=_named("integer_hashed", name))
        return Feature("int64", layer, output_mode)

    def _feature(self, name, given):
        given = _kept(given, Feature)
        if isinstance(given, Feature):
            return given
        kinds = {
            "float": (),
            "float_normalized": (),
            "float_rescaled": (),
            "float_discretized": (self.num_discretization_bins,),
            "integer_categorical": (),
            "string_categorical": (),
            "integer_hashed": (self.hashing_dim,),
            "string_hashed": (self.hashing_dim,),
        }
        if not isinstance(given, str) or given not in kinds:
            raise ValueError(f"Invalid feature type: {given}")
        return getattr(type(self), given)(*kinds[given], name=name)

    def _crosses_of(self, crosses, features):
        found = []
        for cross in crosses:
            cross = _kept(cross, Cross)
            if not isinstance(cross, Cross):
                cross = Cross(cross, self.crossing_dim)
            if any(name not in features for name in cross.feature_names):
                raise ValueError(
                    "All features referenced in the `crosses` argument should be present "
                    "in the `features` dict. Received unknown features: "
                    f"{cross.feature_names}"
                )
            found.append(cross)
        return found

    # --- what is learned ---

    def _learning(self):
        """The names of the columns whose layers learn from data."""
        kinds = (
            tf.keras.layers.Discretization,
            tf.keras.layers.IntegerLookup,
            tf.keras.layers.StringLookup,
        )

        def learns(layer):
            if isinstance(layer, tf.keras.layers.Normalization):
                return layer.input_mean is None
            if isinstance(layer, tf.keras.layers.TextVectorization):
                return layer._lookup_layer.input_vocabulary is None
            return isinstance(layer, kinds)

        return [name for name, layer in self.preprocessors.items() if learns(layer)]

    def adapt(self, dataset):
        """Lets the layers of columns learn from a dataset of dicts, of rows or batches.

        ValueError for other than datasets.
        """
        if not isinstance(dataset, tf.data.Dataset):
            raise ValueError(
                "`adapt()` can only be called on a tf.data.Dataset. Received instead: "
                f"{dataset} (of type {type(dataset)})"
            )
        for name in self._learning():
            column = dataset.map(lambda x, key=name: x[key])
            rank = column.element_spec.shape.rank
            if rank == 0:
                column = column.batch(32)
            if rank in (0, 1):
                column = column.map(lambda x: tf.expand_dims(x, -1))
            self.preprocessors[name].adapt(column)
        self._is_adapted = True
        self.get_encoded_features()

    def _check_adapted(self):
        if not self._is_adapted:
            raise ValueError(
                "You need to call `.adapt(dataset)` on the FeatureSpace before you can "
                "start using it."
            )

    # --- what it gives ---

    def get_inputs(self):
        """{name: tf.keras.Input} of the columns, for models of raw data."""
        return self.inputs

    def get_encoded_features(self):
        """What the inputs become, as KerasTensors: one, or a dict. ValueError before
        adapt(), where a column learns."""
        self._check_adapted()
        if self.encoded_features is None:
            self.encoded_features = self._encoded(self.inputs)
            self.built = True
        return self.encoded_features

    def __call__(self, data):
        """The vector, or dict, of a dict of batches or of single values.

        ValueError for other data and before adapt(), KeyError for other columns.
        """
        self._check_adapted()
        if not isinstance(data, dict):
            raise ValueError(
                "A FeatureSpace can only be called with a dict. Received: "
                f"data={data} (of type {type(data)}"
            )
        values, is_row = {}, False
        for name, value in data.items():
            if not isinstance(value, KerasTensor):
                value = tf.convert_to_tensor(value)
            if value.shape.rank == 0:
                value, is_row = tf.reshape(value, (1, 1)), True
            elif value.shape.rank == 1:
                value = tf.expand_dims(value, -1)
            values[name] = value
        found = self._encoded(values)
        self.built = True
        return tf.nest.map_structure(_first_row, found) if is_row else found

    def call(self, data):
        """The same as a call of the object."""
        return self(data)

    def _encoded(self, values):
        """The columns of rank 2 preprocessed, crossed, encoded and put together."""
        made = {k: self.preprocessors[k](v) for k, v in values.items()}
        crossed = {
            cross.name: self.crossers[cross.name](
                [made[name] for name in cross.feature_names]
            )
            for cross in self.crosses
        }
        names = [(name, made, self.features) for name in sorted(self.features)]
        names += [(n, crossed, self.crosses_by_name) for n in sorted(crossed)]
        found = {n: self._encode(n, of[n], specs[n]) for n, of, specs in names}
        if self.output_mode == "dict":
            return found
        if self.concat is None:
            self.concat = tf.keras.layers.Concatenate(axis=-1)
        return self.concat(list(found.values()))

    def _encode(self, name, value, spec):
        if spec.output_mode == "one_hot":
            if name not in self.one_hot_encoders:
                self.one_hot_encoders[name] = self._encoder_of(name, value)
            value = self.one_hot_encoders[name](value)
        dtype = value.dtype.name
        if self.output_mode == "concat" and (dtype == "string" or dtype[:3] == "int"):
            raise ValueError(
                f"Cannot concatenate features because feature '{name}' has not been "
                f"encoded (it has dtype {dtype}). Consider using `output_mode='dict'`."
            )
        return value

    def _encoder_of(self, name, value):
        layer = self.preprocessors.get(name) or self.crossers.get(name)
        if not value.dtype.is_integer:
            raise ValueError(
                f"Feature '{name}' has `output_mode='one_hot'`. Thus its preprocessor "
                f"should return an int64 dtype. Instead it returns a {value.dtype.name} "
                "dtype."
            )
        lookups = (tf.keras.layers.IntegerLookup, tf.keras.layers.StringLookup)
        bins = (
            tf.keras.layers.Discretization,
            tf.keras.layers.HashedCrossing,
            tf.keras.layers.Hashing,
        )
        if isinstance(layer, lookups):
            count = layer.vocabulary_size()
        elif isinstance(layer, tf.keras.layers.CategoryEncoding):
            count = layer.num_tokens
        elif isinstance(layer, bins):
            count = layer.num_bins
        else:
            raise ValueError(
                f"Feature '{name}' has `output_mode='one_hot'`. However it isn't a "
                "standard feature and the dimensionality of its output space is not "
                "known, thus it cannot be one-hot encoded. Try using "
                "`output_mode='int'`."
            )
        return tf.keras.layers.CategoryEncoding(
            num_tokens=count, output_mode="multi_hot"
        )

    # --- files ---

    def get_config(self):
        """A dict of the constructor's arguments, with configurations of columns and
        crosses."""
        return {
            "features": {k: _row(f) for k, f in self.features.items()},
            "output_mode": self.output_mode,
            "crosses": [_row(cross) for cross in self.crosses],
            "crossing_dim": self.crossing_dim,
            "hashing_dim": self.hashing_dim,
            "num_discretization_bins": self.num_discretization_bins,
        }

    @classmethod
    def from_config(cls, config):
        """The FeatureSpace of a get_config(), which has learned nothing."""
        return cls(**config)

    def get_build_config(self):
        """{name: how the layer of that column was built}."""
        return {k: layer.get_build_config() for k, layer in self.preprocessors.items()}

    def build_from_config(self, config):
        """Builds the layers of columns for what a file has learned."""
        for name, layer in self.preprocessors.items():
            told = config.get(name)
            if not layer.built and isinstance(told, dict):
                layer.build_from_config(told)
        self._is_adapted = self.built = True

    def save(self, filepath):
        """Writes it, with what it has learned, into a `.keras` file, which
        tf.keras.models.load_model reads."""
        path = os.fspath(filepath)
        if not path.endswith(".keras"):
            raise ValueError(
                "Invalid `filepath` argument: expected a `.keras` extension. Received: "
                f"filepath={path}"
            )
        whole._write_archive(self, path)


def _first_row(x):
    is_row = x.shape.rank == 2 and x.shape[0] == 1
    return tf.squeeze(x, axis=0) if is_row else x


def _row(thing):
    return {
        "module": "tf_keras.src.utils.feature_space",
        "class_name": type(thing).__name__,
        "config": thing.get_config(),
        "registered_name": type(thing).__name__,
    }


NAMES = {"FeatureSpace": FeatureSpace}


def deserialize(config, custom_objects=None):
    """The object of a configuration; ValueError for an unknown class."""
    return serialization.deserialize(config, NAMES, "object", custom_objects)
