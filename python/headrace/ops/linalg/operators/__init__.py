"""tf.linalg.LinearOperator and its classes: matrices that are known by their form.

The modules of this package know each other: `base` makes operators of classes that are
made of it. So they are loaded in one order, whichever is asked for.
"""

from headrace.ops.linalg.operators import algebra, functions  # noqa: F401
