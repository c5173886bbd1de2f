"""A compact tf.keras with Keras 2's behaviour; public names are in api_names.txt.

Modules of the implementation have names in the singular, public namespaces in
the plural: `headrace.keras.layers` is a namespace, `headrace.keras.layer` a
package.
"""

import sys

import headrace
from headrace import _names

_rows = headrace._root["keras"]


def __getattr__(name):
    return _names.resolve(sys.modules[__name__], _rows, name)


def _open_namespaces(prefix, rows):
    """Makes `from headrace.keras.layers import Dense` work."""
    for name, row in rows.items():
        if isinstance(row, dict):
            full = f"{prefix}.{name}"
            sys.modules.setdefault(full, _names.Namespace(full, row))
            _open_namespaces(full, row)


_open_namespaces(__name__, _rows)
