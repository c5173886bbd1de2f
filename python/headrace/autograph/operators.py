"""What converted code calls: the names that it finds in `ag__`."""

from headrace.autograph import for_tensors  # noqa: F401  (registers with loops)
from headrace.autograph.asserts import assert_stmt  # noqa: F401
from headrace.autograph.conditionals import if_exp, if_stmt  # noqa: F401
from headrace.autograph.lists import (  # noqa: F401
    GetItemOpts,
    ListPopOpts,
    ListStackOpts,
    get_item,
    list_append,
    list_pop,
    list_stack,
    new_list,
    set_item,
    set_list_type,
)
from headrace.autograph.logical import and_, eq, not_, not_eq, or_  # noqa: F401
from headrace.autograph.loops import for_stmt, while_stmt  # noqa: F401
from headrace.autograph.variables import (  # noqa: F401
    Undefined,
    UndefinedReturnValue,
    ld,
    ldu,
)
