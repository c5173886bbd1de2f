"""Calls that no table can say: what is computed anew, added or taken away."""

import ast

_CASTS = {
    f"to_{name}": dtype
    for name, dtype in (
        *((d, d) for d in ("bfloat16", "complex64", "complex128", "int32", "int64")),
        *(("float", "float32"), ("double", "float64")),
    )
}
_RESIZES = {
    f"image.resize_{name}": name.upper()
    for name in ("area", "bicubic", "bilinear", "nearest_neighbor")
}
# The argument that is no more, what the call now does, and how it is said.
_ONLY_IN_1 = {
    "nn.ctc_beam_search_decoder": (
        *("merge_repeated", False),
        "the 'merge_repeated' argument and behaves as if merge_repeated=False",
    ),
    "while_loop": (
        *("return_same_structure", True),
        "'return_same_structure' argument and behaves as if return_same_structure=True",
    ),
}
_ONLY_IN_1["zeros_like"] = _ONLY_IN_1["ones_like"] = (
    *("optimize", True),
    "an optimize argument, and behaves as if optimize=True",
)
_STEP = "step=tf.compat.v1.train.get_or_create_global_step()"
_SCALING = "tf.compat.v1.keras.initializers.VarianceScaling"
_UNIFORM = '("uniform" if {} else "truncated_normal")'


def _cast(call):
    dtype = _CASTS[call.name]
    if len(call.positional()) > 1:
        call.give_keyword(call.positional()[1], "name")
    call.append(f"dtype=tf.{dtype}")
    call.note("INFO", f"Changed tf.{call.name} call to tf.cast(..., dtype=tf.{dtype}).")
    call.rename("cast")


def _resize(call):
    method = f"method=tf.image.ResizeMethod.{_RESIZES[call.name]}"
    positional = call.positional()
    aligned = call.get("align_corners")
    if 2 < len(positional) <= 4:
        aligned = positional[2]
        if len(positional) == 4:
            call.give_keyword(positional[3], "preserve_aspect_ratio")
    if aligned is not None or len(positional) > 4:
        call.note_argument("align_corners")
    if aligned is not None:
        call.remove(aligned)
    call.append(method)
    call.note("INFO", f"Changed tf.{call.name} call to tf.image.resize(..., {method}).")
    call.rename("image.resize")


def _dropout(call):
    kept = call.get("keep_prob")
    positional = call.positional()
    if kept is not None:
        call.note("INFO", "Changing keep_prob arg of tf.nn.dropout to rate\n")
        call.replace(kept, "rate=1 - (", call.value(kept), ")")
    elif len(positional) < 2:
        call.note(
            "ERROR",
            "tf.nn.dropout called without arguments, so automatic fix was disabled. "
            "tf.nn.dropout has changed the semantics of the second argument.",
        )
    else:
        call.note(
            "INFO",
            "Changing keep_prob arg of tf.nn.dropout to rate, and recomputing value.\n",
        )
        call.remove(positional[1])
        call.append("rate=1 - (", call.value(positional[1]), ")")


def _labels(call):
    labels = call.get("labels")
    if labels is None:
        return
    call.note(
        "INFO",
        f"Changing labels arg of tf.{call.name} to tf.stop_gradient(labels). Please "
        "check this transformation.\n",
    )
    call.wrap(labels, "tf.stop_gradient(", ")")


def _glimpse(call):
    noise = call.get("uniform_noise")
    positional = call.positional()
    text = (
        f"Changing uniform_noise arg of tf.{call.name} to noise, and recomputing value."
    )
    if noise is not None:
        call.note("INFO", text + " Please check this transformation.\n")
        call.replace(
            noise, "noise='uniform' if (", call.value(noise), ") else 'gaussian'"
        )
    elif len(positional) > 5:
        call.note("INFO", text + "\n")
        call.wrap(positional[5], "'uniform' if (", ") else 'gaussian'")


def _name_scope(call):
    positional = call.positional()
    name = positional[0] if positional else call.get("name")
    default = positional[1] if len(positional) > 1 else call.get("default_name")
    if name is not None and not _is_constant(name, None):
        call.note(
            "INFO",
            "`name` passed to `name_scope`. Because you may be re-entering an existing "
            "scope, it is not safe to convert automatically,  the v2 name_scope does not "
            "support re-entering scopes by name.\n",
        )
        call.rename("compat.v1.name_scope", is_said=True)
    elif default is not None:
        call.note("INFO", "Using default_name as name in call to name_scope.\n")
        call.set_arguments(["name=", call.value(default)])
    else:
        call.note(
            "ERROR",
            "name_scope call with neither name nor default_name cannot be converted "
            "properly.",
        )


def _is_constant(argument, value):
    node = argument.node
    return isinstance(node, ast.Constant) and node.value is value


def _strings_split(call):
    kind = call.get("result_type")
    value = kind.node.value if kind and isinstance(kind.node, ast.Constant) else None
    if kind is not None:
        if value not in ("RaggedTensor", "SparseTensor"):
            call.note(
                "WARNING",
                "tf.strings.split with a computed result_type is not converted.",
            )
            return
        call.note(
            "INFO",
            f"Removed argument result_type={value!r} for function tf.strings.split",
        )
        call.remove(kind)
    if value != "RaggedTensor":
        call.note(
            "INFO",
            "Adding call to RaggedTensor.to_sparse() to result of strings.split, since "
            "it now returns a RaggedTensor.",
        )
        call.after(".to_sparse()")


