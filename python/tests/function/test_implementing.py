"""tf.function's experimental_implements: what is given are tensors, nothing else comes in."""

import headrace as tf
import pytest

v1 = tf.compat.v1


def _add(x, y=3):
    return x + y


def test_arguments_become_tensors():
    add = tf.function(_add, experimental_implements="add")
    assert int(add(1)) == 4
    assert add("a", b"b").numpy() == b"ab"
    assert add([1, 2], tf.Variable([1, 2])).numpy().tolist() == [2, 4]
    assert [t.op.name for t in add.get_concrete_function(1).inputs] == ["x"]
    spec = tf.TensorSpec([], tf.int32)
    assert len(add.get_concrete_function(spec, y=2).inputs) == 2
    with pytest.raises(TypeError, match="type float32 that does not match type int32"):
        add(1, 2.0)
    for wrong in ({"a": 1}, None, object()):
        with pytest.raises(ValueError, match="Attempt to convert a value"):
            add(wrong)


def test_of_methods_and_all_kinds_of_parameters():
    class Owner:
        @tf.function(experimental_implements="sum")
        def sum(self, *values, **named):
            return tf.add_n([*values, *named.values()])

    owner = Owner()
    assert int(owner.sum(1, 2, a=3)) == 6
    names = [t.op.name for t in owner.sum.get_concrete_function(1, 2, a=3).inputs]
    assert names == ["values_0", "values_1", "a"]


def test_one_function_for_variables_and_numbers():
    with tf.Graph().as_default() as graph, v1.Session() as session:
        add = tf.function(_add, experimental_implements="add")
        a = v1.get_variable("a", initializer=1.0, use_resource=True)
        sums = [add(a, 2.0), add(2.0, a), add(a, a)]
        (function,) = graph.as_graph_def().library.function
        assert len(function.signature.input_arg) == 2
        session.run(a.initializer)
        assert session.run(sums) == [3.0, 3.0, 2.0]
        session.run(a.assign_add(1.0))
        assert session.run(sums) == [4.0, 4.0, 4.0]


@pytest.mark.parametrize("make", [tf.constant, tf.Variable])
def test_what_is_captured_is_refused(make):
    outer = make(2.0)
    function = tf.function(lambda x: x + outer, experimental_implements="f")
    with pytest.raises(
        AssertionError, match='"_implements=f" attribute and thus can not'
    ):
        function(1.0)


def test_effects_may_be_left_out():
    v = tf.Variable(1.0)

    def count():
        v.assign_add(1.0)
        return tf.constant(2.0)

    tf.function(count, experimental_attributes={"_disable_acd": True})()
    assert float(v) == 1.0
    tf.function(count)()
    assert float(v) == 2.0


def test_keywords_that_become_one_name():
    function = tf.function(lambda z, **named: z)
    with pytest.raises(ValueError, match="Name collision after sanitization") as e:
        function(1, **{"a_b": 1, "a/b": 2, "c": 3})
    assert "Original: ['a/b', 'a_b', 'c'], Sanitized: ['a_b', 'c']" in str(e.value)
