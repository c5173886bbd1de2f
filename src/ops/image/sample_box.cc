// SampleDistortedBoundingBox, its second version and the stateless one: a crop
// of an image, at random, that holds enough of some box.
#include <algorithm>
#include <cmath>

#include "op/op.h"
#include "ops/random/generator.h"

namespace headrace {
namespace {

// Whole pixels: [left, right) and [top, bottom).
struct Box {
  int64_t left = 0, top = 0, right = 0, bottom = 0;
  double area() const {
    return right > left && bottom > top ? 1.0 * (right - left) * (bottom - top)
                                        : 0;
  }
};

// Numbers in upstream's order, from single words.
class Draws {
 public:
  explicit Draws(const Philox& p) : words_(p) {}
  // In [0, 1).
  float Float() {
    const uint32_t bits = 127u << 23 | (words_.Next() & 0x7fffff);
    return __builtin_bit_cast(float, bits) - 1.0f;
  }
  // Uniform over [0, n), without bias.
  int64_t Below(int64_t n) {
    const auto m = static_cast<uint32_t>(n);
    if (m == 0 || (m & (m - 1)) == 0) return words_.Next() & (m - 1);
    constexpr uint32_t kAll = 0xffffffffu;
    const uint32_t rest = kAll % m + 1;
    uint32_t word;
    do {
      word = words_.Next();
    } while (rest < m && word > kAll - rest);
    return word % m;
  }

 private:
  PhiloxWords words_;
};

struct Wishes {
  float aspect[2], area[2];
  float covered = 0.1f;
  int64_t attempts = 100;
  bool whole_image = false;

