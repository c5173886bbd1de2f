"""What TensorFlow answers about operators: hints, classes, numbers, refusals."""

import headrace as tf
import pytest
import sessions


@pytest.mark.parametrize("title", sessions.titles("linear_operators"))
def test_session(title):
    sessions.check("linear_operators", title, tf)
