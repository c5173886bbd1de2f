"""Layouts of results, as TensorFlow's: layout_rows.txt, which layout_cases.py writes."""

import os

import headrace as tf
import layout_cases
import numpy as np
import pytest


def rows():
    path = os.path.join(os.path.dirname(__file__), "layout_rows.txt")
    with open(path, encoding="utf-8") as f:
        return dict(line.rstrip("\n").split(" => ") for line in f)


@pytest.mark.parametrize("part", layout_cases.PARTS)
def test_results_lie_as_upstream(part):
    cases, wanted = layout_cases.Cases(tf, np), rows()
    found = {label: cases.result(f) for label, f in cases.of(part)}
    assert found == {label: wanted[label] for label in found}


def test_there_are_no_other_rows():
    cases = layout_cases.Cases(tf, np)
    labels = [label for part in layout_cases.PARTS for label, _ in cases.of(part)]
    assert sorted(labels) == sorted(rows())


def test_values_are_those_of_plain_tensors():
    cases = layout_cases.Cases(tf, np)
    x = np.arange(36.0, dtype="f").reshape(6, 6) % 7 + 1
    for function in (
        lambda t: tf.nn.softmax(tf.matmul(t, t, transpose_b=True)),
        lambda t: tf.concat([t, t * 2], 1)[1:, ::2],
        lambda t: tf.einsum("ab,cb->ac", t, t),
        lambda t: tf.reshape(tf.transpose(t), [4, 9]),
    ):
        got = function(cases.tensor("xy", (6, 6)))
        whole = tf.experimental.dtensor.Layout.replicated(cases.mesh, got.shape.rank)
        got = tf.experimental.dtensor.relayout(got, whole)
        np.testing.assert_array_equal(got.numpy(), function(tf.constant(x)).numpy())
