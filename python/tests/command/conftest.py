import pytest

from command_line import Line


@pytest.fixture
def line(capfd):
    return Line(capfd)
