"""tf.saved_model.SaveOptions and LoadOptions."""

import enum

from headrace.framework.support import signatures


class VariablePolicy(enum.Enum):
    """Whether devices and copies of variables are saved; there is one device here."""

    NONE = None
    SAVE_VARIABLE_DEVICES = "save_variable_devices"
    EXPAND_DISTRIBUTED_VARIABLES = "expand_distributed_variables"

    def _save_variable_devices(self):
        """Whether the devices of variables are saved."""
        return self is not VariablePolicy.NONE

    @classmethod
    def from_obj(cls, obj):
        """The policy of that name; ValueError where there is none."""
        if isinstance(obj, cls):
            return obj
        for policy in cls:
            if policy.value == (obj.lower() if isinstance(obj, str) else obj):
                return policy
        raise ValueError(f"Received invalid VariablePolicy value: {obj}.")


def _refuse(options, *names):
    for name in names:
        if getattr(options, name):
            who = type(options).__name__
            raise NotImplementedError(f"{who}: {name} is not supported")


class SaveOptions:
    """How a model is saved.

    `function_aliases` names functions: {alias: tf.function}. `extra_tags` join the tag
    "serve". There is one device and one copy of a variable, so that
    `experimental_io_device` and `experimental_variable_policy` say nothing that is not
    so already. With `experimental_image_format` the model is `saved_model.cpb`, in
    chunks, as one larger than 2 GiB always is. What is not supported raises NotImplementedError.
    """

    @signatures.keeping(
        "namespace_whitelist=None, save_debug_info=False, function_aliases=None, "
        "experimental_debug_stripper=False, experimental_io_device=None, "
        "experimental_variable_policy=None, experimental_custom_gradients=True, "
        "experimental_image_format=False, experimental_skip_saver=False, "
        "experimental_sharding_callback=None, extra_tags=None",
        prefix="",
    )
    def __init__(self):
        _refuse(
            self,
            *("save_debug_info", "experimental_debug_stripper"),
            *("experimental_skip_saver", "experimental_sharding_callback"),
        )
        self.namespace_whitelist = list(self.namespace_whitelist or ())
        self.function_aliases = self.function_aliases or {}
        self.experimental_variable_policy = VariablePolicy.from_obj(
            self.experimental_variable_policy
        )


class LoadOptions:
    """How a model is loaded.

    With `allow_partial_checkpoint` variables that the files lack stay without a value,
    with `experimental_skip_checkpoint` all do. With `experimental_load_function_aliases`
    the model has `function_aliases`, {alias: function}, as SaveOptions named them.
    """

    @signatures.keeping(
        "allow_partial_checkpoint=False, experimental_io_device=None, "
        "experimental_skip_checkpoint=False, experimental_variable_policy=None, "
        "experimental_load_function_aliases=False",
        prefix="",
    )
    def __init__(self):
        self.experimental_variable_policy = VariablePolicy.from_obj(
            self.experimental_variable_policy
        )
