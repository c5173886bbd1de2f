"""The public names as packages above the middle floors use them.

`from headrace import _api as tf` gives what `import headrace as tf` gives to programs,
dispatch included. tools/check_layers.py looks up each name used so and refuses those
of higher floors. What is below this floor imports the modules themselves.
"""

import sys


def __getattr__(name):
    """The public object `name`, kept from then on."""
    value = globals()[name] = getattr(sys.modules["headrace"], name)
    return value
