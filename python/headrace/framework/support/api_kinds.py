"""Which public functions work element by element, and what composites register."""

from headrace import _names

# By the names that api_names.txt gives them; a name that is not there is not asked for.
_ELEMENTWISE = {
    "unary": """
    math.abs math.acos math.acosh math.angle math.asin math.asinh math.atan math.atanh
    math.bessel_i0 math.bessel_i0e math.bessel_i1 math.bessel_i1e math.ceil math.conj
    math.cos math.cosh math.digamma math.erf math.erfc math.erfcinv math.erfinv math.exp
    math.expm1 math.floor math.imag math.is_finite math.is_inf math.is_nan math.lgamma
    math.log math.log1p math.log_sigmoid math.logical_not math.ndtri math.negative
    math.nextafter math.real math.reciprocal math.reciprocal_no_nan math.rint math.round
    math.rsqrt math.sigmoid math.sign math.sin math.sinh math.softplus nn.softsign
    math.sqrt math.square math.tan math.tanh
    math.special.bessel_j0 math.special.bessel_j1 math.special.bessel_k0
    math.special.bessel_k0e math.special.bessel_k1 math.special.bessel_k1e
    math.special.bessel_y0 math.special.bessel_y1 math.special.dawsn math.special.expint
    math.special.fresnel_cos math.special.fresnel_sin math.special.spence
    as_string bitwise.invert cast clip_by_value debugging.check_numerics ones_like
    zeros_like saturate_cast strided_slice
    image.adjust_brightness image.adjust_gamma image.convert_image_dtype
    image.random_brightness image.stateless_random_brightness
    io.decode_base64 io.decode_compressed io.encode_base64
    nn.elu nn.gelu nn.leaky_relu nn.normalize_moments nn.relu nn.relu6 nn.selu nn.silu
    strings.length strings.lower strings.regex_full_match strings.regex_replace
    strings.strip strings.substr strings.to_hash_bucket strings.to_hash_bucket_fast
    strings.to_hash_bucket_strong strings.to_number strings.unicode_script
    strings.unicode_transcode strings.upper
    """,
    "binary": """
    math.add math.atan2 bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor
    bitwise.left_shift bitwise.right_shift dtypes.complex math.divide math.divide_no_nan
    math.equal math.floordiv math.floormod math.greater math.greater_equal math.less
    math.less_equal math.logical_and math.logical_or math.logical_xor math.maximum
    math.minimum math.multiply math.multiply_no_nan math.not_equal math.pow realdiv
    math.scalar_mul math.squared_difference math.subtract math.truediv truncatediv
    truncatemod math.xdivy math.xlog1py math.xlogy math.zeta
    nn.sigmoid_cross_entropy_with_logits
    """,
    "assert": """
    debugging.assert_equal debugging.assert_greater debugging.assert_less
    debugging.assert_greater_equal debugging.assert_less_equal debugging.assert_near
    debugging.assert_none_equal
    """,
}

_by_row = {}  # what api_names.txt says of a function: its kind


def kind_of(api):
    """ "unary", "binary" or "assert", or None where a function is none of these."""
    if not _by_row:
        for kind, names in _ELEMENTWISE.items():
            for name in names.split():
                _by_row.setdefault(_names.row_of(name), kind)
        _by_row.pop(None, None)
    return _by_row.get(api._row)


_targets = {}  # by row: [(does the call fit, "module:function")]


def add_targets(is_kind, table):
    """Adds what answers for functions when an argument is of a kind.

    A row of `table` is: a public name, the parameters that are looked at (joined by
    commas; "values[]" may be a list), "module:function" of what is then called with the
    same arguments; behind "+" it gets the function before
    them. A name with a colon is a row of
    api_names.txt itself.
    """
    for line in table.strip().splitlines():
        name, parameters, target = line.split()
        row = name if ":" in name else _names.row_of(name)
        if row is None:
            raise ValueError(f"{name} is no public name")
        fits = _fits(is_kind, parameters.split(","))
        _targets.setdefault(row, []).append((fits, target))


def _fits(is_kind, parameters):
    def holds(x):
        if isinstance(x, (list, tuple)):
            return any(map(is_kind, x))
        return is_kind(x)

    checks = [
        (p.removesuffix("[]"), holds if p.endswith("[]") else is_kind)
        for p in parameters
    ]
    return lambda given: any(check(given.get(p)) for p, check in checks)


def targets_of(api):
    """[(fits(arguments by name), "module:function")] of a function."""
    return _targets.get(api._row, ())
