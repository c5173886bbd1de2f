"""What tf.function refuses, and what its options do."""

import functools

import headrace as tf
import pytest


def test_functions_that_give_no_tensors():
    async def coroutine(x):
        return x

    def generator(x):
        yield x

    async def both(x):
        yield x

    class Object:
        async def __call__(self, x):
            return x

    for bad, match in (
        (coroutine, "an async function"),
        (functools.partial(coroutine, 1), "an async function"),
        (generator, "a generator function"),
        (both, "an async generator function"),
        (Object(), "an async function"),
        (Object, "the class"),
    ):
        with pytest.raises(TypeError, match=match):
            tf.function(bad)
    with pytest.raises(TypeError, match="3 is not a callable object"):
        tf.function(3)


def test_other_callables():
    class Object:
        def __call__(self, x):
            return x + 1

    def logged(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            return f(*args, **kwargs) * 10

        return inner

    @tf.function
    @logged
    def wrapped(x, y=2):
        return x + y

    one = tf.constant(1)
    assert int(tf.function(Object())(one)) == 2
    assert int(tf.function(functools.partial(lambda a, b: a - b, b=3))(one)) == -2
    assert int(tf.function(functools.partial(lambda a, b: a - b, 3))(one)) == 2
    assert int(wrapped(one)) == 30 and int(wrapped(x=one, y=3)) == 40
    assert wrapped.__name__ == "wrapped"
    assert int(tf.function(abs)(tf.constant(-4))) == 4


def test_a_function_of_a_function():
    class Object:
        @tf.function
        def method(self, x, y):
            return x - y

    kept = Object()
    again = tf.function(kept.method, reduce_retracing=True)
    assert int(again(y=1, x=tf.constant(3))) == 2
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        again(y=1)


def test_attributes_are_written():
    f = tf.function(
        lambda x: x,
        experimental_implements="a.b",
        experimental_attributes={"_noinline": True, "api_implements": "c"},
    )
    attr = f.get_concrete_function(1).function_def.attr
    assert attr["_implements"].s == b"a.b" and attr["_noinline"].b
    assert attr["api_implements"].s == b"c"
    with tf.Graph().as_default() as graph:
        f(tf.constant(1))
    (function,) = graph.as_graph_def().library.function
    assert function.attr["_implements"].s == b"a.b"


def test_attributes_that_are_refused():
    for attributes, error in (
        ({"color": "red"}, ValueError),
        ({"_noinline": 3}, ValueError),
        ({"disable_summaries_at_runtime": True}, NotImplementedError),
    ):
        with pytest.raises(error, match=next(iter(attributes))):
            tf.function(lambda x: x, experimental_attributes=attributes)
    with pytest.raises(ValueError, match="experimental_implements must be str"):
        tf.function(lambda x: x, experimental_implements=3)
    with pytest.raises(NotImplementedError, match="experimental_follow_type_hints"):
        tf.function(lambda x: x, experimental_follow_type_hints=True)


def test_older_names_of_options():
    old = tf.function(lambda x: x, experimental_relax_shapes=True)
    for n in range(4):
        old(tf.zeros([n]))
    assert old.experimental_get_tracing_count() == 2
    assert int(tf.function(lambda x: x, experimental_compile=True)(1)) == 1


def test_inputs_must_stay_as_they_are():
    def appends(given):
        given.append(1)
        return 1

    def replaces(other, given):
        given["a"] = [given["a"]]
        return 1

    def deep(given):
        given[0][0] = 2
        return 1

    x = tf.constant(1)
    for f, args in ((appends, [[x]]), (replaces, [2, {"a": x}]), (deep, [[[x], 1]])):
        with pytest.raises(ValueError, match=r"should not modify .* modified: given"):
            tf.function(f)(*args)

    @tf.function
    def copies(given):
        mine = list(given)
        mine.append(x)
        return len(mine)

    assert int(copies([x])) == 2


def test_input_signature_errors():
    f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([None], tf.int32)])
    for error in (ValueError, TypeError):
        with pytest.raises(error) as caught:
            f(tf.constant([[1]]))
    text = str(caught.value)
    assert text.startswith(
        "Python inputs incompatible with input_signature:\n  inputs: (\n    tf.Tensor("
    )
    assert "Can not cast TensorSpec(shape=(1, 1), dtype=tf.int32, name=None) to" in text
    for bad in (3, tf.TensorSpec([])):
        with pytest.raises(TypeError, match="must be either a tuple or a list"):
            tf.function(lambda x: x, input_signature=bad)


def test_flat_signatures():
    f = tf.function(lambda x, y, n=2: x["a"] * y * n)
    f = f.get_concrete_function({"a": tf.TensorSpec([], name="first")}, 3.0)
    three = tf.constant(3.0)
    assert float(f(three)) == float(f(first=three)) == 18.0
    for args, kwargs, match in (
        ([three, three], {}, r"takes 1 positional arguments, got 2"),
        ([], {"b": three}, r"missing required arguments: first"),
        ([three], {"b": three}, r"got unexpected keyword arguments: b"),
        ([three], {"first": three}, r"got two values for 'first'"),
        ([1.0], {}, r"expected argument #0\(zero-based\) to be a Tensor; got float"),
    ):
        with pytest.raises(TypeError, match=match):
            f(*args, **kwargs)


def test_the_guides_forms_of_signatures():
    x = tf.TensorSpec([None], tf.float32)
    f = tf.function(lambda a, b="two": None)
    f.get_concrete_function(x)
    shown = f.pretty_printed_concrete_signatures().split("\n")
    assert shown[1:] == ["  Args:", "    a: float32 Tensor, shape=(None,)"] + [
        "  Returns:",
        "    None",
    ]
    assert shown[0].endswith("(a, b='two')")
    concrete = tf.function(lambda *, a: a).get_concrete_function(a=x)
    assert "a (KEYWORD_ONLY): TensorSpec(" in str(concrete)
    with pytest.raises(TypeError, match=r"int value 2 in n, but was called with int v"):
        tf.function(lambda n: n).get_concrete_function(2)(3)


def test_names_in_signatures():
    @tf.function
    def f(Big, in_put):  # noqa: N803
        with tf.name_scope("Scope"):
            return {"a": Big + 1.0, "b": [Big, in_put]}

    spec = tf.TensorSpec([])
    signature = f.get_concrete_function(spec, spec).function_def.signature
    assert [a.name for a in signature.input_arg] == ["big", "in_put"]
    names = ["identity", "identity_1", "identity_2"]
    assert [a.name for a in signature.output_arg] == names
    same = tf.function(lambda **k: k["a_b"] + k["A/b"])
    made = same.get_concrete_function(**{"a_b": spec, "A/b": spec})
    assert len({a.name for a in made.function_def.signature.input_arg}) == 2
