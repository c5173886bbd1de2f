"""Assertions of ranges, containers and texts."""

import re

import numpy as np

from headrace import _api as tf


class MoreAssertions:
    """Mixed into TestCase."""

    # --- numbers ---

    def assertNear(self, f1, f2, err, msg=None):
        """Two numbers at most `err` apart."""
        self.assertTrue(
            f1 == f2 or abs(f1 - f2) <= err,
            f"{f1:f} != {f2:f} +/- {err:f} (difference: {abs(f1 - f2)})"
            + (f" ({msg})" if msg is not None else ""),
        )

    def assertArrayNear(self, farray1, farray2, err, msg=None):
        """The same for every pair of two lists."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for a, b in zip(farray1, farray2):
            self.assertNear(float(a), float(b), err, msg)

    def assertNDArrayNear(self, ndarray1, ndarray2, err, msg=None):
        """Arrays whose difference has a norm below `err`."""
        near = np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2)) < err
        self.assertTrue(near, msg)

    def _compare_all(self, a, target, find, compare):
        compare(find(self._get(a)), target)

    def assertAllGreater(self, a, comparison_target):
        """All elements are greater."""
        self._compare_all(a, comparison_target, np.min, self.assertGreater)

    def assertAllLess(self, a, comparison_target):
        """All elements are less."""
        self._compare_all(a, comparison_target, np.max, self.assertLess)

    def assertAllGreaterEqual(self, a, comparison_target):
        """All elements are greater or equal."""
        self._compare_all(a, comparison_target, np.min, self.assertGreaterEqual)

    def assertAllLessEqual(self, a, comparison_target):
        """All elements are less or equal."""
        self._compare_all(a, comparison_target, np.max, self.assertLessEqual)

    def assertAllInRange(
        self,
        target,
        lower_bound,
        upper_bound,
        open_lower_bound=False,
        open_upper_bound=False,
    ):
        """All elements lie in the range."""
        values = np.atleast_1d(self._get(target))
        if values.dtype.kind not in "iufb":
            raise AssertionError(
                f"The value of {target} does not have an ordered numeric type, instead "
                f"it has type: {values.dtype}"
            )
        low = values <= lower_bound if open_lower_bound else values < lower_bound
        high = values >= upper_bound if open_upper_bound else values > upper_bound
        outside = low | high | np.isnan(values.astype(np.float64))
        if outside.any():
            left, right = "[("[open_lower_bound], "])"[open_upper_bound]
            lines = [
                f"  {i.tolist()} : {values[tuple(i)]}" for i in np.argwhere(outside)
            ]
            raise AssertionError(
                f"{outside.sum()} of the {values.size} element(s) are outside the range "
                f"{left}{lower_bound}, {upper_bound}{right}. Subscript(s) and value(s) "
                "of the offending elements:\n" + "\n".join(lines[:10])
            )

    def assertAllInSet(self, target, expected_set):
        """All elements are among those."""
        found = set(np.unique(self._get(target)).tolist())
        other = sorted(found - set(expected_set))
        if other:
            raise AssertionError(
                f"{len(other)} unique element(s) are not in the set "
                f"{expected_set}: {other}"
            )

    def assertDTypeEqual(self, target, expected_dtype):
        """The type of all elements."""
        found = self._get(target).dtype
        wanted = tf.as_dtype(expected_dtype).as_numpy_dtype
        if found != wanted:
            raise AssertionError(
                f"Data type mismatch: actual: {found}; expected: {expected_dtype}"
            )

    def assertShapeEqual(self, input_a, input_b, msg=None):
        """The same shape of two tensors or arrays."""
        for value in (input_a, input_b):
            if not isinstance(value, (np.ndarray, np.generic, tf.Tensor)):
                raise TypeError(
                    "input must be a Numpy ndarray, Numpy scalar, or a Tensor. Instead "
                    f"received {type(value)}"
                )
        a, b = (
            list(np.shape(v)) if isinstance(v, np.ndarray) else v.shape.as_list()
            for v in (input_a, input_b)
        )
        self.assertAllEqual(a, b, msg=msg)

    def assertDeviceEqual(self, device1, device2, msg=None):
        """Two names of the same device."""
        a, b = (
            tf.DeviceSpec.from_string(d or "").to_string() for d in (device1, device2)
        )
        self.assertEqual(a, b, f"Devices {a} and {b} are not equal. {msg or ''}")

    def assertProtoEquals(self, expected, actual, msg=None, relative_tolerance=None):
        """Two messages, or a message's text and a message."""
        if relative_tolerance is not None:
            raise NotImplementedError("assertProtoEquals: relative_tolerance")
        if isinstance(expected, (str, bytes)):
            from google.protobuf import text_format

            expected = text_format.Parse(expected, type(actual)())
        self.assertEqual(expected, actual, msg)

    # --- containers and texts ---

    def assertLen(self, container, expected_len, msg=None):
        """As many elements."""
        if len(container) != expected_len:
            self.fail(
                f"{container!r} has length of {len(container)}, expected "
                f"{expected_len}.{' : ' + msg if msg else ''}"
            )

    def assertEmpty(self, container, msg=None):
        """No elements."""
        if len(container):
            self.fail(f"{container!r} has length of {len(container)}. {msg or ''}")

    def assertNotEmpty(self, container, msg=None):
        """Some element."""
        if not len(container):
            self.fail(f"{container!r} has length of 0. {msg or ''}")

    def assertStartsWith(self, actual, expected_start, msg=None):
        """A text that begins so."""
        if not actual.startswith(expected_start):
            self.fail(f"{actual!r} does not start with {expected_start!r} {msg or ''}")

    def assertEndsWith(self, actual, expected_end, msg=None):
        """A text that ends so."""
        if not actual.endswith(expected_end):
            self.fail(f"{actual!r} does not end with {expected_end!r} {msg or ''}")

    def assertBetween(self, value, minv, maxv, msg=None):
        """minv <= value <= maxv."""
        if not minv <= value <= maxv:
            self.fail(
                f'"{value!r}" unexpectedly not between "{minv!r}" and "{maxv!r}" '
                f"{msg or ''}"
            )

    def assertContainsSubset(self, expected_subset, actual_set, msg=None):
        """All of the first are in the second."""
        missing = set(expected_subset) - set(actual_set)
        if missing:
            self.fail(f"Missing elements {missing} {msg or ''}")

    def assertNoCommonElements(self, expected_seq, actual_seq, msg=None):
        """None of the first is in the second."""
        common = set(expected_seq) & set(actual_seq)
        if common:
            self.fail(f"Common elements {common} {msg or ''}")

    def assertSameElements(self, expected_seq, actual_seq, msg=None):
        """The same elements, however often."""
        self.assertEqual(set(expected_seq), set(actual_seq), msg)

    def assertItemsEqual(self, expected_seq, actual_seq, msg=None):
        """The same elements, as often, in any order."""
        self.assertCountEqual(expected_seq, actual_seq, msg)

    def assertRegexMatch(self, actual_str, regexes, message=None):
        """A text that one of the patterns matches."""
        if not any(re.search(r, actual_str) for r in regexes):
            self.fail(f"{actual_str!r} matches none of {regexes} {message or ''}")

    def assertSequenceAlmostEqual(
        self, expected_seq, actual_seq, places=None, msg=None, delta=None
    ):
        """assertAlmostEqual of every pair."""
        self.assertEqual(len(expected_seq), len(actual_seq), msg)
        for a, b in zip(expected_seq, actual_seq):
            self.assertAlmostEqual(a, b, places=places, msg=msg, delta=delta)

    def assertDictAlmostEqual(self, a, b, places=None, msg=None, delta=None):
        """assertAlmostEqual of every pair of values."""
        self.assertEqual(a.keys(), b.keys(), msg)
        for key in a:
            self.assertAlmostEqual(a[key], b[key], places=places, msg=msg, delta=delta)
