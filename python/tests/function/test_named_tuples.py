"""Named tuples as arguments of traced functions."""

import collections

import headrace as tf


class Checked(collections.namedtuple("Checked", "aa bb")):
    """Refuses None, as graphs of graph networks do."""

    def __init__(self, *args, **kwargs):
        super().__init__()
        if self.aa is None:
            raise ValueError("Field `aa` cannot be None")


Plain = collections.namedtuple("Plain", "aa bb")
SCALAR = tf.TensorSpec([], tf.float32)


def test_constructors_that_refuse_none_are_called_with_values_alone():
    spec = Checked(tf.TensorSpec([None], tf.float32), SCALAR)
    given = Checked(tf.ones([2]), tf.constant(3.0))

    def doubled(x):
        return Checked(x.aa * 2, x.bb)

    for options in ({}, {"input_signature": [spec]}):
        found = tf.function(doubled, **options)(given)
        assert type(found) is Checked
        assert found.aa.numpy().tolist() == [2, 2] and found.bb == 3


def test_fields_name_the_specs_of_signatures():
    f = tf.function(lambda g: g)
    concrete = f.get_concrete_function({"k": Plain(SCALAR, [SCALAR, (SCALAR,)])})
    ((shown,), _) = concrete.structured_input_signature
    names = [spec.name for spec in tf.nest.flatten(shown)]
    assert names == ["g_k_aa", "g_k_bb_0", "g_k_bb_1_0"]
    assert [t.name for t in concrete.inputs] == ["g:0", "g_1:0", "g_2:0"]
