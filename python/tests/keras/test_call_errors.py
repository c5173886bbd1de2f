"""What errors of layers' calls say, and what layers refuse before that."""

import headrace as tf
import pytest

K = tf.keras
L = K.layers


class Refusing(L.Layer):
    def call(self, x, error, *rest, flag="a", training=None):
        raise error


def text_of(call, kind=Exception):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def test_a_call_is_told_with_its_arguments():
    x = tf.ones([2, 3])
    text = text_of(lambda: Refusing(name="r")(x, ValueError("no"), [x, 1]), ValueError)
    assert text.splitlines() == [
        "Exception encountered when calling layer 'r' (type Refusing).",
        "",
        "no",
        "",
        "Call arguments received by layer 'r' (type Refusing):",
        "  • x=tf.Tensor(shape=(2, 3), dtype=float32)",
        "  • error=ValueError('no')",
        "  • rest=(['tf.Tensor(shape=(2, 3), dtype=float32)', '1'],)",
        "  • flag=a",
        "  • training=None",
    ]


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


@pytest.mark.parametrize(
    "error, kind, said",
    [
        (KeyError("k"), KeyError, "k"),
        (AssertionError(), AssertionError, ""),
        (TwoArguments("x", 2), RuntimeError, "x"),
        (tf.errors.NotFoundError(None, None, "nf"), tf.errors.NotFoundError, "nf"),
        (StopIteration("end"), StopIteration, "end"),
    ],
)
def test_errors_keep_their_class(error, kind, said):
    with pytest.raises(kind) as caught:
        Refusing(name="r")(tf.ones([1]), error)
    assert type(caught.value) is kind
    text = getattr(caught.value, "message", None) or caught.value.args[0]
    assert text.startswith(
        f"Exception encountered when calling layer 'r' (type Refusing).\n\n{said}\n\n"
    )


def test_only_the_innermost_layer_tells():
    inner = Refusing(name="inner")
    outer = L.Lambda(lambda x: inner(x, ValueError("no")), name="outer")
    text = text_of(lambda: outer(tf.ones([1])), ValueError)
    assert text.count("Exception encountered") == 1 and "layer 'inner'" in text
    for plain in (KeyboardInterrupt("k"), SystemExit(3)):
        with pytest.raises(type(plain)) as caught:
            inner(tf.ones([1]), plain)
        assert caught.value is plain
    # A call that does not fit is Python's own error.
    assert text_of(lambda: inner(tf.ones([1])), TypeError).startswith("Refusing.call()")


class Triple(L.Layer):
    def call(self, x):
        if x.shape[-1] == 3:
            raise ValueError("boo")
        return x


def test_in_graphs():
    layer = Triple(name="t")
    text = text_of(lambda: layer(K.Input([3])), ValueError)
    first, _, second, *rest = text.splitlines()
    assert first == 'Exception encountered when calling layer "t" (type Triple).'
    assert second == "in user code:" and "    ValueError: boo" in rest
    assert "  • x=tf.Tensor(shape=(None, 3), dtype=float32)" in rest
    text = text_of(lambda: tf.function(layer)(tf.ones([2, 3])), ValueError)
    assert text.startswith("in user code:") and "calling layer 't'" in text
    text = text_of(lambda: tf.reshape(K.Input([3]), [2, 5]) + tf.ones([7]), ValueError)
    assert 'calling layer "tf.__operators__.add" (type TFOpLambda)' in text
    with tf.Graph().as_default():
        assert text_of(lambda: layer(tf.ones([2, 3])), ValueError) == "boo"


class Eager(L.Layer):
    def call(self, x):
        return tf.constant(x.numpy() * 2)


def test_a_sequence_whose_layers_make_no_graph():
    model = K.Sequential([L.Dense(3, kernel_initializer="ones"), Eager()])
    for _ in range(2):
        assert model(tf.ones([1, 2])).numpy().tolist() == [[4.0, 4.0, 4.0]]
    assert model.built and len(model.weights) == 2 and model.inputs is None
    small = K.Sequential([L.Conv2D(3, 5, name="c"), L.Flatten()], name="s")
    text = text_of(lambda: small(tf.ones([2, 3, 3, 1])), ValueError)
    assert "calling layer 's'" in text and "downsampling in c. Consider" in text


@pytest.mark.parametrize("kind", [L.Conv1D, L.Conv2D, L.Conv3D])
def test_convolutions_of_small_spaces(kind):
    layer = kind(2, 4, name="c")
    shape = [1, *[2] * layer.rank, 3]
    said = r"<= 0 due to downsampling in c\. .*Received input shape \[1, 2"
    for call in (layer.compute_output_shape, layer.build, lambda s: layer(tf.ones(s))):
        with pytest.raises(ValueError, match=said):
            call(shape)


