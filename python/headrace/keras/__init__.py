"""A compact tf.keras with Keras 2's behaviour; public names are in api_names.txt.

Modules of the implementation have names in the singular, public namespaces in
the plural: `headrace.keras.layers` is a namespace, `headrace.keras.layer` a
package.
"""

from headrace import _names

__getattr__ = _names.of_package(__name__)