  static StatusOr<Wishes> Make(const ResolvedOp& op) {
    Wishes w;
    const auto& aspect = op.attr<std::vector<float>>("aspect_ratio_range");
    const auto& area = op.attr<std::vector<float>>("area_range");
    if (aspect.size() != 2) {
      return InvalidArgument(
          "Aspect ratio range field must specify 2 dimensions");
    }
    if (!(aspect[0] > 0 && aspect[1] > 0)) {
      return InvalidArgument("Aspect ratio range must be non-negative: [",
                             aspect[0], ", ", aspect[1], "]");
    }
    if (area.size() != 2) {
      return InvalidArgument("Area range field must specify 2 dimensions");
    }
    if (!(area[0] > 0 && area[1] > 0)) {
      return InvalidArgument("Area range must be non-negative: [", area[0],
                             ", ", area[1], "]");
    }
    if (!(area[0] <= 1 && area[1] <= 1)) {
      return InvalidArgument("Area range must be less then or equal to 1.0: [",
                             area[0], ", ", area[1], "]");
    }
    std::copy_n(aspect.begin(), 2, w.aspect);
    std::copy_n(area.begin(), 2, w.area);
    w.attempts = op.int_attr("max_attempts");
    if (w.attempts <= 0) {
      return InvalidArgument("Max attempts must be non-negative: ", w.attempts);
    }
    w.whole_image = op.bool_attr("use_image_if_no_bounding_boxes");
    const float* covered = op.attrs().Get<float>("min_object_covered");
    if (covered) w.covered = *covered;
    return w;
  }
};

// A crop of the wished area and aspect somewhere in the image, or false.
bool DrawCrop(int64_t height, int64_t width, const Wishes& w, float aspect,
              Draws& draws, Box* box) {
  if (!(aspect > 0) || w.area[0] > w.area[1] || height <= 0 || width <= 0) {
    return false;
  }
  const float least = w.area[0] * width * height;
  const float most = w.area[1] * width * height;
  int64_t h = std::lrintf(std::sqrt(least / aspect));
  int64_t tallest = std::lrintf(std::sqrt(most / aspect));
  if (std::lrintf(tallest * aspect) > width) {
    // The largest height whose width still rounds into the image.
    tallest = static_cast<int64_t>((width + 0.5 - 0.0000001) / aspect);
    if (std::lrintf(tallest * aspect) > width) --tallest;
  }
  tallest = std::min(tallest, height);
  h = std::min(h, tallest);
  if (h < tallest) h += draws.Below(tallest - h + 1);
  int64_t wide = std::lrintf(h * aspect);
  auto area = [&] { return static_cast<float>(wide * h); };
  if (area() < least) wide = std::lrintf(++h * aspect);
  if (area() > most) wide = std::lrintf(--h * aspect);
  if (area() < least || area() > most || wide > width || h > height ||
      wide <= 0 || h <= 0) {
    return false;
  }
  const int64_t y = h < height ? draws.Below(height - h) : 0;
  const int64_t x = wide < width ? draws.Below(width - wide) : 0;
  *box = {x, y, x + wide, y + h};
  return true;
}

bool CoversOne(const Box& crop, float covered, const std::vector<Box>& boxes) {
  for (const Box& b : boxes) {
    const double area = b.area();
    if (area < 1) continue;
    const Box both{std::max(crop.left, b.left), std::max(crop.top, b.top),
                   std::min(crop.right, b.right),
                   std::min(crop.bottom, b.bottom)};
    if (both.area() / area >= covered) return true;
  }
  return false;
}

// Whether no crop can do: then none is tried, however often it may be.
bool Hopeless(int64_t height, int64_t width, const Wishes& w,
              const std::vector<Box>& boxes) {
  if (height == 0 || width == 0 || w.area[0] > w.area[1]) return true;
  // A crop is at most so large, but for the rounding of its area.
  const double most = std::ceil(1.0 * w.area[1] * width * height) + 1;
  return std::none_of(boxes.begin(), boxes.end(), [&](const Box& b) {
    const double area = b.area();
    return area >= 1 && std::min(area, most) / area >= w.covered;
  });
}

Status SampleShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(Wishes::Make(c.op()).status());
  const Shape &size = c.input(0), &boxes = c.input(1);
  if (size.known_rank() && size.rank() != 1) {
    return InvalidArgument("image_size must be 1-dimensional", size);
  }
  if (size.known_rank() && size[0] >= 0 && size[0] != 3) {
    return InvalidArgument("image_size must contain 3 elements", size);
  }
  if (boxes.known_rank() && boxes.rank() != 3) {
    return InvalidArgument(
        "input boxes must be 3-dimensional [batch, num_boxes, coords]: ",
        boxes);
  }
  if (boxes.known_rank() && boxes[2] >= 0 && boxes[2] != 4) {
    return InvalidArgument("bounding boxes must have shape [4] or [*, 4], got ",
                           boxes);
  }
  if (c.num_inputs() > 2 && c.input(2).known_rank() && c.input(2).rank() != 0) {
    return InvalidArgument("min_object_covered must be 0-D, got ", c.input(2));
  }
  if (c.num_inputs() > 3) HR_RETURN_IF_ERROR(CheckSeedShape(c.input(3)));
  c.set_output(0, Shape{3});
  c.set_output(1, Shape{3});
  c.set_output(2, Shape{1, 1, 4});
  return OkStatus();
}

// Boxes of input 1 in pixels; the whole image where there are none.
StatusOr<std::vector<Box>> BoxesOf(const KernelContext& c, const Wishes& w,
                                   int64_t height, int64_t width) {
  const int64_t count = c.input(1).num_elements() / 4;
  std::vector<Box> boxes;
  if (count == 0) {
    if (!w.whole_image) {
      return InvalidArgument(
          "No bounding boxes provided as input. One must enable "
          "use_image_if_no_bounding_boxes if you wish to not provide any "
          "bounding boxes.");
    }
    boxes.push_back({0, 0, width, height});
    return boxes;
  }
  for (int64_t i = 0; i < count; ++i) {
    const float* b = c.in<float>(1) + i * 4;
    for (int k = 0; k < 4; ++k) {
      if (!(b[k] >= 0 && b[k] <= 1)) {
        return InvalidArgument(
            "All bounding box coordinates must be in [0.0, "
            "1.0]: ",
            b[k]);
      }
    }
    boxes.push_back({static_cast<int64_t>(b[1] * width),
                     static_cast<int64_t>(b[0] * height),
                     static_cast<int64_t>(b[3] * width),
                     static_cast<int64_t>(b[2] * height)});
  }
  return boxes;
}

template <typename T>
Status Sample(KernelContext& c, const Philox& generator) {
  HR_ASSIGN_OR_RETURN(Wishes w, Wishes::Make(c.op()));
  if (c.num_inputs() > 2) w.covered = c.input(2).scalar<float>();
  if (!(w.covered >= 0)) {
    return InvalidArgument("Min object covered must be non-negative: ",
                           w.covered);
  }
  const auto height = static_cast<int64_t>(c.in<T>(0)[0]);
  const auto width = static_cast<int64_t>(c.in<T>(0)[1]);
  if (height < 0 || width < 0 || height > INT32_MAX || width > INT32_MAX) {
    return InvalidArgument("Image height and width must not be negative, got ",
                           height, " and ", width);
  }
  HR_ASSIGN_OR_RETURN(auto boxes, BoxesOf(c, w, height, width));
  Draws draws(generator);
  Box crop{0, 0, width, height};
  const int64_t attempts = Hopeless(height, width, w, boxes) ? 0 : w.attempts;
  for (int64_t i = 0; i < attempts; ++i) {
    // A thousand attempts take some tens of microseconds.
    if (i % 1024 == 1023) HR_RETURN_IF_ERROR(c.CheckCancelled());
    const float aspect =
        draws.Float() * (w.aspect[1] - w.aspect[0]) + w.aspect[0];
    Box tried;
    if (DrawCrop(height, width, w, aspect, draws, &tried) &&
        CoversOne(tried, w.covered, boxes)) {
      crop = tried;
      break;
    }
  }
  T *begin = c.out<T>(0), *size = c.out<T>(1);
  begin[0] = static_cast<T>(crop.top);
  begin[1] = static_cast<T>(crop.left);
  begin[2] = 0;
  size[0] = static_cast<T>(crop.bottom - crop.top);
  size[1] = static_cast<T>(crop.right - crop.left);
  size[2] = static_cast<T>(-1);
  const auto h = static_cast<float>(height), v = static_cast<float>(width);
  float* part = c.out<float>(2);
  part[0] = crop.top / h;
  part[1] = crop.left / v;
  part[2] = crop.bottom / h;
  part[3] = crop.right / v;
  return OkStatus();
}

Status SampleAny(KernelContext& c, const Philox& generator) {
  Status made;
  DispatchDType(c.op().type_attr("T"),
                TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t>{},
                [&](auto tag) {
                  made = Sample<typename decltype(tag)::type>(c, generator);
                });
  return made;
}

class SampleKernel : public Kernel {
 public:
  explicit SampleKernel(const ResolvedOp& op) : generator_(op) {}
  Status Run(KernelContext& c) override {
    const int64_t attempts = c.op().int_attr("max_attempts");
    const int64_t most = std::clamp<int64_t>(attempts, 1, int64_t{1} << 40);
    HR_ASSIGN_OR_RETURN(const Philox generator, generator_.Reserve(most));
    return SampleAny(c, generator);
  }

