"""Columns as configurations, and what parsers of examples need of columns."""

import collections

from headrace import _api as tf
from headrace.feature_column.base import FeatureColumn
from headrace.keras import initializer, serialization
from headrace.ops.random import initializers_v1

# The classes that configurations name, put here as they are made.
_CLASSES = dict.fromkeys(
    """
    NumericColumn BucketizedColumn IdentityCategoricalColumn
    HashedCategoricalColumn VocabularyListCategoricalColumn VocabularyFileCategoricalColumn
    WeightedCategoricalColumn CrossedColumn SequenceCategoricalColumn
    SequenceNumericColumn IndicatorColumn EmbeddingColumn
    """.split()
)


def _written(value):
    """One argument of a column as JSON can hold it."""
    if isinstance(value, FeatureColumn):
        return serialize_feature_column(value)
    if isinstance(value, tf.DType):
        return value.name
    if hasattr(value, "get_config"):
        return {"class_name": type(value).__name__, "config": value.get_config()}
    if callable(value):
        return value.__name__
    return value


def _initializer(config, custom_objects):
    name, inner = config["class_name"], config["config"]
    own = (custom_objects or {}).get(name) or getattr(initializers_v1, name, None)
    if own is None:
        return initializer.get(config)
    return own.from_config(inner) if hasattr(own, "from_config") else own(**inner)


def _function(name, custom_objects):
    return serialization.find(name, {}, "normalizer_fn", custom_objects)


class _ByFields(FeatureColumn):
    """get_config() and from_config() of columns, namedtuples, by their fields."""

    _is_v2_column = True
    parents = property(lambda self: [self[0]])

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.__name__ in _CLASSES:
            _CLASSES[cls.__name__] = cls

    def get_config(self):
        """The arguments as a dict that JSON can hold, for from_config()."""
        config = {}
        for name, value in zip(self._fields, self):
            if name == "keys":
                config[name] = tuple(_written(v) for v in value)
            else:
                config[name] = _written(value)
        return config

    @classmethod
    def from_config(cls, config, custom_objects=None, columns_by_name=None):
        """A column of what get_config() gave; ValueError where arguments are missing."""
        if set(config) != set(cls._fields):
            raise ValueError(
                f"Invalid config: {config}, expected keys: {list(cls._fields)}"
            )

        def column(value):
            return deserialize_feature_column(value, custom_objects, columns_by_name)

        arguments = dict(config)
        for name, value in config.items():
            if name in ("source_column", "categorical_column"):
                arguments[name] = column(value)
            elif name == "keys":
                arguments[name] = tuple(column(v) for v in value)
            elif name == "dtype":
                arguments[name] = tf.as_dtype(value)
            elif name == "normalizer_fn" and isinstance(value, str):
                arguments[name] = _function(value, custom_objects)
            elif name == "initializer" and isinstance(value, dict):
                arguments[name] = _initializer(value, custom_objects)
            elif isinstance(value, list):
                arguments[name] = as_tuples(value)
        return cls(**arguments)


def fields(name, names):
    """The base of a column that is a namedtuple; its parent is its first field."""

    class Fields(_ByFields, collections.namedtuple(name, names)):
        pass

    return Fields


def as_tuples(value):
    """Tuples in the place of lists, inside of others too."""
    return tuple(map(as_tuples, value)) if isinstance(value, (list, tuple)) else value


def serialize_feature_column(fc):
    """{class_name, config} of a column; the name of a raw feature as it is.

    ValueError for what is neither.
    """
    if isinstance(fc, str):
        return fc
    if isinstance(fc, FeatureColumn):
        return {"class_name": type(fc).__name__, "config": fc.get_config()}
    raise ValueError(f"Instance: {fc} is not a FeatureColumn")


def deserialize_feature_column(config, custom_objects=None, columns_by_name=None):
    """The column of what serialize_feature_column gave.

    `columns_by_name`, a dict, gets the columns that are made, and equal names become
    the same columns. ValueError for a class that is unknown.
    """
    if isinstance(config, str):
        return config
    if not isinstance(config, dict) or not {"class_name", "config"} <= set(config):
        raise ValueError(f"Improper config format: {config}")
    name = config["class_name"]
    if name in _CLASSES:
        cls = _CLASSES[name]
    elif name in (custom_objects or {}):
        cls = custom_objects[name]
    else:
        raise ValueError(f"Unknown feature_column_v2: {name}")
    made = cls.from_config(
        config["config"], custom_objects=custom_objects, columns_by_name=columns_by_name
    )
    if columns_by_name is None:
        return made
    return columns_by_name.setdefault(made.name, made)


def serialize_feature_columns(feature_columns):
    """serialize_feature_column of each."""
    return [serialize_feature_column(c) for c in feature_columns]


def deserialize_feature_columns(configs, custom_objects=None):
    """The columns of what serialize_feature_columns gave."""
    by_name = {}
    return [deserialize_feature_column(c, custom_objects, by_name) for c in configs]


def _parse_spec(feature_columns, kind):
    spec = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                f"All feature_columns must be {kind} instances. Given: {column}"
            )
        for key, value in column.parse_example_spec.items():
            if key in spec and spec[key] != value:
                raise ValueError(
                    f"feature_columns contain different parse_spec for key {key}. "
                    f"Given {value} and {spec[key]}"
                )
            spec[key] = value
    return spec


def make_parse_example_spec(feature_columns):
    """{feature: configuration} for tf.io.parse_example of the features that columns
    need.

    ValueError for what is no column, and where two columns want one feature in
    different ways.
    """
    return _parse_spec(feature_columns, "FeatureColumn")


def make_parse_example_spec_v1(feature_columns):
    return _parse_spec(feature_columns, "_FeatureColumn")


make_parse_example_spec_v1.__doc__ = make_parse_example_spec.__doc__
