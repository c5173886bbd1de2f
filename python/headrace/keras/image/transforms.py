"""Changes of one image, an array: rotated, shifted, sheared, zoomed, brightened."""

import numpy as np

from headrace.framework.support import signatures

_MODES = ("nearest", "constant", "reflect", "wrap")


def _within(at, count, mode):
    """Places along an axis of `count` pixels, brought within it as the mode says."""
    last = count - 1
    if mode == "nearest":
        return np.clip(at, 0, last)
    if mode == "reflect":
        at = np.mod(at, 2 * count)
        return np.where(at > last + 0.5, 2 * count - at - 1, at)
    if mode == "wrap" and last:
        low = at + last * (np.trunc(-at / last) + 1)
        high = at - last * np.trunc(at / last)
        return np.where(at < 0, low, np.where(at > last, high, at))
    return at if mode == "constant" else np.zeros_like(at)


def _sampled(image, places, mode, cval, order):
    """The image, [rows, columns, channels], at places, two arrays of rows, columns."""
    sizes = image.shape[:2]
    inside = np.ones(places[0].shape, bool)
    for at, count in zip(places, sizes):
        inside &= (at >= 0) & (at <= count - 1)
    places = [_within(at, n, mode) for at, n in zip(places, sizes)]
    if order == 0:
        at = [np.clip(np.floor(p + 0.5), 0, n - 1) for p, n in zip(places, sizes)]
        out = image[at[0].astype(int), at[1].astype(int)]
    else:
        low = [np.floor(p) for p in places]
        out = 0.0
        for rows in (0, 1):
            for columns in (0, 1):
                share, at = 1.0, []
                for p, start, step, n in zip(places, low, (rows, columns), sizes):
                    share = share * np.abs(1 - step - (p - start))
                    at.append(np.clip(start + step, 0, n - 1).astype(int))
                out = out + share[..., None] * image[at[0], at[1]]
    return np.where(inside[..., None], out, cval) if mode == "constant" else out


def _matrix(theta, tx, ty, shear, zx, zy):
    """What maps places of the result to places of the image; None for no change."""
    turn, lean = np.deg2rad(theta), np.deg2rad(shear)
    cos, sin = np.cos(turn), np.sin(turn)
    parts = []
    if theta:
        parts.append([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])
    if tx or ty:
        parts.append([[1, 0, tx], [0, 1, ty], [0, 0, 1]])
    if shear:
        parts.append([[1, -np.sin(lean), 0], [0, np.cos(lean), 0], [0, 0, 1]])
    if zx != 1 or zy != 1:
        parts.append([[zx, 0, 0], [0, zy, 0], [0, 0, 1]])
    if not parts:
        return None
    whole = np.eye(3)
    for part in parts:
        whole = whole @ np.array(part, float)
    return whole


def apply_affine_transform(
    x,
    theta=0,
    tx=0,
    ty=0,
    shear=0,
    zx=1,
    zy=1,
    row_axis=1,
    col_axis=2,
    channel_axis=0,
    fill_mode="nearest",
    cval=0.0,
    order=1,
):
    """An image turned by `theta` degrees, shifted by (tx, ty) rows and columns, sheared
    by degrees, zoomed by (zx, zy), around its middle.

    `fill_mode` says what is outside of it: "nearest", "constant" (`cval`), "reflect" or
    "wrap". `order` is 0 for the nearest pixel, 1 for linear interpolation;
    NotImplementedError for higher ones. ValueError for axes that are no three.
    """
    if len({row_axis, col_axis, channel_axis}) != 3:
        raise ValueError("'row_axis', 'col_axis', and 'channel_axis' must be distinct")
    if np.ndim(x) != 3 or not {row_axis, col_axis, channel_axis} <= {
        -3,
        -2,
        -1,
        0,
        1,
        2,
    }:
        raise ValueError("Input arrays must be multi-channel 2D images.")
    if order not in (0, 1):
        raise NotImplementedError(
            f"Images are interpolated by order 0 or 1, not by splines of order {order}"
        )
    if fill_mode not in _MODES:
        raise RuntimeError(f"boundary mode not supported: {fill_mode}")
    matrix = _matrix(theta, tx, ty, shear, zx, zy)
    if matrix is None:
        return x
    axes = (row_axis, col_axis, channel_axis)
    image = np.moveaxis(x, axes, (0, 1, 2))
    middle = [n / 2 - 0.5 for n in image.shape[:2]]
    places = list(np.indices(image.shape[:2]))
    # Where columns come behind rows tf_keras takes what it was told of one for the
    # other, the middle too.
    order_of = (1, 0) if col_axis > row_axis else (0, 1)
    at = [places[i] - n for i, n in zip(order_of, middle)]
    found = np.tensordot(matrix, np.stack([*at, np.ones(at[0].shape)]), 1)
    for i, k in enumerate(order_of):
        places[k] = found[i] + middle[i]
    out = _sampled(image.astype("float64"), places, fill_mode, cval, order)
    return np.moveaxis(out.astype(x.dtype), (0, 1, 2), axes)


