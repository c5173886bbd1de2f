"""tf.data: pipelines of elements."""

from headrace import _names

__getattr__ = _names.of_package(__name__)

# What gives datasets their methods. The class is whole before: an import of the others
# that is interrupted is taken up again and adds to the same class.
from headrace.data import (  # noqa: E402, F401
    autograph_loops,
    dataset,
    generator,
    grouping,
    padding,
    resampling,
    saved,
    sources,
    transforms,
)
