"""Functions whose parameters are put together: what calls and help() see."""

import inspect
import pickle

import pytest

import headrace as tf
from headrace.context import call_stacks
from headrace.framework.support import signatures


def test_wrong_calls_are_refused_in_python_s_words():
    class Kept:
        __init__ = signatures.keeps("size, rate=0.5")

    kept = Kept(3)
    assert (kept.size, kept.rate) == (3, 0.5)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        Kept()
    with pytest.raises(TypeError, match="unexpected keyword argument 'shape'"):
        Kept(3, shape=2)
    with pytest.raises(TypeError, match="takes from 2 to 3 positional arguments"):
        Kept(1, 2, 3)


def test_defaults_are_the_objects_themselves():
    default = object()
    parameters = [signatures.parameter("x", default)]
    function = signatures.function_of(signatures.named("f", "Doc."), parameters, dict)
    assert function()["x"] is default
    assert (function.__name__, function.__doc__) == ("f", "Doc.")
    assert inspect.signature(function).parameters["x"].default is default


def test_parameters_come_where_they_are_wanted():
    @signatures.taking(signatures.from_text("b=2, c=3"), before="d")
    def function(a, d=4, **given):
        return a, d, given

    assert str(inspect.signature(function)) == "(a, b=2, c=3, d=4)"
    assert function(1, 5) == (1, 4, {"b": 5, "c": 3})


def test_a_twin_fixes_what_it_does_not_take():
    def function(a, b=2, *, c=3):
        return a, b, c

    twin = signatures.twin(function, "twin", "Doc.", "b, a=7", c=9)
    assert str(inspect.signature(twin)) == "(b=2, a=7)"
    assert twin(1) == (7, 1, 9)


def test_a_constructor_goes_on_behind_keeping_its_parameters():
    class Kept:
        @signatures.keeping("size, rate=0.5")
        def __init__(self):
            self._doubled = self._size * 2

    kept = Kept(3)
    assert vars(kept) == {"_size": 3, "_rate": 0.5, "_doubled": 6}
    assert str(inspect.signature(Kept)) == "(size, rate=0.5)"
    with pytest.raises(TypeError, match=r"Kept.__init__\(\) missing 1 required"):
        Kept()


class Checked(signatures.tuple_of("Checked", "size, rate=0.5, tags=None")):
    """A tuple of the module, so that it can be pickled."""

    @staticmethod
    def _check(given):
        if given["size"] < 0:
            raise ValueError("size")
        given["tags"] = tuple(given["tags"] or ())


def test_tuples_check_what_they_are_given():
    made = Checked(3, tags=["a"])
    assert made == (3, 0.5, ("a",)) and made.tags == ("a",)
    assert pickle.loads(pickle.dumps(made)) == made
    assert made._replace(size=4).size == 4
    assert str(inspect.signature(Checked)) == "(size, rate=0.5, tags=None)"
    with pytest.raises(ValueError, match="size"):
        Checked(-1)
    with pytest.raises(TypeError, match=r"Checked.__new__\(\) missing 1 required"):
        Checked()


def test_layers_say_the_options_of_their_weights():
    names = list(inspect.signature(tf.keras.layers.Dense).parameters)
    assert names[:5] == [
        *("units", "activation", "use_bias"),
        *("kernel_initializer", "bias_initializer"),
    ]
    layer = tf.keras.layers.Dense(2, None, True, "ones", kernel_constraint="non_neg")
    assert type(layer.kernel_initializer).__name__ == "Ones"
    assert type(layer.kernel_constraint).__name__ == "NonNeg"
    with pytest.raises(TypeError, match="Keyword argument not understood"):
        tf.keras.layers.Dense(2, kernel_size=3)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        tf.keras.layers.Dense()


def test_methods_of_datasets_are_called_as_programs_know_them():
    dataset = tf.data.Dataset.range(4)
    assert tf.data.Dataset.map.__qualname__ == "DatasetV2.map"
    assert repr(dataset.take(2)).startswith("<_TakeDataset element_spec=")
    assert repr(dataset.cache()).startswith("<CacheDataset element_spec=")
    assert repr(dataset.shuffle(2)).startswith("<_ShuffleDataset element_spec=")


def test_what_is_handed_on_is_named_in_a_text_and_is_no_frame_of_the_user():
    @signatures.having("a, b=two, name=None", two=2)
    def make(a, **given):
        """Doc."""
        with tf.Graph().as_default():
            return given, tf.raw_ops.NoOp().traceback

    assert str(inspect.signature(make)) == "(a, b=2, name=None)"
    given, frames = make(1, name="n")
    assert given == {"b": 2, "name": "n"} and make.__doc__ == "Doc."
    (compiled,) = [file for file, *_ in frames if file.endswith(": make")]
    assert call_stacks.is_internal(compiled)
