"""Tells which rows the module named by HEADRACE_TESTED does not bear out."""

from . import builtin_calls, conditionals, features, functions, loops, refused  # noqa: F401
from .table import ROWS, same, tf, values

tf.autograph.set_verbosity(0)
bad = 0
for row in ROWS:
    found = {}
    for way in ("plain", "traced"):
        function = row.function if way == "plain" else row.traced()
        try:
            found[way] = values(function(*row.given()))
        except Exception as error:
            found[way] = error
    result = found["traced"]
    if row.error:
        names = [c.__name__ for c in type(result).__mro__]
        right = row.error in names and row.text in str(result)
    else:
        right = not isinstance(result, Exception) and same(result, row.expected)
        if row.plain and right:
            result = found["plain"]
            right = not isinstance(result, Exception) and same(result, row.expected)
    if not right:
        bad += 1
        told = f"{type(result).__name__} {result!s}"[-900:]
        wanted = f"{row.error}: {row.text}" if row.error else row.expected
        print(
            f"--- {row}: expected {wanted}\n    plain {found['plain']!r:.300}\n    found {told}"
        )
print(f"{len(ROWS) - bad} of {len(ROWS)} hold")
