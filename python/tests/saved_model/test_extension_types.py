"""Extension types that say their names, in SavedModels."""

import pytest

import headrace as tf
from headrace.elements import structured


class Pair(tf.experimental.ExtensionType):
    __name__ = "tests.Pair"
    values: tf.Tensor
    weight: int


class Nameless(tf.experimental.ExtensionType):
    values: tf.Tensor


class Model(tf.Module):
    @tf.function
    def __call__(self, x):
        return type(x)(x.values * x.weight, x.weight)


def test_there_and_back(tmp_path):
    model = Model()
    model(Pair([1, 2], 3))
    tf.saved_model.save(model, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    found = loaded(Pair([4, 5], 3))
    assert isinstance(found, Pair) and found.weight == 3
    assert found.values.numpy().tolist() == [12, 15]
    for other in (Pair([4, 5], 2), Pair([4], 3), tf.constant([1, 2])):
        with pytest.raises(ValueError, match="matching concrete function"):
            loaded(other)


def test_the_form_that_tensorflow_reads():
    spec = Pair([1, 2], 3)._type_spec
    form = structured.encoded(spec)
    # EXTENSION_TYPE_SPEC of struct.proto, the name, and how many tensors there are
    assert (form[1], form[2], form[4]) == (13, "tests.Pair.Spec", 1)
    assert structured.decoded(form) == spec


def test_without_a_name():
    with pytest.raises(NotImplementedError, match="Nameless.Spec"):
        structured.encoded(Nameless([1])._type_spec)


def test_names_that_nobody_says():
    form = ("type_spec", 13, "tests.Gone.Spec", ("tuple", []), 0)
    with pytest.raises(NotImplementedError, match=r"tests\.Gone\.Spec"):
        structured.decoded(form)


@pytest.mark.parametrize(
    "name, text",
    [
        ("tests.Pair", "Name tests.Pair.Spec has already been registered for class"),
        ("tests.Pair it", "must have the form '{project_name}.{type_name}'"),
    ],
)
def test_names_that_are_refused(name, text):
    fields = {"__name__": name, "__annotations__": {"a": tf.Tensor}}
    with pytest.raises(ValueError, match=text):
        type(Pair)("Other", (tf.experimental.ExtensionType,), fields)
