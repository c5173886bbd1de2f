"""tf.estimator.WarmStartSettings."""

import collections
import os

from headrace.v1.train import checkpoint_init

_FIELDS = (
    "ckpt_to_initialize_from",
    "vars_to_warm_start",
    "var_name_to_vocab_info",
    "var_name_to_prev_var_name",
)


class WarmStartSettings(collections.namedtuple("WarmStartSettings", _FIELDS)):
    """Where variables' first values come from, and which variables."""

    def __new__(
        cls,
        ckpt_to_initialize_from,
        vars_to_warm_start=".*",
        var_name_to_vocab_info=None,
        var_name_to_prev_var_name=None,
    ):
        if not ckpt_to_initialize_from:
            raise ValueError(
                "`ckpt_to_initialize_from` MUST be set in WarmStartSettings"
            )
        return super().__new__(
            cls,
            ckpt_to_initialize_from,
            vars_to_warm_start,
            var_name_to_vocab_info or {},
            var_name_to_prev_var_name or {},
        )


def settings_of(warm_start_from):
    """The settings that a path, or settings, stand for."""
    if warm_start_from is None or isinstance(warm_start_from, WarmStartSettings):
        return warm_start_from
    if isinstance(warm_start_from, (str, bytes, os.PathLike)):
        return WarmStartSettings(os.fspath(warm_start_from))
    raise ValueError(
        "warm_start_from must be a string or a WarmStartSettings, instead got "
        f"{type(warm_start_from)}"
    )


def apply(settings):
    """Gives the current graph's variables their first values."""
    checkpoint_init.warm_start(*settings)
