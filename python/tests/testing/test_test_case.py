"""tf.test, tf.compat and the flags of programs."""

import unittest
import subprocess
import sys

import headrace as tf
import numpy as np
import pytest

flags = tf.compat.v1.flags


class Case(tf.test.TestCase):
    def runTest(self):  # noqa: N802
        pass


RIGHT = [
    lambda t: t.assertAllClose([1.0, 2.0], tf.constant([1.0, 2.0])),
    lambda t: t.assertAllClose(
        {"a": [1.0], "b": (2.0, [3.0])}, {"a": [1], "b": (2, [3])}
    ),
    lambda t: t.assertAllClose([[1.0], [2.0, 3.0]], [[1.0], [2.0, 3.0]]),
    lambda t: t.assertAllClose([tf.Variable(1.0), np.ones(2)], [1.0, tf.ones(2)]),
    lambda t: t.assertAllEqual(["a"], tf.constant(["a"])),
    lambda t: t.assertAllEqual(tf.ragged.constant([[1], [2, 3]]), [[1], [2, 3]]),
    lambda t: t.assertAllEqual(np.nan, tf.constant(np.nan)),
    lambda t: t.assertAllEqual(tf.Variable([1, 2]), [1, 2]),
    lambda t: t.assertNotAllClose([1.0], [1.1]),
    lambda t: t.assertAllCloseAccordingToType(np.float16([1.0]), np.float16([1.0005])),
    lambda t: t.assertNear(1.0, 1.01, 0.1),
    lambda t: t.assertAllInRange([1, 5], 1, 5),
    lambda t: t.assertShapeEqual(np.zeros([2, 3]), tf.zeros([2, 3])),
    lambda t: t.assertDeviceEqual("/cpu:0", "/device:CPU:0"),
    lambda t: t.assertDTypeEqual(tf.zeros([1]), tf.float32),
]
WRONG = [
    (lambda t: t.assertAllClose([1.0, 2], [1.0, 2.1]), "not close rhs = .2.1"),
    (lambda t: t.assertAllClose({"a": 1.0}, {"b": 1.0}), "mismatched keys"),
    (lambda t: t.assertAllClose([1.0], [1.0, 2]), "Shape mismatch: expected .1,., got"),
    (lambda t: t.assertAllEqual([1, 2], tf.constant([1, 3])), "not equal lhs = .*2"),
    (lambda t: t.assertNotAllEqual([1.0], [1.0]), "equal at all elements"),
    (lambda t: t.assertNear(1.0, 1.1, 0.01), "1.000000 != 1.100000"),
    (lambda t: t.assertAllGreater([1, 2], 1), "not greater than 1"),
    (lambda t: t.assertAllInRange([1, 5], 1, 4), "1 of the 2 element"),
    (lambda t: t.assertAllInSet([1, 5], [1, 2]), r"not in the set \[1, 2\]: \[5\]"),
    (lambda t: t.assertEmpty([1]), "has length of 1"),
]


@pytest.mark.parametrize("check", RIGHT)
def test_right(check):
    check(Case())


@pytest.mark.parametrize(("check", "text"), WRONG)
def test_wrong(check, text):
    with pytest.raises(AssertionError, match=text):
        check(Case())


def test_errors_sessions_and_files():
    case = Case()
    with case.assertRaisesOpError("out of bounds"):
        tf.constant([1])[3]
    with pytest.raises(AssertionError, match="cd"):
        with case.assertRaisesWithPredicateMatch(ValueError, "ab"):
            raise ValueError("cd")
    with pytest.raises(AssertionError, match="ValueError not raised"):
        with case.assertRaisesWithPredicateMatch(ValueError, "ab"):
            pass
    found = case.evaluate({"a": tf.constant([1]), "b": [tf.Variable(2)]})
    assert found == {"a": [1], "b": [2]}
    assert case.get_temp_dir() == case.get_temp_dir()
    with tf.Graph().as_default(), case.session() as session:
        assert session.run(tf.constant(3)) == 3
        case.assertAllEqual(tf.constant([4]), [4])
    thread = case.checkedThread(lambda: 1 / 0)
    thread.start()
    with pytest.raises(AssertionError, match="division by zero"):
        thread.join()


