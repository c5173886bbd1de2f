"""Boxes in images: drawn, and chosen among many."""

import functools

from headrace._load import _headrace, raw
from headrace.control_flow import mapping
from headrace.framework import dtypes, name_scopes
from headrace.framework.settings import random_seed
from headrace.framework.support import signatures
from headrace.imaging import shapes
from headrace.ops import array_ops
from headrace.ops.faces import add_faces

_ALL = float("-inf")


def draw_bounding_boxes(images, boxes, colors, name=None):
    """Images with the outlines of boxes."""
    if colors is None:
        return raw.DrawBoundingBoxes(images, boxes, name=name)
    return raw.DrawBoundingBoxesV2(images, boxes, colors, name=name)


add_faces(
    globals(),
    """
non_max_suppression NonMaxSuppressionV3(boxes, scores, max_output_size,
        iou_threshold=0.5, score_threshold=-inf, name=None)
    Indices of the best boxes that do not overlap better ones.
non_max_suppression_overlaps NonMaxSuppressionWithOverlaps(overlaps, scores,
        max_output_size, overlap_threshold=0.5, score_threshold=-inf, name=None)
    The same by a table of overlaps.
combined_non_max_suppression CombinedNonMaxSuppression(boxes, scores,
        max_output_size_per_class, max_total_size, iou_threshold=0.5,
        score_threshold=-inf, pad_per_class=False, clip_boxes=True, name=None)
    The best boxes of all classes of each image.
generate_bounding_box_proposals GenerateBoundingBoxProposals(scores, bbox_deltas,
        image_info, anchors, nms_threshold=0.7, pre_nms_topn=6000, min_size=16,
        post_nms_topn=300, name=None)
    Boxes for two-stage detection: the best of each image, by scores of anchors and
    the steps away from these, as (boxes, their scores). TensorFlow computes them on
    GPUs alone, and graphs hold the operation here; a call is NotFoundError.
""",
)


@signatures.having(
    "boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=_ALL, "
    "soft_nms_sigma=0.0, name=None",
    _ALL=_ALL,
)
def non_max_suppression_with_scores(**given):
    """The same with their scores, which overlaps lower where sigma is above 0."""
    made = raw.NonMaxSuppressionV5(**given, pad_to_max_output_size=False)
    return made[0], made[1]


def non_max_suppression_padded(
    boxes,
    scores,
    max_output_size,
    iou_threshold=0.5,
    score_threshold=_ALL,
    pad_to_max_output_size=False,
    name=None,
    sorted_input=False,
    canonicalized_coordinates=False,
    tile_size=512,
):
    """The best boxes, filled up with zeros to a size, and how many there are; of
    one image or of each of a batch. The order and the corners that inputs come in
    make no difference here, nor does the size of tiles."""
    del sorted_input, canonicalized_coordinates, tile_size
    boxes, scores = shapes.tensor(boxes), shapes.tensor(scores)

    of_one = functools.partial(
        raw.NonMaxSuppressionV4,
        max_output_size=max_output_size,
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
        pad_to_max_output_size=pad_to_max_output_size,
    )
    with name_scopes.name_scope(name or "non_max_suppression_padded"):
        if boxes.shape.rank == 2:
            return tuple(of_one(boxes, scores))
        if not pad_to_max_output_size:
            raise ValueError(
                "'pad_to_max_output_size' (value False) must be True for batched input"
            )
        batch, count = array_ops.shape(boxes)[:-2], array_ops.shape(boxes)[-2]
        indices, valid = mapping.map_fn(
            lambda one: tuple(of_one(*one)),
            (
                array_ops.reshape(boxes, array_ops.stack([-1, count, 4])),
                array_ops.reshape(scores, array_ops.stack([-1, count])),
            ),
            fn_output_signature=(dtypes.int32, dtypes.int32),
        )
        rows = array_ops.concat([batch, [-1]], 0)
        return array_ops.reshape(indices, rows), array_ops.reshape(valid, batch)


_SAMPLING = {"aspect_ratio_range": [0.75, 1.33], "area_range": [0.05, 1.0]}
_SAMPLING["max_attempts"] = 100


def _sampled(op, given):
    """What an op gives of its arguments; None stands for those above."""
    for name, default in _SAMPLING.items():
        given[name] = default if given[name] is None else given[name]
    whole = "use_image_if_no_bounding_boxes"
    given[whole] = bool(given[whole])
    return _headrace.raw_op(op)(**given)


def _with_seed(seed):
    """Gives a function of (seed, the op's arguments) its parameters, "seed" or that
    with a default among them."""
    return signatures.having(
        f"image_size, bounding_boxes, {seed}, min_object_covered=0.1, "
        "aspect_ratio_range=None, area_range=None, max_attempts=None, "
        "use_image_if_no_bounding_boxes=None, name=None"
    )


@_with_seed("seed=0")
def sample_distorted_bounding_box(seed, **given):
    """(begin, size, box) of a crop, at random, that holds enough of some box."""
    pair = random_seed.get_seed(seed) if seed else (0, 0)
    given["seed"], given["seed2"] = pair
    return _sampled("SampleDistortedBoundingBoxV2", given)


@_with_seed("seed")
def stateless_sample_distorted_bounding_box(**given):
    """The same with a seed of two integers."""
    return _sampled("StatelessSampleDistortedBoundingBox", given)
