"""tf.estimator.classifier_parse_example_spec and regressor_parse_example_spec."""

from headrace import _api as tf
from headrace.feature_column.numeric import NumericColumn


def _with(feature_columns, label_key, label_spec, weight_column):
    spec = tf.feature_column.make_parse_example_spec(feature_columns)
    if label_key in spec:
        raise ValueError(
            f"label should not be used as feature. label_key: {label_key}, features: "
            f"{spec.keys()}"
        )
    spec[label_key] = label_spec
    if weight_column is None:
        return spec
    if isinstance(weight_column, str):
        weight_column = tf.feature_column.numeric_column(weight_column)
    if not isinstance(weight_column, NumericColumn):
        raise ValueError(
            "weight_column should be an instance of tf.feature_column.numeric_column. "
            f"Given type: {type(weight_column)} value: {weight_column}"
        )
    if weight_column.key in spec:
        raise ValueError(
            "weight_column should not be used as feature. weight_column: "
            f"{weight_column.key}, features: {spec.keys()}"
        )
    return {**spec, **weight_column.parse_example_spec}


def classifier_parse_example_spec(
    feature_columns,
    label_key,
    label_dtype=tf.int64,
    label_default=None,
    weight_column=None,
):
    """What tf.io.parse_example takes to read examples of a classifier: {name: feature}
    of the columns, the label, [1], and the weight, a name or a numeric column.
    ValueError where the label or the weight is a feature too."""
    label = tf.io.FixedLenFeature((1,), label_dtype, label_default)
    return _with(feature_columns, label_key, label, weight_column)


def regressor_parse_example_spec(
    feature_columns,
    label_key,
    label_dtype=tf.float32,
    label_default=None,
    label_dimension=1,
    weight_column=None,
):
    """As classifier_parse_example_spec, for labels of `label_dimension` numbers."""
    label = tf.io.FixedLenFeature((label_dimension,), label_dtype, label_default)
    return _with(feature_columns, label_key, label, weight_column)
