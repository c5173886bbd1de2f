"""Ops of TensorFlow that are not there: each has a reason, which errors tell."""

import importlib
import pathlib

import pytest

import headrace as tf
from headrace._load import _headrace

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def op_coverage(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("op_coverage")


def test_each_has_one_row(op_coverage):
    names = op_coverage.upstream_names()
    ops, absent = _headrace.op_names(), _headrace.absent_ops()
    assert op_coverage.mistakes(names, ops, absent) == []
    marks = {"TPU", "GPU", "cluster", "training-internals", "wanted"}
    assert {mark for mark, _, _ in absent} <= marks


def test_mistakes_are_found(op_coverage):
    rows = [("TPU", "it is so", "B C"), ("GPU", "it is so", "C D")]
    assert op_coverage.mistakes(["A", "B", "C"], ["B", "E"], rows) == [
        "A has neither an op nor a row",
        "B has an op and a row",
        "D has a row and is no op of TensorFlow",
        "C has two rows",
    ]


def test_the_page_has_the_rows(op_coverage):
    page = (ROOT / "docs" / "coverage.md").read_text()
    names = op_coverage.upstream_names()
    text = op_coverage.table(names, _headrace.op_names(), _headrace.absent_ops())
    assert op_coverage.BEGIN + text + op_coverage.END in page


def test_errors_say_why():
    why = "CrossReplicaSum is an op of TensorFlow that Headrace does not have: it runs"
    with pytest.raises(AttributeError, match=why):
        _ = tf.raw_ops.CrossReplicaSum
    graph = tf.compat.v1.GraphDef()
    graph.node.add(name="x", op="CrossReplicaSum")
    refused = pytest.raises(tf.errors.NotFoundError, match=why)
    with refused, tf.Graph().as_default():
        tf.import_graph_def(graph)
    with pytest.raises(AttributeError, match="has no attribute 'NobodysOp'$"):
        _ = tf.raw_ops.NobodysOp
