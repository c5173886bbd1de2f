"""tf.test.TestCase: unittest's with assertions about tensors."""

import contextlib
import os
import re
import sys
import tempfile
import threading
import unittest

import numpy as np

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import stack
from headrace.testing.more_assertions import MoreAssertions


def _array(value):
    """NumPy's array of a tensor, number or list."""
    if hasattr(value, "numpy") and not isinstance(value, np.ndarray):
        value = value.numpy()
    elif isinstance(value, (list, tuple)):
        value = [_array(v) for v in value]
    found = np.asarray(value)
    return found.astype(np.float32) if found.dtype.name == "bfloat16" else found


def _objects(value, parts):
    """An array of a list's items, which are of several shapes: `parts` are their values."""
    found = np.empty(len(parts), object)
    for i, (item, part) in enumerate(zip(value, parts)):
        is_list = isinstance(item, (list, tuple))
        found[i] = type(item)(part.tolist()) if is_list else part
    return found


# What a list may hold that is compared by itself.
_PARTS = (dict, list, tuple, np.ndarray, tf.Tensor, tf.Variable)


def _is_tree(value):
    return isinstance(value, dict) or (
        isinstance(value, (list, tuple)) and any(isinstance(v, _PARTS) for v in value)
    )


def _ragged(value):
    return isinstance(value, tf.RaggedTensor)


class _EagerSession:
    """What a block of cached_session() has where code runs at once."""

    def __init__(self, test_case):
        self._test_case = test_case

    def run(self, fetches, *args, **kwargs):
        """The values of tensors; RuntimeError for what only sessions take."""
        if kwargs.pop("feed_dict", {}):
            raise RuntimeError(
                "feed_dict is not supported when eager execution is enabled (in this "
                "case, sess.run(t) is shorthand for t.numpy()"
            )
        if args or kwargs:
            raise RuntimeError(
                "Optional args are not supported when eager execution is enabled (in "
                "this case, sess.run(t) is shorthand for t.numpy()"
            )
        return self._test_case.evaluate(fetches)


class _NoSession:
    """What a block of session() has where code runs at once."""

    def __getattr__(self, name):
        raise AttributeError(
            "Trying to access properties or call methods on the result of "
            "self.session(), self.cached_session(), etc while eager execution is "
            "enabled. If you're porting this test case to TF 2.0, either adapt the test "
            "to work with eager execution or insert a call to "
            "tf.disable_eager_execution() in the main() function of this test file."
        )