_AXES = (
    "row_axis=1, col_axis=2, channel_axis=0, fill_mode='nearest', cval=0.0, "
    "interpolation_order=1"
)


def _randomly(name, takes, doc):
    """Decorates draw(x, **own) -> changes: a function that applies these."""

    def decorate(draw):
        def call(x, row_axis, col_axis, interpolation_order, **given):
            own = {k: given.pop(k) for k in list(given) if k in own_names}
            changes = draw(x.shape[row_axis], x.shape[col_axis], **own)
            given.update(row_axis=row_axis, col_axis=col_axis)
            return apply_affine_transform(
                x, **changes, **given, order=interpolation_order
            )

        listed = signatures.from_text(f"x, {takes}, {_AXES}")
        own_names = takes.split(", ")
        like = signatures.named(name, doc)
        made = signatures.function_of(like, listed, call)
        made.__module__ = __name__
        return made

    return decorate


@_randomly("random_rotation", "rg", "The image turned by up to `rg` degrees.")
def random_rotation(rows, columns, rg):
    return {"theta": np.random.uniform(-rg, rg)}


@_randomly(
    "random_shift",
    "wrg, hrg",
    "The image shifted by up to the shares `wrg` of its width, `hrg` of its height.",
)
def random_shift(rows, columns, wrg, hrg):
    tx = np.random.uniform(-hrg, hrg) * rows
    return {"tx": tx, "ty": np.random.uniform(-wrg, wrg) * columns}


@_randomly("random_shear", "intensity", "The image sheared by up to so many degrees.")
def random_shear(rows, columns, intensity):
    return {"shear": np.random.uniform(-intensity, intensity)}


@_randomly(
    "random_zoom",
    "zoom_range",
    "The image zoomed by two factors within (least, most); ValueError for no pair.",
)
def random_zoom(rows, columns, zoom_range):
    if len(zoom_range) != 2:
        raise ValueError(
            "`zoom_range` should be a tuple or list of two floats. Received: "
            f"{zoom_range}"
        )
    if tuple(zoom_range) == (1, 1):
        return {}
    zx, zy = np.random.uniform(zoom_range[0], zoom_range[1], 2)
    return {"zx": zx, "zy": zy}


def apply_channel_shift(x, intensity, channel_axis=0):
    """The image with `intensity` added, cut to the values that it has."""
    return np.clip(x + intensity, np.min(x), np.max(x)).astype(x.dtype)


def random_channel_shift(x, intensity_range, channel_axis=0):
    """apply_channel_shift() by up to `intensity_range`."""
    intensity = np.random.uniform(-intensity_range, intensity_range)
    return apply_channel_shift(x, intensity, channel_axis)


def apply_brightness_shift(x, brightness, scale=True):
    """The image, [height, width, 1, 3 or 4], its colours times `brightness`: floats of
    whole numbers 0 to 255.

    With `scale` the values are stretched to 0..255 before. ValueError for other shapes.
    """
    x = np.asarray(x)
    if x.ndim != 3 or x.shape[-1] not in (1, 3, 4):
        raise ValueError(
            "apply_brightness_shift: images are [height, width, 1, 3 or 4], got shape "
            f"{x.shape}"
        )
    values = x.astype("float32")
    if scale:
        values = values - values.min()
        most = values.max()
        values = (values / most if most else values) * 255
    values = values.astype("uint8").astype("float32")
    changed = np.clip(np.float32(brightness) * values, 0, 255)
    if x.shape[-1] == 4:  # what is seen through stays so
        changed[..., 3] = values[..., 3]
    return np.trunc(changed)


def random_brightness(x, brightness_range, scale=True):
    """apply_brightness_shift() by a factor within (least, most)."""
    if len(brightness_range) != 2:
        raise ValueError(
            "`brightness_range should be tuple or list of two floats. Received: "
            f"{brightness_range}"
        )
    u = np.random.uniform(brightness_range[0], brightness_range[1])
    return apply_brightness_shift(x, u, scale)


def flip_axis(x, axis):
    """The image with the places along an axis the other way round."""
    return np.flip(x, axis)
