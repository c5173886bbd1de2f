"""What holds around every test."""

import pytest

import headrace as tf


@pytest.fixture(autouse=True)
def _nothing_left_by_other_tests():
    """Whatever ran before in this process: no global seed, no names taken."""
    tf.random.set_seed(None)
    tf.keras.backend.clear_session()