class TestCase(MoreAssertions, unittest.TestCase):
    """Tests with a folder, sessions and assertions of their own."""

    def __init__(self, methodName="runTest"):  # noqa: N803
        super().__init__(methodName)
        self._folder, self._session = None, None

    def setUp(self):
        if not stack.within_graph():  # tests may enter a graph, then set up again
            tf.compat.v1.reset_default_graph()
        tf.random.set_seed(87654321)
        np.random.seed(87654321)

    def tearDown(self):
        if self._session is not None:
            self._session.close()
            self._session = None

    def get_temp_dir(self):
        """A folder for files of this test."""
        if self._folder is None:
            holder = tempfile.TemporaryDirectory(prefix=self._testMethodName)
            self.addCleanup(holder.cleanup)
            self._folder = holder.name
        return self._folder

    # --- values ---

    def evaluate(self, tensors):
        """Arrays in the place of tensors; of a function, of what it gives."""
        if callable(tensors):
            tensors = tensors()
        if not tf.executing_eagerly():
            session = tf.compat.v1.get_default_session() or self._cached()
            return session.run(tensors)

        def one(value):
            if value is None or not hasattr(value, "numpy"):
                return value
            return value.numpy()

        return tf.nest.map_structure(one, tensors)

    def evaluate_if_both_tensors(self, a, b):
        """Both evaluated, where both are tensors."""
        if isinstance(a, tf.Tensor) and isinstance(b, tf.Tensor):
            return self.evaluate(a), self.evaluate(b)
        return a, b

    def _get(self, value):
        if isinstance(value, (_headrace.Tensor, tf.Variable)):
            return _array(self.evaluate(value))
        if isinstance(value, (list, tuple)):
            parts = [self._get(v) for v in value]
            if len({part.shape for part in parts}) > 1:
                return _objects(value, parts)
            value = parts
        return _array(value)

    # --- sessions ---

    @contextlib.contextmanager
    def session(self, graph=None, config=None, use_gpu=True, force_gpu=False):
        """A session for the block; eagerly an object that says that there is none."""
        if tf.executing_eagerly():
            yield _NoSession()
            return
        graph = graph or tf.compat.v1.get_default_graph()
        with graph.as_default(), tf.compat.v1.Session(graph=graph, config=config) as s:
            yield s

    def _cached(self):
        if self._session is None:
            self._session = tf.compat.v1.Session()
        return self._session

    @contextlib.contextmanager
    def cached_session(self, graph=None, config=None, use_gpu=True, force_gpu=False):
        """The test's own session, the same in every block; eagerly what only runs
        tensors."""
        if tf.executing_eagerly():
            yield _EagerSession(self)
            return
        if self._session is None:
            self._session = tf.compat.v1.Session(graph=graph, config=config)
        with self._session.graph.as_default(), self._session.as_default():
            yield self._session

    @contextlib.contextmanager
    def test_session(self, graph=None, config=None, use_gpu=True, force_gpu=False):
        """The same as cached_session; eagerly None."""
        if tf.executing_eagerly():
            yield None
            return
        with self.cached_session(graph, config, use_gpu, force_gpu) as session:
            yield session

    test_session.__test__ = False

    # --- how values compare ---

    def _check_shapes(self, a, b, msg):
        self.assertEqual(
            a.shape,
            b.shape,
            f"Shape mismatch: expected {a.shape}, got {b.shape} with contents {b}. "
            f"{msg or ''}",
        )

    def assertAllEqual(self, a, b, msg=None):
        """Same shapes and values."""
        if _ragged(a) or _ragged(b):
            a, b = (v.to_list() if _ragged(v) else v for v in (a, b))
            a, b = (v.tolist() if isinstance(v, np.ndarray) else v for v in (a, b))
            return self.assertEqual(a, b, msg)
        a, b = self._get(a), self._get(b)
        if a.dtype.kind in "USO" or b.dtype.kind in "USO":
            a, b = (
                np.vectorize(_bytes, otypes=[object])(v) if v.size else v
                for v in (a, b)
            )
        self._check_shapes(a, b, msg)
        same = a == b
        if a.dtype.kind in "fc" and b.dtype.kind in "fc":
            same = np.logical_or(same, np.logical_and(np.isnan(a), np.isnan(b)))
        if not np.all(same):
            where = np.where(np.atleast_1d(~np.asarray(same, bool)))
            note = (
                f"\nnot equal where = {where}\nnot equal lhs = "
                f"{np.atleast_1d(a)[where]!r}\nnot equal rhs = "
                f"{np.atleast_1d(b)[where]!r}\n{msg or ''}"
            )
            np.testing.assert_array_equal(a, b, err_msg=note)
            self.fail(note)

    def assertNotAllEqual(self, a, b, msg=None):
        """Shapes or values that differ somewhere."""
        self._refuted("equal", msg, self.assertAllEqual, a, b)

    def _refuted(self, how, msg, check, *values):
        try:
            check(*values)
        except AssertionError:
            return
        self.fail(f"The two values are {how} at all elements. {msg or ''}")

    def assertAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        """Same structures and shapes, values within the tolerances."""
        self._close(a, b, rtol, atol, "", msg)

    def _close(self, a, b, rtol, atol, path, msg):
        for cls in (dict, (list, tuple)):
            if isinstance(a, cls) != isinstance(b, cls) and cls is dict:
                raise ValueError(
                    f"Can't compare dict to non-dict, a{path} vs b{path}. {msg or ''}"
                )
        if isinstance(a, dict):
            keys = f"mismatched keys: a{path} has keys {a.keys()}, but b{path} has keys"
            self.assertCountEqual(a.keys(), b.keys(), f"{keys} {b.keys()}. {msg or ''}")
            for key in a:
                self._close(a[key], b[key], rtol, atol, f"{path}[{key}]", msg)
        elif _ragged(a) or _ragged(b):
            a, b = (v.to_list() if _ragged(v) else v for v in (a, b))
            self._close(a, b, rtol, atol, path, msg)
        elif _is_tree(a) or _is_tree(b):
            self._close_lists(a, b, rtol, atol, path, msg)
        else:
            self._close_arrays(self._get(a), self._get(b), rtol, atol, path, msg)

    def _close_lists(self, a, b, rtol, atol, path, msg):
        try:
            first, second = self._get(a), self._get(b)
            fits = first.dtype.kind != "O" and second.dtype.kind != "O"
        except ValueError:
            fits = False
        if fits:
            self._close_arrays(first, second, rtol, atol, path, msg)
            return
        self.assertEqual(len(a), len(b), f"Mismatched length: a{path} and b{path}")
        for i, (x, y) in enumerate(zip(a, b)):
            self._close(x, y, rtol, atol, f"{path}[{i}]", msg)

    def _close_arrays(self, a, b, rtol, atol, path, msg):
        self._check_shapes(a, b, msg)
        if np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
            return
        bad = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
        where = np.where(np.atleast_1d(bad))
        x, y = np.atleast_1d(a)[where], np.atleast_1d(b)[where]
        note = (
            f"Mismatched value: a{path} is different from b{path}. {msg or ''}\nnot "
            f"close where = {where}\nnot close lhs = {x}\nnot close rhs = {y}\nnot close "
            f"dif = {np.abs(x - y)}\nnot close tol = {atol + rtol * np.abs(y)}\ndtype = "
            f"{a.dtype}, shape = {a.shape}"
        )
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=note)
        self.fail(note)

    def assertNotAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        """Values that differ somewhere by more than the tolerances."""
        self._refuted("close", msg, self.assertAllClose, a, b, rtol, atol)

    def assertAllCloseAccordingToType(
        self,
        a,
        b,
        rtol=1e-6,
        atol=1e-6,
        float_rtol=1e-6,
        float_atol=1e-6,
        half_rtol=1e-3,
        half_atol=1e-3,
        bfloat16_rtol=1e-2,
        bfloat16_atol=1e-2,
        msg=None,
    ):
        """assertAllClose with the tolerance of the coarser of both types."""
        names = {getattr(getattr(v, "dtype", None), "name", "") for v in (a, b)}
        names |= {self._get(v).dtype.name for v in (a, b)}
        for kinds, wide in (
            ({"float32", "complex64"}, (float_rtol, float_atol)),
            ({"float16"}, (half_rtol, half_atol)),
            ({"bfloat16"}, (bfloat16_rtol, bfloat16_atol)),
        ):
            if names & kinds:
                rtol, atol = max(rtol, wide[0]), max(atol, wide[1])
        self.assertAllClose(a, b, rtol, atol, msg)

    # --- errors ---

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(self, exception_type, expected):
        """An error of that type whose text has the pattern, or meets the function."""
        if exception_type is None:
            exception_type = Exception
        try:
            yield
        except exception_type as error:
            text = getattr(error, "message", None) or str(error)
            fits = expected(error) if callable(expected) else re.search(expected, text)
            if not fits:
                raise AssertionError(
                    f"Exception of type {type(error)}: {text}"
                ) from error
        else:
            self.fail(f"{exception_type.__name__} not raised")

    def assertRaisesOpError(self, expected):
        """An error of an operation."""
        return self.assertRaisesWithPredicateMatch(tf.errors.OpError, expected)

    def assertRaisesIncompatibleShapesError(
        self, exception_type=tf.errors.InvalidArgumentError
    ):
        """The error of shapes that do not go together."""
        return self.assertRaisesWithPredicateMatch(
            exception_type,
            r"Incompatible shapes|Dimensions must be equal|required broad",
        )

    # --- threads and files ---

    def checkedThread(self, target, args=None, kwargs=None):
        """A thread whose errors join() raises in the test."""
        return _CheckedThread(self, target, args or (), kwargs or {})

    @contextlib.contextmanager
    def captureWritesToStream(self, stream):
        """What is written to the stream's file within the block: contents()."""
        stream.flush()
        number = stream.fileno()
        with tempfile.TemporaryFile(dir=self.get_temp_dir()) as file:
            saved = os.dup(number)
            os.dup2(file.fileno(), number)
            try:
                yield _Captured(stream, file)
            finally:
                stream.flush()
                os.dup2(saved, number)
                os.close(saved)


class _Captured:
    def __init__(self, stream, file):
        self._stream, self._file = stream, file

    def contents(self):
        self._stream.flush()
        self._file.seek(0)
        return self._file.read().decode("utf8")


class _CheckedThread:
    def __init__(self, case, target, args, kwargs):
        self._case, self._error = case, None

        def run():
            try:
                target(*args, **kwargs)
            except Exception:
                self._error = sys.exc_info()[1]

        self._thread = threading.Thread(target=run)

    def start(self):
        self._thread.start()

    def join(self):
        self._thread.join()
        if self._error is not None:
            self._case.fail(f"Error in checkedThread: {self._error}")

    def is_alive(self):
        return self._thread.is_alive()


def _bytes(value):
    return value.encode() if isinstance(value, str) else value