 private:
  SeededGenerator generator_;
};

Status SampleStateless(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Philox generator, StatelessGenerator(c.input(3)));
  return SampleAny(c, generator);
}

// `version`: 1, 2, or 3 for the stateless one.
OpBuilder Sampler(const char* name, int version) {
  OpBuilder op(name);
  op.Input("image_size: T").Input("bounding_boxes: float");
  if (version > 1) op.Input("min_object_covered: float");
  if (version > 2) op.Input("seed: Tseed");
  op.Output("begin: T").Output("size: T").Output("bboxes: float");
  op.Attr("T: {uint8, int8, int16, int32, int64}");
  if (version > 2) {
    op.Attr("Tseed: {int32, int64}");
  } else {
    op.Attr("seed: int = 0").Attr("seed2: int = 0").Stateful();
  }
  if (version == 1) op.Attr("min_object_covered: float = 0.1");
  op.Attr("aspect_ratio_range: list(float) = [0.75, 1.33]")
      .Attr("area_range: list(float) = [0.05, 1]")
      .Attr("max_attempts: int = 100")
      .Attr("use_image_if_no_bounding_boxes: bool = false")
      .Doc("A crop, at random, that holds enough of some box.")
      .Shape(SampleShape)
      .Cpu(version > 2 ? Compute<SampleStateless> : Bind<SampleKernel>);
  if (version < 3) op.NoGradient();
  return op;
}

const bool samplers_registered = [] {
  Sampler("SampleDistortedBoundingBox", 1).Register();
  Sampler("SampleDistortedBoundingBoxV2", 2).Register();
  Sampler("StatelessSampleDistortedBoundingBox", 3).Register();
  return true;
}();

}  // namespace
}  // namespace headrace
