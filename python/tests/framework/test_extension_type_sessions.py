"""What TensorFlow answers about extension types and dispatch: tests/golden/sessions."""

import pytest
import sessions

import headrace as tf

FILES = (
    "extension_types",
    "extension_type_uses",
    "extension_type_guide",
    "dispatch",
)
SECTIONS = [(name, title) for name in FILES for title in sessions.titles(name)]


@pytest.mark.parametrize("name, title", SECTIONS)
def test_as_recorded(name, title):
    sessions.check(name, title, tf)
