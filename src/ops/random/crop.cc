// RandomCrop: a part of an image, at a random place. Graphs of version 8 on
// are made of a slice instead.
#include "ops/array/block_copy.h"
#include "ops/random/generator.h"

namespace headrace {
namespace {

class RandomCrop : public Kernel {
 public:
  explicit RandomCrop(const ResolvedOp& op) : generator_(op) {}
  bool own_outputs() const override { return true; }

  Status Run(KernelContext& c) override {
    const Tensor &image = c.input(0), &size = c.input(1);
    if (image.rank() != 3) {
      return InvalidArgument("image must be 3-dimensional, got shape ",
                             image.shape());
    }
    if (size.rank() != 1 || size.num_elements() != 2) {
      return InvalidArgument("size must have two elements, got shape ",
                             size.shape());
    }
    const int64_t height = size.IntAt(0), width = size.IntAt(1);
    if (height < 0 || width < 0 || height > image.dim(0) ||
        width > image.dim(1)) {
      return InvalidArgument("a part of ", height, " by ", width,
                             " does not fit into an image of ", image.dim(0),
                             " by ", image.dim(1));
    }
    HR_ASSIGN_OR_RETURN(Philox generator, generator_.Reserve(1));
    const Philox::Group words = generator.Next();
    // As many places as there are, and none where it fills the image.
    const auto place = [](uint32_t word, int64_t room) {
      return room == 0 ? 0 : static_cast<int64_t>(word) % (room + 1);
    };
    const int64_t y = place(words[0], image.dim(0) - height);
    const int64_t x = place(words[1], image.dim(1) - width);
    const int64_t depth = image.dim(2);
    HR_RETURN_IF_ERROR(c.Allocate(0, Shape{height, width, depth}));
    if (c.output(0).num_elements() == 0) return OkStatus();
    const int64_t row = image.dim(1) * depth;
    const char* from =
        static_cast<const char*>(image.raw()) +
        (y * row + x * depth) * static_cast<int64_t>(DTypeSize(image.dtype()));
    CopyBlock(image.dtype(), from, c.output(0).raw(),
              {{height, row, width * depth}, {width * depth, 1, 1}});
    return OkStatus();
  }

 private:
  SeededGenerator generator_;
};

Status RandomCropShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 3));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 1));
  absl::InlinedVector<int64_t, 8> size;
  Shape out{-1, -1, c.input(0).known_rank() ? c.input(0)[2] : -1};
  if (c.IntValues(1, &size) && size.size() == 2 && size[0] >= 0 &&
      size[1] >= 0) {
    out.set_dim(0, size[0]);
    out.set_dim(1, size[1]);
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

HR_OP(RandomCrop)
    .Input("image: T")
    .Input("size: int64")
    .Output("output: T")
    .Attr("T: {uint8, int8, int16, int32, int64, float, double}")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Stateful()
    .Deprecated(8, "Random crop is now pure Python")
    .Doc("A part of an image, at a random place.")
    .Shape(RandomCropShape)
    .Cpu(Bind<RandomCrop>);

}  // namespace
}  // namespace headrace