def test_gradients_by_differences():
    told, measured = tf.test.compute_gradient(lambda x: x**2, [tf.constant([1.0, 2])])
    np.testing.assert_allclose(told[0], [[2, 0], [0, 4]])
    np.testing.assert_allclose(measured[0], told[0], atol=1e-3)
    assert not tf.test.is_built_with_cuda() and tf.test.gpu_device_name() in ("",)


def test_compat():
    assert tf.compat.as_bytes("é") == b"\xc3\xa9" and tf.compat.as_str(b"a") == "a"
    assert tf.compat.as_str_any(3) == "3"
    with pytest.raises(TypeError, match="Expected binary or unicode string, got 3"):
        tf.compat.as_text(3)
    assert tf.losses.MeanSquaredError is tf.keras.losses.MeanSquaredError
    from headrace.optimizers import Adam

    assert Adam is tf.keras.optimizers.Adam


def _flags():
    values = flags.FlagValues()
    flags.DEFINE_string("name", "x", "a name", flag_values=values)
    flags.DEFINE_integer("count", 3, "how many", lower_bound=0, flag_values=values)
    flags.DEFINE_boolean("quiet", False, "says less", flag_values=values)
    flags.DEFINE_float("rate", None, "how fast", flag_values=values)
    flags.DEFINE_enum("kind", "a", ["a", "b"], "which", flag_values=values)
    flags.DEFINE_list("parts", "p,q", "which parts", flag_values=values)
    flags.DEFINE_multi_integer("n", [1], "numbers", flag_values=values)
    return values


def test_flags():
    values = _flags()
    rest = values(
        ["prog", "--name=y", "-count", "5", "in", "--quiet", "--n=2", "--n=3"]
    )
    assert rest == ["prog", "in"]
    assert (values.name, values.count, values.quiet, values.rate) == (
        "y",
        5,
        True,
        None,
    )
    assert (values.kind, values.parts, values.n) == ("a", ["p", "q"], [2, 3])
    assert _flags()(["prog", "--noquiet", "--", "--name=z"]) == ["prog", "--name=z"]
    for argv, error in (
        (["p", "--count=x"], flags.IllegalFlagValueError),
        (["p", "--count=-1"], flags.IllegalFlagValueError),
        (["p", "--kind=c"], flags.IllegalFlagValueError),
        (["p", "--other=1"], flags.UnrecognizedFlagError),
        (["p", "--name"], flags.Error),
    ):
        with pytest.raises(error):
            _flags()(argv)
    with pytest.raises(flags.DuplicateFlagError):
        flags.DEFINE_string("name", "", "", flag_values=values)
    values = _flags()
    flags.mark_flag_as_required("rate", flag_values=values)
    with pytest.raises(flags.IllegalFlagValueError, match="other than None"):
        values(["p"])


PROGRAM = """
import headrace as tf
flags = tf.compat.v1.flags
flags.DEFINE_string("word", "none", "a word")
def main(argv):
    print(flags.FLAGS.word, argv[1:])
if __name__ == "__main__":
    tf.compat.v1.app.run()
"""


def test_app(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)

    def run(*args):
        command = [sys.executable, str(path), *args]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    found = run("--word=hi", "rest")
    assert (found.stdout, found.returncode) == ("hi ['rest']\n", 0)
    assert "--word: a word" in run("--help").stdout


def test_a_test_is_set_up_again_within_a_graph():
    class Case(tf.test.TestCase):
        def runTest(self):  # noqa: N802
            self.tearDown()
            with tf.Graph().as_default():
                self.setUp()
                with self.test_session():
                    self.assertAllEqual(self.evaluate(tf.constant([1, 2]) * 2), [2, 4])

    result = unittest.TestResult()
    Case().run(result)
    assert (result.testsRun, result.errors, result.failures) == (1, [], [])
