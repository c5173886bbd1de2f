"""Some six hundred calls with ragged tensors give what TensorFlow gives."""

import json

import headrace as tf
from ragged import ragged_cases


def test_calls():
    with open(ragged_cases.GOLDEN, encoding="utf8") as f:
        golden = json.load(f)
    scope = ragged_cases.names(tf)
    assert len(golden) > 600
    found = {c: ragged_cases.result(tf, c, scope) for c in golden}
    wrong = {c: (golden[c], found[c]) for c in golden if golden[c] != found[c]}
    assert not wrong
