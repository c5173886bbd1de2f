"""Type specs: what they are made of and say in older terms."""

import headrace as tf
import pytest

SHAPE = tf.TensorShape
LIST = tf.TensorSpec([None, 2], tf.float32, name="a")
SPECS = [
    (LIST, (SHAPE([None, 2]), tf.float32, "a")),
    (
        tf.RaggedTensorSpec([None, None], tf.int32),
        (SHAPE([None, None]), tf.int32, 1, tf.int64),
    ),
    (tf.SparseTensorSpec([2, 2]), (SHAPE([2, 2]), tf.float32)),
    (tf.data.DatasetSpec(LIST), (LIST, SHAPE([]))),
    (tf.OptionalSpec(LIST), (LIST,)),
    (tf.TensorArraySpec([2], tf.float32), (SHAPE([2]), tf.float32, False, True)),
    (
        tf.IndexedSlicesSpec([2]),
        (SHAPE([2]), tf.float32, tf.int64, None, SHAPE([None])),
    ),
]


@pytest.mark.parametrize(("spec", "parts"), SPECS)
def test_specs_are_taken_apart_and_made_again(spec, parts):
    assert spec._serialize() == parts
    again = type(spec)._deserialize(spec._serialize())
    assert again == spec and type(again) is type(spec)


RAGGED = tf.RaggedTensorSpec([2, None], tf.int32)
OPTIONAL = tf.OptionalSpec(LIST)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (LIST, (tf.float32, SHAPE([None, 2]), tf.Tensor)),
        (tf.SparseTensorSpec([2]), (tf.float32, SHAPE([2]), tf.SparseTensor)),
        (RAGGED, (tf.int32, SHAPE([2, None]), RAGGED)),
        (OPTIONAL, (OPTIONAL, OPTIONAL, OPTIONAL)),
        (tf.TensorArraySpec([2]), (tf.float32, SHAPE([0, 1, 2]), tf.TensorArray)),
    ],
)
def test_specs_in_terms_of_types_shapes_and_classes(spec, said):
    ways = ("types", "shapes", "classes")
    assert tuple(getattr(spec, f"_to_legacy_output_{w}")() for w in ways) == said


def test_elements_in_terms_of_types_shapes_and_classes():
    ragged = tf.ragged.constant([[1], [2, 3]])
    dataset = tf.data.Dataset.from_tensors({"r": ragged, "o": 1.0})
    v1 = tf.compat.v1.data
    assert v1.get_output_types(dataset) == {"r": tf.int32, "o": tf.float32}
    assert v1.get_output_shapes(dataset)["r"].as_list() == [2, None]
    classes = v1.get_output_classes(dataset)
    assert classes["o"] is tf.Tensor and isinstance(classes["r"], tf.RaggedTensorSpec)
    nested = tf.data.Dataset.range(2).window(2)
    assert isinstance(v1.get_output_classes(nested), tf.data.DatasetSpec)
