"""What names of TensorFlow 1.x are called today, as our tables of names say it."""

import collections
import functools
import sys

from headrace import _names


def _flat(rows, prefix=""):
    found = {}
    for name, target in rows.items():
        if isinstance(target, dict):
            found.update(_flat(target, f"{prefix}{name}."))
        elif name not in ("", "@"):
            found[prefix + name] = target
    return found


@functools.lru_cache(maxsize=1)
def _tables():
    """({name: target} of today, the same of 1.x, {target: names of today})."""
    root = sys.modules["headrace"]._root
    old = root["compat"]["v1"]
    if "@" in old:
        _names._share(old, old.pop("@"))
    today, old = (
        {
            name: target
            for name, target in _flat(rows).items()
            if not name.startswith(("compat.", "__internal__."))
        }
        for rows in (root, old)
    )
    by_target = collections.defaultdict(list)
    for name, target in today.items():
        # (Today's TensorFlow has no estimators, so nothing is renamed to one.)
        if not name.startswith("estimator."):
            by_target[target].append(name)
    return today, old, by_target


def derived(name):
    """The new name of `name` (both without "tf."), where the tables tell it: itself, if
    it is still there; another name of the same; its place in tf.compat.v1; itself, if it
    is unknown."""
    today, old, by_target = _tables()
    # (What every module has, as "__version__", needs no new name.)
    if name in today or name not in old or name.startswith("__"):
        return name
    same = by_target.get(old[name])
    return min(same, key=lambda n: (len(n), n)) if same else "compat.v1." + name
