// WindowDataset: datasets of consecutive elements. SlidingWindowDataset:
// batches of them.
#include <deque>

#include "data/dataset_op.h"
#include "data/elements.h"
#include "op/op_like.h"

namespace headrace {
namespace {

class WindowDataset : public InputDataset {
 public:
  WindowDataset(ElementSpec spec, DatasetPtr input, int64_t size, int64_t shift,
                int64_t stride, bool drop, bool stacked)
      : InputDataset(std::move(spec), std::move(input)),
        size_(size),
        shift_(shift),
        stride_(stride),
        drop_remainder_(drop),
        stacked_(stacked) {}
  StringView kind() const override {
    return stacked_ ? "SlidingWindow" : "Window";
  }
  int64_t Count() const override {
    const int64_t n = input().Cardinality();
    if (n < 0) return n;
    if (!drop_remainder_) return n / shift_ + (n % shift_ != 0);
    const int64_t reach = Reach();
    return n < reach ? 0 : (n - reach) / shift_ + 1;
  }
  // Elements from a window's first to its last.
  int64_t Reach() const { return (size_ - 1) * stride_ + 1; }

  class Iterator : public InputIterator<WindowDataset> {
   public:
    using InputIterator::InputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      const WindowDataset& d = dataset();
      while (static_cast<int64_t>(buffer_.size()) < d.Reach()) {
        Element element;
        bool input_end = false;
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        HR_RETURN_IF_ERROR(NextInput(c, &element, &input_end));
        if (input_end) break;
        buffer_.push_back(std::move(element));
      }
      const int64_t have = static_cast<int64_t>(buffer_.size());
      *end = have == 0 || (have < d.Reach() && d.drop_remainder_);
      if (*end) return OkStatus();
      std::vector<Element> window;
      for (int64_t i = 0; i < d.size_ && i * d.stride_ < have; ++i) {
        window.push_back(buffer_[i * d.stride_]);
      }
      HR_RETURN_IF_ERROR(Shift(c));
      if (d.stacked_) return StackElements(window, out);
      Split(window, out);
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      if (!input_) w.PutMark(prefix(), "input_impl_empty");
      w.PutInt(prefix(), "buffer_size", static_cast<int64_t>(buffer_.size()));
      for (size_t i = 0; i < buffer_.size(); ++i) {
        const std::string key = absl::StrCat("buffer[", i, "]");
        w.PutInt(prefix(), key + ".code", 0);
        HR_RETURN_IF_ERROR(
            w.PutElement(prefix(), key + ".size", key, buffer_[i]));
      }
      return input_ ? input_->Save(c, w) : OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(const int64_t n, r.GetCount(prefix(), "buffer_size"));
      buffer_.clear();
      for (int64_t i = 0; i < n; ++i) {
        const std::string key = absl::StrCat("buffer[", i, "]");
        HR_ASSIGN_OR_RETURN(Element e,
                            r.GetElement(prefix(), key + ".size", key));
        HR_RETURN_IF_ERROR(CheckSaved(prefix(), dataset().input().spec(), e));
        buffer_.push_back(std::move(e));
      }
      if (!r.Has(prefix(), "input_impl_empty")) return input_->Restore(c, r);
      input_.reset();
      return OkStatus();
    }

   private:
    Status Shift(PullContext& c) {
      const int64_t have = static_cast<int64_t>(buffer_.size());
      const int64_t shift = dataset().shift_;
      if (shift < have) {
        // Windows overlap: the rest begins the next one.
        buffer_.erase(buffer_.begin(), buffer_.begin() + shift);
        return OkStatus();
      }
      buffer_.clear();
      int64_t skipped = 0;
      if (!input_ || shift == have) return OkStatus();
      HR_RETURN_IF_ERROR(input_->Skip(c, shift - have, &skipped));
      // Fewer could be skipped than asked: the input is at its end, and it must
      // not be pulled again.
      if (skipped < shift - have) input_.reset();
      return OkStatus();
    }
    // One dataset a component.
    void Split(std::vector<Element>& window, Element* out) {
      const ElementSpec& spec = dataset().input().spec();
      out->clear();
      for (size_t k = 0; k < spec.types.size(); ++k) {
        std::vector<Element> column;
        for (Element& e : window) column.push_back({std::move(e[k])});
        out->push_back(DatasetTensor(MakeNested<const ElementsDataset>(
            ElementSpec{{spec.types[k]}, {spec.shapes[k]}},
            std::move(column))));
      }
    }
    std::deque<Element> buffer_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t size_, shift_, stride_;
  const bool drop_remainder_, stacked_;
};

Status SetWindows(KernelContext& c, int64_t size, int64_t shift, int64_t stride,
                  bool drop, bool stacked) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  if (size <= 0) {
    return InvalidArgument("Window size must be greater than zero.");
  }
  if (shift <= 0) {
    return InvalidArgument("Window shift must be greater than zero.");
  }
  if (stride <= 0) {
    return InvalidArgument(stacked ? "window_stride" : "Window stride",
                           " must be greater than zero.");
  }
  int64_t reach;
  // Reach() multiplies without a check from here on.
  if (!MultiplyChecked(size, stride, &reach)) {
    return InvalidArgument("Window size ", size, " and stride ", stride,
                           " are too large.");
  }
  return SetDataset<WindowDataset>(c, std::move(spec), std::move(input), size,
                                   shift, stride, drop, stacked);
}

Status MakeWindow(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const int64_t size, IntInput(c, 1, "size"));
  HR_ASSIGN_OR_RETURN(const int64_t shift, IntInput(c, 2, "shift"));
  HR_ASSIGN_OR_RETURN(const int64_t stride, IntInput(c, 3, "stride"));
  HR_ASSIGN_OR_RETURN(const bool drop, BoolInput(c, 4, "drop_remainder"));
  return SetWindows(c, size, shift, stride, drop, false);
}

Status MakeSliding(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const int64_t size, IntInput(c, 1, "window_size"));
  HR_ASSIGN_OR_RETURN(const int64_t shift, IntInput(c, 2, "window_shift"));
  HR_ASSIGN_OR_RETURN(const int64_t stride, IntInput(c, 3, "window_stride"));
  // The experimental form always drops what fills no window.
  const bool* drop = c.op().attrs().Get<bool>("drop_remainder");
  return SetWindows(c, size, shift, stride, drop == nullptr || *drop, true);
}

HR_OP(WindowDataset)
    .Input("input_dataset: variant")
    .Input("size: int64")
    .Input("shift: int64")
    .Input("stride: int64")
    .Input("drop_remainder: bool")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("Datasets of consecutive elements.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeWindow>);

HR_OP(SlidingWindowDataset)
    .Input("input_dataset: variant")
    .Input("window_size: int64")
    .Input("window_shift: int64")
    .Input("window_stride: int64")
    .Output("handle: variant")
    .Attr("drop_remainder: bool = true")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("Batches of consecutive elements, which may overlap.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeSliding>);

[[maybe_unused]] const bool kExperimentalSliding =
    RegisterLike("ExperimentalSlidingWindowDataset", "SlidingWindowDataset",
                 [](OpDef& def) { def.attrs.erase(def.attrs.begin()); });

}  // namespace
}  // namespace headrace
