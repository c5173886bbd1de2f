"""tf.debugging.enable_traceback_filtering."""

import traceback

import headrace as tf
import pytest

debugging = tf.debugging


@pytest.fixture(autouse=True)
def _filtering():
    yield
    debugging.enable_traceback_filtering()


def wrong(x):
    if x[0, 0] > 0.0:
        x = tf.matmul(x, tf.ones([3, 2]))
    return x


def call(function):
    function(tf.ones([2, 2]))


def trace(function):
    function.get_concrete_function(tf.TensorSpec([2, 2]))


def internal_frames(use):
    """How many frames of the package there are below the call, and the error."""
    with pytest.raises(ValueError, match="Dimensions must be equal") as caught:
        use(tf.function(wrong))
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [f.name for f in frames if f.filename == __file__][-2:] == [
        "tf__wrong",
        "tf__wrong",
    ]
    package = tf.__file__.removesuffix("__init__.py")
    return sum(f.filename.startswith(package) for f in frames), str(caught.value)


@pytest.mark.parametrize("use", [call, trace])
def test_frames_of_the_package_are_left_out(use):
    assert debugging.is_traceback_filtering_enabled()
    count, text = internal_frames(use)
    assert count <= 1  # that of what filters
    assert text.count("File ") == 1 and f'File "{__file__}"' in text
    debugging.disable_traceback_filtering()
    assert not debugging.is_traceback_filtering_enabled()
    count, text = internal_frames(use)
    assert count > 5
    assert text.count("File ") > 3 and f'File "{__file__}"' in text
    debugging.enable_traceback_filtering()
    assert internal_frames(use)[0] <= 1