def test_weights_that_are_not_made():
    class Built(K.Model):
        def build(self, shape):
            self.built = True

        def call(self, x):
            return x

    class Plain(K.Model):
        def call(self, x):
            return x

    for model in (K.Sequential([L.Dense(1)]), K.Sequential(), Built()):
        for name in ("weights", "trainable_variables", "non_trainable_weights"):
            with pytest.raises(ValueError, match="have not yet been created"):
                getattr(model, name)
        with pytest.raises(ValueError, match="have not yet been created"):
            model.get_weights()
        assert model.inputs is None and model.outputs is None
    assert Plain().weights == [] and Plain().inputs is None


@pytest.mark.parametrize(
    "kind",
    [
        L.LayerNormalization,
        L.BatchNormalization,
        L.UnitNormalization,
        lambda axis: L.GroupNormalization(groups=-1, axis=axis),
    ],
)
def test_axes_of_normalizations(kind):
    for axis, text in (
        (5, r"inputs.rank=2\). Received: axis=\(5,\)"),
        (-3, r"Received: axis=\(-1,\)"),
        ([1, -1], r"Duplicate axis: \(1, 1\)"),
    ):
        with pytest.raises(ValueError, match=text):
            kind(axis=axis)(tf.ones([2, 3]))
    with pytest.raises(TypeError, match="Expected an int or a list/tuple of ints"):
        kind(axis="a")(tf.ones([2, 3]))


def test_inputs_of_merges():
    x, y, z = tf.ones([2, 3]), tf.ones([4, 3]), tf.ones([2, 4])
    for call, text in (
        (lambda: L.Add()(x), r"input_shape=\(2, 3\) \(not a list of shapes\)"),
        (lambda: L.Concatenate()(x), r"of at least 1 input. Received: input_shape=\(2"),
        (lambda: L.Dot(1)([x]), r"of 2 inputs. Received: input_shape=\[\(2, 3\)\]"),
        (lambda: L.Subtract()([x]), r"exactly 2 inputs. Received: input_shape=\[\(2"),
        (lambda: L.Add()([x, y]), r"batch sizes. Got tensors with shapes \[\(2, 3\), "),
        (lambda: L.Dot(1)([x, z]), r"Full input shapes: \(2, 3\), \(2, 4\)"),
        (lambda: L.TimeDistributed(L.Dense(1))(x), r"3 dimensions, received: \(2, 3\)"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_numbers_of_activations():
    for name in ("max_value", "negative_slope", "threshold"):
        with pytest.raises(ValueError, match=f"{name} of a ReLU layer cannot be a neg"):
            L.ReLU(**{name: -1})
    for call in (lambda: L.ELU(None), lambda: L.ThresholdedReLU(None)):
        with pytest.raises(ValueError, match="cannot be None, expecting a float"):
            call()
    with pytest.raises(ValueError, match="Thresholded ReLU layer should be >=0"):
        L.ThresholdedReLU(-1.0)


def test_a_call_that_takes_all_is_told_of_training():
    seen = []

    class Taking(L.Layer):
        def call(self, x, **given):
            seen.append(given)
            return x

    layer = Taking()
    layer(tf.ones([1]))
    layer(tf.ones([1]), training=True)
    assert seen == [{"training": None}, {"training": True}]


def test_states_that_do_not_fit():
    x = tf.ones([2, 3, 4])
    for states in ([tf.ones([2, 2])], [tf.ones([2, 2]), tf.ones([2, 3])]):
        with pytest.raises(ValueError, match=r"`cell.state_size` is \[2, 2\]"):
            L.LSTM(2)(x, initial_state=states)
    with pytest.raises(ValueError, match="Specify the batch size of your input tens"):
        L.LSTM(2, stateful=True)(K.Input([3, 4]))


def test_a_column_before_the_last_of_a_summary():
    one = K.Input([2], name="one")
    out = L.Add(name="a")([one, L.Dense(2, name="n" * 30)(one)])
    lines = []
    K.Model(one, out).summary(100, print_fn=lines.append, show_trainable=True)
    # Two spaces are left before the next column.
    cut = [line for line in lines if "'nnn" in line]
    assert cut and all(line[98:100] == "  " for line in cut)


def test_metrics_of_other_sizes():
    with pytest.raises(ValueError, match=r"Shapes \(2,\) and \(1,\) are incompatible"):
        K.metrics.Accuracy()([1, 2], [1])
    with pytest.raises(ValueError, match=r"in \[0, 1\]. Received: \[2.0\]"):
        K.metrics.Precision(2.0)


def test_the_place_of_an_index_that_is_no_row():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[0,1\] = 5 is"):
        L.Embedding(3, 2)(tf.constant([[1, 5]]))
