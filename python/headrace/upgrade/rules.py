"""The rules of the upgrade: our tables of names, and rules.txt for what they do not say."""

import functools
import os
import re
from dataclasses import dataclass, field

from headrace.upgrade import names

DEPRECATED = {
    "contrib.distribute": (
        "WARNING",
        "(Manual edit required) tf.contrib.distribute.* have been migrated to "
        "tf.distribute.*. Please check out the new module for updated APIs.",
    ),
    "contrib.rnn": (
        "WARNING",
        "(Manual edit required) tf.contrib.rnn.* has been deprecated, and widely used "
        "cells/functions will be moved to tensorflow/addons repository. Please check it "
        "there and file Github issues if necessary.",
    ),
    "contrib": (
        "ERROR",
        "<function name> cannot be converted automatically. tf.contrib will not be "
        "distributed with TensorFlow 2.0, please consider an alternative in non-contrib "
        "TensorFlow, a community-maintained repository such as tensorflow/addons, or fork "
        "the required code.",
    ),
    "flags": (
        "ERROR",
        "tf.flags and tf.app.flags have been removed, please use the argparse or absl "
        "modules if you need command line parsing.",
    ),
}
DEPRECATED["app.flags"] = DEPRECATED["flags"]


@dataclass
class CallRule:
    first: int | None  # arguments by position from here on get keywords
    arguments: list[str]
    renamed: dict[str, str] = field(default_factory=dict)  # "" where it is removed
    silent: set[str] = field(default_factory=set)  # renamed without a word


@dataclass
class Rules:
    names: dict[str, str]
    calls: dict[str, CallRule]
    notes: dict[tuple[str, str], list[tuple[str, str]]]  # (name, argument or "*")


def _call_rule(first, words):
    rule = CallRule(None if first == "-" else int(first), [])
    for word in words:
        old, arrow, new = re.fullmatch(r"(\w+)(>{0,2})(\w*)", word).groups()
        rule.arguments.append(old)
        if arrow:
            rule.renamed[old] = new
        if arrow == ">>":
            rule.silent.add(old)
    return rule


@functools.lru_cache(maxsize=1)
def rules():
    """All of rules.txt."""
    found = Rules({}, {}, {})
    section = head = ""
    path = os.path.join(os.path.dirname(__file__), "rules.txt")
    with open(path, encoding="utf8") as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("#"):
                continue
            if line.startswith("["):
                section = line
            elif section == "[names]":
                old, new = line.split()
                found.names[old] = new
            elif section == "[calls]":
                name, first, *words = line.split()
                found.calls[name] = _call_rule(first, words)
            elif not line.startswith("  "):
                head = line
            else:
                level, argument, text = head.replace("\\n", "\n").split(" ", 2)
                for name in line.split():
                    rows = found.notes.setdefault((name, argument), [])
                    rows.append((level, text.replace("<function name>", f"tf.{name}")))
    return found


def new_name(name):
    """What `name` is called today; both without "tf."."""
    if name in rules().names:
        return rules().names[name]
    # They are deprecated with all that is in them.
    if name.startswith(("flags.", "app.flags.")):
        return name
    return names.derived(name)


def addons_notes(name):
    """Of names that went to TensorFlow Addons."""
    rows = rules().notes.get((name, "*"), ())
    return [row for row in rows if "in TensorFlow Addons" in row[1]]


def deprecated(name, but=()):
    """(level, text) for every module that `name` is in and that is no more."""
    found = []
    for module, (level, text) in DEPRECATED.items():
        if module in but:
            continue
        if name == module or name.startswith(module + "."):
            text = text.replace("<function name>", f"tf.{name}")
            found.append(
                (
                    level,
                    f"Using member tf.{name} in deprecated module tf.{module}. {text}",
                )
            )
    return found