def _data_format(call):
    if call.get("data_format") is None:
        call.append("data_format='NHWC'")
        call.note(
            "INFO",
            f"Adding argument 'data_format='NHWC'' to call to tf.{call.name}.",
        )


def _uniform_unit_scaling(call):
    call.rename(_SCALING.removeprefix("tf."))
    call.append('distribution="uniform"')


def _only_in_1(call):
    name, today, how = _ONLY_IN_1[call.name]
    given = call.get(name)
    if given is None:
        return
    if _is_constant(given, today):
        call.note("INFO", f"Removed argument {name} for function tf.{call.name}")
        call.remove(given)
        return
    call.note(
        "INFO",
        f"Renaming tf.{call.name} to tf.compat.v1.{call.name} because argument {name} is "
        f"present. tf.{call.name} no longer takes {how}. This call site specifies "
        f"something other than {name}={today}, so it was converted to compat.v1.",
    )
    call.rename("compat.v1." + call.name)


def _by_names(call, names):
    """The arguments that are given, by name."""
    found = dict(zip(names, call.positional(), strict=False))
    for name in names:
        if call.get(name) is not None:
            found[name] = call.get(name)
    return found


def _scaling(call, given, factor, mode):
    pieces = ["scale=", *(["1.0"] if factor is None else [factor])]
    if mode:
        pieces += [", mode=", *mode]
    if "uniform" in given:
        before, after = _UNIFORM.split("{}")
        pieces += [", distribution=", before, call.value(given["uniform"]), after]
    elif mode == ['"fan_avg"']:
        pieces.append(', distribution="uniform"')
    for name in ("seed", "dtype"):
        if name in given:
            pieces += [f", {name}=", call.value(given[name])]
    call.set_arguments(pieces)
    call.rename(_SCALING.removeprefix("tf."))


def _xavier(call):
    call.note(
        "INFO",
        "Changing tf.contrib.layers xavier initializer to a "
        f"{_SCALING} and converting arguments.\n",
    )
    given = _by_names(call, ("uniform", "seed", "dtype"))
    _scaling(call, given, None, ['"fan_avg"'])


def _variance_scaling(call):
    call.note(
        "INFO",
        f"Changing tf.{call.name} to a {_SCALING} and converting arguments.\n",
    )
    given = _by_names(call, ("factor", "mode", "uniform", "seed", "dtype"))
    factor = call.value(given["factor"]) if "factor" in given else "2.0"
    mode = ["(", call.value(given["mode"]), ").lower()"] if "mode" in given else None
    _scaling(call, given, factor, mode)


def _regularizer(call):
    new = "keras.regularizers.l" + call.name[len("contrib.layers.l")]
    scope = call.get("scope")
    positional = call.positional()
    if scope is None and len(positional) > 1:
        scope = positional[1]
    if scope is not None:
        call.note(
            "INFO",
            f"Dropping scope arg from tf.{call.name}, because it is unsupported in tf.{new}\n",
        )
        call.remove(scope)
    scale = positional[0] if positional else call.get("scale")
    keyword = "l=" if scale is not None and scale.keyword else ""
    if new.endswith("l2") and scale is not None:
        call.note(
            "INFO",
            f"Multiplying scale arg of tf.{call.name} by half to what tf.{new} expects.\n",
        )
        call.replace(scale, keyword, "0.5 * (", call.value(scale), ")")
    elif keyword:
        call.replace(scale, keyword, call.value(scale))
    call.rename(new)


def _step(call):
    if call.get("step") is None:
        call.append(_STEP)
        call.note(
            "WARNING",
            f"Summary API writing function tf.{call.name} now requires a 'step' argument; "
            "inserting default of tf.compat.v1.train.get_or_create_global_step().",
        )


def _record(call):
    value = "True" if "always" in call.name else "False"
    call.set_arguments([value])
    call.note(
        "INFO",
        f"Adding `{value}` argument to tf.{call.name} in anticipation of it being renamed "
        "to tf.compat.v2.summary.record_if()",
    )


SPECIAL = {
    **dict.fromkeys(_CASTS, _cast),
    **dict.fromkeys(_RESIZES, _resize),
    **dict.fromkeys(_ONLY_IN_1, _only_in_1),
    "nn.dropout": _dropout,
    "nn.softmax_cross_entropy_with_logits": _labels,
    "image.extract_glimpse": _glimpse,
    "name_scope": _name_scope,
    "strings.split": _strings_split,
    "nn.dilation2d": _data_format,
    "nn.erosion2d": _data_format,
    "uniform_unit_scaling_initializer": _uniform_unit_scaling,
    "initializers.uniform_unit_scaling": _uniform_unit_scaling,
    "contrib.layers.xavier_initializer": _xavier,
    "contrib.layers.xavier_initializer_conv2d": _xavier,
    "contrib.layers.variance_scaling_initializer": _variance_scaling,
    "contrib.layers.l1_regularizer": _regularizer,
    "contrib.layers.l2_regularizer": _regularizer,
    "contrib.summary.always_record_summaries": _record,
    "contrib.summary.never_record_summaries": _record,
    **{
        f"contrib.summary.{name}": _step
        for name in ("audio", "generic", "histogram", "image", "scalar")
    },
}
# What a table says of these arguments is said by the code above.
SAID_HERE = set(_RESIZES)
