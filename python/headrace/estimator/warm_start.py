"""tf.estimator.WarmStartSettings."""

import os

from headrace.framework.support import signatures
from headrace.v1.train import checkpoint_init


class WarmStartSettings(
    signatures.tuple_of(
        "WarmStartSettings",
        "ckpt_to_initialize_from, vars_to_warm_start='.*', "
        "var_name_to_vocab_info=None, var_name_to_prev_var_name=None",
    )
):
    """Where variables' first values come from, and which variables."""

    @staticmethod
    def _check(given):
        if not given["ckpt_to_initialize_from"]:
            raise ValueError(
                "`ckpt_to_initialize_from` MUST be set in WarmStartSettings"
            )
        for name in ("var_name_to_vocab_info", "var_name_to_prev_var_name"):
            given[name] = given[name] or {}


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
