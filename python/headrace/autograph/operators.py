"""What converted code calls: its name ag__."""

from headrace.autograph import for_tensors  # noqa: F401  (registers with loops)
from headrace.autograph.conditionals import if_exp, if_stmt  # noqa: F401
from headrace.autograph.logical import and_, eq, not_, not_eq, or_  # noqa: F401
from headrace.autograph.loops import for_stmt, while_stmt  # noqa: F401
from headrace.autograph.variables import (  # noqa: F401
    Undefined,
    UndefinedReturnValue,
    ld,
    ldu,
)
